package ledger

import (
	"encoding/binary"
	"math"
	"slices"
)

const (
	// pageLimit bounds the value of a page of several entries: three of them,
	// with key and element header, fill a bbolt page of 4096 bytes to 4080 of
	// the 4080 that its header leaves.
	pageLimit = (fileBlock-fileHeader)/3 - elementHeader - pageKeySize

	// pageEntries bounds the entries of a page, and so the work of finding
	// one in it.
	pageEntries = 128
)

// A page is a run of consecutive entries of one pair in their encoded form,
// with the totals of everything before and after them.
//
// A page that others can see never changes: the committer extends a copy. Both
// may share the memory of the entries, which is only ever appended to, and by
// the one committer alone.
type page struct {
	start, end place
	head       []byte // encoded flags and totals of what is before the page
	after      Totals
	count      int
	body       []byte // encoded entries
	next       basis  // for the entry to come

	leaf *leafBlock // whose memory the page lies in; nil if it has its own

	// saved is how many of the entries are in the bucket pages; the file holds
	// the rest in journal values.
	saved int
}

// newPage returns the page without entries that stands at the place start,
// behind entries that sum up to before.
func newPage(start place, before Totals) *page {
	head := binary.AppendUvarint(make([]byte, 0, 64), 0) // flags
	return &page{start: start, end: start, head: appendTotals(head, &before), after: before, next: newBasis(0)}
}

// size returns the bytes of p's value with the given entries, at most.
func (p *page) size(body []byte) int {
	const count = 2 // bytes of a number up to pageEntries
	return checksumSize + len(p.head) + count + len(body)
}

// push puts e behind the last entry of p, and reports false if p is full. The
// entry must be valid and start at p.end.
func (p *page) push(e *Entry) bool {
	next := p.next
	body := appendEntry(p.body, e, &next)
	if p.count >= pageEntries || p.count > 0 && p.size(body) > pageLimit {
		return false
	}
	p.body, p.next = body, next
	p.count++
	p.end = e.end()
	p.after.add(e)
	return true
}

// appendPages returns pages, of which there is one at least, with the entries
// behind the last one. It changes neither the pages nor their slice.
func appendPages(pages []*page, entries []Entry) []*page {
	out := append(make([]*page, 0, len(pages)+1), pages...)
	last := *out[len(out)-1]
	tail := &last
	for i := range entries {
		if tail.push(&entries[i]) {
			continue
		}
		out[len(out)-1] = tail
		tail = newPage(tail.end, tail.after)
		if !tail.push(&entries[i]) {
			panic("ledger: an entry does not fit into an empty page")
		}
		out = append(out, tail)
	}
	out[len(out)-1] = tail
	return out
}

// pageKey is the key of a page in the bucket pages: pair, source, target, so
// that the order of keys is the order of the list.
func pageKey(id PairID, at place) []byte {
	return placeKey(id, at.source, at.target)
}

// targetKey is the key of a page in the bucket targets: pair, target, source.
func targetKey(id PairID, at place) []byte {
	return placeKey(id, at.target, at.source)
}

const pageKeySize = 20

func placeKey(id PairID, first, second int64) []byte {
	b := make([]byte, 0, pageKeySize)
	b = binary.BigEndian.AppendUint32(b, uint32(id))
	b = binary.BigEndian.AppendUint64(b, uint64(first))
	return binary.BigEndian.AppendUint64(b, uint64(second))
}

// parsePlaceKey is the inverse of placeKey.
func parsePlaceKey(key []byte) (id PairID, first, second int64, ok bool) {
	if len(key) != pageKeySize {
		return 0, 0, 0, false
	}
	id = PairID(binary.BigEndian.Uint32(key))
	a, b := binary.BigEndian.Uint64(key[4:]), binary.BigEndian.Uint64(key[12:])
	return id, int64(a), int64(b), a <= math.MaxInt64 && b <= math.MaxInt64
}

