// Package connect makes Kafka clients for the clusters of a flow.
//
// A [Cluster] is what a person says about a cluster: its alias, where to reach
// it, and, if [FromProperties] made it of the settings of a Java client, how to
// get in: TLS with the stores that Java has, logins by PLAIN, SCRAM, OAUTHBEARER
// and AWS_MSK_IAM. Open answers with a client that has been seen to work, or with
// an [UnreachableError] that names the cluster, its addresses and the likely
// cause. Client options that decide about correctness (acks, isolation, offset
// reset) belong to the packages that use the client, which pass them to Open
// explicitly.
//
// Every client property of Kafka is obeyed, ignored for a reason that is told, or
// refused; [Keys] lists them. Secrets are in no error, notice or log, and in
// nothing that is printed of a value of this package.
//
// Not supported: Kerberos (GSSAPI), Java code of any kind (callback handlers,
// engine factories, interceptors), stores of types JCEKS and BCFKS, the JWT bearer
// grant, and roles of AWS that need a signed request to STS.
package connect

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// Open tries for so long to get a first answer from a cluster; a single try
// may take a little longer.
const (
	reachTimeout  = 5 * time.Second
	reachInterval = 250 * time.Millisecond
	tryTimeout    = 15 * time.Second
)

// A Cluster says how to reach one Kafka cluster: without TLS and login, unless
// [FromProperties] made it. It is a value: copy it freely. No way of printing it
// shows a secret.
type Cluster struct {
	Alias     string    // name of the cluster in this flow, never empty
	Bootstrap []string  // host:port of at least one broker
	Options   []kgo.Opt // appended to every client of this cluster (dialers, in tests)

	// Dial connects to a broker, below TLS; nil is TCP. A dialer in Options does
	// away with it, and with TLS.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)

	access *access // nil: no settings
}

// Client returns a client that has not yet dialed. The caller closes it.
func (c Cluster) Client(options ...kgo.Opt) (*kgo.Client, error) {
	all := []kgo.Opt{
		kgo.SeedBrokers(c.Bootstrap...),
		kgo.ClientID("apograph"),
		kgo.ConsumeResetOffset(kgo.NoResetOffset()),
	}
	if err := c.Check(); err != nil {
		return nil, fmt.Errorf("cluster %s: %w", c.Alias, err)
	}
	all = append(all, c.way().clientOptions(c.Dial)...)
	all = append(all, options...)
	client, err := kgo.NewClient(append(all, c.Options...)...)
	if err != nil {
		return nil, fmt.Errorf("cluster %s: %w", c.Alias, err)
	}
	return client, nil
}

// way returns how to get in; never nil.
func (c Cluster) way() *access {
	if c.access != nil {
		return c.access
	}
	return &access{protocol: plaintext, dialTimeout: defaultDialTimeout}
}

// Check reads the key and trust stores that the settings name. The error joins one
// [*StoreError] for each that cannot be used. Client and Open do the same first.
func (c Cluster) Check() error { return errors.Join(c.StoreErrors()...) }

// StoreErrors returns why stores cannot be used, each a [*StoreError].
func (c Cluster) StoreErrors() []error {
	t := c.way().tls
	if t == nil {
		return nil
	}
	var errs []error
	if _, err := t.roots(); err != nil {
		errs = append(errs, err)
	}
	if t.key == nil {
		return errs
	}
	if _, err := t.key.keyPairs(); err != nil {
		errs = append(errs, err)
	}
	return errs
}

// Open returns a client that has had an answer from the cluster, and the
// cluster's id. The caller closes the client. The error is an
// [*UnreachableError] if no broker answered within some seconds, or would have
// us; one of Check; or ctx's cause. What asking again does not mend is not asked
// again.
func (c Cluster) Open(ctx context.Context, options ...kgo.Opt) (*kgo.Client, string, error) {
	client, err := c.Client(options...)
	if err != nil {
		return nil, "", err
	}
	id, err := c.reach(ctx, client)
	if err != nil {
		client.Close()
		if ctx.Err() != nil {
			return nil, "", context.Cause(ctx)
		}
		return nil, "", err
	}
	return client, id, nil
}

// reach tries until the cluster answers, refuses us for good, or the time is up: a
// broker that is being restarted refuses connections for a moment, or cuts them.
// Before it gives up it asks the brokers what they speak, if they were there.
func (c Cluster) reach(ctx context.Context, client *kgo.Client) (clusterID string, err error) {
	for deadline := time.Now().Add(reachTimeout); ; {
		if clusterID, err = tryReach(ctx, client); err == nil {
			return clusterID, nil
		}
		if Permanent(err) || !time.Now().Before(deadline) {
			failure := &UnreachableError{Alias: c.Alias, Bootstrap: c.Bootstrap, Err: err, Hint: c.way().hint(err)}
			if failure.Hint == "" && isConnected(err) {
				failure.Hint = c.ask(ctx)
			}
			return "", failure
		}
		timer := time.NewTimer(reachInterval)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return "", context.Cause(ctx)
		}
	}
}

// isConnected reports whether a failure came after a connection was made.
func isConnected(err error) bool {
	var failed *net.OpError
	return !errors.As(err, &failed) || failed.Op != "dial"
}

// askTimeout bounds the search for a cause.
const askTimeout = 5 * time.Second

// ask finds out whether the brokers speak what the settings say. It returns what
// to tell if they do not, or if they do, and yet end connections that log in.
func (c Cluster) ask(ctx context.Context) string {
	if len(c.Options) > 0 && c.Dial == nil {
		return "" // they may hold a dialer, without which the brokers cannot be asked
	}
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	dial := c.Dial
	if dial == nil {
		dial = new(net.Dialer).DialContext
	}
	for _, address := range c.Bootstrap {
		if l := probe(ctx, dial, address); l.protocol != "" {
			return c.way().judge(l)
		}
	}
	return ""
}

func tryReach(ctx context.Context, client *kgo.Client) (clusterID string, err error) {
	ctx, cancel := context.WithTimeout(ctx, tryTimeout)
	defer cancel()
	if err := client.Ping(ctx); err != nil {
		return "", err
	}
	request := kmsg.NewPtrMetadataRequest()
	request.Topics = []kmsg.MetadataRequestTopic{} // empty, not null: no topics
	response, err := request.RequestWith(ctx, client)
	if err != nil {
		return "", err
	}
	if response.ClusterID == nil || *response.ClusterID == "" {
		return "", errors.New("the broker reports no cluster id")
	}
	return *response.ClusterID, nil
}

// CheckAddress returns an error if address is not host:port.
func CheckAddress(address string) error {
	host, port, err := net.SplitHostPort(address)
	if err != nil || host == "" {
		return fmt.Errorf("%q is not host:port", address)
	}
	if n, err := strconv.Atoi(port); err != nil || n < 1 || n > 65535 {
		return fmt.Errorf("%q has no valid port", address)
	}
	return nil
}
