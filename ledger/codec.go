package ledger

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"
)

// The first byte of an entry: the tile in the low four bits, and what follows
// in the high four.
const (
	headTile  = 0x0f
	headTime  = 0x10 // the time differs from the entry before
	headEpoch = 0x20 // the leader epoch differs from the copied or other entry before
	headGaps  = 0x40 // a copied entry has gaps
	headMore  = 0x80 // a set of the flags below follows
)

// Flags of an entry that are rare enough to cost a byte. Bits 5 and up are not
// known to this version: FORMAT.md says what they are kept for.
const (
	moreTimestampsReplaced = 1 << iota
	moreCause
	moreReason
	moreOrigin
	moreLastKnown
	moreKnown = 1<<iota - 1
)

// Bits of the first number of a gap, below the distance.
const (
	gapTile  = 0x3 // tile less CommitMarker
	gapLong  = 0x4 // longer than one offset: the length less two follows
	gapShift = 3
)

// A basis is what the encoding of an entry is relative to: the entry before.
// Encoder and decoder hold equal ones. The zero value is not the start of a
// page: see [newBasis].
type basis struct {
	time  int64
	epoch int32
	bytes int64
}

// newBasis returns the context of the first entry of a page or of a journal
// section.
func newBasis(time int64) basis { return basis{time: time, epoch: -1} }

func (c *basis) advance(e *Entry) {
	c.time, c.epoch = e.TimeMillis, e.LeaderEpoch
	if e.Tile == Copied {
		c.bytes = e.Bytes
	}
}

// appendEntry appends the encoding of e, which must be valid, and moves c
// behind it.
func appendEntry(b []byte, e *Entry, c *basis) []byte {
	more := moreFlags(e)
	b = append(b, headOf(e, c, more))
	if more != 0 {
		b = binary.AppendUvarint(b, more)
	}
	if e.TimeMillis != c.time {
		b = binary.AppendVarint(b, e.TimeMillis-c.time)
	}
	if e.LeaderEpoch != c.epoch {
		b = binary.AppendVarint(b, int64(e.LeaderEpoch)-int64(c.epoch))
	}
	b = appendBody(b, e, c)
	b = appendMore(b, e, more)
	c.advance(e)
	return b
}

func headOf(e *Entry, c *basis, more uint64) byte {
	head := byte(e.Tile)
	if e.TimeMillis != c.time {
		head |= headTime
	}
	if e.LeaderEpoch != c.epoch {
		head |= headEpoch
	}
	if len(e.Gaps) > 0 {
		head |= headGaps
	}
	if more != 0 {
		head |= headMore
	}
	return head
}

func moreFlags(e *Entry) (flags uint64) {
	if e.TimestampsReplaced {
		flags |= moreTimestampsReplaced
	}
	if e.Cause != CauseNone {
		flags |= moreCause
	}
	if e.Reason != "" {
		flags |= moreReason
	}
	if e.Origin != (Range{}) {
		flags |= moreOrigin
	}
	if e.LastKnownMillis != 0 {
		flags |= moreLastKnown
	}
	return flags
}

func appendBody(b []byte, e *Entry, c *basis) []byte {
	if e.Tile != Copied {
		return binary.AppendUvarint(b, uint64(e.Source.Len()+e.Target.Len()))
	}
	b = binary.AppendUvarint(b, uint64(e.Target.Len()))
	b = binary.AppendVarint(b, e.Bytes-c.bytes)
	b = binary.BigEndian.AppendUint64(b, uint64(e.Digest))
	if len(e.Gaps) == 0 {
		return b
	}
	b = binary.AppendUvarint(b, uint64(len(e.Gaps)))
	end := e.Source.Start
	for _, g := range e.Gaps {
		b = appendGap(b, g, g.Range.Start-end)
		end = g.Range.End
	}
	return b
}

