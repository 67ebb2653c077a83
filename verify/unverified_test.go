package verify_test

import (
	"bytes"
	"slices"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"apograph/internal/kafkatest"
	"apograph/ledger"
	"apograph/verify"
)

// TestRetention: what a side has deleted by time or size cannot be verified, and
// is no fault. What is left is compared as exactly as ever.
func TestRetention(t *testing.T) {
	f := newFlow(t, 3)
	f.created("t", 1, nil)
	f.plain(f.pair.Source, "t", 0, 200)
	f.copy(nil, "t")
	f.must(f.pair.Source.DeleteRecords("t", 0, 50))
	report := f.verify(verify.ModeFull)
	expect(t, report, verify.Inconclusive, `not_verified(retention) no fault t-0 source [0, 50) target [0, 50)`)
	if report.Summary.Equal != 150 || report.Summary.NotVerified != 50 || report.Partitions[0].Source != (verify.Range{Start: 50, End: 200}) {
		t.Errorf("row is %+v", report.Partitions[0])
	}
	expect(t, f.verify(verify.ModeTarget), verify.Complete, "")

	f.must(f.pair.Target.DeleteRecords("t", 0, 80))
	report = f.verify(verify.ModeFull)
	expect(t, report, verify.Inconclusive, `not_verified(retention) no fault t-0 source [0, 80) target [0, 80)`)
	if report.Summary.Equal != 120 || report.Summary.NotVerified != 80 {
		t.Errorf("counts are %+v", report.Summary)
	}

	// The target alone: an entry of which a part is gone has no digest left.
	start := int64(0)
	f.edit(func(l *ledger.Ledger) error {
		e, err := l.FindTarget(pairsOf(l, "t")[0].ID, 80)
		start = e.Target.End
		return err
	})
	report = f.verify(verify.ModeTarget)
	if report.Verdict != verify.Inconclusive || report.Summary.Equal != 200-start || report.Summary.NotVerified != start {
		t.Errorf("mode target: verdict %s, %+v, want %d equal", report.Verdict, report.Summary, 200-start)
	}
	// Everything is gone, on either side.
	f.must(f.pair.Source.DeleteRecords("t", 0, -1))
	expect(t, f.verify(verify.ModeFull), verify.Inconclusive, `not_verified(retention) no fault t-0 source [0, 200) target [0, 200)`)
	f.must(f.pair.Target.DeleteRecords("t", 0, -1))
	for _, mode := range []verify.Mode{verify.ModeFull, verify.ModeTarget} {
		report := f.verify(mode)
		expect(t, report, verify.Inconclusive, `not_verified(retention) no fault t-0 source [0, 200) target [0, 200)`)
		if report.Summary.NotVerified != 200 {
			t.Errorf("counts are %+v", report.Summary)
		}
	}
}

// TestDamageWhereSourceIsGone: the source has deleted what it was copied from,
// but the ledger has the digest: what was done to the target is found.
func TestDamageWhereSourceIsGone(t *testing.T) {
	f := newFlow(t, 3)
	f.created("t", 1, nil)
	f.plain(f.pair.Source, "t", 0, 200)
	f.copy(nil, "t")
	f.must(f.pair.Source.DeleteRecords("t", 0, 100))
	s := newSaboteur(f, "t")
	for _, sabotage := range []kafkatest.Sabotage{
		{Damage: kafkatest.MutateValue, Offset: 30},
		{Damage: kafkatest.Drop, Offset: 30, Shift: true},
		{Damage: kafkatest.Drop, Offset: 30},
		{Damage: kafkatest.Duplicate, Offset: 30, Shift: true},
		{Damage: kafkatest.Insert, Offset: 30, Shift: true},
		{Damage: kafkatest.Swap, Offset: 30},
	} {
		sabotage.Topic = "t"
		done, err := f.pair.Target.Sabotage(sabotage)
		f.must(err)
		report := f.verify(verify.ModeFull)
		if report.Verdict != verify.Faults {
			t.Errorf("%v: verdict is %s", done.Damage, report.Verdict)
		}
		var faults []verify.Finding
		for _, found := range report.Findings {
			if found.Fault {
				faults = append(faults, found)
			}
		}
		entry := s.entryAt(30)
		if len(faults) != 1 || faults[0].Target.Start < entry.Target.Start || faults[0].Target.End > entry.Target.End+1 {
			t.Errorf("%v in entry %v: findings are\n%s", done.Damage, entry.Target, findings(report))
		}
		if report.Summary.Equal != 100 {
			t.Errorf("%v: %d records are equal, want the 100 that the source has", done.Damage, report.Summary.Equal)
		}
		s.restore()
	}
}

