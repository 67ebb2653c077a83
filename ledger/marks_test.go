package ledger

import (
	"errors"
	"fmt"
	"slices"
	"testing"
)

// lossyBooks fills the books of a pair: copied [0, 10), lost [10, 15), copied
// [15, 18), unexplained [18, 20), compacted [20, 30), copied [30, 34).
func lossyBooks(t testing.TB, l *Ledger) PairID {
	t.Helper()
	id := mustOpenPair(t, l, 0, 0)
	for _, step := range []struct {
		tile Tile
		n    int64
	}{{Copied, 10}, {Lost, 5}, {Copied, 3}, {Unexplained, 2}, {Compacted, 10}, {Copied, 4}} {
		e := sourceEntry(step.tile, l.End(id), step.n)
		if step.tile == Copied {
			e = copiedEntry(l.End(id), step.n)
		}
		mustAppend(t, l, id, e)
	}
	mustCommit(t, l)
	return id
}

func mustAccept(t testing.TB, l *Ledger, id PairID, r Range, reason string) {
	t.Helper()
	if err := l.Accept(id, Acceptance{Range: r, Reason: reason, By: "ada", AtMillis: 5}); err != nil {
		t.Fatal(err)
	}
}

func mustDoubt(t testing.TB, l *Ledger, id PairID, r Range, at int64) {
	t.Helper()
	if err := l.SetDoubt(id, Doubt{Kind: StaleKeys, Range: r, AtMillis: at}); err != nil {
		t.Fatal(err)
	}
}

// marksOf returns all that is known beside a pair's entries, as a text.
func marksOf(l *Ledger, id PairID) string {
	text := ""
	for _, a := range l.Acceptances(id) {
		text += fmt.Sprintf("%v %s %s %d; ", a.Range, a.Reason, a.By, a.AtMillis)
	}
	text += fmt.Sprintf("unaccepted %d", l.Unaccepted(id))
	for _, d := range l.Doubts(id) {
		text += fmt.Sprintf("; doubt %v %v %d", d.Kind, d.Range, d.AtMillis)
	}
	for _, d := range l.UnacceptedDoubts(id) {
		text += fmt.Sprintf("; left %v", d.Range)
	}
	return text
}

