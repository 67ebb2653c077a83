package replicate

import (
	"context"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"

	"apograph/ledger"
)

// Whether the source's log was cut. Only its leader epochs prove it: a leader
// that has just been elected can say for a moment that the log ends lower than
// it does, so an end offset alone proves nothing (KIP-101, KIP-320).

// A divergence is the broker's word that its log parts from what was fetched:
// behind offset end it holds nothing that was fetched before (KIP-595).
type divergence struct {
	epoch int32
	end   int64
}

// diverged deals with a source whose log was cut below the fetch position. What
// is in the books stays copied: the partition stops if the cut is below them.
// What was fetched from the log that is gone, and not sent, is dropped; what
// the log holds now is copied in its place.
func (p *partition) diverged(d divergence) {
	detail := fmt.Sprintf("the source's log was cut: leader epoch %d ends at offset %d", d.epoch, d.end)
	if end := p.flow.ledger.End(p.pair.ID).Source; d.end < end {
		at := d.end
		if told, _, err := p.cutBooks(); err == nil && told >= 0 {
			at = min(at, told)
		}
		p.haltAt(at, StopSourceTruncated, fmt.Sprintf("%s, below the books, which end at %d", detail, end))
		return
	}
	if p.backoff(detail) {
		p.beginAnew(detail)
	}
}

// cutAhead asks whether the log was cut between the books' end and what was
// fetched, and begins anew if so.
func (p *partition) cutAhead(o outside) bool {
	known := ledger.EpochEnd{Epoch: o.epoch, Offset: o.next}
	log, err := p.epochEnd(o.epoch)
	switch {
	case err != nil:
		p.untold(err)
	case !log.Lacks(known):
		return false
	default:
		_, _ = p.flow.source.refresh(p.flow.ctx, p.flow.source.seen())
		p.beginAnew(cutDetail(known, log))
	}
	return true
}

// beginAnew drops what is not sent and begins again from the books, once what
// is in flight has landed.
func (p *partition) beginAnew(why string) {
	p.flow.config.Logger.Warn("what was fetched from the source is fetched again", "partition", p.source.String(), "because", why)
	if p.win == nil || p.win.flying == 0 {
		p.restart()
		return
	}
	p.flow.reader.stop(p)
	p.dropUnsent()
	p.phase, p.again = phaseIdle, true
}

// cut stops the partition if the source's leader says that its log was cut
// below the books: the epoch that they know last ended earlier
// (OffsetForLeaderEpoch, KIP-320). An end offset alone proves nothing. What was
// proven once holds, until a person accepts it; but where the logs part may be told
// later, by a leader that knows.
func (p *partition) cut() bool {
	if err := p.commitBooks(p.pair.ID); err != nil {
		_ = p.flow.fail(fmt.Errorf("partition %v: commit the books: %w", p.source, err))
		p.phase = phaseStopped
		return true
	}
	at, detail, err := p.cutBooks()
	if known := p.severed; known != nil && (at < 0 || known.offset < at) {
		at, detail = known.offset, known.detail
	}
	if at < 0 && err != nil {
		p.untold(err)
		return true
	}
	if at < 0 {
		return false
	}
	if s := p.sourceGone(); s != nil { // another topic of the name has answered
		p.halt(s.reason, s.detail)
		return true
	}
	if !p.flow.exactOrder(p.source).AcceptTruncated {
		p.haltAt(at, StopSourceTruncated, detail)
		return true
	}
	if b, ok := p.bookTail(); ok {
		next := min(b.start, at)
		if b.start, err = p.decided(next); err != nil {
			p.untold(err)
			return true
		}
		p.tellTwice(ledger.Range{Start: b.start, End: next})
		p.reopen(detail, b)
	}
	return true
}

// sourceEnded reports whether the source gives nothing more, of a log that was
// known to go on up to offset known. A leader that has just been elected can say
// for a moment that less of it may be read; it has all that was ever readable,
// though, so that the end of its own log tells whether there is more to come
// (KIP-207).
func (p *partition) sourceEnded(known int64) bool {
	if len(p.chunks) > 0 || p.bounds == nil || p.asm.settled() < p.bounds.lastStable {
		return false
	}
	if p.bounds.highWatermark >= known {
		return true
	}
	ctx, cancel := context.WithTimeout(p.flow.ctx, 30*time.Second)
	defer cancel()
	logEnd, err := p.flow.source.listOffset(ctx, p.source, offsetQuery{replica: debuggingReplica, timestamp: latestOffset})
	return err == nil && logEnd <= p.asm.settled()
}

