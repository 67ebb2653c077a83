package replicate

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"apograph/internal/pace"
	"apograph/ledger"
)

// Recovery is the normal path: every start, after whatever ended the last run,
// goes through begin; every unknown outcome of a produce through reconcile.
// Both decide from the target's log itself. Both may hold the partition's
// goroutine while they ask; nothing is in flight then.

// begin finds out where the books and the target stand and starts to fetch. A
// partition that has stopped begins again in the same way.
func (p *partition) begin() {
	if p.phase == phaseCopy || p.phase == phaseDone || p.replaced {
		return
	}
	if p.win != nil && p.win.flying > 0 {
		p.again = true // once it has landed
		return
	}
	if p.phase != phaseIdle {
		p.flow.entered()
		p.tries = 0
	}
	p.drop()
	p.bounds, p.win, p.halting, p.waiting = nil, nil, nil, nil
	p.lastSeen = nil
	p.booked, p.well = false, false
	p.phase, p.seenEnd, p.gone, p.late = phaseCopy, 0, nil, nil
	stop := p.obstacle()
	if p.accepts(stop) {
		return
	}
	if stop != nil {
		p.halt(stop.reason, stop.detail)
		return
	}
	end := p.flow.ledger.End(p.pair.ID)
	p.asm.pos = end.Source
	if p.first != nil {
		p.seenEnd, p.lastSeen = p.first.highWatermark, p.first
		if p.flow.config.Once {
			p.freshen(p.first.highWatermark, p.flow.started) // seen later than that
		}
		p.flow.saw(p, *p.first)
	}
	if p.haltForeign() || p.haltFenced() || p.cut() {
		return
	}
	logEnd, ok := p.knownEnd()
	switch {
	case !ok:
		return
	case logEnd < end.Target:
		p.lostRecords(logEnd)
		return
	case !p.endHolds():
		return
	case logEnd > end.Target:
		if !p.adoptFrom(end, logEnd) {
			return
		}
	default:
		p.dropAcceptance()
		p.newWindow()
		if p.renew && !p.rotate() {
			return
		}
	}
	p.resumeFetch(p.asm.pos)
	p.first = nil
}

// obstacle returns what is known to keep the partition from going on.
func (p *partition) obstacle() *stopped {
	stop := p.doom
	p.doom = nil
	if stop != nil {
		return stop
	}
	if order := p.flow.order(p.source); order.Paused {
		return &stopped{reason: StopPaused, detail: pausedBy(order)}
	}
	return cmp.Or(p.sourceGone(), p.targetGone())
}

func (p *partition) sourceGone() *stopped {
	return gone(p.flow.source, p.source.topic, p.pair.SourceTopicID, StopTopicDeleted, StopTopicRecreated)
}

func (p *partition) targetGone() *stopped {
	return gone(p.flow.target, p.target.topic, p.pair.TargetTopicID, StopTargetDeleted, StopTargetRecreated)
}

// knownEnd returns the target's log end: as it was learnt for all partitions
// at once, else by asking until there is an answer. It reports false if the
// partition has stopped or the flow ends.
func (p *partition) knownEnd() (int64, bool) {
	if end := p.logEnd; end != nil {
		p.logEnd = nil
		return *end, true
	}
	logEnd, err := p.targetEnd()
	for err != nil {
		if !transient(err) {
			p.halt(reasonOf(err), fmt.Sprintf("target log end: %v", err))
			return 0, false
		}
		if p.flow.draining() || !p.backoff(err.Error()) {
			return 0, false
		}
		logEnd, err = p.targetEnd()
	}
	return logEnd, true
}

// newWindow starts the window behind the books.
func (p *partition) newWindow() {
	p.caughtTarget = true
	end := p.flow.ledger.End(p.pair.ID)
	p.win = newWindow(p.flow.config.Window, end.Target, p.producer.Next(end.Appended))
	p.skip()
}

