package verify_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"apograph/internal/kafkatest"
	"apograph/ledger"
	"apograph/verify"
)

// plain appends n records with distinct keys and values to partition 0.
func (f *flow) plain(c *kafkatest.Cluster, topic string, from, n int) {
	f.t.Helper()
	f.must(c.Append(f.ctx, kafkatest.None, plainRecords(topic, from, n)...))
}

func plainRecords(topic string, from, n int) []*kgo.Record {
	var records []*kgo.Record
	for i := from; i < from+n; i++ {
		records = append(records, &kgo.Record{
			Topic: topic, Key: fmt.Appendf(nil, "k%d", i), Value: fmt.Appendf(nil, "v%d", i),
			Timestamp: time.UnixMilli(1_700_000_000_000 + int64(i)),
		})
	}
	return records
}

// created makes a topic on the source.
func (f *flow) created(topic string, partitions int32, configs map[string]string) {
	f.t.Helper()
	f.must(f.pair.Source.CreateTopic(f.ctx, topic, partitions, configs))
}

// TestSourceRewritten: records 90 to 99 of the source are others than those that
// were copied, as after an unclean election.
func TestSourceRewritten(t *testing.T) {
	f := newFlow(t, 1)
	f.created("t", 1, nil)
	f.plain(f.pair.Source, "t", 0, 100)
	f.copy(nil, "t")
	f.must(f.pair.Source.EditLog("t", 0, func(l *kafkatest.Log) error { return cutLog(l, 90) }))
	f.plain(f.pair.Source, "t", 500, 10)
	report := f.verify(verify.ModeFull)
	expect(t, report, verify.Faults, `diverged t-0 source [90, 100) target [90, 100)`)
	if report.Summary.Equal != 90 || report.Summary.Changed != 10 {
		t.Errorf("counts are %+v", report.Summary)
	}
	expect(t, f.verify(verify.ModeTarget), verify.Complete, "")
}

// TestSourceTruncated: the source ends before the books do.
func TestSourceTruncated(t *testing.T) {
	f := newFlow(t, 1)
	f.created("t", 1, nil)
	f.plain(f.pair.Source, "t", 0, 100)
	f.copy(nil, "t")
	f.must(f.pair.Source.EditLog("t", 0, func(l *kafkatest.Log) error { return cutLog(l, 90) }))
	report := f.verify(verify.ModeFull)
	expect(t, report, verify.Faults, `diverged t-0 source [90, 100) target [90, 100)`)
	if report.Summary.SourceOffsets != 100 || report.Summary.Equal != 90 || report.Summary.NotVerified != 10 {
		t.Errorf("counts are %+v", report.Summary)
	}
	expect(t, f.verify(verify.ModeFull, func(c *verify.Config) { c.Until = verify.UntilBook }), verify.Faults,
		`diverged t-0 source [90, 100) target [90, 100)`)
}

// TestSourceCutBehindRecords: of what the source's cut took, nothing was copied:
// markers, aborted records, what cleaners and a person's choice had left out. The
// books claim offsets that are free again.
func TestSourceCutBehindRecords(t *testing.T) {
	for _, tt := range []struct {
		name string
		end  int64
		want string
	}{
		{"nothing", 6, ""},
		{"a marker", 5, "diverged t-0 source 5 target [2, 2)"},
		{"a marker, of an aborted transaction its half", 3, "diverged t-0 source [3, 6) target [2, 2)"},
		{"all but what was copied", 2, "diverged t-0 source [2, 6) target [2, 2)"},
		{"all but one that was copied", 1, "diverged t-0 source 1 target 1\ndiverged t-0 source [2, 6) target [2, 2)"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			f := newFlow(t, 2)
			f.created("t", 1, nil)
			f.plain(f.pair.Source, "t", 0, 2)
			f.must(f.pair.Source.AppendTransaction(f.ctx, "tx", false, plainRecords("t", 2, 3)...))
			f.copy(nil, "t")
			f.must(f.pair.Source.EditLog("t", 0, func(l *kafkatest.Log) error { return cutLog(l, tt.end) }))
			verdict := verify.Faults
			if tt.want == "" {
				verdict = verify.Complete
			}
			for _, until := range []verify.Until{verify.UntilSourceEnd, verify.UntilBook} {
				report := f.verify(verify.ModeFull, func(c *verify.Config) { c.Until = until })
				expect(t, report, verdict, tt.want)
				if report.Summary.SourceOffsets != 6 {
					t.Errorf("source offsets are %d, the books have 6", report.Summary.SourceOffsets)
				}
			}
			expect(t, f.verify(verify.ModeTarget), verify.Complete, "")
		})
	}
}

