package ledger

import (
	"encoding/binary"
	"math"
)

// Numbers of the file format. FORMAT.md describes the current one, and what
// was not yet there in the earlier ones.
const (
	// format is the current one: what new files have, and what a file has that
	// something was written to which an earlier format has no room for.
	format = 4

	// oldestFormat is the first one that this version reads, checks and goes on
	// writing.
	oldestFormat = 1

	// formatFlow is the first one with the books beside the pairs.
	formatFlow = 2

	// formatMarks is the first one with acceptances, doubts, cuts, and the time
	// when a pair was last caught up.
	formatMarks = 3

	// formatGroups is the first one with what was committed for groups.
	formatGroups = 4
)

// Keys of the bucket meta. The first one, and how its value is sealed, must
// stay as they are in every format, so that a later one can be named.
const (
	metaFormat   = "format"
	metaIdentity = "identity"
	metaScope    = "scope"
	metaCommit   = "commit"
	metaBooks    = "books"  // from format 2 on
	metaMarks    = "marks"  // from format 3 on
	metaGroups   = "groups" // from format 4 on
)

// metaKeys returns the keys of the bucket meta in a file of a format that this
// version knows.
func metaKeys(format int) []string {
	keys := []string{metaCommit, metaFormat, metaIdentity, metaScope}
	if format >= formatFlow {
		keys = append(keys, metaBooks)
	}
	if format >= formatMarks {
		keys = append(keys, metaMarks)
	}
	if format >= formatGroups {
		keys = append(keys, metaGroups)
	}
	return keys
}

func pairKey(id PairID) []byte { return binary.BigEndian.AppendUint32(nil, uint32(id)) }

// parsePairKey is the inverse of pairKey. There is no pair 0.
func parsePairKey(key []byte) (PairID, bool) {
	if len(key) != 4 {
		return 0, false
	}
	id := PairID(binary.BigEndian.Uint32(key))
	return id, id != 0
}

func formatValue() []byte {
	b := binary.BigEndian.AppendUint16(newValue(2), format)
	return seal(bucketMeta, []byte(metaFormat), b)
}

func decodeFormat(payload []byte) (int, error) {
	if len(payload) != 2 {
		return 0, lawErrorf(lawEncoding, "format number in %d bytes", len(payload))
	}
	return int(binary.BigEndian.Uint16(payload)), nil
}

func identityValue(id *Identity) []byte {
	b := binary.AppendUvarint(newValue(128), 0) // flags
	for _, s := range []string{id.LedgerID, id.SourceAlias, id.TargetAlias, id.SourceClusterID, id.TargetClusterID} {
		b = appendText(b, s)
	}
	b = binary.AppendVarint(b, id.CreatedMillis)
	return seal(bucketMeta, []byte(metaIdentity), b)
}

func decodeIdentity(payload []byte) (Identity, error) {
	r := wireReader{b: payload}
	r.flags(0)
	id := Identity{}
	for _, s := range []*string{&id.LedgerID, &id.SourceAlias, &id.TargetAlias, &id.SourceClusterID, &id.TargetClusterID} {
		*s = r.text(maxText)
	}
	id.CreatedMillis = r.varint()
	return id, r.end("identity")
}

func scopeValue(s *Scope) []byte {
	b := binary.AppendUvarint(newValue(128), 0) // flags
	for _, patterns := range [][]string{s.Topics, s.TopicsExclude} {
		b = binary.AppendUvarint(b, uint64(len(patterns)))
		for _, p := range patterns {
			b = appendText(b, p)
		}
	}
	return seal(bucketMeta, []byte(metaScope), b)
}

func decodeScope(payload []byte) (s Scope, err error) {
	r := wireReader{b: payload}
	r.flags(0)
	for _, patterns := range []*[]string{&s.Topics, &s.TopicsExclude} {
		for range r.below(uint64(len(r.b))) {
			*patterns = append(*patterns, r.text(maxPattern))
		}
	}
	return s, r.end("scope")
}

// A commitRecord says which commit was the last one, and what it left: a value
// that went missing from a damaged bucket is noticed by the count.
type commitRecord struct {
	number  uint64 // of commits so far; the creation is none
	time    int64  // of the last one, Unix time in milliseconds
	pairs   int    // values in the bucket pairs
	journal int    // values in the bucket journal
}

func commitValue(c commitRecord) []byte {
	b := binary.AppendUvarint(newValue(20), c.number)
	b = binary.AppendVarint(b, c.time)
	b = binary.AppendUvarint(b, uint64(c.pairs))
	b = binary.AppendUvarint(b, uint64(c.journal))
	return seal(bucketMeta, []byte(metaCommit), b)
}

func decodeCommit(payload []byte) (commitRecord, error) {
	r := wireReader{b: payload}
	c := commitRecord{number: r.uvarint(), time: r.varint()}
	c.pairs, c.journal = int(r.below(math.MaxInt32)), int(r.below(math.MaxInt32))
	return c, r.end("commit")
}

// A pairRecord is everything about a pair that its entries do not say.
type pairRecord struct {
	Pair
	producers []Producer // in order of Appended; the first one from the opening
	closedAt  place      // ends of the books at the closing, if there is one
	cutBad    int64      // offsets from the cut on in bad tiles that nobody accepted, if there is one
}

