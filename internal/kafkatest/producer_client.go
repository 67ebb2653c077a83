package kafkatest

import (
	"context"
	"fmt"
	"sync"

	"github.com/twmb/franz-go/pkg/kgo"
)

// An appender is what a load writes with: a Producer, or a clientProducer.
type appender interface {
	Append(ctx context.Context, records ...*kgo.Record) error
	Begin() error
	End(ctx context.Context, commit bool) error
	Close()
}

// A clientProducer appends through kgo's own producer: the records of a
// partition keep their order, but kgo decides when a batch is full or has waited
// long enough, differently from run to run.
type clientProducer struct {
	client *kgo.Client
}

func (b Bootstrap) clientProducer(codec Codec, txnID *string) (*clientProducer, error) {
	opts := []kgo.Opt{
		kgo.ProducerBatchCompression(codec.compression()),
		kgo.ManualFlushing(),
		kgo.MaxBufferedRecords(1 << 20),
	}
	if txnID != nil {
		opts = append(opts, kgo.TransactionalID(*txnID))
	}
	client, err := b.Client(opts...)
	if err != nil {
		return nil, err
	}
	return &clientProducer{client: client}, nil
}

func (p *clientProducer) Close() { p.client.Close() }

func (p *clientProducer) Append(ctx context.Context, records ...*kgo.Record) error {
	var (
		mu    sync.Mutex // guards first
		first error
	)
	for _, r := range records {
		p.client.Produce(ctx, r, func(r *kgo.Record, err error) {
			mu.Lock()
			defer mu.Unlock()
			if err != nil && first == nil {
				first = fmt.Errorf("append to %s:%d: %w", r.Topic, r.Partition, err)
			}
		})
	}
	if err := p.client.Flush(ctx); err != nil {
		return fmt.Errorf("append %d records: %w", len(records), err)
	}
	mu.Lock()
	defer mu.Unlock()
	return first
}

func (p *clientProducer) Begin() error {
	if err := p.client.BeginTransaction(); err != nil {
		return fmt.Errorf("begin transaction: %w", err)
	}
	return nil
}

func (p *clientProducer) End(ctx context.Context, commit bool) error {
	if err := p.client.EndTransaction(ctx, kgo.TransactionEndTry(commit)); err != nil {
		return fmt.Errorf("end transaction, commit %t: %w", commit, err)
	}
	return nil
}
