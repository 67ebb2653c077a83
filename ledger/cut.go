package ledger

import "iter"

// A Cut is where a pair's target log was cut off. What the pair's books say from
// there on holds no more, as the target has lost it; below, all of it holds.
//
// The offsets belong together: of the copied records, those below Source are the
// same as those below Target.
type Cut struct {
	Source int64 // source offset; where the next generation's scope starts
	Target int64 // target offset
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
// that nobody accepted. The caller holds l.commitMu.
func (l *Ledger) badBeyond(p *pair, cut *Cut) (bad int64, err error) {
	if cut == nil {
		return 0, nil
	}
	ranges, err := l.badTiles(p, Range{cut.Source, p.tail().end.source})
	if err != nil {
		return 0, err
	}
	return unacceptedOf(p.accepted, ranges), nil
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
