package ledger

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
)

func aPair(source string, partition int32, target string) Pair {
	return Pair{SourceTopic: source, Partition: partition, TargetTopic: target}
}

// TestOpenPairsRefuses: all pairs are opened or none.
func TestOpenPairsRefuses(t *testing.T) {
	l := mustCreate(t)
	if _, err := l.OpenPairs([]Pair{aPair("orders", 0, "a.orders"), aPair("orders", 1, "a.orders")}); err != nil {
		t.Fatal(err)
	}
	with := func(change func(*Pair)) Pair { p := aPair("new", 0, "a.new"); change(&p); return p }
	tests := []struct {
		name string
		pair Pair
		want func(error) bool
	}{
		{"a source that is open", aPair("orders", 1, "b.orders"), isOpen},
		{"a target that is open", aPair("other", 1, "a.orders"), isOpen},
		{"no source topic", with(func(p *Pair) { p.SourceTopic = "" }), breaks(lawOpening)},
		{"no target topic", with(func(p *Pair) { p.TargetTopic = "" }), breaks(lawOpening)},
		{"a name that is too long", with(func(p *Pair) { p.TargetTopic = strings.Repeat("x", maxText+1) }), breaks(lawOpening)},
		{"a name that is not text", with(func(p *Pair) { p.TargetTopic = "\xff" }), breaks(lawOpening)},
		{"a partition below 0", with(func(p *Pair) { p.Partition = -1 }), breaks(lawOpening)},
		{"a scope below 0", with(func(p *Pair) { p.ScopeStart = -1 }), breaks(lawOpening)},
		{"a base below 0", with(func(p *Pair) { p.TargetBase = -1 }), breaks(lawOpening)},
		{"a generation below 0", with(func(p *Pair) { p.Generation = -1 }), breaks(lawOpening)},
		{"an id", with(func(p *Pair) { p.ID = 3 }), breaks(lawOpening)},
		{"closed", with(func(p *Pair) { p.Closed = &Closing{} }), breaks(lawOpening)},
		{"records before the opening", with(func(p *Pair) { p.Producer.Appended = 1 }), breaks(lawOpening)},
		{"a sequence below 0", with(func(p *Pair) { p.Producer.Sequence = -1 }), breaks(lawOpening)},
	}
	for _, tt := range tests {
		if ids, err := l.OpenPairs([]Pair{aPair("first", 0, "first"), tt.pair}); !tt.want(err) {
			t.Errorf("%s: %v, %v", tt.name, ids, err)
		}
	}
	if ids, err := l.OpenPairs([]Pair{aPair("x", 0, "x"), aPair("x", 0, "y")}); !isOpen(err) {
		t.Errorf("one source twice: %v, %v", ids, err)
	}
	if ids, err := l.OpenPairs([]Pair{aPair("x", 0, "x"), aPair("y", 0, "x")}); !isOpen(err) {
		t.Errorf("one target twice: %v, %v", ids, err)
	}
	if got := len(l.Pairs()); got != 2 {
		t.Errorf("%d pairs after refused openings, want 2", got)
	}
	l = reopen(t, l)
	if got := len(l.Pairs()); got != 2 {
		t.Errorf("%d pairs in the file after refused openings, want 2", got)
	}
	if ids, err := l.OpenPairs(nil); len(ids) != 0 || err != nil {
		t.Errorf("opening nothing: %v, %v", ids, err)
	}
}

func isOpen(err error) bool { return errors.Is(err, ErrPairOpen) }

func breaks(law string) func(error) bool {
	return func(err error) bool {
		var broken *LawError
		return errors.As(err, &broken) && broken.Law == law
	}
}

