package ledger

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
)

// get returns the payload of a value. It is an error, a [*CorruptError], if
// the key is not there.
func (t *tree) get(bucket string, key []byte) ([]byte, error) {
	b, ok := t.buckets[bucket]
	if !ok {
		return nil, missingBucket(bucket)
	}
	e, err := t.floor(b, key)
	if err != nil {
		return nil, err
	}
	if !bytes.Equal(e.key, key) {
		return nil, &CorruptError{Bucket: bucket, Key: keyText(bucket, key), Law: lawKeys, Detail: "is missing"}
	}
	return payloadOf(bucket, e)
}

// values calls visit with every value of a bucket in order of keys.
func (t *tree) values(bucket string, visit func(key, payload []byte) error) error {
	return t.walk(t.buckets[bucket], nil, func(e elem) (bool, error) {
		payload, err := payloadOf(bucket, e)
		if err == nil {
			err = visit(e.key, payload)
		}
		return err == nil, err
	})
}

// payloadOf checks an element's checksum.
func payloadOf(bucket string, e elem) ([]byte, error) {
	payload, ok := unseal(bucket, e.key, e.value)
	if !ok {
		return nil, &CorruptError{
			Bucket: bucket, Key: keyText(bucket, e.key), Law: lawChecksum,
			Detail: fmt.Sprintf("the value of %d bytes is not what was written under this key", len(e.value)),
		}
	}
	return payload, nil
}

// keyText returns a key as findings show it.
func keyText(bucket string, key []byte) string {
	switch bucket {
	case bucketMeta:
		return fmt.Sprintf("%q", key)
	case bucketPairs, bucketState:
		if id, ok := parsePairKey(key); ok {
			return fmt.Sprintf("pair %d", id)
		}
	case bucketPages:
		if id, source, target, ok := parsePlaceKey(key); ok {
			return fmt.Sprintf("pair %d source %d target %d", id, source, target)
		}
	case bucketTargets:
		if id, target, source, ok := parsePlaceKey(key); ok {
			return fmt.Sprintf("pair %d target %d source %d", id, target, source)
		}
	case bucketJournal:
		if number, ok := parseJournalKey(key); ok {
			return fmt.Sprintf("commit %d", number)
		}
	case bucketTopics, bucketMade:
		if name, id, ok := parseTopicKey(key); ok && name != "" {
			return fmt.Sprintf("topic %q", name)
		} else if ok {
			return fmt.Sprintf("topic id %v", id)
		}
	case bucketAccepted:
		if id, source, ok := parseAcceptedKey(key); ok {
			return fmt.Sprintf("pair %d source %d", id, source)
		}
	case bucketDoubts:
		if id, kind, source, ok := parseDoubtKey(key); ok {
			return fmt.Sprintf("pair %d %v source %d", id, kind, source)
		}
	case bucketGroups:
		return fmt.Sprintf("group %.300q", key)
	case bucketOrders, bucketStops:
		if p, ok := parsePartitionKey(key); ok {
			return fmt.Sprintf("topic %q partition %d", p.topic, p.partition)
		}
	}
	return fmt.Sprintf("%x", key)
}

// damageIn makes a [*CorruptError] of what is wrong with the value under a key.
// Other errors, those of reading, stay what they are.
func damageIn(bucket string, key []byte, err error) error {
	if err == nil {
		return nil
	}
	var broken *LawError
	if errors.As(err, &broken) {
		return &CorruptError{Bucket: bucket, Key: keyText(bucket, key), Law: broken.Law, Detail: broken.Detail}
	}
	return err
}

// load reads what a Ledger keeps in memory: who it is, the pairs with their
// states, the last page of each, and the journal.
func (l *Ledger) load(t *tree) error {
	steps := []func(*tree) error{l.loadMeta, l.loadPairs, l.loadStates, l.loadPages, l.loadJournal, l.loadFlow, l.loadMarks, l.loadGroups}
	for _, step := range steps {
		if err := step(t); err != nil {
			return err
		}
	}
	return nil
}

func (l *Ledger) loadMeta(t *tree) error {
	got, err := t.format(l.path)
	if err != nil {
		return err
	}
	if err := t.checkBuckets(got); err != nil {
		return err
	}
	err = errors.Join(
		loadKey(t, metaIdentity, decodeIdentity, &l.identity),
		loadKey(t, metaScope, decodeScope, &l.scope),
		loadKey(t, metaCommit, decodeCommit, &l.last),
	)
	l.identity.Format = got
	return err
}

