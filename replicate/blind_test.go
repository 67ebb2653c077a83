package replicate_test

import (
	"fmt"
	"testing"

	"apograph/internal/kafkatest"
	"apograph/ledger"
	"apograph/replicate"
)

// restoredWithLess makes a flow whose ledger is an older one: it has copied 4
// records and the target holds 10, each a batch of its own, of which retention has
// deleted those below a target offset.
func restoredWithLess(t *testing.T, start int64, between func(*kafkatest.Pair)) (*kafkatest.Pair, replicate.Config) {
	t.Helper()
	pair, config := copiedBig(t, 4)
	older := copyFile(t, config.LedgerPath)
	between(pair)
	appendBig(t, pair, 4, 6)
	mustRun(t, config)
	mustDelete(t, pair.Target, "t", 0, start)
	config.LedgerPath = older
	return pair, config
}

// TestWhatIsGoneIsCopiedOnlyIfWhatFollowsIsEqual: the ledger is an older one, the
// source was cut and written again, and the target's retention has deleted a part
// of what stands behind the books. That it was ours is told by sequence numbers; that
// the source has it still is not, and it is not called copied: all that the source
// has is on the target in the end, or was.
func TestWhatIsGoneIsCopiedOnlyIfWhatFollowsIsEqual(t *testing.T) {
	nothing := func(*kafkatest.Pair) {}
	elect := func(pair *kafkatest.Pair) { mustLoseTail(t, pair.Source, 4) } // its end
	for _, start := range []int64{6, 9} {
		for _, cut := range []int64{5, 7} {
			for name, between := range map[string]func(*kafkatest.Pair){"one leader": nothing, "another leader": elect} {
				for _, more := range []int{1, 9} {
					t.Run(fmt.Sprintf("target from %d, source cut at %d, %d more, %s", start, cut, more, name), func(t *testing.T) {
						t.Parallel()
						goneAndCut(t, start, cut, more, between)
					})
				}
			}
		}
	}
}

func goneAndCut(t *testing.T, start, cut int64, more int, between func(*kafkatest.Pair)) {
	pair, config := restoredWithLess(t, start, between)
	mustLoseTail(t, pair.Source, cut)
	appendBig(t, pair, 100, more)
	s := mustRun(t, config)
	wantStop(t, s, replicate.StopSourceTruncated)
	order(t, config, ledger.Order{SourceTopic: "t", AcceptTruncated: true})
	if s = mustRun(t, config); !s.Complete || s.BadTiles > 0 {
		t.Errorf("accepted: %+v", s)
	}
	kafkatest.CheckLedgerAtEnd(t, config.LedgerPath)
	target := mustRead(t, pair.Target.Bootstrap, "t", 0)
	held := map[string]bool{}
	for _, r := range target {
		held[string(r.Value)] = true
	}
	for at, r := range mustRead(t, pair.Source.Bootstrap, "t", 0) {
		if at >= cut && !held[string(r.Value)] {
			t.Errorf("source offset %d is on no target", at)
		}
	}
	offline(t, config, func(book *ledger.Ledger) {
		if orders := book.Orders(); len(orders) != 0 {
			t.Errorf("orders %+v are left", orders)
		}
	})
}

// TestWhatIsGoneIsCopiedIfWhatFollowsIsEqual: the source was not cut. Nothing is
// copied again, whatever leaders there were.
func TestWhatIsGoneIsCopiedIfWhatFollowsIsEqual(t *testing.T) {
	for name, between := range map[string]func(*kafkatest.Pair){
		"one leader": func(*kafkatest.Pair) {}, "another leader": func(pair *kafkatest.Pair) { mustLoseTail(t, pair.Source, 4) },
	} {
		for _, start := range []int64{5, 6, 9} {
			t.Run(fmt.Sprintf("%s, target from %d", name, start), func(t *testing.T) {
				t.Parallel()
				pair, config := restoredWithLess(t, start, between)
				appendBig(t, pair, 10, 2)
				s := mustRun(t, config)
				if !s.Complete {
					t.Errorf("summary %+v", s)
				}
				wantTiles(t, s, map[ledger.Tile]int64{ledger.Copied: 8})
				proveNotes(t, pair, config.LedgerPath, map[ledger.Tile]int64{ledger.Copied: 12})
			})
		}
	}
}
