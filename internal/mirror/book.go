package mirror

import (
	"errors"
	"math"
	"slices"

	"apograph/ledger"
)

// A book is the books of a source partition as its open pair goes on with them:
// that pair's, and those of the generations before it as far as they hold below where
// the next one begins.
type book struct {
	ledger *ledger.Ledger
	parts  []part // the newest first
}

// A part is the books of one pair, below a source offset.
type part struct {
	id    ledger.PairID
	limit int64 // what is said of this source offset, and of those behind it, does not count
}

// bookOf returns the books that end with a pair.
func bookOf(l *ledger.Ledger, pair ledger.Pair) (book, error) {
	b := book{ledger: l}
	line, _, err := l.Lineage(pair)
	for _, p := range slices.Backward(line) {
		limit := int64(math.MaxInt64)
		if p.ID != pair.ID {
			limit = p.Closed.Cut.Source
		}
		b.parts = append(b.parts, part{p.ID, limit})
	}
	return b, err
}

// A copied record is where one is on both sides. The zero value is none: see
// [none].
type copied struct{ upstream, downstream int64 }

// none stands for no record.
func none() copied { return copied{-1, -1} }

func (c copied) exists() bool { return c.upstream >= 0 }

// entry returns the entry of a part with a source offset; false if the part says
// nothing of it.
func (b book) entry(p part, offset int64) (e ledger.Entry, ok bool, err error) {
	e, err = b.ledger.FindSource(p.id, offset)
	if errors.Is(err, ledger.ErrNotFound) {
		return e, false, nil
	}
	return e, err == nil && e.Tile != ledger.BeforeStart, err
}

// last returns the last copied record at or below a source offset, and at or
// above floor.
func (b book) last(at, floor int64) (copied, error) {
	for _, p := range b.parts {
		for at = min(at, p.limit-1); at >= floor; {
			e, ok, err := b.entry(p, at)
			if err != nil {
				return none(), err
			}
			if !ok {
				break
			}
			if d := e.TargetOf(at+1) - 1; e.Tile == ledger.Copied && d >= e.Target.Start {
				if u := e.SourceOf(d); u >= floor {
					return copied{u, d}, nil
				}
				return none(), nil
			}
			at = e.Source.Start - 1
		}
	}
	return none(), nil
}

// first returns the first copied record.
func (b book) first() (copied, error) {
	for i := len(b.parts) - 1; i >= 0; i-- {
		p := b.parts[i]
		for e, err := range b.ledger.Entries(p.id, 0) {
			if err != nil {
				return none(), err
			}
			if e.Source.Start >= p.limit {
				break
			}
			if e.Tile != ledger.Copied {
				continue
			}
			if u := e.SourceOf(e.Target.Start); u < p.limit {
				return copied{u, e.Target.Start}, nil
			}
		}
	}
	return none(), nil
}

// holds reports whether the books say that a record was copied from there to
// there.
func (b book) holds(c copied) (bool, error) {
	found, err := b.last(c.upstream, c.upstream)
	return found.exists() && found == c, err
}
