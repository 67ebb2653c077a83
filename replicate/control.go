package replicate

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"

	"apograph/ledger"
)

// allPartitions stands for every partition of a topic in an order.
const allPartitions = -1

// loadOrders takes over what people have told the flow earlier.
func (f *Flow) loadOrders() {
	if f.ledger == nil {
		return
	}
	for _, o := range f.ledger.Orders() {
		f.orders[topicPartition{o.SourceTopic, o.Partition}] = o
	}
}

// order returns what a partition has been told, by itself or with its topic.
func (f *Flow) order(tp topicPartition) ledger.Order {
	f.mu.Lock()
	defer f.mu.Unlock()
	order := f.orders[tp]
	all := f.orders[topicPartition{tp.topic, allPartitions}]
	if all.Paused && !order.Paused {
		order.Paused, order.By, order.Reason = true, all.By, all.Reason
	}
	order.TolerateForeign = order.TolerateForeign || all.TolerateForeign
	return order
}

// Order carries out what a person tells the flow about a topic (partition -1)
// or about one partition of it: to pause, or to go on, and under what
// conditions. It is durable when Order returns. An order takes the place of the
// last one about the same thing; one about a topic, of those about its
// partitions too.
//
// A [*UsageError] says that the order makes no sense; nothing has changed then.
func (f *Flow) Order(o ledger.Order) error {
	f.orderMu.RLock()
	defer f.orderMu.RUnlock()
	if f.ending {
		return errors.New("the flow is ending")
	}
	tp := topicPartition{o.SourceTopic, o.Partition}
	parts, blocked := f.named(tp)
	if len(parts) == 0 && blocked == 0 {
		return usageErrorf("the flow has no partition %s", nameOf(tp))
	}
	if o.AcceptRecreated || o.Recopy {
		if err := f.lookAgain(parts); err != nil {
			return err
		}
	}
	if err := checkOrder(f.ledger, o, f.exactOrder(topicPartition{o.SourceTopic, allPartitions})); err != nil {
		return err
	}
	if o.Skip != (ledger.Range{}) && (len(parts) != 1 || parts[0].status().phase != phaseStopped) {
		return usageErrorf("partition %s is at work: pause it, or wait until it stops, before offsets are left out", nameOf(tp))
	}
	if err := f.carryOut(o); err != nil {
		return err
	}
	if o.Paused {
		for _, p := range parts {
			p.post(event{stop: &stopped{reason: StopPaused, detail: pausedBy(o)}})
		}
		return nil
	}
	if err := liftStops(f.ledger, o, ledger.ForeignWriter, ledger.Fenced); err != nil {
		return err
	}
	for _, p := range parts {
		p.post(event{begin: true, resumed: true})
	}
	if blocked > 0 {
		f.makeDue(tp)
		f.lookNow()
	}
	return nil
}

