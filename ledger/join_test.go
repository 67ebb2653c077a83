package ledger

import (
	"errors"
	"slices"
	"testing"
)

// TestJoining appends entries one by one in one commit, and looks at what the
// books hold afterwards.
func TestJoining(t *testing.T) {
	copied := func(n, bytes int64) func(Position) Entry {
		return func(at Position) Entry { e := copiedEntry(at, n); e.Bytes = bytes; return e }
	}
	with := func(make func(Position) Entry, change func(*Entry)) func(Position) Entry {
		return func(at Position) Entry { e := make(at); change(&e); return e }
	}
	source := func(tile Tile, n int64) func(Position) Entry {
		return func(at Position) Entry { return sourceEntry(tile, at, n) }
	}
	target := func(tile Tile, n int64) func(Position) Entry {
		return func(at Position) Entry { return targetEntry(tile, at, n) }
	}
	otherEpoch := func(e *Entry) { e.LeaderEpoch = 8 }
	noEpoch := func(e *Entry) { e.LeaderEpoch = -1 }

	tests := []struct {
		name    string
		entries []func(Position) Entry
		want    []int64 // offsets, of both axes, of each entry in the books
		gaps    []int   // of each entry
	}{
		{"two batches", []func(Position) Entry{copied(3, 300), copied(4, 400)}, []int64{14}, []int{0}},
		{"up to 64 KiB", []func(Position) Entry{copied(3, 65000), copied(4, 536)}, []int64{14}, []int{0}},
		{"one byte more", []func(Position) Entry{copied(3, 65000), copied(4, 537)}, []int64{6, 8}, []int{0, 0}},
		{"a large one stays alone", []func(Position) Entry{copied(3, 100_000), copied(4, 0), copied(4, 1)}, []int64{6, 16}, []int{0, 0}},
		{"another leader epoch", []func(Position) Entry{copied(3, 1), with(copied(4, 1), otherEpoch)}, []int64{6, 8}, []int{0, 0}},
		{"replaced timestamps", []func(Position) Entry{copied(3, 1),
			with(copied(4, 1), func(e *Entry) { e.TimestampsReplaced = true })}, []int64{6, 8}, []int{0, 0}},
		{"a marker behind a run", []func(Position) Entry{copied(3, 1), source(CommitMarker, 1)}, []int64{7}, []int{1}},
		{"markers between runs", []func(Position) Entry{copied(3, 1), source(CommitMarker, 1), copied(2, 1), source(AbortMarker, 1)},
			[]int64{12}, []int{2}},
		{"gaps of one kind are one", []func(Position) Entry{copied(1, 1), source(Aborted, 2), source(Aborted, 3), source(AbortMarker, 1)},
			[]int64{8}, []int{2}},
		{"a marker before a run", []func(Position) Entry{source(CommitMarker, 1), copied(3, 1)}, []int64{1, 6}, []int{0, 0}},
		{"a marker of another epoch", []func(Position) Entry{copied(3, 1), with(source(CommitMarker, 1), otherEpoch)}, []int64{6, 1}, []int{0, 0}},
		{"compacted, seen by no batch", []func(Position) Entry{copied(3, 1), with(source(Compacted, 5), noEpoch), copied(1, 1)},
			[]int64{13}, []int{1}},
		{"a gap with a reason", []func(Position) Entry{copied(3, 1),
			with(source(Compacted, 5), func(e *Entry) { e.Reason = "seen" })}, []int64{6, 5}, []int{0, 0}},
		{"tiles of one kind", []func(Position) Entry{source(Aborted, 2), source(Aborted, 3)}, []int64{5}, []int{0}},
		{"tiles of one kind and two epochs", []func(Position) Entry{source(Aborted, 2), with(source(Aborted, 3), otherEpoch)}, []int64{2, 3}, []int{0, 0}},
		{"tiles of two kinds", []func(Position) Entry{source(Aborted, 2), source(AbortMarker, 1)}, []int64{2, 1}, []int{0, 0}},
		{"lost stays alone", []func(Position) Entry{copied(1, 1), source(Lost, 2), source(Lost, 3), copied(1, 1)}, []int64{2, 2, 3, 2}, []int{0, 0, 0, 0}},
		{"unexplained stays alone", []func(Position) Entry{source(Unexplained, 2), source(Unexplained, 3)}, []int64{2, 3}, []int{0, 0}},
		{"filtered stays alone", []func(Position) Entry{source(Filtered, 2), source(Filtered, 3)}, []int64{2, 3}, []int{0, 0}},
		{"notes stay alone", []func(Position) Entry{target(Foreign, 2), target(Foreign, 3), target(Orphan, 1), target(Orphan, 1)},
			[]int64{2, 3, 1, 1}, []int{0, 0, 0, 0}},
		{"a note parts runs", []func(Position) Entry{copied(1, 1), target(Foreign, 1), copied(1, 1)}, []int64{2, 1, 2}, []int{0, 0, 0}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			l := mustCreate(t)
			id := mustOpenPair(t, l, 0, 50)
			var hashes []uint64
			for _, next := range tt.entries {
				e := next(l.End(id))
				mustAppend(t, l, id, e)
				for r := range e.Runs() {
					for offset := r.Source.Start; r.Tile == Copied && offset < r.Source.End; offset++ {
						hashes = append(hashes, hashOf(offset))
					}
				}
			}
			mustCommit(t, l)
			compareJoined(t, mustCollect(t, l.Entries(id, 0)), tt.want, tt.gaps, hashes)
		})
	}
}

