//go:build kafka

package kafkatest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// kafkaStartTimeout bounds the start of a cluster and of a node.
const kafkaStartTimeout = 5 * time.Minute

// KafkaOptions describe a cluster of real brokers (KRaft, Java). The zero value is one node that is broker and controller.
type KafkaOptions struct {
	Name              string // part of the cluster id and of file names; empty means "kafka"
	Nodes             int    // brokers, with node ids 1, 2, ...; 0 means 1. More than one have a controller of their own, which is never stopped
	ReplicationFactor int    // of topics that do not say; 0 means 3, at most Nodes
	MinInsync         int    // min.insync.replicas; 0 means 1
	HeapMB            int    // of each node; 0 means 512

	JVM       []string        // options of each node's JVM in place of those that make short runs quick; a heap among them wins over HeapMB
	Listeners []KafkaListener // of the broker, besides its own; for clusters of one node

	Config     map[string]string         // of every node, controller included; wins over the package's own settings
	NodeConfig map[int]map[string]string // of one broker; wins over Config
}

// A Kafka is a cluster of real brokers, each a process of its own. Everything
// is killed at the test's end, also when the test binary dies (on Linux); the
// brokers' logs are shown if the test has failed. Methods are for the test's
// goroutine.
type Kafka struct {
	Bootstrap
	*Java // of the brokers' version

	t          TB
	options    KafkaOptions
	id, dir    string
	controller *kafkaNode // nil: the only broker is the controller
	nodes      []*kafkaNode
}

// StartKafka starts real brokers and returns when all of them are in the
// cluster's metadata. It fails the test where Java or Maven is missing. The jars
// are fetched once; see kafkaJars.
func StartKafka(t TB, o KafkaOptions) *Kafka {
	t.Helper()
	return StartKafkas(t, o)[0]
}

// StartKafkas starts several clusters at once.
func StartKafkas(t TB, options ...KafkaOptions) []*Kafka {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), kafkaStartTimeout)
	defer cancel()
	clusters := make([]*Kafka, len(options))
	for i, o := range options {
		k, err := launchKafka(ctx, t, o)
		if err != nil {
			t.Fatalf("start kafka: %v", err)
		}
		clusters[i] = k
	}
	for _, k := range clusters {
		if err := k.waitBrokers(ctx, len(k.nodes)); err != nil {
			t.Fatalf("start kafka %s: %v", k.options.Name, err)
		}
	}
	return clusters
}

func launchKafka(ctx context.Context, t TB, o KafkaOptions) (*Kafka, error) {
	release, err := JavaOf(ctx, KafkaVersion)
	if err != nil {
		return nil, err
	}
	o.setDefaults()
	k := &Kafka{Java: release, t: t, options: o, dir: t.TempDir(), id: kafkaClusterID(o.Name)}
	t.Cleanup(k.close)
	if err := k.layOut(); err != nil {
		return nil, err
	}
	if err := k.format(ctx); err != nil {
		return nil, err
	}
	for _, n := range k.all() {
		if err := k.launch(n); err != nil {
			return nil, err
		}
	}
	return k, nil
}

func (o *KafkaOptions) setDefaults() {
	if o.Name == "" {
		o.Name = "kafka"
	}
	o.Nodes = max(o.Nodes, 1)
	o.MinInsync = max(o.MinInsync, 1)
	if o.HeapMB == 0 {
		o.HeapMB = 512
	}
	if o.ReplicationFactor == 0 {
		o.ReplicationFactor = min(3, o.Nodes)
	}
}

// all returns the controller, if there is one of its own, and the brokers.
func (k *Kafka) all() []*kafkaNode {
	if k.controller == nil {
		return k.nodes
	}
	return append([]*kafkaNode{k.controller}, k.nodes...)
}

// close kills everything that still runs, and shows the logs of a failed test.
func (k *Kafka) close() {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	for _, n := range k.all() {
		if n.process != nil {
			if err := n.process.stop(ctx, syscall.SIGKILL); err != nil {
				k.t.Errorf("kill node %d of %s: %v", n.id, k.options.Name, err)
			}
		}
		if n.output != nil {
			_ = n.output.Close()
		}
		if n.reservation != nil {
			n.reservation.release()
		}
		if k.t.Failed() {
			k.t.Logf("end of the log of node %d of %s:\n%s", n.id, k.options.Name, tail(n.logPath(), 4000))
		}
	}
}

