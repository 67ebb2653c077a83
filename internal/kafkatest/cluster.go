package kafkatest

import (
	"context"
	"crypto/tls"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"net"
	"slices"
	"strconv"
	"sync"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
)

// ErrStopped reports a call that needs a running cluster.
var ErrStopped = errors.New("kafkatest: the fake cluster is stopped")

// ErrRunning reports a call that needs a stopped cluster.
var ErrRunning = errors.New("kafkatest: the fake cluster is running")

// ClusterOptions describe one fake cluster. The zero value is one broker on
// the loopback interface that keeps its log in memory.
type ClusterOptions struct {
	// ID is the cluster id. Empty means one of Kafka's form (22 characters of
	// base64) made from Name.
	ID   string
	Name string // of the cluster in errors; empty means "cluster"

	Brokers int // 0 means 1; their node ids are 0, 1, ...

	// DataDir keeps the cluster's state on disk, so that it survives Stop and
	// Start and its logs can be rewritten in between. Empty means in memory:
	// then Stop loses everything.
	DataDir string

	// Network runs the cluster without sockets, for testing/synctest. The
	// brokers then listen on FirstPort, FirstPort+1, ...; clusters on the same
	// network need different ports.
	Network   *kfake.VirtualNetwork
	FirstPort int // 0 means 9092; only used with Network

	// TLS is what the brokers have for their listeners; nil: they have none.
	// Clients of this package take any certificate.
	TLS *tls.Config

	// Login is what clients of this package need to log in.
	Login []kgo.Opt

	// Kfake is passed on as it is, after the package's own options. Its own TLS is
	// not possible: the wire must be able to read requests.
	Kfake []kfake.Opt
}

// A Cluster is a fake Kafka cluster in this process: kfake, behind a wire that
// can fail in the ways that networks and brokers fail, and with the corrections
// that the package comment lists. Its addresses stay the same for its whole
// life. Methods may be called concurrently, except that nothing may be called
// while Stop, Start or Close runs.
type Cluster struct {
	Bootstrap

	options  ClusterOptions
	ports    []int
	reserved []reservation
	wire     *wire
	inspect  *inspector

	mu   sync.Mutex     // guards fake
	fake *kfake.Cluster // nil while stopped
}

// StartCluster starts a fake cluster. The caller closes it.
func StartCluster(o ClusterOptions) (*Cluster, error) {
	if o.Brokers == 0 {
		o.Brokers = 1
	}
	if o.Name == "" {
		o.Name = "cluster"
	}
	if o.ID == "" {
		o.ID = clusterID(o.Name)
	}
	c := &Cluster{options: o, inspect: &inspector{decompressor: NewDecompressor()}}
	c.Login = o.Login
	if o.TLS != nil {
		dialer := &tls.Dialer{Config: &tls.Config{InsecureSkipVerify: true}}
		c.Dial = dialer.DialContext
	}
	c.wire = newWire(c)
	if err := c.takePorts(); err != nil {
		return nil, err
	}
	if err := c.Start(); err != nil {
		c.Close()
		return nil, err
	}
	return c, nil
}

// clusterID makes an id of the length and alphabet that Kafka's have.
func clusterID(name string) string {
	return fmt.Sprintf("%.22s", "kfake-"+name+"-0000000000000000")
}

