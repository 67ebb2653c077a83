package replicate

import (
	"cmp"
	"fmt"

	"apograph/ledger"
)

// accepts begins the next generation of the partition if a person has accepted
// what ended this one. It reports whether the partition has been replaced, or
// has stopped in the attempt.
func (p *partition) accepts(stop *stopped) bool {
	if stop == nil {
		return false
	}
	order := p.flow.exactOrder(p.source)
	switch {
	case order.AcceptRecreated && stop.reason == StopTopicRecreated:
		p.acceptRecreated(stop.detail, order.Recopy)
	case order.AcceptRecreated && stop.reason == StopTargetRecreated:
		p.reopen(stop.detail, opening{start: p.scopeStart()})
	case order.Recopy && stop.reason == StopTargetRecreated:
		p.recopyAll(stop.detail)
	case order.Recopy && stop.reason == StopTargetDeleted:
		p.awaitTarget(stop.detail)
	default:
		return false
	}
	return true
}

// acceptRecreated begins the next generation at the start of a source topic that was
// created again, as a person has accepted. Where the target topic is not the one of
// the books either, it begins in the one that there is, which is made again if it is
// gone and a person said to copy into it again.
func (p *partition) acceptRecreated(why string, recopy bool) {
	target := p.targetGone()
	switch {
	case target == nil:
		if b, ok := p.bookTail(); ok {
			b.start = 0
			p.reopen(why, b)
		}
	case p.orphaned() || target.reason == StopTargetRecreated:
		p.reopen(joinDetail(why, target.detail), opening{})
	case recopy:
		p.awaitTarget(target.detail)
	default:
		p.halt(target.reason, target.detail)
	}
}

// changed returns what has become of the partition's topics, of what nobody has
// accepted yet; nil if nothing has.
func (p *partition) changed() *stopped {
	source, target := p.sourceGone(), p.targetGone()
	if source != nil && source.reason == StopTopicRecreated && target != nil && p.flow.exactOrder(p.source).AcceptRecreated {
		return target
	}
	return cmp.Or(source, target)
}

// An opening says where the next generation begins.
type opening struct {
	start int64       // source offset at which its scope starts
	base  int64       // target offset at which the old books end, or are cut off, if the topic is the same
	cut   *ledger.Cut // nil, or where the target cut the old books off
	lost  string      // what there is to say of that
}

// reopen closes the pair where its books end, or where the target cut them off,
// and opens the next generation in the same transaction. Its target book begins
// there, and what stands behind it is adopted, or noted; in another target topic it
// begins at the start of the log, which must be empty: of what else stands there no
// book would know.
func (p *partition) reopen(why string, b opening) {
	why += b.lost
	if p.orphaned() {
		p.retire(why, b.cut)
		return
	}
	c, err := p.successor(b)
	if err != nil {
		p.halt(reasonOf(err), fmt.Sprintf("not accepted yet: %v", err))
		return
	}
	if c.stop != nil {
		p.halt(c.stop.reason, c.stop.detail)
		return
	}
	id, err := p.flow.ledger.Reopen(p.pair.ID, ledger.Closing{Reason: why, Cut: b.cut}, c.pair)
	if err != nil {
		p.flow.fail(fmt.Errorf("partition %v: open the next generation: %w", p.source, err))
		p.halt(StopUnavailable, err.Error())
		return
	}
	c.pair, _ = p.flow.ledger.Pair(id)
	p.flow.learnOrder(p.source)
	p.flow.config.Logger.Info("next generation begun", "partition", p.source.String(), "generation", c.pair.Generation, "because", why)
	p.phase, p.replaced = phaseStopped, true
	c.counts, p.counts = p.counts, counts{}
	p.flow.reader.remove(p)
	p.flow.begin([]*candidate{c})
	p.flow.left(p)
}

// dropAcceptance takes back what was accepted and is not there: what changes
// later is not accepted by it.
func (p *partition) dropAcceptance() {
	order := p.flow.exactOrder(p.source)
	if !order.AcceptRecreated && !order.AcceptTruncated && !order.Recopy {
		return
	}
	order.AcceptRecreated, order.AcceptTruncated, order.Recopy = false, false, false
	if order.Skip == (ledger.Range{}) && !order.Paused && !order.TolerateForeign {
		order.Reason, order.By, order.AtMillis = "", "", 0
	}
	p.setOrder(order)
}

// carriedOutCut ends the stop because of a cut of the source's log that a person has
// accepted, once what it left without a source is about to get into the books of the
// same generation: nothing is left of it to be accepted.
func (p *partition) carriedOutCut() error {
	p.severed = nil
	if err := p.flow.ledger.LiftStop(p.source.topic, p.source.partition, ledger.SourceTruncated); err != nil {
		_ = p.flow.fail(fmt.Errorf("partition %v: record that a cut is accepted: %w", p.source, err))
		return errBooks
	}
	return nil
}

// setOrder puts an order in place of the one about the partition. That it cannot
// be written is the flow's end.
func (p *partition) setOrder(o ledger.Order) {
	o.SourceTopic, o.Partition = p.source.topic, p.source.partition
	if err := p.flow.setOrder(o); err != nil {
		_ = p.flow.fail(fmt.Errorf("partition %v: %w", p.source, err))
	}
}

// successor describes the next generation of the partition.
func (p *partition) successor(b opening) (*candidate, error) {
	f := p.flow
	source, _ := f.source.topic(p.source.topic)
	target, _ := f.target.topic(p.target.topic)
	logEnd, err := p.targetEnd()
	if err != nil {
		return nil, err
	}
	first, err := f.target.listOffset(f.ctx, p.target, offsetQuery{replica: -1, timestamp: earliestOffset})
	if err != nil {
		return nil, err
	}
	id, epoch, err := f.target.initProducer(f.ctx)
	if err != nil {
		return nil, err
	}
	c := &candidate{topic: p.topic, number: p.source.partition, logEnd: &logEnd, opened: true, caughtTarget: p.caughtTarget}
	seen := f.sourceBounds([]topicPartition{p.source})[p.source] // what the topic's survey saw is the survey's
	if seen.err != nil {
		c.fail("source", p.source, seen.err)
		return c, nil
	}
	c.bounds = &seen.bounds
	c.pair = ledger.Pair{
		SourceTopic: p.source.topic, SourceTopicID: source.id, TargetTopic: p.target.topic, TargetTopicID: target.id,
		Partition: p.source.partition, ScopeStart: b.start, TargetBase: b.base, Producer: ledger.Producer{ID: id, Epoch: epoch},
	}
	if target.id == p.pair.TargetTopicID {
		return c, nil
	}
	if c.pair.TargetBase = logEnd; logEnd > first {
		c.stop = &stopped{reason: StopTargetNotEmpty, detail: fmt.Sprintf("%v has offsets [%d, %d), and no book knows of them; "+
			"--append does nothing about a topic that has books: delete the target topic, and resume --recopy copies all that the source still has", p.target, first, logEnd)}
	}
	return c, nil
}
