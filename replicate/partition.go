package replicate

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"apograph/internal/recordbatch"
	"apograph/ledger"
)

// A partition copies one pair. It is an actor: events arrive through post from
// any goroutine; one goroutine at a time, started on demand and gone when
// there is nothing to do, handles them and owns everything below inbox.
//
// Order within a partition is strict: units are assembled, sent, acknowledged
// and booked in source order.
type partition struct {
	flow   *flow
	pair   ledger.Pair
	source topicPartition
	target topicPartition
	fetch  fetchState // owned by the flow's source

	mu      sync.Mutex // guards inbox and running
	inbox   []event
	running bool

	producer ledger.Producer
	phase    phase
	end      int64 // copy up to here and finish; -1 for ever
	chunks   []*chunk
	era      int     // of the chunks that count
	first    *bounds // seen before the run began; nil once recorded
	bounds   *bounds // of the last fetch answer since begin
	asm      assembler
	win      *window
	adoption *adoption // while the target holds more than the books
	tries    int       // failed attempts in a row
	progress time.Time // of the last step forward
	stop     stopped
	waiting  *Waiting // an open transaction keeps records back
	counts   counts
	doom     *stopped // known before it begins: it stops at once

	copied, bytes, remaining atomic.Int64 // for progress
}

// A phase is where a partition is in its life.
type phase uint8

const (
	phaseIdle    phase = iota // not begun
	phaseCopy                 // fetching, sending, booking
	phaseDone                 // reached its end
	phaseStopped              // cannot go on; see stop
)

// stopped says why a partition cannot go on, and where.
type stopped struct {
	offset int64 // on the source: the next one that is not booked
	reason StopReason
	detail string
}

// bounds are a source partition's offsets as one fetch answer gave them.
type bounds struct{ logStart, lastStable, highWatermark int64 }

// A divergence is the broker's word that the log was cut below the position.
type divergence struct {
	epoch int32
	end   int64
}

// An event is one message to a partition; one field is set, or chunk with
// bounds.
type event struct {
	begin      bool
	bounds     *bounds
	chunk      *chunk
	sent       *unit // answered by answer
	answer     answer
	outOfRange *int64 // a fetch of this offset was
	diverged   *divergence
	stop       *stopped
}

// post hands e to the partition.
func (p *partition) post(e event) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.inbox = append(p.inbox, e)
	if !p.running {
		p.running = true
		p.flow.group.Go(p.run)
	}
}

// run handles events until there are none.
func (p *partition) run() {
	for {
		p.mu.Lock()
		events := p.inbox
		p.inbox = nil
		p.running = len(events) > 0
		p.mu.Unlock()
		if len(events) == 0 {
			return
		}
		for _, e := range events {
			p.handle(e)
		}
		p.advance()
	}
}

func (p *partition) handle(e event) {
	switch {
	case e.begin:
		p.begin()
	case e.sent != nil:
		p.win.answered(e.sent, e.answer)
	case e.chunk != nil:
		p.fetched(e)
	case p.phase != phaseCopy:
	case e.outOfRange != nil:
		p.outOfRange(*e.outOfRange)
	case e.diverged != nil:
		p.halt(StopSourceTruncated, fmt.Sprintf("the source's log was cut: leader epoch %d ends at offset %d, below the position %d",
			e.diverged.epoch, e.diverged.end, p.asm.pos))
	case e.stop != nil:
		p.halt(e.stop.reason, e.stop.detail)
	}
}

// fetched takes the answer to a fetch.
func (p *partition) fetched(e event) {
	if e.chunk.era != p.era || p.phase != phaseCopy {
		p.dealtWith(e.chunk)
		return
	}
	p.bounds = e.bounds
	if e.bounds.logStart <= p.asm.pos {
		p.asm.lastKnown = p.flow.now().UnixMilli()
	}
	p.flow.saw(p, *e.bounds)
	p.chunks = append(p.chunks, e.chunk)
}

