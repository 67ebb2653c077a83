package main

import (
	"context"
	"encoding/binary"
	"flag"
	"fmt"
	"maps"
	"strings"
	"sync"

	"github.com/cespare/xxhash/v2"
	"github.com/twmb/franz-go/pkg/kgo"
)

// readerCommand reads a topic on each of several clusters at once and does nothing
// with the records: the pace that a verifier is held against.
func readerCommand(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("reader", flag.ContinueOnError)
	topic := flags.String("topic", "", "to read")
	if err := flags.Parse(args); err != nil {
		return err
	}
	errs := make([]error, flags.NArg())
	var wait sync.WaitGroup
	for i, servers := range flags.Args() {
		wait.Go(func() { errs[i] = readAll(ctx, servers, *topic, func(*kgo.Record) {}) })
	}
	wait.Wait()
	for i, err := range errs {
		if err != nil {
			return fmt.Errorf("read %s at %s: %w", *topic, flags.Arg(i), err)
		}
	}
	return nil
}

// readAll reads a topic from its start to the end that it has now, read committed.
func readAll(ctx context.Context, servers, topic string, each func(*kgo.Record)) error {
	ends, err := readEnds(ctx, servers, topic)
	if err != nil {
		return err
	}
	client, err := readerClient(servers, topic, ends)
	if err != nil {
		return err
	}
	defer client.Close()
	for left := newRemaining(ends); left.any(); {
		fetches := client.PollFetches(ctx)
		if err := fetches.Err(); err != nil {
			return err
		}
		fetches.EachRecord(func(r *kgo.Record) {
			if !r.Attrs.IsControl() {
				each(r)
			}
		})
		left.seen(fetches)
	}
	return nil
}

// A content is what is in one partition, whatever its offsets: the number of
// records, the bytes of their keys and values, and a hash of all of them in order.
type content struct {
	records, payload int64
	hash             uint64
}

// contentOf reads what a topic holds.
func contentOf(ctx context.Context, servers, topic string) (map[int32]content, error) {
	found := make(map[int32]content)
	err := readAll(ctx, servers, topic, func(r *kgo.Record) {
		c := found[r.Partition]
		c.add(r)
		found[r.Partition] = c
	})
	return found, err
}

func (c *content) add(r *kgo.Record) {
	c.records++
	c.payload += int64(len(r.Key) + len(r.Value))
	var h xxhash.Digest
	h.ResetWithSeed(c.hash) // what came before
	number := func(n int64) {
		var b [8]byte
		binary.BigEndian.PutUint64(b[:], uint64(n))
		_, _ = h.Write(b[:])
	}
	text := func(b []byte) {
		if b == nil {
			number(-1)
			return
		}
		number(int64(len(b)))
		_, _ = h.Write(b)
	}
	number(r.Timestamp.UnixMilli())
	text(r.Key)
	text(r.Value)
	for _, header := range r.Headers {
		text([]byte(header.Key))
		text(header.Value)
	}
	c.hash = h.Sum64()
}

// total adds up the contents of partitions.
func total(contents map[int32]content) content {
	var sum content
	for c := range maps.Values(contents) {
		sum.records += c.records
		sum.payload += c.payload
	}
	return sum
}

// differenceOf says where two topics differ; empty if they do not.
func differenceOf(source, target map[int32]content) string {
	var different []string
	for partition, s := range source {
		if t := target[partition]; t != s {
			different = append(different, fmt.Sprintf("partition %d has %d records of hash %x at the source, %d of %x at the target",
				partition, s.records, s.hash, t.records, t.hash))
		}
	}
	if len(target) > len(source) {
		different = append(different, fmt.Sprintf("%d partitions have records at the source, %d at the target", len(source), len(target)))
	}
	return strings.Join(different[:min(len(different), 5)], "; ")
}
