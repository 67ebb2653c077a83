package ledger

import (
	"errors"
	"fmt"
	"maps"
	"slices"
)

// A modelMarks is what is known beside the entries of a pair, offset by offset.
type modelMarks struct {
	accepted        map[int64]string // reason
	doubts, durable map[int64]bool
	cut             *Cut
}

func newModelMarks() modelMarks {
	return modelMarks{accepted: map[int64]string{}, doubts: map[int64]bool{}, durable: map[int64]bool{}}
}

// holds reports whether what the books say of a source offset still holds.
func (m *modelPair) holds(offset int64) bool {
	return m.marks.cut == nil || offset < m.marks.cut.Source
}

// stands reports whether an offset that is in doubt still is: the target has what
// was copied there, or no later generation of the source topic has read it.
func (w *world) stands(m *modelPair, offset int64) bool {
	lost, again := !m.holds(offset), false
	before := m // the generation in front of p
	for _, p := range w.pairs {
		if p.info.SourceTopic != m.info.SourceTopic || p.info.Partition != m.info.Partition || p.id <= m.id {
			continue
		}
		// Its log ended there, and a person went on: the first copied record from there on is lost, and all behind it.
		for at, o := range m.source[:min(int64(m.durableSource), offset+1)] {
			lost = lost || before.marks.cut != nil && o.tile == Copied && o.other >= p.info.TargetBase && int64(at) <= offset
		}
		before = p
		again = again || p.info.ScopeStart <= offset && offset < int64(p.durableSource)
	}
	return !lost || !again
}

func (m *modelPair) bad(offset int64) bool {
	return m.source[offset].tile == Lost || m.source[offset].tile == Unexplained
}

// randomRange returns a range that often is one of bad offsets.
func (w *world) randomRange(m *modelPair) Range {
	start := w.rand.Int64N(int64(len(m.source)) + 2)
	for offset := range int64(len(m.source)) {
		if w.rand.IntN(3) == 0 && m.bad(offset) {
			start = offset
		}
	}
	return Range{start, start + 1 + w.rand.Int64N(4)}
}

func (w *world) accept() {
	m := w.pick()
	r := w.randomRange(m)
	reason := fmt.Sprint("reason ", w.rand.IntN(3))
	allowed := r.End <= int64(len(m.source))
	w.commit() // as the ledger does first
	for offset := r.Start; offset < r.End && allowed; offset++ {
		allowed = m.bad(offset) && m.holds(offset) || m.marks.doubts[offset] && w.stands(m, offset)
	}
	err := w.l.Accept(m.id, Acceptance{Range: r, Reason: reason})
	if allowed && err != nil || !allowed && !breaks(lawAccepted)(err) {
		w.t.Fatalf("pair %d: Accept of %v (%t): %v", m.id, r, allowed, err)
	}
	w.durable() // what was queued is committed first
	if allowed {
		for offset := r.Start; offset < r.End; offset++ {
			m.marks.accepted[offset] = reason
		}
	}
}

func (w *world) doubt() {
	m := w.pick()
	r := w.randomRange(m)
	err := w.l.SetDoubt(m.id, Doubt{Kind: StaleKeys, Range: r})
	switch {
	case r.End > int64(len(m.source)) && !m.closed:
		if !breaks(lawDoubts)(err) {
			w.t.Fatalf("pair %d: SetDoubt of %v: %v", m.id, r, err)
		}
	case m.closed != errors.Is(err, ErrPairClosed) || !m.closed && err != nil:
		w.t.Fatalf("pair %d: SetDoubt of a pair that is closed (%t): %v", m.id, m.closed, err)
	case !m.closed:
		for offset := r.Start; offset < r.End; offset++ {
			m.marks.doubts[offset] = true
		}
	}
}

// cutPair closes a pair with a random cut, and opens the next generation.
func (w *world) cutPair() {
	m := w.pick()
	if m.closed {
		return
	}
	cut := Cut{w.rand.Int64N(int64(len(m.source)) + 2), m.info.TargetBase + w.rand.Int64N(int64(len(m.target))+2)}
	if w.rand.IntN(3) > 0 && int(cut.Target-m.info.TargetBase) < len(m.target) {
		if o := m.target[cut.Target-m.info.TargetBase]; o.tile == Copied {
			cut.Source = o.other
		} else {
			cut.Source = o.partnerEnd
		}
	}
	allowed := cut.Source <= int64(len(m.source)) && cut.Target <= m.end().Target
	for i, o := range m.target {
		if o.tile == Copied && (o.other < cut.Source) != (m.info.TargetBase+int64(i) < cut.Target) {
			allowed = false
		}
	}
	next := m.info
	next.ID, next.Generation, next.Closed, next.ScopeStart, next.TargetBase = 0, 0, nil, cut.Source, cut.Target
	id, err := w.l.Reopen(m.id, Closing{Reason: "target_lost_records", Cut: &cut}, next)
	if allowed && err != nil || !allowed && !breaks(lawCut)(err) {
		w.t.Fatalf("pair %d: cut at %+v (%t): %v", m.id, cut, allowed, err)
	}
	if allowed {
		m.closed, m.marks.cut = true, &cut
		w.opened(id, next)
		w.durable()
	}
}

// compareMarks compares what a file says with the plain maps.
func (w *world) compareMarks(l *Ledger, m *modelPair) {
	w.t.Helper()
	accepted := map[int64]string{}
	last := int64(-1)
	for _, a := range l.Acceptances(m.id) {
		if a.Range.Start < last {
			w.t.Fatalf("pair %d: acceptances %v", m.id, l.Acceptances(m.id))
		}
		for last = a.Range.Start; last < a.Range.End; last++ {
			accepted[last] = a.Reason
		}
	}
	if !maps.Equal(accepted, m.marks.accepted) {
		w.t.Fatalf("pair %d: accepted %v, want %v", m.id, accepted, m.marks.accepted)
	}
	unaccepted := int64(0)
	for offset := range int64(m.durableSource) {
		if m.bad(offset) && m.holds(offset) && accepted[offset] == "" {
			unaccepted++
		}
	}
	if got := l.Unaccepted(m.id); got != unaccepted {
		w.t.Fatalf("pair %d: %d offsets are bad and not accepted, want %d", m.id, got, unaccepted)
	}
	doubts := m.marks.doubts
	if l != w.l {
		doubts = m.marks.durable
	}
	left := maps.Clone(doubts)
	maps.DeleteFunc(left, func(offset int64, _ bool) bool { return accepted[offset] != "" || !w.stands(m, offset) })
	for name, c := range map[string]struct {
		got  []Doubt
		want map[int64]bool
	}{"doubts": {l.Doubts(m.id), doubts}, "doubts that are left": {l.UnacceptedDoubts(m.id), left}} {
		got := map[int64]bool{}
		for _, d := range c.got {
			for offset := d.Range.Start; offset < d.Range.End; offset++ {
				got[offset] = true
			}
		}
		if !maps.Equal(got, c.want) {
			w.t.Fatalf("pair %d: %s %v, want %v", m.id, name, slices.Sorted(maps.Keys(got)), slices.Sorted(maps.Keys(c.want)))
		}
	}
}
