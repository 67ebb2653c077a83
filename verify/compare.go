package verify

// A targetView is what the target holds of a partition.
type targetView struct {
	log      *stream
	end      int64 // high watermark
	compacts bool
}

// hole says what it means that nothing stands at an offset.
func (t *targetView) hole(offset int64) outcome {
	switch broken := t.log.broken(); {
	case offset < t.log.start:
		return expired
	case broken != nil && offset >= broken.offset && broken.reason == Moving:
		return moving
	case broken != nil && offset >= broken.offset:
		return unreadable
	case offset >= t.end:
		return absent
	case t.compacts:
		return cleaned
	case t.log.undecodable(offset):
		return unreadable
	default:
		return absent
	}
}

// A comparer compares the sequence that a target partition should hold with the
// one that it holds. Almost always the next unit stands in its place, and is
// compared offset by offset; where it does not, the two sequences are aligned
// anew (align.go).
type comparer struct {
	expected *expectation
	target   *targetView
	judge    *judge

	units []*unit // loaded and not yet judged, in order
	seen  []item  // read from the target and not yet accounted for, in order
	room  []item  // what seen is a part of
	shift int64   // by which the target's records stand above their booked offsets

	upcoming []item // records of the source behind the books, not yet accounted for
	tail     tail
	failures int // alignments in a row that found no agreement
}

// run compares everything up to the end of the books, and what the target holds
// behind it.
func (c *comparer) run() error {
	for {
		more, err := c.more()
		if err != nil {
			return err
		}
		if !more {
			break
		}
		ok, err := c.accept()
		if err != nil {
			return err
		}
		if !ok {
			if err := c.realign(); err != nil {
				return err
			}
		}
		c.settle()
	}
	if c.tail.follows && !c.tail.moving {
		c.finishTail()
	}
	return nil
}

// more reports whether there are units that are not decided.
func (c *comparer) more() (bool, error) {
	if len(c.units) > 0 {
		return true, nil
	}
	return c.load()
}

// maxNotes bounds the units that are notes, in a row, which wait for a copy
// behind them.
const maxNotes = 4

// accept decides the front unit by what stands in its place, if that can be all.
// Anything may stand in the place of a note, also what belongs behind it: so a
// note is accepted together with the copy that follows.
func (c *comparer) accept() (ok bool, err error) {
	used, n := 0, 0
	for note := true; note && n <= maxNotes; n++ {
		if n == len(c.units) {
			more, err := c.load()
			if err != nil {
				return false, err
			}
			if !more {
				break
			}
		}
		taken, ok := c.inPlace(c.units[n], used)
		if !ok {
			return false, nil
		}
		used += taken
		note = c.units[n].note()
	}
	for _, u := range c.units[:n] {
		u.done = len(u.slots)
		u.stands, u.found = c.shift, true
	}
	c.seen = c.seen[used:]
	return true, nil
}

// load takes one more unit. It returns false at the end of the books.
func (c *comparer) load() (bool, error) {
	u, err := c.expected.next()
	if err != nil || u == nil {
		return false, err
	}
	c.units = append(c.units, u)
	return true, nil
}

// settle judges the units that are decided.
func (c *comparer) settle() {
	for len(c.units) > 0 && c.units[0].done == len(c.units[0].slots) {
		u := c.units[0]
		c.units = c.units[1:]
		c.judge.unit(u)
		c.expected.recycle(u)
	}
}

// fill reads until n items of the target are at hand, or it ends.
func (c *comparer) fill(n int) {
	log := c.target.log
	for len(c.seen) < n && log.peek() != nil {
		c.makeRoom(len(log.items))
		c.seen = append(c.seen, log.items...)
		log.items = nil
	}
}

// makeRoom makes room for n more items behind those that are seen. No window has
// them at that time.
func (c *comparer) makeRoom(n int) {
	n += len(c.seen)
	if n <= cap(c.seen) {
		return
	}
	if n > cap(c.room) {
		c.room = make([]item, 0, 2*n)
	}
	c.room = append(c.room[:0], c.seen...)
	c.seen = c.room
}

// inPlace decides the rest of a unit by what stands in the places of its slots,
// from the item with index from on. It returns false if that cannot be all:
// something is missing, in the way, or another record, while the digest does not
// say that the target is as it was copied. used is how many items stand in the
// places.
func (c *comparer) inPlace(u *unit, from int) (used int, ok bool) {
	c.fill(from + len(u.slots) - u.done)
	others := len(u.others)
	if used, ok = c.pairUp(u, c.seen[min(from, len(c.seen)):]); !ok || !c.plausible(u, len(u.others) > others) {
		u.others = u.others[:others]
		return 0, false
	}
	return used, true
}

// pairUp decides the rest of a unit by the items in the places of its slots. It
// returns false if an item stands in none, or a slot has none without a reason.
func (c *comparer) pairUp(u *unit, items []item) (used int, ok bool) {
	for k := u.done; k < len(u.slots); k++ {
		want := u.booked(k) + c.shift
		switch {
		case used < len(items) && items[used].offset < want:
			return 0, false
		case used < len(items) && items[used].offset == want:
			u.decide(k, &items[used])
			used++
		default:
			if u.slots[k].outcome = c.target.hole(want); u.slots[k].outcome == absent {
				return 0, false
			}
		}
	}
	return used, true
}

// plausible reports whether nothing speaks against what stands in the places of
// a unit's slots. Where the source cannot say what should be there the digest
// must; where the source says something else it may be the source that has
// changed.
func (c *comparer) plausible(u *unit, different bool) bool {
	if u.note() || !different && (u.torn || u.done > 0 || !u.unknown()) {
		return true
	}
	d := u.digests()
	if different {
		return d.targetOK && d.target == u.entry.Digest
	}
	return !d.mixedOK || d.mixed == u.entry.Digest
}
