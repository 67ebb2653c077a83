package kafkatest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// producerBatchBytes is the largest sum of keys and values that goes into one
// batch; one record may be larger.
const producerBatchBytes = 900_000

// A Producer appends records in a known order and in known batches: the records
// of one call that go to one partition are one batch, or several if they do not
// fit into 900 KB. (kgo's own producer makes batches by timing; see
// [Load.ThroughClient].) It is idempotent: what fails in a way that may pass is
// sent again, under the same sequence number, until the context ends. One
// request is in flight at a time. It is not safe for concurrent use.
type Producer struct {
	client   *kgo.Client
	codec    Codec
	compress kgo.Compressor // nil: no compression
	txnID    *string        // nil: no transactions

	id        int64
	epoch     int16
	sequences map[partitionKey]int32
	topics    map[string]kmsg.MetadataResponseTopic
	open      bool // a transaction has been begun
	touched   bool // and something was appended to it
}

// Producer returns an idempotent producer. The caller closes it.
func (b Bootstrap) Producer(codec Codec) (*Producer, error) { return b.producer(codec, nil) }

// TransactionalProducer returns a producer with a transactional id, which ends
// whatever transaction an earlier one of that id has left open. Transactions time
// out after 5 minutes. It works as clients since Kafka 4.0 do (KIP-890): partitions
// are added by producing to them, and each end raises the epoch. The caller closes
// it; a transaction that is open then stays open.
func (b Bootstrap) TransactionalProducer(id string, codec Codec) (*Producer, error) {
	return b.producer(codec, &id)
}

func (b Bootstrap) producer(codec Codec, txnID *string) (*Producer, error) {
	compressor, err := kgo.DefaultCompressor(codec.compression())
	if err != nil {
		return nil, fmt.Errorf("producer: %w", err)
	}
	client, err := b.Client()
	if err != nil {
		return nil, err
	}
	return &Producer{
		client: client, codec: codec, compress: compressor, txnID: txnID, id: -1,
		sequences: make(map[partitionKey]int32), topics: make(map[string]kmsg.MetadataResponseTopic),
	}, nil
}

// Close ends the producer without ending its transaction.
func (p *Producer) Close() { p.client.Close() }

// Append appends records, each to the topic and partition that it names, and
// returns when all are acknowledged; partitions are written in the order in which
// they first appear. Offsets are filled in. A zero timestamp is now. In a
// transactional producer a transaction must be open.
func (p *Producer) Append(ctx context.Context, records ...*kgo.Record) error {
	if p.txnID != nil && !p.open {
		return errors.New("append: no transaction is open")
	}
	if err := p.init(ctx); err != nil {
		return err
	}
	for _, batch := range splitRecords(records) {
		if err := p.append(ctx, batch); err != nil {
			return fmt.Errorf("append to %s:%d: %w", batch[0].Topic, batch[0].Partition, err)
		}
	}
	return nil
}

// splitRecords groups records into batches.
func splitRecords(records []*kgo.Record) [][]*kgo.Record {
	var batches [][]*kgo.Record
	latest := make(map[partitionKey]int) // index of the batch that can still grow
	size := make(map[partitionKey]int)
	for _, r := range records {
		to, n := partitionKey{r.Topic, r.Partition}, len(r.Key)+len(r.Value)
		i, ok := latest[to]
		if !ok || size[to]+n > producerBatchBytes {
			i, latest[to], size[to] = len(batches), len(batches), 0
			batches = append(batches, nil)
		}
		batches[i] = append(batches[i], r)
		size[to] += n
	}
	return batches
}

// init fetches the producer id, once.
func (p *Producer) init(ctx context.Context) error {
	if p.id >= 0 {
		return nil
	}
	request := kmsg.NewPtrInitProducerIDRequest()
	request.TransactionalID, request.TransactionTimeoutMillis = p.txnID, 300_000
	request.ProducerID, request.ProducerEpoch = -1, -1
	return p.again(ctx, "init producer id", func() error {
		response, err := request.RequestWith(ctx, p.client)
		if err != nil {
			return err
		}
		p.id, p.epoch = response.ProducerID, response.ProducerEpoch
		return kerr.ErrorForCode(response.ErrorCode)
	})
}

