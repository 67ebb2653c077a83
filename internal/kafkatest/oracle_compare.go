package kafkatest

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

const (
	// maxDifferences bounds what is reported of one partition.
	maxDifferences = 5
	// oracleTimeout bounds what an oracle that a test calls without a context of
	// its own waits for clusters.
	oracleTimeout = 2 * time.Minute
)

// A Difference is one way in which a copy is not what it should be.
type Difference struct {
	Topic        string // of the source
	TargetTopic  string
	Partition    int32
	SourceOffset int64 // -1 if no source record is concerned
	TargetOffset int64 // -1 if no target record is concerned
	Detail       string
}

func (d Difference) String() string {
	return fmt.Sprintf("%s:%d at %d -> %s:%d at %d: %s",
		d.Topic, d.Partition, d.SourceOffset, d.TargetTopic, d.Partition, d.TargetOffset, d.Detail)
}

// Compare fails the test unless the target holds, in each partition, exactly
// the committed records that the source has now: each once, in order, equal in
// timestamp, key, value and headers (null and empty differ), and nothing else, no
// markers either. topics maps source names to target names. The first
// differences of each partition are reported.
func Compare(t TB, source, target Bootstrap, topics map[string]string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), oracleTimeout)
	defer cancel()
	differences, err := Differences(ctx, source, target, topics)
	if err != nil {
		t.Fatalf("compare: %v", err)
	}
	for _, d := range differences {
		t.Errorf("compare: %v", d)
	}
}

// Same returns the map from each topic to itself, for Compare.
func Same(topics ...string) map[string]string {
	same := make(map[string]string, len(topics))
	for _, topic := range topics {
		same[topic] = topic
	}
	return same
}

// Differences is Compare without a test.
func Differences(ctx context.Context, source, target Bootstrap, topics map[string]string) ([]Difference, error) {
	var differences []Difference
	for _, topic := range slices.Sorted(maps.Keys(topics)) {
		want, err := source.ReadTopic(ctx, topic)
		if err != nil {
			return nil, fmt.Errorf("source: %w", err)
		}
		found, err := target.Compare(ctx, topic, topics[topic], want)
		if err != nil {
			return nil, fmt.Errorf("target: %w", err)
		}
		differences = append(differences, found...)
	}
	return differences, nil
}

// ReadTopic returns the committed records of every partition of a topic, in
// partition order. Keep it to compare with a source that loses records later.
func (b Bootstrap) ReadTopic(ctx context.Context, topic string) ([][]Record, error) {
	n, err := b.partitions(ctx, topic)
	if err != nil {
		return nil, err
	}
	all := make([][]Record, n)
	for p := range all {
		if all[p], err = b.ReadCommitted(ctx, topic, int32(p)); err != nil {
			return nil, err
		}
	}
	return all, nil
}

func (b Bootstrap) partitions(ctx context.Context, topic string) (int, error) {
	client, err := b.Client()
	if err != nil {
		return 0, err
	}
	defer client.Close()
	details, err := kadm.NewClient(client).ListTopics(ctx, topic)
	if err != nil {
		return 0, fmt.Errorf("partitions of %s: %w", topic, err)
	}
	if err := details[topic].Err; err != nil {
		return 0, fmt.Errorf("partitions of %s: %w", topic, err)
	}
	return len(details[topic].Partitions), nil
}

// Compare returns how the target topic in b differs from a copy of the records
// that the source topic had.
func (b Bootstrap) Compare(ctx context.Context, topic, targetTopic string, want [][]Record) ([]Difference, error) {
	n, err := b.partitions(ctx, targetTopic)
	if err != nil {
		return nil, err
	}
	client, err := b.Client()
	if err != nil {
		return nil, err
	}
	defer client.Close()
	var differences []Difference
	if n < len(want) {
		differences = append(differences, Difference{
			Topic: topic, TargetTopic: targetTopic, Partition: int32(n), SourceOffset: -1, TargetOffset: -1,
			Detail: fmt.Sprintf("the target has %d partitions, the source %d", n, len(want)),
		})
	}
	for p := range n {
		var records []Record
		if p < len(want) {
			records = want[p]
		}
		got, _, err := readLog(ctx, client, targetTopic, int32(p), kgo.ReadUncommitted())
		if err != nil {
			return nil, err
		}
		for _, d := range comparePartition(records, got) {
			d.Topic, d.TargetTopic, d.Partition = topic, targetTopic, int32(p)
			differences = append(differences, d)
		}
	}
	return differences, nil
}

