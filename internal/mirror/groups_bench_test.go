//go:build unix

package mirror_test

import (
	"fmt"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"apograph/internal/kafkatest"
	"apograph/internal/mirror"
	"apograph/internal/mm2"
	"apograph/ledger"
)

const (
	manyGroups     = 4000
	manyPartitions = 10
)

// BenchmarkGroups is one pass over 4,000 groups with ten partitions each: all are
// read, translated and written (first), or have not changed (again). The fake
// cluster is in the same process, so that its work is in the figures.
func BenchmarkGroups(b *testing.B) {
	for _, first := range []bool{true, false} {
		name := map[bool]string{true: "first", false: "again"}[first]
		b.Run("checkpoints/"+name, func(b *testing.B) { benchmarkGroups(b, first, false) })
		b.Run("sync/"+name, func(b *testing.B) { benchmarkGroups(b, first, true) })
	}
}

func benchmarkGroups(b *testing.B, first, sync bool) {
	w := newManyGroups(b)
	var used time.Duration
	for b.Loop() {
		b.StopTimer()
		m := w.mirror(b, sync)
		if !first {
			once(b, m)
		}
		b.StartTimer()
		before := cpu(b)
		once(b, m)
		used += cpu(b) - before
		b.StopTimer()
		m.Close()
		if first {
			w.clean(b)
		}
		b.StartTimer()
	}
	b.ReportMetric(used.Seconds()/float64(b.N), "cpu-s/op")
}

func once(b *testing.B, m *mirror.Mirror) {
	b.Helper()
	if errs := m.Once(b.Context()); len(errs) > 0 {
		b.Fatal(errs)
	}
	if rows := m.Groups().Rows; len(rows) != manyGroups*manyPartitions {
		b.Fatalf("%d rows", len(rows))
	}
}

// cpu returns the time that the process has used.
func cpu(b *testing.B) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

type benchWorld struct {
	pair *kafkatest.Pair
	book *ledger.Ledger
}

// newManyGroups makes the groups, and books of a thousand transactions a partition.
func newManyGroups(b *testing.B) *benchWorld {
	b.Helper()
	w := &benchWorld{pair: kafkatest.NewPair(b, kafkatest.Options{})}
	path := filepath.Join(b.TempDir(), "flow.ledger")
	kafkatest.CheckLedgerAtEnd(b, path)
	var err error
	if w.book, err = ledger.Create(path, ledger.Identity{SourceAlias: "a", TargetAlias: "b"}, ledger.Options{}); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = w.book.Close() })
	for _, c := range []*kafkatest.Cluster{w.pair.Source, w.pair.Target} {
		if err := c.CreateTopic(b.Context(), "orders", manyPartitions, nil); err != nil {
			b.Fatal(err)
		}
	}
	for p := range int32(manyPartitions) {
		ids, err := w.book.OpenPairs([]ledger.Pair{{SourceTopic: "orders", TargetTopic: "orders", Partition: p, Producer: ledger.Producer{ID: 4000}}})
		if err != nil {
			b.Fatal(err)
		}
		records := make([]*kgo.Record, 3000) // the source has markers among them
		for i := range records {
			records[i] = &kgo.Record{Topic: "orders", Partition: p}
		}
		if err := w.pair.Target.Append(b.Context(), kafkatest.None, records[:2000]...); err != nil {
			b.Fatal(err)
		}
		if err := w.pair.Source.Append(b.Context(), kafkatest.None, records...); err != nil {
			b.Fatal(err)
		}
		for range 1000 {
			end := w.book.End(ids[0])
			err := w.book.Append(ids[0],
				ledger.Entry{Tile: ledger.Copied, Source: ledger.Range{Start: end.Source, End: end.Source + 2}, Target: ledger.Range{Start: end.Target, End: end.Target + 2}, Bytes: 1 << 20},
				ledger.Entry{Tile: ledger.CommitMarker, Source: ledger.Range{Start: end.Source + 2, End: end.Source + 3}, Target: ledger.Range{Start: end.Target + 2, End: end.Target + 2}})
			if err != nil {
				b.Fatal(err)
			}
		}
	}
	if err := w.book.Commit(); err != nil {
		b.Fatal(err)
	}
	w.commitAll(b)
	return w
}

func groupName(i int) string { return fmt.Sprintf("group-%04d", i) }

func (w *benchWorld) commitAll(b *testing.B) {
	b.Helper()
	client := w.pair.Source.NewClient(b)
	for i := range manyGroups {
		request := kmsg.NewPtrOffsetCommitRequest()
		request.Group, request.Generation = groupName(i), -1
		topic := kmsg.NewOffsetCommitRequestTopic()
		topic.Topic, topic.TopicID = "orders", w.pair.Source.Fake().TopicInfo("orders").TopicID
		for p := range int32(manyPartitions) {
			at := kmsg.NewOffsetCommitRequestTopicPartition()
			at.Partition, at.Offset = p, int64(i*7+int(p))%3000
			topic.Partitions = append(topic.Partitions, at)
		}
		request.Topics = append(request.Topics, topic)
		if _, err := request.RequestWith(b.Context(), client); err != nil {
			b.Fatal(err)
		}
	}
}

func (w *benchWorld) mirror(b *testing.B, sync bool) *mirror.Mirror {
	b.Helper()
	settings := mirror.Settings{Checkpoints: mirror.Checkpoints{Enabled: !sync, Groups: selection(b, ".*", "")}}
	settings.GroupSync.Enabled = sync
	m, err := mirror.Start(b.Context(), mirror.Config{
		Source: clusterOf("a", w.pair.Source.Bootstrap), Target: clusterOf("b", w.pair.Target.Bootstrap), Ledger: w.book,
		Topics:   mm2.TopicRules{Selection: selection(b, "orders", ""), Source: "a", Target: "b"},
		Settings: settings, Translate: books{w.book},
	})
	if err != nil {
		b.Fatal(err)
	}
	return m
}

// clean takes away what a pass has written, but for what the ledger keeps.
func (w *benchWorld) clean(b *testing.B) {
	b.Helper()
	admin := kadm.NewClient(w.pair.Target.NewClient(b))
	if _, err := admin.DeleteTopics(b.Context(), checkpointsTopic); err != nil {
		b.Fatal(err)
	}
	ids := make([]string, manyGroups)
	for i := range ids {
		ids[i] = groupName(i)
	}
	if _, err := admin.DeleteGroups(b.Context(), ids...); err != nil {
		b.Fatal(err)
	}
}
