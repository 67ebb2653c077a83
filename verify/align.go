package verify

import (
	"slices"

	"apograph/ledger"
)

// The alignment of two sequences works on windows of both. It looks for the
// nearest place from which they agree again, for long enough to be no accident,
// and explains what lies before it with as few differences as possible.

const (
	// firstWindow and lastWindow are how many slots, and items, are looked at:
	// first, and before it is given up to find where the sequences agree again.
	firstWindow = 256
	lastWindow  = 1 << 15

	// agreement is how many records in a row must be equal.
	agreement = 16

	// maxCells bounds the work to explain a block, wholeCells that to explain all
	// that is left without looking for where the sequences agree again.
	maxCells   = 1 << 22
	wholeCells = 1 << 20

	// slack is how many items behind the end of the expected sequence may
	// belong to it.
	slack = 1024
)

// An elem is one place of the expected sequence in a window.
type elem struct {
	unit *unit // nil: a record of the source behind the books
	slot int
	item *item // with unit nil
	want int64 // booked target offset
}

func (e *elem) known() bool { return e.unit == nil || e.unit.slots[e.slot].known() }

func (e *elem) note() bool { return e.unit != nil && e.unit.note() }

// fits reports whether i is what should stand at e, as far as is known.
func (e *elem) fits(i *item) bool {
	if e.unit != nil {
		return e.unit.fits(e.slot, i)
	}
	return i.kind == dataRecord && e.item.hashAs(i.stamped) == i.hashAs(i.stamped)
}

// A window holds parts of both sequences that are not accounted for.
type window struct {
	want []elem
	have []item

	wantEnds bool // nothing is expected behind want
	haveEnds bool // the target holds nothing behind have
	follows  bool // what the target holds behind the books is compared, too
	shift    int64
	hole     func(offset int64) outcome

	prefixes map[bool][]ledger.Digest // of have, by whether timestamps are replaced; see prefix
	controls []int                    // control records before each item of have
	runs     map[runLength]map[ledger.Digest][]int32
}

// shiftAt returns by how much records stand above their booked offsets from a
// place on, as far as the window tells.
func (w *window) shiftAt(p place) int64 {
	if p.want == len(w.want) || p.have == len(w.have) {
		return w.shift
	}
	return w.have[p.have].offset - w.want[p.want].want
}

// shiftBehind is shiftAt for a place at an end of the window: the last pair
// before it tells.
func (w *window) shiftBehind(p place, steps []step) int64 {
	if p.want < len(w.want) && p.have < len(w.have) {
		return w.shiftAt(p)
	}
	for _, s := range slices.Backward(steps) {
		if s.kind == pairUp && w.want[s.want].fits(&w.have[s.have]) {
			return w.shiftAt(s.place)
		}
	}
	return w.shift
}

// A place is a position in both sequences of a window.
type place struct{ want, have int }

// realign decides at least the next slot, where the sequences do not agree in
// place.
func (c *comparer) realign() error {
	for size := firstWindow; ; size = min(8*size, lastWindow) {
		w, err := c.window(size)
		if err != nil {
			return err
		}
		all, ends := place{len(w.want), len(w.have)}, w.wantEnds && w.haveEnds
		if len(w.have) == 0 || ends && all.want*all.have <= wholeCells && !w.blind() {
			c.apply(w, all, w.explain(all))
			return nil
		}
		if exit, ok := w.exit(); ok {
			c.failures = 0
			c.apply(w, exit, w.explain(exit))
			return nil
		}
		if ends {
			c.apply(w, all, w.explain(all))
			return nil
		}
		if size == lastWindow || c.hopeless() {
			c.failures++
			exit, steps := w.giveUp()
			c.apply(w, exit, steps)
			return nil
		}
	}
}

// blind reports whether there are slots of which nothing is known but the digest
// of their unit. Only places from which units agree keep those apart that are
// damaged from those that are not.
func (w *window) blind() bool {
	return slices.ContainsFunc(w.want, func(e elem) bool { return !e.known() })
}

// hopeless reports whether a long search is not worth it: the last ones have
// found nothing. It is tried again from time to time.
func (c *comparer) hopeless() bool {
	return c.failures > 4 && c.failures&(c.failures-1) != 0
}

// giveUp aligns a part of a window in which the sequences never agree again.
func (w *window) giveUp() (exit place, steps []step) {
	switch {
	case w.wantEnds:
		return w.explainEnd()
	case w.haveEnds:
		exit = place{min(len(w.want), len(w.have)+slack), len(w.have)}
		return exit, w.explain(exit)
	default:
		half := len(w.want) / 2
		exit = place{half, w.position(w.want[half].want + w.shift)}
		return exit, w.inPlace(exit)
	}
}

