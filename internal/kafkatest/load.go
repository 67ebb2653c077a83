package kafkatest

import (
	"context"
	"fmt"
	"math/rand/v2"
)

// A Load fills topics with everything that a copier has to get right, from a
// seed: all codecs; null, empty and large keys and values; headers with null and
// empty values, empty and repeated names; times out of order, before 1970 and
// far ahead; idempotent and transactional producers, interleaved; transactions
// of one record and of many, committed and aborted, over several partitions.
// The same Load on an empty cluster appends the same records in the same
// batches, unless ThroughClient (kfake and brokers choose the producer ids).
//
// It says nothing about what it wrote: an oracle has to find that out from the
// cluster.
type Load struct {
	Seed       uint64
	Topics     []string // created if they do not exist
	Partitions int32    // of topics that are created; 0 means 1
	Records    int      // data records of each topic, about; aborted ones count
	Configs    map[string]string

	// MaxValueBytes is the size of the largest values, which are rare. 0 means
	// 100 KB.
	MaxValueBytes int
	// Keyed gives every record a key, out of a few, as compacted topics need.
	Keyed bool
	// NoTransactions leaves transactions out.
	NoTransactions bool
	// ThroughClient appends with kgo's own producer, as applications do: the same
	// records in the same order within each partition, but batches that differ
	// from run to run.
	ThroughClient bool
}

// loadTime is the time of the first record: a fixed one, so that a load is the
// same on every day.
const loadTime = 1_700_000_000_000

// LoadConfigs returns the settings that topics for a load need on a real broker:
// no retention by time, since records carry old times, and open timestamp
// limits (Kafka 4 refuses times more than an hour ahead). kfake ignores the
// limits.
func LoadConfigs() map[string]string {
	return map[string]string{
		"retention.ms":                    "-1",
		"message.timestamp.before.max.ms": "9223372036854775807",
		"message.timestamp.after.max.ms":  "9223372036854775807",
	}
}

// Run creates the missing topics (with LoadConfigs and then Configs) and fills
// them.
func (l Load) Run(ctx context.Context, b Bootstrap) error {
	if err := l.createTopics(ctx, b); err != nil {
		return fmt.Errorf("load %d: %w", l.Seed, err)
	}
	w := &loader{
		Load: l, bootstrap: b,
		rng:   rand.New(rand.NewPCG(l.Seed, 0)),
		plain: make(map[Codec]appender),
	}
	defer w.close()
	if err := w.run(ctx); err != nil {
		return fmt.Errorf("load %d: %w", l.Seed, err)
	}
	return nil
}

func (l Load) createTopics(ctx context.Context, b Bootstrap) error {
	client, err := b.Client()
	if err != nil {
		return err
	}
	defer client.Close()
	configs := LoadConfigs()
	for name, value := range l.Configs {
		configs[name] = value
	}
	for _, topic := range l.Topics {
		if _, err := topicMetadata(ctx, client, topic); err == nil {
			continue
		}
		if err := b.CreateTopic(ctx, topic, max(l.Partitions, 1), configs); err != nil {
			return err
		}
	}
	return nil
}
