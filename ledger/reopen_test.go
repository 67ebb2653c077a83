package ledger

import (
	"errors"
	"runtime"
	"strings"
	"testing"
)

// nextOf returns an opening of the next generation of a pair.
func nextOf(t *testing.T, l *Ledger, id PairID) Pair {
	t.Helper()
	p, ok := l.Pair(id)
	if !ok {
		t.Fatalf("there is no pair %d", id)
	}
	return Pair{SourceTopic: p.SourceTopic, SourceTopicID: TopicID{9}, TargetTopic: p.TargetTopic, Partition: p.Partition,
		TargetBase: l.End(id).Target, Producer: Producer{ID: 77, Epoch: 2, Sequence: 5}}
}

// TestReopen: the next generation begins where the caller says, in the commit
// that ends the one before, with all that is queued.
func TestReopen(t *testing.T) {
	l := mustCreate(t)
	old := mustOpenPair(t, l, 0, 10)
	others, err := l.OpenPairs([]Pair{aPair("other", 0, "other")})
	if err != nil {
		t.Fatal(err)
	}
	mustAppend(t, l, old, copiedEntry(l.End(old), 4))
	mustAppend(t, l, others[0], copiedEntry(l.End(others[0]), 3))
	commits := l.last.number
	next := nextOf(t, l, old)
	next.ScopeStart = 6
	id, err := l.Reopen(old, Closing{Reason: "topic_recreated", AtMillis: startMillis}, next)
	if err != nil {
		t.Fatal(err)
	}
	if l.last.number != commits+1 {
		t.Errorf("%d commits", l.last.number-commits)
	}
	for _, now := range []*Ledger{l, crashed(t, l)} {
		p, _ := now.Pair(old)
		if p.Closed == nil || *p.Closed != (Closing{Reason: "topic_recreated", AtMillis: startMillis}) || p.Generation != 1 {
			t.Errorf("the old one is %+v", p)
		}
		if now.Committed(old) != (Position{4, 14, 4}) || now.Committed(others[0]) != (Position{3, 3, 3}) {
			t.Errorf("the books end at %+v and %+v", now.Committed(old), now.Committed(others[0]))
		}
		got, _ := now.Pair(id)
		want := next
		want.ID, want.Generation, want.OpenedMillis = id, 2, got.OpenedMillis
		if got != want || got.OpenedMillis < startMillis || now.End(id) != (Position{6, 14, 0}) {
			t.Errorf("the new one is %+v at %+v, want %+v", got, now.End(id), want)
		}
		if err := now.Append(old, copiedEntry(now.End(old), 1)); !errors.Is(err, ErrPairClosed) {
			t.Errorf("append to the old one: %v", err)
		}
		mustAppend(t, now, id, copiedEntry(now.End(id), 2))
		mustCommit(t, now)
		if e, err := now.FindSource(old, 3); err != nil || e.TargetOf(3) != 13 {
			t.Errorf("entries of the old one: %v, %v", e, err)
		}
	}
	// The target may be another one, which frees that of before.
	next = nextOf(t, l, id)
	next.TargetTopic, next.TargetBase, next.Generation = "elsewhere", 0, 7
	if _, err := l.Reopen(id, Closing{}, next); err != nil {
		t.Fatal(err)
	}
	if _, err := l.OpenPairs([]Pair{aPair("another", 0, "orders")}); err != nil {
		t.Errorf("the target of a closed pair: %v", err)
	}
	if got := len(reopen(t, l).Pairs()); got != 5 {
		t.Errorf("%d pairs", got)
	}
}

