package replicate

import (
	"context"
	"time"

	"apograph/internal/recordbatch"
	"apograph/ledger"
)

// What the source no longer has. A log start above the position means that
// offsets are lost: the copy books them and goes on at once, as waiting loses
// more. A log that ends below it may have been cut; see cut.go.

// An outside is a fetch offset that is not in the source's log.
type outside struct {
	next  int64
	epoch int32 // leader epoch of what was fetched before it; -1 unknown
}

// outOfRange deals with a fetch offset that is not in the source's log: the log
// start has passed it, or the log ends before it. Fetches name the topic by its
// id, but the question for the log start does not: so nothing is booked as lost
// before a fetch from there has been answered.
func (p *partition) outOfRange(o outside) {
	start, end, err := p.flow.sourceRange(p.source)
	switch {
	case err != nil && !transient(err):
		p.halt(reasonOf(err), err.Error())
	case err == nil && start > o.next:
		if p.gone == nil {
			p.gone = &o.next
		}
		p.resumeFetch(start)
	case err == nil && end < o.next && (p.cut() || p.cutAhead(o)):
	default: // an election in progress; an end offset alone proves nothing
		if p.backoff("the source's leader does not know the position yet") {
			p.resumeFetch(o.next)
		}
	}
}

// foundAgain takes the first answer from behind what a fetch found to be gone.
// It reports whether the log starts lower after all, as a leader that lags in
// its deletions says; what is there is fetched then.
func (p *partition) foundAgain(e event) bool {
	next := p.gone
	p.gone = nil
	if next == nil || e.bounds.logStart >= e.chunk.from {
		return false
	}
	p.dealtWith(e.chunk)
	p.resumeFetch(*next)
	return true
}

// sourceRange returns the source partition's log start and high watermark.
func (f *Flow) sourceRange(tp topicPartition) (start, end int64, err error) {
	ctx, cancel := context.WithTimeout(f.ctx, 30*time.Second)
	defer cancel()
	if start, err = f.source.listOffset(ctx, tp, offsetQuery{replica: -1, timestamp: earliestOffset}); err != nil {
		return 0, 0, err
	}
	end, err = f.source.listOffset(ctx, tp, offsetQuery{replica: -1, timestamp: latestOffset})
	return start, end, err
}

// gap accounts for [pos, end), or the first part of it, where the source's log
// holds nothing.
func (a *assembler) gap(c *chunk, end int64) error {
	compacted := a.compactPolicy || a.compactSeen || c.showsCompaction()
	if c.logStart <= a.pos && !compacted {
		start, err := a.logStart()
		if err != nil {
			return err
		}
		c.logStart = max(c.logStart, start)
	}
	e := ledger.Entry{LeaderEpoch: -1}
	switch {
	case c.logStart > a.pos && a.firstSight:
		e.Tile = ledger.BeforeStart
		end = min(end, c.logStart)
	case c.logStart > a.pos:
		e.Tile, e.Cause, e.LastKnownMillis = ledger.Lost, a.loss(c.startsInsideBatch()), a.lastKnown
		end = min(end, c.logStart)
	case compacted:
		a.source(c, ledger.Compacted, end, -1)
		return nil
	default:
		e.Tile = ledger.Unexplained
	}
	a.flush(c)
	e.Source = ledger.Range{Start: a.pos, End: end}
	a.emit(&unit{entry: e})
	a.pos = end
	return nil
}

// startsInsideBatch reports whether the log start stands inside the next batch.
func (c *chunk) startsInsideBatch() bool {
	size, magic, err := recordbatch.Peek(c.data[c.at:])
	if err != nil || magic != 2 {
		return false
	}
	h, err := recordbatch.Parse(c.data[c.at : c.at+size])
	return err == nil && h.BaseOffset < c.logStart && c.logStart < h.NextOffset()
}

// A deletion is what a source topic's settings say of how it deletes records.
type deletion struct {
	never           bool  // neither by time nor by size
	bySize          bool  // or not known
	retentionMillis int64 // by time; negative: not, or not known
}

func (s settings) deletion() deletion {
	return deletion{never: s != nil && !s.deletes(), bySize: s.integer("retention.bytes", 0) >= 0, retentionMillis: s.integer("retention.ms", -1)}
}

// cause says who moved the log start past the position. Brokers delete whole
// segments, whose first offset begins a batch, when the newest record in one is
// older than retention.ms (UnifiedLog.deleteRetentionMsBreachedSegments). So it
// was somebody's DeleteRecords where the log start stands inside a batch, where
// the topic does not delete, and where it deletes by time alone while a record
// below the log start, of time newest (0 unknown), is younger than that.
func (d deletion) cause(insideBatch bool, newest, now int64) ledger.Cause {
	young := newest > 0 && d.retentionMillis >= 0 && !d.bySize && newest > now-d.retentionMillis
	if insideBatch || d.never || young {
		return ledger.CauseDeleteRecords
	}
	return ledger.CauseRetention
}

// lossCause says why the source's log start is above the position.
func (p *partition) lossCause(insideBatch bool) ledger.Cause {
	newest := p.newest
	if d := p.deletion; newest == 0 && !insideBatch && !d.never && !d.bySize && d.retentionMillis >= 0 {
		newest = p.newestOnTarget()
	}
	now := p.flow.now().UnixMilli()
	cause := p.deletion.cause(insideBatch, newest, now)
	if cause != ledger.CauseDeleteRecords || insideBatch {
		return cause
	}
	// The settings say so, and they may have changed since they were read:
	// nobody is accused by old ones.
	if s, ok := p.flow.describe(p.flow.source, map[string]ledger.TopicID{p.source.topic: p.pair.SourceTopicID}, nil)[p.source.topic]; ok {
		return s.deletion().cause(insideBatch, newest, now)
	}
	return cause
}

// newestOnTarget returns the newest time in the last batch that the books have
// on the target, 0 if it cannot be told.
func (p *partition) newestOnTarget() int64 {
	at := p.flow.ledger.Committed(p.pair.ID).Target - 1
	e, err := p.flow.ledger.FindTarget(p.pair.ID, at)
	if err != nil || e.Tile != ledger.Copied || e.TimestampsReplaced {
		return 0
	}
	ctx, cancel := context.WithTimeout(p.flow.ctx, 10*time.Second)
	defer cancel()
	data, err := p.flow.target.read(ctx, p.target, p.pair.TargetTopicID, at)
	if err != nil {
		return 0
	}
	size, magic, err := recordbatch.Peek(data)
	if err != nil || magic != 2 {
		return 0
	}
	h, err := recordbatch.Parse(data[:size])
	if err != nil || h.BaseOffset > at {
		return 0
	}
	return max(h.MaxTimestamp, 0)
}

// tellLoss says what has got into the books as lost.
func (p *partition) tellLoss(e *ledger.Entry) {
	if !e.Tile.Bad() {
		return
	}
	log := p.flow.config.Logger.With("partition", p.source.String(), "start", e.Source.Start, "end", e.Source.End)
	if e.Tile == ledger.Unexplained {
		log.Warn("the source holds nothing at these offsets, and nothing explains it")
		return
	}
	known := "unknown"
	if e.LastKnownMillis > 0 {
		known = time.UnixMilli(e.LastKnownMillis).UTC().Format(time.RFC3339)
	}
	log.Warn("source records were gone before they could be copied", "cause", e.Cause.String(), "last_known", known)
}
