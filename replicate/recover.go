package replicate

import (
	"context"
	"fmt"
	"time"

	"apograph/internal/recordbatch"
	"apograph/ledger"
)

// Recovery is the normal path: every start, after whatever ended the last run,
// goes through begin; every unknown outcome of a produce through reconcile.
// Both decide from the target's log itself. Both may hold the partition's
// goroutine while they ask; nothing is in flight then.

// begin finds out where the books and the target stand and starts to fetch.
func (p *partition) begin() {
	if p.doom != nil {
		p.stop = *p.doom
		if p.pair.ID != 0 {
			p.stop.offset = p.flow.ledger.End(p.pair.ID).Source
		}
		p.leave(phaseStopped)
		return
	}
	end := p.flow.ledger.End(p.pair.ID)
	p.drop()
	p.bounds, p.win = nil, nil
	p.phase, p.progress = phaseCopy, p.flow.now()
	p.asm.pos = end.Source
	if p.first != nil {
		p.flow.saw(p, *p.first)
		p.first = nil
	}
	logEnd, err := p.targetEnd()
	for err != nil {
		if !transient(err) {
			p.halt(p.flow.reasonOf(err), fmt.Sprintf("target log end: %v", err))
			return
		}
		if p.flow.draining() || !p.backoff(err.Error()) {
			return
		}
		logEnd, err = p.targetEnd()
	}
	if logEnd < end.Target {
		p.halt(StopTargetLostRecords, fmt.Sprintf("the target's log ends at offset %d, the books at %d", logEnd, end.Target))
		return
	}
	if logEnd > end.Target {
		p.adoption = newAdoption(p, end, logEnd)
	} else {
		p.newWindow()
	}
	p.asm.keepInfos = p.adoption != nil
	p.resumeFetch(end.Source)
}

// newWindow starts the window behind the books.
func (p *partition) newWindow() {
	end := p.flow.ledger.End(p.pair.ID)
	p.win = newWindow(p.flow.config.Window, end.Target, p.producer.Next(end.Appended))
}

// resumeFetch fetches from offset next on. Chunks at hand stay: they are what
// stands before it.
func (p *partition) resumeFetch(next int64) {
	p.era = p.flow.reader.start(p, next, p.lastEpoch(next), p.end < 0 || next < p.end)
}

// lastEpoch returns the leader epoch of the batch that ends at source offset
// next, -1 if the books cannot tell. Only the exact one may be sent: the
// broker takes an older one for a sign that its log was cut.
func (p *partition) lastEpoch(next int64) int32 {
	e, err := p.flow.ledger.FindSource(p.pair.ID, next-1)
	if err != nil || e.Source.End != next {
		return -1
	}
	if n := len(e.Gaps); n > 0 && e.Gaps[n-1].Range.End == next {
		return -1
	}
	return e.LeaderEpoch
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
		err = pause(ctx, 20*time.Millisecond)
	}
	return logEnd, err
}

// reconcile learns from the target's log which of the window's units were
// appended.
func (p *partition) reconcile(a answer) {
	logEnd, err := p.targetEnd()
	if err == nil && logEnd < p.win.target {
		p.halt(StopTargetLostRecords, fmt.Sprintf("the target's log ends at offset %d, the books at %d", logEnd, p.win.target))
		return
	}
	var tail []tailBatch
	if err == nil {
		tail, err = p.readTail(p.win.target, logEnd)
	}
	if err != nil {
		p.backoff(joinDetail(a.detail, err.Error()))
		return
	}
	if mismatch := p.win.reconciled(tail); mismatch != nil {
		p.halt(StopForeignWriter, mismatch.String())
		return
	}
	if p.win.exhausted() {
		p.rotate()
	}
}

func (m *tailMismatch) String() string {
	who := "another producer"
	if m.batch.ours {
		who = "our producer id, but not the next batch"
	}
	return fmt.Sprintf("target offset %d holds %d records written by %s; the books end at %d",
		m.batch.base, m.batch.records, who, m.want)
}

