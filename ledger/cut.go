package ledger

import (
	"fmt"
	"iter"
	"math"
	"slices"
)

// A Cut is where a pair's target log was cut off. What the pair's books say from
// there on holds no more, as the target has lost it; below, all of it holds.
//
// The offsets belong together: of the copied records, those below Source are the
// same as those below Target.
type Cut struct {
	Source int64 // source offset; the next generation of the same source topic starts there, or below
	Target int64 // target offset
}

// CutAt returns where a target log that ends at a target offset cuts off the
// pair's books, as far as they are committed: at the first copied record that it
// lacks, at their end if it lacks none, and never beyond where the pair was closed
// with a cut. A log that ends below the books' start cuts off all of them.
//
// The error is ErrNotFound for an unknown pair, else that of [Ledger.FindTarget].
func (l *Ledger) CutAt(id PairID, target int64) (Cut, error) {
	pair, ok := l.Pair(id)
	if !ok {
		return Cut{}, fmt.Errorf("ledger: pair %d: %w", id, ErrNotFound)
	}
	end := l.Committed(id)
	last := Cut{end.Source, end.Target}
	if pair.Closed != nil && pair.Closed.Cut != nil {
		last = *pair.Closed.Cut
	}
	target = min(max(target, pair.TargetBase), last.Target)
	for e, err := range l.EntriesFromTarget(id, target) {
		if err != nil {
			return Cut{}, err
		}
		if e.Tile == Copied && e.Target.End > target {
			return Cut{min(e.SourceOf(max(target, e.Target.Start)), last.Source), target}, nil
		}
	}
	return Cut{last.Source, target}, nil
}

// CutOff returns where the pair's books are cut off; nil if they hold up to their
// end. Beside the cut that the pair was closed with, a later generation that
// began below it in the same target topic cuts it off, if it followed one that was
// closed with a cut: the log had ended there, and a person went on all the same.
// Where nobody did, the books still say what was copied. One that copied the
// source topic again cuts it off, too, as the target topic was gone and had been
// made anew; that one leaves nothing of it.
//
// Errors are those of [Ledger.CutAt].
func (l *Ledger) CutOff(id PairID) (*Cut, error) {
	pair, ok := l.Pair(id)
	if !ok {
		return nil, fmt.Errorf("ledger: pair %d: %w", id, ErrNotFound)
	}
	if pair.Closed == nil {
		return nil, nil
	}
	own, upto := pair.Closed.Cut, l.Committed(id).Target
	if own != nil {
		upto = own.Target
	}
	base := l.lowestBase(&pair)
	if base >= upto {
		return own, nil
	}
	cut, err := l.CutAt(id, base)
	return &cut, err
}

// Lineage returns the generations whose books are one list with those of a pair,
// the oldest first and that pair last. Each other one is cut off where the next
// begins on the source, and its Closed.Cut says where, whatever it was closed with:
// what it says from there on the target has lost, or the source, whose log was cut
// there. Of what the source has lost, the target keeps the copies: the next
// generation may begin behind them, above the cut. One of which nothing is left is
// passed over, and one that has nothing on the target begins no higher there than the
// next. The slice is the caller's.
//
// The list is whole unless an earlier generation of the same topics has something of
// what lies below it, and does not reach it, or overlaps with it on the target: what
// lies below is not known then.
//
// Errors are those of [Ledger.CutAt].
func (l *Ledger) Lineage(pair Pair) (line []Pair, whole bool, err error) {
	line = []Pair{pair}
	for before, ok := l.Previous(pair.ID); ok && sameTopics(&before, &pair); before, ok = l.Previous(before.ID) {
		next := &line[len(line)-1]
		if next.ScopeStart < before.ScopeStart {
			continue
		}
		end, err := l.endOf(&before)
		if err != nil {
			return nil, false, err
		}
		if end.Target <= before.TargetBase { // nothing of it is on the target
			before.TargetBase = min(before.TargetBase, next.TargetBase)
			end.Target = before.TargetBase
		}
		joins := end.Source >= next.ScopeStart && end.Target <= next.TargetBase
		if end, err = l.cutBelow(before.ID, end, next.ScopeStart); err != nil {
			return nil, false, err
		}
		if end.Source <= before.ScopeStart && end.Target <= before.TargetBase {
			continue
		}
		if !joins {
			slices.Reverse(line)
			return line, false, nil
		}
		before.Closed.Cut = &end
		line = append(line, before)
	}
	slices.Reverse(line)
	return line, true, nil
}

// endOf returns where the books of a closed pair end, as far as they hold.
func (l *Ledger) endOf(pair *Pair) (Cut, error) {
	cut, err := l.CutOff(pair.ID)
	if err != nil {
		return Cut{}, err
	}
	if cut != nil {
		return *cut, nil
	}
	end := l.Committed(pair.ID)
	return Cut{end.Source, end.Target}, nil
}

// cutBelow returns where the pair's books, which hold up to an end, are cut off by a
// cut of the source's log.
func (l *Ledger) cutBelow(id PairID, end Cut, source int64) (Cut, error) {
	if source >= end.Source {
		return end, nil
	}
	e, err := l.FindSource(id, source)
	return Cut{source, min(e.TargetOf(source), end.Target)}, err
}

func sameTopics(a, b *Pair) bool {
	return a.TargetTopic == b.TargetTopic && a.TargetTopicID == b.TargetTopicID && a.SourceTopicID == b.SourceTopicID
}

