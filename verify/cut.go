package verify

import (
	"iter"

	"apograph/ledger"
)

// A generation that was closed with a cut is read like an open one, up to the
// cut: below it the target must still hold what the books say. What they say from
// there on belongs to no count, as the next generation has copied it again.

// cutAt makes the books end at the cut, if the generation was closed with one.
func (b *books) cutAt() error {
	b.torn = -1
	if b.pair.Closed == nil || b.pair.Closed.Cut == nil {
		return nil
	}
	b.cut = b.pair.Closed.Cut
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

// cutOff reports whether the job is about a generation that was closed with a
// cut.
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
