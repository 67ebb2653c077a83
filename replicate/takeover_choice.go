package replicate

import (
	"errors"
	"math"
	"slices"

	"apograph/ledger"
)

// Of the copies of one record the last one counts, as far as the order allows: of
// all choices in which the source's order is the target's, the one with the
// greatest target offsets. So whoever goes on behind a record of the source reads
// as little again as can be, and misses nothing.
//
// It is made of runs. Backwards from where the source's records end on the target,
// the last run counts that reaches what the runs behind it begin with, down to where
// it begins itself. One that breaks off before does not: what it lacks stands in
// front of it. The first copies are such a choice, so that there is one.

// A takenRun is where the copier went through the source without going back.
type takenRun struct {
	target      int64 // of its first record
	source, end int64 // source offsets: of that, and of the next behind the last
	repeats     bool  // it begins with a record that had been copied
}

// takenRuns are the runs of a copy, without those that a later one goes all over.
type takenRuns struct {
	list    []takenRun
	reached int64 // on the source, by the first copies
	full    bool
}

// maxTakenRuns bounds how many are known. Of what is repeated behind them the
// first copies count.
const maxTakenRuns = attachWindow

// followFirst notes that the first copy of the source's next record stands at a
// target offset.
func (a *takeover) followFirst(target int64) error {
	end, err := committedFrom(a.source.peek, 1)
	if err != nil {
		return err
	}
	from := a.runs.reached
	a.runs.reached = end
	a.runs.add(takenRun{target: target, source: from, end: end})
	return nil
}

// followAgain notes that a later copy of a record, behind which what is repeated
// goes on, stands at a target offset.
func (a *takeover) followAgain(target, source int64) error {
	end, err := committedFrom(a.replay.peek, 0)
	if err != nil {
		return err
	}
	end = min(end, a.runs.reached) // what is remembered ends there
	a.runs.add(takenRun{target: target, source: source, end: end, repeats: true})
	return nil
}

// committedFrom returns the offset of the first of the next records, from record i
// on, that was not aborted. If more of them were than an alignment holds it returns
// that of record i: a run that breaks off there, and another one behind them, are not
// known to be next to each other.
func committedFrom(peek func(i int) (*takenRecord, error), i int) (int64, error) {
	first := int64(math.MaxInt64)
	for n := range attachWindow {
		r, err := peek(i + n)
		if err != nil || r == nil {
			return math.MaxInt64, err
		}
		if !r.aborted {
			return r.offset, nil
		}
		first = min(first, r.offset)
	}
	return first, nil
}

// add adds a record to the last run, if it is what follows there, or else begins one.
func (r *takenRuns) add(x takenRun) {
	n := len(r.list)
	switch {
	case r.full:
		return
	case n > 0 && r.list[n-1].end == x.source:
		r.list[n-1].end = x.end
		return
	}
	r.forget()
	if r.full = len(r.list) == maxTakenRuns; !r.full {
		r.list = append(r.list, x)
	}
}

// forget leaves out runs that the last one has gone over from where they begin to
// where they end: it counts wherever they would.
func (r *takenRuns) forget() {
	for n := len(r.list); n > 1; n-- {
		last, before := r.list[n-1], r.list[n-2]
		if last.source > before.source || last.end < before.end {
			return
		}
		r.list[n-2] = last
		r.list = r.list[:n-1]
	}
}

// counting returns the runs that count, in order, each with the end up to where it
// does, and whether they are others than the first copies.
func (r *takenRuns) counting() (runs []takenRun, again bool) {
	from := int64(0)
	for _, x := range r.list {
		from = max(from, x.end)
	}
	for _, x := range slices.Backward(r.list) {
		if x.source < from && from <= x.end {
			from, x.end = x.source, from
			runs, again = append(runs, x), again || x.repeats
		}
	}
	slices.Reverse(runs)
	return runs, again
}

// A rebooking makes books once more of which the first copies were booked, with
// the copies that count.
type rebooking struct {
	attachBooks
	source *takenWindow // behind the last record that is booked
	runs   []takenRun   // that count, from the one at hand on
}

// errCopiedAgain ends books that have first copies where later ones count.
var errCopiedAgain = errors.New("the copier has repeated itself")

// rebook makes the books of a takeover once more, if other copies count than it has
// booked. It reads the source again, and the target not.
func (s *takeoverSides) rebook(a *takeover) error {
	runs, again := a.runs.counting()
	if !again || a.sink.again == nil {
		return nil
	}
	sink, entries, err := a.sink.again()
	if err != nil {
		return err
	}
	next, stop := s.source(a.start)
	defer stop()
	b := &rebooking{
		attachBooks: attachBooks{sink: sink, position: ledger.Position{Source: a.start, Target: s.targetStart}},
		source:      &takenWindow{read: next}, runs: runs,
	}
	if err := b.begin(ledger.Producer{ID: noProducer}); err != nil {
		return err
	}
	before := ledger.Copied
	for e, err := range entries {
		if err != nil {
			return err
		}
		if !e.Tile.AdvancesTarget() {
			continue // it comes with the records
		}
		if e.Tile == ledger.Duplicate || e.Tile != before { // else its range goes on
			if err := b.flushNote(); err != nil {
				return err
			}
		}
		before = e.Tile
		if err := b.entry(&e); err != nil {
			return err
		}
	}
	return b.flush()
}

// entry books what an entry has of the target.
func (b *rebooking) entry(e *ledger.Entry) error {
	switch e.Tile {
	case ledger.Duplicate:
		return b.records(e.Target, e.Origin, true)
	case ledger.Copied:
		for run := range e.Runs() {
			if err := b.records(run.Target, run.Source, false); err != nil {
				return err
			}
		}
		return nil
	}
	return b.note(ledger.Entry{Tile: e.Tile, Cause: e.Cause, Target: e.Target})
}

// records books records of the target, which follow one another on the source.
func (b *rebooking) records(target, source ledger.Range, again bool) error {
	for !target.Empty() {
		r, err := b.next(target.Start, again)
		if err != nil {
			return err
		}
		if r == nil {
			return b.note(ledger.Entry{Tile: ledger.Duplicate, Target: target, Origin: source})
		}
		if err := b.copied(&r.sourceRecord); err != nil {
			return err
		}
		source.Start = r.offset + 1
		b.source.pop(1)
		target.Start++
	}
	return nil
}

// next returns the source's next record, if the copy of it that counts is the one at
// a target offset; else nil.
func (b *rebooking) next(target int64, again bool) (*takenRecord, error) {
	for len(b.runs) > 1 && target >= b.runs[1].target {
		b.runs = b.runs[1:]
	}
	if target < b.runs[0].target {
		return nil, nil
	}
	r, err := b.source.peek(0)
	for r != nil && r.aborted && err == nil {
		b.source.pop(1)
		r, err = b.source.peek(0)
	}
	if r != nil && r.offset >= b.runs[0].end && (again || len(b.runs) > 1) {
		return nil, err
	}
	return r, err
}