// advance does whatever can be done without waiting for an event.
func (p *partition) advance() {
	p.adopt()
	for p.win != nil && p.book() {
		if p.phase != phaseCopy && p.win.flying == 0 {
			p.drop()
			return
		}
		if p.settle() {
			continue
		}
		if p.flow.draining() {
			return // what is in flight is still waited for
		}
		if u := p.win.next(); u != nil {
			p.send(u)
			continue
		}
		if p.win.room() && p.assemble() {
			continue
		}
		p.finish()
		return
	}
}

// adopt matches what is at hand with what the target holds behind the books.
func (p *partition) adopt() {
	for p.phase == phaseCopy && p.adoption != nil && !p.flow.draining() {
		if p.adoptionOver() {
			p.adoption.finish(p)
		} else if !p.assemble() {
			return
		}
	}
}

// adoptionOver reports whether the source has nothing more to match.
func (p *partition) adoptionOver() bool {
	return p.reached() || len(p.chunks) == 0 && p.bounds != nil && p.asm.settled() >= p.bounds.lastStable
}

// book writes what is known to be appended into the books.
func (p *partition) book() bool {
	for _, u := range p.win.retired() {
		u.release()
		if !p.enter(u.entry) {
			return false
		}
	}
	return true
}

// enter appends one entry to the books. A failure is the flow's end: what the
// target holds can be found again, but nothing more may be written.
func (p *partition) enter(e ledger.Entry) bool {
	if err := p.flow.ledger.Append(p.pair.ID, e); err != nil {
		p.flow.fail(fmt.Errorf("partition %v: book source offsets [%d, %d): %w", p.source, e.Source.Start, e.Source.End, err))
		p.phase = phaseStopped
		return false
	}
	p.counts.add(&e)
	p.copied.Add(e.Records())
	p.bytes.Add(e.Bytes)
	p.progress, p.tries = p.flow.now(), 0
	return true
}

// settle does what the window asks for, once nothing is in flight. It reports
// whether there was anything.
func (p *partition) settle() bool {
	if p.phase != phaseCopy || p.flow.draining() {
		return false
	}
	hold, a := p.win.pending()
	switch hold {
	case holdNone:
		return false
	case holdRetry:
		if p.backoff(a.detail) {
			p.win.resume()
		}
	case holdRefused:
		p.refused(a)
	case holdReconcile:
		p.reconcile(a)
	case holdStop:
		p.halt(a.stop, a.detail)
	}
	return true
}

// refused deals with a batch that the target will not take as it is: it is
// split until the record at fault stands alone.
func (p *partition) refused(a answer) {
	u := p.win.head()
	if u.records == 1 && u.recoded {
		p.haltAt(u.entry.Source.Start, a.stop, p.flow.explainRefusal(p, u, a))
		return
	}
	t := p.flow.tools()
	defer p.flow.giveBack(t)
	parts, err := t.halve(u)
	if err != nil {
		p.haltAt(u.entry.Source.Start, StopCorruptSourceBatch, err.Error())
		return
	}
	p.win.split(parts...)
}

// send hands u to the target's leader.
func (p *partition) send(u *unit) {
	recordbatch.Patch(u.batch, p.producer.ID, p.producer.Epoch, u.sequence)
	p.flow.writer.send(p, u)
}

// assemble prepares the next unit, if there is data. It reports whether it did
// anything.
func (p *partition) assemble() bool {
	if len(p.chunks) == 0 || p.reached() {
		return false
	}
	c := p.chunks[0]
	t := p.flow.tools()
	p.asm.tools = t
	u, err := p.asm.next(c)
	switch {
	case err != nil:
		p.assembleFailed(err)
	case u == nil:
		p.chunks = p.chunks[1:]
		p.asm.firstSight = false
		p.dealtWith(c)
	case p.adoption != nil:
		p.adoption.take(p, c, u)
	default:
		p.admit(u)
	}
	p.flow.giveBack(t)
	return true
}

// dealtWith gives back a chunk, and with it room for the next fetch.
func (p *partition) dealtWith(c *chunk) {
	p.flow.reader.taken(p, c)
	c.release()
}

