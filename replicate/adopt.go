package replicate

import (
	"errors"
	"fmt"

	"apograph/ledger"
)

// adoptionWindow bounds how many of the target's records, or of the source's,
// are looked at to find where the two go together again.
const adoptionWindow = 100_000

// An adoption books what the target holds behind the books: a copier wrote it
// and ended before it could say so, or somebody else did. The records are
// matched one by one with those of the source, so it does not matter how the
// other grouped them. All of it gets into the books, under its own name, up to
// the end that the log had when the adoption began.
type adoption struct {
	reader  *tailReader
	batches []*readBatch // read ahead, in offset order
	ahead   int          // batches in there, and records that are known of them
	ended   bool         // the reader has come to its end

	at     int64 // next target offset to account for
	number int64 // of the next record of ours: copied ones and orphans before it

	queue []*unit // of the source, assembled and not wholly accounted for
	next  int     // record of queue[0] to match next
	from  int     // first record of queue[0] that is not booked
	over  bool    // the source has nothing more

	sourceEnd int64 // that the source was last known to have

	note    ledger.Range // target offsets of others, not booked yet
	noteWhy string
	calm    bool // what is noted stops nothing

	epoch int32     // of the source's leader, that the books have as their last; -1 unknown
	blind *blindRun // nil, or what is matched by its place and not booked

	absent  int64 // source offsets without a record, and without an orphan
	orphans int64 // so many of the next records of ours have no source

	fresh     bool // the target's end was not reached yet in this run: what follows in step is adopted, whoever wrote it
	cutKnown  bool // a person accepts that the source was cut
	holeKnown bool // a person accepts that what is gone cannot be told
	closing   bool // the generation ends with it: from the first record of others on, all is the next one's
}

// What a step of an adoption ends with.
type adoptionState uint8

const (
	wantsSource adoptionState = iota // it cannot go on without the source's next records
	tailAdopted                      // all is in the books
	goesOn                           // something was done
)

func newAdoption(p *partition, end ledger.Position, logEnd int64) (*adoption, error) {
	absent, absentErr := p.absentAtEnd()
	order := p.flow.exactOrder(p.source)
	known, err := p.flow.ledger.NewestEpoch(p.pair.ID)
	a := &adoption{
		reader: p.newTail(end.Target, logEnd), at: end.Target, number: end.Appended, absent: absent, epoch: known.Epoch,
		fresh: !p.caughtTarget, cutKnown: order.AcceptTruncated, holeKnown: order.Recopy,
	}
	a.reader.hashAll = a.fresh
	return a, errors.Join(absentErr, err)
}

// add takes the source's next unit. Of its batch nothing is needed.
func (a *adoption) add(u *unit) {
	u.release()
	a.queue = append(a.queue, u)
	if len(a.queue) == 1 && u.records > 0 {
		a.absent += compactedBefore(u, 0)
	}
}

// step accounts for as much as it can.
func (a *adoption) step(p *partition) (adoptionState, error) {
	for {
		if len(a.queue) > 0 && a.queue[0].records == 0 {
			if err := a.sourceOnly(p); err != nil {
				return 0, err
			}
			continue
		}
		b, err := a.peek(0)
		if err != nil {
			return 0, err
		}
		if b == nil && a.at >= a.reader.end {
			return tailAdopted, a.finish(p)
		}
		v, err := a.judge(0, a.at, a.number)
		if err != nil {
			return 0, err
		}
		state, err := a.account(p, b, v)
		if err != nil || state != goesOn {
			return state, err
		}
		if len(a.batches) > 0 && a.at >= a.batches[0].next {
			a.ahead -= a.batches[0].weight()
			a.batches[0] = nil
			a.batches = a.batches[1:]
		}
	}
}

// finish books what is left at the end of the log.
func (a *adoption) finish(p *partition) error {
	if a.blind != nil {
		return a.unconfirmed(p, StopTargetLostRecords, "nothing behind them tells whether they were what the source has")
	}
	return a.flush(p)
}

