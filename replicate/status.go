package replicate

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"time"

	"apograph/ledger"
)

// A PartitionStatus says where one partition of a flow is.
type PartitionStatus struct {
	Topic     string
	Partition int32

	State     string // running, waiting (behind an open transaction), stopped or paused
	Reason    StopReason
	Detail    string
	Since     time.Time // of the state stopped or paused; zero: unknown
	NextRetry time.Time // of a stopped partition; zero: not by itself

	Position  int64 // end of the committed source book
	SourceEnd int64 // last seen high watermark; -1 unknown
	TargetEnd int64 // end of the committed target book

	LagRecords int64 // offsets from Position to SourceEnd; -1 unknown
	// Lag is how long ago the target was as the source is now: it counts from
	// when the copy last was at the source's end, or from the time of the
	// newest copied record, whichever is later. Negative: unknown.
	Lag time.Duration
	// Headroom is how long the next record to copy is safe from the source's
	// retention by time. Negative: unknown, or there is none.
	Headroom time.Duration
}

// Names of [PartitionStatus.State].
const (
	StateRunning = "running"
	StateWaiting = "waiting"
	StateStopped = "stopped"
	StatePaused  = "paused"
)

// A view is what a partition shows of itself to others.
type view struct {
	phase    phase
	stop     stopped
	retry    retry
	bounds   *bounds
	caughtUp time.Time
	newest   int64 // ms; 0 unknown
	waiting  bool
	rests    bool  // nothing is on its way to the target
	target   int64 // where it should end then
	epoch    int32 // leader epoch of the target under which what stands there was compared
}

// publish shows the partition's state.
func (p *partition) publish() {
	v := view{phase: p.phase, stop: p.stop, retry: p.retry, bounds: p.bounds, caughtUp: p.caughtUp, newest: p.newest}
	if b := p.bounds; b != nil {
		v.waiting = p.asm.settled() >= b.lastStable && b.lastStable < b.highWatermark
	}
	if v.rests = p.rests(); v.rests {
		v.target, v.epoch = p.win.target, p.comparedAt
	}
	p.deadline.Store(p.expiry())
	p.mayBeHollow.Store(p.hollow && (p.asm.compactPolicy || p.asm.compactSeen))
	p.mu.Lock()
	defer p.mu.Unlock()
	p.view = v
}

func (p *partition) status() view {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.view
}

// Status returns where every partition of the flow is: those that cannot go on
// first, then by topic and partition.
func (f *Flow) Status() []PartitionStatus {
	var all []PartitionStatus
	for _, p := range f.sorted() {
		all = append(all, f.statusOf(p))
	}
	f.mu.Lock()
	for tp, b := range f.blocked {
		s := PartitionStatus{
			Topic: tp.topic, Partition: tp.partition, SourceEnd: -1, LagRecords: -1, Lag: -1, Headroom: -1,
			State: StateStopped, Reason: b.stop.reason, Detail: b.stop.detail, Since: b.retry.since, NextRetry: b.retry.at,
		}
		all = append(all, s)
	}
	f.mu.Unlock()
	SortStatus(all)
	return all
}

// SortStatus puts stopped and paused partitions first, then orders by topic and
// partition.
func SortStatus(all []PartitionStatus) {
	rank := map[string]int{StateStopped: 0, StatePaused: 1, StateWaiting: 2, StateRunning: 2}
	slices.SortFunc(all, func(a, b PartitionStatus) int {
		return cmp.Or(cmp.Compare(rank[a.State], rank[b.State]), cmp.Compare(a.Topic, b.Topic), cmp.Compare(a.Partition, b.Partition))
	})
}

func (f *Flow) statusOf(p *partition) PartitionStatus {
	v := p.status()
	s := StatusInBook(f.ledger, p.pair)
	s.State = StateRunning
	switch {
	case v.phase == phaseStopped:
		s.State, s.Reason, s.Detail, s.Since = StateStopped, v.stop.reason, v.stop.detail, v.retry.since
		if v.stop.reason == StopPaused {
			s.State = StatePaused
		} else if v.stop.reason.retried() && !f.config.Once {
			s.NextRetry = v.retry.at
		}
	case v.waiting:
		s.State = StateWaiting
	}
	switch since := latest(v.caughtUp, v.newest); {
	case s.LagRecords == 0:
		s.Lag = 0
	case s.LagRecords > 0 && !since.IsZero():
		s.Lag = max(f.now().Sub(since), 0)
	}
	s.Headroom = f.headroom(p, s)
	return s
}

// StatusInBook returns what the ledger alone says about an open pair: where its
// books end, what was last seen of the source, whether it was told to pause,
// and why it last stopped.
func StatusInBook(l *ledger.Ledger, pair ledger.Pair) PartitionStatus {
	position, state := l.Committed(pair.ID), l.State(pair.ID)
	s := PartitionStatus{
		Topic: pair.SourceTopic, Partition: pair.Partition, State: StateRunning,
		Position: position.Source, SourceEnd: state.HighWatermark, TargetEnd: position.Target,
		LagRecords: -1, Lag: -1, Headroom: -1,
	}
	if state.HighWatermark >= 0 {
		s.LagRecords = max(state.HighWatermark-position.Source, 0)
	}
	if s.LagRecords == 0 {
		s.Lag = 0
	}
	if s.LagRecords > 0 && position.Source >= state.LastStable {
		s.State = StateWaiting
	}
	return s
}

