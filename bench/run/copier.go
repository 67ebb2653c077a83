package main

import (
	"context"
	"flag"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

// copierCommand is what a careful programmer gets out of the client library: a
// consumer whose records are produced as they are, without a copy in between.
// Partitions, order, keys, values, headers and times are kept; nothing is
// remembered, nothing verified. Pools for the records and for what is decompressed
// (kgo.WithPools) were tried, and cost as much as they saved.
func copierCommand(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("copier", flag.ContinueOnError)
	source := flags.String("source", "", "bootstrap servers")
	target := flags.String("target", "", "bootstrap servers")
	topic := flags.String("topic", "", "to copy, under its own name")
	codec := flags.String("codec", "none", "of the batches that are written")
	ca := flags.String("ca", "", "file of the certificate that both clusters have; empty means no TLS")
	follow := flags.Bool("follow", false, "go on at the end of the topic, until interrupted")
	if err := flags.Parse(args); err != nil {
		return err
	}
	compression, err := compressionOf(*codec)
	if err != nil {
		return err
	}
	dial, err := dialOptions(*ca)
	if err != nil {
		return err
	}
	ends, err := readEnds(ctx, *source, *topic, dial...)
	if err != nil {
		return err
	}
	producer, err := copierProducer(*target, compression, dial...)
	if err != nil {
		return err
	}
	defer producer.Close()
	if err := makeTopic(ctx, producer, *topic, len(ends)); err != nil {
		return err
	}
	consumer, err := readerClient(*source, *topic, ends, dial...)
	if err != nil {
		return err
	}
	defer consumer.Close()
	if *follow {
		ends = nil
	}
	return copyRecords(ctx, consumer, producer, *topic, ends)
}

// compressionOf returns kgo's codec, at its default level, by Kafka's name.
func compressionOf(name string) (kgo.CompressionCodec, error) {
	switch name {
	case "none":
		return kgo.NoCompression(), nil
	case "gzip":
		return kgo.GzipCompression(), nil
	case "snappy":
		return kgo.SnappyCompression(), nil
	case "lz4":
		return kgo.Lz4Compression(), nil
	case "zstd":
		return kgo.ZstdCompression(), nil
	}
	return kgo.NoCompression(), fmt.Errorf("no codec %q", name)
}

// copierProducer is idempotent, kgo's default, which also decides how many
// requests are in flight: five for a broker. acks=all is its default too, and said
// all the same.
func copierProducer(servers string, compression kgo.CompressionCodec, dial ...kgo.Opt) (*kgo.Client, error) {
	return kgo.NewClient(append(dial,
		kgo.SeedBrokers(strings.Split(servers, ",")...),
		kgo.RecordPartitioner(kgo.ManualPartitioner()),
		kgo.ProducerBatchCompression(compression),
		kgo.RequiredAcks(kgo.AllISRAcks()),
		kgo.ProducerLinger(10*time.Millisecond),
		kgo.MaxBufferedRecords(1<<20),
		kgo.MaxBufferedBytes(64<<20),
		kgo.DisableClientMetrics(),
	)...)
}

// readerClient consumes all partitions of a topic from their first offset, read
// committed, in big fetches. It keeps control records: the end of a transactional
// topic is one.
func readerClient(servers, topic string, ends map[int32]int64, dial ...kgo.Opt) (*kgo.Client, error) {
	offsets := make(map[int32]kgo.Offset, len(ends))
	for partition := range ends {
		offsets[partition] = kgo.NewOffset().AtStart()
	}
	return kgo.NewClient(append(dial,
		kgo.SeedBrokers(strings.Split(servers, ",")...),
		kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{topic: offsets}),
		kgo.FetchIsolationLevel(kgo.ReadCommitted()),
		kgo.KeepControlRecords(),
		kgo.FetchMaxBytes(16<<20),
		kgo.FetchMaxPartitionBytes(4<<20),
		kgo.DisableClientMetrics(),
	)...)
}

// readEnds returns the last stable offset of each partition of a topic.
func readEnds(ctx context.Context, servers, topic string, dial ...kgo.Opt) (map[int32]int64, error) {
	client, err := kgo.NewClient(append(dial, kgo.SeedBrokers(strings.Split(servers, ",")...))...)
	if err != nil {
		return nil, err
	}
	defer client.Close()
	listed, err := kadm.NewClient(client).ListCommittedOffsets(ctx, topic)
	if err == nil {
		err = listed.Error()
	}
	if err != nil {
		return nil, fmt.Errorf("ends of %s: %w", topic, err)
	}
	ends := make(map[int32]int64)
	listed.Each(func(l kadm.ListedOffset) { ends[l.Partition] = l.Offset })
	if len(ends) == 0 {
		return nil, fmt.Errorf("no topic %s", topic)
	}
	return ends, nil
}

func makeTopic(ctx context.Context, client *kgo.Client, topic string, partitions int) error {
	if _, err := kadm.NewClient(client).CreateTopic(ctx, int32(partitions), -1, nil, topic); err != nil {
		return fmt.Errorf("create %s: %w", topic, err)
	}
	return nil
}

// copyRecords copies until each partition has reached its end; without ends until
// ctx ends.
func copyRecords(ctx context.Context, consumer, producer *kgo.Client, topic string, ends map[int32]int64) error {
	var failed atomic.Pointer[error]
	promise := func(_ *kgo.Record, err error) {
		if err != nil {
			failed.CompareAndSwap(nil, &err)
		}
	}
	left := newRemaining(ends)
	for left.any() || ends == nil {
		fetches := consumer.PollFetches(ctx)
		if ctx.Err() != nil {
			return nil // how following ends
		}
		if err := fetches.Err(); err != nil {
			return err
		}
		left.seen(fetches) // before they are produced, which changes their offsets
		fetches.EachRecord(func(r *kgo.Record) {
			if !r.Attrs.IsControl() {
				producer.Produce(ctx, r, promise)
			}
		})
		if err := failed.Load(); err != nil {
			return fmt.Errorf("produce to %s: %w", topic, *err)
		}
	}
	if err := producer.Flush(ctx); err != nil {
		return err
	}
	if err := failed.Load(); err != nil {
		return fmt.Errorf("produce to %s: %w", topic, *err)
	}
	return nil
}

// A remaining knows which partitions have not been read to their ends.
type remaining map[int32]int64

func newRemaining(ends map[int32]int64) remaining {
	left := make(remaining)
	for partition, end := range ends {
		if end > 0 {
			left[partition] = end
		}
	}
	return left
}

func (r remaining) any() bool { return len(r) > 0 }

// seen notes what has been fetched: one record is the last of each partition,
// since no cleaner removes the last.
func (r remaining) seen(fetches kgo.Fetches) {
	fetches.EachPartition(func(p kgo.FetchTopicPartition) {
		if n := len(p.Records); n > 0 && p.Records[n-1].Offset+1 >= r[p.Partition] {
			delete(r, p.Partition)
		}
	})
}