// account books what a verdict is about.
func (a *adoption) account(p *partition, b *readBatch, v verdict) (adoptionState, error) {
	if a.blind != nil && v.kind != tailNext && v.kind != tailStranger {
		return 0, a.unconfirmed(p, StopTargetLostRecords, "what stands behind them does not tell whether they were what the source has")
	}
	switch v.kind {
	case tailNext:
		return a.match(p, b, v.until)
	case tailSecond:
		return goesOn, a.second(p, b, v)
	case tailEarly:
		return a.early(p, b, v)
	case tailGone:
		return goesOn, a.vanished(p, v)
	default:
		return a.stranger(p, b)
	}
}

// sourceOnly books the unit without records that comes next.
func (a *adoption) sourceOnly(p *partition) error {
	u := a.queue[0]
	if err := a.flush(p); err != nil {
		return err
	}
	switch u.entry.Tile {
	case ledger.CommitMarker, ledger.AbortMarker, ledger.Aborted:
	default:
		a.absent += u.entry.Source.Len()
	}
	a.pop()
	return a.enter(p, u.entry)
}

// pop goes on to the next unit.
func (a *adoption) pop() {
	a.queue = a.queue[1:]
	a.next, a.from = 0, 0
	if len(a.queue) > 0 && a.queue[0].records > 0 {
		a.absent += compactedBefore(a.queue[0], 0)
	}
}

// match goes through what is ours and follows in step, up to a target offset.
func (a *adoption) match(p *partition, b *readBatch, until int64) (adoptionState, error) {
	if err := a.flushNote(p); err != nil {
		return 0, err
	}
	for a.at < until {
		if a.orphans > 0 {
			if err := a.enterOrphans(p, min(a.orphans, until-a.at)); err != nil {
				return 0, err
			}
			continue
		}
		if len(a.queue) == 0 && !a.over {
			return wantsSource, nil
		}
		if len(a.queue) > 0 && a.queue[0].records == 0 {
			return goesOn, nil
		}
		hash, there := b.hashAt(a.at)
		if len(a.queue) == 0 || there && hash != a.queue[0].infos[a.next].hash {
			if err := a.parted(p); err != nil {
				return 0, err
			}
			continue
		}
		sure := a.blindly
		if there {
			sure = a.confirmed
		}
		if err := sure(p); err != nil {
			return 0, err
		}
		if err := a.matched(p); err != nil {
			return 0, err
		}
	}
	return goesOn, nil
}

// matched goes on behind a record that stands on both sides.
func (a *adoption) matched(p *partition) error {
	u := a.queue[0]
	a.next++
	a.at++
	a.number++
	if a.next < len(u.infos) {
		a.absent += compactedBefore(u, a.next)
		return nil
	}
	if err := a.flush(p); err != nil {
		return err
	}
	a.absent += trailingGap(u)
	a.pop()
	return nil
}

// parted deals with a record of ours that is not the source's next one. It, and
// those up to the one that is, have no source any more. There cannot be more of
// them than source offsets whose record is gone, unless the source was cut.
func (a *adoption) parted(p *partition) error {
	if a.blind != nil {
		return a.unconfirmed(p, StopSourceTruncated, fmt.Sprintf("the record of ours at target offset %d, behind them, is not what the source has: its log was cut after they were copied, or compacted since", a.at))
	}
	if err := a.flush(p); err != nil {
		return err
	}
	n, err := a.withoutSource()
	if err != nil {
		return err
	}
	if n > a.absent && a.cutKnown {
		if err := p.carriedOutCut(); err != nil {
			return err
		}
	}
	if n > a.absent && !a.cutKnown {
		return &tailError{StopSourceTruncated, fmt.Sprintf("%d records of ours from target offset %d on differ from the source, which lacks only %d: its log was cut after they were copied",
			n, a.at, a.absent)}
	}
	a.absent = max(a.absent-n, 0)
	a.orphans = n
	return nil
}