func compareJoined(t *testing.T, got []Entry, want []int64, gaps []int, hashes []uint64) {
	t.Helper()
	var offsets []int64
	var gapCounts []int
	for i := range got {
		offsets = append(offsets, got[i].Source.Len()+got[i].Target.Len())
		gapCounts = append(gapCounts, len(got[i].Gaps))
		n := got[i].Records()
		if got[i].Digest != naiveDigest(hashes[:n]) {
			t.Errorf("entry %d has another digest than its %d records", i+1, n)
		}
		hashes = hashes[n:]
	}
	if !slices.Equal(offsets, want) || !slices.Equal(gapCounts, gaps) {
		t.Errorf("entries of %v offsets with %v gaps, want %v with %v", offsets, gapCounts, want, gaps)
	}
}

// TestJoiningEndsWithTheCommit: what one commit made durable no later one
// changes.
func TestJoiningEndsWithTheCommit(t *testing.T) {
	l := mustCreate(t)
	id := mustOpenPair(t, l, 0, 0)
	for range 3 {
		mustAppend(t, l, id, copiedEntry(l.End(id), 1))
		mustCommit(t, l)
	}
	if got := mustCollect(t, l.Entries(id, 0)); len(got) != 3 {
		t.Errorf("three commits have %d entries, want 3", len(got))
	}
}

// TestJoiningBoundsGaps: an entry does not grow without end by markers.
func TestJoiningBoundsGaps(t *testing.T) {
	l := mustCreate(t)
	id := mustOpenPair(t, l, 0, 0)
	const n = 2*joinGaps + 10
	for range n {
		e := copiedEntry(l.End(id), 1)
		e.Bytes = 0
		mustAppend(t, l, id, e)
		mustAppend(t, l, id, sourceEntry(CommitMarker, l.End(id), 1))
	}
	mustCommit(t, l)
	for _, e := range mustCollect(t, l.Entries(id, 0)) {
		if len(e.Gaps) > joinGaps {
			t.Errorf("an entry has %d gaps, want %d at most", len(e.Gaps), joinGaps)
		}
	}
	if got := l.Totals(id); got.Tiles[CommitMarker] != n || got.Tiles[Copied] != n {
		t.Errorf("totals = %v, want %d records and markers", got, n)
	}
}

