package verify_test

import (
	"fmt"
	"strings"
	"testing"

	"apograph/internal/kafkatest"
	"apograph/ledger"
	"apograph/verify"
)

// truncatedFlow copies 60 records, cuts the source's log, writes other records to
// it, and copies them in a new generation, as a person orders it.
func truncatedFlow(t *testing.T, seed uint64, cut int64, apart bool) *flow {
	t.Helper()
	f := newFlow(t, seed)
	f.joined, f.apart = 13, apart
	f.created("t", 1, nil)
	f.plain(f.pair.Source, "t", 0, 60)
	f.copy(nil, "t")
	f.truncate(cut)
	return f
}

// truncate cuts the source's log, and goes on with 5 other records in a new
// generation.
func (f *flow) truncate(cut int64) {
	f.t.Helper()
	f.must(f.pair.Source.EditLog("t", 0, func(l *kafkatest.Log) error { return cutLog(l, cut) }))
	f.plain(f.pair.Source, "t", 1000+int(cut), 5)
	f.edit(func(l *ledger.Ledger) error {
		old := pairsOf(l, "t")[0]
		next := old
		next.ID, next.Generation, next.ScopeStart, next.TargetBase = 0, 0, cut, l.End(old.ID).Target
		_, err := l.Reopen(old.ID, ledger.Closing{Reason: "source_truncated"}, next)
		return err
	})
	f.copy(nil, "t")
}

// TestTruncatedGeneration: a generation whose source was cut is read up to where
// the next one begins, as both logs are the same ones there; the rest counts by its
// books.
func TestTruncatedGeneration(t *testing.T) {
	for _, cut := range []int64{0, 1, 22, 59, 60} {
		for _, apart := range []bool{false, true} {
			t.Run(fmt.Sprintf("cut at %d, entries apart %t", cut, apart), func(t *testing.T) {
				f := truncatedFlow(t, uint64(cut)+60, cut, apart)
				rest := ""
				if cut < 60 {
					r := verify.Range{Start: cut, End: 60}
					rest = fmt.Sprintf("not_verified(not_read) no fault t-0 source %v target %v", &r, &r)
				}
				report := f.verify(verify.ModeFull)
				expect(t, report, verify.Complete, rest)
				old, now := report.Partitions[0], report.Partitions[1]
				if old.Source != (verify.Range{Start: 0, End: 60}) || *old.Target != old.Source || old.SourceOffsets != 60 || old.Copied != 60 ||
					old.Equal != cut || old.NotVerified != 60-cut || now.BeforeStart != cut || now.Equal != 5 || now.SourceOffsets != cut+5 {
					t.Errorf("rows are %+v", report.Partitions)
				}
				report = f.verify(verify.ModeTarget)
				old = report.Partitions[0]
				torn := cut - old.Equal // are in the entry in which the cut lies
				if apart && torn > 12 || torn < 0 || old.NotVerified != 60-old.Equal || report.Summary.Missing+report.Summary.Changed != 0 {
					t.Errorf("mode target: %s, rows are %+v", report.Verdict, report.Partitions)
				}
				books := f.verify(verify.ModeBooks).Partitions[0]
				if books.Copied != 60 || books.NotVerified != 60 || books.Source.End != 60 || books.Target.End != 60 {
					t.Errorf("by the books alone the row is %+v", books)
				}
			})
		}
	}
}

