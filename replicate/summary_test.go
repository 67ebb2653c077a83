package replicate_test

import (
	"testing"

	"apograph/ledger"
)

// TestAcceptedLossIsNoFault: what is lost makes a copy incomplete until a person
// accepts it; what is doubtful is told of until then, and changes nothing else.
func TestAcceptedLossIsNoFault(t *testing.T) {
	pair, config := copied(t, 10)
	mustAppend(t, pair.Source.Bootstrap, numbered(10, 10)...)
	mustDelete(t, pair.Source, "t", 0, 15)
	if s := mustRun(t, config); s.Complete || s.BadTiles != 5 || s.AcceptedTiles != 0 {
		t.Errorf("summary %+v", s)
	}
	doubt := ledger.Range{Start: 2, End: 4}
	offline(t, config, func(book *ledger.Ledger) {
		id := book.Pairs()[0].ID
		if err := book.SetDoubt(id, ledger.Doubt{Kind: ledger.StaleKeys, Range: doubt}); err != nil {
			t.Fatal(err)
		}
		if err := book.Accept(id, ledger.Acceptance{Range: ledger.Range{Start: 10, End: 15}, Reason: "known", By: "ann"}); err != nil {
			t.Fatal(err)
		}
	})
	s := mustRun(t, config)
	if !s.Complete || s.BadTiles != 0 || s.AcceptedTiles != 5 || len(s.Doubts) != 1 || s.Doubts[0].Range != doubt || s.Doubts[0].Kind != ledger.StaleKeys {
		t.Errorf("summary %+v", s)
	}
	offline(t, config, func(book *ledger.Ledger) {
		if err := book.Accept(book.Pairs()[0].ID, ledger.Acceptance{Range: doubt, Reason: "known"}); err != nil {
			t.Fatal(err)
		}
	})
	if s = mustRun(t, config); !s.Complete || len(s.Doubts) != 0 {
		t.Errorf("summary %+v", s)
	}
}
