package verify_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"apograph/internal/kafkatest"
	"apograph/ledger"
	"apograph/verify"
)

// lossy copies 10 records behind what a flow can lose: lost [0, 5), unexplained
// [5, 7).
func lossy(f *flow) {
	f.t.Helper()
	f.created("t", 1, nil)
	f.plain(f.pair.Source, "t", 0, 17)
	f.must(f.pair.Source.DeleteRecords("t", 0, 7))
	f.edit(func(l *ledger.Ledger) error {
		f.must(f.target.CreateTopic(f.ctx, "t", 1, nil))
		_, err := l.OpenPairs([]ledger.Pair{{
			SourceTopic: "t", SourceTopicID: f.topicID(f.source, "t"),
			TargetTopic: "t", TargetTopicID: f.topicID(f.target, "t"), Producer: ledger.Producer{ID: ourProducer},
		}})
		f.must(err)
		pair := pairsOf(l, "t")[0]
		f.append(l, pair, ledger.Entry{Tile: ledger.Lost, Source: ledger.Range{Start: 0, End: 5}, Cause: ledger.CauseRetention})
		f.append(l, pair, ledger.Entry{Tile: ledger.Unexplained, Source: ledger.Range{Start: 5, End: 7}})
		return nil
	})
	f.copy(nil, "t")
}

func (f *flow) accept(start, end int64) {
	f.t.Helper()
	f.edit(func(l *ledger.Ledger) error {
		return l.Accept(l.Pairs()[0].ID, ledger.Acceptance{Range: ledger.Range{Start: start, End: end}, Reason: "known", By: "ada", AtMillis: 1_700_000_000_000})
	})
}

// TestAcceptedLosses: a bad tile that somebody has accepted stays a finding and is
// no fault; all others are faults, to the offset.
func TestAcceptedLosses(t *testing.T) {
	f := newFlow(t, 31)
	lossy(f)
	modes := []verify.Mode{verify.ModeBooks, verify.ModeTarget, verify.ModeFull}
	check := func(verdict verify.Verdict, want string) {
		t.Helper()
		for _, mode := range modes {
			report := f.verify(mode)
			expect(t, report, verdict, want)
			if c := report.Summary; c.Lost != 5 || c.Unexplained != 2 || report.Partitions[0].Verdict != verdict {
				t.Errorf("mode %s: %+v", mode, report.Partitions[0])
			}
		}
	}
	check(verify.Faults, `
		lost(retention) t-0 source [0, 5) target [0, 0)
		unexplained t-0 source [5, 7) target [0, 0)`)
	f.accept(0, 3)
	check(verify.Faults, `
		lost(retention) no fault t-0 source [0, 3) target [0, 0)
		lost(retention) t-0 source [3, 5) target [0, 0)
		unexplained t-0 source [5, 7) target [0, 0)`)
	f.accept(4, 7)
	check(verify.Faults, `
		lost(retention) no fault t-0 source [0, 3) target [0, 0)
		lost(retention) t-0 source 3 target [0, 0)
		lost(retention) no fault t-0 source 4 target [0, 0)
		unexplained no fault t-0 source [5, 7) target [0, 0)`)
	f.accept(0, 7)
	check(verify.CompleteWithAcceptedLosses, `
		lost(retention) no fault t-0 source [0, 5) target [0, 0)
		unexplained no fault t-0 source [5, 7) target [0, 0)`)
	text, err := json.Marshal(f.verify(verify.ModeFull).Findings[0])
	f.must(err)
	if want := `"accepted":{"by":"ada","at":"2023-11-14T22:13:20.000Z","reason":"known"}`; !strings.Contains(string(text), want) || !strings.Contains(string(text), `"fault":false`) {
		t.Errorf("the finding is %s", text)
	}
	// Other faults, and what is not proven, weigh more.
	f.plain(f.pair.Source, "t", 17, 2)
	if got := f.verify(verify.ModeFull).Verdict; got != verify.Inconclusive {
		t.Errorf("behind: %s", got)
	}
	f.loseTail("t", 9)
	expect(t, f.verify(verify.ModeFull), verify.Faults, `
		lost(retention) no fault t-0 source [0, 5) target [0, 0)
		unexplained no fault t-0 source [5, 7) target [0, 0)
		missing t-0 source 16 target 9
		not_copied_yet(behind) no fault t-0 source [17, 19) target [10, 10)`)
}

