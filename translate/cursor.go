package translate

import "apograph/ledger"

// nearEntries is how far behind the entries at hand an offset may lie, in lengths
// of the last one, for the page that it is in to be read rather than the one
// entry: there the next offset will be as well.
const nearEntries = 32

// A cursor finds the entries of one book by offset. It is made for offsets that
// ascend: where they lie close together it reads page by page, and where they do
// not it searches for each. One goroutine uses it.
type cursor struct {
	book
	ledger *ledger.Ledger
	line   lineage

	block []ledger.Entry // consecutive entries of the pair's list
	at    int            // index in block of the one returned last
	near  int            // how many offsets in a row were near but not in block
}

// A book is how to read the side whose offsets a cursor goes by. It is made of
// plain functions, so that it costs a single question no memory.
type book struct {
	generation func(line lineage, offset int64) int
	find       func(l *ledger.Ledger, id ledger.PairID, offset int64) (ledger.Entry, error)
	read       func(l *ledger.Ledger, id ledger.PairID, offset int64, into []ledger.Entry) ([]ledger.Entry, error)
	span       func(*ledger.Entry) ledger.Range
}

func sourceBook() book {
	return book{
		generation: lineage.bySource,
		find:       (*ledger.Ledger).FindSource,
		read:       (*ledger.Ledger).ReadSource,
		span:       func(e *ledger.Entry) ledger.Range { return e.Source },
	}
}

func targetBook() book {
	return book{
		generation: lineage.byTarget,
		find:       (*ledger.Ledger).FindTarget,
		read:       (*ledger.Ledger).ReadTarget,
		span:       func(e *ledger.Entry) ledger.Range { return e.Target },
	}
}

// open begins anew, in a book of a lineage, with the memory of what was read
// before.
func (c *cursor) open(l *ledger.Ledger, line lineage, b book) {
	*c = cursor{book: b, ledger: l, line: line, block: c.block[:0]}
}

// entry returns the entry that holds an offset, which must be in the book. It
// belongs to the cursor, and is valid until the next call.
func (c *cursor) entry(offset int64) (*ledger.Entry, error) {
	if e := c.inBlock(offset); e != nil {
		return e, nil
	}
	if c.isNear(offset) {
		c.near++
	} else {
		c.near = 0
	}
	// A single question, which may have a neighbour, is answered by a search.
	if c.near > 1 {
		if err := c.readBlock(offset); err != nil {
			return nil, err
		}
		if e := c.inBlock(offset); e != nil {
			return e, nil
		}
	}
	i := c.generation(c.line, offset)
	e, err := c.find(c.ledger, c.line[i].ID, offset)
	if err != nil {
		return nil, err
	}
	c.line.clip(i, &e)
	c.block, c.at = append(c.block[:0], e), 0
	return &c.block[0], nil
}

// readBlock reads the page that an offset is in.
func (c *cursor) readBlock(offset int64) (err error) {
	c.at = 0
	i := c.generation(c.line, offset)
	c.block, err = c.read(c.ledger, c.line[i].ID, offset, c.block)
	c.block = c.line.clipAll(i, c.block)
	return err
}

// inBlock returns the entry of the block, from the one returned last on, that
// holds offset, or nil.
func (c *cursor) inBlock(offset int64) *ledger.Entry {
	for i := c.at; i < len(c.block); i++ {
		span := c.span(&c.block[i])
		if offset < span.Start {
			return nil
		}
		if offset < span.End {
			c.at = i
			return &c.block[i]
		}
	}
	return nil
}

// isNear reports whether offset is near behind the block.
func (c *cursor) isNear(offset int64) bool {
	if len(c.block) == 0 {
		return false
	}
	last := c.span(&c.block[len(c.block)-1])
	return offset >= last.End && (offset-last.End)/nearEntries < max(last.Len(), 1)
}
