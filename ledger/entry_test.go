package ledger

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// aRun is ten source offsets with six records:
//
//	source  10 11 12  .  . 15 16 17  .  .
//	target  70 71 72       73 74 75
func aRun() Entry {
	return Entry{
		Tile: Copied, Source: Range{10, 20}, Target: Range{70, 76},
		Gaps:  []Gap{{Compacted, Range{13, 15}}, {CommitMarker, Range{18, 19}}, {Aborted, Range{19, 20}}},
		Bytes: 600, Digest: 5, LeaderEpoch: 3,
	}
}

func TestEntryRuns(t *testing.T) {
	e := aRun()
	got := slices.Collect(e.Runs())
	want := []Run{
		{Copied, Range{10, 13}, Range{70, 73}},
		{Compacted, Range{13, 15}, Range{73, 73}},
		{Copied, Range{15, 18}, Range{73, 76}},
		{CommitMarker, Range{18, 19}, Range{76, 76}},
		{Aborted, Range{19, 20}, Range{76, 76}},
	}
	if !slices.Equal(got, want) {
		t.Errorf("Runs = %v, want %v", got, want)
	}
	for n := range want {
		stopped := 0
		for range e.Runs() {
			if stopped++; stopped > n {
				break
			}
		}
		if stopped != n+1 {
			t.Errorf("a loop that stops at run %d saw %d", n+1, stopped)
		}
	}
	lost := Entry{Tile: Lost, Source: Range{3, 9}, Target: Range{1, 1}}
	if got := slices.Collect(lost.Runs()); !slices.Equal(got, []Run{{Lost, Range{3, 9}, Range{1, 1}}}) {
		t.Errorf("Runs of a lost entry = %v", got)
	}
}

func TestEntryOffsets(t *testing.T) {
	e := aRun()
	targets := map[int64]int64{
		0: 70, 10: 70, 12: 72, 13: 73, 14: 73, 15: 73, 16: 74, 17: 75, 18: 76, 19: 76, 20: 76, 99: 76,
	}
	for source, want := range targets {
		if got := e.TargetOf(source); got != want {
			t.Errorf("TargetOf(%d) = %d, want %d", source, got, want)
		}
	}
	sources := map[int64]int64{0: 10, 70: 10, 72: 12, 73: 15, 75: 17, 76: 20, 99: 20}
	for target, want := range sources {
		if got := e.SourceOf(target); got != want {
			t.Errorf("SourceOf(%d) = %d, want %d", target, got, want)
		}
	}
	lost := Entry{Tile: Lost, Source: Range{3, 9}, Target: Range{1, 1}}
	foreign := Entry{Tile: Foreign, Source: Range{9, 9}, Target: Range{1, 4}}
	if lost.TargetOf(5) != 1 || lost.SourceOf(1) != 9 || foreign.TargetOf(9) != 4 || foreign.SourceOf(2) != 9 {
		t.Error("tiles without records do not answer with their ends")
	}
}

// TestEntryAgainstModel builds entries from lists of offsets, and asks for each
// of them what counting one by one gives.
func TestEntryAgainstModel(t *testing.T) {
	random := rand.New(rand.NewPCG(testSeed, 1))
	for range 500 {
		var tiles []Tile // of each source offset
		for len(tiles) == 0 || random.IntN(20) > 0 {
			tiles = append(tiles, Tile(max(random.IntN(8)-3, 0)))
		}
		if !slices.Contains(tiles, Copied) {
			continue
		}
		base, target := random.Int64N(1000), random.Int64N(1000)
		e := entryOf(tiles, base, target)
		if err := e.Validate(); err != nil {
			t.Fatalf("%v: %v", tiles, err)
		}
		compareRuns(t, &e, tiles, base, target)
		for source := base - 2; source < base+int64(len(tiles))+3; source++ {
			want := target
			for i, tile := range tiles {
				if base+int64(i) < source && tile == Copied {
					want++
				}
			}
			if got := e.TargetOf(source); got != want {
				t.Fatalf("%v from %d: TargetOf(%d) = %d, want %d", tiles, base, source, got, want)
			}
		}
		for at := target - 2; at < e.Target.End+3; at++ {
			if got, want := e.SourceOf(at), naiveSourceOf(tiles, base, target, at); got != want {
				t.Fatalf("%v from %d, %d: SourceOf(%d) = %d, want %d", tiles, base, target, at, got, want)
			}
		}
	}
}