// tail returns the last bytes of a file.
func tail(path string, most int) []byte {
	data, err := os.ReadFile(path)
	if err != nil {
		return []byte(err.Error())
	}
	return data[max(0, len(data)-most):]
}

// node returns a broker by its node id.
func (k *Kafka) node(id int) (*kafkaNode, error) {
	for _, n := range k.nodes {
		if n.id == id {
			return n, nil
		}
	}
	return nil, fmt.Errorf("%s has no node %d", k.options.Name, id)
}

// ClusterID returns the cluster's id.
func (k *Kafka) ClusterID() string { return k.id }

// Kill ends a broker with SIGKILL.
func (k *Kafka) Kill(node int) error { return k.end(node, syscall.SIGKILL) }

// Stop ends a broker with SIGTERM: it hands its partitions over and closes its
// logs.
func (k *Kafka) Stop(node int) error { return k.end(node, syscall.SIGTERM) }

func (k *Kafka) end(node int, s syscall.Signal) error {
	n, err := k.node(node)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(k.t.Context(), time.Minute)
	defer cancel()
	if err := n.process.stop(ctx, s); err != nil {
		return fmt.Errorf("end node %d of %s with %v: %w", node, k.options.Name, s, err)
	}
	return nil
}

// Pause stops a broker in its tracks (SIGSTOP): its connections stay open and
// answer nothing. Within broker.session.timeout.ms (3 s here, unless Config says
// otherwise) it stays in the ISR, so that the high watermark waits for it.
func (k *Kafka) Pause(node int) error { return k.poke(node, syscall.SIGSTOP) }

// Resume lets a paused broker go on (SIGCONT).
func (k *Kafka) Resume(node int) error { return k.poke(node, syscall.SIGCONT) }

func (k *Kafka) poke(node int, s syscall.Signal) error {
	n, err := k.node(node)
	if err != nil {
		return err
	}
	if err := n.process.signal(s); err != nil {
		return fmt.Errorf("send %v to node %d of %s: %w", s, node, k.options.Name, err)
	}
	return nil
}

// Restart starts a broker that has been ended, on its old address and data, and
// returns when it is back in the cluster's metadata.
func (k *Kafka) Restart(node int) error {
	n, err := k.node(node)
	if err != nil {
		return err
	}
	if n.process.running() {
		return fmt.Errorf("node %d of %s is running", node, k.options.Name)
	}
	if err := k.launch(n); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(k.t.Context(), kafkaStartTimeout)
	defer cancel()
	running := 0
	for _, other := range k.nodes {
		if other.process.running() {
			running++
		}
	}
	return k.waitBrokers(ctx, running)
}

// waitBrokers polls the cluster until as many brokers are in its metadata. A
// node that ends while it is waited for is an error at once.
func (k *Kafka) waitBrokers(ctx context.Context, brokers int) error {
	client, err := k.Client()
	if err != nil {
		return err
	}
	defer client.Close()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	return poll(ctx, 100*time.Millisecond, func() error {
		for _, n := range k.all() {
			if n.launching && !n.process.running() {
				err := fmt.Errorf("node %d of %s has ended", n.id, k.options.Name)
				cancel(err)
				return err
			}
		}
		asked, stop := context.WithTimeout(ctx, 2*time.Second)
		defer stop()
		// Not through kadm: it answers from the client's cache.
		request := kmsg.NewPtrMetadataRequest()
		request.Topics = []kmsg.MetadataRequestTopic{} // none
		metadata, err := request.RequestWith(asked, client)
		if err != nil {
			return err
		}
		if len(metadata.Brokers) < brokers {
			return fmt.Errorf("%d brokers of %d", len(metadata.Brokers), brokers)
		}
		for _, n := range k.all() {
			n.launching = false
		}
		return nil
	})
}

