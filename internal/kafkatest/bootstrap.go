package kafkatest

import (
	"context"
	"fmt"
	"net"
	"slices"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// Bootstrap says how to reach a cluster, fake or real. [Cluster] and [Kafka]
// embed it, so everything here works on both.
type Bootstrap struct {
	Addresses []string // host:port of every broker, in node order
	// Dial connects to a broker; nil is TCP. It is set for a cluster on a
	// kfake.VirtualNetwork.
	// It is a dialer of TLS for a fake cluster that has it.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
	// Login is what a client needs to log in.
	Login []kgo.Opt
}

// Server returns the addresses as bootstrap.servers takes them.
func (b Bootstrap) Server() string { return strings.Join(b.Addresses, ",") }

// DialOptions returns what any client needs besides the addresses: on a
// virtual network its dialer and a decompressor that survives a synctest
// bubble, with TLS the dialer, and the login, if there is one.
func (b Bootstrap) DialOptions() []kgo.Opt {
	if b.Dial == nil {
		return b.Login
	}
	return append([]kgo.Opt{kgo.Dialer(b.Dial), kgo.WithDecompressor(NewDecompressor())}, b.Login...)
}

// ClientOptions returns the options of the harness's own clients. Everything
// that decides about correctness is set, whatever kgo's default is today:
// acks=all, the partition is the one in the record, no compression,
// read_committed, and no offset reset behind our back. Metadata may be asked
// for every 10 ms, so that leader moves do not cost seconds.
func (b Bootstrap) ClientOptions() []kgo.Opt {
	return append([]kgo.Opt{
		kgo.SeedBrokers(b.Addresses...),
		kgo.ClientID("kafkatest"),
		kgo.RequiredAcks(kgo.AllISRAcks()),
		kgo.RecordPartitioner(kgo.ManualPartitioner()),
		kgo.ProducerBatchCompression(kgo.NoCompression()),
		kgo.FetchIsolationLevel(kgo.ReadCommitted()),
		kgo.ConsumeResetOffset(kgo.NoResetOffset()),
		kgo.DisableClientMetrics(),
		kgo.MetadataMinAge(10 * time.Millisecond),
	}, b.DialOptions()...)
}

// Client returns a client with ClientOptions and the extra ones, which win.
// The caller closes it.
func (b Bootstrap) Client(extra ...kgo.Opt) (*kgo.Client, error) {
	client, err := kgo.NewClient(append(b.ClientOptions(), extra...)...)
	if err != nil {
		return nil, fmt.Errorf("client of %s: %w", b.Server(), err)
	}
	return client, nil
}

// NewClient is Client for a test: it fails the test on an error and closes
// the client at its end.
func (b Bootstrap) NewClient(t TB, extra ...kgo.Opt) *kgo.Client {
	t.Helper()
	client, err := b.Client(extra...)
	if err != nil {
		t.Fatalf("%v", err)
	}
	t.Cleanup(client.Close)
	return client
}

// CreateTopic creates a topic through the protocol, with the cluster's default
// replication factor, and returns when all its partitions have a leader.
func (b Bootstrap) CreateTopic(ctx context.Context, topic string, partitions int32, configs map[string]string) error {
	client, err := b.Client()
	if err != nil {
		return err
	}
	defer client.Close()
	values := make(map[string]*string, len(configs))
	for name, value := range configs {
		values[name] = &value
	}
	if _, err := kadm.NewClient(client).CreateTopic(ctx, partitions, -1, values, topic); err != nil {
		return fmt.Errorf("create topic %s: %w", topic, err)
	}
	return waitLeaders(ctx, client, topic, int(partitions))
}

// waitLeaders polls the metadata until the topic has its partitions and every
// one has a leader: a real controller answers CreateTopics before the brokers
// know.
func waitLeaders(ctx context.Context, client *kgo.Client, topic string, partitions int) error {
	return poll(ctx, 20*time.Millisecond, func() error {
		leaders, err := partitionLeaders(ctx, client, topic)
		if err != nil {
			return err
		}
		if len(leaders) < partitions {
			return fmt.Errorf("topic %s has %d partitions of %d", topic, len(leaders), partitions)
		}
		if i := slices.Index(leaders, -1); i >= 0 {
			return fmt.Errorf("%s:%d has no leader", topic, i)
		}
		return nil
	})
}

// partitionLeaders asks the cluster, never a cache, for the leader of every
// partition of a topic, in partition order; -1 is none.
func partitionLeaders(ctx context.Context, client *kgo.Client, topic string) ([]int32, error) {
	found, err := topicMetadata(ctx, client, topic)
	if err != nil {
		return nil, err
	}
	leaders := make([]int32, len(found.Partitions))
	for i := range leaders {
		leaders[i] = -1
	}
	for _, p := range found.Partitions {
		if int(p.Partition) >= len(leaders) || p.Partition < 0 {
			return nil, fmt.Errorf("metadata of %s: partition %d of %d", topic, p.Partition, len(leaders))
		}
		if p.ErrorCode == 0 {
			leaders[p.Partition] = p.Leader
		}
	}
	return leaders, nil
}

func topicMetadata(ctx context.Context, client *kgo.Client, topic string) (kmsg.MetadataResponseTopic, error) {
	request := kmsg.NewPtrMetadataRequest()
	asked := kmsg.NewMetadataRequestTopic()
	asked.Topic = kmsg.StringPtr(topic)
	request.Topics = append(request.Topics, asked)
	response, err := request.RequestWith(ctx, client)
	if err != nil {
		return kmsg.MetadataResponseTopic{}, fmt.Errorf("metadata of %s: %w", topic, err)
	}
	if len(response.Topics) != 1 {
		return kmsg.MetadataResponseTopic{}, fmt.Errorf("metadata of %s: %d topics in the answer", topic, len(response.Topics))
	}
	found := response.Topics[0]
	if err := kerr.ErrorForCode(found.ErrorCode); err != nil {
		return kmsg.MetadataResponseTopic{}, fmt.Errorf("metadata of %s: %w", topic, err)
	}
	return found, nil
}

// poll calls done until it returns nil or ctx ends; the error then carries
// both why the context ended and what was still missing. It waits between
// calls on a timer, never by sleeping.
func poll(ctx context.Context, every time.Duration, done func() error) error {
	ticker := time.NewTicker(every)
	defer ticker.Stop()
	var missing error
	for {
		now := done()
		if now == nil {
			return nil
		}
		if missing == nil || ctx.Err() == nil { // what fails at the end fails because of it
			missing = now
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%w while waiting: %w", context.Cause(ctx), missing)
		case <-ticker.C:
		}
	}
}
