package ledger

import (
	"slices"
	"strings"
	"testing"
)

// settled makes a pair whose partition has stopped and is under an order, beside
// others of which nothing may change.
func settled(t *testing.T, o Order) (*Ledger, PairID) {
	t.Helper()
	l := mustCreate(t)
	id := mustOpenPair(t, l, 0, 0)
	mustAppend(t, l, id, copiedEntry(l.End(id), 4))
	for _, n := range []int32{-1, 0, 1} {
		mustStop(t, l, Stop{SourceTopic: "orders", Partition: n, Reason: SourceTruncated, SinceMillis: 1})
		o.SourceTopic, o.Partition, o.AtMillis = "orders", n, 7
		if n != 0 {
			o.Skip = Range{}
		}
		mustOrder(t, l, o)
	}
	return l, id
}

// TestClosingSettles: with a pair ends, in the same commit, what was said of it
// alone; what a person said of its partition stays.
func TestClosingSettles(t *testing.T) {
	accepts := Order{AcceptRecreated: true, AcceptTruncated: true, Recopy: true, Reason: "known", By: "ann"}
	stays := Order{Paused: true, TolerateForeign: true, Reason: "known", By: "ann"}
	both := accepts
	both.Paused, both.TolerateForeign = true, true
	for name, tt := range map[string]struct {
		order Order
		left  *Order // of the partition; nil: none
	}{
		"what accepts a change ends":      {accepts, nil},
		"what holds for the next stays":   {stays, &stays},
		"of both, what holds":             {both, &stays},
		"an order about all of its topic": {Order{Recopy: true}, nil},
	} {
		for _, reopens := range []bool{true, false} {
			l, id := settled(t, tt.order)
			mustCommit(t, l)
			commits := l.last.number
			var err error
			if reopens {
				_, err = l.Reopen(id, Closing{Reason: "r"}, nextOf(t, l, id))
			} else {
				err = l.ClosePair(id, Closing{Reason: "r"})
			}
			if err != nil || l.last.number != commits+1 {
				t.Fatalf("%s: %d commits, %v", name, l.last.number-commits, err)
			}
			for _, now := range []*Ledger{l, crashed(t, l)} {
				if s := now.Stops(); len(s) != 2 || s[0].Partition != -1 || s[1].Partition != 1 {
					t.Errorf("%s: stops %+v", name, s)
				}
				var got *Order
				others := 0
				for _, o := range now.Orders() {
					if others++; o.Partition == 0 {
						got, others = &o, others-1
					}
				}
				if others != 2 || (got == nil) != (tt.left == nil) {
					t.Fatalf("%s: orders %+v", name, now.Orders())
				}
				if got != nil {
					want := *tt.left
					want.SourceTopic, want.AtMillis = "orders", 7
					if *got != want {
						t.Errorf("%s: order %+v, want %+v", name, *got, want)
					}
				}
			}
		}
	}
}

// TestSkipEndsWithItsPair: the offsets that were to be left out were the old
// pair's.
func TestSkipEndsWithItsPair(t *testing.T) {
	l, id := settled(t, Order{Skip: Range{4, 6}, Reason: "bad", TolerateForeign: true})
	if _, err := l.Reopen(id, Closing{}, nextOf(t, l, id)); err != nil {
		t.Fatal(err)
	}
	for _, o := range crashed(t, l).Orders() {
		if o.Skip != (Range{}) || !o.TolerateForeign {
			t.Errorf("order %+v", o)
		}
	}
}

// TestFailedClosingSettlesNothing: the pair is open, and so its stop and its order
// stand; a stop that was noted since is the one that stays.
func TestFailedClosingSettlesNothing(t *testing.T) {
	for _, stored := range []bool{true, false} {
		l, id := settled(t, Order{Recopy: true})
		if stored {
			mustCommit(t, l)
		}
		for i := range 300 { // more than the file has free pages for
			mustStop(t, l, Stop{SourceTopic: "t", Partition: int32(i), Reason: "r", Detail: strings.Repeat("x", maxText)})
		}
		before, orders := l.Stops(), l.Orders()
		l.db.MaxSize = 1
		if _, err := l.Reopen(id, Closing{}, nextOf(t, l, id)); err == nil {
			t.Fatal("a commit succeeds on a full disk")
		}
		l.db.MaxSize = 0
		if !slices.Equal(l.Stops(), before) || !slices.Equal(l.Orders(), orders) {
			t.Errorf("stops %+v, orders %+v", l.Stops()[:3], l.Orders())
		}
		mustCommit(t, l)
		if now := crashed(t, l); !slices.Equal(now.Stops(), before) || !slices.Equal(now.Orders(), orders) {
			t.Errorf("in the file: stops %+v, orders %+v", now.Stops()[:3], now.Orders())
		}
	}
}
