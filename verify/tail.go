package verify

import (
	"slices"

	"apograph/ledger"
)

// A tail is what the target holds behind the end of the books.
type tail struct {
	follows   bool              // it is compared with what follows in the source
	moving    bool              // it is not judged: a copier is at work
	producers []ledger.Producer // of the pair: what others wrote is not the copier's
	strange   bool              // something stood there that cannot be the next record
}

// finishTail compares what the target holds behind the books with the next
// records of the source: a copier that has not booked them left them there. From
// the first one that is something else, or somebody else's, nobody would adopt
// them.
func (c *comparer) finishTail() {
	position := c.expected.books.end
	for k := 0; ; k++ {
		c.fill(1)
		if len(c.seen) == 0 {
			break
		}
		i := &c.seen[0]
		next, ok := c.continues(i, position.Source)
		switch {
		case ok:
			c.judge.behind.findings.note(Unbooked, NoReason, &Range{position.Source, next}, one(i.offset),
				"a copier of this flow wrote it, and the ledger does not have it; the next start adopts it")
			position.Source = next
		case c.untold() && c.ours(i) && c.judge.brokenIn(c.expected.books, "source", c.expected.source.log) != nil: // told
		case c.untold() && c.ours(i):
			c.judge.behind.findings.note(NotVerified, c.expected.source.log.broken().reason, at(position.Source), one(i.offset),
				"behind the books, and what follows on the source was not read: %v", c.expected.source.log.broken().err)
		default:
			c.tail.strange = true
			c.judge.surplus(i, position.Source, 0)
		}
		c.seen = c.seen[1:]
	}
	broken := c.target.log.broken()
	if broken != nil && broken.offset < c.target.end && c.judge.brokenIn(c.expected.books, "target", c.target.log) == nil {
		c.judge.behind.findings.note(NotVerified, broken.reason, at(position.Source), &Range{broken.offset, c.target.end}, "behind the books, and the target could not be read: %v", broken.err)
	}
}

// continues reports whether an item behind the books is what a copier has copied
// next, and returns the source offset behind it. The producer id says who wrote
// it: nobody adopts what another producer has written, even if it is equal.
func (c *comparer) continues(i *item, source int64) (next int64, ok bool) {
	if c.tail.strange || !c.ours(i) {
		return 0, false
	}
	if c.expected.source.log == nil {
		return source, true
	}
	following := c.following(0)
	if following == nil || following.hashAs(i.stamped) != i.hashAs(i.stamped) {
		return 0, false
	}
	next = following.offset + 1
	c.upcoming = c.upcoming[1:]
	return next, true
}

// ours reports whether a producer of the pair wrote a record.
func (c *comparer) ours(i *item) bool {
	return i.kind == dataRecord && slices.ContainsFunc(c.tail.producers, func(p ledger.Producer) bool {
		return p.ID == i.producer && p.Epoch == i.epoch
	})
}

// untold reports whether nothing can be said about the tail, because the source
// could not be read behind the books.
func (c *comparer) untold() bool {
	log := c.expected.source.log
	return log != nil && !c.tail.strange && len(c.upcoming) == 0 && log.broken() != nil
}

// afterBook returns how many offsets the target holds behind the books.
func (c *comparer) afterBook() int64 {
	c.fill(1)
	if len(c.seen) == 0 {
		return 0
	}
	return max(c.target.end-c.seen[0].offset, 0)
}
