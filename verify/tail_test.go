package verify_test

import (
	"fmt"
	"testing"

	"apograph/internal/kafkatest"
	"apograph/ledger"
	"apograph/verify"
)

// TestUnbooked: a copier wrote records and died before it could book them.
func TestUnbooked(t *testing.T) {
	f := newFlow(t, 1)
	f.created("t", 1, nil)
	f.plain(f.pair.Source, "t", 0, 10)
	f.copy(nil, "t")
	f.plain(f.pair.Source, "t", 10, 5)
	f.must(f.pair.Source.AppendTransaction(f.ctx, "x", true, plainRecords("t", 15, 2)...))
	f.plain(f.pair.Source, "t", 18, 2)
	f.wrote("t", 10, 7) // 10 to 16
	expect(t, f.verify(verify.ModeFull), verify.Inconclusive, `
		not_copied_yet(behind) no fault t-0 source [10, 20) target [10, 10)
		unbooked no fault t-0 source [10, 17) target [10, 17)`)
	f.wrote("t", 18, 1)
	f.plain(f.pair.Target, "t", 77, 1) // a stranger
	f.wrote("t", 19, 1)                // behind it nobody adopts what would be next
	expect(t, f.verify(verify.ModeFull), verify.Faults, `
		not_copied_yet(behind) no fault t-0 source [10, 20) target [10, 10)
		unbooked no fault t-0 source [10, 19) target [10, 18)
		extra t-0 source [19, 19) target 18
		extra t-0 source [19, 19) target 19`)

	// After a cutover others write to the target.
	report := f.verify(verify.ModeFull, func(c *verify.Config) { c.Until = verify.UntilBook })
	expect(t, report, verify.Complete, "")
	if report.Summary.AfterBook != 10 || report.Summary.Extra != 0 {
		t.Errorf("counts are %+v", report.Summary)
	}
}

// TestUnbookedBehindLoss: the same, and the last record that is booked is not
// there: the ones behind it are still recognized.
func TestUnbookedBehindLoss(t *testing.T) {
	f := newFlow(t, 1)
	f.created("t", 1, nil)
	f.plain(f.pair.Source, "t", 0, 20)
	f.copy(nil, "t")
	f.plain(f.pair.Source, "t", 20, 5)
	f.wrote("t", 20, 3)
	_, err := f.pair.Target.Sabotage(kafkatest.Sabotage{Damage: kafkatest.Drop, Topic: "t", Offset: 19, Shift: true})
	f.must(err)
	expect(t, f.verify(verify.ModeFull), verify.Faults, `
		missing t-0 source 19 target 19
		unbooked no fault t-0 source [20, 23) target [19, 22)
		not_copied_yet(behind) no fault t-0 source [20, 25) target [20, 20)`)
}

// TestTailOfAnother: another producer wrote the next records, and nobody will adopt
// them: what is equal is not yet ours.
func TestTailOfAnother(t *testing.T) {
	f := newFlow(t, 1)
	f.created("t", 1, nil)
	f.plain(f.pair.Source, "t", 0, 10)
	f.copy(nil, "t")
	f.plain(f.pair.Source, "t", 10, 5)
	f.wrote("t", 10, 1)
	f.plain(f.pair.Target, "t", 11, 2)
	expect(t, f.verify(verify.ModeFull), verify.Faults, `
		not_copied_yet(behind) no fault t-0 source [10, 15) target [10, 10)
		unbooked no fault t-0 source 10 target 10
		extra t-0 source [11, 11) target [11, 13)`)
	expect(t, f.verify(verify.ModeTarget), verify.Faults, `
		unbooked no fault t-0 source [10, 10) target 10
		extra t-0 source [10, 10) target [11, 13)`)
}

// TestLastRecordGone: the last booked record is gone, and the ones that were
// written behind it have moved into its place, however few.
func TestLastRecordGone(t *testing.T) {
	for n := 1; n <= 4; n++ {
		for _, gone := range []int64{18, 19} {
			f := newFlow(t, 1)
			f.created("t", 1, nil)
			f.plain(f.pair.Source, "t", 0, 20)
			f.copy(nil, "t")
			f.plain(f.pair.Source, "t", 20, 5)
			f.wrote("t", 20, n)
			_, err := f.pair.Target.Sabotage(kafkatest.Sabotage{Damage: kafkatest.Drop, Topic: "t", Offset: gone, Shift: true})
			f.must(err)
			expect(t, f.verify(verify.ModeFull), verify.Faults, fmt.Sprintf(`
				missing t-0 source %d target %[1]d
				unbooked no fault t-0 source %v target %v
				not_copied_yet(behind) no fault t-0 source [20, 25) target [20, 20)`,
				gone, &verify.Range{Start: 20, End: int64(20 + n)}, &verify.Range{Start: 19, End: int64(19 + n)}))
		}
	}
}

