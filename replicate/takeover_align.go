package replicate

import (
	"math"

	"apograph/ledger"
)

// A takeover makes the books of a copy that MirrorMaker 2 made, by content
// alone: nothing numbers its records. It is pure, as [aligner] is.
//
// What it relies on: each of MirrorMaker's runs brings the source's records over
// in order and without a gap, aborted ones as well unless it reads committed data,
// and begins at a place where an earlier one has been (MirrorSourceTask; Connect
// flushes source offsets from time to time). So the first copies of the source's
// records stand on the target in order: those are booked as copied, aborted ones
// as foreign. Every other record of the target repeats one of them. Of records
// with the same content it does not matter which is taken for which. Which of the
// copies count is known at the end: see takenRuns.
//
// Every record of the source, from the first that is on the target to the last,
// must be there: a gap is an [alignError].
type takeover struct {
	attachBooks
	sides  *takeoverSides
	target *copyWindow
	source *takenWindow // behind the last record that the target has
	replay *replay      // nil: nothing is repeated at hand
	start  int64        // the scope of the books
	recent recentRecords
	runs   takenRuns

	// committed: the copier is taken to have read committed data, so that of two
	// equal records one that was not aborted is preferred.
	committed bool

	strange map[int64]bool // target offsets of records that the source is known not to have
	found   takeoverCounts
}

// takeoverSides are the two sides of one partition. Each can be read as often as
// it takes; stop ends a reading.
type takeoverSides struct {
	source func(from int64) (next func() (*unit, error), stop func())
	target func() (next func() (*copyBatch, error), stop func())

	// undecided returns where the source's records stand that lie behind an open
	// transaction, by hash.
	undecided func() (map[uint64]int64, error)

	hints map[int64]int64 // source offset of a target offset, as MirrorMaker says: to be checked

	logStart               int64 // of the source
	targetStart, targetEnd int64
}

// takeoverCounts are what of the target's offsets is no copy.
type takeoverCounts struct {
	aborted int64 // records of aborted transactions, the source's or the copier's
	markers int64
	strange int64 // records that the source does not have
	stamped int64 // of those copied: they had no time, and have one on the target
}

// A replay is where the copier repeats what it had copied.
type replay struct {
	peek func(i int) (*takenRecord, error)
	pop  func(n int)
	stop func()
}

// align goes through both sides to the target's end.
func (a *takeover) align(from int64) error {
	defer a.endReplay()
	for {
		t, err := a.target.peek(0)
		if err != nil {
			return err
		}
		if t == nil {
			if !a.open {
				return errNothingMatches
			}
			return a.flush()
		}
		if err := a.step(*t, from); err != nil {
			return err
		}
	}
}

// step explains at least the target's next offset. The source's first record
// stands on the target at offset from.
func (a *takeover) step(t copyRun, from int64) error {
	switch {
	case t.kind == copyMarker:
		a.found.markers += t.n
		return a.foreign(t, ledger.CauseNone)
	case t.kind == copyDiscarded:
		a.found.aborted += t.n
		return a.foreign(t, ledger.CauseAborted)
	case t.kind == copyHole && t.offset < from:
		return a.gone(t)
	case t.kind == copyHole:
		return a.hole(t)
	case t.offset < from || a.strange[t.offset]:
		delete(a.strange, t.offset)
		a.found.strange++
		return a.foreign(t, ledger.CauseNone)
	}
	if repeats, err := a.repeats(t); repeats || err != nil {
		return err
	}
	if goesOn, err := a.goesOn(t); goesOn || err != nil {
		return err
	}
	return a.search(t)
}

// foreign books the target's next run as no copy.
func (a *takeover) foreign(t copyRun, cause ledger.Cause) error {
	a.target.pop()
	a.counts.foreign += t.n
	return a.note(ledger.Entry{Tile: ledger.Foreign, Cause: cause, Target: ledger.Range{Start: t.offset, End: t.offset + t.n}})
}

// gone books offsets of which nothing tells what stood there.
func (a *takeover) gone(t copyRun) error {
	a.counts.byPlace += t.n
	return a.foreign(t, ledger.CauseNone)
}

// pick returns which of the next records a run of the target is: the next one,
// or one behind aborted ones that the copier left out; -1 if none.
func (a *takeover) pick(peek func(i int) (*takenRecord, error), t sums) (int, error) {
	first := -1
	for i := range attachWindow {
		r, err := peek(i)
		if err != nil {
			return -1, err
		}
		if r == nil {
			break
		}
		if t.equal(r.hash) {
			if !r.aborted || !a.committed {
				return i, nil
			}
			if first < 0 {
				first = i
			}
		}
		if !r.aborted {
			break
		}
	}
	return first, nil
}

