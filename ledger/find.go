package ledger

import (
	"bytes"
	"fmt"
	"iter"
	"math"
	"sort"
)

// A book is one of the two views of a pair's list.
type book struct {
	bucket string                     // whose keys are in order of this book's offsets
	key    func(PairID, place) []byte // key of the page that starts at a place
	floor  func(offset int64) place   // the last place with an offset of this book
	offset func(place) int64
}

// span returns the range of an entry in the book. It is no field as the others
// are, for which each entry would have to be on the heap.
func (b *book) span(e *Entry) Range {
	if b.bucket == bucketTargets {
		return e.Target
	}
	return e.Source
}

func sourceBook() book {
	return book{
		bucket: bucketPages,
		key:    pageKey,
		floor:  func(offset int64) place { return place{offset, math.MaxInt64} },
		offset: func(p place) int64 { return p.source },
	}
}

func targetBook() book {
	return book{
		bucket: bucketTargets,
		key:    targetKey,
		floor:  func(offset int64) place { return place{math.MaxInt64, offset} },
		offset: func(p place) int64 { return p.target },
	}
}

// FindSource returns the committed entry whose source range contains offset.
// The error is ErrNotFound for an offset that the book does not reach and for
// an unknown pair, a [*CorruptError] for a damaged file, ErrClosed, or that of
// a failed read.
func (l *Ledger) FindSource(id PairID, offset int64) (Entry, error) {
	return l.find(id, sourceBook(), offset)
}

// FindTarget returns the committed entry whose target range contains offset;
// errors are those of [Ledger.FindSource].
func (l *Ledger) FindTarget(id PairID, offset int64) (Entry, error) {
	return l.find(id, targetBook(), offset)
}

// committed returns the pages of a pair that are in memory, and the start of
// its books.
func (l *Ledger) committed(id PairID) (pages []*page, start place, err error) {
	l.mu.RLock()
	defer l.mu.RUnlock()
	if l.closed {
		return nil, place{}, fmt.Errorf("ledger %s: %w", l.path, ErrClosed)
	}
	p, ok := l.pairs[id]
	if !ok {
		return nil, place{}, fmt.Errorf("ledger: pair %d: %w", id, ErrNotFound)
	}
	return p.pages, place{target: p.TargetBase}, nil
}

func (l *Ledger) find(id PairID, b book, offset int64) (Entry, error) {
	p, err := l.pageWith(id, b, offset)
	if err != nil {
		return Entry{}, err
	}
	defer l.giveBack(p)
	var e Entry
	r := p.reader()
	for !r.atEnd() {
		if err := r.next(&e); err != nil {
			return Entry{}, l.located(damageIn(bucketPages, pageKey(id, p.start), err))
		}
		if b.span(&e).End <= offset {
			continue
		}
		if b.span(&e).Contains(offset) {
			return e.own(), nil
		}
		break
	}
	return Entry{}, l.hole(id, b, offset)
}

// pageWith returns the page in which the entry with an offset of a book must be.
func (l *Ledger) pageWith(id PairID, b book, offset int64) (*page, error) {
	pages, start, err := l.committed(id)
	if err != nil {
		return nil, err
	}
	end := pages[len(pages)-1].end
	if offset < b.offset(start) || offset >= b.offset(end) {
		return nil, fmt.Errorf("ledger: pair %d: offset %d: %w", id, offset, ErrNotFound)
	}
	return l.pageAt(id, pages, b, offset)
}

// ReadSource returns the committed entry whose source range contains offset, and
// those behind it up to the end of the page that the search has read, 128 at
// most: for offsets that ascend this is many times faster than to find each.
//
// The entries lie in the memory of into, as far as it goes, and so do their gaps:
// what was in it before is gone. Errors are those of [Ledger.FindSource]; the
// memory is returned with them.
func (l *Ledger) ReadSource(id PairID, offset int64, into []Entry) ([]Entry, error) {
	return l.readFrom(id, sourceBook(), offset, into[:0])
}

// ReadTarget is [Ledger.ReadSource] for the entry whose target range contains
// offset.
func (l *Ledger) ReadTarget(id PairID, offset int64, into []Entry) ([]Entry, error) {
	return l.readFrom(id, targetBook(), offset, into[:0])
}

func (l *Ledger) readFrom(id PairID, b book, offset int64, into []Entry) ([]Entry, error) {
	p, err := l.pageWith(id, b, offset)
	if err != nil {
		return into, err
	}
	defer l.giveBack(p)
	into, err = p.entriesFrom(b, offset, into)
	if err != nil {
		return into[:0], l.located(damageIn(bucketPages, pageKey(id, p.start), err))
	}
	if len(into) == 0 || !b.span(&into[0]).Contains(offset) {
		return into[:0], l.hole(id, b, offset)
	}
	return into, nil
}

// giveBack gives back the memory of a page that was read from the file, of which
// nothing is used any more.
func (l *Ledger) giveBack(p *page) {
	if t := l.trees.Load(); p.leaf != nil && t != nil {
		t.tree.leaves.Put(p.leaf)
	}
}

