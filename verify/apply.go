package verify

// apply takes what lies before exit as the steps say. What stands behind the
// last record of the books is left for the comparison of the tail.
func (c *comparer) apply(w *window, exit place, steps []step) {
	exit, steps = w.firstCopies(exit, steps)
	after := w.shiftBehind(exit, steps)
	if n := w.booked(); exit.want >= n {
		steps, exit = untilBooked(steps, n)
	}
	moved := &movement{by: after - w.shift}
	for _, s := range steps {
		if s.kind == haveOnly {
			c.judge.surplus(&w.have[s.have], w.sourceAt(s.want), moved.take(1))
			continue
		}
		e := &w.want[s.want]
		if s.kind == pairUp {
			e.unit.decide(e.slot, &w.have[s.have])
			e.unit.stands, e.unit.found = w.have[s.have].offset-e.want, true
		} else {
			lacks(e, w.lack(e, after), w.taken(e.want+w.shift) || e.want+w.shift >= c.target.end, moved)
		}
		e.unit.done = e.slot + 1
	}
	if moved.by != 0 && exit.want > 0 {
		e := &w.want[exit.want-1]
		e.unit.shifted, e.unit.shiftedAt = moved.by, e.slot
	}
	c.seen = c.seen[exit.have:]
	c.shift = after
}

// sourceAt returns the source offset of the i-th elem, or the one behind the
// last.
func (w *window) sourceAt(i int) int64 {
	if i == len(w.want) {
		return w.sourceAt(i-1) + 1
	}
	if e := &w.want[i]; e.unit != nil {
		return e.unit.slots[e.slot].source
	}
	return w.want[i].item.offset
}

// booked returns how many elems of the window the books have; the others are
// what the source holds behind them.
func (w *window) booked() int {
	n := len(w.want)
	for n > 0 && w.want[n-1].unit == nil {
		n--
	}
	return n
}

// untilBooked cuts an alignment behind the step of the n-th elem, and returns
// where that ends.
func untilBooked(steps []step, n int) ([]step, place) {
	for i := len(steps); i > 0; i-- {
		if s := steps[i-1]; s.kind != haveOnly && s.want < n {
			exit := place{s.want + 1, s.have}
			if s.kind == pairUp {
				exit.have++
			}
			return steps[:i], exit
		}
	}
	return nil, place{}
}

// A movement is a change of the shift that no finding tells yet.
type movement struct{ by int64 }

// take returns the change if it has the sign of what a finding can explain:
// records that are absent move the others down, records too many move them up.
func (m *movement) take(sign int64) int64 {
	if m.by*sign <= 0 {
		return 0
	}
	by := m.by
	m.by = 0
	return by
}

// lacks decides that a slot has no item. closed says that this leaves no hole in
// its place: another record stands there, or the log ends.
func lacks(e *elem, o outcome, closed bool, moved *movement) {
	s := &e.unit.slots[e.slot]
	s.outcome = o
	if o != absent {
		return
	}
	if by := moved.take(-1); by != 0 {
		e.unit.shifted, e.unit.shiftedAt = by, e.slot
	}
	if !s.known() && !e.unit.note() && closed {
		e.unit.unlocated = true
	}
}