// format returns the format of the file: a [*FormatError] for one that this
// version does not know, of which it knows nothing else.
func (t *tree) format(path string) (int, error) {
	key := []byte(metaFormat)
	payload, err := t.get(bucketMeta, key)
	if err != nil {
		return 0, err
	}
	got, err := decodeFormat(payload)
	if err != nil {
		return 0, damageIn(bucketMeta, key, err)
	}
	if got < oldestFormat || got > format {
		return 0, &FormatError{Path: path, Got: got, Known: format}
	}
	return got, nil
}

// loadKey decodes a value of the bucket meta.
func loadKey[T any](t *tree, key string, decode func([]byte) (T, error), into *T) error {
	payload, err := t.get(bucketMeta, []byte(key))
	if err != nil {
		return err
	}
	*into, err = decode(payload)
	return damageIn(bucketMeta, []byte(key), err)
}

// checkBuckets returns an error unless all buckets of a format are there.
func (t *tree) checkBuckets(format int) error {
	for _, name := range bucketNames(format) {
		if _, ok := t.buckets[name]; !ok {
			return missingBucket(name)
		}
	}
	return nil
}

func missingBucket(name string) error {
	return &CorruptError{Bucket: name, Key: "bucket", Law: lawBuckets, Detail: "is missing"}
}

func (l *Ledger) loadPairs(t *tree) error {
	err := t.values(bucketPairs, func(key, payload []byte) error {
		id, ok := parsePairKey(key)
		if !ok {
			return unknownKey(bucketPairs, key)
		}
		r, err := decodePair(id, payload)
		if err != nil {
			return damageIn(bucketPairs, key, err)
		}
		l.pairs[id] = newPair(r)
		return damageIn(bucketPairs, key, r.formatFault(l.identity.Format))
	})
	if err == nil {
		err = wantValues(bucketPairs, len(l.pairs), l.last.pairs)
	}
	l.linkPairs()
	return err
}

// linkPairs tells each pair which generation came before it: ids ascend.
func (l *Ledger) linkPairs() {
	last := make(map[partition]PairID, len(l.pairs))
	for _, id := range slices.Sorted(maps.Keys(l.pairs)) {
		p := l.pairs[id]
		source := partition{p.SourceTopic, p.Partition}
		p.previous, last[source] = last[source], id
	}
}

// newPair returns a pair without entries.
func newPair(r *pairRecord) *pair {
	start := place{target: r.TargetBase}
	return &pair{
		pairRecord: *r,
		pages:      []*page{newPage(start, Totals{})},
		end:        start,
		foldedEnd:  start,
		state:      unknownState(),
		stored:     unknownState(),
	}
}

func unknownKey(bucket string, key []byte) error {
	return &CorruptError{Bucket: bucket, Key: keyText(bucket, key), Law: lawKeys, Detail: "no such key is ever written"}
}

func unknownPair(bucket string, key []byte, id PairID) error {
	return &CorruptError{
		Bucket: bucket, Key: keyText(bucket, key), Law: lawPair,
		Detail: fmt.Sprintf("there is no pair %d", id),
	}
}

// loadStates asks for a state of every pair: a pair has one from its opening.
func (l *Ledger) loadStates(t *tree) error {
	states := 0
	err := t.values(bucketState, func(key, payload []byte) error {
		id, ok := parsePairKey(key)
		if !ok {
			return unknownKey(bucketState, key)
		}
		p, ok := l.pairs[id]
		if !ok {
			return unknownPair(bucketState, key, id)
		}
		s, err := decodeStateRecord(payload)
		if err != nil {
			return damageIn(bucketState, key, err)
		}
		states++
		p.folded, p.foldedEnd = s.folded, s.end
		p.state, p.stored = s.State, s.State
		return damageIn(bucketState, key, s.formatFault(l.identity.Format))
	})
	if err == nil {
		err = wantValues(bucketState, states, len(l.pairs))
	}
	return err
}

