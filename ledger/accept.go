package ledger

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"math"
	"slices"
)

// An Acceptance says that a person knows of bad tiles, or of doubts, and accepts
// them. It takes nothing back: what is lost stays lost, and is told of as such.
type Acceptance struct {
	Range    Range  // source offsets
	Reason   string // 1 to 1024 bytes of UTF-8
	By       string // who accepts; at most 1024 bytes of UTF-8
	AtMillis int64  // Unix time in milliseconds; 0 = the ledger's clock
}

// An acceptance is one as the ledger keeps it.
type acceptance struct {
	Acceptance
	bad int64 // offsets of it in bad tiles
}

// An acceptChange is what a commit does to the acceptances of a pair.
type acceptChange struct {
	pair   *pair
	list   []acceptance
	cutBad int64 // of the pair, with these
}

// Accept keeps an acceptance, durably, together with everything that is queued.
// It takes the place of earlier ones over the same offsets; what these say of
// others stays. The pair may be closed.
//
// The error is an [*LawError] unless each offset of the range lies in a bad tile
// of the pair, below the cut if it was closed with one, or in a standing doubt, and
// there is a reason; ErrNotFound for an unknown pair; others are those of
// [Ledger.Commit] and [Ledger.FindSource], ErrReadOnly and ErrClosed.
func (l *Ledger) Accept(id PairID, a Acceptance) error {
	if a.AtMillis == 0 {
		a.AtMillis = l.now().UnixMilli()
	}
	if fault := a.fault(); fault != "" {
		return lawErrorf(lawAccepted, "%s", fault)
	}
	l.commitMu.Lock()
	defer l.commitMu.Unlock()
	// What is queued can be accepted as well as what is in the file.
	if err := l.commit(task{}); err != nil {
		return err
	}
	p, err := l.known(id)
	if err != nil {
		return err
	}
	list, err := l.accepting(p, &a)
	if err != nil || slices.Equal(list, p.accepted) {
		return err
	}
	cutBad, err := l.badBeyond(p, p.cut(), list)
	if err != nil {
		return err
	}
	return l.commit(task{accept: &acceptChange{p, list, cutBad}})
}

// known returns a pair, open or closed, to which something may be added.
func (l *Ledger) known(id PairID) (*pair, error) {
	l.mu.RLock()
	defer l.mu.RUnlock()
	if err := l.usable(); err != nil {
		return nil, err
	}
	if p, ok := l.pairs[id]; ok {
		return p, nil
	}
	return nil, fmt.Errorf("ledger: pair %d: %w", id, ErrNotFound)
}

// accepting returns the acceptances of a pair with one more. The caller holds
// l.commitMu, so that the committed books stay as they are.
func (l *Ledger) accepting(p *pair, a *Acceptance) ([]acceptance, error) {
	bad, err := l.badTiles(p, a.Range)
	if err != nil {
		return nil, err
	}
	if err := l.covers(p, a.Range, bad); err != nil {
		return nil, err
	}
	list := []acceptance{{*a, overlap(a.Range, bad)}}
	for _, old := range p.accepted {
		for _, r := range without(old.Range, a.Range) {
			piece := acceptance{old.Acceptance, old.bad}
			if r != old.Range {
				piece.Range = r
				if bad, err = l.badTiles(p, r); err != nil {
					return nil, err
				}
				piece.bad = overlap(r, bad)
			}
			list = append(list, piece)
		}
	}
	slices.SortFunc(list, func(a, b acceptance) int { return cmp.Compare(a.Range.Start, b.Range.Start) })
	return list, nil
}

// badTiles returns where committed bad tiles overlap a range.
func (l *Ledger) badTiles(p *pair, in Range) (bad []Range, err error) {
	for e, err := range l.Entries(p.ID, in.Start) {
		if err != nil {
			return nil, err
		}
		if e.Source.Start >= in.End {
			break
		}
		if e.Tile.Bad() {
			bad = append(bad, Range{max(e.Source.Start, in.Start), min(e.Source.End, in.End)})
		}
	}
	return bad, nil
}

// covers returns an error unless each offset of a range is in a bad tile below the
// cut, if there is one, or in a standing doubt.
func (l *Ledger) covers(p *pair, r Range, bad []Range) error {
	var coverage []Range
	cut := p.cut()
	for _, tile := range bad {
		if cut != nil {
			tile.End = min(tile.End, cut.Source)
		}
		coverage = append(coverage, tile)
	}
	for _, d := range l.StandingDoubts(p.ID) {
		coverage = append(coverage, d.Range)
	}
	first := uncovered(r, coverage)
	switch {
	case first < 0:
		return nil
	case cut != nil && first >= cut.Source:
		return lawErrorf(lawAccepted, "accepts source offset %d, but the books hold no more from %d on", first, cut.Source)
	default:
		return lawErrorf(lawAccepted, "source offset %d is neither in a bad tile nor in doubt", first)
	}
}

// uncovered returns the first offset of r that is in none of the ranges; -1 if
// there is none.
func uncovered(r Range, ranges []Range) int64 {
	sorted := slices.SortedFunc(slices.Values(ranges), func(a, b Range) int { return cmp.Compare(a.Start, b.Start) })
	next := r.Start
	for _, c := range sorted {
		if c.Contains(next) {
			next = c.End
		}
	}
	if next < r.End {
		return next
	}
	return -1
}