// appendGap writes a marker that follows less than 16 records in one byte.
func appendGap(b []byte, g Gap, distance int64) []byte {
	v := uint64(distance)<<gapShift | uint64(g.Tile-CommitMarker)
	if g.Range.Len() == 1 {
		return binary.AppendUvarint(b, v)
	}
	b = binary.AppendUvarint(b, v|gapLong)
	return binary.AppendUvarint(b, uint64(g.Range.Len()-2))
}

func appendMore(b []byte, e *Entry, flags uint64) []byte {
	if flags&moreCause != 0 {
		b = append(b, byte(e.Cause))
	}
	if flags&moreReason != 0 {
		b = appendText(b, e.Reason)
	}
	if flags&moreOrigin != 0 {
		b = binary.AppendUvarint(b, uint64(e.Origin.Start))
		b = binary.AppendUvarint(b, uint64(e.Origin.Len()))
	}
	if flags&moreLastKnown != 0 {
		b = binary.AppendVarint(b, e.LastKnownMillis)
	}
	return b
}

// decodeEntry is the inverse of appendEntry for the entry that stands at the
// place at: it reads one entry off r into e, and moves c behind it. It uses the
// memory of e's gaps again. Without an error the entry is valid.
func decodeEntry(r *wireReader, at place, c *basis, e *Entry) error {
	if decodePlain(r, at, c, e) {
		return nil
	}
	return decodeAny(r, at, c, e)
}

// decodeAny is decodeEntry for entries of all forms.
func decodeAny(r *wireReader, at place, c *basis, e *Entry) error {
	head := r.byte()
	*e = Entry{
		Tile:        Tile(head & headTile),
		Source:      Range{at.source, at.source},
		Target:      Range{at.target, at.target},
		Gaps:        e.Gaps[:0],
		TimeMillis:  c.time,
		LeaderEpoch: c.epoch,
	}
	if int(e.Tile) >= NumTiles {
		return lawErrorf(lawTile, "at source %d, target %d: unknown tile %d", at.source, at.target, uint8(e.Tile))
	}
	more := uint64(0)
	if head&headMore != 0 {
		more = r.flags(moreKnown)
	}
	if head&headTime != 0 {
		e.TimeMillis = r.delta(c.time)
	}
	if head&headEpoch != 0 {
		epoch := r.delta(int64(c.epoch))
		e.LeaderEpoch = int32(epoch)
		r.bad = r.bad || int64(e.LeaderEpoch) != epoch
	}
	decodeBody(r, e, c, head&headGaps != 0)
	decodeMore(r, e, more)
	if r.bad {
		return lawErrorf(lawEncoding, "%s at source %d, target %d: cut short, out of range or of a newer version",
			e.Tile, at.source, at.target)
	}
	c.advance(e)
	if err := e.fault(); err != nil {
		return lawErrorf(err.Law, "at source %d, target %d: %s", at.source, at.target, err.Detail)
	}
	return nil
}

// decodePlain decodes an entry as most of them are: copied, without gaps and
// flags, of the time and epoch of the one before. It returns false for any other,
// and for one that breaks a law, and has read nothing then: that it does not look
// at the other laws is because no entry of this form can break them.
func decodePlain(r *wireReader, at place, c *basis, e *Entry) bool {
	if len(r.b) == 0 || r.b[0] != byte(Copied) {
		return false
	}
	b := r.b[1:]
	length, n := binary.Uvarint(b)
	if n <= 0 || at.source < 0 || at.target < 0 || length == 0 || length > uint64(math.MaxInt64-max(at.source, at.target)) {
		return false
	}
	more, m := binary.Varint(b[n:])
	bytes := c.bytes + more
	if m <= 0 || bytes < 0 || c.bytes < 0 || c.epoch < -1 || len(b) < n+m+8 {
		return false
	}
	digest := Digest(binary.BigEndian.Uint64(b[n+m:]))
	if !digest.Valid() {
		return false
	}
	*e = Entry{
		Tile:        Copied,
		Source:      Range{at.source, at.source + int64(length)},
		Target:      Range{at.target, at.target + int64(length)},
		Gaps:        e.Gaps[:0],
		Bytes:       bytes,
		Digest:      digest,
		LeaderEpoch: c.epoch,
		TimeMillis:  c.time,
	}
	r.b = b[n+m+8:]
	c.bytes = bytes
	return true
}