func latest(caughtUp time.Time, newest int64) time.Time {
	if t := time.UnixMilli(newest); newest > 0 && t.After(caughtUp) {
		return t
	}
	return caughtUp
}

// expiry returns when the next record to copy may be deleted by time, in
// milliseconds: not before the newest copied one is older than retention.ms.
// Kafka deletes a segment when its newest record is, so the true time is later.
func (p *partition) expiry() int64 {
	source := p.topic.facts.Load().source
	retention := source.integer("retention.ms", -1)
	if retention < 0 || !source.deletes() || p.newest <= 0 || retention > math.MaxInt64-p.newest {
		return math.MaxInt64
	}
	return p.newest + retention
}

// headroom returns how long the next record to copy is safe from retention by
// time, -1 where that cannot be said or there is none.
func (f *Flow) headroom(p *partition, s PartitionStatus) time.Duration {
	at := p.deadline.Load()
	if at == math.MaxInt64 || s.LagRecords <= 0 {
		return -1
	}
	return max(time.UnixMilli(at).Sub(f.now()), 0)
}

// retryStopped sets those partitions to work again whose pause has passed.
func (f *Flow) retryStopped() {
	for _, p := range f.all() {
		v := p.status()
		if v.phase == phaseStopped && v.stop.reason.retried() && !f.now().Before(v.retry.at) && p.quiet() {
			p.post(event{begin: true})
		}
	}
}

// bookStop records in the ledger why a partition stopped.
func (f *Flow) bookStop(tp topicPartition, s stopped, r retry) {
	if err := f.setStop(tp, s, r); err != nil {
		_ = f.fail(fmt.Errorf("partition %v: record why it stopped: %w", tp, err))
	}
}

// setStop tells the ledger why a partition cannot go on.
func (f *Flow) setStop(tp topicPartition, s stopped, r retry) error {
	since := r.since
	if since.IsZero() {
		since = f.now()
	}
	return f.ledger.SetStop(ledger.Stop{
		SourceTopic: tp.topic, Partition: tp.partition, Offset: s.offset,
		Reason: string(s.reason), Detail: s.detail, SinceMillis: since.UnixMilli(), Tries: int32(r.tries),
	})
}

// recall takes over what earlier stops of the partition found, of this run or of
// another, where that matters for how it begins.
func (p *partition) recall() {
	s, ok := p.flow.ledger.Stop(p.source.topic, p.source.partition)
	if !ok {
		return
	}
	if s.Holds(ledger.ForeignWriter) {
		detail := "somebody else wrote to the target; the books say where"
		if s.Reason == ledger.ForeignWriter {
			detail = s.Detail
		}
		p.sticky = &stopped{p.flow.ledger.End(p.pair.ID).Source, StopForeignWriter, detail}
	}
	if at, ok := s.Truncated(); ok {
		detail := fmt.Sprintf("the source's log was cut at offset %d, as was found before", at)
		if s.Reason == ledger.SourceTruncated {
			detail = s.Detail
		}
		p.keepCut(stopped{at, StopSourceTruncated, detail})
	}
	if s.Holds(ledger.Fenced) {
		detail := "the target took nothing more under the pair's producer id, as was found before"
		if s.Reason == ledger.Fenced {
			detail = s.Detail
		}
		p.fenced = &stopped{p.flow.ledger.End(p.pair.ID).Source, StopFenced, detail}
		p.renew = true
	}
}

// entered says that a partition that had left is at work again.
func (f *Flow) entered() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.open++
}

// clearStop forgets why a partition stopped.
func (f *Flow) clearStop(tp topicPartition) {
	if err := f.ledger.ClearStop(tp.topic, tp.partition); err != nil {
		f.fail(fmt.Errorf("partition %v: record that it goes on: %w", tp, err))
	}
}

// watchStopped learns the source's bounds for partitions that are not fetched:
// how far behind they are, and how much may be left out, changes all the same.
func (f *Flow) watchStopped() {
	stopped := map[topicPartition]*partition{}
	for _, p := range f.all() {
		if p.status().phase == phaseStopped && p.sourceGone() == nil {
			stopped[p.source] = p
		}
	}
	for tp, b := range f.sourceBounds(slices.Collect(maps.Keys(stopped))) {
		if b.err == nil {
			stopped[tp].post(event{bounds: &b.bounds})
		}
	}
}

// bookBlocked records in the ledger why partitions could not be given a pair.
func (f *Flow) bookBlocked() {
	f.mu.Lock()
	stops := map[topicPartition]blocked{}
	for _, tp := range f.unbooked {
		if b := f.blocked[tp]; b != nil {
			stops[tp] = *b
		}
	}
	f.unbooked = nil
	f.mu.Unlock()
	for tp, b := range stops {
		f.bookStop(tp, b.stop, b.retry)
	}
}
