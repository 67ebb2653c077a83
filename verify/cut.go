package verify

import (
	"iter"
	"slices"

	"apograph/ledger"
)

// A generation that was cut off, and that the next ones go on, is read like an open one, up to the
// cut: below it the target must still hold what the books say. What they say from
// there on belongs to no count, as the next generation has copied it again. Of
// others that are closed the books alone are read, and where the target's log ends.

// cutAt makes the books end at the cut, if the generation was cut off.
func (b *books) cutAt() (err error) {
	b.torn = -1
	if b.cut, err = b.ledger.CutOff(b.pair.ID); b.cut == nil || err != nil {
		return err
	}
	b.overwritten = slices.ContainsFunc(b.ledger.Pairs(), b.overwrittenBy)
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

// overwrittenBy reports whether a later generation begins on the source below the
// cut: the source was cut there too, and holds something else from there on.
func (b *books) overwrittenBy(p ledger.Pair) bool {
	return p.SourceTopic == b.pair.SourceTopic && p.Partition == b.pair.Partition && p.Generation > b.pair.Generation &&
		p.SourceTopicID == b.pair.SourceTopicID && p.TargetTopicID == b.pair.TargetTopicID && p.ScopeStart < b.cut.Source
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

// cutOff reports whether the job is about a generation that was cut off, and is
// read up to there.
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
// ends before: it never gets shorter but by losing records.
func (j *job) lostByTarget() error {
	b, end := j.books, j.target.bounds.end
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
			"not on the target, whose log ends at offset %d, and generation %d is closed", end, b.pair.Generation)
	}
	j.row.Verdict = j.findings.verdict()
	return nil
}