// lowestBase returns where in the pair's target partition the lowest one of the
// later generations begins that followed a cut, which is 0 where one of them copied
// it all again into a topic that was made anew; the highest offset if there is none.
func (l *Ledger) lowestBase(pair *Pair) int64 {
	l.mu.RLock()
	defer l.mu.RUnlock()
	base := int64(math.MaxInt64)
	for _, p := range l.pairs {
		if p.SourceTopic != pair.SourceTopic || p.Partition != pair.Partition || p.Generation <= pair.Generation ||
			p.TargetTopic != pair.TargetTopic {
			continue
		}
		if p.TargetTopicID == pair.TargetTopicID {
			if before, ok := l.pairs[p.previous]; ok && before.cut() != nil {
				base = min(base, p.TargetBase)
			}
		} else if l.copiesAgain(p, pair) {
			base = 0
		}
	}
	return base
}

// copiesAgain reports whether a pair followed one in the target topic of an
// earlier one because that topic was gone, and copies all that the earlier one had
// copied. The caller holds l.mu.
func (l *Ledger) copiesAgain(p *pair, earlier *Pair) bool {
	before, ok := l.pairs[p.previous]
	return ok && before.cut() != nil && before.TargetTopic == p.TargetTopic && before.TargetTopicID == earlier.TargetTopicID &&
		p.SourceTopicID == earlier.SourceTopicID && p.ScopeStart <= earlier.ScopeStart
}

// cut returns the cut that the pair was closed with; nil if there is none.
func (r *pairRecord) cut() *Cut {
	if r.Closed == nil {
		return nil
	}
	return r.Closed.Cut
}

// Clip takes from an entry of the pair what lies behind the cut, of its Gaps in
// place; Bytes and Digest stay those of the whole entry. It returns false, and
// changes nothing, if nothing is left.
func (c *Cut) Clip(e *Entry) bool {
	if e.Tile.AdvancesSource() && e.Source.Start >= c.Source || !e.Tile.AdvancesSource() && e.Target.Start >= c.Target {
		return false
	}
	e.Source.End, e.Target.End = min(e.Source.End, c.Source), min(e.Target.End, c.Target)
	e.Source.Start, e.Target.Start = min(e.Source.Start, e.Source.End), min(e.Target.Start, e.Target.End)
	for i := range e.Gaps {
		if e.Gaps[i].Range.Start >= c.Source {
			e.Gaps = e.Gaps[:i]
			break
		}
		e.Gaps[i].Range.End = min(e.Gaps[i].Range.End, c.Source)
	}
	return true
}

// clone returns the closing with a cut of its own.
func (c Closing) clone() Closing {
	if c.Cut != nil {
		cut := *c.Cut
		c.Cut = &cut
	}
	return c
}

// cutFault returns the law that a cut of a pair breaks; nil if none. It looks at
// the books with what is queued, to which only entries behind the cut can come.
func (l *Ledger) cutFault(p *pair, cut *Cut) error {
	if cut == nil {
		return nil
	}
	l.mu.RLock()
	end, queue := p.end, p.queue
	l.mu.RUnlock()
	if err := cut.inside(p.TargetBase, end); err != nil {
		return err
	}
	// A record on the wrong side of one offset is in an entry that reaches beyond
	// the other.
	for _, entries := range []iter.Seq2[Entry, error]{l.Entries(p.ID, cut.Source), l.EntriesFromTarget(p.ID, cut.Target)} {
		for e, err := range entries {
			if err != nil {
				return err
			}
			if err := cut.splits(&e); err != nil {
				return err
			}
		}
	}
	for i := range queue {
		if err := cut.splits(&queue[i]); err != nil {
			return err
		}
	}
	return nil
}

// inside returns an error unless the cut lies within books that start at the
// target offset base, and at source offset 0.
func (c *Cut) inside(base int64, end place) *LawError {
	if c.Source < 0 || c.Source > end.source || c.Target < base || c.Target > end.target {
		return lawErrorf(lawCut, "cut at source %d, target %d; the books reach from 0 and %d to %d and %d",
			c.Source, c.Target, base, end.source, end.target)
	}
	return nil
}

// splits returns an error unless the copied records of e below the one offset of
// the cut are those below the other.
func (c *Cut) splits(e *Entry) error {
	if e.Tile != Copied {
		return nil
	}
	bySource := e.TargetOf(c.Source)
	byTarget := min(max(c.Target, e.Target.Start), e.Target.End)
	if bySource == byTarget {
		return nil
	}
	return lawErrorf(lawCut, "cut at source %d, target %d: the record at target %d is not on the same side of both",
		c.Source, c.Target, min(bySource, byTarget))
}

// badBeyond returns how many committed offsets from the cut on are in bad tiles
// that none of the acceptances is about. The caller holds l.commitMu.
func (l *Ledger) badBeyond(p *pair, cut *Cut, accepted []acceptance) (bad int64, err error) {
	if cut == nil {
		return 0, nil
	}
	ranges, err := l.badTiles(p, Range{cut.Source, p.tail().end.source})
	if err != nil {
		return 0, err
	}
	return unacceptedOf(accepted, ranges), nil
}

// unacceptedOf returns how many offsets of the ranges, which are disjoint, nobody
// accepted.
func unacceptedOf(accepted []acceptance, ranges []Range) (n int64) {
	for _, r := range ranges {
		n += r.Len()
		for _, a := range accepted {
			n -= overlap(a.Range, []Range{r})
		}
	}
	return n
}

// badOf returns where bad tiles of the entries are behind the cut.
func badOf(entries []Entry, cut *Cut) (bad []Range) {
	for i := range entries {
		r := Range{max(entries[i].Source.Start, cut.Source), entries[i].Source.End}
		if entries[i].Tile.Bad() && !r.Empty() {
			bad = append(bad, r)
		}
	}
	return bad
}