// TestCompaction: the source was compacted before it was copied, after, or on
// the target.
func TestCompaction(t *testing.T) {
	cleaner := kafkatest.Cleaner{Now: time.UnixMilli(1_800_000_000_000), DeleteRetention: 24 * time.Hour}
	compact := map[string]string{"cleanup.policy": "compact"}
	load := func(f *flow) {
		f.must(kafkatest.Load{Seed: 4, Topics: []string{"t"}, Records: 300, Keyed: true, Configs: compact, MaxValueBytes: 500}.Run(f.ctx, f.pair.Source.Bootstrap))
		f.compacts["t"] = true
	}
	t.Run("before", func(t *testing.T) {
		f := newFlow(t, 4)
		load(f)
		f.must(f.pair.Source.Clean("t", 0, cleaner))
		f.copy(compact, "t")
		for _, mode := range []verify.Mode{verify.ModeFull, verify.ModeTarget, verify.ModeBooks} {
			report := f.verify(mode)
			expect(t, report, verify.Complete, "")
			if report.Summary.Compacted == 0 {
				t.Error("nothing was compacted")
			}
		}
	})
	t.Run("after, on the source", func(t *testing.T) {
		f := newFlow(t, 4)
		load(f)
		f.copy(nil, "t")
		before := f.verify(verify.ModeFull)
		expect(t, before, verify.Complete, "")
		f.must(f.pair.Source.Clean("t", 0, cleaner))
		f.expectCompaction(f.verify(verify.ModeFull), before.Summary.Copied)
		expect(t, f.verify(verify.ModeTarget), verify.Complete, "")
	})
	t.Run("after, on the target", func(t *testing.T) {
		f := newFlow(t, 4)
		load(f)
		f.copy(compact, "t")
		before := f.verify(verify.ModeFull)
		f.must(f.pair.Target.Clean("t", 0, cleaner))
		f.expectCompaction(f.verify(verify.ModeFull), before.Summary.Copied)
		f.expectCompaction(f.verify(verify.ModeTarget), before.Summary.Copied)
	})
	t.Run("after, on both", func(t *testing.T) {
		f := newFlow(t, 4)
		load(f)
		f.copy(compact, "t")
		before := f.verify(verify.ModeFull)
		f.must(f.pair.Source.Clean("t", 0, cleaner))
		f.must(f.pair.Target.Clean("t", 0, cleaner))
		f.expectCompaction(f.verify(verify.ModeFull), before.Summary.Copied)
	})
	t.Run("a target that does not compact", func(t *testing.T) {
		f := newFlow(t, 4)
		load(f)
		f.copy(nil, "t")
		f.must(f.pair.Target.Clean("t", 0, cleaner))
		report := f.verify(verify.ModeFull)
		if report.Verdict != verify.Faults || report.Summary.Missing == 0 || report.Summary.NotVerified != 0 {
			t.Errorf("verdict %s, %+v", report.Verdict, report.Summary)
		}
	})
}

// expectCompaction expects that nothing is wrong, and not everything verified.
func (f *flow) expectCompaction(report *verify.Report, copied int64) {
	f.t.Helper()
	if report.Verdict != verify.Inconclusive || len(report.Findings) != 1 || report.Findings[0].Reason != verify.Compaction {
		f.t.Errorf("mode %s: verdict %s, findings\n%s", report.Mode, report.Verdict, findings(report))
	}
	if c := report.Summary.Counts; c.NotVerified == 0 || c.Equal+c.NotVerified != copied || report.Mode == verify.ModeFull && c.Equal == 0 {
		f.t.Errorf("mode %s: counts are %+v", report.Mode, c)
	}
}