// window loads and returns the next size slots and items.
func (c *comparer) window(size int) (*window, error) {
	w := &window{follows: c.tail.follows, shift: c.shift, hole: c.target.hole, prefixes: map[bool][]ledger.Digest{}, runs: map[runLength]map[ledger.Digest][]int32{}}
	for i := 0; len(w.want) < size; i++ {
		if i == len(c.units) {
			more, err := c.load()
			if err != nil {
				return nil, err
			}
			if !more {
				w.wantEnds = true
				break
			}
		}
		u := c.units[i]
		for k := u.done; k < len(u.slots); k++ {
			w.want = append(w.want, elem{unit: u, slot: k, want: u.booked(k)})
		}
	}
	c.fill(size + slack)
	w.have = c.seen
	if w.wantEnds {
		c.foresee(w, size)
	}
	if len(w.have) > len(w.want)+slack {
		w.have = w.have[:len(w.want)+slack]
	} else {
		w.haveEnds = c.target.log.peek() == nil
	}
	return w, nil
}

// foresee adds to what is expected the records that the source holds behind the
// books, as far as the target may hold items for them: all it holds, if nothing
// is left of what is booked.
func (c *comparer) foresee(w *window, size int) {
	if !c.tail.follows {
		return
	}
	end := c.expected.books.end.Target
	for k := 0; k < len(w.have) && len(w.want) < size; k++ {
		i := c.following(k)
		if i == nil {
			return
		}
		w.want = append(w.want, elem{item: i, want: end + int64(k)})
	}
}

// following returns the k-th record of the source behind the books that is not
// accounted for, nil if there are no more.
func (c *comparer) following(k int) *item {
	for k >= len(c.upcoming) {
		i := c.expected.source.next()
		if i == nil {
			return nil
		}
		c.upcoming = append(c.upcoming, *i)
		c.expected.source.log.next()
	}
	return &c.upcoming[k]
}

// position returns the index of the first item at or behind an offset.
func (w *window) position(offset int64) int {
	low, high := 0, len(w.have)
	for low < high {
		if mid := (low + high) / 2; w.have[mid].offset < offset {
			low = mid + 1
		} else {
			high = mid
		}
	}
	return low
}

// prefix returns the digest of the first n items of the window, control records
// left out.
func (w *window) prefix(replaced bool, n int) ledger.Digest {
	sums := w.prefixes[replaced]
	if sums == nil {
		sums = make([]ledger.Digest, 1, len(w.have)+1)
		w.controls = make([]int, 1, len(w.have)+1)
		for i := range w.have {
			sum, controls := sums[i], w.controls[i]
			if w.have[i].kind == dataRecord {
				sum = sum.Add(w.have[i].hashAs(replaced))
			} else {
				controls++
			}
			sums, w.controls = append(sums, sum), append(w.controls, controls)
		}
		w.prefixes[replaced] = sums
	}
	return sums[n]
}

// run reports whether the items [have, have+n) are n records at consecutive
// offsets.
func (w *window) run(have, n int) bool {
	return have+n <= len(w.have) && w.controls[have+n] == w.controls[have] && w.have[have+n-1].offset-w.have[have].offset == int64(n-1)
}

// holds reports whether the items from index have on are, by the digest, the
// records of a whole unit; ok is false if that cannot be told.
func (w *window) holds(u *unit, have int) (holds, ok bool) {
	n := len(u.slots)
	if u.torn || u.done > 0 || have+n > len(w.have) {
		return false, false
	}
	whole, before := w.prefix(u.entry.TimestampsReplaced, have+n), w.prefix(u.entry.TimestampsReplaced, have)
	if !w.run(have, n) {
		return false, false
	}
	return ledger.Suffix(whole, before, int64(n)) == u.entry.Digest, true
}

// agrees reports whether the sequences agree from a place on.
func (w *window) agrees(p place) bool {
	if p.have >= len(w.have) || p.want >= len(w.want) || w.want[p.want].slot > 0 && !w.want[p.want].known() {
		return false
	}
	shift := w.have[p.have].offset - w.want[p.want].want
	equal := 0
	for i, j := p.want, p.have; ; i++ {
		switch {
		case equal >= agreement:
			return true
		case i == len(w.want):
			return equal > 0 && w.wantEnds && w.haveEnds && j == len(w.have)
		case j == len(w.have) && !w.haveEnds:
			return false
		}
		e := &w.want[i]
		if j == len(w.have) || w.have[j].offset > e.want+shift {
			if w.hole(e.want+shift) == absent && e.unit != nil {
				return false
			}
			continue
		}
		if w.have[j].offset < e.want+shift || !e.fits(&w.have[j]) {
			return false
		}
		if e.known() && !e.note() {
			equal++
		} else if e.slot == 0 && !e.note() {
			holds, ok := w.holds(e.unit, j)
			if ok && !holds {
				return false
			}
			if ok {
				equal += len(e.unit.slots)
			}
		}
		j++
	}
}
