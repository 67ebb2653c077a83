//go:build kafka

package main

import (
	"context"
	"fmt"
	"maps"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"apograph/bench/workload"
	"apograph/internal/kafkatest"
)

// cleanTimeout bounds the waiting for the cleaner.
const cleanTimeout = 10 * time.Minute

// fillCompacted writes a topic with about as many records as keys, and has the
// cleaner of the broker clean it: about a third of the records go, out of the middle
// of batches.
func (r *runner) fillCompacted(ctx context.Context, row row, topic string) (float64, error) {
	// The segment that is written to is not cleaned, so it must be a small part.
	segment := min(max(row.SizeMB*1_000_000/row.Partitions/20, 1<<20), 16<<20)
	configs := kafkatest.LoadConfigs()
	maps.Copy(configs, map[string]string{"cleanup.policy": "compact", "segment.bytes": strconv.Itoa(segment), "min.cleanable.dirty.ratio": "1"})
	if err := r.stand.source.CreateTopic(ctx, topic, int32(row.Partitions), configs); err != nil {
		return 0, err
	}
	shape := row.Shape
	shape.Different = row.SizeMB * 1_000_000 / shape.BatchBytes // each batch once, or all but the last copies would go
	shape.Keys = row.SizeMB * 1_000_000 / shape.RecordBytes / row.Partitions
	batches, err := shape.Batches(seed, time.Now().Add(-time.Hour).UnixMilli())
	if err != nil {
		return 0, err
	}
	if err := fill(ctx, r.stand.source.Server(), topic, row.Partitions, batches, int64(row.SizeMB)*1e6); err != nil {
		return 0, err
	}
	if err := r.stand.source.SetTopicConfig(ctx, topic, "min.cleanable.dirty.ratio", "0.01"); err != nil {
		return 0, err
	}
	ctx, cancel := context.WithTimeout(ctx, cleanTimeout)
	defer cancel()
	return 0, r.stand.source.WaitCompacted(ctx, topic)
}

// transactionLanes is how many producers write transactions at once.
const transactionLanes = 32

// fillTransactions writes transactions of one record each.
func (r *runner) fillTransactions(ctx context.Context, row row, topic string) (float64, error) {
	if err := r.stand.source.CreateTopic(ctx, topic, int32(row.Partitions), kafkatest.LoadConfigs()); err != nil {
		return 0, err
	}
	n := row.SizeMB * 1_000_000 / row.Shape.RecordBytes / transactionLanes
	errs := make([]error, transactionLanes)
	var wait sync.WaitGroup
	for lane := range errs {
		wait.Go(func() {
			errs[lane] = transactions(ctx, r.stand.source.Server(), topic, lane, int32(lane%row.Partitions), row.Shape.Records(uint64(lane), n))
		})
	}
	wait.Wait()
	for _, err := range errs {
		if err != nil {
			return 0, fmt.Errorf("transactions: %w", err)
		}
	}
	return 0, nil
}

func transactions(ctx context.Context, servers, topic string, lane int, partition int32, records []workload.Record) error {
	client, err := kgo.NewClient(
		kgo.SeedBrokers(strings.Split(servers, ",")...),
		kgo.TransactionalID(fmt.Sprintf("bench-%d", lane)),
		kgo.RecordPartitioner(kgo.ManualPartitioner()),
		kgo.ProducerBatchCompression(kgo.NoCompression()),
		kgo.ProducerLinger(0),
	)
	if err != nil {
		return err
	}
	defer client.Close()
	for _, record := range records {
		if err := client.BeginTransaction(); err != nil {
			return err
		}
		if err := client.ProduceSync(ctx, &kgo.Record{Topic: topic, Partition: partition, Key: record.Key, Value: record.Value}).FirstErr(); err != nil {
			return err
		}
		if err := client.EndTransaction(ctx, kgo.TryCommit); err != nil {
			return err
		}
	}
	return nil
}