// TestDoubtsInTheBooks: a doubt leaves the verdict open until somebody accepts it.
func TestDoubtsInTheBooks(t *testing.T) {
	f := newFlow(t, 32)
	lossy(f)
	f.accept(0, 7)
	f.edit(func(l *ledger.Ledger) error {
		return l.SetDoubt(l.Pairs()[0].ID, ledger.Doubt{Kind: ledger.StaleKeys, Range: ledger.Range{Start: 8, End: 12}})
	})
	losses := `
		lost(retention) no fault t-0 source [0, 5) target [0, 0)
		unexplained no fault t-0 source [5, 7) target [0, 0)`
	for _, mode := range []verify.Mode{verify.ModeBooks, verify.ModeTarget, verify.ModeFull} {
		expect(t, f.verify(mode), verify.Inconclusive, losses+`
			stale_keys_possible no fault t-0 source [8, 12) target`)
	}
	f.accept(9, 10)
	expect(t, f.verify(verify.ModeFull), verify.Inconclusive, losses+`
		stale_keys_possible no fault t-0 source 8 target
		stale_keys_possible no fault t-0 source 9 target
		stale_keys_possible no fault t-0 source [10, 12) target`)
	f.accept(8, 12)
	expect(t, f.verify(verify.ModeFull), verify.CompleteWithAcceptedLosses, losses+`
		stale_keys_possible no fault t-0 source [8, 12) target`)
}

// loseTail cuts the target's log anywhere: it is written anew, a record a batch.
func (f *flow) loseTail(topic string, end int64) {
	f.t.Helper()
	f.must(f.pair.Target.EditLog(topic, 0, func(l *kafkatest.Log) error {
		var single [][]byte
		for _, raw := range l.Batches {
			b, err := kafkatest.DecodeBatch(raw)
			if err != nil {
				return err
			}
			for i, r := range b.Records {
				one := kafkatest.NewBatch(b.BaseOffset+int64(i), r)
				if raw, err = one.Encode(); err != nil {
					return err
				}
				single = append(single, raw)
			}
		}
		l.Batches = single
		return nil
	}))
	f.must(f.pair.Target.LoseTail(topic, 0, end))
}

// cutFlow copies 60 records, cuts the target's log, and copies what is missing in
// a new generation, as a person orders it.
func cutFlow(t *testing.T, seed uint64, cut int64, apart bool) *flow {
	t.Helper()
	f := newFlow(t, seed)
	f.joined, f.apart = 13, apart
	f.created("t", 1, nil)
	f.plain(f.pair.Source, "t", 0, 60)
	f.copy(nil, "t")
	f.loseTail("t", cut)
	expect(t, f.verify(verify.ModeFull), verify.Faults, fmt.Sprintf("missing t-0 source %v target %v", &verify.Range{Start: cut, End: 60}, &verify.Range{Start: cut, End: 60}))
	if report := f.verify(verify.ModeTarget); report.Verdict != verify.Faults || report.Summary.Missing != 60-cut {
		t.Errorf("mode target: %s, %+v, findings\n%s", report.Verdict, report.Summary, findings(report))
	}
	f.edit(func(l *ledger.Ledger) error {
		old := pairsOf(l, "t")[0]
		next := old
		next.ID, next.Generation, next.ScopeStart, next.TargetBase = 0, 0, cut, cut
		_, err := l.Reopen(old.ID, ledger.Closing{Reason: "target_lost_records", Cut: &ledger.Cut{Source: cut, Target: cut}}, next)
		return err
	})
	f.copy(nil, "t")
	return f
}

// TestCutGeneration: a generation whose tail was copied again is read up to the
// cut, and both together prove all.
func TestCutGeneration(t *testing.T) {
	for _, cut := range []int64{0, 1, 22, 59} {
		for _, apart := range []bool{false, true} {
			t.Run(fmt.Sprintf("cut at %d, entries apart %t", cut, apart), func(t *testing.T) {
				f := cutFlow(t, uint64(cut)+40, cut, apart)
				report := f.verify(verify.ModeFull)
				expect(t, report, verify.Complete, "")
				old, now := report.Partitions[0], report.Partitions[1]
				if old.Source != (verify.Range{Start: 0, End: cut}) || old.Equal != cut || old.Copied != cut || old.SourceOffsets != cut ||
					*old.Target != (verify.Range{Start: 0, End: cut}) || now.Equal != 60-cut || now.BeforeStart != cut || report.Summary.AfterBook != 0 {
					t.Errorf("rows are %+v and %+v", old, now)
				}
				// The target alone cannot prove the part of an entry that is left of it.
				report = f.verify(verify.ModeTarget)
				torn := report.Partitions[0].NotVerified
				if apart && torn > 12 || torn > cut || report.Partitions[0].Equal != cut-torn || report.Partitions[1].Equal != 60-cut ||
					(report.Verdict == verify.Complete) != (torn == 0) {
					t.Errorf("mode target: %s, %+v, findings\n%s", report.Verdict, report.Partitions, findings(report))
				}
				report = f.verify(verify.ModeBooks)
				if c := report.Partitions[0]; c.Copied != cut || c.SourceOffsets != cut {
					t.Errorf("mode books: %+v", c)
				}
			})
		}
	}
}

