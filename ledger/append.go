package ledger

import (
	"fmt"
	"math"
	"slices"
	"time"
	"unsafe"
)

const (
	// commitBytes is how much may be queued before a commit should not wait
	// for its time.
	commitBytes = 4 << 20

	// commitDelay is how long an entry may be queued.
	commitDelay = 100 * time.Millisecond

	// stateDelay is how old the time of an otherwise unchanged state may get
	// in the file.
	stateDelay = 10 * time.Second
)

// Append queues entries of a pair for the next commit: all of them, or none and
// an error. The first must start exactly where both books end, with what is
// queued; each other one where the one before it ends. Times are set by the
// commit. The ledger keeps no reference to the slices of the entries.
//
// The error is an [*LawError] for an entry that breaks a law, a
// [*DiscontinuityError] for one that would leave a hole or an overlap,
// ErrPairClosed, ErrNotFound for an unknown pair, ErrReadOnly, ErrClosed, or
// that of a commit after which the file may be bad.
func (l *Ledger) Append(id PairID, entries ...Entry) error {
	for i := range entries {
		if err := entries[i].Validate(); err != nil {
			return err
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	p, err := l.writable(id)
	if err != nil {
		return err
	}
	end, appended := p.end, p.appended
	scope := p.scopeEnd
	for i := range entries {
		e := &entries[i]
		if e.start() != end {
			return discontinuity(p, end, e)
		}
		if e.Tile == BeforeStart {
			if scope != end.source {
				return lawErrorf(lawBeforeStart, "before_start: at source offset %d, but the scope started at %d", end.source, scope)
			}
			scope = e.Source.End
		}
		end = e.end()
		if e.Tile == Copied || e.Tile == Orphan {
			appended += e.Target.Len()
		}
	}
	before := len(p.queue)
	for i := range entries {
		p.queue = join(p.queue, &entries[i])
		l.queued += int(unsafe.Sizeof(Gap{})) * len(entries[i].Gaps)
	}
	l.queued += int(unsafe.Sizeof(Entry{})) * (len(p.queue) - before)
	p.end, p.appended, p.scopeEnd = end, appended, scope
	if len(entries) > 0 {
		l.list(p)
	}
	return nil
}

func discontinuity(p *pair, end place, e *Entry) *DiscontinuityError {
	return &DiscontinuityError{
		Pair: p.ID, SourceTopic: p.SourceTopic, Partition: p.Partition,
		WantSource: end.source, WantTarget: end.target,
		GotSource: e.Source.Start, GotTarget: e.Target.Start,
	}
}

// writable returns the pair if something may be added to it. The caller holds
// l.mu.
func (l *Ledger) writable(id PairID) (*pair, error) {
	if err := l.usable(); err != nil {
		return nil, err
	}
	p, ok := l.pairs[id]
	switch {
	case !ok:
		return nil, fmt.Errorf("ledger: pair %d: %w", id, ErrNotFound)
	case p.Closed != nil || p.closing:
		return nil, fmt.Errorf("ledger: %s-%d generation %d: %w", p.SourceTopic, p.Partition, p.Generation, ErrPairClosed)
	}
	return p, nil
}

// usable returns why nothing can be written; nil if it can. The caller holds
// l.mu.
func (l *Ledger) usable() error {
	switch {
	case l.closed:
		return fmt.Errorf("ledger %s: %w", l.path, ErrClosed)
	case l.readOnly:
		return fmt.Errorf("ledger %s: %w", l.path, ErrReadOnly)
	}
	return l.broken
}

// list notes that p has something to commit, and wakes [Ledger.CommitLoop].
// The caller holds l.mu.
func (l *Ledger) list(p *pair) {
	if !p.listed {
		p.listed = true
		l.queue = append(l.queue, p)
	}
	l.wake()
	if l.queued >= commitBytes {
		signal(l.full)
	}
}

// wake makes the queue due in time. The caller holds l.mu.
func (l *Ledger) wake() {
	if l.timer == nil {
		l.timer = time.AfterFunc(commitDelay, func() { signal(l.due) })
	}
}

// signal puts a token into c, which has room for one, unless one is there.
func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// SetProducer says that from Producer.Appended records on the pair's records
// are sent under another producer id or epoch. It is durable with the next
// commit.
//
// Appended must not be below that of the producer before, nor above
// Position.Appended of [Ledger.End]. Other errors are those of Append.
func (l *Ledger) SetProducer(id PairID, producer Producer) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	p, err := l.writable(id)
	if err != nil {
		return err
	}
	if detail := producerFault(p.producers, producer); detail != "" {
		return lawErrorf(lawProducers, "%s", detail)
	}
	if producer.Appended > p.appended {
		return lawErrorf(lawProducers, "producer starts at record %d, the books have %d", producer.Appended, p.appended)
	}
	p.producers = append(slices.Clip(p.producers), producer)
	p.Producer = producer
	p.changed = true
	l.list(p)
	return nil
}

// producerFault returns why next cannot follow the producers; "" if it can.
func producerFault(producers []Producer, next Producer) string {
	last := int64(0)
	if len(producers) > 0 {
		last = producers[len(producers)-1].Appended
	}
	switch {
	case next.ID < -1 || next.Epoch < -1 || next.Sequence < 0:
		return fmt.Sprintf("producer %d, epoch %d, sequence %d", next.ID, next.Epoch, next.Sequence)
	case next.Appended < last:
		return fmt.Sprintf("producer starts at record %d, the one before at %d", next.Appended, last)
	}
	return ""
}

// SetState says what was last seen of the source. It is durable with a commit:
// the next one if a bound has changed, else when a time in the file has become
// ten seconds old.
//
// A leader reads high watermark, log start offset and last stable offset one
// after the other (Kafka's Partition.readRecords), so that a later one may be
// above an earlier one that has moved on since: then the earlier one is raised.
// CompactSeen stays set once it is, and CaughtUpMillis stays as it was where it is
// 0 or -1. An offset below -1 is an error; other errors are those of Append.
func (l *Ledger) SetState(id PairID, s State) error {
	if s.LastStable >= 0 {
		s.LastStable = max(s.LastStable, s.LogStart)
	}
	if s.HighWatermark >= 0 {
		s.HighWatermark = max(s.HighWatermark, s.LastStable, s.LogStart)
	}
	if detail := stateFault(&s); detail != "" {
		return lawErrorf(lawState, "%s", detail)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	p, err := l.writable(id)
	if err != nil {
		return err
	}
	s.CompactSeen = s.CompactSeen || p.state.CompactSeen
	if s.CaughtUpMillis <= 0 {
		s.CaughtUpMillis = p.state.CaughtUpMillis
	}
	p.state = s
	if p.stateWorth() {
		l.list(p)
	}
	return nil
}

// maxMillis bounds times that callers give, so that differences of them cannot
// overflow: the year 142,715.
const maxMillis = 1 << 52

// stateFault returns which law a state breaks; "" if none.
func stateFault(s *State) string {
	switch {
	case s.LogStart < -1 || s.LastStable < -1 || s.HighWatermark < -1:
		return fmt.Sprintf("log start %d, last stable %d, high watermark %d", s.LogStart, s.LastStable, s.HighWatermark)
	case !ordered(s.LogStart, s.LastStable) || !ordered(s.LastStable, s.HighWatermark) ||
		!ordered(s.LogStart, s.HighWatermark) || s.HighWatermark == math.MaxInt64:
		return fmt.Sprintf("log start %d, last stable %d and high watermark %d are not in order",
			s.LogStart, s.LastStable, s.HighWatermark)
	case s.SeenMillis < -1 || s.SeenMillis > maxMillis:
		return fmt.Sprintf("seen at %d ms", s.SeenMillis)
	case s.CaughtUpMillis < -1 || s.CaughtUpMillis > maxMillis:
		return fmt.Sprintf("caught up at %d ms", s.CaughtUpMillis)
	}
	return ""
}

// ordered reports whether a bound is not above another, where both are known.
func ordered(low, high int64) bool { return low <= high || high == -1 }

// stateWorth reports whether the state is worth writing.
func (p *pair) stateWorth() bool {
	bounds := p.state
	bounds.SeenMillis = p.stored.SeenMillis
	if p.stored.CaughtUpMillis >= 0 {
		bounds.CaughtUpMillis = p.stored.CaughtUpMillis
	}
	delay := stateDelay.Milliseconds()
	return bounds != p.stored || p.state.SeenMillis >= p.stored.SeenMillis+delay ||
		p.state.CaughtUpMillis >= p.stored.CaughtUpMillis+delay
}
