package ledger

import (
	"iter"
)

// A Gap is a source-only tile inside a copied entry.
type Gap struct {
	Tile  Tile  // CommitMarker, AbortMarker, Aborted or Compacted
	Range Range // source offsets
}

// An Entry is one step of a pair's list: it advances the source book, the
// target book, or both.
//
// Invariants, checked by [Entry.Validate] on append and on every read:
//   - an axis on which the tile advances has a range that is not empty; the
//     other has an empty range whose Start is the position of that book;
//   - a copied entry is a target-dense run: its source range less its gaps is
//     as long as its target range;
//   - gaps ascend, do not overlap, and lie inside the source range.
//
// An entry is a value. One that a ledger returned belongs to the caller.
type Entry struct {
	Tile   Tile
	Source Range // source offsets
	Target Range // target offsets

	Gaps   []Gap  // source-only tiles inside the run; copied only
	Bytes  int64  // canonical bytes of the records; copied only
	Digest Digest // of the records in order; copied only

	// TimestampsReplaced: the target topic stamped its own times, so that the
	// digest was taken with timestamps of 0. Copied only.
	TimestampsReplaced bool

	LeaderEpoch int32 // of the source's leader (KIP-320); -1 unknown
	TimeMillis  int64 // of the commit, Unix time in milliseconds; set by the ledger

	Cause           Cause  // lost, filtered, foreign
	Reason          string // one line for a person; filtered: the rule or the person, required
	Origin          Range  // duplicate: the source range of which this is a second copy
	LastKnownMillis int64  // lost: last time the records were known to exist; 0 unknown
}

// A Run is a part of an entry: consecutive copied offsets, or one tile.
type Run struct {
	Tile           Tile
	Source, Target Range // as in [Entry]
}

// Records returns the number of copied records in e; 0 unless e is copied.
func (e *Entry) Records() int64 {
	if e.Tile != Copied {
		return 0
	}
	return e.Target.Len()
}

// TargetOf returns the target offset of the first copied record of e whose
// source offset is source or above. Where e has none it returns the end of e
// on the target.
func (e *Entry) TargetOf(source int64) int64 {
	if e.Tile != Copied {
		return e.Target.End
	}
	source = min(max(source, e.Source.Start), e.Source.End)
	below := source - e.Source.Start
	for _, g := range e.Gaps {
		if g.Range.Start >= source {
			break
		}
		below -= min(g.Range.End, source) - g.Range.Start
	}
	return e.Target.Start + below
}

// SourceOf returns the source offset of the first copied record of e whose
// target offset is target or above. Where e has none it returns the end of e
// on the source.
func (e *Entry) SourceOf(target int64) int64 {
	if e.Tile != Copied || target >= e.Target.End {
		return e.Source.End
	}
	source := e.Source.Start + max(target-e.Target.Start, 0)
	for _, g := range e.Gaps {
		if g.Range.Start > source {
			break
		}
		source += g.Range.Len()
	}
	return source
}

// Runs returns the parts of e in order: maximal runs of consecutive copied
// offsets with the source-only tiles between them. An entry that is not copied
// is one run.
func (e *Entry) Runs() iter.Seq[Run] {
	return func(yield func(Run) bool) {
		if e.Tile != Copied {
			yield(Run{Tile: e.Tile, Source: e.Source, Target: e.Target})
			return
		}
		source, target := e.Source.Start, e.Target.Start
		for _, g := range e.Gaps {
			next := target + g.Range.Start - source
			if next > target && !yield(copiedRun(source, g.Range.Start, target)) {
				return
			}
			if !yield(Run{Tile: g.Tile, Source: g.Range, Target: Range{next, next}}) {
				return
			}
			source, target = g.Range.End, next
		}
		if source < e.Source.End {
			yield(copiedRun(source, e.Source.End, target))
		}
	}
}

func copiedRun(start, end, target int64) Run {
	return Run{
		Tile:   Copied,
		Source: Range{start, end},
		Target: Range{target, target + end - start},
	}
}

// start returns the place where e must stand in the list.
func (e *Entry) start() place { return place{e.Source.Start, e.Target.Start} }

// end returns the place that the entry behind e must have.
func (e *Entry) end() place { return place{e.Source.End, e.Target.End} }

// A place is the ends of both books at some point of a pair's list. Along the
// list neither number falls, and one of them rises with every entry.
type place struct{ source, target int64 }

// before reports whether p comes before q in a list that holds both.
func (p place) before(q place) bool {
	return p.source < q.source || p.source == q.source && p.target < q.target
}