// cutLog cuts a log of dense batches off before an offset.
func cutLog(l *kafkatest.Log, end int64) error {
	var kept [][]byte
	for _, raw := range l.Batches {
		b, err := kafkatest.DecodeBatch(raw)
		if err != nil {
			return err
		}
		if b.BaseOffset >= end {
			break
		}
		if b.NextOffset() > end {
			b.Records = b.Records[:end-b.BaseOffset]
			b.LastOffsetDelta = int32(end - b.BaseOffset - 1)
			if raw, err = b.Encode(); err != nil {
				return err
			}
		}
		kept = append(kept, raw)
	}
	l.Batches, l.End = kept, end
	return nil
}

// TestSourceRecordGone: a hole in a source that does not compact.
func TestSourceRecordGone(t *testing.T) {
	f := newFlow(t, 1)
	f.created("t", 1, nil)
	f.plain(f.pair.Source, "t", 0, 30)
	f.copy(nil, "t")
	_, err := f.pair.Source.Sabotage(kafkatest.Sabotage{Damage: kafkatest.Drop, Topic: "t", Offset: 12})
	f.must(err)
	report := f.verify(verify.ModeFull)
	expect(t, report, verify.Faults, `diverged t-0 source 12 target 12`)
	if report.Summary.NotVerified != 1 || report.Summary.Equal != 29 {
		t.Errorf("counts are %+v", report.Summary)
	}
}

// TestSourceRecreated: the source topic was deleted and created again, with
// other records, with none, with the same ones, and not at all.
func TestSourceRecreated(t *testing.T) {
	for _, tt := range []struct {
		name    string
		again   func(f *flow)
		verdict verify.Verdict
		want    string
	}{
		{"with other records", func(f *flow) { f.created("t", 1, nil); f.plain(f.pair.Source, "t", 3, 20) }, verify.Faults,
			`diverged t-0 source [0, 20) target [0, 20)`},
		{"with fewer of the same records", func(f *flow) { f.created("t", 1, nil); f.plain(f.pair.Source, "t", 0, 15) }, verify.Faults,
			`diverged t-0 source [15, 20) target [15, 20)`},
		{"empty", func(f *flow) { f.created("t", 1, nil) }, verify.Faults,
			`diverged t-0 source [0, 20) target [0, 20)`},
		{"with the same records", func(f *flow) { f.created("t", 1, nil); f.plain(f.pair.Source, "t", 0, 20) }, verify.Faults,
			`diverged t-0 source [0, 20) target [0, 20)`},
		{"not at all", func(f *flow) {}, verify.Inconclusive,
			`not_verified(unreadable) no fault t-0 source [0, 20) target [0, 20)`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			f := newFlow(t, 1)
			f.created("t", 1, nil)
			f.plain(f.pair.Source, "t", 0, 20)
			f.copy(nil, "t")
			f.deleteTopic(f.pair.Source, "t")
			tt.again(f)
			expect(t, f.verify(verify.ModeFull), tt.verdict, tt.want)
		})
	}
}

func (f *flow) deleteTopic(c *kafkatest.Cluster, topic string) {
	f.t.Helper()
	answers, err := kadm.NewClient(c.NewClient(f.t)).DeleteTopics(f.ctx, topic)
	f.must(err)
	f.must(answers.Error())
}