// TestDamageBeforeCut: what is wrong below the cut is found in the old generation,
// to the offset.
func TestDamageBeforeCut(t *testing.T) {
	f := cutFlow(t, 50, 22, true)
	s := &saboteur{flow: f, topic: "t", end: 60}
	for o := range s.end + 1 {
		s.source = append(s.source, o)
	}
	f.must(f.pair.Target.EditLog("t", 0, func(l *kafkatest.Log) error {
		s.pristine = slices.Clone(l.Batches)
		return nil
	}))
	v := newVandal(s, false)
	for _, name := range []string{"missing", "first byte of the value", "swapped"} {
		for _, d := range catalogue() {
			if d.name != name {
				continue
			}
			for _, at := range []int64{0, 9, 20} {
				t.Run(fmt.Sprintf("%s at %d", name, at), func(t *testing.T) {
					want := v.spoil(damaged{d, at})
					report := v.verify(verify.ModeFull)
					if report.Verdict != verify.Faults || report.Partitions[0].Verdict != verify.Faults {
						t.Errorf("verdict %s, rows %+v", report.Verdict, report.Partitions)
					}
					if got := findings(report); !strings.Contains(got, strings.TrimSpace(want)+"\n") {
						t.Errorf("findings\n%swant %s", got, want)
					}
				})
			}
		}
	}
}

// TestCutGenerationOfOtherTopic: where a topic is another one by now, the books of
// a generation alone are read, as of any that is closed.
func TestCutGenerationOfOtherTopic(t *testing.T) {
	f := cutFlow(t, 51, 22, true)
	f.deleteTopic(f.pair.Target, "t")
	f.must(f.target.CreateTopic(f.ctx, "t", 1, nil))
	report := f.verify(verify.ModeFull)
	if row := report.Partitions[0]; row.NotVerified != 22 || row.Missing != 0 || row.Verdict != verify.Complete {
		t.Errorf("the old row is %+v", row)
	}
	if row := report.Partitions[1]; row.Missing != 38 || row.Verdict != verify.Faults {
		t.Errorf("the new row is %+v", row)
	}
}

// TestLossBeyondCut: bad tiles that the target's cut took with it are in no count;
// the next generation has its own.
func TestLossBeyondCut(t *testing.T) {
	f := newFlow(t, 52)
	lossy(f)
	f.edit(func(l *ledger.Ledger) error {
		old := pairsOf(l, "t")[0]
		f.append(l, old, ledger.Entry{Tile: ledger.Lost, Source: ledger.Range{Start: 17, End: 20}})
		next := old
		next.ID, next.Generation, next.ScopeStart, next.TargetBase = 0, 0, 15, 8
		_, err := l.Reopen(old.ID, ledger.Closing{Reason: "target_lost_records", Cut: &ledger.Cut{Source: 15, Target: 8}}, next)
		return err
	})
	f.accept(0, 7)
	f.loseTail("t", 8)
	f.copy(nil, "t")
	report := f.verify(verify.ModeFull)
	expect(t, report, verify.CompleteWithAcceptedLosses, `
		lost(retention) no fault t-0 source [0, 5) target [0, 0)
		unexplained no fault t-0 source [5, 7) target [0, 0)`)
	if c := report.Partitions[0]; c.Lost != 5 || c.Copied != 8 || c.SourceOffsets != 15 {
		t.Errorf("the old row is %+v", c)
	}
}

// again closes the open generation of t-0 and begins the next one.
func (f *flow) again(closing ledger.Closing, change func(next *ledger.Pair)) {
	f.t.Helper()
	f.edit(func(l *ledger.Ledger) error {
		pairs := pairsOf(l, "t")
		next := pairs[len(pairs)-1]
		old := next.ID
		next.ID, next.Generation = 0, 0
		change(&next)
		_, err := l.Reopen(old, closing, next)
		return err
	})
}

