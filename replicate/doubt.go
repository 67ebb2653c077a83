package replicate

import (
	"fmt"
	"time"

	"apograph/ledger"
)

// A compacted source topic forgets. Where offsets are gone that were written
// since the copy was last at the source's end, there may have been tombstones
// among them: a broker removes one no earlier than delete.retention.ms after it
// was cleaned first (KIP-534). So a gap that is reached later than that says
// nothing of keys that were copied before it: the target may hold values which
// the source has deleted. The tile is true all the same; the ledger keeps the
// doubt beside it.

// A freshness knows when the books were last at the source's end.
type freshness struct {
	caughtUp int64 // ms; never above 0 before that is known
	mark     int64 // an end of the source, seen at markAt and not reached since
	markAt   int64 // ms; 0: there is none
}

// sees notes an end of the source's log.
func (f *freshness) sees(end, now int64) {
	if f.markAt == 0 {
		f.mark, f.markAt = end, now
	}
}

// reaches notes the end of the source book, and reports whether that tells of a
// later time than was known.
func (f *freshness) reaches(end int64) bool {
	if f.markAt == 0 || end < f.mark {
		return false
	}
	later := f.markAt > f.caughtUp
	f.caughtUp, f.markAt = max(f.caughtUp, f.markAt), 0
	return later
}

// freshen notes an end of the source's log that was seen at a time.
func (p *partition) freshen(end int64, at time.Time) {
	p.fresh.sees(end, at.UnixMilli())
	p.keepFresh(p.flow.ledger.End(p.pair.ID).Source)
}

// keepFresh takes the end of the source book, and records when that was the
// source's, if it is news.
func (p *partition) keepFresh(end int64) {
	if !p.fresh.reaches(end) {
		return
	}
	l := p.flow.ledger
	state := l.State(p.pair.ID)
	state.CaughtUpMillis = p.fresh.caughtUp
	if err := l.SetState(p.pair.ID, state); err != nil {
		_ = p.flow.fail(fmt.Errorf("partition %v: record that it was caught up: %w", p.source, err))
	}
}

// noteLate keeps which source offsets were fetched too late for their gaps to
// tell everything. What lies behind an end that was seen lately was written
// later than that.
func (p *partition) noteLate(r ledger.Range) {
	now := p.flow.now().UnixMilli()
	if f := p.fresh; f.markAt > 0 && now-f.markAt <= p.tombstones {
		r.End = min(r.End, f.mark)
	}
	since, again, began := p.freshSince()
	if now-began <= p.tombstones {
		return
	}
	if now-since <= p.tombstones {
		r.End = min(r.End, again)
	}
	if r.Start >= r.End {
		return
	}
	if n := len(p.late); n > 0 && p.late[n-1].End == r.Start {
		p.late[n-1].End = r.End
		return
	}
	p.late = append(p.late, r)
}

// freshSince returns since when what is read now was written, as far as is known,
// in milliseconds: since the copy was last at the source's end or, where it never
// was, since it began. The opening of a generation that goes on behind an earlier
// one is neither. What lies below offset again is older: an earlier generation has
// read it, the target has lost it, and when the copy was at that place is not
// known, only since when it was under way: began. A copy that was at the source's
// end before its pair was opened, as one whose ledger was made anew, is older than
// that.
func (p *partition) freshSince() (since, again, began int64) {
	began = p.pair.OpenedMillis
	if p.fresh.caughtUp > 0 {
		return p.fresh.caughtUp, 0, min(began, p.fresh.caughtUp)
	}
	l := p.flow.ledger
	for before, ok := l.Previous(p.pair.ID); ok && sameTarget(&before, &p.pair); before, ok = l.Previous(before.ID) {
		began = before.OpenedMillis
		since = max(since, l.State(before.ID).CaughtUpMillis)
		if before.Closed != nil && before.Closed.Cut != nil && before.SourceTopicID == p.pair.SourceTopicID {
			again = max(again, l.End(before.ID).Source)
		}
	}
	return max(since, began), again, began
}

// sameTarget reports whether two pairs copy to the same log.
func sameTarget(a, b *ledger.Pair) bool {
	return a.TargetTopic == b.TargetTopic && a.TargetTopicID == b.TargetTopicID && a.Partition == b.Partition
}

// doubt notes the doubts that an entry which has just been booked gives rise
// to. What was fetched late in one go is one doubt, from the first gap in it to
// the last.
func (p *partition) doubt(e *ledger.Entry) {
	for len(p.late) > 1 && p.late[0].End <= e.Source.Start {
		p.late = p.late[1:]
	}
	if len(p.late) == 0 || e.Source.Empty() {
		return
	}
	copied := p.flow.ledger.End(p.pair.ID).Appended - e.Records()
	for run := range e.Runs() {
		switch run.Tile {
		case ledger.Copied:
			copied += run.Source.Len()
		case ledger.Compacted:
			for _, late := range p.late {
				r := ledger.Range{Start: max(run.Source.Start, late.Start), End: min(run.Source.End, late.End)}
				if !r.Empty() && (copied > 0 || p.copiedBefore()) {
					p.setDoubt(late, r)
				}
			}
		}
	}
}

// setDoubt notes that what was fetched late cast doubt, up to the end of a gap
// in it.
func (p *partition) setDoubt(late, gap ledger.Range) {
	if p.doubted > late.Start && p.doubted < gap.Start {
		gap.Start = p.doubted
	}
	p.doubted = gap.End
	p.flow.warnOnce("doubt "+p.source.String(), "a compacted topic was not read for longer than it keeps tombstones: the target may hold values of keys that the source has deleted",
		"partition", p.source.String(), "delete.retention.ms", p.tombstones)
	if err := p.flow.ledger.SetDoubt(p.pair.ID, ledger.Doubt{Kind: ledger.StaleKeys, Range: gap, AtMillis: p.flow.now().UnixMilli()}); err != nil {
		_ = p.flow.fail(fmt.Errorf("partition %v: record a doubt about source offsets %v: %w", p.source, gap, err))
	}
}

// copiedBefore reports whether an earlier generation has copied anything to the
// partition's target.
func (p *partition) copiedBefore() bool {
	if p.earlier == nil {
		found := false
		for _, other := range p.flow.ledger.Pairs() {
			found = found || sameTarget(&other, &p.pair) && other.ID != p.pair.ID && p.flow.ledger.End(other.ID).Appended > 0
		}
		p.earlier = &found
	}
	return *p.earlier
}
