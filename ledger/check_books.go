package ledger

import (
	"bytes"
	"cmp"
	"errors"
)

// openings checks each opening by itself, and then against the others in the
// order in which they were made: ids ascend.
func (c *checker) openings() error {
	known := newOpenings()
	count, err := c.values(bucketPairs, func(key, payload []byte) error {
		id, ok := parsePairKey(key)
		if !ok {
			return unknownKey(bucketPairs, key)
		}
		r, err := decodePair(id, payload)
		if err != nil {
			return err
		}
		c.pairs[id] = &checkedPair{pairRecord: *r, end: place{target: r.TargetBase}}
		return c.opening(known, r)
	})
	c.count(bucketPairs, count, c.commit.pairs)
	return err
}

func (c *checker) opening(known *openings, r *pairRecord) error {
	source, target := partition{r.SourceTopic, r.Partition}, partition{r.TargetTopic, r.Partition}
	fault := pairFault(&r.Pair)
	switch {
	case fault != "":
		return lawErrorf(lawOpening, "%s", fault)
	case r.Closed == nil && (known.sources[source] || known.targets[target]):
		return lawErrorf(lawOpening, "source or target partition of %s-%d to %s-%d has another open pair",
			r.SourceTopic, r.Partition, r.TargetTopic, r.Partition)
	case known.sources[source]:
		return lawErrorf(lawOpening, "%s-%d was opened again while it was open", r.SourceTopic, r.Partition)
	case r.Generation <= known.generations[source]:
		return lawErrorf(lawGeneration, "%s-%d: generation %d follows %d", r.SourceTopic, r.Partition,
			r.Generation, known.generations[source])
	}
	if err := known.cutFault(&r.Pair); err != nil {
		return err
	}
	if err := r.formatFault(c.format); err != nil {
		return err
	}
	known.add(&r.Pair)
	for i := range r.producers {
		if fault := producerFault(r.producers[:i], r.producers[i]); fault != "" {
			return lawErrorf(lawProducers, "%s", fault)
		}
	}
	if r.producers[0].Appended != 0 {
		return lawErrorf(lawProducers, "the first producer starts at record %d", r.producers[0].Appended)
	}
	return nil
}

func (c *checker) count(bucket string, got, want int) {
	if got != want {
		c.violation(bucket, "bucket", lawKeys, "has %d values, the last commit left %d", got, want)
	}
}

func (c *checker) states() error {
	_, err := c.values(bucketState, func(key, payload []byte) error {
		id, ok := parsePairKey(key)
		if !ok {
			return unknownKey(bucketState, key)
		}
		p, ok := c.pairs[id]
		if !ok {
			return unknownPair(bucketState, key, id)
		}
		s, err := decodeStateRecord(payload)
		if err != nil {
			return err
		}
		p.state, p.hasState = s, true
		if err := s.formatFault(c.format); err != nil {
			return err
		}
		if s.folded > c.commit.number {
			return lawErrorf(lawJournal, "was folded by commit %d of %d", s.folded, c.commit.number)
		}
		return checkState(&s.State)
	})
	for id, p := range c.inOrder() {
		if !p.hasState {
			c.violation(bucketState, keyText(bucketState, pairKey(id)), lawKeys, "is missing or cannot be read")
		}
	}
	return err
}

func checkState(s *State) error {
	if fault := stateFault(s); fault != "" {
		return lawErrorf(lawState, "%s", fault)
	}
	return nil
}

// pages checks that the pages of each pair are one list, from the start of its
// books, and that each page says what those before it sum up to.
func (c *checker) pages() error {
	_, err := c.values(bucketPages, func(key, payload []byte) error {
		id, source, target, ok := parsePlaceKey(key)
		if !ok {
			return unknownKey(bucketPages, key)
		}
		p, ok := c.pairs[id]
		if !ok {
			return unknownPair(bucketPages, key, id)
		}
		page, before, err := parsePage(place{source, target}, payload)
		if err != nil {
			return err
		}
		entries, err := page.entries()
		if err != nil {
			return err
		}
		c.page(p, key, page.start, before)
		// Go on from what the page says: a fault is reported once.
		p.totals = before
		for i := range entries {
			c.entry(p, bucketPages, key, &entries[i])
		}
		return nil
	})
	return err
}

// page checks where a page stands, and that it is in the index.
func (c *checker) page(p *checkedPair, key []byte, start place, before Totals) {
	if p.unread {
		p.unread, p.end, p.totals = false, start, before
	}
	if start != p.end {
		c.violation(bucketPages, keyText(bucketPages, key), lawTiling,
			"the page before ends at source %d, target %d", p.end.source, p.end.target)
	}
	if before != p.totals {
		c.violation(bucketPages, keyText(bucketPages, key), lawTotals,
			"says that %v are before it; there are %v", before, p.totals)
	}
	_, err := c.tree.get(bucketTargets, targetKey(p.ID, start))
	var damage *CorruptError
	if errors.As(err, &damage) && damage.Law == lawKeys {
		c.violation(bucketTargets, damage.Key, lawIndex, "is missing")
	}
}