// TestOpeningIsDurable: what an opening says is there after a restart, with the
// before_start tile and the entries of others that were queued.
func TestOpeningIsDurable(t *testing.T) {
	l := mustCreate(t)
	first := mustOpenPair(t, l, 0, 0)
	mustAppend(t, l, first, copiedEntry(l.End(first), 4))
	want := Pair{
		SourceTopic: "pay", SourceTopicID: TopicID{1, 2, 3}, TargetTopic: "a.pay", TargetTopicID: TopicID{4},
		Partition: 7, ScopeStart: 100, TargetBase: 50, Producer: Producer{ID: 1 << 40, Epoch: 3, Sequence: 1<<31 - 1},
	}
	ids, err := l.OpenPairs([]Pair{want})
	if err != nil {
		t.Fatal(err)
	}
	l = reopen(t, l)
	if got := l.Committed(first).Source; got != 4 {
		t.Errorf("queued entries are committed to %d, want 4", got)
	}
	got, ok := l.Pair(ids[0])
	want.ID, want.Generation, want.OpenedMillis = ids[0], 1, got.OpenedMillis
	if !ok || got != want || got.OpenedMillis < startMillis {
		t.Errorf("Pair = %+v, want %+v", got, want)
	}
	entries := mustCollect(t, l.Entries(ids[0], 0))
	if len(entries) != 1 || entries[0].Tile != BeforeStart || entries[0].Source != (Range{0, 100}) || entries[0].Target != (Range{50, 50}) {
		t.Errorf("entries = %v, want before_start to 100", entries)
	}
	if got := l.End(ids[0]); got != (Position{Source: 100, Target: 50}) {
		t.Errorf("End = %+v", got)
	}
}

// TestClosing: a generation ends where its books do, for ever.
func TestClosing(t *testing.T) {
	l := mustCreate(t)
	id := mustOpenPair(t, l, 0, 0)
	mustAppend(t, l, id, copiedEntry(l.End(id), 4)) // queued, and committed with the closing
	if err := l.ClosePair(id, Closing{Reason: strings.Repeat("x", maxText+1)}); !breaks(lawClosing)(err) {
		t.Errorf("a reason that is too long: %v", err)
	}
	if err := l.ClosePair(id, Closing{Reason: "topic_recreated"}); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		for what, err := range map[string]error{
			"Append":      l.Append(id, copiedEntry(l.End(id), 1)),
			"SetState":    l.SetState(id, unknownState()),
			"SetProducer": l.SetProducer(id, Producer{Appended: 4}),
			"ClosePair":   l.ClosePair(id, Closing{}),
		} {
			if !errors.Is(err, ErrPairClosed) {
				t.Errorf("%s of a closed pair: %v", what, err)
			}
		}
		p, _ := l.Pair(id)
		if p.Closed == nil || p.Closed.Reason != "topic_recreated" || p.Closed.AtMillis < startMillis {
			t.Errorf("closing = %+v", p.Closed)
		}
		p.Closed.Reason = "changed by the caller"
		if p, _ := l.Pair(id); p.Closed.Reason != "topic_recreated" {
			t.Error("a caller changed why the pair was closed")
		}
		if e, err := l.FindSource(id, 3); err != nil || e.Records() != 4 {
			t.Errorf("entries of a closed pair: %v, %v", e, err)
		}
		l = reopen(t, l)
	}
	if err := l.ClosePair(99, Closing{}); !errors.Is(err, ErrNotFound) {
		t.Errorf("ClosePair of an unknown pair: %v", err)
	}
}

// TestClosingWhileAppending: an entry is in the books that the closing ends, or
// it was refused.
func TestClosingWhileAppending(t *testing.T) {
	l := mustCreate(t)
	for range 20 {
		id := mustOpenPair(t, l, 0, 0)
		started, appended := make(chan struct{}), make(chan error)
		go func() {
			close(started)
			for {
				if err := l.Append(id, copiedEntry(l.End(id), 1)); err != nil {
					appended <- err
					return
				}
			}
		}()
		<-started
		if err := l.ClosePair(id, Closing{}); err != nil {
			t.Fatal(err)
		}
		if err := <-appended; !errors.Is(err, ErrPairClosed) {
			t.Errorf("the last append: %v", err)
		}
		if got, want := l.Committed(id), l.End(id); got != want {
			t.Errorf("the books were closed at %+v, with entries up to %+v taken", got, want)
		}
	}
}