func mustMark(t *testing.T, l *Ledger, id PairID, want string) {
	t.Helper()
	for name, now := range map[string]*Ledger{"now": l, "after a crash": crashed(t, l)} {
		if got := marksOf(now, id); got != want {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
	}
}

// TestAccept: what is accepted is durable at once, replaces what was said of the
// same offsets, and takes nothing back.
func TestAccept(t *testing.T) {
	l := mustCreate(t)
	id := lossyBooks(t, l)
	before := l.Totals(id)
	mustMark(t, l, id, "unaccepted 7")
	mustAccept(t, l, id, Range{10, 15}, "expired")
	mustMark(t, l, id, "[10, 15) expired ada 5; unaccepted 2")
	mustAccept(t, l, id, Range{18, 20}, "unknown")
	mustMark(t, l, id, "[10, 15) expired ada 5; [18, 20) unknown ada 5; unaccepted 0")
	mustAccept(t, l, id, Range{12, 13}, "again")
	mustMark(t, l, id, "[10, 12) expired ada 5; [12, 13) again ada 5; [13, 15) expired ada 5; [18, 20) unknown ada 5; unaccepted 0")
	mustAccept(t, l, id, Range{10, 15}, "all")
	mustMark(t, l, id, "[10, 15) all ada 5; [18, 20) unknown ada 5; unaccepted 0")
	commits := l.last.number
	mustAccept(t, l, id, Range{10, 15}, "all")
	if l.last.number != commits || l.Totals(id) != before {
		t.Error("accepting the same again writes, or an acceptance changes what the books hold")
	}
	// Accepted along with what is queued; what is lost later is not accepted.
	mustAppend(t, l, id, sourceEntry(Lost, l.End(id), 3))
	mustAccept(t, l, id, Range{35, 36}, "queued")
	mustMark(t, l, id, "[10, 15) all ada 5; [18, 20) unknown ada 5; [35, 36) queued ada 5; unaccepted 2")
	// Of a closed pair as well.
	if err := l.ClosePair(id, Closing{}); err != nil {
		t.Fatal(err)
	}
	mustAccept(t, l, id, Range{34, 37}, "closed")
	mustMark(t, l, id, "[10, 15) all ada 5; [18, 20) unknown ada 5; [34, 37) closed ada 5; unaccepted 0")
}

// TestAcceptOnlyWhatIsBad: an acceptance of what is not bad, nor in doubt, is
// refused and leaves nothing.
func TestAcceptOnlyWhatIsBad(t *testing.T) {
	l := mustCreate(t)
	id := lossyBooks(t, l)
	mustDoubt(t, l, id, Range{20, 30}, 7)
	for _, r := range []Range{{9, 15}, {10, 16}, {0, 1}, {10, 20}, {18, 31}, {33, 35}, {40, 41}, {10, 10}, {12, 11}, {-1, 3}} {
		if err := l.Accept(id, Acceptance{Range: r, Reason: "x"}); !breaks(lawAccepted)(err) {
			t.Errorf("accept %v: %v", r, err)
		}
	}
	long := string(make([]byte, maxText+1))
	for _, a := range []Acceptance{{Range: Range{10, 15}}, {Range: Range{10, 15}, Reason: long}, {Range: Range{10, 15}, Reason: "x", By: "\xff"},
		{Range: Range{10, 15}, Reason: "x", AtMillis: -1}} {
		if err := l.Accept(id, a); !breaks(lawAccepted)(err) {
			t.Errorf("accept %.40v: %v", a, err)
		}
	}
	if err := l.Accept(99, Acceptance{Range: Range{10, 15}, Reason: "x"}); !errors.Is(err, ErrNotFound) {
		t.Errorf("of no pair: %v", err)
	}
	mustMark(t, l, id, "unaccepted 7; doubt stale_keys_possible [20, 30) 7; left [20, 30)")
	// A bad tile and the doubt behind it, at once.
	mustAccept(t, l, id, Range{18, 25}, "both")
	mustMark(t, l, id, "[18, 25) both ada 5; unaccepted 5; doubt stale_keys_possible [20, 30) 7; left [25, 30)")
}

// TestDoubts: a doubt is durable with the next commit, is joined to those that it
// touches, and does not reach beyond the books.
func TestDoubts(t *testing.T) {
	l := mustCreate(t)
	id := lossyBooks(t, l)
	mustDoubt(t, l, id, Range{20, 22}, 9)
	if got := marksOf(crashed(t, l), id); got != "unaccepted 7" {
		t.Errorf("before a commit the file has %s", got)
	}
	mustCommit(t, l)
	mustMark(t, l, id, "unaccepted 7; doubt stale_keys_possible [20, 22) 9; left [20, 22)")
	mustDoubt(t, l, id, Range{26, 28}, 8)
	mustDoubt(t, l, id, Range{22, 24}, 10)
	mustCommit(t, l)
	mustMark(t, l, id, "unaccepted 7; doubt stale_keys_possible [20, 24) 9; doubt stale_keys_possible [26, 28) 8; left [20, 24); left [26, 28)")
	mustDoubt(t, l, id, Range{19, 27}, 11)
	mustCommit(t, l)
	mustMark(t, l, id, "unaccepted 7; doubt stale_keys_possible [19, 28) 8; left [19, 28)")
	commits := l.last.number
	mustDoubt(t, l, id, Range{20, 21}, 12)
	mustCommit(t, l)
	if l.last.number != commits {
		t.Error("what is in doubt already is written again")
	}
	for _, d := range []Doubt{{Range: Range{30, 35}}, {Range: Range{3, 3}}, {Range: Range{-1, 3}}, {Range: Range{1, 2}, Kind: 1}, {Range: Range{1, 2}, AtMillis: -1}} {
		if err := l.SetDoubt(id, d); !breaks(lawDoubts)(err) {
			t.Errorf("doubt %+v: %v", d, err)
		}
	}
	// Queued entries count, and are committed with it.
	mustAppend(t, l, id, copiedEntry(l.End(id), 2))
	mustDoubt(t, l, id, Range{33, 36}, 13)
	mustCommit(t, l)
	if got := crashed(t, l).Doubts(id); len(got) != 2 || got[1].Range != (Range{33, 36}) {
		t.Errorf("doubts %v", got)
	}
	if err := l.ClosePair(id, Closing{}); err != nil {
		t.Fatal(err)
	}
	if err := l.SetDoubt(id, Doubt{Range: Range{1, 2}}); !errors.Is(err, ErrPairClosed) {
		t.Errorf("of a closed pair: %v", err)
	}
}

// TestCut: a generation is closed where the target was cut off; what its books say
// from there on belongs to no count, and the next one starts there.
func TestCut(t *testing.T) {
	l := mustCreate(t)
	id := lossyBooks(t, l)
	mustAppend(t, l, id, targetEntry(Foreign, l.End(id), 3), copiedEntry(Position{34, 20, 17}, 2), sourceEntry(Lost, Position{36, 22, 19}, 4))
	mustCommit(t, l)
	mustDoubt(t, l, id, Range{20, 36}, 7)
	mustAccept(t, l, id, Range{10, 12}, "before")
	mustAppend(t, l, id, sourceEntry(Unexplained, l.End(id), 2)) // queued at the cut
	next := nextOf(t, l, id)
	next.TargetBase = 13
	for _, cut := range []Cut{{30, 12}, {31, 13}, {15, 9}, {34, 16}, {34, 21}, {35, 20}, {-1, 0}, {43, 22}, {42, 23}, {0, 1}} {
		next.ScopeStart = cut.Source
		if _, err := l.Reopen(id, Closing{Cut: &cut}, next); !breaks(lawCut)(err) {
			t.Errorf("cut at %+v: %v", cut, err)
		}
	}
	next.ScopeStart, next.SourceTopicID = 26, TopicID{}
	if _, err := l.Reopen(id, Closing{Cut: &Cut{25, 13}}, next); !breaks(lawCut)(err) {
		t.Errorf("the next one leaves something out: %v", err)
	}
	if p, _ := l.Pair(id); p.Closed != nil || l.End(id).Source != 42 {
		t.Fatalf("after refusals the pair is %+v", p)
	}
	cut := Cut{25, 13}
	next.ScopeStart = 25
	after, err := l.Reopen(id, Closing{Reason: "target_lost_records", Cut: &cut}, next)
	if err != nil {
		t.Fatal(err)
	}
	cut.Source = 99 // the caller's
	for _, now := range []*Ledger{l, crashed(t, l)} {
		p, _ := now.Pair(id)
		if p.Closed == nil || p.Closed.Cut == nil || *p.Closed.Cut != (Cut{25, 13}) || now.Committed(id).Source != 42 {
			t.Errorf("the old one is %+v", p)
		}
		p.Closed.Cut.Source = 99
		if got := now.Committed(after); got != (Position{25, 13, 0}) {
			t.Errorf("the new one starts at %+v", got)
		}
	}
	mustMark(t, l, id, "[10, 12) before ada 5; unaccepted 5; doubt stale_keys_possible [20, 36) 7; left [20, 36)")
	mustAppend(t, l, after, copiedEntry(l.End(after), 2))
	mustCommit(t, l)
	mustMark(t, l, id, "[10, 12) before ada 5; unaccepted 5; doubt stale_keys_possible [20, 36) 7; left [20, 25); left [27, 36)")
	mustAppend(t, l, after, copiedEntry(l.End(after), 9))
	mustCommit(t, l)
	mustMark(t, l, id, "[10, 12) before ada 5; unaccepted 5; doubt stale_keys_possible [20, 36) 7; left [20, 25)")
	for _, r := range []Range{{36, 40}, {24, 26}, {34, 36}} {
		if err := l.Accept(id, Acceptance{Range: r, Reason: "x"}); !breaks(lawAccepted)(err) {
			t.Errorf("accept %v beyond the cut: %v", r, err)
		}
	}
	mustAccept(t, l, id, Range{12, 15}, "after")
	mustAccept(t, l, id, Range{20, 25}, "doubt")
	mustMark(t, l, id, "[10, 12) before ada 5; [12, 15) after ada 5; [20, 25) doubt ada 5; unaccepted 2; doubt stale_keys_possible [20, 36) 7")
}

// TestDoubtBeyondCut: what the target lost of a generation stays in doubt until a
// later one has read the same source topic there again; somebody may accept it,
// also where bad tiles are in it, which belong to no count.
func TestDoubtBeyondCut(t *testing.T) {
	for _, test := range []struct {
		name string
		next func(p *Pair)
		read int64
		left string
	}{
		{"nothing is read again", func(p *Pair) { p.ScopeStart = 15 }, 0, "left [12, 30)"},
		{"some of it is", func(p *Pair) { p.ScopeStart = 15 }, 10, "left [12, 15); left [25, 30)"},
		{"all that was lost", func(p *Pair) { p.ScopeStart = 15 }, 30, "left [12, 15)"},
		{"from its beginning, and below", func(p *Pair) { p.ScopeStart = 3 }, 30, "left [12, 15)"},
		{"another source topic", func(p *Pair) { p.SourceTopicID = TopicID{9} }, 40, "left [12, 30)"},
	} {
		t.Run(test.name, func(t *testing.T) {
			l := mustCreate(t)
			id := lossyBooks(t, l)
			mustDoubt(t, l, id, Range{12, 30}, 7)
			next := nextOf(t, l, id)
			next.SourceTopicID, next.TargetBase = TopicID{}, 10
			test.next(&next)
			after, err := l.Reopen(id, Closing{Cut: &Cut{15, 10}}, next)
			if err != nil {
				t.Fatal(err)
			}
			if test.read > 0 {
				mustAppend(t, l, after, copiedEntry(l.End(after), test.read))
				mustCommit(t, l)
			}
			mustMark(t, l, id, "unaccepted 5; doubt stale_keys_possible [12, 30) 7; "+test.left)
			reopen(t, l)
		})
	}
	l := mustCreate(t)
	id := lossyBooks(t, l)
	mustDoubt(t, l, id, Range{17, 30}, 7)
	if err := l.ClosePair(id, Closing{Cut: &Cut{15, 10}}); err != nil {
		t.Fatal(err)
	}
	if err := l.Accept(id, Acceptance{Range: Range{30, 31}, Reason: "x"}); !breaks(lawAccepted)(err) {
		t.Errorf("accepted beyond the doubt: %v", err)
	}
	mustAccept(t, l, id, Range{18, 24}, "seen")
	mustMark(t, l, id, "[18, 24) seen ada 5; unaccepted 5; doubt stale_keys_possible [17, 30) 7; left [17, 18); left [24, 30)")
	mustAccept(t, l, id, Range{10, 15}, "lost")
	mustMark(t, l, id, "[10, 15) lost ada 5; [18, 24) seen ada 5; unaccepted 0; doubt stale_keys_possible [17, 30) 7; left [17, 18); left [24, 30)")
	reopen(t, l)
}

// TestCutOfAccepted: bad tiles beyond the cut that were accepted before are in no
// count, neither as accepted nor as not.
func TestCutOfAccepted(t *testing.T) {
	l := mustCreate(t)
	id := lossyBooks(t, l)
	mustAccept(t, l, id, Range{11, 15}, "long")
	if err := l.ClosePair(id, Closing{Cut: &Cut{13, 10}}); err != nil {
		t.Fatal(err)
	}
	// Bad below 13: 10, 11, 12, of which 11 and 12 are accepted.
	mustMark(t, l, id, "[11, 15) long ada 5; unaccepted 1")
	if err := l.Accept(id, Acceptance{Range: Range{12, 14}, Reason: "x"}); !breaks(lawAccepted)(err) {
		t.Errorf("accepted beyond the cut: %v", err)
	}
	mustAccept(t, l, id, Range{12, 13}, "split")
	mustMark(t, l, id, "[11, 12) long ada 5; [12, 13) split ada 5; [13, 15) long ada 5; unaccepted 1")
	// The generation that follows has to start at the cut or below, whenever it is opened.
	p := Pair{SourceTopic: "orders", TargetTopic: "orders", ScopeStart: 14, TargetBase: 10}
	if _, err := l.OpenPairs([]Pair{p}); !breaks(lawCut)(err) {
		t.Errorf("opened above the cut: %v", err)
	}
	p.ScopeStart = 13
	ids, err := l.OpenPairs([]Pair{p})
	if err != nil {
		t.Fatal(err)
	}
	// But not the one after that.
	p.ScopeStart = 0
	if _, err := l.Reopen(ids[0], Closing{Reason: "topic_recreated"}, p); err != nil {
		t.Error(err)
	}
	reopen(t, l)
}

// TestCaughtUp: when a copy was last caught up outlives a restart, and stays
// where it is not said again.
func TestCaughtUp(t *testing.T) {
	l := mustCreate(t)
	id := mustOpenPair(t, l, 0, 0)
	if got := l.State(id).CaughtUpMillis; got != -1 {
		t.Errorf("never: %d", got)
	}
	set := func(caughtUp, seen, high int64) {
		mustSetState(t, l, id, State{HighWatermark: high, SeenMillis: seen, CaughtUpMillis: caughtUp})
		mustCommit(t, l)
	}
	for i, want := range []struct{ caughtUp, seen, high, now, file int64 }{
		{0, 1, 3, -1, -1},
		{-1, 2, 4, -1, -1},
		{5000, 5000, 4, 5000, 5000},
		{6000, 6000, 4, 6000, 5000},
		{0, 6000, 4, 6000, 5000},
		{0, 6000, 5, 6000, 6000}, // with a bound that has changed
		{16000, 6000, 5, 16000, 16000},
	} {
		set(want.caughtUp, want.seen, want.high)
		if now, file := l.State(id).CaughtUpMillis, crashed(t, l).State(id).CaughtUpMillis; now != want.now || file != want.file {
			t.Errorf("step %d: %d, in the file %d, want %+v", i, now, file, want)
		}
	}
	for _, bad := range []int64{-2, maxMillis + 1} {
		if err := l.SetState(id, State{CaughtUpMillis: bad}); !breaks(lawState)(err) {
			t.Errorf("caught up at %d: %v", bad, err)
		}
	}
}

// TestMarksAfterFailure: a commit that fails leaves what was said to be
// committed, and nothing else.
func TestMarksAfterFailure(t *testing.T) {
	l := mustCreate(t)
	id := lossyBooks(t, l)
	mustDoubt(t, l, id, Range{20, 30}, 7)
	before := mustReadFile(t, l.path)
	l.db.MaxSize = 1
	mustAppend(t, l, id, sourceEntry(Lost, l.End(id), 1))
	if err := l.SeeTopics(manyTopics(20_000)); err == nil {
		t.Fatal("a commit succeeds on a full disk")
	}
	if err := l.Accept(id, Acceptance{Range: Range{10, 15}, Reason: "x"}); err == nil {
		l.db.MaxSize = 0
	}
	if !slices.Equal(before, mustReadFile(t, l.path)) && len(l.Acceptances(id)) == 0 {
		t.Error("the file was changed")
	}
	l.db.MaxSize = 0
	mustCommit(t, l)
	if got := crashed(t, l).Doubts(id); len(got) != 1 {
		t.Errorf("doubts %v", got)
	}
}