// TestStrangerBeforeLastRecord: a stranger stands in front of the last booked
// record, and the source goes on: what is not copied yet is no difference.
func TestStrangerBeforeLastRecord(t *testing.T) {
	f := newFlow(t, 1)
	f.created("t", 1, nil)
	f.plain(f.pair.Source, "t", 0, 20)
	f.copy(nil, "t")
	f.plain(f.pair.Source, "t", 20, 5)
	_, err := f.pair.Target.Sabotage(kafkatest.Sabotage{Damage: kafkatest.Insert, Topic: "t", Offset: 18, Shift: true})
	f.must(err)
	expect(t, f.verify(verify.ModeFull), verify.Faults, `
		extra t-0 source [19, 19) target 19
		not_copied_yet(behind) no fault t-0 source [20, 25) target [20, 20)`)
}

// TestTailByProducer: without the source the producer id tells whose records
// stand behind the book.
func TestTailByProducer(t *testing.T) {
	f := newFlow(t, 1)
	f.created("t", 1, nil)
	f.plain(f.pair.Source, "t", 0, 10)
	f.copy(nil, "t")
	f.wrote("t", 10, 1)
	expect(t, f.verify(verify.ModeTarget), verify.Inconclusive, `unbooked no fault t-0 source [10, 10) target 10`)
	f.plain(f.pair.Target, "t", 50, 1)
	expect(t, f.verify(verify.ModeTarget), verify.Faults, `
		unbooked no fault t-0 source [10, 10) target 10
		extra t-0 source [10, 10) target 11`)
}

// TestForeignTransaction: somebody else's transaction on the target, markers and
// all, in the middle and behind the book.
func TestForeignTransaction(t *testing.T) {
	f := newFlow(t, 1)
	f.created("t", 1, nil)
	f.plain(f.pair.Source, "t", 0, 10)
	f.copy(nil, "t")
	f.must(f.pair.Target.AppendTransaction(f.ctx, "x", false, plainRecords("t", 900, 2)...))
	expect(t, f.verify(verify.ModeFull), verify.Faults, `extra t-0 source [10, 10) target [10, 12)
		extra t-0 source [10, 10) target 12`)
}

// TestNamedNotes: what the ledger names on the target is no fault, as long as it
// is there.
func TestNamedNotes(t *testing.T) {
	f := newFlow(t, 1)
	f.created("t", 1, nil)
	f.plain(f.pair.Source, "t", 0, 10)
	f.copy(nil, "t")
	f.plain(f.pair.Target, "t", 8, 2)
	f.plain(f.pair.Target, "t", 500, 1)
	f.must(f.pair.Target.AppendTransaction(f.ctx, "x", false, plainRecords("t", 900, 1)...))
	f.edit(func(l *ledger.Ledger) error {
		pair := pairsOf(l, "t")[0]
		for _, e := range []ledger.Entry{
			{Tile: ledger.Duplicate, Target: ledger.Range{Start: 10, End: 12}, Origin: ledger.Range{Start: 8, End: 10}},
			{Tile: ledger.Orphan, Target: ledger.Range{Start: 12, End: 13}},
			{Tile: ledger.Foreign, Target: ledger.Range{Start: 13, End: 15}, Cause: ledger.CauseAborted},
		} {
			e.Source = ledger.Range{Start: 10, End: 10}
			f.append(l, pair, e)
		}
		return nil
	})
	f.plain(f.pair.Source, "t", 10, 5)
	f.copy(nil, "t")
	for _, mode := range []verify.Mode{verify.ModeFull, verify.ModeTarget, verify.ModeBooks} {
		report := f.verify(mode)
		expect(t, report, verify.Complete, `duplicate no fault t-0 source [8, 10) target [10, 12)`)
		if c := report.Summary.Counts; c.Duplicates != 2 || c.Orphans != 1 || c.Foreign != 2 || c.Copied != 15 || c.Extra != 0 {
			t.Errorf("counts are %+v", c)
		}
	}
	s := newSaboteur(f, "t")
	// A note that is gone moves what lies behind it: translated offsets are
	// wrong, so this cannot pass.
	_, err := f.pair.Target.Sabotage(kafkatest.Sabotage{Damage: kafkatest.Drop, Topic: "t", Offset: 12, Shift: true})
	f.must(err)
	report := f.verify(verify.ModeFull)
	if report.Verdict != verify.Faults || report.Summary.Equal != 15 {
		t.Errorf("verdict %s, %+v, findings\n%s", report.Verdict, report.Summary, findings(report))
	}
	s.restore()
	// What a note says is there does not hide what happens to a copy beside it.
	_, err = f.pair.Target.Sabotage(kafkatest.Sabotage{Damage: kafkatest.Drop, Topic: "t", Offset: 9, Shift: true})
	f.must(err)
	expect(t, f.verify(verify.ModeFull), verify.Faults, `
		duplicate no fault t-0 source [8, 10) target [10, 12)
		missing t-0 source 9 target 9`)
	s.restore()
	expect(t, f.verify(verify.ModeFull), verify.Complete, `duplicate no fault t-0 source [8, 10) target [10, 12)`)
}

