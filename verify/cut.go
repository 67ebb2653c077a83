package verify

import (
	"fmt"
	"iter"

	"apograph/ledger"
)

// A generation that was closed with a cut is read like an open one, up to the
// cut: below it the target must still hold what the books say. What they say from
// there on belongs to no count, as the next generation has copied it again.
//
// So is one that was closed because the source's log was cut, up to where the next
// one begins: below that, both sides are the same logs as before. What its books
// say from there on is of records that the source has no more, and that the target
// still holds: it is counted, and not read.

// cutAt makes the books end at the cut, if there is one. The later generations
// are those of the same source partition, in order.
func (b *books) cutAt(later []ledger.Pair) error {
	b.torn, b.last = -1, b.end
	if b.pair.Closed == nil {
		return nil
	}
	b.cut = b.pair.Closed.Cut
	if err := b.limitTo(later); err != nil || b.cut == nil {
		return err
	}
	b.end.Source, b.end.Target = b.cut.Source, b.cut.Target
	if b.cut.Target <= b.pair.TargetBase {
		return nil
	}
	last, err := b.ledger.FindTarget(b.pair.ID, b.cut.Target-1)
	if err == nil && last.Tile == ledger.Copied && last.Target.End > b.cut.Target {
		b.torn = last.Source.Start
	}
	return err
}

// limitTo moves the cut down to where one of the later generations begins that are
// of the same two logs; without a cut, the next one must go on where the target
// book ends.
func (b *books) limitTo(later []ledger.Pair) error {
	limit := b.end.Source
	if b.cut != nil {
		limit = b.cut.Source
	}
	for i := range later {
		if !b.sameTopics(&later[i]) || i == 0 && b.cut == nil && later[i].TargetBase != b.end.Target {
			break
		}
		b.kept = b.kept || b.cut == nil
		limit = min(limit, later[i].ScopeStart)
	}
	if !b.kept && (b.cut == nil || limit == b.cut.Source) {
		return nil
	}
	b.cut = &ledger.Cut{Source: limit, Target: b.end.Target}
	if limit == b.end.Source {
		return nil
	}
	e, err := b.ledger.FindSource(b.pair.ID, limit)
	b.cut.Target = e.TargetOf(limit)
	return err
}

// sameTopics reports whether a pair is known to be about the same topics.
func (b *books) sameTopics(p *ledger.Pair) bool {
	unknown := ledger.TopicID{}
	return p.TargetTopic == b.pair.TargetTopic &&
		p.SourceTopicID == b.pair.SourceTopicID && p.SourceTopicID != unknown &&
		p.TargetTopicID == b.pair.TargetTopicID && p.TargetTopicID != unknown
}

// countRest puts into the row what the books say behind the cut where the target
// still holds it.
func (j *job) countRest(mode Mode) {
	b, row := j.books, &j.row
	if !b.kept {
		return
	}
	source, target := &Range{b.end.Source, b.last.Source}, &Range{b.end.Target, b.last.Target}
	row.add(&b.rest)
	row.Source.End = source.End
	if row.Target.End == target.Start {
		row.Target.End = target.End
	}
	if b.rest.Copied > 0 && j.reads() && mode != ModeBooks {
		j.findings.aside(Finding{Kind: NotVerified, Reason: NotRead, Source: source, Target: target,
			Detail: fmt.Sprintf("generation %d is closed (%s): what it has copied from here on the source does not have any more, and its books alone were read", b.pair.Generation, b.pair.Closed.Reason)})
	}
}

// entries returns the entries of the pair as [ledger.Ledger.Entries] does, up to
// the cut. The last one may so be a part of one.
func (b *books) entries(from int64) iter.Seq2[ledger.Entry, error] {
	return func(yield func(ledger.Entry, error) bool) {
		for e, err := range b.ledger.Entries(b.pair.ID, from) {
			if err == nil && !b.clip(&e) {
				continue
			}
			if !yield(e, err) {
				return
			}
		}
	}
}

// clip takes from an entry what lies behind the cut. It returns false if nothing
// is left.
func (b *books) clip(e *ledger.Entry) bool {
	if b.cut == nil {
		return true
	}
	if e.Tile.AdvancesSource() && e.Source.Start >= b.cut.Source || !e.Tile.AdvancesSource() && e.Target.Start >= b.cut.Target {
		return false
	}
	if e.Tile == ledger.Copied && e.Source.End > b.cut.Source {
		e.Bytes = e.Bytes * (b.cut.Source - e.Source.Start) / e.Source.Len() // about; only to plan with
	}
	e.Source.End, e.Target.End = min(e.Source.End, b.cut.Source), min(e.Target.End, b.cut.Target)
	e.Source.Start, e.Target.Start = min(e.Source.Start, e.Source.End), min(e.Target.Start, e.Target.End)
	for i := range e.Gaps {
		if e.Gaps[i].Range.Start >= b.cut.Source {
			e.Gaps = e.Gaps[:i]
			break
		}
		e.Gaps[i].Range.End = min(e.Gaps[i].Range.End, b.cut.Source)
	}
	return true
}

// tear prepares a unit that is a part of an entry: the digest in the books is of
// more records than these.
func (e *expectation) tear(u *unit) {
	if e.books.cut == nil || u.entry.Source.Start != e.books.torn {
		return
	}
	digest := ledger.Digest(0)
	for i := range u.slots {
		u.torn = u.torn || u.slots[i].state != sourceHas
		digest = digest.Add(u.slots[i].hash)
	}
	if !u.torn {
		u.entry.Digest = digest
	}
}

// cutOff reports whether the job is about a generation that is read up to a cut.
func (j *job) cutOff() bool { return j.books != nil && j.books.cut != nil }

// until returns up to where a job is about both sides.
func (j *job) until(asked Until) Until {
	if j.cutOff() {
		return UntilBook
	}
	return asked
}

// asks reports whether the clusters are asked about the job: not if its books
// alone are read in any case.
func (j *job) asks() bool {
	return j.books != nil && (j.books.pair.Closed == nil || j.cutOff())
}

// sameLogs reports whether neither topic is known to be another one than the
// books are about.
func (j *job) sameLogs() bool {
	pair := &j.books.pair
	return !j.target.deleted() && j.target.renamed("target", pair.TargetTopicID) == "" &&
		(!j.source.known || !j.source.deleted() && j.source.renamed("source", pair.SourceTopicID) == "")
}
