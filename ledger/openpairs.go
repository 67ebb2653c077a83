package ledger

import (
	"fmt"
	"slices"
	"unicode/utf8"
)

// A partition names a topic's partition on one side.
type partition struct {
	topic     string
	partition int32
}

// An openings is what new pairs must not collide with.
type openings struct {
	sources, targets map[partition]bool  // that have an open pair
	generations      map[partition]int32 // last one of each source partition
	last             map[partition]PairID
	cuts             map[partition]sourceCut // where that was cut off, if it was
}

// A sourceCut is where a generation was cut off in its source topic.
type sourceCut struct {
	topic  TopicID
	offset int64
}

// OpenPairs opens pairs in one durable transaction, together with everything
// that is queued, and returns their ids in the order of pairs. A pair's books
// start at source offset 0, with a before_start tile up to ScopeStart, and at
// TargetBase.
//
// ID is assigned, and must be 0, as Producer.Appended must be; OpenedMillis is
// set; Closed must be nil. A Generation of 0 becomes one more than the last of
// the same source topic name and partition; any other must be above that.
//
// All pairs are opened or none. The error is ErrPairOpen for a source or target
// partition that has an open pair, also one among pairs; others are those of
// [Ledger.Append] and [Ledger.Commit].
func (l *Ledger) OpenPairs(pairs []Pair) ([]PairID, error) {
	l.commitMu.Lock()
	defer l.commitMu.Unlock()
	known, next := l.openings()
	opened := make([]*pair, 0, len(pairs))
	ids := make([]PairID, 0, len(pairs))
	for i, p := range pairs {
		previous := known.last[partition{p.SourceTopic, p.Partition}]
		if err := known.admit(&p); err != nil {
			return nil, fmt.Errorf("ledger: open %s-%d to %s-%d: %w", p.SourceTopic, p.Partition, p.TargetTopic, p.Partition, err)
		}
		p.ID = next + PairID(i)
		ids = append(ids, p.ID)
		opened = append(opened, openPair(p, previous))
	}
	if err := l.commit(task{open: opened}); err != nil {
		return nil, err
	}
	return ids, nil
}

// openings returns what the open pairs take, and the next id.
func (l *Ledger) openings() (*openings, PairID) {
	l.mu.RLock()
	defer l.mu.RUnlock()
	known := newOpenings()
	last := PairID(0)
	for id, p := range l.pairs {
		last = max(last, id)
		known.add(&p.Pair)
	}
	return known, last + 1
}

func newOpenings() *openings {
	return &openings{
		sources:     make(map[partition]bool),
		targets:     make(map[partition]bool),
		generations: make(map[partition]int32),
		last:        make(map[partition]PairID),
		cuts:        make(map[partition]sourceCut),
	}
}

func (o *openings) add(p *Pair) {
	source, target := partition{p.SourceTopic, p.Partition}, partition{p.TargetTopic, p.Partition}
	if p.Generation >= o.generations[source] {
		o.generations[source], o.last[source] = p.Generation, p.ID
		o.closed(p, p.Closed)
	}
	if p.Closed == nil {
		o.sources[source], o.targets[target] = true, true
	}
}

// closed notes how the last generation of a source partition ended.
func (o *openings) closed(p *Pair, c *Closing) {
	source := partition{p.SourceTopic, p.Partition}
	delete(o.cuts, source)
	if c != nil && c.Cut != nil {
		o.cuts[source] = sourceCut{p.SourceTopicID, c.Cut.Source}
	}
}

// drop makes an open pair one that is closed.
func (o *openings) drop(p *Pair, c *Closing) {
	delete(o.sources, partition{p.SourceTopic, p.Partition})
	delete(o.targets, partition{p.TargetTopic, p.Partition})
	o.closed(p, c)
}

// cutFault returns an error if a pair leaves out what the cut of the generation
// before took: in the same source topic its scope starts at the cut or below, as
// the target may have lost more, or the source may have been cut lower.
func (o *openings) cutFault(p *Pair) error {
	cut, ok := o.cuts[partition{p.SourceTopic, p.Partition}]
	if !ok || p.SourceTopicID != cut.topic || p.ScopeStart <= cut.offset {
		return nil
	}
	return lawErrorf(lawCut, "scope from source offset %d, but the generation before was cut off at %d", p.ScopeStart, cut.offset)
}

// admit checks a pair that is to be opened, gives it a generation, and adds it.
func (o *openings) admit(p *Pair) error {
	if fault := pairFault(p); fault != "" {
		return lawErrorf(lawOpening, "%s", fault)
	}
	if p.ID != 0 || p.Closed != nil || p.Producer.Appended != 0 {
		return lawErrorf(lawOpening, "has id %d, is closed, or its producer starts at record %d", p.ID, p.Producer.Appended)
	}
	source, target := partition{p.SourceTopic, p.Partition}, partition{p.TargetTopic, p.Partition}
	if o.sources[source] || o.targets[target] {
		return ErrPairOpen
	}
	last := o.generations[source]
	if p.Generation == 0 {
		p.Generation = last + 1
	}
	if p.Generation <= last {
		return lawErrorf(lawGeneration, "generation %d, the last one is %d", p.Generation, last)
	}
	if err := o.cutFault(p); err != nil {
		return err
	}
	o.add(p)
	return nil
}