// readTail describes the batches in [from, end) of the target's log, up to one
// more than the window can have written.
func (p *partition) readTail(from, end int64) ([]tailBatch, error) {
	reader := &tailReader{p: p, at: from, end: end}
	var tail []tailBatch
	for len(tail) <= p.flow.config.Window {
		b, err := reader.batch()
		if b == nil || err != nil {
			return tail, err
		}
		t := tailBatch{base: b.base, ours: b.ours, sequence: b.sequence}
		for _, r := range b.records {
			t.records++
			t.digest = t.digest.Add(r.hash)
		}
		tail = append(tail, t)
	}
	return tail, nil
}

// rotate takes a new producer id for the partition: under the old one the
// target refuses what its own log lacks. The id is durable before its first
// use, so that the next start can tell ours from others.
func (p *partition) rotate() {
	id, epoch, err := p.flow.target.initProducer(p.flow.ctx)
	if err != nil {
		p.backoff(err.Error())
		return
	}
	p.producer = ledger.Producer{ID: id, Epoch: epoch, Appended: p.flow.ledger.End(p.pair.ID).Appended}
	err = p.flow.ledger.SetProducer(p.pair.ID, p.producer)
	if err == nil {
		err = p.flow.ledger.Commit()
	}
	if err != nil {
		p.flow.fail(fmt.Errorf("partition %v: record a new producer id: %w", p.source, err))
		return
	}
	p.win.rotate()
}

// A tailReader reads the batches of a target partition's log, committed or
// not, raw.
type tailReader struct {
	p       *partition
	at, end int64
	buffer  []byte
}

// A readBatch is one batch of the target's log.
type readBatch struct {
	base, next int64
	ours       bool // under this pair's producer id and epoch
	sequence   int32
	records    []readRecord
}

type readRecord struct {
	offset int64
	hash   uint64
}

// batch returns the next batch, nil at the end.
func (r *tailReader) batch() (*readBatch, error) {
	for r.at < r.end {
		size, magic, err := recordbatch.Peek(r.buffer)
		if err != nil {
			if err := r.fetch(); err != nil {
				return nil, err
			}
			continue
		}
		raw := r.buffer[:size]
		r.buffer = r.buffer[size:]
		if magic != 2 {
			return nil, fmt.Errorf("target offset %d: message format %d", r.at, magic)
		}
		b, err := r.read(raw)
		if err != nil {
			return nil, fmt.Errorf("target offset %d: %w", r.at, err)
		}
		if b.next <= r.at {
			continue
		}
		r.at = b.next
		return b, nil
	}
	return nil, nil
}

func (r *tailReader) read(raw []byte) (*readBatch, error) {
	h, err := recordbatch.Parse(raw)
	if err != nil {
		return nil, err
	}
	producer := r.p.producer
	b := &readBatch{
		base:     h.BaseOffset,
		next:     h.NextOffset(),
		ours:     h.ProducerID == producer.ID && h.ProducerEpoch == producer.Epoch && !h.Control() && !h.Transactional(),
		sequence: h.BaseSequence,
	}
	if !b.ours {
		return b, nil
	}
	t := r.p.flow.tools()
	defer r.p.flow.giveBack(t)
	err = t.each(raw, func(rec *recordbatch.Record, timestamp int64) error {
		if r.p.asm.timestampsReplaced {
			timestamp = 0
		}
		hash, _ := t.hash(rec, timestamp)
		b.records = append(b.records, readRecord{h.BaseOffset + int64(rec.OffsetDelta), hash})
		return nil
	})
	return b, err
}

// fetch replaces the buffer by what the log holds from r.at on.
func (r *tailReader) fetch() error {
	ctx, cancel := context.WithTimeout(r.p.flow.ctx, 30*time.Second)
	defer cancel()
	data, err := r.p.flow.target.read(ctx, r.p.target, r.p.pair.TargetTopicID, r.at)
	if err != nil {
		return err
	}
	if size, _, err := recordbatch.Peek(data); err != nil || size == 0 {
		return fmt.Errorf("target offset %d: the log ends at %d, but nothing can be read", r.at, r.end)
	}
	r.buffer = data
	return nil
}