// TestTargetRecreated: the same for the target topic.
func TestTargetRecreated(t *testing.T) {
	for _, tt := range []struct {
		name  string
		again func(f *flow)
		want  string
	}{
		{"not at all", func(f *flow) {}, `missing t-0 source [0, 20) target [0, 20)`},
		{"empty", func(f *flow) { f.must(f.pair.Target.CreateTopic(f.ctx, "t", 1, nil)) }, `missing t-0 source [0, 20) target [0, 20)`},
		{"with the same records", func(f *flow) {
			f.must(f.pair.Target.CreateTopic(f.ctx, "t", 1, nil))
			f.plain(f.pair.Target, "t", 0, 20)
		}, `diverged t-0 source [0, 20) target [0, 20)`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			f := newFlow(t, 1)
			f.created("t", 1, nil)
			f.plain(f.pair.Source, "t", 0, 20)
			f.copy(nil, "t")
			f.deleteTopic(f.pair.Target, "t")
			tt.again(f)
			for _, mode := range []verify.Mode{verify.ModeFull, verify.ModeTarget} {
				expect(t, f.verify(mode), verify.Faults, tt.want)
			}
		})
	}
}

// TestOpenTransaction: 0 to 9 are plain, 10 is open, 11 to 19 are plain.
func TestOpenTransaction(t *testing.T) {
	f := newFlow(t, 1)
	f.created("t", 1, nil)
	f.plain(f.pair.Source, "t", 0, 10)
	p, err := f.pair.Source.TransactionalProducer("open", kafkatest.None)
	f.must(err)
	defer p.Close()
	f.must(p.Begin())
	f.must(p.Append(f.ctx, plainRecords("t", 10, 1)...))
	f.plain(f.pair.Source, "t", 11, 9)
	f.copy(nil, "t")
	for _, mode := range []verify.Mode{verify.ModeFull, verify.ModeTarget, verify.ModeBooks} {
		report := f.verify(mode)
		expect(t, report, verify.Inconclusive, `not_copied_yet(open_transaction) no fault t-0 source [10, 20) target [10, 10)`)
		if report.Summary.Copied != 10 || report.Summary.NotCopiedYet != 10 {
			t.Errorf("counts are %+v", report.Summary)
		}
	}
	f.must(p.End(context.WithoutCancel(f.ctx), true))
	expect(t, f.verify(verify.ModeFull), verify.Inconclusive, `not_copied_yet(behind) no fault t-0 source [10, 21) target [10, 10)`)
	f.copy(nil, "t")
	for _, mode := range []verify.Mode{verify.ModeFull, verify.ModeTarget, verify.ModeBooks} {
		report := f.verify(mode)
		expect(t, report, verify.Complete, "")
		if report.Summary.Copied != 20 || report.Summary.CommitMarkers != 1 || report.Summary.SourceOffsets != 21 {
			t.Errorf("counts are %+v", report.Summary)
		}
	}
}

// TestAbortedBeforeOpenTransaction: the last offset below the last stable one is
// a record that a consumer never gets, so nothing tells it that it has come to
// the end.
func TestAbortedBeforeOpenTransaction(t *testing.T) {
	f := newFlow(t, 1)
	f.created("t", 1, nil)
	f.plain(f.pair.Source, "t", 0, 5)
	aborted, err := f.pair.Source.TransactionalProducer("aborted", kafkatest.None)
	f.must(err)
	defer aborted.Close()
	open, err := f.pair.Source.TransactionalProducer("open", kafkatest.None)
	f.must(err)
	defer open.Close()
	f.must(aborted.Begin())
	f.must(open.Begin())
	f.must(aborted.Append(f.ctx, plainRecords("t", 5, 3)...))
	f.must(open.Append(f.ctx, plainRecords("t", 8, 1)...))
	f.must(aborted.End(f.ctx, false))
	f.copy(nil, "t")
	report := f.verify(verify.ModeFull)
	expect(t, report, verify.Inconclusive, `not_copied_yet(open_transaction) no fault t-0 source [8, 10) target [5, 5)`)
	if report.Summary.Aborted != 3 || report.Summary.Equal != 5 {
		t.Errorf("counts are %+v", report.Summary)
	}
}

