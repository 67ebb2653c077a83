package replicate

import (
	"iter"

	"apograph/ledger"
)

// attachBooks are the books of one partition while they are made anew: entries
// go to a sink in order, runs of them kept together.
type attachBooks struct {
	sink attachSink // zero: nothing is written

	position ledger.Position // where both books end
	open     bool            // the pair is
	waiting  []ledger.Entry  // until it is
	pending  ledger.Entry    // of the target alone, that may go on; empty range: none
	run      copiedRun
	current  ledger.Producer
	counts   attachCounts
}

// An attachSink takes books. Its functions may be nil.
type attachSink struct {
	open    func(first ledger.Producer) error
	entry   func(e ledger.Entry) error
	produce func(p ledger.Producer) error

	// again begins the books once more, and returns the entries that they had. A
	// takeover calls it.
	again func() (attachSink, iter.Seq2[ledger.Entry, error], error)
}

// attachCounts are what an alignment came to.
type attachCounts struct {
	copied, orphans, foreign, duplicates int64

	unexplained int64 // source offsets that are empty without a cause

	byPlace int64 // of copied and orphans: the target does not have the record any more
	tail    int64 // of orphans: behind the source's last record
	unknown int64 // of foreign: numbers of ours, too old to say what they repeat

	jumped   int64 // numbers of ours that were passed over, in a log without holes
	jumpedTo int64 // target offset behind the last of them
}

// A copiedRun is consecutive records of one unit that are on the target one
// behind the other.
type copiedRun struct {
	unit     *unit
	from, to int
	timeless bool // the target has put times of its own on them
}

// begin opens the pair, now that it is known who wrote the copy.
func (a *attachBooks) begin(p ledger.Producer) error {
	a.open, a.current = true, p
	if a.sink.open != nil {
		if err := a.sink.open(p); err != nil {
			return err
		}
	}
	waiting := a.waiting
	a.waiting = nil
	for _, e := range waiting {
		if err := a.enter(e); err != nil {
			return err
		}
	}
	return nil
}

// note books target offsets that are no copies the books count. Runs are kept
// together.
func (a *attachBooks) note(e ledger.Entry) error {
	if err := a.flushRun(); err != nil {
		return err
	}
	if e.Tile == ledger.Orphan {
		a.position.Appended += e.Target.Len()
	}
	p := &a.pending
	joins := !p.Target.Empty() && p.Tile == e.Tile && p.Cause == e.Cause && p.Reason == e.Reason && p.Target.End == e.Target.Start
	if joins && (e.Tile != ledger.Duplicate || e.Origin.Start >= p.Origin.End) {
		p.Target.End = e.Target.End
		p.Origin.End = e.Origin.End
		return nil
	}
	if err := a.flushNote(); err != nil {
		return err
	}
	a.pending = e
	return nil
}

func (a *attachBooks) flushNote() error {
	e := a.pending
	a.pending = ledger.Entry{}
	if e.Target.Empty() {
		return nil
	}
	e.Source = ledger.Range{Start: a.position.Source, End: a.position.Source}
	e.LeaderEpoch = -1
	a.position.Target = e.Target.End
	return a.enter(e)
}

// copied adds the source's next record to the run at hand.
func (a *attachBooks) copied(s *sourceRecord) error {
	if err := a.flushNote(); err != nil {
		return err
	}
	if a.run.unit != s.unit || a.run.to != s.index || a.run.timeless != s.timeless {
		if err := a.flushRun(); err != nil {
			return err
		}
		for _, u := range s.before {
			if err := a.enterSource(u.entry, 0); err != nil {
				return err
			}
		}
		a.run = copiedRun{s.unit, s.index, s.index, s.timeless}
	}
	a.run.to++
	a.position.Appended++
	if a.run.to == len(s.unit.infos) {
		return a.flushRun()
	}
	return nil
}

// flushRun books the run at hand.
func (a *attachBooks) flushRun() error {
	r := a.run
	a.run = copiedRun{}
	if r.unit == nil {
		return nil
	}
	start, end := r.unit.entry.Source.Start, r.unit.infos[r.to-1].offset+1
	if r.from > 0 {
		start = r.unit.infos[r.from-1].offset + 1
	}
	if r.to == len(r.unit.infos) {
		end = r.unit.entry.Source.End
	}
	e := r.unit.part(start, r.from, r.to, end).entry
	e.TimestampsReplaced = e.TimestampsReplaced || r.timeless
	return a.enterSource(e, int64(r.to-r.from))
}

// enterSource books an entry of the source with so many records on the target.
func (a *attachBooks) enterSource(e ledger.Entry, records int64) error {
	e.Target = ledger.Range{Start: a.position.Target, End: a.position.Target + records}
	a.position.Source, a.position.Target = e.Source.End, e.Target.End
	return a.enter(e)
}

func (a *attachBooks) enter(e ledger.Entry) error {
	if e.Tile == ledger.Unexplained {
		a.counts.unexplained += e.Source.Len()
	}
	switch {
	case !a.open:
		a.waiting = append(a.waiting, e)
		return nil
	case a.sink.entry == nil:
		return nil
	}
	return a.sink.entry(e)
}

func (a *attachBooks) flush() error {
	if err := a.flushRun(); err != nil {
		return err
	}
	return a.flushNote()
}