// pairFault returns what is wrong with an opening by itself; "" if nothing.
func pairFault(p *Pair) string {
	for _, name := range []string{p.SourceTopic, p.TargetTopic} {
		if name == "" || len(name) > maxText || !utf8.ValidString(name) {
			return fmt.Sprintf("topic name %q", name)
		}
	}
	switch {
	case p.Partition < 0 || p.Generation < 0:
		return fmt.Sprintf("partition %d, generation %d", p.Partition, p.Generation)
	case p.ScopeStart < 0 || p.TargetBase < 0:
		return fmt.Sprintf("scope from source offset %d, books from target offset %d", p.ScopeStart, p.TargetBase)
	}
	return producerFault(nil, p.Producer)
}

// openPair returns a pair with its before_start tile queued.
func openPair(info Pair, previous PairID) *pair {
	p := newPair(&pairRecord{Pair: info, producers: []Producer{info.Producer}})
	p.previous = previous
	if info.ScopeStart > 0 {
		p.end.source, p.scopeEnd = info.ScopeStart, info.ScopeStart
		p.queue = []Entry{{
			Tile:        BeforeStart,
			Source:      Range{0, info.ScopeStart},
			Target:      Range{info.TargetBase, info.TargetBase},
			LeaderEpoch: -1,
		}}
	}
	return p
}

// ClosePair ends a pair's generation where its books end. What is queued of the
// pair, and of all others, is committed with it; entries that are appended
// meanwhile are refused. A closed pair is never opened again and takes nothing
// more; its entries stay readable.
//
// With the pair ends, in the same transaction, what was said of it alone: the
// stop of its partition, and of the partition's own order what accepts a change
// and what is to be skipped, as its offsets are the pair's. That the partition is
// paused, or goes on beside foreign records, holds for a next pair as well.
//
// Errors are those of [Ledger.Append] and [Ledger.Commit]. A reason has at most
// 1024 bytes. A cut must lie inside the books, and where the same records are
// below both of its offsets.
func (l *Ledger) ClosePair(id PairID, closing Closing) error {
	l.commitMu.Lock()
	defer l.commitMu.Unlock()
	t, err := l.closable(id, closing)
	if err != nil {
		return err
	}
	return l.commit(t)
}

// closable returns the task of closing a pair. The caller holds l.commitMu.
func (l *Ledger) closable(id PairID, closing Closing) (t task, err error) {
	if len(closing.Reason) > maxText || !utf8.ValidString(closing.Reason) {
		return t, lawErrorf(lawClosing, "reason has more than %d bytes or is not UTF-8", maxText)
	}
	t.closing = closing.clone()
	l.mu.RLock()
	t.close, err = l.writable(id)
	l.mu.RUnlock()
	if err != nil {
		return t, err
	}
	t.settles(l, t.close)
	if err := l.cutFault(t.close, t.closing.Cut); err != nil {
		return t, err
	}
	t.cutBad, err = l.badBeyond(t.close, t.closing.Cut, t.close.accepted)
	return t, err
}

// Reopen closes a pair where its books end and opens the next generation of the
// same source partition, in one durable transaction together with everything
// that is queued: no crash leaves the one without the other. It returns the id
// of the new pair, whose target partition may be another one.
//
// Of both generations all holds that [Ledger.ClosePair] and [Ledger.OpenPairs]
// say: entries of the old one that are appended meanwhile are refused, and next
// is a whole pair without an id, in which nothing is taken over from the old
// one; after a cut, its scope must start there or below if the source topic is
// the same. After an error the old pair is open, with all that was queued, and
// there is no new one.
//
// The error is ErrPairClosed for a pair that is closed already, ErrPairOpen if
// the target partition has an open pair beside the one that is closed, an
// [*LawError] for what cannot be, as a next pair of another source partition;
// others are those of [Ledger.Append] and [Ledger.Commit].
func (l *Ledger) Reopen(id PairID, closing Closing, next Pair) (PairID, error) {
	l.commitMu.Lock()
	defer l.commitMu.Unlock()
	t, err := l.closable(id, closing)
	if err != nil {
		return 0, err
	}
	p := t.close
	if next.SourceTopic != p.SourceTopic || next.Partition != p.Partition {
		return 0, lawErrorf(lawOpening, "%s-%d is no generation of %s-%d", next.SourceTopic, next.Partition, p.SourceTopic, p.Partition)
	}
	known, number := l.openings()
	known.drop(&p.Pair, &t.closing)
	if err := known.admit(&next); err != nil {
		return 0, fmt.Errorf("ledger: open %s-%d to %s-%d: %w", next.SourceTopic, next.Partition, next.TargetTopic, next.Partition, err)
	}
	next.ID = number
	t.open = []*pair{openPair(next, id)}
	if err := l.commit(t); err != nil {
		return 0, err
	}
	return next.ID, nil
}

// SetScope says which topics the flow is started with. It is durable, together
// with everything that is queued, when it returns; it does nothing where the
// ledger says so already. Errors are those of [Ledger.Commit].
func (l *Ledger) SetScope(s Scope) error {
	for _, p := range slices.Concat(s.Topics, s.TopicsExclude) {
		if len(p) > maxPattern || !utf8.ValidString(p) {
			return lawErrorf(lawEncoding, "pattern %.40q has more than %d bytes or is not UTF-8", p, maxPattern)
		}
	}
	l.commitMu.Lock()
	defer l.commitMu.Unlock()
	if s.equal(l.Scope()) {
		return nil
	}
	s = s.clone()
	return l.commit(task{scope: &s})
}