// TestWrongBooks: the copier called committed records something else, and copied
// one that is not committed.
func TestWrongBooks(t *testing.T) {
	f := newFlow(t, 1)
	f.created("t", 1, nil)
	f.plain(f.pair.Source, "t", 0, 4)
	f.must(f.pair.Source.AppendTransaction(f.ctx, "x", false, plainRecords("t", 4, 1)...)) // 4 aborted, 5 marker
	f.plain(f.pair.Source, "t", 6, 3)
	f.must(f.pair.Target.CreateTopic(f.ctx, "t", 1, nil))
	f.plain(f.pair.Target, "t", 0, 1)
	f.plain(f.pair.Target, "t", 4, 2)
	f.plain(f.pair.Target, "t", 8, 1)
	record := func(i int) uint64 {
		r := plainRecords("t", i, 1)[0]
		return hashOf(&kafkatest.Record{Timestamp: r.Timestamp.UnixMilli(), Key: r.Key, Value: r.Value})
	}
	f.edit(func(l *ledger.Ledger) error {
		f.must(l.SetScope(ledger.Scope{Topics: []string{"t"}}))
		_, err := l.OpenPairs([]ledger.Pair{{SourceTopic: "t", TargetTopic: "t", Producer: ledger.Producer{ID: 1}}})
		f.must(err)
		pair := pairsOf(l, "t")[0]
		one := func(o int64) ledger.Range { return ledger.Range{Start: o, End: o + 1} }
		f.append(l, pair, ledger.Entry{Tile: ledger.Copied, Source: one(0), Digest: naiveDigest([]uint64{record(0)})})
		f.append(l, pair, ledger.Entry{Tile: ledger.Aborted, Source: one(1)})
		f.append(l, pair, ledger.Entry{Tile: ledger.Compacted, Source: one(2)})
		f.append(l, pair, ledger.Entry{Tile: ledger.CommitMarker, Source: one(3)})
		f.append(l, pair, ledger.Entry{Tile: ledger.Copied, Source: one(4), Digest: naiveDigest([]uint64{record(4)})})
		f.append(l, pair, ledger.Entry{Tile: ledger.Copied, Source: one(5), Digest: naiveDigest([]uint64{record(5)})})
		f.append(l, pair, ledger.Entry{Tile: ledger.Filtered, Source: one(6), Cause: ledger.CauseRule, Reason: "a rule"})
		f.append(l, pair, ledger.Entry{Tile: ledger.Lost, Source: one(7), Cause: ledger.CauseRetention})
		f.append(l, pair, ledger.Entry{Tile: ledger.Copied, Source: one(8), Digest: naiveDigest([]uint64{record(8)})})
		return seen(l, pair, 9)
	})
	report := f.verify(verify.ModeFull)
	expect(t, report, verify.Faults, `
		missing t-0 source 1 target [1, 1)
		missing t-0 source 2 target [1, 1)
		missing t-0 source 3 target [1, 1)
		diverged t-0 source 4 target 1
		diverged t-0 source 5 target 2
		lost(retention) t-0 source 7 target [3, 3)
		missing t-0 source 7 target [3, 3)`)
	expect(t, f.verify(verify.ModeBooks), verify.Faults, `lost(retention) t-0 source 7 target [3, 3)`)
	if c := report.Summary.Counts; c.Equal != 2 || c.NotVerified != 2 || c.Filtered != 1 || c.Lost != 1 {
		t.Errorf("counts are %+v", c)
	}
}

// seen says that the copier saw the source end at an offset.
func seen(l *ledger.Ledger, pair ledger.Pair, end int64) error {
	return l.SetState(pair.ID, ledger.State{LastStable: end, HighWatermark: end, SeenMillis: 1_700_000_000_000})
}

func hashOf(r *kafkatest.Record) uint64 {
	return sum64(canonicalBytes(r))
}

// TestWrongDigest: both sides agree, and the ledger has the digest of something
// else.
func TestWrongDigest(t *testing.T) {
	f := newFlow(t, 1)
	f.created("t", 1, nil)
	f.plain(f.pair.Source, "t", 0, 3)
	f.must(f.pair.Target.CreateTopic(f.ctx, "t", 1, nil))
	f.plain(f.pair.Target, "t", 0, 3)
	f.edit(func(l *ledger.Ledger) error {
		_, err := l.OpenPairs([]ledger.Pair{{SourceTopic: "t", TargetTopic: "t", Producer: ledger.Producer{ID: 1}}})
		f.must(err)
		f.append(l, pairsOf(l, "t")[0], ledger.Entry{Tile: ledger.Copied, Source: ledger.Range{End: 3}, Digest: 5})
		return seen(l, pairsOf(l, "t")[0], 3)
	})
	expect(t, f.verify(verify.ModeFull), verify.Faults, `diverged t-0 source [0, 3) target [0, 3)`)
	expect(t, f.verify(verify.ModeTarget), verify.Faults, `changed t-0 source [0, 3) target [0, 3)`)
}