// comparePartition walks both sides in order. Where they part it looks for the
// nearest place at which they agree again, so that one record too few or too
// many is reported as that, and not as a difference of everything behind it.
func comparePartition(want []Record, got []logRecord) []Difference {
	var differences []Difference
	report := func(sourceOffset, targetOffset int64, format string, args ...any) {
		differences = append(differences, Difference{SourceOffset: sourceOffset, TargetOffset: targetOffset, Detail: fmt.Sprintf(format, args...)})
	}
	i, j := 0, 0
	for (i < len(want) || j < len(got)) && len(differences) < maxDifferences {
		switch {
		case i < len(want) && j < len(got) && difference(&want[i], &got[j]) == "":
			i, j = i+1, j+1
		case j < len(got) && got[j].control:
			report(-1, got[j].Offset, "a marker on the target")
			j++
		default:
			skipWant, skipGot := realign(want[i:], got[j:])
			if skipWant > 0 && skipWant == skipGot {
				report(want[i].Offset, got[j].Offset, "%s", difference(&want[i], &got[j]))
				i, j = i+1, j+1
				continue
			}
			for ; skipWant > 0 && len(differences) < maxDifferences; skipWant-- {
				report(want[i].Offset, -1, "not on the target (%s)", brief(&want[i]))
				i++
			}
			for ; skipGot > 0 && len(differences) < maxDifferences; skipGot-- {
				report(-1, got[j].Offset, "on the target, but not the next source record (%s)", brief(&got[j].Record))
				j++
			}
		}
	}
	return differences
}

// realign returns how many records to pass over on each side until both agree,
// looking a bounded way ahead; (1, 1) if they do not.
func realign(want []Record, got []logRecord) (skipWant, skipGot int) {
	const ahead = 64
	if len(want) == 0 || len(got) == 0 {
		return len(want), len(got)
	}
	for sum := 1; sum < ahead; sum++ {
		for a := range sum + 1 {
			b := sum - a
			if a < len(want) && b < len(got) && difference(&want[a], &got[b]) == "" {
				return a, b
			}
		}
	}
	return 1, 1
}

// difference says how a target record differs from the source's; empty if it
// does not. Offsets are not compared.
func difference(want *Record, got *logRecord) string {
	switch {
	case got.control:
		return "a marker"
	case want.Timestamp != got.Timestamp:
		return fmt.Sprintf("timestamp %d, not %d", got.Timestamp, want.Timestamp)
	case !sameBytes(want.Key, got.Key):
		return fmt.Sprintf("key %s, not %s", quote(got.Key), quote(want.Key))
	case !sameBytes(want.Value, got.Value):
		return fmt.Sprintf("value %s, not %s", quote(got.Value), quote(want.Value))
	case len(want.Headers) != len(got.Headers):
		return fmt.Sprintf("%d headers, not %d", len(got.Headers), len(want.Headers))
	}
	for i, h := range want.Headers {
		if g := got.Headers[i]; g.Key != h.Key || !sameBytes(h.Value, g.Value) {
			return fmt.Sprintf("header %d is %q=%s, not %q=%s", i, g.Key, quote(g.Value), h.Key, quote(h.Value))
		}
	}
	return ""
}

func sameBytes(a, b []byte) bool { return (a == nil) == (b == nil) && bytes.Equal(a, b) }

func brief(r *Record) string {
	return fmt.Sprintf("time %d, key %s, value %s, %d headers", r.Timestamp, quote(r.Key), quote(r.Value), len(r.Headers))
}

// quote shows the beginning of a key or value.
func quote(b []byte) string {
	const most = 24
	switch {
	case b == nil:
		return "null"
	case len(b) > most:
		return fmt.Sprintf("%q... (%d bytes)", b[:most], len(b))
	default:
		return fmt.Sprintf("%q", b)
	}
}