// TestAppendedTarget: a target topic that held records before the flow began.
// They are none of its business.
func TestAppendedTarget(t *testing.T) {
	f := newFlow(t, 1)
	f.created("t", 1, nil)
	f.plain(f.pair.Source, "t", 0, 10)
	f.must(f.pair.Target.CreateTopic(f.ctx, "t", 1, nil))
	f.plain(f.pair.Target, "t", 300, 7)
	f.copy(nil, "t")
	for _, mode := range []verify.Mode{verify.ModeFull, verify.ModeTarget} {
		report := f.verify(mode)
		expect(t, report, verify.Complete, "")
		if *report.Partitions[0].Target != (verify.Range{Start: 7, End: 17}) {
			t.Errorf("row is %+v", report.Partitions[0])
		}
	}
}

// TestScopeFromLater: a flow that began when the source had lost its first
// records, and one whose book begins at a later offset by choice.
func TestScopeFromLater(t *testing.T) {
	f := newFlow(t, 1)
	f.created("t", 1, nil)
	f.plain(f.pair.Source, "t", 0, 10)
	f.must(f.pair.Source.DeleteRecords("t", 0, 4))
	f.copy(nil, "t")
	report := f.verify(verify.ModeFull)
	expect(t, report, verify.Complete, "")
	if c := report.Summary.Counts; c.BeforeStart != 4 || c.Equal != 6 || c.SourceOffsets != 10 {
		t.Errorf("counts are %+v", c)
	}
}

// TestExtremeTimes: kgo keeps times in nanoseconds, which overflow for times
// that Kafka can hold.
func TestExtremeTimes(t *testing.T) {
	f := newFlow(t, 1)
	f.created("t", 1, nil)
	var batch kafkatest.Batch
	for i, timestamp := range []int64{-1, 0, 1, -62135596800000, 253402300799999, 9_300_000_000_000_000, -9_300_000_000_000_000, 1 << 56} {
		batch = kafkatest.NewBatch(0, kafkatest.BatchRecord{Timestamp: timestamp, Value: []byte{byte(i)}})
		batch.BaseTimestamp, batch.MaxTimestamp = timestamp, timestamp
		raw, err := batch.Encode()
		f.must(err)
		for _, c := range []*kafkatest.Cluster{f.pair.Source, f.pair.Target} {
			if c == f.pair.Target && i == 0 {
				f.must(c.CreateTopic(f.ctx, "t", 1, nil))
			}
			_, err = c.AppendBatch(f.ctx, "t", 0, raw)
			f.must(err)
		}
		hash := hashOf(&kafkatest.Record{Timestamp: timestamp, Value: []byte{byte(i)}})
		f.edit(func(l *ledger.Ledger) error {
			if i == 0 {
				_, err := l.OpenPairs([]ledger.Pair{{SourceTopic: "t", TargetTopic: "t", Producer: ledger.Producer{ID: 1}}})
				f.must(err)
			}
			pair := pairsOf(l, "t")[0]
			f.append(l, pair, ledger.Entry{Tile: ledger.Copied, Source: ledger.Range{Start: int64(i), End: int64(i) + 1}, Digest: naiveDigest([]uint64{hash})})
			return seen(l, pair, int64(i)+1)
		})
	}
	f.pair.Source.ForgetBadBatches() // kafkatest holds times before -1 for wrong headers
	f.pair.Target.ForgetBadBatches()
	for _, mode := range []verify.Mode{verify.ModeFull, verify.ModeTarget} {
		expect(t, f.verify(mode), verify.Complete, "")
	}
}