// TestCutBelowGeneration: the target has lost all of the open generation, and the
// end of the one before. That is missing, until a later generation has copied it
// again; then each is read up to where it still holds.
func TestCutBelowGeneration(t *testing.T) {
	for _, cut := range []int64{0, 9, 22} {
		t.Run(fmt.Sprint(cut), func(t *testing.T) {
			f := cutFlow(t, uint64(cut)+60, 30, true)
			f.loseTail("t", cut)
			report := f.verify(verify.ModeFull)
			if report.Verdict != verify.Faults || report.Summary.Missing != 60-cut {
				t.Errorf("verdict %s, %+v, findings\n%s", report.Verdict, report.Summary, findings(report))
			}
			f.again(ledger.Closing{Reason: "target_lost_records", Cut: &ledger.Cut{Source: 30, Target: 30}}, func(next *ledger.Pair) {
				next.ScopeStart, next.TargetBase = cut, cut
			})
			f.copy(nil, "t")
			report = f.verify(verify.ModeFull)
			expect(t, report, verify.Complete, "")
			for i, want := range []int64{cut, 0, 60 - cut} {
				if row := report.Partitions[i]; row.Equal != want || row.Copied != want {
					t.Errorf("generation %d: %+v, want %d", i+1, row, want)
				}
			}
		})
	}
}

// TestClosedGenerationThatTheTargetLost: a generation without a cut is closed, as
// the source was created again, and the target loses its end before anything else
// is copied. Nobody may say that all is well.
func TestClosedGenerationThatTheTargetLost(t *testing.T) {
	f := newFlow(t, 70)
	f.apart = true
	f.created("t", 1, nil)
	f.plain(f.pair.Source, "t", 0, 60)
	f.copy(nil, "t")
	f.deleteTopic(f.pair.Source, "t")
	f.created("t", 1, nil)
	f.again(ledger.Closing{Reason: "topic_recreated"}, func(next *ledger.Pair) {
		next.SourceTopicID, next.ScopeStart, next.TargetBase = f.topicID(f.source, "t"), 0, 60
	})
	report := f.verify(verify.ModeFull)
	expect(t, report, verify.Complete, "not_verified(not_read) no fault t-0 source [0, 60) target [0, 60)")
	f.loseTail("t", 45)
	for _, mode := range []verify.Mode{verify.ModeFull, verify.ModeTarget} {
		report = f.verify(mode)
		if row := report.Partitions[0]; report.Verdict != verify.Faults || row.Missing != 15 || row.NotVerified != 45 ||
			!strings.Contains(findings(report), "missing t-0 source [45, 60) target [45, 60)") {
			t.Errorf("mode %s: verdict %s, %+v, findings\n%s", mode, report.Verdict, row, findings(report))
		}
	}
}

// TestLostByARetiredPartition: the target has lost the end of a partition that left
// the flow. It stays missing when the partition is back and is copied from where
// the log ends, as nobody has accepted the loss and nobody copies it again.
func TestLostByARetiredPartition(t *testing.T) {
	f := newFlow(t, 73)
	f.apart = true
	f.created("t", 1, nil)
	f.plain(f.pair.Source, "t", 0, 60)
	f.copy(nil, "t")
	f.deleteTopic(f.pair.Source, "t")
	f.created("t", 1, nil)
	f.plain(f.pair.Source, "t", 1000, 30)
	var next ledger.Pair
	f.edit(func(l *ledger.Ledger) error {
		next = pairsOf(l, "t")[0]
		return l.ClosePair(next.ID, ledger.Closing{Reason: "topic_recreated"})
	})
	f.loseTail("t", 45)
	f.edit(func(l *ledger.Ledger) error {
		next.ID, next.Generation, next.Closed, next.TargetBase = 0, 0, nil, 45
		next.SourceTopicID = f.topicID(f.source, "t")
		_, err := l.OpenPairs([]ledger.Pair{next})
		return err
	})
	f.copy(nil, "t")
	for _, mode := range []verify.Mode{verify.ModeFull, verify.ModeTarget} {
		report := f.verify(mode)
		row, now := report.Partitions[0], report.Partitions[1]
		if report.Verdict != verify.Faults || row.Missing != 15 || row.NotVerified != 45 || now.Copied != 30 || now.Verdict != verify.Complete ||
			!strings.Contains(findings(report), "missing t-0 source [45, 60) target [45, 60)") {
			t.Errorf("mode %s: verdict %s, %+v, findings\n%s", mode, report.Verdict, report.Partitions, findings(report))
		}
	}
}