// Flags of a pair.
const (
	pairClosed = 1 << iota // the closing follows
	pairCut                // with a cut; from format 3 on
	pairKnown  = 1<<iota - 1
)

func pairValue(key []byte, p *pairRecord) []byte {
	flags := uint64(0)
	if p.Closed != nil {
		flags |= pairClosed
		if p.Closed.Cut != nil {
			flags |= pairCut
		}
	}
	b := binary.AppendUvarint(newValue(160), flags)
	b = appendText(b, p.SourceTopic)
	b = append(b, p.SourceTopicID[:]...)
	b = appendText(b, p.TargetTopic)
	b = append(b, p.TargetTopicID[:]...)
	for _, n := range []int64{int64(p.Partition), int64(p.Generation), p.ScopeStart, p.TargetBase} {
		b = binary.AppendUvarint(b, uint64(n))
	}
	b = binary.AppendVarint(b, p.OpenedMillis)
	b = binary.AppendUvarint(b, uint64(len(p.producers)))
	for _, producer := range p.producers {
		b = appendProducer(b, producer)
	}
	if p.Closed != nil {
		b = appendText(b, p.Closed.Reason)
		b = binary.AppendVarint(b, p.Closed.AtMillis)
		b = binary.AppendUvarint(b, uint64(p.closedAt.source))
		b = binary.AppendUvarint(b, uint64(p.closedAt.target))
	}
	if flags&pairCut != 0 {
		b = binary.AppendUvarint(b, uint64(p.Closed.Cut.Source))
		b = binary.AppendUvarint(b, uint64(p.Closed.Cut.Target))
		b = binary.AppendUvarint(b, uint64(p.cutBad))
	}
	return seal(bucketPairs, key, b)
}

func appendProducer(b []byte, p Producer) []byte {
	b = binary.AppendVarint(b, p.ID)
	b = binary.AppendVarint(b, int64(p.Epoch))
	b = binary.AppendUvarint(b, uint64(p.Sequence))
	return binary.AppendUvarint(b, uint64(p.Appended))
}

func decodePair(id PairID, payload []byte) (*pairRecord, error) {
	r := wireReader{b: payload}
	flags := r.flags(pairKnown)
	p := &pairRecord{Pair: Pair{ID: id}}
	p.SourceTopic = r.text(maxText)
	copy(p.SourceTopicID[:], r.bytes(len(p.SourceTopicID)))
	p.TargetTopic = r.text(maxText)
	copy(p.TargetTopicID[:], r.bytes(len(p.TargetTopicID)))
	p.Partition = int32(r.below(math.MaxInt32))
	p.Generation = int32(r.below(math.MaxInt32))
	p.ScopeStart = r.count()
	p.TargetBase = r.count()
	p.OpenedMillis = r.varint()
	for range r.below(uint64(len(r.b))) {
		p.producers = append(p.producers, decodeProducer(&r))
	}
	if flags&pairClosed != 0 {
		p.Closed = &Closing{Reason: r.text(maxText), AtMillis: r.varint()}
		p.closedAt = place{r.count(), r.count()}
	}
	if flags&pairCut != 0 {
		if p.Closed == nil {
			return p, lawErrorf(lawEncoding, "pair: has a cut and is not closed")
		}
		p.Closed.Cut = &Cut{r.count(), r.count()}
		p.cutBad = r.count()
	}
	if len(p.producers) == 0 {
		r.fail()
	} else {
		p.Producer = p.producers[len(p.producers)-1]
	}
	return p, r.end("pair")
}

func decodeProducer(r *wireReader) Producer {
	p := Producer{ID: r.varint()}
	epoch := r.varint()
	p.Epoch = int16(epoch)
	r.bad = r.bad || int64(p.Epoch) != epoch
	p.Sequence = int32(r.below(math.MaxInt32))
	p.Appended = r.count()
	return p
}

// A stateRecord is what the bucket state holds for a pair: which commit folded
// it last, and what it looked like then.
type stateRecord struct {
	folded uint64 // commit up to which the journal says nothing new; 0 before the first folding
	end    place  // ends of both books in the bucket pages
	State
}

func stateValue(key []byte, s *stateRecord) []byte {
	b := binary.AppendUvarint(newValue(48), 0) // flags
	b = binary.AppendUvarint(b, s.folded)
	b = binary.AppendUvarint(b, uint64(s.end.source))
	b = binary.AppendUvarint(b, uint64(s.end.target))
	b = appendState(b, &s.State, 0)
	return seal(bucketState, key, b)
}

func decodeStateRecord(payload []byte) (stateRecord, error) {
	r := wireReader{b: payload}
	r.flags(0)
	s := stateRecord{folded: r.uvarint(), end: place{r.count(), r.count()}, State: decodeState(&r, 0)}
	return s, r.end("state")
}

// end returns nil if the payload was read to its end and nothing was missing.
func (r *wireReader) end(what string) error {
	if r.done() {
		return nil
	}
	return lawErrorf(lawEncoding, "%s: cut short, too long, out of range or of a newer version", what)
}

// unknownState is the state of a pair of which nothing was seen yet.
func unknownState() State {
	return State{LogStart: -1, LastStable: -1, HighWatermark: -1, SeenMillis: -1, CaughtUpMillis: -1}
}
