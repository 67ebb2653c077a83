//go:build kafka

package main

import (
	"context"
	"fmt"
	"slices"
	"time"

	"apograph/bench/figures"
	"apograph/bench/workload"
	"apograph/internal/kafkatest"
	"apograph/internal/recordbatch"
)

// What the large ledger is about: tiny records, in batches of the number that 64 KB of
// 100 bytes have.
const (
	manyPerBatch   = 600
	manyPartitions = 64 // so that filling them takes few requests
)

// startLarge measures how long a copier takes to its first record when its ledger
// has the books of as many million records as the row's size says: each repeat adds a
// topic to the flow.
func (r *runner) startLarge(ctx context.Context, row row) error {
	const many = "bench-many"
	records := int64(row.SizeMB) * 1_000_000
	row.SizeMB = 1
	if err := r.stand.source.CreateTopic(ctx, many, manyPartitions, kafkatest.LoadConfigs()); err != nil {
		return err
	}
	tiny, err := workload.Tiny(manyPerBatch, recordbatch.LZ4, time.Now().UnixMilli())
	if err != nil {
		return err
	}
	if err := fill(ctx, r.stand.source.Server(), many, manyPartitions, []workload.Batch{tiny}, records); err != nil {
		return err
	}
	books := r.job(row, many)
	chosen, err := candidatesNamed([]string{figures.Apograph})
	if err != nil {
		return err
	}
	first, err := measure(ctx, chosen[0], books, content{records: records, payload: records})
	if err != nil {
		return err
	}
	size, err := ledgerBytes(ctx, books)
	if err != nil {
		return err
	}
	r.stand.Logf("%s: the books of %d records, %d bytes, are there after %.0f s", row.Name, records, size, first.Whole.Seconds)
	return r.inTurn(ctx, row, row.Candidates, func(_ candidate, repeat int) (figures.Result, error) {
		topic := fmt.Sprintf("%s-%d", "bench-start", repeat)
		if _, err := r.fill(ctx, row, topic); err != nil {
			return figures.Result{}, err
		}
		source, err := contentOf(ctx, r.stand.source.Server(), topic)
		if err != nil {
			return figures.Result{}, err
		}
		return measure(ctx, startOn(books, topic), r.job(row, topic), total(source))
	})
}

// startOn is the product with the ledger of another job, to which it adds a topic.
func startOn(books job, topic string) candidate {
	return candidate{
		name:  figures.Apograph,
		topic: func(job) string { return topic },
		command: func(j job) ([]string, error) {
			args, err := apographCommand(j)
			args[slices.Index(args, "--topics")+1] = books.topic + "," + topic
			args[slices.Index(args, "--ledger")+1] = books.ledger()
			return args, err
		},
	}
}
