package mirror

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"apograph/internal/connect"
)

const (
	publishTimeout = 30 * time.Second
	publishChunk   = 1000 // records under way at a time
)

// A publisher writes records to partition 0 of an internal topic, in order. It
// belongs to one duty.
type publisher struct {
	topic  internalTopic
	client *kgo.Client // nil: to be made
}

// newPublisher returns a publisher, which the mirror closes.
func (m *Mirror) newPublisher(cluster connect.Cluster, topic string, replication int, logger *slog.Logger) *publisher {
	p := &publisher{topic: internalTopic{cluster: cluster, name: topic, replication: replication, logger: logger}}
	m.close = append(m.close, p.reset)
	return p
}

// ready makes client and topic, unless they are there.
func (p *publisher) ready(ctx context.Context) (err error) {
	if p.client == nil {
		if p.client, err = p.topic.cluster.Client(
			kgo.RequiredAcks(kgo.AllISRAcks()),
			kgo.RecordPartitioner(kgo.ManualPartitioner()),
			kgo.ProducerBatchCompression(kgo.NoCompression()),
			kgo.ProducerLinger(0),
			kgo.MaxBufferedRecords(publishChunk),
			kgo.UnknownTopicRetries(2),
			kgo.MetadataMinAge(250*time.Millisecond),
			kgo.DisableClientMetrics(),
		); err != nil {
			return err
		}
	}
	ctx, cancel := context.WithTimeout(ctx, publishTimeout)
	defer cancel()
	return p.topic.ensure(ctx, p.client)
}

// publish writes records, of which only key, value and time count. After an error
// it is not known which of them are in the topic: a prefix, or all.
func (p *publisher) publish(ctx context.Context, records []*kgo.Record) error {
	if err := p.ready(ctx); err != nil {
		return err
	}
	for len(records) > 0 {
		n := min(len(records), publishChunk)
		if err := p.chunk(ctx, records[:n]); err != nil {
			p.reset()
			return fmt.Errorf("write to %s on %s: %w%s", p.topic.name, p.topic.cluster.Alias, err, p.topic.lacking(err))
		}
		records = records[n:]
	}
	return nil
}

// chunk writes records. When the time is up it does not wait for what is under
// way, which an idempotent producer would not give up: closing the client does.
func (p *publisher) chunk(ctx context.Context, records []*kgo.Record) error {
	ctx, cancel := context.WithTimeoutCause(ctx, publishTimeout, fmt.Errorf("no answer within %v", publishTimeout))
	defer cancel()
	var mu sync.Mutex // guards failed
	var failed error
	var left sync.WaitGroup
	left.Add(len(records))
	for _, r := range records {
		r.Topic, r.Partition = p.topic.name, 0
		p.client.Produce(ctx, r, func(_ *kgo.Record, err error) {
			mu.Lock()
			defer mu.Unlock()
			if failed == nil {
				failed = err
			}
			left.Done()
		})
	}
	done := make(chan struct{})
	go func() { left.Wait(); close(done) }()
	select {
	case <-done:
	case <-ctx.Done():
		p.client.Close()
		<-done
		return context.Cause(ctx)
	}
	return failed
}

// reset gives the client up, and has the topic looked for again.
func (p *publisher) reset() {
	if p.client != nil {
		p.client.Close()
		p.client = nil
	}
	p.topic.made = false
}
