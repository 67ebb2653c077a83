package replicate_test

import (
	"fmt"
	"testing"

	"apograph/internal/kafkatest"
	"apograph/ledger"
	"apograph/replicate"
)

// TestLedgerOfBeforeAGeneration: the ledger is put back from before the source was
// cut, or created again, and accepted as such. Accepted once more, what the newer
// ledger had copied is adopted, and nothing is copied twice; what others wrote in
// front of it or behind is named, and stops the partition before it goes on.
func TestLedgerOfBeforeAGeneration(t *testing.T) {
	for _, recreated := range []bool{false, true} {
		for _, foreign := range []string{"", "before", "behind"} {
			t.Run(fmt.Sprintf("recreated %v, foreign records %q", recreated, foreign), func(t *testing.T) {
				beforeAGeneration(t, recreated, foreign)
			})
		}
	}
}

func beforeAGeneration(t *testing.T, recreated bool, foreign string) {
	pair, config := copiedBig(t, 6)
	older := copyFile(t, config.LedgerPath)
	o, reason, start := ledger.Order{SourceTopic: "t", AcceptTruncated: true}, replicate.StopSourceTruncated, 4
	if recreated {
		mustRecreate(t, pair, 1)
		o, reason, start = ledger.Order{SourceTopic: "t", AcceptRecreated: true}, replicate.StopTopicRecreated, 0
	} else {
		mustLoseTail(t, pair.Source, 4)
	}
	appendBig(t, pair, 100, 5)
	if foreign == "before" {
		mustAppend(t, pair.Target.Bootstrap, numbered(900, 2)...)
		order(t, config, ledger.Order{SourceTopic: "t", TolerateForeign: true})
	}
	wantStop(t, mustRun(t, config), reason)
	order(t, config, o)
	if s := mustRun(t, config); !s.Complete {
		t.Errorf("summary %+v", s)
	}
	appendBig(t, pair, 105, 3)
	mustRun(t, config)
	if foreign == "behind" {
		mustAppend(t, pair.Target.Bootstrap, numbered(900, 2)...)
	}
	appendBig(t, pair, 108, 2)
	config.LedgerPath = older
	wantStop(t, mustRun(t, config), reason)
	order(t, config, o)
	want := map[ledger.Tile]int64{ledger.Copied: 6 + 10}
	if foreign != "" {
		want[ledger.Foreign] = 2
		s := mustRun(t, config)
		wantStop(t, s, replicate.StopForeignWriter)
		if s.Tiles[ledger.Copied] != 8 {
			t.Errorf("%d records are adopted, want the 8 that are there", s.Tiles[ledger.Copied])
		}
		order(t, config, ledger.Order{SourceTopic: "t"})
	}
	if s := mustRun(t, config); !s.Complete {
		t.Errorf("summary %+v", s)
	}
	proveNothingMissing(t, pair)
	kafkatest.CheckLedgerAtEnd(t, config.LedgerPath)
	offline(t, config, func(book *ledger.Ledger) {
		got, pairs := map[ledger.Tile]int64{}, book.Pairs()
		for _, p := range pairs {
			for e, err := range book.EntriesFromTarget(p.ID, 0) {
				if err != nil {
					t.Fatal(err)
				}
				got[e.Tile] += e.Target.Len()
			}
		}
		if got[ledger.Copied] != want[ledger.Copied] || got[ledger.Foreign] != want[ledger.Foreign] || len(pairs) != 2 || pairs[1].ScopeStart != int64(start) || pairs[1].TargetBase != 6 {
			t.Errorf("tiles of the target %v, want %v; pairs %+v", got, want, pairs)
		}
	})
}

// TestOlderLedgerThanACutWithForeignRecordsBehindIt: the ledger is older than a cut
// of the source that was accepted once, than what others wrote behind it, and than
// what was copied behind that. The cut is accepted once more, not twice: what was
// copied behind it is adopted, and not copied again.
func TestOlderLedgerThanACutWithForeignRecordsBehindIt(t *testing.T) {
	pair, config := copiedBig(t, 4)
	older := copyFile(t, config.LedgerPath)
	appendBig(t, pair, 4, 4)
	mustRun(t, config)
	mustLoseTail(t, pair.Source, 5)
	wantStop(t, mustRun(t, config), replicate.StopSourceTruncated)
	mustAppend(t, pair.Target.Bootstrap, numbered(900, 1)...)
	accept := ledger.Order{SourceTopic: "t", AcceptTruncated: true}
	order(t, config, accept)
	wantStop(t, mustRun(t, config), replicate.StopForeignWriter)
	order(t, config, ledger.Order{SourceTopic: "t"})
	mustRun(t, config)
	appendBig(t, pair, 100, 3)
	mustRun(t, config)
	config.LedgerPath = older
	wantStop(t, mustRun(t, config), replicate.StopSourceTruncated)
	order(t, config, accept)
	wantStop(t, mustRun(t, config), replicate.StopForeignWriter)
	order(t, config, ledger.Order{SourceTopic: "t"})
	if s := mustRun(t, config); !s.Complete {
		t.Errorf("summary %+v", s)
	}
	proveNotes(t, pair, config.LedgerPath, map[ledger.Tile]int64{ledger.Copied: 5 + 3, ledger.Orphan: 3, ledger.Foreign: 1})
	offline(t, config, func(book *ledger.Ledger) {
		if len(book.Orders()) != 0 || len(book.Stops()) != 0 {
			t.Errorf("orders %+v, stops %+v are left", book.Orders(), book.Stops())
		}
	})
}

// TestLedgerOfBeforeARecopy: the target lost more than an older ledger had copied,
// and a newer one's copier copied it again, in other batches. The older ledger goes
// on with it: what stands across its end is what its books say. It does not where
// somebody wrote anything else there.
func TestLedgerOfBeforeARecopy(t *testing.T) {
	for name, c := range map[string]struct {
		cut   int64
		other bool
	}{"a part": {cut: 3}, "all": {cut: 0}, "at a batch": {cut: 2}, "with other records in front": {cut: 2, other: true}} {
		t.Run(name, func(t *testing.T) {
			pair := stored(t)
			mustTopic(t, pair.Source, "t", nil)
			config := configFor(t, pair, "t")
			for i := range 4 {
				mustAppend(t, pair.Source.Bootstrap, numbered(i, 1)...)
				mustRun(t, config)
			}
			older := copyFile(t, config.LedgerPath)
			mustAppend(t, pair.Source.Bootstrap, numbered(4, 6)...)
			mustRun(t, config)
			mustLoseTail(t, pair.Target, c.cut)
			wantStop(t, mustRun(t, config), replicate.StopTargetLostRecords)
			order(t, config, ledger.Order{SourceTopic: "t", Recopy: true})
			mustRun(t, config)
			config.LedgerPath = older
			if c.other {
				mustLoseTail(t, pair.Target, c.cut)
				records := numbered(2, 8)
				records[0].Value = []byte("another")
				mustAppendBatch(t, pair, ours(t, ledger.Producer{ID: 7777}, 0, records))
				wantStop(t, mustRun(t, config), replicate.StopTargetLostRecords)
				kafkatest.CheckLedgerAtEnd(t, config.LedgerPath)
				return
			}
			mustAppend(t, pair.Source.Bootstrap, numbered(10, 3)...)
			for range 2 {
				if s := mustRun(t, config); !s.Complete {
					t.Errorf("summary %+v", s)
				}
			}
			proveNotes(t, pair, config.LedgerPath, map[ledger.Tile]int64{ledger.Copied: 13})
			proveNothingMissing(t, pair)
		})
	}
}