// untold begins again from the books, as there was no answer about the source's
// epochs: that its log is whole would not be known, and the fetch does not tell
// where no epoch is known in front of it.
func (p *partition) untold(err error) {
	p.first, p.logEnd = nil, nil // old by then
	_, _ = p.flow.source.refresh(p.flow.ctx, p.flow.source.seen())
	gone := p.sourceGone()
	switch {
	case p.flow.draining():
	case gone != nil:
		p.halt(gone.reason, gone.detail)
	case !transient(err):
		p.halt(reasonOf(err), fmt.Sprintf("leader epochs of %v: %v", p.source, err))
	case p.win != nil && p.win.flying > 0:
		p.beginAnew(err.Error()) // it waits there
	case p.backoff(joinDetail("the source's leader does not say where its epochs end", err.Error())) && !p.flow.draining():
		p.restart()
	}
}

// keepCut keeps what is known of a cut below the books until a person has
// accepted it: the source forgets where an epoch ended once its log start has
// passed that place (LeaderEpochFileCache.truncateFromStartAsyncFlush).
func (p *partition) keepCut(s stopped) {
	if s.reason == StopSourceTruncated && s.offset < p.flow.ledger.End(p.pair.ID).Source {
		p.severed = &s
	}
}

// lookForCut asks whether the log was cut below the books while the partition is
// stopped, once under each leader epoch that is seen: a resumed one could be told no
// more if the log start had passed the cut by then.
func (p *partition) lookForCut() {
	l, _ := p.flow.source.leader(p.source)
	if p.severed != nil || l.epoch == p.askedUnder {
		return
	}
	at, detail, err := p.cutBooks()
	if err != nil || p.sourceGone() != nil {
		return // it is asked again
	}
	if p.askedUnder = l.epoch; at < 0 {
		return
	}
	if p.keepCut(stopped{at, StopSourceTruncated, detail}); p.severed != nil {
		p.flow.config.Logger.Warn("the source of a stopped partition was cut below the books", "partition", p.source.String(), "detail", detail)
		p.flow.bookStop(p.source, *p.severed, p.retry) // which the ledger keeps beside why it stands still
		p.flow.bookStop(p.source, p.stop, p.retry)
	}
}

// cutBooks returns where the books part from the source's log and what to say of it;
// -1 if they do not, as far as the log's leader knows (see [ledger.Ledger.PartsAt]).
func (p *partition) cutBooks() (at int64, detail string, err error) {
	if err := p.commitBooks(p.pair.ID); err != nil {
		return -1, "", err
	}
	known, err := p.flow.ledger.NewestEpoch(p.pair.ID)
	if err != nil {
		return -1, "", err
	}
	parting, err := p.flow.ledger.PartsAt(p.pair.ID, known, p.epochEnd)
	if parting == nil || err != nil {
		return -1, "", err
	}
	_, _ = p.flow.source.refresh(p.flow.ctx, p.flow.source.seen())
	return parting.At, cutDetail(known, parting.Log), nil
}

// cutDetail says that a log is not what was known of it.
func cutDetail(known, log ledger.EpochEnd) string {
	if log.Epoch < known.Epoch {
		return fmt.Sprintf("the source's log was cut: it has no leader epoch %d, which was known up to offset %d", known.Epoch, known.Offset)
	}
	return fmt.Sprintf("the source's log was cut: leader epoch %d ends at offset %d, and was known up to %d", known.Epoch, log.Offset, known.Offset)
}

// epochEnd asks the source's leader how its log ends a leader epoch. The question names
// the topic, not its id: what is known of the topic is brought up to date before a cut
// is told.
func (p *partition) epochEnd(epoch int32) (ledger.EpochEnd, error) {
	var request kadm.OffsetForLeaderEpochRequest
	request.Add(p.source.topic, p.source.partition, epoch)
	ctx, cancel := context.WithTimeout(p.flow.ctx, 30*time.Second)
	defer cancel()
	answers, err := p.flow.source.admin.OffsetForLeaderEpoch(ctx, request)
	if err != nil {
		return ledger.EpochEnd{}, err
	}
	a, ok := answers[p.source.topic][p.source.partition]
	if !ok {
		return ledger.EpochEnd{}, kerr.LeaderNotAvailable
	}
	return ledger.EpochEnd{Epoch: a.LeaderEpoch, Offset: a.EndOffset}, a.Err
}
