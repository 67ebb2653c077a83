package replicate

import "apograph/ledger"

// absentAtEnd counts the source offsets near the books' end that have no record,
// less the orphans there: an earlier adoption may have booked them and ended
// before it came to the target's records. Equal records can be matched in other
// places than where they stood, so that it looks back beyond the last one.
func (p *partition) absentAtEnd() (absent int64, err error) {
	if err := p.flow.ledger.Commit(); err != nil {
		return 0, err // only what is committed can be read
	}
	from, copied := p.flow.ledger.End(p.pair.ID).Source, int64(0)
	for from > 0 && copied < adoptionWindow {
		e, err := p.flow.ledger.FindSource(p.pair.ID, from-1)
		if err != nil {
			return 0, err
		}
		from = e.Source.Start
		copied += e.Records()
	}
	for e, err := range p.flow.ledger.Entries(p.pair.ID, from) {
		if err != nil {
			return 0, err
		}
		switch e.Tile {
		case ledger.Copied:
			absent += compactedIn(e.Gaps, e.Source)
		case ledger.Orphan:
			absent -= e.Target.Len()
		case ledger.BeforeStart, ledger.Foreign, ledger.Duplicate:
		case ledger.CommitMarker, ledger.AbortMarker, ledger.Aborted:
		default:
			absent += e.Source.Len()
		}
	}
	return max(absent, 0), nil
}

// compactedBefore counts the source offsets that were compacted away between
// records i-1 and i of u, or in front of record 0.
func compactedBefore(u *unit, i int) int64 {
	start := u.entry.Source.Start
	if i > 0 {
		start = u.infos[i-1].offset + 1
	}
	return compactedIn(u.entry.Gaps, ledger.Range{Start: start, End: u.infos[i].offset})
}

// trailingGap counts those behind the last record.
func trailingGap(u *unit) int64 {
	return compactedIn(u.entry.Gaps, ledger.Range{Start: u.infos[len(u.infos)-1].offset + 1, End: u.entry.Source.End})
}

func compactedIn(gaps []ledger.Gap, r ledger.Range) int64 {
	n := int64(0)
	for _, g := range gaps {
		if g.Tile == ledger.Compacted && g.Range.Start >= r.Start && g.Range.End <= r.End {
			n += g.Range.Len()
		}
	}
	return n
}

func gapLen(gaps []ledger.Gap) int64 {
	n := int64(0)
	for _, g := range gaps {
		n += g.Range.Len()
	}
	return n
}
