//go:build kafka

package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"

	"apograph/internal/kafkatest"
)

// A uniqueLoad fills a partition with records no two of which are the same, so
// that each is known again wherever it turns up: in batches of any size, in
// transactions of which some are aborted, with keys of which some come again.
type uniqueLoad struct {
	seed      uint64
	topic     string
	partition int32
	name      string // in the values, so that later loads are others
	records   int    // at least; aborted ones count
	batch     int    // records of the largest batch
	padding   int    // bytes of each value, about
	plain     bool   // no transactions
}

func (l uniqueLoad) run(ctx context.Context, on *kafkatest.Kafka) error {
	plain, err := on.Producer(kafkatest.None)
	if err != nil {
		return err
	}
	defer plain.Close()
	transactional, err := on.TransactionalProducer(l.topic+l.name, kafkatest.LZ4)
	if err != nil {
		return err
	}
	defer transactional.Close()
	rng := rand.New(rand.NewPCG(l.seed, 8))
	for made := 0; made < l.records; {
		n := 1 + rng.IntN(l.batch)
		dice := rng.IntN(10)
		if l.plain || dice < 5 {
			err = plain.Append(ctx, l.make(rng, made, n)...)
		} else {
			err = l.transaction(ctx, transactional, l.make(rng, made, n), dice < 8)
		}
		if err != nil {
			return fmt.Errorf("load %s: %w", l.topic, err)
		}
		made += n
	}
	return nil
}

func (l uniqueLoad) transaction(ctx context.Context, p *kafkatest.Producer, records []*kgo.Record, commit bool) error {
	if err := p.Begin(); err != nil {
		return err
	}
	if err := p.Append(ctx, records...); err != nil {
		return err
	}
	return p.End(ctx, commit)
}

// make returns records. One key in four is one of a few.
func (l uniqueLoad) make(rng *rand.Rand, from, n int) []*kgo.Record {
	records := make([]*kgo.Record, n)
	for i := range records {
		key := fmt.Sprintf("%s-%d", l.name, from+i)
		if rng.IntN(4) == 0 {
			key = fmt.Sprintf("again-%d", rng.IntN(200))
		}
		value := fmt.Sprintf("%s %s:%d %d ", l.name, l.topic, l.partition, from+i)
		records[i] = &kgo.Record{
			Topic: l.topic, Partition: l.partition, Key: []byte(key),
			Value: []byte(value + strings.Repeat("x", max(0, l.padding-len(value)))),
		}
	}
	return records
}

// A copyOracle says of one partition, by the unique values of its records alone,
// where a group goes on at the target.
type copyOracle struct {
	source []kafkatest.Record // committed ones, of the source
	target []kafkatest.Record // all of the target
	from   []int64            // source offset of each target record; -1 if it is no committed record of the source
	at     map[string]int64   // target offset of each value where it stands first
	end    int64              // behind the last record of the target
}

// newCopyOracle reads both sides.
func newCopyOracle(ctx context.Context, t *testing.T, source *kafkatest.Kafka, topic string, target *kafkatest.Kafka, targetTopic string, partition int32) *copyOracle {
	t.Helper()
	o := &copyOracle{at: map[string]int64{}}
	var err error
	if o.source, err = source.ReadCommitted(ctx, topic, partition); err != nil {
		t.Fatal(err)
	}
	if o.target, err = target.ReadUncommitted(ctx, targetTopic, partition); err != nil {
		t.Fatal(err)
	}
	offsets := make(map[string]int64, len(o.source))
	for _, r := range o.source {
		if _, twice := offsets[string(r.Value)]; twice {
			t.Fatalf("the source holds %q twice", r.Value)
		}
		offsets[string(r.Value)] = r.Offset
	}
	for _, r := range o.target {
		from, known := offsets[string(r.Value)]
		if !known {
			from = -1
		} else if _, again := o.at[string(r.Value)]; !again {
			o.at[string(r.Value)] = r.Offset
		}
		o.from = append(o.from, from)
		o.end = r.Offset + 1
	}
	return o
}

// complete reports whether the target has all that the source has.
func (o *copyOracle) complete() bool {
	for _, r := range o.source {
		if _, copied := o.at[string(r.Value)]; !copied {
			return false
		}
	}
	return true
}

// exact returns the offset of the first record at the target that a group has not
// read which has committed an offset on the source.
func (o *copyOracle) exact(committed int64) int64 {
	first := o.end
	for _, r := range o.unread(committed) {
		if at, copied := o.at[string(r.Value)]; copied {
			first = min(first, at)
		}
	}
	return first
}

// unread returns the source's records that a group has not read.
func (o *copyOracle) unread(committed int64) []kafkatest.Record {
	i, _ := slices.BinarySearchFunc(o.source, committed, func(r kafkatest.Record, offset int64) int {
		return int(r.Offset - offset)
	})
	return o.source[i:]
}

// outcome returns how many records a group reads again that goes on at an offset
// of the target, each time that they stand there, and how many it never reads.
func (o *copyOracle) outcome(committed, start int64) (again, missed int) {
	read := make(map[int64]bool, len(o.target))
	for i, r := range o.target {
		if r.Offset < start || o.from[i] < 0 {
			continue
		}
		if o.from[i] < committed {
			again++
		}
		read[o.from[i]] = true
	}
	for _, r := range o.unread(committed) {
		if !read[r.Offset] {
			missed++
		}
	}
	return again, missed
}