// TestReopenRefuses: all stays as it was, and the pair goes on.
func TestReopenRefuses(t *testing.T) {
	l := mustCreate(t)
	id := mustOpenPair(t, l, 0, 0)
	mustOpenPairs(t, l, aPair("orders", 1, "orders"), aPair("other", 0, "taken"))
	mustAppend(t, l, id, copiedEntry(l.End(id), 4))
	closed := mustOpenClosed(t, l)
	commits := l.last.number
	with := func(change func(*Pair)) Pair { p := nextOf(t, l, id); change(&p); return p }
	isClosed := func(err error) bool { return errors.Is(err, ErrPairClosed) }
	notFound := func(err error) bool { return errors.Is(err, ErrNotFound) }
	good := nextOf(t, l, id)
	for _, tt := range []struct {
		name   string
		id     PairID
		reason string
		next   Pair
		want   func(error) bool
	}{
		{"no such pair", 99, "", good, notFound},
		{"a closed pair", closed, "", nextOf(t, l, closed), isClosed},
		{"a long reason", id, strings.Repeat("x", maxText+1), good, breaks(lawClosing)},
		{"a reason as bytes", id, "\xff", good, breaks(lawClosing)},
		{"another topic", id, "", with(func(p *Pair) { p.SourceTopic = "new" }), breaks(lawOpening)},
		{"another partition", id, "", with(func(p *Pair) { p.Partition = 5 }), breaks(lawOpening)},
		{"a target that is open", id, "", with(func(p *Pair) { p.TargetTopic = "taken" }), isOpen},
		{"no target", id, "", with(func(p *Pair) { p.TargetTopic = "" }), breaks(lawOpening)},
		{"an id", id, "", with(func(p *Pair) { p.ID = 9 }), breaks(lawOpening)},
		{"closed from the start", id, "", with(func(p *Pair) { p.Closed = &Closing{} }), breaks(lawOpening)},
		{"records before the opening", id, "", with(func(p *Pair) { p.Producer.Appended = 4 }), breaks(lawOpening)},
		{"the same generation", id, "", with(func(p *Pair) { p.Generation = 1 }), breaks(lawGeneration)},
	} {
		if got, err := l.Reopen(tt.id, Closing{Reason: tt.reason}, tt.next); !tt.want(err) || got != 0 {
			t.Errorf("%s: %d, %v", tt.name, got, err)
		}
	}
	if l.last.number != commits || len(l.Pairs()) != 4 {
		t.Errorf("%d commits, %d pairs", l.last.number-commits, len(l.Pairs()))
	}
	mustAppend(t, l, id, copiedEntry(l.End(id), 1))
	mustCommit(t, l)
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := l.Reopen(id, Closing{}, good); !errors.Is(err, ErrClosed) {
		t.Errorf("of a closed ledger: %v", err)
	}
	reader, err := OpenCopy(l.path, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := reader.Reopen(id, Closing{}, good); !errors.Is(err, ErrReadOnly) {
		t.Errorf("of a ledger for reading: %v", err)
	}
	if err := reader.Close(); err != nil {
		t.Fatal(err)
	}
}

func mustOpenClosed(t *testing.T, l *Ledger) PairID {
	t.Helper()
	ids, err := l.OpenPairs([]Pair{aPair("gone", 0, "gone")})
	if err == nil {
		err = l.ClosePair(ids[0], Closing{})
	}
	if err != nil {
		t.Fatal(err)
	}
	return ids[0]
}

// TestReopenAfterAFailedCommit: the file has neither half, and the old pair goes
// on with what was queued; then both come at once.
func TestReopenAfterAFailedCommit(t *testing.T) {
	l := mustCreate(t)
	id := mustOpenPair(t, l, 0, 0)
	for range 2000 { // more than the file has free pages for
		e := copiedEntry(l.End(id), 2)
		e.LeaderEpoch = int32(l.End(id).Source / 2 % 2)
		mustAppend(t, l, id, e)
		mustStop(t, l, Stop{SourceTopic: "t", Partition: int32(l.End(id).Source), Reason: "r", Detail: strings.Repeat("x", maxText)})
	}
	end := l.End(id)
	next := nextOf(t, l, id)
	l.db.MaxSize = 1
	if _, err := l.Reopen(id, Closing{Reason: "recreated"}, next); err == nil {
		t.Fatal("a commit succeeds on a full disk")
	}
	for _, now := range []*Ledger{l, crashed(t, l)} {
		if p, _ := now.Pair(id); len(now.Pairs()) != 1 || p.Closed != nil || now.Committed(id) != (Position{}) {
			t.Errorf("%d pairs, closed %v, %+v", len(now.Pairs()), p.Closed, now.Committed(id))
		}
	}
	l.db.MaxSize = 0
	mustAppend(t, l, id, copiedEntry(l.End(id), 1))
	next.TargetBase = l.End(id).Target
	again, err := l.Reopen(id, Closing{Reason: "recreated"}, next)
	if err != nil {
		t.Fatal(err)
	}
	now := crashed(t, l)
	if got := now.Committed(id); got.Source != end.Source+1 || now.Committed(again).Target != got.Target {
		t.Errorf("the books end at %+v and %+v", got, now.Committed(again))
	}
}

// TestReopenWhileAppending: an entry is in the books that the closing ends, or
// was refused; and each generation begins on the target where the one before
// says.
func TestReopenWhileAppending(t *testing.T) {
	l := mustCreate(t)
	id := mustOpenPair(t, l, 0, 0)
	for range 20 {
		started, appended := make(chan struct{}), make(chan error)
		go func() {
			close(started)
			for {
				if err := l.Append(id, copiedEntry(l.End(id), 1)); err != nil {
					appended <- err
					return
				}
				runtime.Gosched()
			}
		}()
		<-started
		next, err := l.Reopen(id, Closing{}, nextOf(t, l, id))
		if err != nil {
			t.Fatal(err)
		}
		if err := <-appended; !errors.Is(err, ErrPairClosed) {
			t.Errorf("the last append: %v", err)
		}
		if got, want := l.Committed(id), l.End(id); got != want {
			t.Errorf("the books were closed at %+v, with entries up to %+v taken", got, want)
		}
		id = next
	}
	if p, _ := l.Pair(id); p.Generation != 21 {
		t.Errorf("generation %d", p.Generation)
	}
}