// TestDamageBelowTruncation: what is wrong with the target below the source's cut
// is found, exactly, in whatever mode reads it; behind the cut nobody looks.
func TestDamageBelowTruncation(t *testing.T) {
	f := truncatedFlow(t, 90, 22, true)
	for _, s := range []kafkatest.Sabotage{
		{Damage: kafkatest.MutateValue, Offset: 2}, {Damage: kafkatest.Drop, Offset: 4}, {Damage: kafkatest.MutateValue, Offset: 21},
		{Damage: kafkatest.MutateValue, Offset: 22}, {Damage: kafkatest.MutateValue, Offset: 40},
	} {
		s.Topic = "t"
		_, err := f.pair.Target.Sabotage(s)
		f.must(err)
	}
	report := f.verify(verify.ModeFull)
	expect(t, report, verify.Faults, `changed t-0 source 2 target 2
		missing t-0 source 4 target 4
		changed t-0 source 21 target 21
		not_verified(not_read) no fault t-0 source [22, 60) target [22, 60)`)
	if old := report.Partitions[0]; old.Equal != 19 || old.Changed != 2 || old.Missing != 1 || old.NotVerified != 38 || report.Summary.BeforeStart != 22 {
		t.Errorf("rows are %+v", report.Partitions)
	}
	if report := f.verify(verify.ModeTarget); report.Verdict != verify.Faults || report.Summary.Changed+report.Summary.Missing == 0 {
		t.Errorf("mode target: %s, findings\n%s", report.Verdict, findings(report))
	}
}

// TestTruncatedTwice: a second cut lies below the first. What the first generation
// has from there on is no more on the source either.
func TestTruncatedTwice(t *testing.T) {
	for _, second := range []int64{10, 24} {
		f := truncatedFlow(t, 91, 22, true)
		f.truncate(second)
		report := f.verify(verify.ModeFull)
		if old, between := report.Partitions[0], report.Partitions[1]; report.Verdict != verify.Complete || old.Equal != min(second, 22) ||
			between.Equal != max(second-22, 0) || between.NotVerified != 5-between.Equal || between.Copied != 5 {
			t.Errorf("cut at %d: %s, rows are %+v, findings\n%s", second, report.Verdict, report.Partitions, findings(report))
		}
	}
}

// TestTruncatedAndRecreated: once a topic is another one, the books of those
// generations are all that is left of them.
func TestTruncatedAndRecreated(t *testing.T) {
	f := truncatedFlow(t, 92, 22, true)
	f.deleteTopic(f.pair.Source, "t")
	f.created("t", 1, nil)
	f.plain(f.pair.Source, "t", 500, 3)
	f.edit(func(l *ledger.Ledger) error {
		return l.ClosePair(pairsOf(l, "t")[0].ID, ledger.Closing{Reason: "topic_recreated"})
	})
	f.copy(nil, "t")
	report := f.verify(verify.ModeFull)
	expect(t, report, verify.Complete, `not_verified(not_read) no fault t-0 source [0, 60) target [0, 60)
		not_verified(not_read) no fault t-0 source [22, 27) target [60, 65)`)
	if old := report.Partitions[0]; old.Copied != 60 || old.NotVerified != 60 || old.SourceOffsets != 60 {
		t.Errorf("rows are %+v", report.Partitions)
	}
}

// TestLossBehindTruncation: a bad tile of the books stays a fault on either side of
// the source's cut.
func TestLossBehindTruncation(t *testing.T) {
	for _, cut := range []int64{12, 21, 30} {
		f := newFlow(t, 93)
		f.created("t", 1, nil)
		f.plain(f.pair.Source, "t", 0, 20)
		f.copy(nil, "t")
		f.plain(f.pair.Source, "t", 20, 10)
		f.edit(func(l *ledger.Ledger) error {
			return l.Append(pairsOf(l, "t")[0].ID, ledger.Entry{Tile: ledger.Lost, Cause: ledger.CauseRetention,
				Source: ledger.Range{Start: 20, End: 24}, Target: ledger.Range{Start: 20, End: 20}, LeaderEpoch: -1})
		})
		f.copy(nil, "t")
		f.truncate(cut)
		report := f.verify(verify.ModeFull)
		if report.Verdict != verify.Faults || report.Summary.Lost != 4 || !strings.Contains(findings(report), "lost(retention) t-0 source [20, 24) target [20, 20)") ||
			strings.Count(findings(report), "lost") != 1 {
			t.Errorf("cut at %d: %s, findings\n%s", cut, report.Verdict, findings(report))
		}
	}
}