// withoutSource counts the records of ours up to the source's next one, or all
// of them if it is not there.
func (a *adoption) withoutSource() (n int64, err error) {
	at, number := a.at, a.number
	for i := 0; n < adoptionWindow && a.inView(i); {
		b, err := a.peek(i)
		if b == nil || err != nil {
			return n, err
		}
		v, err := a.judge(i, at, number)
		if err != nil {
			return n, nil // told once all before it is in the books
		}
		for ; v.kind == tailNext && at < v.until; at++ {
			if hash, there := b.hashAt(at); there && len(a.queue) > 0 && a.queue[0].records > 0 && hash == a.queue[0].infos[a.next].hash {
				return n, nil
			}
			n, number = n+1, number+1
		}
		if at = v.until; at >= b.next {
			i++
		}
	}
	return n, nil
}

// lookahead returns the records of the source from the next one on, less the
// first skip. It reports false while there are not enough.
func (a *adoption) lookahead(skip, n int64) ([]recordInfo, bool) {
	var found []recordInfo
	first := a.next
	for _, u := range a.queue {
		infos := u.infos[min(first, len(u.infos)):]
		first = 0
		passed := min(skip, int64(len(infos)))
		skip -= passed
		found = append(found, infos[passed:]...)
		if int64(len(found)) >= n {
			return found[:n], true
		}
	}
	return nil, false
}

// enterOrphans books the next n offsets as ours without a source.
func (a *adoption) enterOrphans(p *partition, n int64) error {
	end := p.flow.ledger.End(p.pair.ID).Target
	if err := p.enterNote(ledger.Entry{Tile: ledger.Orphan, Target: ledger.Range{Start: end, End: end + n}}); err != nil {
		return err
	}
	a.orphans -= n
	a.at += n
	a.number += n
	return nil
}

// flush books the records of the unit at hand that are matched, and what others
// wrote.
func (a *adoption) flush(p *partition) error {
	if err := a.flushNote(p); err != nil || a.from == a.next {
		return err
	}
	u := a.queue[0]
	start, end := u.entry.Source.Start, u.infos[a.next-1].offset+1
	if a.from > 0 {
		start = u.infos[a.from-1].offset + 1
	}
	if a.next == len(u.infos) {
		end = u.entry.Source.End
	}
	part := u.part(start, a.from, a.next, end)
	a.from = a.next
	return a.enter(p, part.entry)
}

// enter books e at the books' end, as soon as all before it is there.
func (a *adoption) enter(p *partition, e ledger.Entry) error {
	return a.later(func() error { return a.append(p, e) })
}

func (a *adoption) append(p *partition, e ledger.Entry) error {
	end := p.flow.ledger.End(p.pair.ID)
	e.Target = ledger.Range{Start: end.Target, End: end.Target}
	if e.Tile == ledger.Copied {
		e.Target.End += e.Source.Len() - gapLen(e.Gaps)
	}
	if !p.enter(e) {
		return errBooks
	}
	return nil
}

// inView reports whether batch i may be looked at: not if what is read ahead of
// the target would have no bound. What is kept grows with its records where all
// are hashed, else with its batches.
func (a *adoption) inView(i int) bool { return i < len(a.batches) || a.ahead < adoptionWindow }

// peek returns batch i of those not wholly accounted for, nil behind the last.
func (a *adoption) peek(i int) (*readBatch, error) {
	for len(a.batches) <= i && !a.ended {
		b, err := a.reader.batch()
		if err != nil {
			return nil, err
		}
		if a.ended = b == nil; !a.ended {
			a.batches = append(a.batches, b)
			a.ahead += b.weight()
		}
	}
	if i < len(a.batches) {
		return a.batches[i], nil
	}
	return nil, nil
}