// TestAppendKeepsNoReferences: a caller may use its slices again.
func TestAppendKeepsNoReferences(t *testing.T) {
	l := mustCreate(t)
	id := mustOpenPair(t, l, 0, 0)
	gaps := []Gap{{CommitMarker, Range{1, 2}}}
	mustAppend(t, l, id, Entry{Tile: Copied, Source: Range{0, 3}, Target: Range{0, 2}, Gaps: gaps})
	gaps[0] = Gap{Aborted, Range{2, 3}}
	mustCommit(t, l)
	e, err := l.FindSource(id, 0)
	if err != nil || e.Gaps[0] != (Gap{CommitMarker, Range{1, 2}}) {
		t.Fatalf("FindSource = %v, %v", e, err)
	}
	e.Gaps[0].Tile = Aborted
	if again, err := l.FindSource(id, 0); err != nil || again.Gaps[0].Tile != CommitMarker {
		t.Errorf("a change of what was returned changed the ledger: %v, %v", again, err)
	}
}

// TestAppendRefuses: nothing that would leave a hole or an overlap is queued,
// nor any part of it.
func TestAppendRefuses(t *testing.T) {
	l := mustCreate(t)
	id := mustOpenPair(t, l, 10, 5)
	mustAppend(t, l, id, copiedEntry(l.End(id), 10))
	end := l.End(id)
	move := func(source, target int64) Entry {
		return copiedEntry(Position{Source: end.Source + source, Target: end.Target + target}, 2)
	}
	holes := map[string][]Entry{
		"a hole in the source":          {move(1, 0)},
		"an overlap in the source":      {move(-1, 0)},
		"a hole in the target":          {move(0, 1)},
		"an overlap in the target":      {move(0, -1)},
		"a note that is not at the end": {targetEntry(Foreign, Position{Source: end.Source - 1, Target: end.Target}, 1)},
		"the second one":                {move(0, 0), move(3, 2)},
		"the first one again":           {move(0, 0), move(0, 0)},
	}
	for name, entries := range holes {
		var wrong *DiscontinuityError
		if err := l.Append(id, entries...); !errors.As(err, &wrong) {
			t.Errorf("%s: %v, want a DiscontinuityError", name, err)
		} else if bad := entries[len(entries)-1]; wrong.Pair != id || wrong.SourceTopic != "orders" ||
			wrong.GotSource != bad.Source.Start || wrong.GotTarget != bad.Target.Start {
			t.Errorf("%s: %+v", name, wrong)
		}
	}
	var broken *LawError
	if err := l.Append(id, move(0, 0), Entry{Tile: Lost}); !errors.As(err, &broken) {
		t.Errorf("an entry that breaks a law: %v", err)
	}
	if err := l.Append(id, sourceEntry(BeforeStart, end, 1)); !errors.As(err, &broken) || broken.Law != lawBeforeStart {
		t.Errorf("before_start behind records: %v", err)
	}
	if err := l.Append(99, move(0, 0)); !errors.Is(err, ErrNotFound) {
		t.Errorf("an unknown pair: %v", err)
	}
	if got := l.End(id); got != end {
		t.Errorf("refused entries moved the end from %+v to %+v", end, got)
	}
	mustAppend(t, l, id, move(0, 0))
}

// TestBeforeStartGrows: the log start may move between the opening of a pair
// and the first successful fetch, at which the scope begins.
func TestBeforeStartGrows(t *testing.T) {
	l := mustCreate(t)
	id := mustOpenPair(t, l, 10, 5)
	mustAppend(t, l, id, targetEntry(Foreign, l.End(id), 2))
	mustAppend(t, l, id, sourceEntry(BeforeStart, l.End(id), 7))
	mustCommit(t, l)
	mustAppend(t, l, id, sourceEntry(BeforeStart, l.End(id), 3))
	mustAppend(t, l, id, copiedEntry(l.End(id), 1))
	mustCommit(t, l)
	l = reopen(t, l)
	if p, _ := l.Pair(id); p.ScopeStart != 20 {
		t.Errorf("the scope starts at %d, want 20", p.ScopeStart)
	}
	if got := l.Totals(id).Tiles[BeforeStart]; got != 20 {
		t.Errorf("%d offsets before the start, want 20", got)
	}
	if err := l.Append(id, sourceEntry(BeforeStart, l.End(id), 3)); err == nil {
		t.Error("before_start behind a record is taken")
	}
}
