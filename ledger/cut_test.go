package ledger

import "testing"

// TestCutAt: a log's end cuts the books off at the first copied record that it
// lacks, never above a cut that there is.
func TestCutAt(t *testing.T) {
	l := mustCreate(t)
	id := lossyBooks(t, l) // source: 10 copied, 5 lost, 3 copied, 12 others, 4 copied
	for target, want := range map[int64]Cut{
		0: {0, 0}, 7: {7, 7}, 10: {15, 10}, 12: {17, 12}, 13: {30, 13}, 16: {33, 16}, 17: {34, 17}, 99: {34, 17},
	} {
		if got, err := l.CutAt(id, target); err != nil || got != want {
			t.Errorf("at %d: %+v, %v, want %+v", target, got, err, want)
		}
	}
	if err := l.ClosePair(id, Closing{Cut: &Cut{16, 11}}); err != nil {
		t.Fatal(err)
	}
	for target, want := range map[int64]Cut{10: {15, 10}, 11: {16, 11}, 12: {16, 11}, 99: {16, 11}} {
		if got, err := l.CutAt(id, target); err != nil || got != want {
			t.Errorf("below a cut, at %d: %+v, %v, want %+v", target, got, err, want)
		}
	}
	if _, err := l.CutAt(99, 0); err == nil {
		t.Error("there is no such pair")
	}
}

// TestCutOff: generations that begin lower in the same target topic cut off those
// before them, whether they were closed with a cut or not; those in another topic
// do not.
func TestCutOff(t *testing.T) {
	for _, closing := range []Closing{{}, {Cut: &Cut{32, 15}}} {
		l := mustCreate(t)
		first := lossyBooks(t, l)
		wantCut := func(id PairID, want *Cut) {
			t.Helper()
			for _, now := range []*Ledger{l, crashed(t, l)} {
				got, err := now.CutOff(id)
				if err != nil || (got == nil) != (want == nil) || got != nil && *got != *want {
					t.Errorf("pair %d: %+v, %v, want %+v", id, got, err, want)
				}
			}
		}
		wantCut(first, nil)
		again := func(closing Closing, scope, base int64, topic TopicID) PairID {
			t.Helper()
			open := l.Pairs()[len(l.Pairs())-1].ID
			next := nextOf(t, l, open)
			next.SourceTopicID, next.TargetTopicID, next.ScopeStart, next.TargetBase = TopicID{}, topic, scope, base
			id, err := l.Reopen(open, closing, next)
			if err != nil {
				t.Fatal(err)
			}
			return id
		}
		second := again(closing, 32, 17, TopicID{})
		wantCut(first, closing.Cut)
		mustAppend(t, l, second, copiedEntry(l.End(second), 4))
		mustCommit(t, l)
		third := again(Closing{Cut: &Cut{32, 17}}, 17, 12, TopicID{})
		wantCut(first, &Cut{17, 12})
		wantCut(second, &Cut{32, 17})
		wantCut(third, nil)
		again(Closing{}, 0, 0, TopicID{5}) // another target topic
		wantCut(first, &Cut{17, 12})
		wantCut(third, nil)
		reopen(t, l)
	}
}

// TestNotCutOff: a generation that begins lower in the same target topic, and did
// not follow a cut, is no reason to forget what the target has lost.
func TestNotCutOff(t *testing.T) {
	l := mustCreate(t)
	first := lossyBooks(t, l)
	next := nextOf(t, l, first)
	next.TargetTopicID, next.TargetBase = TopicID{}, 12
	if err := l.ClosePair(first, Closing{Reason: "topic_recreated"}); err != nil {
		t.Fatal(err)
	}
	if _, err := l.OpenPairs([]Pair{next}); err != nil {
		t.Fatal(err)
	}
	if cut, err := l.CutOff(first); err != nil || cut != nil {
		t.Errorf("cut off at %+v, %v", cut, err)
	}
	reopen(t, l)
}