func (c *Cluster) takePorts() error {
	for i := range c.options.Brokers {
		if c.options.Network != nil {
			c.ports = append(c.ports, max(c.options.FirstPort, 0)+i)
			if c.options.FirstPort == 0 {
				c.ports[i] = 9092 + i
			}
			continue
		}
		r, err := reserve()
		if err != nil {
			c.Close()
			return err
		}
		c.reserved = append(c.reserved, r)
		c.ports = append(c.ports, r.port)
	}
	for _, port := range c.ports {
		c.Addresses = append(c.Addresses, net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
	}
	if c.options.Network != nil {
		c.Dial = c.options.Network.DialContext
	}
	return nil
}

// Start starts a stopped cluster on the same addresses. With a DataDir it
// comes back with everything it had: topics and their ids, logs, groups,
// producer state, open transactions. Faults that are in place stay.
func (c *Cluster) Start() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.fake != nil {
		return ErrRunning
	}
	listen := net.Listen
	if c.options.Network != nil {
		listen = c.options.Network.Listen
	}
	if config := c.options.TLS; config != nil {
		inner := listen
		listen = func(network, address string) (net.Listener, error) {
			l, err := inner(network, address)
			if err != nil {
				return nil, err
			}
			return tls.NewListener(l, config), nil
		}
	}
	opts := []kfake.Opt{
		kfake.ClusterID(c.options.ID),
		kfake.Ports(c.ports...),
		kfake.ListenFn(c.wire.listen(listen)),
		kfake.DefaultNumPartitions(1),
	}
	if c.options.DataDir != "" {
		if err := errors.Join(keepEmptyLogs(c.options.DataDir), dropFetchSessions(c.options.DataDir)); err != nil {
			return fmt.Errorf("start %s: %w", c.options.Name, err)
		}
		opts = append(opts, kfake.DataDir(c.options.DataDir))
	}
	fake, err := kfake.NewCluster(append(opts, c.options.Kfake...)...)
	if err != nil {
		c.wire.reset()
		return fmt.Errorf("start %s: %w", c.options.Name, err)
	}
	c.fake = fake
	c.inspect.install(fake)
	neverCutFetches(fake)
	for _, r := range c.wire.errorRules() {
		fake.Fault(errorFault(r))
	}
	return nil
}

// Stop stops the cluster: connections break, its ports refuse connections, and
// its state is on disk if it has a DataDir. Stopping a stopped cluster does
// nothing.
func (c *Cluster) Stop() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.fake == nil {
		return
	}
	c.fake.Close()
	c.fake = nil
	c.wire.reset()
}

// Restart is Stop and Start.
func (c *Cluster) Restart() error {
	c.Stop()
	return c.Start()
}

// Close stops the cluster for good and gives its ports back. It may be called
// more than once.
func (c *Cluster) Close() {
	c.Stop()
	for _, r := range c.reserved {
		r.release()
	}
	c.reserved = nil
}

// ID returns the cluster id.
func (c *Cluster) ID() string { return c.options.ID }

// DataDir returns where the cluster keeps its state; empty is in memory.
func (c *Cluster) DataDir() string { return c.options.DataDir }

// Fake returns the kfake cluster, for what this package does not wrap. It is
// another one after a restart, and nil while the cluster is stopped. Controls
// that are set on it are lost with it.
func (c *Cluster) Fake() *kfake.Cluster {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.fake
}

// running returns the kfake cluster or ErrStopped.
func (c *Cluster) running() (*kfake.Cluster, error) {
	if fake := c.Fake(); fake != nil {
		return fake, nil
	}
	return nil, fmt.Errorf("%s: %w", c.options.Name, ErrStopped)
}

// CreateTopic creates a topic without going through the protocol: faults do
// not see it. Leaders are spread over the brokers in order, not at random as
// kfake does for topics that clients create; this raises the leader epoch to 1.
// kfake accepts any setting and acts on few (see the package comment).
func (c *Cluster) CreateTopic(_ context.Context, topic string, partitions int32, configs map[string]string) error {
	fake, err := c.running()
	if err != nil {
		return err
	}
	if err := fake.CreateTopic(topic, partitions, configs); err != nil {
		return fmt.Errorf("create topic %s: %w", topic, err)
	}
	for p := range partitions {
		if err := fake.MoveTopicPartition(topic, p, p%int32(len(c.ports))); err != nil {
			return fmt.Errorf("create topic %s: %w", topic, err)
		}
	}
	return nil
}