func naiveSourceOf(tiles []Tile, base, target, at int64) int64 {
	for i, tile := range tiles {
		if tile != Copied {
			continue
		}
		if target >= at {
			return base + int64(i)
		}
		target++
	}
	return base + int64(len(tiles))
}

// entryOf makes an entry whose gaps are one offset long each, even where two of
// a kind are neighbours.
func entryOf(tiles []Tile, base, target int64) Entry {
	e := Entry{Tile: Copied, Source: Range{base, base + int64(len(tiles))}, Target: Range{target, target}}
	for i, tile := range tiles {
		if tile == Copied {
			e.Target.End++
			continue
		}
		at := base + int64(i)
		e.Gaps = append(e.Gaps, Gap{tile, Range{at, at + 1}})
	}
	return e
}

func compareRuns(t *testing.T, e *Entry, tiles []Tile, base, target int64) {
	t.Helper()
	var got []Tile
	for r := range e.Runs() {
		if r.Source.Start != base+int64(len(got)) || r.Target.Start != target || r.Source.Empty() {
			t.Fatalf("%v: run %v does not follow", tiles, r)
		}
		for range r.Source.Len() {
			got = append(got, r.Tile)
		}
		target = r.Target.End
	}
	if !slices.Equal(got, tiles) || target != e.Target.End {
		t.Fatalf("runs of %v are %v", tiles, got)
	}
}