// TestHoldsStill: the same report of the same clusters, whatever the number of
// workers.
func TestHoldsStill(t *testing.T) {
	f := newFlow(t, 2)
	f.must(kafkatest.Load{Seed: 2, Topics: []string{"a", "b"}, Partitions: 3, Records: 100}.Run(f.ctx, f.pair.Source.Bootstrap))
	f.copy(nil, "a", "b")
	first := f.verify(verify.ModeFull, func(c *verify.Config) { c.Parallel = 1 })
	second := f.verify(verify.ModeFull, func(c *verify.Config) { c.Parallel = 6 })
	if !slices.EqualFunc(first.Partitions, second.Partitions, func(a, b verify.Partition) bool {
		return a.Topic == b.Topic && a.Partition == b.Partition && a.Counts == b.Counts
	}) {
		t.Errorf("rows differ: %+v and %+v", first.Partitions, second.Partitions)
	}
}

// TestUnknownEnd: without the source, and without bounds that the copier has
// seen, nobody knows whether the books are complete.
func TestUnknownEnd(t *testing.T) {
	f := newFlow(t, 1)
	f.created("t", 1, nil)
	f.must(f.pair.Target.CreateTopic(f.ctx, "t", 1, nil))
	f.edit(func(l *ledger.Ledger) error {
		_, err := l.OpenPairs([]ledger.Pair{{SourceTopic: "t", TargetTopic: "t", Producer: ledger.Producer{ID: 1}}})
		return err
	})
	for _, mode := range []verify.Mode{verify.ModeBooks, verify.ModeTarget} {
		expect(t, f.verify(mode), verify.Inconclusive, `not_copied_yet(behind) no fault t-0 source [0, 0) target [0, 0)`)
	}
	expect(t, f.verify(verify.ModeFull), verify.Complete, "")
}

// TestMarkersSwapped: the book has the other kind of marker, or a record, where
// the source has a marker.
func TestMarkersSwapped(t *testing.T) {
	f := newFlow(t, 1)
	f.created("t", 1, nil)
	f.must(f.pair.Source.AppendTransaction(f.ctx, "x", true, plainRecords("t", 0, 1)...))
	f.must(f.pair.Source.AppendTransaction(f.ctx, "x", false, plainRecords("t", 2, 1)...))
	f.must(f.pair.Target.CreateTopic(f.ctx, "t", 1, nil))
	f.plain(f.pair.Target, "t", 0, 1)
	f.edit(func(l *ledger.Ledger) error {
		_, err := l.OpenPairs([]ledger.Pair{{SourceTopic: "t", TargetTopic: "t", Producer: ledger.Producer{ID: 1}}})
		f.must(err)
		pair := pairsOf(l, "t")[0]
		r := plainRecords("t", 0, 1)[0]
		hash := hashOf(&kafkatest.Record{Timestamp: r.Timestamp.UnixMilli(), Key: r.Key, Value: r.Value})
		f.append(l, pair, ledger.Entry{Tile: ledger.Copied, Source: ledger.Range{Start: 0, End: 1}, Digest: naiveDigest([]uint64{hash})})
		f.append(l, pair, ledger.Entry{Tile: ledger.AbortMarker, Source: ledger.Range{Start: 1, End: 2}})
		f.append(l, pair, ledger.Entry{Tile: ledger.Aborted, Source: ledger.Range{Start: 2, End: 3}})
		f.append(l, pair, ledger.Entry{Tile: ledger.CommitMarker, Source: ledger.Range{Start: 3, End: 4}})
		return nil
	})
	expect(t, f.verify(verify.ModeFull), verify.Faults, `
		diverged t-0 source 1 target [1, 1)
		diverged t-0 source 3 target [1, 1)`)
}
