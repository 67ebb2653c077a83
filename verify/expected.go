package verify

import (
	"iter"

	"apograph/ledger"
)

// maxNote bounds the slots of a unit that is a note, which can be of any length.
const maxNote = 4096

// An expectation turns the entries of a pair, and the source's records, into
// the sequence of records that the target should hold. On the way the source
// is compared with the book.
type expectation struct {
	books  *books
	part   part
	source *sourceView
	pull   func() (ledger.Entry, error, bool)
	stop   func()

	rest *ledger.Entry // of a note that is longer than a unit
	free []*unit       // to use again
}

func newExpectation(b *books, p part, source *sourceView) *expectation {
	pull, stop := iter.Pull2(b.entries(p.lead.source))
	return &expectation{books: b, part: p, source: source, pull: pull, stop: stop}
}

// next returns the next unit, nil at the end of what is read for the part.
func (e *expectation) next() (*unit, error) {
	if e.rest != nil {
		return e.noteUnit(*e.rest), nil
	}
	for {
		entry, err, ok := e.pull()
		if err != nil || !ok {
			return nil, err
		}
		switch {
		case e.part.before(&entry):
		case e.part.behind(&entry):
			return nil, nil
		case entry.Tile == ledger.Copied:
			if u := e.copiedUnit(entry); len(u.slots) > 0 {
				return u, nil
			}
		case entry.Tile.AdvancesTarget():
			return e.noteUnit(entry), nil
		default:
			e.source.pass(entry.Tile, entry.Source, entry.Target.Start)
		}
	}
}

func (e *expectation) copiedUnit(entry ledger.Entry) *unit {
	u := e.unit(entry)
	for run := range entry.Runs() {
		if run.Tile != ledger.Copied {
			e.source.pass(run.Tile, run.Source, run.Target.Start)
			continue
		}
		for i := range run.Source.Len() {
			s := slot{source: run.Source.Start + i}
			s.hash, s.state = e.source.slot(s.source, entry.TimestampsReplaced, run.Target.Start+i)
			u.slots = append(u.slots, s)
		}
	}
	e.tear(u)
	return u
}

// noteUnit returns a unit for the front of a note, and keeps the rest.
func (e *expectation) noteUnit(entry ledger.Entry) *unit {
	e.rest = nil
	if entry.Target.Len() > maxNote {
		rest := entry
		rest.Target.Start += maxNote
		e.rest = &rest
		entry.Target.End = rest.Target.Start
	}
	u := e.unit(entry)
	for range entry.Target.Len() {
		u.slots = append(u.slots, slot{source: entry.Source.Start, state: sourceUnread})
	}
	return u
}

func (e *expectation) unit(entry ledger.Entry) *unit {
	if n := len(e.free); n > 0 {
		u := e.free[n-1]
		e.free = e.free[:n-1]
		*u = unit{entry: entry, slots: u.slots[:0]}
		return u
	}
	return &unit{entry: entry}
}

// recycle takes back a unit that nobody uses any more.
func (e *expectation) recycle(u *unit) {
	if len(e.free) < 64 {
		e.free = append(e.free, u)
	}
}