// TestGenerations: each opening of a source partition is a generation, with
// books of its own.
func TestGenerations(t *testing.T) {
	l := mustCreate(t)
	var last PairID
	for generation := int32(1); generation <= 3; generation++ {
		id := mustOpenPair(t, l, 0, int64(generation)*10)
		p, _ := l.Pair(id)
		if p.Generation != generation || id <= last {
			t.Errorf("pair %d has generation %d, want %d", id, p.Generation, generation)
		}
		last = id
		mustAppend(t, l, id, copiedEntry(l.End(id), int64(generation)))
		if err := l.ClosePair(id, Closing{Reason: "recreated"}); err != nil {
			t.Fatal(err)
		}
	}
	p := aPair("orders", 0, "orders")
	for _, generation := range []int32{1, 3} {
		p.Generation = generation
		if _, err := l.OpenPairs([]Pair{p}); !breaks(lawGeneration)(err) {
			t.Errorf("generation %d again: %v", generation, err)
		}
	}
	p.Generation = 9
	if _, err := l.OpenPairs([]Pair{p, aPair("orders", 1, "orders")}); err != nil {
		t.Error(err)
	}
	var order []string
	for _, p := range reopen(t, l).Pairs() {
		order = append(order, fmt.Sprintf("%s-%d %d", p.SourceTopic, p.Partition, p.Generation))
	}
	want := []string{"orders-0 1", "orders-0 2", "orders-0 3", "orders-0 9", "orders-1 1"}
	if !slices.Equal(order, want) {
		t.Errorf("pairs are in order %q, want %q", order, want)
	}
}

// TestUnknownPair: answers about a pair that there is not claim nothing.
func TestUnknownPair(t *testing.T) {
	l := mustCreate(t)
	if _, ok := l.Pair(1); ok {
		t.Error("there is a pair 1")
	}
	if l.End(1) != (Position{}) || l.Committed(1) != (Position{}) || l.Totals(1) != (Totals{}) || l.State(1) != unknownState() || l.Producers(1) != nil {
		t.Error("an unknown pair has something")
	}
	if _, err := l.FindSource(1, 0); !errors.Is(err, ErrNotFound) {
		t.Error(err)
	}
	for _, entries := range []func() (int, error){
		func() (n int, err error) {
			for _, err = range l.Entries(1, 0) {
				n++
			}
			return n, err
		},
		func() (n int, err error) {
			for _, err = range l.EntriesFromTarget(1, 5) {
				n++
			}
			return n, err
		},
	} {
		if n, err := entries(); n != 1 || !errors.Is(err, ErrNotFound) {
			t.Errorf("%d entries, %v", n, err)
		}
	}
}

// TestScope: what a flow was started with last is in the file at once.
func TestScope(t *testing.T) {
	l := mustCreate(t)
	if got := l.Scope(); !got.equal(Scope{}) {
		t.Errorf("the scope of a new ledger is %+v", got)
	}
	topics := []string{"orders", "pay.*"}
	want := Scope{Topics: topics, TopicsExclude: []string{"pay-test"}}
	if err := l.SetScope(want); err != nil {
		t.Fatal(err)
	}
	topics[0] = "changed by the caller"
	want.Topics = []string{"orders", "pay.*"}
	l.Scope().TopicsExclude[0] = "changed by another caller"
	if got := l.Scope(); !got.equal(want) {
		t.Errorf("the scope is %+v, want %+v", got, want)
	}
	l = reopen(t, l)
	if got := l.Scope(); !got.equal(want) {
		t.Errorf("the scope is %+v, want %+v", got, want)
	}
	before := mustReadFile(t, l.path)
	if err := l.SetScope(want); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(before, mustReadFile(t, l.path)) {
		t.Error("setting the same scope again changed the file")
	}
	for _, p := range []string{"\xff", strings.Repeat("x", maxPattern+1)} {
		if err := l.SetScope(Scope{TopicsExclude: []string{p}}); !breaks(lawEncoding)(err) {
			t.Errorf("a pattern of %d bytes: %v", len(p), err)
		}
	}
	long := Scope{Topics: []string{strings.Repeat("x", maxPattern)}}
	if err := l.SetScope(long); err != nil {
		t.Fatal(err)
	}
	if got := reopen(t, l).Scope(); !got.equal(long) {
		t.Errorf("a long pattern came back with %d bytes", len(got.Topics[0]))
	}
}