// MoveLeader makes the next broker the leader of a partition, raises the leader
// epoch, and returns the new leader's node id.
func (c *Cluster) MoveLeader(topic string, partition int32) (int32, error) {
	fake, err := c.running()
	if err != nil {
		return -1, err
	}
	leader := (fake.LeaderFor(topic, partition) + 1) % int32(len(c.ports))
	if err := fake.MoveTopicPartition(topic, partition, leader); err != nil {
		return -1, fmt.Errorf("move leader of %s:%d: %w", topic, partition, err)
	}
	return leader, nil
}

// ForgetEpochs takes the leader epochs out of a partition's batches: those of message
// formats before 0.11 have none. It stops the cluster meanwhile if it runs.
func (c *Cluster) ForgetEpochs(topic string, partition int32) error {
	return c.EditLog(topic, partition, func(l *Log) error {
		for _, batch := range l.Batches {
			binary.BigEndian.PutUint32(batch[12:], math.MaxUint32) // -1, which no checksum is over
		}
		return nil
	})
}

// LoseTail stops the cluster if it runs, cuts the log of a partition so that it
// ends at an offset, raises the leader epoch, and starts the cluster again if it
// ran: what an unclean leader election does to a partition whose new leader had
// less (KIP-101). The offset must lie between batches.
func (c *Cluster) LoseTail(topic string, partition int32, end int64) error {
	return c.EditLog(topic, partition, func(l *Log) error {
		heads, err := checkBatches(l.Batches)
		if err != nil {
			return err
		}
		kept := 0
		for kept < len(heads) && heads[kept].next() <= end {
			kept++
		}
		if kept < len(heads) && heads[kept].base < end {
			return fmt.Errorf("offset %d lies inside the batch [%d, %d)", end, heads[kept].base, heads[kept].next())
		}
		l.Batches, l.End = l.Batches[:kept], end
		l.LeaderEpoch++
		return nil
	})
}

// DeleteRecords moves a partition's log start to the offset, which may lie
// inside a batch; -1 is the high watermark.
func (c *Cluster) DeleteRecords(topic string, partition int32, offset int64) error {
	fake, err := c.running()
	if err != nil {
		return err
	}
	if err := fake.DeleteRecords(topic, partition, offset); err != nil {
		return fmt.Errorf("delete records of %s:%d below %d: %w", topic, partition, offset, err)
	}
	return nil
}

// partitionInfo is for the wire, whose goroutines the brokers never wait for. It
// holds the mutex so that the cluster is not closed meanwhile: a closed kfake
// never answers.
func (c *Cluster) partitionInfo(topic string, partition int32) *kfake.PartitionInfo {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.fake == nil {
		return nil
	}
	return c.fake.PartitionInfo(topic, partition)
}

// topicName is partitionInfo for a topic's name.
func (c *Cluster) topicName(id [16]byte) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.fake == nil {
		return ""
	}
	if info := c.fake.TopicIDInfo(id); info != nil {
		return info.Topic
	}
	return ""
}

// selector resolves a topic's id, by which newer requests name it.
func (c *Cluster) selector(topic string, partitions ...int32) (selector, error) {
	fake, err := c.running()
	if err != nil {
		return selector{}, err
	}
	info := fake.TopicInfo(topic)
	if info == nil {
		return selector{}, fmt.Errorf("topic %s does not exist", topic)
	}
	return selector{topic: topic, id: info.TopicID, partitions: slices.Clone(partitions)}, nil
}

// installError hands an error fault to kfake; Start does it again.
func (c *Cluster) installError(r *rule) {
	if fake := c.Fake(); fake != nil {
		fake.Fault(errorFault(r))
	}
}

// errorRules returns the rules that kfake plays.
func (w *wire) errorRules() []*rule {
	w.mu.Lock()
	defer w.mu.Unlock()
	var rules []*rule
	for _, r := range w.rules {
		if !r.fault.onWire() {
			rules = append(rules, r)
		}
	}
	return rules
}