// TestCutGenerationOfCutSource: below the place where the target cut a generation
// off, the source was cut as well and goes on in another way. What the target
// holds of the old history is no fault.
func TestCutGenerationOfCutSource(t *testing.T) {
	f := newFlow(t, 71)
	f.apart = true
	f.created("t", 1, nil)
	f.plain(f.pair.Source, "t", 0, 60)
	f.copy(nil, "t")
	f.loseTail("t", 40)
	f.must(f.pair.Source.LoseTail("t", 0, 0))
	f.plain(f.pair.Source, "t", 1000, 50)
	f.again(ledger.Closing{Reason: "source_truncated", Cut: &ledger.Cut{Source: 40, Target: 40}}, func(next *ledger.Pair) {
		next.ScopeStart, next.TargetBase = 0, 40
	})
	f.copy(nil, "t")
	expect(t, f.verify(verify.ModeFull), verify.Complete, "not_verified(not_read) no fault t-0 source [0, 40) target [0, 40)")
}

// TestTargetMadeAnewAfterCut: a topic that was made anew, and into which all was
// copied again, is what the copy is; no earlier generation counts beside it.
func TestTargetMadeAnewAfterCut(t *testing.T) {
	f := cutFlow(t, 72, 22, true)
	f.deleteTopic(f.pair.Target, "t")
	f.must(f.target.CreateTopic(f.ctx, "t", 1, nil))
	f.again(ledger.Closing{Reason: "target_recreated", Cut: &ledger.Cut{Source: 22, Target: 22}}, func(next *ledger.Pair) {
		next.TargetTopicID, next.ScopeStart, next.TargetBase = f.topicID(f.target, "t"), 0, 0
	})
	f.copy(nil, "t")
	for _, mode := range []verify.Mode{verify.ModeFull, verify.ModeTarget} {
		report := f.verify(mode)
		expect(t, report, verify.Complete, "")
		if c := report.Summary; c.Copied != 60 || c.Equal != 60 {
			t.Errorf("mode %s: %+v", mode, report.Partitions)
		}
	}
}

// TestDoubtsBeyondCut: a doubt about what the target lost is there until the range
// has been read again; where the source topic is another one, until somebody
// accepts it.
func TestDoubtsBeyondCut(t *testing.T) {
	modes := []verify.Mode{verify.ModeBooks, verify.ModeTarget, verify.ModeFull}
	for _, recreated := range []bool{false, true} {
		f := newFlow(t, 73)
		f.apart = true
		f.created("t", 1, nil)
		f.plain(f.pair.Source, "t", 0, 60)
		f.copy(nil, "t")
		f.edit(func(l *ledger.Ledger) error {
			return l.SetDoubt(l.Pairs()[0].ID, ledger.Doubt{Kind: ledger.StaleKeys, Range: ledger.Range{Start: 40, End: 55}})
		})
		f.loseTail("t", 45)
		if recreated {
			f.deleteTopic(f.pair.Source, "t")
			f.created("t", 1, nil)
			f.plain(f.pair.Source, "t", 100, 70)
		}
		f.again(ledger.Closing{Reason: "a person said so", Cut: &ledger.Cut{Source: 45, Target: 45}}, func(next *ledger.Pair) {
			next.ScopeStart, next.TargetBase = 45, 45
			if recreated {
				next.SourceTopicID, next.ScopeStart = f.topicID(f.source, "t"), 0
			}
		})
		f.copy(nil, "t")
		want := &verify.Range{Start: 40, End: 45}
		if recreated {
			want.End = 55
		}
		doubts := func() (list []string) {
			for _, mode := range modes {
				report := f.verify(mode)
				for _, found := range report.Findings {
					if found.Kind == verify.StaleKeysPossible {
						list = append(list, fmt.Sprint(found.Source, report.Verdict, found.Accepted != nil))
					}
				}
			}
			return list
		}
		open := fmt.Sprint(want, verify.Inconclusive, false)
		if got := doubts(); !slices.Equal(got, []string{open, open, open}) {
			t.Errorf("created again %t: %v, want %s in all modes", recreated, got, open)
		}
		f.accept(want.Start, want.End)
		if got := doubts(); len(got) != 3 || slices.ContainsFunc(got, func(s string) bool { return !strings.HasSuffix(s, "true") }) ||
			f.verify(verify.ModeBooks).Verdict != verify.CompleteWithAcceptedLosses {
			t.Errorf("created again %t, accepted: %v", recreated, got)
		}
	}
}