// wantValues returns an error unless a bucket has as many values as it should.
func wantValues(bucket string, got, want int) error {
	if got == want {
		return nil
	}
	return &CorruptError{Bucket: bucket, Key: "bucket", Law: lawKeys, Detail: fmt.Sprintf("has %d values, not %d", got, want)}
}

// loadPages reads the last page of every pair.
func (l *Ledger) loadPages(t *tree) error {
	for id, p := range l.pairs {
		e, err := t.floor(t.buckets[bucketPages], placeKey(id, math.MaxInt64, math.MaxInt64))
		if err != nil {
			return err
		}
		if owner, _, _, ok := parsePlaceKey(e.key); ok && owner == id {
			last, err := lastPageOf(e)
			if err != nil {
				return err
			}
			p.setPages([]*page{last})
		}
		if p.end != p.foldedEnd {
			return foldedElsewhere(p)
		}
	}
	return nil
}

// foldedElsewhere says that the last page of a pair is not the one that the
// pair's state speaks of: without this a lost page would go for a shorter book.
func foldedElsewhere(p *pair) error {
	return &CorruptError{
		Bucket: bucketPages, Key: fmt.Sprintf("pair %d", p.ID), Law: lawTiling,
		Detail: fmt.Sprintf("the pages end at source %d, target %d, not at %d and %d",
			p.end.source, p.end.target, p.foldedEnd.source, p.foldedEnd.target),
	}
}

// pageOf parses the head of an element of the bucket pages.
func pageOf(e elem) (*page, Totals, error) {
	_, source, target, ok := parsePlaceKey(e.key)
	if !ok {
		return nil, Totals{}, unknownKey(bucketPages, e.key)
	}
	payload, err := payloadOf(bucketPages, e)
	if err != nil {
		return nil, Totals{}, err
	}
	p, before, err := parsePage(place{source, target}, payload)
	if err == nil {
		p.leaf = e.leaf
	}
	return p, before, damageIn(bucketPages, e.key, err)
}

// lastPageOf decodes an element of the bucket pages so that entries can follow.
func lastPageOf(e elem) (*page, error) {
	// A copy: the page stays in memory, the leaf that it was read with need not.
	e.key, e.value, e.leaf = bytes.Clone(e.key), bytes.Clone(e.value), nil
	p, before, err := pageOf(e)
	if err != nil {
		return nil, err
	}
	_, err = p.complete(before)
	return p, damageIn(bucketPages, e.key, err)
}

// setPages makes the pages the committed ones of a pair without a queue.
func (p *pair) setPages(pages []*page) {
	p.pages = pages
	p.end = p.tail().end
	p.appended, p.scopeEnd = p.tail().after.appended(), p.tail().after.Tiles[BeforeStart]
}

// loadJournal adds what is not folded yet, in the order in which it was
// committed.
func (l *Ledger) loadJournal(t *tree) error {
	err := t.values(bucketJournal, func(key, payload []byte) error {
		number, ok := parseJournalKey(key)
		if !ok {
			return unknownKey(bucketJournal, key)
		}
		sections, err := decodeJournal(payload)
		if err != nil {
			return damageIn(bucketJournal, key, err)
		}
		l.writer.journal = append(l.writer.journal, number)
		for i := range sections {
			if err := l.loadSection(key, number, &sections[i]); err != nil {
				return err
			}
		}
		return nil
	})
	if err == nil {
		err = wantValues(bucketJournal, len(l.writer.journal), l.last.journal)
	}
	return err
}

func (l *Ledger) loadSection(key []byte, number uint64, s *section) error {
	p, ok := l.pairs[s.id]
	if !ok {
		return unknownPair(bucketJournal, key, s.id)
	}
	if number <= p.folded {
		return damageIn(bucketJournal, key, s.checkFolded(p.folded, p.foldedEnd))
	}
	if err := s.checkStart(p.end); err != nil {
		return damageIn(bucketJournal, key, err)
	}
	p.setPages(appendPages(p.pages, s.entries))
	if s.state != nil {
		if err := s.state.formatFault(l.identity.Format); err != nil {
			return damageIn(bucketJournal, key, err)
		}
		p.state, p.stored = *s.state, *s.state
	}
	if p.unfolded == 0 {
		p.unfolded = number
		l.writer.unfolded = append(l.writer.unfolded, p)
	}
	return nil
}
