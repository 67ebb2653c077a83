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
	find func(c *cursor, offset int64) (ledger.Entry, error)
	read func(c *cursor, offset int64) error // a page, into the block
	span func(*ledger.Entry) ledger.Range
}

func sourceBook() book {
	return book{
		find: func(c *cursor, offset int64) (ledger.Entry, error) {
			i := c.line.bySource(offset)
			e, err := c.ledger.FindSource(c.line[i].ID, offset)
			return c.line.clipped(i, e, err)
		},
		read: func(c *cursor, offset int64) (err error) {
			i := c.line.bySource(offset)
			c.block, err = c.ledger.ReadSource(c.line[i].ID, offset, c.block)
			c.block = c.line.clipAll(i, c.block)
			return err
		},
		span: func(e *ledger.Entry) ledger.Range { return e.Source },
	}
}

func targetBook() book {
	return book{
		find: func(c *cursor, offset int64) (ledger.Entry, error) {
			i := c.line.byTarget(offset)
			e, err := c.ledger.FindTarget(c.line[i].ID, offset)
			return c.line.clipped(i, e, err)
		},
		read: func(c *cursor, offset int64) (err error) {
			i := c.line.byTarget(offset)
			c.block, err = c.ledger.ReadTarget(c.line[i].ID, offset, c.block)
			c.block = c.line.clipAll(i, c.block)
			return err
		},
		span: func(e *ledger.Entry) ledger.Range { return e.Target },
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
		c.at = 0
		if err := c.read(c, offset); err != nil {
			return nil, err
		}
		if e := c.inBlock(offset); e != nil {
			return e, nil
		}
	}
	e, err := c.find(c, offset)
	if err != nil {
		return nil, err
	}
	c.block, c.at = append(c.block[:0], e), 0
	return &c.block[0], nil
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