// admit gives u to the window, in pieces if the target would not take it whole.
func (p *partition) admit(u *unit) {
	if limit := p.flow.maxBatchBytes(p); len(u.batch) > limit && u.records > 1 {
		parts, err := p.asm.tools.halve(u)
		if err != nil {
			p.haltAt(u.entry.Source.Start, StopCorruptSourceBatch, err.Error())
			return
		}
		for _, part := range parts {
			p.admit(part)
		}
		return
	}
	u.stale = p.flow.stale(u.maxTimestamp)
	p.win.add(u)
}

func (p *partition) assembleFailed(err error) {
	var bad *sourceError
	if errors.As(err, &bad) {
		p.haltAt(bad.offset, bad.reason, bad.err.Error())
		return
	}
	p.backoff(err.Error())
}

// reached reports whether the partition has assembled all that it is to copy.
func (p *partition) reached() bool { return p.end >= 0 && p.asm.settled() >= p.end }

// finish ends a partition that has come to its end, or to an open transaction
// behind which that end lies.
func (p *partition) finish() {
	if p.phase != phaseCopy || p.end < 0 || !p.win.idle() || p.adoption != nil {
		return
	}
	switch {
	case p.reached():
	case len(p.chunks) == 0 && p.bounds != nil && p.asm.settled() >= p.bounds.lastStable:
		p.waiting = p.flow.openTransaction(p, p.bounds.lastStable)
	default:
		return
	}
	p.leave(phaseDone)
}

// halt stops the partition at its first source offset that is not in the books
// and not on its way to the target.
func (p *partition) halt(reason StopReason, detail string) {
	p.haltAt(p.flow.ledger.End(p.pair.ID).Source, reason, detail)
}

// haltAt stops the partition because of what stands at a source offset.
func (p *partition) haltAt(offset int64, reason StopReason, detail string) {
	if p.phase == phaseStopped {
		return
	}
	p.stop = stopped{offset, reason, detail}
	p.leave(phaseStopped)
}

func (p *partition) leave(to phase) {
	p.phase = to
	p.flow.reader.stop(p)
	if p.win == nil || p.win.flying == 0 {
		p.drop()
	}
	p.flow.left(p)
}

// drop gives back the memory of a partition that copies no more.
func (p *partition) drop() {
	for _, c := range p.chunks {
		c.release()
	}
	p.chunks, p.adoption = nil, nil
	p.asm.discard()
	if p.win != nil {
		for _, u := range p.win.open {
			u.release()
		}
		p.win.open = nil
	}
}

// backoff waits before another attempt and learns the target's leaders. It
// reports false if the partition has stopped instead.
func (p *partition) backoff(detail string) bool {
	ctx := p.flow.ctx
	if p.flow.unavailable(p) {
		p.halt(StopUnavailable, detail)
		return false
	}
	_, generation := p.flow.target.leader(p.target)
	wait := min(50*time.Millisecond<<min(p.tries, 6), 2*time.Second)
	p.tries++
	if pause(ctx, wait) != nil {
		return true // draining; the caller looks
	}
	if _, err := p.flow.target.refresh(ctx, generation); err != nil {
		return true
	}
	if reason, detail := p.flow.targetGone(p); reason != "" {
		p.halt(reason, detail)
		return false
	}
	return true
}

// outOfRange deals with a fetch offset that is not in the source's log: the log
// start has passed it, or the log ends before it.
func (p *partition) outOfRange(next int64) {
	start, end, err := p.flow.sourceRange(p.source)
	switch {
	case err != nil && !transient(err):
		p.halt(p.flow.reasonOf(err), err.Error())
	case err == nil && start > next:
		p.chunks = append(p.chunks, &chunk{logStart: start, until: start, era: p.era})
		p.resumeFetch(start)
	case err == nil && end < next && p.flow.truncated(p, next):
		p.halt(StopSourceTruncated, fmt.Sprintf("the source's log was cut below offset %d; it ends at %d", next, end))
	default: // an election in progress; an end offset alone proves nothing
		if p.backoff("the source's leader does not know the position yet") {
			p.resumeFetch(next)
		}
	}
}