// liftStops ends those reasons of the stops of the partitions that an order is
// about which a person's word ends.
func liftStops(l *ledger.Ledger, o ledger.Order, reasons ...string) error {
	for _, s := range l.Stops() {
		if s.SourceTopic != o.SourceTopic || o.Partition != allPartitions && o.Partition != s.Partition {
			continue
		}
		err := disownProducer(l, &s)
		if err == nil {
			err = l.LiftStop(s.SourceTopic, s.Partition, reasons...)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// noProducer is in the place of a pair's newest producer id where that may not be
// used again: another one is taken before anything is sent. No batch has it.
const noProducer = -1

// disownProducer says in the ledger that the producer id of a partition that was
// fenced is not used again: the stop, which said so, is about to be lifted.
func disownProducer(l *ledger.Ledger, s *ledger.Stop) error {
	if !s.Holds(ledger.Fenced) {
		return nil
	}
	for _, p := range l.Pairs() {
		if p.Closed == nil && p.SourceTopic == s.SourceTopic && p.Partition == s.Partition {
			return disown(l, p.ID)
		}
	}
	return nil
}

// disown says in the ledger that a pair's producer id is not used again.
func disown(l *ledger.Ledger, id ledger.PairID) error {
	return l.SetProducer(id, ledger.Producer{ID: noProducer, Appended: l.End(id).Appended})
}

// lookAgain finds out whether topics that were deleted have been created again:
// the partitions that stopped because of it look only now and then.
func (f *Flow) lookAgain(parts []*partition) error {
	for _, c := range []*cluster{f.source, f.target} {
		if _, err := c.refresh(f.ctx, c.seen()); err != nil {
			return err
		}
	}
	for _, p := range parts {
		v, now := p.status(), p.changed()
		if v.phase != phaseStopped || now == nil || now.reason == v.stop.reason {
			continue
		}
		now.offset = v.stop.offset
		if err := f.setStop(p.source, *now, v.retry); err != nil {
			return err
		}
	}
	return nil
}

// OrderOffline is [Flow.Order] for a flow that does not run: its next start
// carries out what the ledger says.
func OrderOffline(l *ledger.Ledger, o ledger.Order) error {
	f := &Flow{ledger: l, orders: map[topicPartition]ledger.Order{}}
	f.loadOrders()
	known := slices.ContainsFunc(l.Pairs(), func(p ledger.Pair) bool {
		return p.Closed == nil && p.SourceTopic == o.SourceTopic && (o.Partition == allPartitions || o.Partition == p.Partition)
	})
	if !known {
		return usageErrorf("the ledger has no open book about %s", nameOf(topicPartition{o.SourceTopic, o.Partition}))
	}
	if err := checkOrder(l, o, f.exactOrder(topicPartition{o.SourceTopic, allPartitions})); err != nil {
		return err
	}
	if err := f.carryOut(o); err != nil || o.Paused {
		return err
	}
	if err := liftStops(l, o, string(StopPaused), ledger.ForeignWriter, ledger.Fenced); err != nil {
		return err
	}
	return l.Commit()
}

// checkOrder says what is wrong with an order; all is the one about the whole
// topic that stands.
func checkOrder(l *ledger.Ledger, o, all ledger.Order) error {
	if o.Partition != allPartitions && all.Paused && !o.Paused {
		return usageErrorf("topic %s is paused as a whole: resume the topic", o.SourceTopic)
	}
	if o.Partition != allPartitions && all.TolerateForeign && plainResume(o) && !o.TolerateForeign {
		return usageErrorf("topic %s tolerates foreign records as a whole: resume the topic", o.SourceTopic)
	}
	if o.Skip != (ledger.Range{}) {
		return checkSkip(l, o)
	}
	if (o.AcceptRecreated || o.AcceptTruncated || o.Recopy) && len(acceptable(l, o)) == 0 {
		return usageErrorf("no partition of %s has stopped because of what is to be accepted", nameOf(topicPartition{o.SourceTopic, o.Partition}))
	}
	return nil
}

// acceptable returns the partitions that stopped because of what an order
// accepts.
func acceptable(l *ledger.Ledger, o ledger.Order) []int32 {
	var found []int32
	for _, s := range l.Stops() {
		if s.SourceTopic != o.SourceTopic || o.Partition != allPartitions && o.Partition != s.Partition {
			continue
		}
		if accepts(&s, o) {
			found = append(found, s.Partition)
		}
	}
	return found
}

// accepts reports whether an order accepts why a partition stopped, now or, as
// long as that holds, before. Of a source topic that is another one now nothing
// else can be accepted.
func accepts(s *ledger.Stop, o ledger.Order) bool {
	switch StopReason(s.Reason) {
	case StopTopicRecreated:
		return o.AcceptRecreated
	case StopTargetRecreated:
		return o.AcceptRecreated || o.Recopy
	case StopTargetDeleted:
		return o.Recopy
	}
	return o.Recopy && s.Holds(ledger.TargetLostRecords) || o.AcceptTruncated && s.Holds(ledger.SourceTruncated)
}

// checkSkip allows to leave out only what comes next in a book, of what the
// source is known to hold, and only while nothing else is on its way.
func checkSkip(l *ledger.Ledger, o ledger.Order) error {
	if o.Partition == allPartitions {
		return usageErrorf("only offsets of one partition can be left out: name TOPIC:PARTITION")
	}
	i := slices.IndexFunc(l.Pairs(), func(p ledger.Pair) bool {
		return p.Closed == nil && p.SourceTopic == o.SourceTopic && p.Partition == o.Partition
	})
	if i < 0 {
		return usageErrorf("partition %s:%d has no book yet", o.SourceTopic, o.Partition)
	}
	id := l.Pairs()[i].ID
	position, end := l.End(id).Source, l.State(id).HighWatermark
	switch {
	case o.Skip.Start >= o.Skip.End:
		return usageErrorf("range %d-%d is empty: END is the first offset that is not left out", o.Skip.Start, o.Skip.End)
	case o.Skip.Start != position:
		return usageErrorf("range %d-%d does not begin where the copy stands, at source offset %d", o.Skip.Start, o.Skip.End, position)
	case o.Skip.End > end:
		return usageErrorf("range %d-%d reaches beyond the source's last seen end %d", o.Skip.Start, o.Skip.End, end)
	}
	return nil
}

// carryOut makes an order durable. What accepts a change is told to each
// partition that stopped because of it, and to no other: what changes later is
// not accepted by it.
//
// Foreign records stay tolerated until a plain order to resume says otherwise. What
// a partition was told to accept stays accepted if foreign records stopped it on the
// way there: to resume is to go on with it. What it was told to accept, and could not
// yet, stays accepted too when it is told to accept something more: where source and
// target have both changed, each takes a word of its own.
func (f *Flow) carryOut(o ledger.Order) error {
	standing, plain := map[int32]ledger.Order{}, plainResume(o)
	accepting := o.AcceptRecreated || o.AcceptTruncated || o.Recopy
	for _, old := range f.ledger.Orders() {
		if old.SourceTopic == o.SourceTopic {
			standing[old.Partition] = old
		}
	}
	set := func(o ledger.Order) error {
		old := standing[o.Partition]
		o.TolerateForeign = o.TolerateForeign || old.TolerateForeign && !plain
		if accepting {
			o.AcceptRecreated, o.AcceptTruncated, o.Recopy = o.AcceptRecreated || old.AcceptRecreated, o.AcceptTruncated || old.AcceptTruncated, o.Recopy || old.Recopy
		}
		if s, ok := f.ledger.Stop(o.SourceTopic, o.Partition); plain && ok && s.Reason == ledger.ForeignWriter {
			o.AcceptRecreated, o.AcceptTruncated, o.Recopy = old.AcceptRecreated, old.AcceptTruncated, old.Recopy
		}
		return f.setOrder(o)
	}
	if o.Partition != allPartitions {
		return set(o)
	}
	for _, old := range f.ledger.Orders() {
		if old.SourceTopic == o.SourceTopic && old.Partition != allPartitions {
			if err := set(ledger.Order{SourceTopic: o.SourceTopic, Partition: old.Partition}); err != nil {
				return err
			}
		}
	}
	each := o
	for _, each.Partition = range acceptable(f.ledger, o) {
		if err := set(each); err != nil {
			return err
		}
	}
	o.AcceptRecreated, o.AcceptTruncated, o.Recopy = false, false, false
	return set(o)
}

// plainResume reports whether an order says nothing but to go on, and whether
// foreign records are tolerated.
func plainResume(o ledger.Order) bool {
	return !o.Paused && o.Skip == (ledger.Range{}) && !o.AcceptRecreated && !o.AcceptTruncated && !o.Recopy
}

// lookNow asks for a survey.
func (f *Flow) lookNow() {
	select {
	case f.kick <- struct{}{}:
	default:
	}
}

// setOrder makes an order durable and known.
func (f *Flow) setOrder(o ledger.Order) error {
	if err := f.ledger.SetOrder(o); err != nil {
		return err
	}
	f.learnOrder(topicPartition{o.SourceTopic, o.Partition})
	return nil
}

// learnOrder takes over what the ledger says is ordered about tp itself. The
// ledger is read under the flow's mu, so that what is known is never older than
// the last call of it.
func (f *Flow) learnOrder(tp topicPartition) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.orders, tp)
	for _, o := range f.ledger.Orders() {
		if o.SourceTopic == tp.topic && o.Partition == tp.partition {
			f.orders[tp] = o
		}
	}
}

// within reports whether tp is what an order about all, or about one partition,
// names.
func (tp topicPartition) within(order topicPartition) bool {
	return tp.topic == order.topic && (order.partition == allPartitions || tp.partition == order.partition)
}

// named returns the partitions at work that an order is about, and how many
// more there are that could not be set to work.
func (f *Flow) named(tp topicPartition) (parts []*partition, waiting int) {
	parts = slices.DeleteFunc(f.sorted(), func(p *partition) bool { return !p.source.within(tp) })
	f.mu.Lock()
	defer f.mu.Unlock()
	for other := range f.blocked {
		if other.within(tp) {
			waiting++
		}
	}
	return parts, waiting
}

// makeDue has the next survey try again those that could not be set to work.
func (f *Flow) makeDue(tp topicPartition) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for other, b := range f.blocked {
		if other.within(tp) {
			b.retry.at = time.Time{}
		}
	}
}

