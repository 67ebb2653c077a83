package replicate

import (
	"fmt"
	"slices"
	"time"

	"apograph/ledger"
)

// What the target has lost is copied again by a person's word: the generation is
// closed where the target's log was cut, and the next one begins there.

// lostRecords deals with a target whose log ends below the books.
func (p *partition) lostRecords(logEnd int64) {
	cut, err := p.cutAt(logEnd)
	if err != nil {
		_ = p.flow.fail(fmt.Errorf("partition %v: read the books: %w", p.source, err))
		return
	}
	detail := fmt.Sprintf("the target's log ends at offset %d, the books at %d: what stood there of source offset %d and above is lost",
		logEnd, p.flow.ledger.End(p.pair.ID).Target, cut.Source)
	if !p.flow.exactOrder(p.source).Recopy {
		p.halt(StopTargetLostRecords, detail+"; to copy it again: resume --recopy")
		return
	}
	wrong, err := p.compareCut(cut)
	switch {
	case err != nil:
		p.adoptionFailed(err)
	case wrong != "":
		p.dropAcceptance()
		p.halt(StopTargetLostRecords, detail+"; it is not copied again: "+wrong)
	default:
		p.reopen(detail, cut.Source, &cut)
	}
}

// cutAt returns where the books are cut off by a target log that ends below
// them: at the first copied record that it has lost.
func (p *partition) cutAt(logEnd int64) (ledger.Cut, error) {
	if err := p.flow.ledger.Commit(); err != nil {
		return ledger.Cut{}, err
	}
	target := max(logEnd, p.pair.TargetBase)
	for e, err := range p.flow.ledger.EntriesFromTarget(p.pair.ID, target) {
		if err != nil {
			return ledger.Cut{}, err
		}
		if e.Tile == ledger.Copied && e.Target.End > target {
			return ledger.Cut{Source: e.SourceOf(max(target, e.Target.Start)), Target: target}, nil
		}
	}
	return ledger.Cut{Source: p.flow.ledger.End(p.pair.ID).Source, Target: target}, nil
}

// compareCut says what is wrong with what the target still holds in front of a
// cut, by the number of its last record and the content of the last entry that
// is there as a whole; "" if nothing is.
func (p *partition) compareCut(cut ledger.Cut) (wrong string, err error) {
	at := p.flow.ledger.End(p.pair.ID)
	at.Source, at.Target = cut.Source, cut.Target
	for e, err := range p.flow.ledger.EntriesFromTarget(p.pair.ID, cut.Target) {
		if err != nil {
			return "", err
		}
		if e.Tile == ledger.Copied || e.Tile == ledger.Orphan {
			at.Appended -= e.Target.End - max(e.Target.Start, cut.Target)
		}
	}
	if wrong, err = p.compareEnd(at); wrong != "" || err != nil {
		return wrong, err
	}
	for end := cut.Target; end > p.pair.TargetBase; {
		e, err := p.flow.ledger.FindTarget(p.pair.ID, end-1)
		if err != nil {
			return "", err
		}
		if end = e.Target.Start; e.Tile != ledger.Copied || e.Target.End > cut.Target {
			continue
		}
		same, err := p.holdsEntry(&e)
		if err == nil && !same {
			wrong = fmt.Sprintf("target offsets [%d, %d) do not hold what the books say", e.Target.Start, e.Target.End)
		}
		return wrong, err
	}
	return "", nil
}

// recopyAll begins the copy again in a target topic that was created anew.
func (p *partition) recopyAll(why string) {
	pair, _ := p.flow.ledger.Pair(p.pair.ID) // what is before the start may have grown since the opening
	p.reopen(why, pair.ScopeStart, &ledger.Cut{Source: pair.ScopeStart, Target: pair.TargetBase})
}

// awaitTarget waits for the survey to make the target topic again.
func (p *partition) awaitTarget(detail string) {
	p.halt(StopTargetDeleted, detail+"; it is being made again")
	p.retry.at = p.flow.now().Add(time.Second)
	p.flow.lookNow()
}

// toBeRecopied reports whether a person said to copy a topic again that is gone
// from the target.
func (f *Flow) toBeRecopied(name string) bool {
	ordered := false
	f.mu.Lock()
	for tp, o := range f.orders {
		ordered = ordered || o.Recopy && tp.topic == name
	}
	f.mu.Unlock()
	return ordered && slices.ContainsFunc(f.ledger.Stops(), func(s ledger.Stop) bool {
		tp := topicPartition{s.SourceTopic, s.Partition}
		return s.SourceTopic == name && StopReason(s.Reason) == StopTargetDeleted && f.exactOrder(tp).Recopy
	})
}

// bookTail books what stands behind the books of a generation that is to be
// closed, without its source: what is ours in step has none any more. It reports
// false if the partition has stopped, or waits. Foreign records do not stop it: a
// person has just said to go on, and the next generation begins behind them.
func (p *partition) bookTail() bool {
	logEnd, ok := p.knownEnd()
	end := p.flow.ledger.End(p.pair.ID)
	switch {
	case !ok:
		return false
	case logEnd < end.Target:
		p.lostRecords(logEnd)
		return false
	case logEnd == end.Target:
		return true
	case !p.endHolds():
		return false
	}
	a, err := newAdoption(p, end, logEnd)
	a.over, a.cutKnown, a.holeKnown, a.fresh, a.closing = true, true, true, false, true
	for state := goesOn; err == nil && state != tailAdopted; {
		state, err = a.step(p)
	}
	p.sticky = nil
	if err != nil {
		p.adoptionFailed(err)
		return false
	}
	return true
}
