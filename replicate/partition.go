package replicate

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"apograph/ledger"
)

// A partition copies one pair. It is an actor: events arrive through post from
// any goroutine; one goroutine at a time, started on demand and gone when
// there is nothing to do, handles them and owns everything below inbox.
//
// Order within a partition is strict: units are assembled, sent, acknowledged
// and booked in source order.
//
// It has one pair for all its life. Another generation is another partition.
type partition struct {
	flow   *Flow
	topic  *topic
	pair   ledger.Pair
	source topicPartition
	target topicPartition
	fetch  fetchState // owned by the flow's source

	mu      sync.Mutex // guards inbox, running and view
	inbox   []event
	running bool
	view    view

	producer   ledger.Producer
	phase      phase
	end        int64 // copy up to here and finish; -1 for ever
	chunks     []*chunk
	era        int      // of the chunks that count
	first      *bounds  // seen before it was set to work; nil once recorded
	logEnd     *int64   // of the target, as seen then; nil once used
	bounds     *bounds  // of the last fetch answer since begin
	lastSeen   *bounds  // the same, or what was seen before it
	seenEnd    int64    // highest end of the source's log that was seen since begin
	severed    *stopped // a cut of the source's log below the books, its offset where the logs part
	askedUnder int32    // leader epoch of the source under which a stopped partition has looked for one; -1 none
	gone       *int64   // what a fetch found below the log's start, until an answer says where that is
	asm        assembler
	deletion   deletion // of the source topic

	fresh      freshness
	tombstones int64          // delete.retention.ms of the source topic
	late       []ledger.Range // that were fetched so late that gaps in them cast doubt
	doubted    int64          // end of the last doubt
	earlier    *bool          // whether an earlier generation copied anything here; nil: not looked at

	hollow   bool // an empty answer of the source can mean an empty log
	win      *window
	adoption *adoption // while the target holds more than the books
	tries    int       // failed attempts since the last step forward
	failing  time.Time // of the first of them
	stop     stopped
	retry    retry    // of a stopped partition
	sticky   *stopped // foreign records that nobody tolerates yet
	fenced   *stopped // somebody else runs under our producer id, and nobody has said to go on
	waiting  *Waiting // an open transaction keeps records back
	counts   counts
	doom     *stopped // known before it begins: it stops at once
	halting  *stopped // to stop once what stands before is in the books
	caughtUp time.Time
	newest   int64 // time of the newest record in the books, ms; 0 unknown
	booked   bool  // something, since it began
	renew    bool  // a producer id must be taken before anything is sent
	replaced bool  // by a partition of the next generation
	again    bool  // to begin, once nothing is in flight
	well     bool  // it is known to go on, since it began

	comparedAt   int32 // leader epoch of the target under which the books' end was compared last
	caughtTarget bool  // the books were at the target's end in this run: what came behind it since, a dead copier did not write

	copied, bytes    atomic.Int64 // for progress
	position, stable atomic.Int64 // end of the source book, and last seen last stable offset

	mayBeHollow atomic.Bool  // see source.hollow
	deadline    atomic.Int64 // when the next record may be deleted, ms; MaxInt64: unknown or never
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

// An event is one message to a partition; one field is set, or chunk with
// bounds.
type event struct {
	begin      bool
	resumed    bool    // begin: by a person's word
	traits     *traits // the topic's settings have changed
	bounds     *bounds
	chunk      *chunk
	sent       *unit // answered by answer
	answer     answer
	outOfRange *outside
	diverged   *divergence
	unchanged  bool // nothing is new at the source, as of now
	stop       *stopped
	rest       *rest // where the target's log ended, while nothing was in flight
}

// quiet reports whether nothing is being handled, nor to be.
func (p *partition) quiet() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return !p.running && len(p.inbox) == 0
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
		p.recovered()
		p.publish()
	}
}