// value returns p as the bucket pages stores it under key.
func (p *page) value(key []byte) []byte {
	b := append(newValue(p.size(p.body)), p.head...)
	b = binary.AppendUvarint(b, uint64(p.count))
	return seal(bucketPages, key, append(b, p.body...))
}

// parsePage is the inverse of [page.value] as far as the head goes: it returns
// the page that starts at the place start, without its end, what it sums up to
// and the basis of its next entry, and the totals of what is before it.
func parsePage(start place, payload []byte) (p *page, before Totals, err error) {
	r := wireReader{b: payload}
	r.flags(0)
	before = decodeTotals(&r)
	head := len(payload) - len(r.b)
	n := r.below(pageEntries)
	if r.bad || n == 0 {
		return nil, Totals{}, lawErrorf(lawEncoding, "page head: cut short, out of range or of a newer version")
	}
	return &page{
		start: start,
		head:  payload[:head:head],
		count: int(n),
		body:  r.b[:len(r.b):len(r.b)],
		saved: int(n),
	}, before, nil
}

// complete sets what parsePage leaves out, and returns the entries.
func (p *page) complete(before Totals) ([]Entry, error) {
	entries, err := p.entries()
	if err != nil {
		return nil, err
	}
	p.after, p.next = before, newBasis(0)
	for i := range entries {
		p.after.add(&entries[i])
		p.next.advance(&entries[i])
	}
	p.end = entries[len(entries)-1].end()
	return entries, nil
}

// A pageReader decodes the entries of a page one after the other.
type pageReader struct {
	wire  wireReader
	at    place
	basis basis
	left  int // entries
}

func (p *page) reader() pageReader {
	return pageReader{wire: wireReader{b: p.body}, at: p.start, basis: newBasis(0), left: p.count}
}

func (r *pageReader) atEnd() bool { return r.left == 0 }

// next decodes the next entry into e, with the memory of e's gaps.
func (r *pageReader) next(e *Entry) error {
	if err := decodeEntry(&r.wire, r.at, &r.basis, e); err != nil {
		return err
	}
	r.at = e.end()
	if r.left--; r.left == 0 && !r.wire.done() {
		return lawErrorf(lawEncoding, "%d bytes behind the last entry", len(r.wire.b))
	}
	return nil
}

// each calls visit with the entries of p until it returns false. The entry is
// the same variable each time, and so is the memory of its gaps.
func (p *page) each(visit func(*Entry) bool) error {
	var e Entry
	r := p.reader()
	for !r.atEnd() {
		if err := r.next(&e); err != nil {
			return err
		}
		if !visit(&e) {
			return nil
		}
	}
	return nil
}

// keptGaps bounds the memory for gaps that is kept for each entry of a page.
const keptGaps = 1 << 10

// entriesFrom returns the entries of p from the first one that ends behind an
// offset of a book, in the memory of into.
func (p *page) entriesFrom(b book, offset int64, into []Entry) ([]Entry, error) {
	into = slices.Grow(into[:0], p.count)
	r := p.reader()
	for !r.atEnd() {
		// Decoded in its place, with the gaps of what was there.
		n := len(into)
		into = into[:n+1]
		e := &into[n]
		if cap(e.Gaps) > keptGaps {
			e.Gaps = nil
		}
		if err := r.next(e); err != nil {
			return into, err
		}
		if n == 0 && b.span(e).End <= offset {
			into = into[:0]
		}
	}
	return into, nil
}

// entries returns the entries of p.
func (p *page) entries() ([]Entry, error) {
	entries := make([]Entry, 0, p.count)
	err := p.each(func(e *Entry) bool {
		entries = append(entries, e.own())
		return true
	})
	return entries, err
}

// own returns e with gaps that share no memory with others.
func (e *Entry) own() Entry {
	c := *e
	c.Gaps = nil
	if len(e.Gaps) > 0 {
		c.Gaps = append(c.Gaps, e.Gaps...)
	}
	return c
}