// exactOrder returns the order that names tp itself.
func (f *Flow) exactOrder(tp topicPartition) ledger.Order {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.orders[tp]
}

func nameOf(tp topicPartition) string {
	if tp.partition == allPartitions {
		return tp.topic
	}
	return fmt.Sprintf("%s:%d", tp.topic, tp.partition)
}

func pausedBy(o ledger.Order) string {
	detail := "paused"
	if o.By != "" {
		detail += " by " + o.By
	}
	return joinDetail(detail, o.Reason)
}

// skip books the source offsets that a person told the flow to leave out, if
// they come next. The target holds nothing behind the books then.
func (p *partition) skip() {
	order := p.flow.exactOrder(p.source)
	if order.Skip == (ledger.Range{}) {
		return
	}
	if order.Skip.Start == p.flow.ledger.End(p.pair.ID).Source {
		reason := joinDetail("left out by "+cmp.Or(order.By, "order"), order.Reason)
		if !p.enter(ledger.Entry{Tile: ledger.Filtered, Cause: ledger.CausePerson, Source: order.Skip, Target: ledger.Range{Start: p.win.target, End: p.win.target}, Reason: reason, LeaderEpoch: -1}) {
			return
		}
		p.asm.pos = max(p.asm.pos, order.Skip.End)
		p.first = nil
	}
	order.Skip, order.Reason, order.By, order.AtMillis = ledger.Range{}, "", "", 0
	p.setOrder(order)
}