// resumeFetch fetches from offset next on. Chunks at hand stay: they are what
// stands before it.
func (p *partition) resumeFetch(next int64) {
	behind := p.end < 0 || next < p.end
	if b := p.first; b != nil {
		behind = next < b.lastStable
	}
	p.era = p.flow.reader.start(p, next, p.lastEpoch(next), behind)
}

// lastEpoch returns the leader epoch of the batch that ends at source offset
// next, -1 if the books cannot tell. Only the exact one may be sent: the
// broker takes an older one for a sign that its log was cut.
func (p *partition) lastEpoch(next int64) int32 {
	e, err := p.flow.ledger.FindSource(p.pair.ID, next-1)
	if err != nil {
		return -1
	}
	if epoch, end := e.EpochIn(); end == next {
		return epoch
	}
	return -1
}

// targetEnd returns the log end of the target's current leader, once all of it
// is below the high watermark: until then an ordinary answer hides what was
// appended and not yet replicated, and what is not yet replicated may go.
func (p *partition) targetEnd() (int64, error) {
	ctx, cancel := context.WithTimeout(p.flow.ctx, 30*time.Second)
	defer cancel()
	logEnd, err := p.flow.target.listOffset(ctx, p.target, offsetQuery{replica: debuggingReplica, timestamp: latestOffset})
	for err == nil {
		var high int64
		if high, err = p.flow.target.listOffset(ctx, p.target, offsetQuery{replica: -1, timestamp: latestOffset}); err != nil || high >= logEnd {
			break
		}
		err = pace.Pause(ctx, 20*time.Millisecond)
	}
	return logEnd, err
}

// reconcile learns from the target's log which of the window's units were
// appended.
func (p *partition) reconcile(a answer) {
	logEnd, err := p.targetEnd()
	if err == nil && logEnd < p.win.target {
		p.book()
		p.lostRecords(logEnd)
		return
	}
	var tail []tailBatch
	if err == nil {
		tail, err = p.readTail(p.win.target, logEnd)
	}
	below := false
	if err == nil && a.outcome == appended && a.base < p.win.target {
		below, err = p.landedBelow(a.base)
	}
	if err != nil {
		p.backoff(joinDetail(a.detail, err.Error()))
		return
	}
	if below {
		p.halt(StopTargetLostRecords, fmt.Sprintf("a batch that should stand at target offset %d was appended at %d: the target's log was cut below the books", p.win.target, a.base))
		return
	}
	clean := p.win.reconciled(tail, logEnd)
	switch {
	case !p.book() || p.haltForeign():
	case !clean:
		p.restart() // compared record by record
	case p.win.exhausted():
		p.rotate()
	case a.outcome == unknown && len(tail) == 0:
		p.backoff(a.detail)
	}
}

// landedBelow reports whether the batch at a target offset below the books' end
// is one that they do not have yet.
func (p *partition) landedBelow(base int64) (bool, error) {
	b, err := p.newTail(base, base+1).batch()
	return err == nil && b != nil && b.ours && b.number >= p.flow.ledger.End(p.pair.ID).Appended, err
}

// rotate takes a new producer id for the partition: under the old one the
// target refuses what its own log lacks. The id is durable before its first
// use, so that the next start can tell ours from others. It reports false if
// that failed; the partition waits, or begins again, then.
func (p *partition) rotate() bool {
	id, epoch, err := p.flow.target.initProducer(p.flow.ctx)
	if err != nil {
		if p.backoff(err.Error()) && p.renew {
			p.restart()
		}
		return false
	}
	p.producer = ledger.Producer{ID: id, Epoch: epoch, Appended: p.flow.ledger.End(p.pair.ID).Appended}
	err = p.flow.ledger.SetProducer(p.pair.ID, p.producer)
	if err == nil {
		err = p.flow.ledger.Commit()
	}
	if err != nil {
		p.flow.fail(fmt.Errorf("partition %v: record a new producer id: %w", p.source, err))
		return false
	}
	p.renew = false
	p.win.rotate()
	return true
}