func (p *Producer) append(ctx context.Context, records []*kgo.Record) error {
	to := partitionKey{records[0].Topic, records[0].Partition}
	raw, err := p.encode(to, records)
	if err != nil {
		return err
	}
	return p.again(ctx, "produce", func() error {
		base, err := p.send(ctx, to, raw)
		if err != nil {
			delete(p.topics, to.topic)
			return err
		}
		for i, r := range records {
			r.Offset = base + int64(i)
		}
		p.touched = true
		p.sequences[to] += int32(len(records)) // tests do not come near 2^31
		return nil
	})
}

func (p *Producer) encode(to partitionKey, records []*kgo.Record) ([]byte, error) {
	content := make([]BatchRecord, len(records))
	for i, r := range records {
		if r.Timestamp.IsZero() {
			r.Timestamp = time.Now()
		}
		content[i] = BatchRecord{Timestamp: r.Timestamp.UnixMilli(), Key: r.Key, Value: r.Value}
		for _, h := range r.Headers {
			content[i].Headers = append(content[i].Headers, Header{Key: h.Key, Value: h.Value})
		}
	}
	b := NewBatch(0, content...)
	b.LeaderEpoch, b.Codec = -1, p.codec
	b.ProducerID, b.ProducerEpoch, b.BaseSequence = p.id, p.epoch, p.sequences[to]
	if p.txnID != nil {
		b.Attributes = AttrTransactional
	}
	return b.encode(p.compress)
}

func (p *Producer) send(ctx context.Context, to partitionKey, raw []byte) (int64, error) {
	topic, ok := p.topics[to.topic]
	if !ok {
		var err error
		if topic, err = topicMetadata(ctx, p.client, to.topic); err != nil {
			return -1, err
		}
		p.topics[to.topic] = topic
	}
	i := slices.IndexFunc(topic.Partitions, func(found kmsg.MetadataResponseTopicPartition) bool { return found.Partition == to.partition })
	if i < 0 || topic.Partitions[i].Leader < 0 {
		return -1, kerr.LeaderNotAvailable
	}
	answer, err := produceBatch(ctx, p.client.Broker(int(topic.Partitions[i].Leader)), topic, to.partition, p.txnID, raw)
	return answer.BaseOffset, err
}

// again repeats a step while it fails in a way that may pass.
func (p *Producer) again(ctx context.Context, what string, step func() error) error {
	var final error
	err := poll(ctx, 20*time.Millisecond, func() error {
		final = step()
		if mayPass(final) {
			return final
		}
		return nil
	})
	if final != nil && err == nil {
		err = final
	}
	if err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	return nil
}

// mayPass reports whether an error is worth another attempt: connections break,
// leaders move, and a coordinator is still busy with the transaction before.
func mayPass(err error) bool {
	var code *kerr.Error
	switch {
	case err == nil || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) || errors.Is(err, kgo.ErrClientClosed):
		return false
	case errors.As(err, &code):
		return code.Retriable || code == kerr.ConcurrentTransactions
	default:
		return true
	}
}

// Begin begins a transaction.
func (p *Producer) Begin() error {
	if p.txnID == nil || p.open {
		return errors.New("begin transaction: not transactional, or one is open")
	}
	p.open, p.touched = true, false
	return nil
}

// End commits or aborts the open transaction: a marker is appended to every
// partition that it has touched. It returns when the coordinator has decided; a
// real broker may write the markers a little later.
func (p *Producer) End(ctx context.Context, commit bool) error {
	if !p.open {
		return errors.New("end transaction: none is open")
	}
	p.open = false
	if !p.touched {
		return nil
	}
	request := kmsg.NewPtrEndTxnRequest()
	request.TransactionalID, request.ProducerID, request.ProducerEpoch, request.Commit = *p.txnID, p.id, p.epoch, commit
	return p.again(ctx, fmt.Sprintf("end transaction, commit %t", commit), func() error {
		response, err := request.RequestWith(ctx, p.client)
		if err != nil {
			return err
		}
		if err := kerr.ErrorForCode(response.ErrorCode); err != nil {
			return err
		}
		if response.ProducerID >= 0 { // v5: a new epoch, whose sequences begin at 0
			p.id, p.epoch = response.ProducerID, response.ProducerEpoch
			clear(p.sequences)
		}
		return nil
	})
}