func decodeBody(r *wireReader, e *Entry, c *basis, gaps bool) {
	n := r.count()
	if n > math.MaxInt64-e.Source.Start || n > math.MaxInt64-e.Target.Start {
		r.fail()
		return
	}
	if e.Tile.AdvancesSource() {
		e.Source.End += n
	}
	if e.Tile.AdvancesTarget() {
		e.Target.End += n
	}
	if e.Tile != Copied {
		r.bad = r.bad || gaps
		return
	}
	e.Bytes = r.delta(c.bytes)
	e.Digest = Digest(r.uint64())
	if gaps {
		decodeGaps(r, e)
	}
}

// decodeGaps reads the gaps of e and moves the end of its source range by
// their lengths.
func decodeGaps(r *wireReader, e *Entry) {
	n := r.below(maxEntryGaps)
	if n > uint64(len(r.b)) {
		r.fail() // each gap takes a byte: do not allocate for what cannot be there
		return
	}
	e.Gaps = slices.Grow(e.Gaps, int(n))
	at := e.Source.Start
	for range n {
		v := r.uvarint()
		length := int64(1)
		if v&gapLong != 0 {
			length = int64(r.below(math.MaxInt64-2)) + 2
		}
		distance := int64(v >> gapShift)
		if distance > e.Source.End-at || length > math.MaxInt64-e.Source.End {
			r.fail()
			return
		}
		at += distance + length
		e.Source.End += length
		e.Gaps = append(e.Gaps, Gap{CommitMarker + Tile(v&gapTile), Range{at - length, at}})
	}
}

func decodeMore(r *wireReader, e *Entry, flags uint64) {
	e.TimestampsReplaced = flags&moreTimestampsReplaced != 0
	if flags&moreCause != 0 {
		e.Cause = Cause(r.byte())
	}
	if flags&moreReason != 0 {
		e.Reason = r.text(maxText)
	}
	if flags&moreOrigin != 0 {
		start, length := r.count(), r.count()
		if length > math.MaxInt64-start {
			r.fail()
			return
		}
		e.Origin = Range{start, start + length}
	}
	if flags&moreLastKnown != 0 {
		e.LastKnownMillis = r.varint()
	}
}

// appendTotals writes the numbers that are not zero, led by a set that says
// which those are.
func appendTotals(b []byte, t *Totals) []byte {
	set := uint64(0)
	for i, n := range t.Tiles {
		if n != 0 {
			set |= 1 << i
		}
	}
	b = binary.AppendUvarint(b, set)
	for _, n := range t.Tiles {
		if n != 0 {
			b = binary.AppendUvarint(b, uint64(n))
		}
	}
	b = binary.AppendUvarint(b, uint64(t.Bytes))
	return binary.AppendUvarint(b, uint64(t.Entries))
}

func decodeTotals(r *wireReader) (t Totals) {
	set := r.flags(1<<NumTiles - 1)
	for i := range t.Tiles {
		if set&(1<<i) != 0 {
			t.Tiles[i] = r.count()
		}
	}
	t.Bytes = r.count()
	t.Entries = r.count()
	return t
}

// add counts e.
func (t *Totals) add(e *Entry) {
	t.Entries++
	t.Bytes += e.Bytes
	if e.Tile != Copied {
		t.Tiles[e.Tile] += e.Source.Len() + e.Target.Len()
		return
	}
	t.Tiles[Copied] += e.Target.Len()
	for _, g := range e.Gaps {
		t.Tiles[g.Tile] += g.Range.Len()
	}
}

// String names the totals that are not zero, for findings.
func (t Totals) String() string {
	s := fmt.Sprintf("%d entries, %d bytes", t.Entries, t.Bytes)
	for i, n := range t.Tiles {
		if n != 0 {
			s += fmt.Sprintf(", %d %s", n, Tile(i))
		}
	}
	return s
}
