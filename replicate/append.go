package replicate

import (
	"context"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"apograph/internal/canon"
	"apograph/internal/connect"
	"apograph/ledger"
)

const (
	appendSamples = 50   // of the target, at its start and at its end
	appendSearch  = 1000 // records of the source looked at for each sample
)

// refuseAppend refuses to append to a topic whose records are copies of the
// source's: they would be there twice. It looks at the first and last records
// of each target partition that has no book, and searches them on the source by
// time. What stands where there is a book is known.
func (f *Flow) refuseAppend(t *topic, books map[topicPartition]ledger.Pair) error {
	for i := range min(len(t.source.leaders), len(t.destination.leaders)) {
		if _, ok := books[topicPartition{t.name, int32(i)}]; ok {
			continue
		}
		tp := topicPartition{t.target, int32(i)}
		equal, err := f.holdsCopies(tp, topicPartition{t.name, int32(i)})
		if err != nil {
			return fmt.Errorf("compare %v with the source before appending: %w", tp, err)
		}
		if equal != "" {
			return &RefusedError{fmt.Errorf("--append %s: the target holds a copy of the source's records already: %s", t.name, equal)}
		}
	}
	return nil
}

// holdsCopies describes one record that stands on both sides, if one is found.
func (f *Flow) holdsCopies(target, source topicPartition) (string, error) {
	samples, err := f.samples(target)
	if err != nil || len(samples) == 0 {
		return "", err
	}
	wanted := map[uint64]*kgo.Record{}
	for _, r := range samples {
		wanted[hashWithoutTime(r)] = r
	}
	start, end, err := f.sourceRange(source)
	if err != nil {
		return "", err
	}
	for _, from := range []int64{start, f.offsetAt(source, samples[0]), f.offsetAt(source, samples[len(samples)-1])} {
		records, err := readSome(f.ctx, f.config.Source, source, max(from-1, start), end, appendSearch)
		if err != nil {
			return "", err
		}
		for _, r := range records {
			if on, ok := wanted[hashWithoutTime(r)]; ok {
				return fmt.Sprintf("source %v offset %d equals target offset %d", source, r.Offset, on.Offset), nil
			}
		}
	}
	return "", nil
}

// offsetAt returns the source offset of the first record with the time of r.
func (f *Flow) offsetAt(source topicPartition, r *kgo.Record) int64 {
	ctx, cancel := context.WithTimeout(f.ctx, 30*time.Second)
	defer cancel()
	offset, err := f.source.listOffset(ctx, source, offsetQuery{replica: -1, timestamp: r.Timestamp.UnixMilli()})
	if err != nil {
		return 0
	}
	return max(offset, 0)
}

// samples returns the first and the last records of a target partition.
func (f *Flow) samples(tp topicPartition) ([]*kgo.Record, error) {
	ctx, cancel := context.WithTimeout(f.ctx, 30*time.Second)
	defer cancel()
	start, err := f.target.listOffset(ctx, tp, offsetQuery{replica: -1, timestamp: earliestOffset})
	if err != nil {
		return nil, err
	}
	end, err := f.target.listOffset(ctx, tp, offsetQuery{replica: -1, timestamp: latestOffset})
	if err != nil {
		return nil, err
	}
	first, err := readSome(ctx, f.config.Target, tp, start, end, appendSamples)
	if err != nil || end-start <= appendSamples {
		return first, err
	}
	last, err := readSome(ctx, f.config.Target, tp, max(start, end-appendSamples), end, appendSamples)
	return append(first, last...), err
}

// readSome reads up to n committed records of a partition from an offset on, as long
// as they lie below end. What it does not get within some seconds is left out: an open
// transaction, or holes at the end.
func readSome(ctx context.Context, c connect.Cluster, tp topicPartition, from, end int64, n int) (records []*kgo.Record, err error) {
	if from >= end {
		return nil, nil
	}
	client, err := c.Client(
		kgo.FetchIsolationLevel(kgo.ReadCommitted()),
		kgo.KeepControlRecords(), // so that the end is seen even if it holds no data
		kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{tp.topic: {tp.partition: kgo.NewOffset().At(from)}}),
	)
	if err != nil {
		return nil, err
	}
	defer client.Close()
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	for next := from; next < end && len(records) < n; {
		fetches := client.PollFetches(ctx)
		if ctx.Err() != nil {
			return records, nil
		}
		if err := fetches.Err(); err != nil {
			return nil, err
		}
		fetches.EachRecord(func(r *kgo.Record) {
			next = r.Offset + 1
			if len(records) < n && !r.Attrs.IsControl() {
				records = append(records, r)
			}
		})
	}
	return records, nil
}

// hashWithoutTime hashes a record's key, value and headers: a copy may carry
// the time of its arrival.
func hashWithoutTime(r *kgo.Record) uint64 {
	c := canon.AppendRecord(nil, 0, r.Key, r.Value, len(r.Headers))
	for _, h := range r.Headers {
		c = canon.AppendHeader(c, []byte(h.Key), h.Value)
	}
	return canon.Sum(c)
}
