package verify

import (
	"fmt"
	"iter"
	"slices"

	"apograph/ledger"
)

// A generation that was cut off, and that the next ones go on, is read like an
// open one, up to the cut: below it the target must still hold what the books say.
// What they say from there on belongs to no count, as the next generation has
// copied it again. Of others that are closed the books alone are read, and where
// the target's log ends.
//
// So is one that was closed because the source's log was cut, up to where the next
// one begins: below that, both sides are the same logs as before. What its books
// say from there on is of records that the source has no more, and that the target
// still holds: it is counted, and not read.

// cutAt makes the books end at the cut, if there is one. The later generations
// are those of the same source partition, in order.
func (b *books) cutAt(later []ledger.Pair) (err error) {
	b.torn, b.last = -1, b.end
	if b.pair.Closed == nil {
		return nil
	}
	defer func() { b.findBehind(later) }()
	if b.cut, err = b.ledger.CutOff(b.pair.ID); err != nil {
		return err
	}
	if b.cut != nil {
		b.overwritten = slices.ContainsFunc(later, b.overwrittenBy)
	} else if err := b.limitTo(later); err != nil || b.cut == nil {
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

// findBehind finds the later generation that begins where the target had lost what
// the books have up to their end, and nobody cut them off: the log ended there once.
func (b *books) findBehind(later []ledger.Pair) {
	lowest := b.end.Target
	for i := range later {
		p := &later[i]
		if p.TargetTopic == b.pair.TargetTopic && p.TargetTopicID == b.pair.TargetTopicID && p.TargetBase < lowest {
			b.behind, lowest = p, p.TargetBase
		}
	}
}

// overwrittenBy reports whether a later generation begins on the source below the
// cut: the source was cut there too, and holds something else from there on.
func (b *books) overwrittenBy(p ledger.Pair) bool {
	return b.sameTopics(&p) && p.ScopeStart < b.cut.Source
}

// limitTo cuts books that the target holds to their end where the first of the
// later generations begins on the source that are of the same two logs, if the next
// one goes on where the target book ends.
func (b *books) limitTo(later []ledger.Pair) error {
	limit := b.end.Source
	for i := range later {
		if !b.sameTopics(&later[i]) || i == 0 && later[i].TargetBase != b.end.Target {
			break
		}
		b.kept = true
		limit = min(limit, later[i].ScopeStart)
	}
	if !b.kept {
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
	source := e.Source
	if !b.cut.Clip(e) {
		return false
	}
	if e.Tile == ledger.Copied && e.Source != source {
		e.Bytes = e.Bytes * e.Source.Len() / source.Len() // about; only to plan with
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
func (j *job) cutOff() bool { return j.books != nil && j.books.cut != nil && !j.books.overwritten }

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

// lostByTarget reports copied records of a closed generation that the target's log
// ends before, or ended before when a later generation began: it never gets shorter
// but by losing records.
func (j *job) lostByTarget() error {
	b, end := j.books, j.target.bounds.end
	how := fmt.Sprintf("whose log ends at offset %d", end)
	if b.behind != nil && b.behind.TargetBase < end {
		end = b.behind.TargetBase
		how = fmt.Sprintf("whose log ended at offset %d when generation %d began there", end, b.behind.Generation)
	}
	if b.pair.Closed == nil || !j.target.known || j.target.deleted() || j.target.unreadable() != nil || j.target.renamed("target", b.pair.TargetTopicID) != "" || end >= b.end.Target {
		return nil
	}
	for e, err := range b.ledger.EntriesFromTarget(b.pair.ID, max(end, b.pair.TargetBase)) {
		if err != nil {
			return err
		}
		if !b.clip(&e) || e.Tile != ledger.Copied || e.Target.End <= end {
			continue
		}
		from := max(end, e.Target.Start)
		n := e.Target.End - from
		j.row.Missing += n
		j.row.NotVerified -= n
		j.findings.fault(Missing, &Range{e.SourceOf(from), e.Source.End}, &Range{from, e.Target.End},
			"not on the target, %s, and generation %d is closed", how, b.pair.Generation)
	}
	j.row.Verdict = j.findings.verdict()
	return nil
}