// goesOn books the target's next record as the first copy of the source's next
// one, if it is.
func (a *takeover) goesOn(t copyRun) (bool, error) {
	i, err := a.pick(a.source.peek, t.sums)
	if i < 0 || err != nil {
		return false, err
	}
	if err := a.opened(); err != nil {
		return false, err
	}
	for range i {
		a.passAborted()
	}
	if a.source.records[0].aborted {
		a.passAborted()
		a.found.aborted++
		return true, a.foreign(t, ledger.CauseAborted)
	}
	a.target.pop()
	return true, a.matched(t.offset)
}

// passAborted goes on behind the source's next record, which was aborted.
func (a *takeover) passAborted() {
	r := &a.source.records[0]
	a.recent.add(recentRecord{hash: r.hash, offset: r.offset, aborted: true})
	a.source.pop(1)
}

// opened opens the books, under no producer: nothing numbers the records.
func (a *takeover) opened() error {
	if a.open {
		return nil
	}
	return a.begin(ledger.Producer{ID: noProducer})
}

// matched books the source's next record as copied to a target offset.
func (a *takeover) matched(target int64) error {
	if err := a.opened(); err != nil {
		return err
	}
	if err := a.followFirst(target); err != nil {
		return err
	}
	r := &a.source.records[0]
	if err := a.copied(&r.sourceRecord); err != nil {
		return err
	}
	a.recent.add(recentRecord{hash: r.hash, offset: r.offset})
	a.counts.copied++
	if r.timeless {
		a.found.stamped++
	}
	a.source.pop(1)
	return nil
}

// next returns the offset of the source's next record.
func (a *takeover) next() (int64, error) {
	r, err := a.source.peek(0)
	if err != nil || r == nil {
		return math.MaxInt64, err
	}
	return r.offset, nil
}

// repeats books the target's next record as a second copy, if it is what comes
// next of what the copier repeats.
func (a *takeover) repeats(t copyRun) (bool, error) {
	if a.replay == nil {
		return false, nil
	}
	next, err := a.next()
	if err != nil {
		return false, err
	}
	i, err := a.pick(a.replay.peek, t.sums)
	if err != nil {
		return false, err
	}
	r, err := a.replay.peek(max(i, 0))
	switch {
	case err != nil:
		return false, err
	case r == nil || r.offset >= next:
		a.endReplay()
		return false, nil
	case i < 0:
		return false, nil
	}
	offset, aborted := r.offset, r.aborted
	a.replay.pop(i + 1)
	if aborted {
		a.found.aborted++
		return true, a.foreign(t, ledger.CauseAborted)
	}
	if err := a.followAgain(t.offset, offset); err != nil {
		return false, err
	}
	a.target.pop()
	a.counts.duplicates++
	return true, a.note(ledger.Entry{
		Tile: ledger.Duplicate, Target: ledger.Range{Start: t.offset, End: t.offset + 1}, Origin: ledger.Range{Start: offset, End: offset + 1},
	})
}

func (a *takeover) endReplay() {
	if a.replay != nil {
		a.replay.stop()
		a.replay = nil
	}
}

// hole books offsets that hold nothing, of a target that was compacted: where a
// record behind it is one that the source has later, those of the source in front
// of that stood in holes.
func (a *takeover) hole(t copyRun) error {
	n, err := a.inHoles()
	if err != nil {
		return err
	}
	n = min(n, t.n)
	if rest := t.n - n; rest > 0 {
		if err := a.gone(copyRun{offset: t.offset, n: rest}); err != nil {
			return err
		}
	} else {
		a.target.pop()
	}
	for a.counts.byPlace += n; n > 0; {
		if a.source.records[0].aborted {
			a.passAborted()
			continue
		}
		if err := a.matched(t.offset + t.n - n); err != nil {
			return err
		}
		n--
	}
	return nil
}

// inHoles returns how many of the source's next records stood in the target's next
// holes.
func (a *takeover) inHoles() (int64, error) {
	room := int64(0)
	for i, records := 0, 0; records < takeoverRun; i++ {
		t, err := a.target.peek(i)
		if err != nil || t == nil {
			return 0, err
		}
		switch t.kind {
		case copyHole:
			room += t.n
		case copyRecord:
			records++
			n, found, err := a.upTo(t.sums, room)
			if found || err != nil {
				return n, err
			}
		}
	}
	return 0, nil
}

// upTo counts the source's next records in front of one of the target, at most so
// many; or reports that the target's record is not one of the source's next ones,
// or comes again.
func (a *takeover) upTo(t sums, most int64) (n int64, found bool, err error) {
	if a.replay != nil {
		if i, err := a.pick(a.replay.peek, t); i >= 0 || err != nil {
			return 0, true, err
		}
	}
	for i := 0; n <= most && i < attachWindow; i++ {
		r, err := a.source.peek(i)
		if r == nil || err != nil {
			return 0, false, err
		}
		if t.equal(r.hash) {
			return n, true, nil
		}
		if !r.aborted {
			n++
		}
	}
	return 0, false, nil
}