// TestReplicaNotYetCleaned: the copier read a leader whose cleaner had been at
// work; the leader of today holds the records still. A later record of the same
// key accounts for them, and for one that has none nothing does.
func TestReplicaNotYetCleaned(t *testing.T) {
	compact := map[string]string{"cleanup.policy": "compact"}
	f := newFlow(t, 5)
	f.created("t", 1, compact)
	f.compacts["t"] = true
	key := func(key, value string) *kgo.Record {
		r := &kgo.Record{Topic: "t", Key: []byte(key), Timestamp: time.UnixMilli(1_700_000_000_000)}
		if value != "" {
			r.Value = []byte(value)
		}
		return r
	}
	for _, r := range []*kgo.Record{
		key("a", "1"), key("b", "1"), key("a", "2"), key("gone", ""), key("b", "2"), key("c", "1"), key("a", "3"), key("d", "1"),
	} {
		f.must(f.pair.Source.Append(f.ctx, kafkatest.None, r))
	}
	var whole [][]byte
	f.must(f.pair.Source.EditLog("t", 0, func(l *kafkatest.Log) error {
		whole = slices.Clone(l.Batches)
		l.Batches = slices.Concat(whole[4:5], whole[6:])
		return nil
	}))
	f.copy(compact, "t")
	expect(t, f.verify(verify.ModeFull), verify.Complete, "")
	f.must(f.pair.Source.EditLog("t", 0, func(l *kafkatest.Log) error {
		l.Batches = nil
		for _, b := range whole {
			l.Batches = append(l.Batches, bytes.Clone(b))
		}
		return nil
	}))
	expect(t, f.verify(verify.ModeFull), verify.Faults, `
		stale_keys_possible no fault t-0 source 3 target [0, 0)
		missing t-0 source 5 target [1, 1)`)
}

// TestTargetStampsTime: a target topic with message.timestamp.type=LogAppendTime.
func TestTargetStampsTime(t *testing.T) {
	f := newFlow(t, 6)
	f.created("t", 1, nil)
	for i, timestamp := range []int64{5000, 1000, 5000, 2000} {
		f.must(f.pair.Source.Append(f.ctx, kafkatest.None, &kgo.Record{Topic: "t", Value: []byte{byte(i)}, Timestamp: time.UnixMilli(timestamp)}))
	}
	f.replaced["t"] = true
	stamped := map[string]string{"message.timestamp.type": "LogAppendTime"}
	f.copy(stamped, "t")
	f.must(f.pair.Target.StampAppendTime("t", 0, time.UnixMilli(1_800_000_000_000)))
	for _, mode := range []verify.Mode{verify.ModeFull, verify.ModeTarget} {
		report := f.verify(mode)
		expect(t, report, verify.Complete, "")
		if c := report.Summary.Counts; c.Equal != 4 || c.TimestampsReplaced != 4 {
			t.Errorf("counts are %+v", c)
		}
	}
	// A record that the copier did not book any more.
	f.must(f.pair.Source.Append(f.ctx, kafkatest.None, &kgo.Record{Topic: "t", Value: []byte("new"), Timestamp: time.UnixMilli(7000)}))
	f.writeAsPair([]*kgo.Record{{Topic: "t", Value: []byte("new"), Timestamp: time.UnixMilli(7000)}})
	f.must(f.pair.Target.StampAppendTime("t", 0, time.UnixMilli(1_800_000_000_000)))
	expect(t, f.verify(verify.ModeFull), verify.Inconclusive, `
		not_copied_yet(behind) no fault t-0 source 4 target [4, 4)
		unbooked no fault t-0 source 4 target 4`)
	// A change of anything but the time is found.
	_, err := f.pair.Target.Sabotage(kafkatest.Sabotage{Damage: kafkatest.MutateValue, Topic: "t", Offset: 2})
	f.must(err)
	report := f.verify(verify.ModeFull, func(c *verify.Config) { c.Until = verify.UntilBook })
	expect(t, report, verify.Faults, `changed t-0 source 2 target 2`)
	if c := report.Summary.Counts; c.Equal != 3 || c.AfterBook != 1 {
		t.Errorf("counts are %+v", c)
	}
}

// TestSourceStampsTime: a source topic with LogAppendTime, whose times the
// target keeps as its own.
func TestSourceStampsTime(t *testing.T) {
	f := newFlow(t, 6)
	f.created("t", 1, map[string]string{"message.timestamp.type": "LogAppendTime"})
	f.plain(f.pair.Source, "t", 0, 5)
	f.must(f.pair.Source.StampAppendTime("t", 0, time.UnixMilli(1_750_000_000_000)))
	f.copy(nil, "t")
	report := f.verify(verify.ModeFull)
	expect(t, report, verify.Complete, "")
	if report.Summary.TimestampsReplaced != 0 {
		t.Errorf("counts are %+v", report.Summary)
	}
}