// TestCutOffByTopicMadeAnew: a target topic that was made anew, and into which all
// was copied again, leaves nothing of any generation in the one before; one that
// begins above, or of another source topic, leaves them as they are.
func TestCutOffByTopicMadeAnew(t *testing.T) {
	for _, test := range []struct {
		name   string
		source TopicID
		start  int64
		cut    *Cut
		gone   bool
	}{
		{"copied again", TopicID{}, 0, &Cut{20, 17}, true},
		{"copied again from above", TopicID{}, 1, &Cut{20, 17}, false},
		{"another source topic", TopicID{7}, 0, &Cut{20, 17}, false},
		{"not cut off", TopicID{}, 0, nil, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			l := mustCreate(t)
			first := lossyBooks(t, l)
			next := nextOf(t, l, first)
			next.SourceTopicID, next.ScopeStart, next.TargetBase = TopicID{}, 20, 17
			second, err := l.Reopen(first, Closing{}, next)
			if err != nil {
				t.Fatal(err)
			}
			mustAppend(t, l, second, copiedEntry(l.End(second), 4))
			mustCommit(t, l)
			next.SourceTopicID, next.TargetTopicID, next.ScopeStart, next.TargetBase = test.source, TopicID{5}, test.start, 0
			if _, err := l.Reopen(second, Closing{Cut: test.cut}, next); err != nil {
				t.Fatal(err)
			}
			got, err := l.CutOff(first)
			if err != nil || (got != nil) != test.gone || got != nil && *got != (Cut{0, 0}) {
				t.Errorf("the first generation is cut off at %+v, %v", got, err)
			}
			if got, err = l.CutOff(second); err != nil || (got == nil) != (test.cut == nil) || got != nil && *got != *test.cut {
				t.Errorf("the second generation is cut off at %+v, %v, want %+v", got, err, test.cut)
			}
			reopen(t, l)
		})
	}
}

// TestLineageOverSourceCuts: over cuts of the source's log, each generation has what
// lies below the next one's start; the target goes on behind all that it has.
func TestLineageOverSourceCuts(t *testing.T) {
	l := mustCreate(t)
	id := lossyBooks(t, l) // source: 10 copied, 5 lost, 3 copied, 12 others, 4 copied
	mustBe := func(want ...Pair) {
		t.Helper()
		pair, _ := l.Pair(id)
		line, whole, err := l.Lineage(pair)
		if err != nil || !whole || len(line) != len(want) {
			t.Fatalf("%+v, %t, %v, want %+v", line, whole, err, want)
		}
		for i, p := range line {
			got, should := p.Closed, want[i].Closed
			if p.Generation != want[i].Generation || p.ScopeStart != want[i].ScopeStart || p.TargetBase != want[i].TargetBase ||
				(got == nil) != (should == nil) || got != nil && *got.Cut != *should.Cut {
				t.Errorf("%d: %+v, cut off at %+v, want %+v", i, p, got, want[i])
			}
		}
	}
	part := func(generation int32, scope, base int64, cut *Cut) Pair {
		p := Pair{Generation: generation, ScopeStart: scope, TargetBase: base}
		if cut != nil {
			p.Closed = &Closing{Cut: cut}
		}
		return p
	}
	cutSource := func(at int64) {
		t.Helper()
		next := nextOf(t, l, id)
		next.SourceTopicID, next.ScopeStart = TopicID{}, at
		var err error
		if id, err = l.Reopen(id, Closing{}, next); err != nil {
			t.Fatal(err)
		}
		mustAppend(t, l, id, copiedEntry(l.End(id), 10))
		mustCommit(t, l)
	}
	mustBe(part(1, 0, 0, nil))
	cutSource(33)
	mustBe(part(1, 0, 0, &Cut{33, 16}), part(2, 33, 17, nil))
	cutSource(40)
	mustBe(part(1, 0, 0, &Cut{33, 16}), part(2, 33, 17, &Cut{40, 24}), part(3, 40, 27, nil))
	cutSource(16) // below both
	mustBe(part(1, 0, 0, &Cut{16, 11}), part(4, 16, 37, nil))
	cutSource(12) // in what was lost
	mustBe(part(1, 0, 0, &Cut{12, 10}), part(5, 12, 47, nil))
	cutSource(0)
	mustBe(part(6, 0, 57, nil))
	reopen(t, l)
}