// overlap returns how many offsets of r are in the ranges, which are disjoint.
func overlap(r Range, ranges []Range) (n int64) {
	for _, c := range ranges {
		n += max(0, min(r.End, c.End)-max(r.Start, c.Start))
	}
	return n
}

// without returns what is left of r outside taken.
func without(r, taken Range) (rest []Range) {
	for _, part := range []Range{{r.Start, min(r.End, taken.Start)}, {max(r.Start, taken.End), r.End}} {
		if !part.Empty() {
			rest = append(rest, part)
		}
	}
	return rest
}

// Acceptances returns the acceptances of a pair, in order of their ranges, of
// which no two overlap; none for an unknown pair.
func (l *Ledger) Acceptances(id PairID) []Acceptance {
	l.mu.RLock()
	defer l.mu.RUnlock()
	p, ok := l.pairs[id]
	if !ok {
		return nil
	}
	list := make([]Acceptance, 0, len(p.accepted))
	for _, a := range p.accepted {
		list = append(list, a.Acceptance)
	}
	return list
}

// Unaccepted returns how many source offsets of a pair's committed books are in
// bad tiles, lost or unexplained, that nobody has accepted; those from the cut on
// of a pair that was closed with one belong to no count. It is 0 for an unknown
// pair, and costs no more than a look at memory.
func (l *Ledger) Unaccepted(id PairID) int64 {
	l.mu.RLock()
	defer l.mu.RUnlock()
	p, ok := l.pairs[id]
	if !ok {
		return 0
	}
	return p.tail().after.bad() - p.acceptedBad - p.cutBad
}

// Accepted returns how many source offsets of a pair are in bad tiles that
// somebody has accepted; 0 for an unknown pair.
func (l *Ledger) Accepted(id PairID) int64 {
	l.mu.RLock()
	defer l.mu.RUnlock()
	if p, ok := l.pairs[id]; ok {
		return p.acceptedBad
	}
	return 0
}

// bad returns how many offsets are in bad tiles.
func (t *Totals) bad() (n int64) {
	for tile, count := range t.Tiles {
		if Tile(tile).Bad() {
			n += count
		}
	}
	return n
}

// setAccepted makes the list, which is never changed, that of the pair. The
// caller holds l.mu and l.commitMu, or is the only one who knows the pair.
func (p *pair) setAccepted(list []acceptance) {
	p.accepted, p.acceptedBad = list, 0
	for _, a := range list {
		p.acceptedBad += a.bad
	}
}

// fault returns what is wrong with an acceptance by itself; "" if nothing.
func (a *Acceptance) fault() string {
	switch {
	case !a.Range.valid() || a.Range.Empty():
		return fmt.Sprintf("accepts source offsets %v", a.Range)
	case a.Reason == "":
		return "accepts without a reason"
	}
	return cmp.Or(textFault("reason", a.Reason), textFault("by", a.By), timeFault(a.AtMillis))
}

// acceptedKey is the key of an acceptance: the pair and where it starts.
func acceptedKey(id PairID, start int64) []byte {
	return binary.BigEndian.AppendUint64(pairKey(id), uint64(start))
}

// parseAcceptedKey is the inverse of acceptedKey.
func parseAcceptedKey(key []byte) (id PairID, start int64, ok bool) {
	if len(key) != 12 {
		return 0, 0, false
	}
	id, ok = parsePairKey(key[:4])
	n := binary.BigEndian.Uint64(key[4:])
	return id, int64(n), ok && n <= math.MaxInt64
}

func acceptedValue(key []byte, a *acceptance) []byte {
	b := binary.AppendUvarint(newValue(64), 0) // flags
	b = binary.AppendUvarint(b, uint64(a.Range.Len()))
	b = binary.AppendUvarint(b, uint64(a.bad))
	b = appendText(b, a.Reason)
	b = appendText(b, a.By)
	b = binary.AppendVarint(b, a.AtMillis)
	return seal(bucketAccepted, key, b)
}

// decodeAccepted is the inverse of acceptedKey and acceptedValue.
func decodeAccepted(key, payload []byte) (id PairID, a acceptance, err error) {
	id, start, ok := parseAcceptedKey(key)
	if !ok {
		return 0, a, unknownKey(bucketAccepted, key)
	}
	r := wireReader{b: payload}
	r.flags(0)
	a.Range = Range{start, start + int64(r.below(uint64(math.MaxInt64-start)))}
	a.bad = r.count()
	a.Reason, a.By, a.AtMillis = r.text(maxText), r.text(maxText), r.varint()
	if err := r.end("acceptance"); err != nil {
		return 0, a, err
	}
	fault := a.fault()
	if fault == "" && a.bad > a.Range.Len() {
		fault = fmt.Sprintf("%d of %v are bad", a.bad, a.Range)
	}
	if fault != "" {
		return 0, a, lawErrorf(lawAccepted, "%s", fault)
	}
	return id, a, nil
}
