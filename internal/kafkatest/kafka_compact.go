//go:build kafka

package kafkatest

import (
	"context"
	"fmt"
	"math/rand/v2"
	"reflect"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

// CompactedConfigs returns the settings of a topic that the real cleaner cleans
// soon: the smallest segments that Kafka 4 takes (1 MiB; the active one is never
// cleaned), and any dirt is enough.
func CompactedConfigs() map[string]string {
	configs := LoadConfigs()
	configs["cleanup.policy"] = "compact"
	configs["segment.bytes"] = "1048576"
	configs["min.cleanable.dirty.ratio"] = "0.01"
	return configs
}

// FillCompacted appends records with few keys, a tenth of them tombstones, to
// every partition of a topic, until each has been given the bytes: about 3 MB
// are enough for the cleaner to find closed segments. Values do not compress.
func (k *Kafka) FillCompacted(ctx context.Context, topic string, bytes int) error {
	n, err := k.partitions(ctx, topic)
	if err != nil {
		return err
	}
	p, err := k.Producer(LZ4)
	if err != nil {
		return err
	}
	defer p.Close()
	w := loader{rng: rand.New(rand.NewPCG(uint64(n), uint64(bytes))), Load: Load{Keyed: true}}
	for partition := range int32(n) {
		for left := bytes; left > 0; {
			var records []*kgo.Record
			for range 50 {
				value := w.noise(500 + w.rng.IntN(1000))
				left -= len(value)
				if w.rng.IntN(10) == 0 {
					value = nil
				}
				records = append(records, &kgo.Record{
					Topic: topic, Partition: partition, Value: value,
					Key: fmt.Appendf(nil, "key-%d", w.rng.IntN(500)),
				})
			}
			if err := p.Append(ctx, records...); err != nil {
				return err
			}
		}
	}
	return nil
}

// WaitCompacted returns when the real cleaner has cleaned every partition of a
// topic (offsets are gone), and has then been told to stop, so that the log holds
// still: min.cleanable.dirty.ratio is 1 afterwards.
func (k *Kafka) WaitCompacted(ctx context.Context, topic string) error {
	n, err := k.partitions(ctx, topic)
	if err != nil {
		return err
	}
	for p := range int32(n) {
		if err := poll(ctx, 200*time.Millisecond, func() error { return k.sparse(ctx, topic, p) }); err != nil {
			return fmt.Errorf("compaction of %s:%d: %w", topic, p, err)
		}
	}
	if err := k.alterTopic(ctx, topic, "min.cleanable.dirty.ratio", "1"); err != nil {
		return err
	}
	return k.settle(ctx, topic, int32(n))
}

func (k *Kafka) sparse(ctx context.Context, topic string, partition int32) error {
	tiles, err := k.SourceTiles(ctx, topic, partition)
	if err != nil {
		return err
	}
	absent := int64(0)
	for _, tile := range tiles {
		if tile.Fate == Absent {
			absent += tile.End - tile.Start
		}
	}
	if absent < 100 {
		return fmt.Errorf("%d offsets are gone", absent)
	}
	return nil
}

// settle waits until two readings a second apart are the same: a cleaning that
// had begun may still end.
func (k *Kafka) settle(ctx context.Context, topic string, partitions int32) error {
	var before [][]SourceTile
	return poll(ctx, time.Second, func() error {
		var now [][]SourceTile
		for p := range partitions {
			tiles, err := k.SourceTiles(ctx, topic, p)
			if err != nil {
				return err
			}
			now = append(now, tiles)
		}
		same := reflect.DeepEqual(before, now)
		before = now
		if !same {
			return fmt.Errorf("%s still changes", topic)
		}
		return nil
	})
}

func (k *Kafka) alterTopic(ctx context.Context, topic, name, value string) error {
	client, err := k.Client()
	if err != nil {
		return err
	}
	defer client.Close()
	answers, err := kadm.NewClient(client).AlterTopicConfigs(ctx, []kadm.AlterConfig{{Op: kadm.SetConfig, Name: name, Value: &value}}, topic)
	if err != nil {
		return fmt.Errorf("set %s of %s: %w", name, topic, err)
	}
	for _, answer := range answers {
		if answer.Err != nil {
			return fmt.Errorf("set %s of %s: %w: %s", name, topic, answer.Err, answer.ErrMessage)
		}
	}
	return nil
}

// DeleteRecords moves a partition's log start to the offset.
func (k *Kafka) DeleteRecords(ctx context.Context, topic string, partition int32, offset int64) error {
	client, err := k.Client()
	if err != nil {
		return err
	}
	defer client.Close()
	offsets := kadm.Offsets{}
	offsets.AddOffset(topic, partition, offset, -1)
	answers, err := kadm.NewClient(client).DeleteRecords(ctx, offsets)
	if err != nil {
		return fmt.Errorf("delete records of %s:%d: %w", topic, partition, err)
	}
	if err := answers.Error(); err != nil {
		return fmt.Errorf("delete records of %s:%d: %w", topic, partition, err)
	}
	return nil
}
