package replicate_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
	"github.com/twmb/franz-go/pkg/sasl/plain"

	"apograph/internal/connect"
	"apograph/internal/kafkatest"
	"apograph/replicate"
)

// A door is the way of a flow into a cluster with logins: it can be shut, so that its
// login is not good any more, and then ends the connections that there are.
type door struct {
	shut    atomic.Bool
	refused atomic.Int64
	mu      sync.Mutex
	conns   []net.Conn
}

func (d *door) dial(ctx context.Context, network, address string) (net.Conn, error) {
	c, err := new(net.Dialer).DialContext(ctx, network, address)
	if err == nil {
		d.mu.Lock()
		d.conns = append(d.conns, c)
		d.mu.Unlock()
	}
	return c, err
}

func (d *door) close() {
	d.shut.Store(true)
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, c := range d.conns {
		_ = c.Close()
	}
}

// guarded starts a cluster with logins, and returns how the flow gets in.
func guarded(t *testing.T, alias string) (*kafkatest.Cluster, connect.Cluster, *door) {
	t.Helper()
	login := plain.Auth{User: "test", Pass: "test"}
	c := kafkatest.NewCluster(t, kafkatest.ClusterOptions{
		Name: alias, DataDir: t.TempDir(), Login: []kgo.Opt{kgo.SASL(login.AsMechanism())},
		Kfake: []kfake.Opt{kfake.EnableSASL(), kfake.Superuser("PLAIN", "mm2", "canary"), kfake.Superuser("PLAIN", "test", "test")},
	})
	d := &door{}
	fake := c.Fake()
	fake.ControlKey(int16(kmsg.SASLAuthenticate), func(r kmsg.Request) (kmsg.Response, error, bool) {
		fake.KeepControl()
		if !d.shut.Load() || !bytes.Contains(r.(*kmsg.SASLAuthenticateRequest).SASLAuthBytes, []byte("mm2")) {
			return nil, nil, false
		}
		d.refused.Add(1)
		response := r.ResponseKind().(*kmsg.SASLAuthenticateResponse)
		response.ErrorCode = kerr.SaslAuthenticationFailed.Code
		return response, nil, true
	})
	way, _, err := connect.FromProperties(alias, []connect.Setting{
		{Key: "bootstrap.servers", Value: c.Addresses[0]}, {Key: "security.protocol", Value: "SASL_PLAINTEXT"}, {Key: "sasl.mechanism", Value: "PLAIN"},
		{Key: "sasl.jaas.config", Value: `org.apache.kafka.common.security.plain.PlainLoginModule required username="mm2" password="canary";`, Where: "mm2.properties:7:3"},
	})
	if err != nil {
		t.Fatal(err)
	}
	way.Dial = d.dial
	return c, way, d
}

// lines are what a flow logs.
type lines struct {
	mu  sync.Mutex
	all []string
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.all = append(l.all, string(p))
	return len(p), nil
}

func (l *lines) count(what string) (n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, line := range l.all {
		if strings.Contains(line, what) {
			n++
		}
	}
	return n
}

// TestLoginThatIsRefusedLater: a cluster that does not let us in any more, as a
// password was changed, is said once, with the setting; its partitions stop as not
// authorized, and are tried until it does again.
func TestLoginThatIsRefusedLater(t *testing.T) {
	for _, side := range []string{"source", "target"} {
		t.Run(side, func(t *testing.T) {
			t.Parallel()
			refuseLogins(t, side)
		})
	}
}

func refuseLogins(t *testing.T, side string) {
	source, from, sourceDoor := guarded(t, "source")
	target, to, targetDoor := guarded(t, "target")
	d := map[string]*door{"source": sourceDoor, "target": targetDoor}[side]
	pair := &kafkatest.Pair{Source: source, Target: target}
	mustTopic(t, source, "t", nil)
	mustAppend(t, source.Bootstrap, numbered(0, 5)...)
	config := livingConfig(t, pair, "t")
	config.Source, config.Target = from, to
	config.UnavailableAfter = 300 * time.Millisecond
	said := &lines{}
	config.Logger = slog.New(slog.NewTextHandler(said, nil))
	l := live(t, pair, config)
	l.at("t", 0, 5)
	if said.count("refuses us") > 0 {
		t.Errorf("said before there was anything: %q", said.all)
	}
	d.close()
	mustAppend(t, source.Bootstrap, numbered(5, 5)...)
	s := l.stopped("t", 0, replicate.StopNotAuthorized)
	for _, part := range []string{fmt.Sprintf("cluster %s refuses us at broker 127.0.0.1:", side), "SASL_AUTHENTICATION_FAILED", "wrong user or password", "sasl.jaas.config (mm2.properties:7:3)"} {
		if !strings.Contains(s.Detail, part) {
			t.Errorf("the detail lacks %q: %s", part, s.Detail)
		}
	}
	if n := d.refused.Load(); n == 0 || n > 100 {
		t.Errorf("%d logins were refused", n)
	}
	d.shut.Store(false)
	l.at("t", 0, 10)
	l.end()
	if said.count("a cluster refuses us") != 1 || said.count("lets us in again") != 1 || said.count("canary") > 0 {
		t.Errorf("said %q", said.all)
	}
	prove(t, source.Bootstrap, target.Bootstrap, config.LedgerPath, "t")
}
