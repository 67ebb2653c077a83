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

// What the large ledger is about: many records without content, in batches of
// the number that 64 KB of 100 bytes have.
const (
	manyRecords  = 100_000_000
	manyPerBatch = 600
)

// startLarge measures how long a copier takes to its first record when its ledger
// has the books of 100 million: each repeat adds a topic to the flow.
func (r *runner) startLarge(ctx context.Context, row row) error {
	const many = "bench-many"
	if err := r.stand.source.CreateTopic(ctx, many, int32(row.Partitions), kafkatest.LoadConfigs()); err != nil {
		return err
	}
	blank, err := workload.Blank(manyPerBatch, recordbatch.LZ4, time.Now().UnixMilli())
	if err != nil {
		return err
	}
	if err := fill(ctx, r.stand.source.Server(), many, row.Partitions, []workload.Batch{blank}, manyRecords); err != nil {
		return err
	}
	books := r.job(row, many)
	chosen, err := candidatesNamed([]string{figures.Apograph})
	if err != nil {
		return err
	}
	first, err := measure(ctx, chosen[0], books, content{records: manyRecords, payload: manyRecords})
	if err != nil {
		return err
	}
	r.stand.Logf("%s: the books of %d records are there after %.0f s", row.Name, manyRecords, first.Whole.Seconds)
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