// hole says that an offset inside a book is in no entry of the page where it
// must be.
func (l *Ledger) hole(id PairID, b book, offset int64) error {
	return l.located(&CorruptError{
		Bucket: b.bucket, Key: fmt.Sprintf("pair %d", id), Law: lawTiling,
		Detail: fmt.Sprintf("no entry holds offset %d", offset),
	})
}

// pageAt returns the last page that starts at or before an offset of a book. The entry with the offset can be in no other: pages behind
// it start beyond the offset, and in pages before it the book ends at or before
// the start of this one.
func (l *Ledger) pageAt(id PairID, pages []*page, b book, offset int64) (*page, error) {
	i := sort.Search(len(pages), func(i int) bool { return b.offset(pages[i].start) > offset })
	if i > 0 {
		return pages[i-1], nil
	}
	return l.pageInFile(id, b, b.floor(offset))
}

// pageInFile returns the head of the last page of a pair whose key, in the
// order of the book, is not above that of a place.
func (l *Ledger) pageInFile(id PairID, b book, at place) (p *page, err error) {
	err = l.view(func(t *tree) error {
		e, err := t.floor(t.buckets[b.bucket], b.key(id, at))
		if err != nil {
			return err
		}
		if !bytes.HasPrefix(e.key, pairKey(id)) {
			return l.hole(id, b, b.offset(at))
		}
		if b.bucket == bucketTargets {
			index := e.leaf
			if e, err = t.pageOfTarget(e); err != nil {
				return err
			}
			if index != nil && index != e.leaf {
				t.leaves.Put(index)
			}
		}
		p, _, err = pageOf(e)
		return err
	})
	return p, err
}

// pageOfTarget returns the page that an element of the bucket targets stands
// for.
func (t *tree) pageOfTarget(e elem) (elem, error) {
	if _, err := payloadOf(bucketTargets, e); err != nil {
		return elem{}, err
	}
	id, target, source, ok := parsePlaceKey(e.key)
	if !ok {
		return elem{}, unknownKey(bucketTargets, e.key)
	}
	key := pageKey(id, place{source, target})
	found, err := t.floor(t.buckets[bucketPages], key)
	if err == nil && !bytes.Equal(found.key, key) {
		err = &CorruptError{
			Bucket: bucketTargets, Key: keyText(bucketTargets, e.key), Law: lawIndex,
			Detail: "there is no such page",
		}
	}
	return found, err
}

// Entries returns the committed entries of a pair in order, from the first one
// that ends behind the source offset from, or starts at or behind it: from 0
// all of them. It ends with the last entry that was committed when the
// iteration began, or with an error (see [Ledger.FindSource]).
//
// Nothing is held between two entries: the loop may take its time, append and
// commit.
func (l *Ledger) Entries(id PairID, from int64) iter.Seq2[Entry, error] {
	return l.entries(id, sourceBook(), from)
}

// EntriesFromTarget is [Ledger.Entries] from a target offset on.
func (l *Ledger) EntriesFromTarget(id PairID, from int64) iter.Seq2[Entry, error] {
	return l.entries(id, targetBook(), from)
}

func (l *Ledger) entries(id PairID, b book, from int64) iter.Seq2[Entry, error] {
	return func(yield func(Entry, error) bool) {
		at, end, err := l.bounds(id, b, from)
		for err == nil && at != end {
			var entries []Entry
			entries, err = l.entriesAt(id, at)
			for i := range entries {
				if at == end || !yield(entries[i], nil) {
					return
				}
				at = entries[i].end()
			}
		}
		if err != nil {
			yield(Entry{}, err)
		}
	}
}

// bounds returns where an iteration starts and ends.
func (l *Ledger) bounds(id PairID, b book, from int64) (at, end place, err error) {
	pages, start, err := l.committed(id)
	if err != nil {
		return place{}, place{}, err
	}
	end = pages[len(pages)-1].end
	switch {
	case from <= b.offset(start):
		return start, end, nil
	case from > b.offset(end):
		return end, end, nil
	}
	// The entry of the offset before either holds from as well, or is followed
	// by everything that starts at it.
	e, err := l.find(id, b, from-1)
	if b.span(&e).End > from {
		return e.start(), end, err
	}
	return e.end(), end, err
}

// entriesAt returns entries from the one that starts at a place, which must be
// before the end of the books, to the end of its page.
func (l *Ledger) entriesAt(id PairID, at place) (entries []Entry, err error) {
	pages, _, err := l.committed(id)
	if err != nil {
		return nil, err
	}
	i := sort.Search(len(pages), func(i int) bool { return at.before(pages[i].start) })
	var p *page
	if i > 0 {
		p = pages[i-1]
	} else if p, err = l.pageInFile(id, sourceBook(), at); err != nil {
		return nil, err
	}
	if entries, err = p.entries(); err != nil {
		return nil, l.located(damageIn(bucketPages, pageKey(id, p.start), err))
	}
	i = sort.Search(len(entries), func(i int) bool { s := entries[i].start(); return !s.before(at) })
	if i == len(entries) || entries[i].start() != at {
		return nil, l.hole(id, sourceBook(), at.source)
	}
	return entries[i:], nil
}