// Leader returns the node id of a partition's leader, waiting until there is
// one.
func (k *Kafka) Leader(ctx context.Context, topic string, partition int32) (int, error) {
	client, err := k.Client()
	if err != nil {
		return 0, err
	}
	defer client.Close()
	leader := -1
	err = poll(ctx, 50*time.Millisecond, func() error {
		leaders, err := partitionLeaders(ctx, client, topic)
		if err != nil {
			return err
		}
		if int(partition) >= len(leaders) || leaders[partition] < 0 {
			return errors.New("no leader")
		}
		leader = int(leaders[partition])
		return nil
	})
	if err != nil {
		return 0, fmt.Errorf("leader of %s:%d: %w", topic, partition, err)
	}
	return leader, nil
}

// WaitInSync returns when a partition has that many in-sync replicas.
func (k *Kafka) WaitInSync(ctx context.Context, topic string, partition int32, replicas int) error {
	return k.waitInSync(ctx, topic, partition, func(isr []int32) error {
		if len(isr) < replicas {
			return fmt.Errorf("%s:%d has fewer than %d in-sync replicas", topic, partition, replicas)
		}
		return nil
	})
}

// waitInSync returns when a partition's in-sync replicas, none of one that is not
// there, are as wanted.
func (k *Kafka) waitInSync(ctx context.Context, topic string, partition int32, wanted func(isr []int32) error) error {
	client, err := k.Client()
	if err != nil {
		return err
	}
	defer client.Close()
	return poll(ctx, 50*time.Millisecond, func() error {
		found, err := topicMetadata(ctx, client, topic)
		if err != nil {
			return err
		}
		var isr []int32
		for _, p := range found.Partitions {
			if p.Partition == partition {
				isr = p.ISR
			}
		}
		return wanted(isr)
	})
}

// HighWatermark asks one broker, and no other, for the high watermark of a
// partition that it leads.
func (k *Kafka) HighWatermark(ctx context.Context, node int, topic string, partition int32) (int64, error) {
	return k.latestOffset(ctx, node, -1, topic, partition)
}

// WaitLogEnd returns when the log of a partition ends at or behind an offset on
// one broker, whatever the high watermark is. It asks as replica -2
// (ListOffsetsRequest.DEBUGGING_REPLICA_ID), and asks no other broker, so others
// may be paused.
func (k *Kafka) WaitLogEnd(ctx context.Context, node int, topic string, partition int32, end int64) error {
	return poll(ctx, 50*time.Millisecond, func() error {
		got, err := k.latestOffset(ctx, node, -2, topic, partition)
		if err == nil && got < end {
			err = fmt.Errorf("log end of %s:%d on node %d is %d, not %d", topic, partition, node, got, end)
		}
		return err
	})
}

func (k *Kafka) latestOffset(ctx context.Context, node int, replica int32, topic string, partition int32) (int64, error) {
	if node < 1 || node > len(k.Addresses) {
		return 0, fmt.Errorf("%s has no node %d", k.options.Name, node)
	}
	client, err := k.Client(kgo.SeedBrokers(k.Addresses[node-1]))
	if err != nil {
		return 0, err
	}
	defer client.Close()
	request := kmsg.NewPtrListOffsetsRequest()
	request.ReplicaID = replica
	t := kmsg.NewListOffsetsRequestTopic()
	t.Topic = topic
	p := kmsg.NewListOffsetsRequestTopicPartition()
	p.Partition, p.Timestamp = partition, -1
	t.Partitions = append(t.Partitions, p)
	request.Topics = append(request.Topics, t)
	answer, err := client.SeedBrokers()[0].Request(ctx, request)
	if err != nil {
		return 0, err
	}
	response, ok := answer.(*kmsg.ListOffsetsResponse)
	if !ok || len(response.Topics) != 1 || len(response.Topics[0].Partitions) != 1 {
		return 0, fmt.Errorf("unexpected answer %T", answer)
	}
	found := response.Topics[0].Partitions[0]
	return found.Offset, kerr.ErrorForCode(found.ErrorCode)
}

func (n *kafkaNode) logPath() string { return filepath.Join(n.dir, "output.log") }