func (p *partition) handle(e event) {
	switch {
	case e.begin:
		if e.resumed {
			p.sticky, p.fenced = nil, nil
		}
		p.begin()
	case e.traits != nil:
		p.learn(*e.traits)
	case e.sent != nil:
		p.win.answered(e.sent, e.answer)
	case e.chunk != nil:
		p.fetched(e)
	case e.stop != nil && e.stop.reason == StopPaused && p.phase == phaseStopped:
		p.stop.reason, p.stop.detail = StopPaused, e.stop.detail
	case e.bounds != nil && e.chunk == nil:
		if p.phase == phaseStopped && !p.replaced {
			p.flow.saw(p, *e.bounds)
			p.lookForCut()
		}
	case p.phase != phaseCopy:
	case e.unchanged:
		p.unchanged()
	case e.rest != nil:
		p.lookedAt(*e.rest)
	case e.outOfRange != nil:
		p.outOfRange(*e.outOfRange)
	case e.diverged != nil:
		p.diverged(*e.diverged)
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
	if p.foundAgain(e) {
		return
	}
	if e.chunk.unsure && p.cut() {
		p.dealtWith(e.chunk)
		return
	}
	p.bounds, p.lastSeen = e.bounds, e.bounds
	p.seenEnd = max(p.seenEnd, e.bounds.highWatermark, e.bounds.lastStable)
	if p.end < 0 && p.flow.config.Once {
		p.end = e.bounds.highWatermark // not known at the start
	}
	if p.asm.pos >= e.bounds.highWatermark {
		p.caughtUp = p.flow.now()
	}
	if e.bounds.logStart <= p.asm.pos {
		p.asm.lastKnown = p.flow.now().UnixMilli()
	}
	p.noteLate(ledger.Range{Start: e.chunk.from, End: e.chunk.next})
	p.freshen(e.bounds.highWatermark, p.flow.now())
	p.flow.saw(p, *e.bounds)
	p.chunks = append(p.chunks, e.chunk)
}

// unchanged notes that what was last seen of the source still holds.
func (p *partition) unchanged() {
	if p.bounds == nil {
		return
	}
	if p.asm.pos >= p.bounds.highWatermark {
		p.caughtUp = p.flow.now()
	}
	p.asm.lastKnown = p.flow.now().UnixMilli()
	p.freshen(p.bounds.highWatermark, p.flow.now())
	p.flow.saw(p, *p.bounds)
}

// advance does whatever can be done without waiting for an event.
func (p *partition) advance() {
	p.adopt()
	for p.win != nil && p.book() {
		if p.phase != phaseCopy && p.win.flying == 0 {
			p.drop()
			if p.again {
				p.again = false
				p.post(event{begin: true})
			}
			return
		}
		if p.settle() {
			continue
		}
		if p.phase != phaseCopy || p.flow.draining() {
			return // what is in flight is still waited for
		}
		if p.win.flying == 0 && p.ledAnew() {
			if !p.endHolds() {
				continue
			}
			p.win.suspect()
		}
		if u := p.toSend(); u != nil {
			p.send(u)
			continue
		}
		if p.halting == nil && p.win.room() && p.assemble() {
			continue
		}
		p.finish()
		return
	}
}

// toSend returns the unit to send now, or nil. The target may have forgotten a
// producer whose newest record is older by now than half of its expiry, and a new
// leader has not shown yet that it knows it: then one unit goes alone. So what is in
// flight with another leader is waited for.
func (p *partition) toSend() *unit {
	switch {
	case p.win.flying > 0 && p.ledAnew():
		return nil
	case p.win.flying == 0 && p.flow.stale(p.win.newest):
		p.win.suspect()
	}
	return p.win.next()
}

// book writes what is known to be appended into the books.
func (p *partition) book() bool {
	for _, u := range p.win.retired() {
		if u.note {
			why := ""
			if u.generation > 0 {
				why = sentBefore(u.generation)
			}
			if p.enterForeign(u.entry.Target, why, why != "") != nil {
				return false
			}
			continue
		}
		u.release()
		p.newest = max(p.newest, u.maxTimestamp)
		if !p.enter(u.entry) {
			return false
		}
	}
	return true
}

// enter appends one entry to the books. A failure is the flow's end: what the
// target holds can be found again, but nothing more may be written.
func (p *partition) enter(e ledger.Entry) bool {
	var err error
	if proven {
		err = p.flow.ledger.Append(p.pair.ID, e)
	}
	if err != nil {
		p.flow.fail(fmt.Errorf("partition %v: book source offsets [%d, %d): %w", p.source, e.Source.Start, e.Source.End, err))
		p.phase = phaseStopped
		return false
	}
	p.booked = true
	p.tellLoss(&e)
	p.doubt(&e)
	p.keepFresh(e.Source.End)
	p.counts.add(&e)
	p.position.Store(e.Source.End)
	p.copied.Add(e.Records())
	p.bytes.Add(e.Bytes)
	p.tries = 0
	return true
}

// recovered notes that the partition goes on, once something was booked or
// there is nothing to book: a beginning alone shows little.
func (p *partition) recovered() {
	if p.phase != phaseCopy {
		return
	}
	idle := p.win != nil && p.win.idle() && p.bounds != nil && p.asm.pos >= p.bounds.lastStable
	if idle {
		p.tries = 0
	}
	if p.well || p.sticky != nil || !p.booked && !idle {
		return
	}
	p.well = true
	if p.retry.tries > 0 {
		p.flow.config.Logger.Info("partition goes on", "partition", p.source.String())
	}
	p.retry = retry{}
	p.flow.clearStop(p.source)
	p.flow.forgetWarnings(p.source)
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

// assemble prepares the next unit, if there is data. It reports whether it did
// anything.
func (p *partition) assemble() bool {
	if len(p.chunks) == 0 || p.reached() {
		return false
	}
	c := p.chunks[0]
	t := p.flow.tools()
	p.asm.tools = t
	p.asm.far = p.win != nil && p.win.full() && p.flow.target.distance.far()
	u, err := p.asm.next(c)
	switch {
	case err != nil:
		p.assembleFailed(err)
	case u == nil:
		p.chunks = p.chunks[1:]
		p.asm.firstSight = false
		p.dealtWith(c)
	case p.adoption != nil:
		p.adoption.add(u)
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

func (p *partition) assembleFailed(err error) {
	var bad *sourceError
	if errors.As(err, &bad) {
		p.halting = &stopped{bad.offset, bad.reason, bad.err.Error()}
		if p.adoption != nil {
			p.haltAt(bad.offset, bad.reason, bad.err.Error())
		}
		return
	}
	p.backoff(err.Error())
}

// reached reports whether the partition has assembled all that it is to copy,
// and the source has been seen to go that far: books that reach beyond the
// source's end are no sign of completeness.
func (p *partition) reached() bool {
	return p.end >= 0 && p.asm.settled() >= p.end && p.asm.settled() <= p.seenEnd
}

// openBelow reports whether the partition has come to its end, and a transaction is
// open at the source below it: one whose marker was cut from the log. How it ends is
// not known, so that nothing is complete.
func (p *partition) openBelow() bool {
	return p.reached() && p.lastSeen != nil && p.lastSeen.lastStable < min(p.lastSeen.highWatermark, p.asm.settled())
}

// finish ends a partition that has come to its end, or to an open transaction
// behind which that end lies.
func (p *partition) finish() {
	if p.phase != phaseCopy || !p.win.idle() || p.adoption != nil {
		return
	}
	if h := p.halting; h != nil {
		p.haltAt(h.offset, h.reason, h.detail)
		return
	}
	if p.end < 0 {
		return
	}
	switch {
	case p.openBelow():
		p.waiting = p.flow.openTransaction(p, *p.lastSeen)
	case p.reached():
	case p.sourceEnded(max(p.seenEnd, p.end)):
		p.waiting = p.flow.openTransaction(p, *p.bounds)
	default:
		return
	}
	p.leave(phaseDone)
}

// halt stops the partition at the first source offset that is not in the books.
// What is in flight is still waited for, and booked.
func (p *partition) halt(reason StopReason, detail string) {
	p.haltAt(p.flow.ledger.End(p.pair.ID).Source, reason, detail)
}

// haltAt stops the partition because of what stands at a source offset.
func (p *partition) haltAt(offset int64, reason StopReason, detail string) {
	if p.phase == phaseStopped {
		return
	}
	p.stop = p.flow.becauseRefused(stopped{offset, reason, detail})
	reason, detail = p.stop.reason, p.stop.detail
	p.keepCut(p.stop)
	switch reason {
	case StopForeignWriter:
		p.sticky = &stopped{offset, reason, detail}
	case StopFenced:
		p.fenced = &stopped{offset, reason, detail}
		p.renew = true // once a person says to go on
	}
	p.first, p.logEnd, p.askedUnder = nil, nil, -1 // old by the time it begins again
	p.retry.failed(p.flow.now(), p.flow.config.RetryAfter, reason)
	p.flow.bookStop(p.source, p.stop, p.retry)
	p.leave(phaseStopped)
}

func (p *partition) leave(to phase) {
	p.phase = to
	if to == phaseDone {
		p.flow.clearStop(p.source)
	}
	p.flow.reader.stop(p)
	p.dropUnsent()
	p.flow.left(p)
}

// dropUnsent drops all but what is in flight.
func (p *partition) dropUnsent() {
	if p.win == nil || p.win.flying == 0 {
		p.drop()
		return
	}
	for _, u := range p.win.unsent() {
		u.release()
	}
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
