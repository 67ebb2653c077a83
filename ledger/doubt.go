package ledger

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"math"
	"slices"
)

// A DoubtKind says what may not hold. The values are stored in ledger files and
// never change.
type DoubtKind uint8

const (
	// StaleKeys: records that a compacted source topic once had are gone, and so
	// may be the tombstones of keys whose values were copied before: the target
	// may hold values of keys that the source holds no more.
	StaleKeys DoubtKind = iota

	numDoubts = int(StaleKeys) + 1
)

// String returns the kind's name in reports: "stale_keys_possible".
func (k DoubtKind) String() string {
	if k == StaleKeys {
		return "stale_keys_possible"
	}
	return fmt.Sprintf("doubt(%d)", uint8(k))
}

// A Doubt is a source range about which the books say something that may not
// hold for the keys of a compacted topic. Each tile in it is true all the same.
type Doubt struct {
	Kind     DoubtKind
	Range    Range // source offsets
	AtMillis int64 // when it came up first, Unix time in milliseconds; 0 = the ledger's clock
}

// SetDoubt notes a doubt. It is durable with the next commit, and with no
// earlier one than what was appended before. One that touches or overlaps others
// of its kind is joined to them, and the earliest time stays.
//
// The error is an [*LawError] for an unknown kind, an empty range, one that
// reaches beyond the end of the source book, and a time that cannot be; others
// are those of [Ledger.Append].
func (l *Ledger) SetDoubt(id PairID, d Doubt) error {
	if d.AtMillis == 0 {
		d.AtMillis = l.now().UnixMilli()
	}
	if fault := d.fault(); fault != "" {
		return lawErrorf(lawDoubts, "%s", fault)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	p, err := l.writable(id)
	if err != nil {
		return err
	}
	if d.Range.End > p.end.source {
		return lawErrorf(lawDoubts, "doubt about %v, the source book ends at %d", d.Range, p.end.source)
	}
	doubts := withDoubt(p.doubts, d)
	if slices.Equal(doubts, p.doubts) {
		return nil
	}
	p.doubts, p.doubted = doubts, true
	l.list(p)
	return nil
}

// withDoubt returns doubts, by kind and offset, with one more.
func withDoubt(doubts []Doubt, d Doubt) []Doubt {
	var all []Doubt
	for _, old := range doubts {
		if old.Kind != d.Kind || old.Range.End < d.Range.Start || old.Range.Start > d.Range.End {
			all = append(all, old)
			continue
		}
		d.Range = Range{min(d.Range.Start, old.Range.Start), max(d.Range.End, old.Range.End)}
		d.AtMillis = min(d.AtMillis, old.AtMillis)
	}
	all = append(all, d)
	slices.SortFunc(all, Doubt.compare)
	return all
}

func (d Doubt) compare(e Doubt) int {
	return cmp.Or(cmp.Compare(d.Kind, e.Kind), cmp.Compare(d.Range.Start, e.Range.Start))
}

// Doubts returns the doubts of a pair, committed or not, by kind and offset; none
// for an unknown pair. No two of a kind touch.
func (l *Ledger) Doubts(id PairID) []Doubt {
	l.mu.RLock()
	defer l.mu.RUnlock()
	if p, ok := l.pairs[id]; ok {
		return slices.Clone(p.doubts)
	}
	return nil
}

// UnacceptedDoubts returns what is left of a pair's standing doubts outside its
// acceptances; none for an unknown pair.
func (l *Ledger) UnacceptedDoubts(id PairID) []Doubt {
	rest := l.StandingDoubts(id)
	for _, a := range l.Acceptances(id) {
		rest = doubtsWithout(rest, a.Range)
	}
	return rest
}

// StandingDoubts returns what is left of a pair's doubts, as [Ledger.Doubts]
// returns them, accepted or not. What the target lost of the pair, as
// [Ledger.CutOff] tells, is in doubt until a later generation of the same source
// topic has read it again, which has doubts of its own: what is gone of a
// compacted topic concerns keys that the target still holds. Where the ledger
// cannot be read every doubt stands.
func (l *Ledger) StandingDoubts(id PairID) []Doubt {
	doubts := l.Doubts(id)
	if len(doubts) == 0 {
		return nil
	}
	cut, err := l.CutOff(id)
	if err != nil || cut == nil {
		return doubts
	}
	for _, again := range l.readAgain(id) {
		doubts = doubtsWithout(doubts, Range{max(again.Start, cut.Source), again.End})
	}
	return doubts
}

// readAgain returns what the committed books of later generations say of the
// source topic of a pair.
func (l *Ledger) readAgain(id PairID) (ranges []Range) {
	l.mu.RLock()
	defer l.mu.RUnlock()
	pair := l.pairs[id]
	for _, p := range l.pairs {
		if p.SourceTopic == pair.SourceTopic && p.Partition == pair.Partition && p.Generation > pair.Generation &&
			p.SourceTopicID == pair.SourceTopicID {
			ranges = append(ranges, Range{p.ScopeStart, p.tail().end.source})
		}
	}
	return ranges
}

func doubtsWithout(doubts []Doubt, taken Range) (rest []Doubt) {
	if taken.Start >= taken.End {
		return doubts
	}
	for _, d := range doubts {
		for _, r := range without(d.Range, taken) {
			rest = append(rest, Doubt{d.Kind, r, d.AtMillis})
		}
	}
	return rest
}

// fault returns what is wrong with a doubt by itself; "" if nothing.
func (d *Doubt) fault() string {
	switch {
	case int(d.Kind) >= numDoubts:
		return fmt.Sprintf("unknown doubt %d", uint8(d.Kind))
	case !d.Range.valid() || d.Range.Empty():
		return fmt.Sprintf("doubt about %v", d.Range)
	}
	return timeFault(d.AtMillis)
}

// doubtKey is the key of a doubt: the pair, the kind, and where it starts.
func doubtKey(id PairID, d *Doubt) []byte {
	return binary.BigEndian.AppendUint64(append(pairKey(id), byte(d.Kind)), uint64(d.Range.Start))
}

// parseDoubtKey is the inverse of doubtKey. The kind may be unknown.
func parseDoubtKey(key []byte) (id PairID, kind DoubtKind, start int64, ok bool) {
	if len(key) != 13 {
		return 0, 0, 0, false
	}
	id, ok = parsePairKey(key[:4])
	n := binary.BigEndian.Uint64(key[5:])
	return id, DoubtKind(key[4]), int64(n), ok && n <= math.MaxInt64
}

func doubtValue(key []byte, d *Doubt) []byte {
	b := binary.AppendUvarint(newValue(24), 0) // flags
	b = binary.AppendUvarint(b, uint64(d.Range.Len()))
	b = binary.AppendVarint(b, d.AtMillis)
	return seal(bucketDoubts, key, b)
}

// decodeDoubt is the inverse of doubtKey and doubtValue.
func decodeDoubt(key, payload []byte) (id PairID, d Doubt, err error) {
	id, kind, start, ok := parseDoubtKey(key)
	if !ok {
		return 0, d, unknownKey(bucketDoubts, key)
	}
	r := wireReader{b: payload}
	r.flags(0)
	d = Doubt{Kind: kind, Range: Range{start, start + int64(r.below(uint64(math.MaxInt64-start)))}}
	d.AtMillis = r.varint()
	if err := r.end("doubt"); err != nil {
		return 0, d, err
	}
	if fault := d.fault(); fault != "" {
		return 0, d, lawErrorf(lawDoubts, "%s", fault)
	}
	return id, d, nil
}