// entry checks that before_start tiles, and they alone, come before the start
// of the scope, and counts the entry.
func (c *checker) entry(p *checkedPair, bucket string, key []byte, e *Entry) {
	switch {
	case e.Tile == BeforeStart && e.Source.Start != p.totals.Tiles[BeforeStart]:
		c.violation(bucket, keyText(bucket, key), lawBeforeStart,
			"before_start at source %v; the scope starts at %d", e.Source, p.totals.Tiles[BeforeStart])
	case e.Tile != BeforeStart && e.Tile.AdvancesSource() && e.Source.Start < p.ScopeStart:
		c.violation(bucket, keyText(bucket, key), lawBeforeStart,
			"%s at source %v, before the start of the scope at %d", e.Tile, e.Source, p.ScopeStart)
	}
	if err := p.marked.entry(e, p.cut()); err != nil {
		_ = c.reported(bucket, key, err)
	}
	p.totals.add(e)
	p.end = e.end()
}

// folded checks that the pages end where the states say: a page that is lost
// at the end would leave a shorter list, and no hole.
func (c *checker) folded() error {
	for id, p := range c.inOrder() {
		if p.hasState && !p.unread && p.end != p.state.end {
			c.violation(bucketPages, keyText(bucketPairs, pairKey(id)), lawTiling,
				"the pages end at source %d, target %d; the state says at %d and %d",
				p.end.source, p.end.target, p.state.end.source, p.state.end.target)
		}
	}
	return nil
}

// targets checks that the index by target offset has no element too many: that
// it has one for every page is checked with the pages.
func (c *checker) targets() error {
	_, err := c.values(bucketTargets, func(key, payload []byte) error {
		id, target, source, ok := parsePlaceKey(key)
		if !ok {
			return unknownKey(bucketTargets, key)
		}
		if _, ok := c.pairs[id]; !ok {
			return unknownPair(bucketTargets, key, id)
		}
		if len(payload) > 0 {
			return lawErrorf(lawEncoding, "has %d bytes", len(payload))
		}
		wanted := pageKey(id, place{source, target})
		e, err := c.tree.floor(c.tree.buckets[bucketPages], wanted)
		if err == nil && !bytes.Equal(e.key, wanted) {
			err = lawErrorf(lawIndex, "there is no such page")
		}
		return err
	})
	return err
}

// journal checks that each pair's sections that are not folded continue its
// pages, and that those which are folded lie before their end.
func (c *checker) journal() error {
	count, err := c.values(bucketJournal, func(key, payload []byte) error {
		number, ok := parseJournalKey(key)
		if !ok {
			return unknownKey(bucketJournal, key)
		}
		if number > c.commit.number || number == 0 {
			return lawErrorf(lawJournal, "the last commit is %d", c.commit.number)
		}
		sections, err := decodeJournal(payload)
		if err != nil {
			return err
		}
		for i := range sections {
			if err := c.section(key, number, &sections[i]); err != nil {
				return err
			}
		}
		return nil
	})
	c.count(bucketJournal, count, c.commit.journal)
	return err
}

func (c *checker) section(key []byte, number uint64, s *section) error {
	p, ok := c.pairs[s.id]
	if !ok {
		return unknownPair(bucketJournal, key, s.id)
	}
	if s.state != nil {
		if err := cmp.Or(checkState(s.state), s.state.formatFault(c.format)); err != nil {
			return err
		}
	}
	if number <= p.state.folded {
		return s.checkFolded(p.state.folded, p.state.end)
	}
	if err := s.checkStart(p.end); err != nil && !p.unread {
		return err
	}
	for i := range s.entries {
		c.entry(p, bucketJournal, key, &s.entries[i])
	}
	return nil
}

// ends checks where the pairs' books end, when all of their entries are known.
func (c *checker) ends() error {
	for _, p := range c.inOrder() {
		if p.unread {
			continue
		}
		key := keyText(bucketPairs, pairKey(p.ID))
		if p.Closed != nil && p.end != p.closedAt {
			c.violation(bucketPairs, key, lawClosing, "was closed at source %d, target %d; the books end at %d and %d",
				p.closedAt.source, p.closedAt.target, p.end.source, p.end.target)
		}
		if last := p.producers[len(p.producers)-1]; last.Appended > p.totals.appended() {
			c.violation(bucketPairs, key, lawProducers, "a producer starts at record %d; the books have %d",
				last.Appended, p.totals.appended())
		}
		if p.totals.Tiles[BeforeStart] < p.ScopeStart {
			c.violation(bucketPairs, key, lawBeforeStart, "the scope starts at %d, before_start ends at %d",
				p.ScopeStart, p.totals.Tiles[BeforeStart])
		}
		c.checkMarks(p)
	}
	return nil
}

// flow checks the values of the books beside the pairs, each by itself, and
// that none is missing.
func (c *checker) flow() error {
	if c.format < formatFlow {
		return nil
	}
	wanted := c.books.byBucket()
	v := &flowVisitor{format: c.format, seen: func(*SeenTopic) {}, order: func(*Order) {}, stop: func(*Stop) {}, made: func(_, _ []byte) {}}
	for _, bucket := range flowBuckets() {
		count, err := c.values(bucket, func(key, payload []byte) error { return v.value(bucket, key, payload) })
		if err != nil {
			return err
		}
		c.count(bucket, count, wanted[bucket])
	}
	return nil
}