func TestEntryValidate(t *testing.T) {
	tests := []struct {
		name  string
		law   string
		spoil func(*Entry)
	}{
		{"unknown tile", lawTile, func(e *Entry) { e.Tile = Tile(NumTiles) }},
		{"empty source", lawAxes, func(e *Entry) { e.Source.End = e.Source.Start }},
		{"source backwards", lawAxes, func(e *Entry) { e.Source.End = e.Source.Start - 1 }},
		{"source below zero", lawAxes, func(e *Entry) { e.Source.Start = -1 }},
		{"empty target", lawAxes, func(e *Entry) { e.Target.End = e.Target.Start }},
		{"target below zero", lawAxes, func(e *Entry) { e.Target = Range{-6, 0} }},
		{"one record more", lawBalance, func(e *Entry) { e.Target.End++ }},
		{"one record less", lawBalance, func(e *Entry) { e.Target.End-- }},
		{"one gap less", lawBalance, func(e *Entry) { e.Gaps = e.Gaps[1:] }},
		{"gap not a gap", lawGaps, func(e *Entry) { e.Gaps[0].Tile = Lost }},
		{"gap of copied", lawGaps, func(e *Entry) { e.Gaps[0].Tile = Copied }},
		{"empty gap", lawGaps, func(e *Entry) { e.Gaps[1].Range.End = e.Gaps[1].Range.Start }},
		{"gaps overlap", lawGaps, func(e *Entry) { e.Gaps[1].Range.Start = 14 }},
		{"gaps out of order", lawGaps, func(e *Entry) { e.Gaps[0], e.Gaps[1] = e.Gaps[1], e.Gaps[0] }},
		{"gap before the run", lawGaps, func(e *Entry) { e.Gaps[0].Range = Range{8, 10} }},
		{"gap behind the run", lawGaps, func(e *Entry) { e.Gaps[2].Range = Range{19, 21} }},
		{"digest too large", lawDigest, func(e *Entry) { e.Digest = digestPrime }},
		{"bytes below zero", lawAttributes, func(e *Entry) { e.Bytes = -1 }},
		{"leader epoch below -1", lawAttributes, func(e *Entry) { e.LeaderEpoch = -2 }},
		{"copied with a reason", lawAttributes, func(e *Entry) { e.Reason = "why" }},
		{"copied with a cause", lawAttributes, func(e *Entry) { e.Cause = CauseRule }},
		{"copied with an origin", lawAttributes, func(e *Entry) { e.Origin = Range{0, 1} }},
		{"copied with a last known time", lawAttributes, func(e *Entry) { e.LastKnownMillis = 1 }},
		{"lost on the target", lawAxes, func(e *Entry) { *e = Entry{Tile: Lost, Source: Range{0, 1}, Target: Range{0, 1}} }},
		{"lost without offsets", lawAxes, func(e *Entry) { *e = Entry{Tile: Lost} }},
		{"lost by a person", lawAttributes, func(e *Entry) { *e = Entry{Tile: Lost, Source: Range{0, 1}, Cause: CausePerson} }},
		{"lost with a digest", lawAttributes, func(e *Entry) { *e = Entry{Tile: Lost, Source: Range{0, 1}, Digest: 1} }},
		{"marker with gaps", lawAttributes, func(e *Entry) {
			*e = Entry{Tile: CommitMarker, Source: Range{0, 1}, Gaps: []Gap{{CommitMarker, Range{0, 1}}}}
		}},
		{"filtered by nobody", lawAttributes, func(e *Entry) { *e = Entry{Tile: Filtered, Source: Range{0, 1}, Cause: CauseRule} }},
		{"filtered without a cause", lawAttributes, func(e *Entry) { *e = Entry{Tile: Filtered, Source: Range{0, 1}, Reason: "r"} }},
		{"reason too long", lawAttributes, func(e *Entry) {
			*e = Entry{Tile: Filtered, Source: Range{0, 1}, Cause: CauseRule, Reason: strings.Repeat("x", maxText+1)}
		}},
		{"reason not text", lawAttributes, func(e *Entry) {
			*e = Entry{Tile: Filtered, Source: Range{0, 1}, Cause: CauseRule, Reason: "\xff"}
		}},
		{"foreign on the source", lawAxes, func(e *Entry) { *e = Entry{Tile: Foreign, Source: Range{0, 1}, Target: Range{0, 1}} }},
		{"duplicate of nothing", lawAttributes, func(e *Entry) { *e = Entry{Tile: Duplicate, Target: Range{0, 1}} }},
		{"duplicate of fewer", lawAttributes, func(e *Entry) { *e = Entry{Tile: Duplicate, Target: Range{0, 3}, Origin: Range{4, 6}} }},
		{"too many gaps", lawGaps, func(e *Entry) { e.Gaps = make([]Gap, maxEntryGaps+1) }},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			e := aRun()
			tt.spoil(&e)
			var broken *LawError
			if err := e.Validate(); !errors.As(err, &broken) || broken.Law != tt.law {
				t.Errorf("Validate = %v, want law %s", err, tt.law)
			}
		})
	}
	good := []Entry{
		aRun(),
		{Tile: Copied, Source: Range{0, 3}, Target: Range{9, 11}, Gaps: []Gap{{Compacted, Range{0, 1}}}, LeaderEpoch: -1},
		{Tile: Copied, Source: Range{0, 4}, Target: Range{9, 11}, Gaps: []Gap{{Aborted, Range{1, 2}}, {Aborted, Range{2, 3}}}},
		{Tile: Copied, Source: Range{math.MaxInt64 - 1, math.MaxInt64}, Target: Range{0, 1}},
		{Tile: Lost, Source: Range{0, math.MaxInt64}, Cause: CauseTruncation, LastKnownMillis: -5},
		{Tile: Lost, Source: Range{0, 1}},
		{Tile: Filtered, Source: Range{0, 1}, Cause: CausePerson, Reason: "ann: too large"},
		{Tile: Unexplained, Source: Range{0, 1}, Reason: "who knows"},
		{Tile: Duplicate, Target: Range{0, 3}, Origin: Range{4, 9}},
		{Tile: Foreign, Target: Range{0, 3}, Cause: CauseAborted},
		{Tile: Filler, Target: Range{0, 3}},
	}
	for i := range good {
		if err := good[i].Validate(); err != nil {
			t.Errorf("%s: %v", fmt.Sprint(good[i]), err)
		}
	}
}
