package replicate

import "slices"

const (
	// takeoverLook is how many of the target's records are looked up in one
	// reading of the source.
	takeoverLook = attachWindow

	// takeoverRun is how many records in a row tell which of several equal places
	// the copier went back to.
	takeoverRun = 64

	// takeoverPlaces is how many places are followed at one time.
	takeoverPlaces = 256
)

// search explains the target's next record, which is neither what the source has
// next nor what comes next of what is repeated.
func (a *takeover) search(t copyRun) error {
	a.endReplay()
	if err := a.flushNote(); err != nil { // what is repeated from here on is another range
		return err
	}
	next, err := a.next()
	if err != nil {
		return err
	}
	if from, ok := a.sides.hints[t.offset]; ok && from >= a.start && from < next {
		if ok, err := a.replayFrom(from, t); ok || err != nil {
			return err
		}
	}
	if i := max(a.recent.find(t.hash), a.recent.find(t.bare)); i >= 0 {
		a.replayRecent(i)
		return nil
	}
	look, err := a.lookAhead()
	if err != nil {
		return err
	}
	s := scan{look: look, start: a.start, next: next, places: map[int64]int{}, best: -1, ahead: -1, missing: map[uint64]bool{}}
	if err := s.read(a.sides); err != nil {
		return err
	}
	switch {
	case s.best >= 0:
		_, err := a.replayFrom(s.best, t)
		return err
	case s.ahead >= 0:
		return a.lacks(t, s.ahead)
	}
	if err := a.behindOpen(t); err != nil {
		return err
	}
	for _, x := range look {
		if s.missing[x.hash] && s.missing[x.bare] {
			a.strange[x.offset] = true
		}
	}
	a.strange[t.offset] = true
	return nil
}

// replayFrom has what follows compared with the source from an offset on. It
// reports false if the record there is another one than t.
func (a *takeover) replayFrom(from int64, t copyRun) (bool, error) {
	next, stop := a.sides.source(from)
	w := &takenWindow{read: next}
	r, err := w.peek(0)
	if err != nil || r == nil || r.offset != from || !t.equal(r.hash) {
		stop()
		return false, err
	}
	a.replay = &replay{peek: w.peek, pop: w.pop, stop: stop}
	return true, nil
}

// replayRecent has what follows compared with the records explained last, from
// one of them on.
func (a *takeover) replayRecent(at int) {
	peek := func(i int) (*takenRecord, error) {
		r := a.recent.get(at + i)
		if r == nil {
			return nil, nil
		}
		return &takenRecord{sourceRecord: sourceRecord{recordInfo: recordInfo{offset: r.offset, hash: r.hash}}, aborted: r.aborted}, nil
	}
	a.replay = &replay{peek: peek, pop: func(n int) { at += n }, stop: func() {}}
}

// lookAhead returns the target's next records.
func (a *takeover) lookAhead() (look []copyRun, err error) {
	for i := 0; len(look) < takeoverLook; i++ {
		t, err := a.target.peek(i)
		if err != nil || t == nil {
			return look, err
		}
		if t.kind == copyRecord && !a.strange[t.offset] {
			look = append(look, *t)
		}
	}
	return look, nil
}

// lacks is the error that the target does not have the source's next records,
// though it has the one at an offset.
func (a *takeover) lacks(t copyRun, ahead int64) error {
	first := ahead
	for i := 0; ; i++ {
		r, err := a.source.peek(i)
		if err != nil {
			return err
		}
		if r == nil || r.offset >= ahead {
			break
		}
		if !r.aborted {
			first = r.offset
			break
		}
	}
	if first+1 == ahead {
		return misaligned("the target lacks source offset %d: target offset %d holds source offset %d", first, t.offset, ahead)
	}
	return misaligned("the target lacks source offsets [%d, %d): target offset %d holds source offset %d", first, ahead, t.offset, ahead)
}

// behindOpen refuses a copy of what lies behind a transaction that is open.
func (a *takeover) behindOpen(t copyRun) error {
	hashes, err := a.sides.undecided()
	if err != nil {
		return err
	}
	offset, ok := hashes[t.hash]
	if !ok {
		offset, ok = hashes[t.bare]
	}
	if ok {
		return undecided("target offset %d holds source offset %d, which belongs to a transaction that is open, or stands behind one: attach again when it has ended", t.offset, offset)
	}
	return nil
}

// A scan looks the target's next records up in the whole of the source.
type scan struct {
	look        []copyRun
	start, next int64 // of the scope; the source's next record

	places  map[int64]int // where the first record stands, and how many follow there as they do on the target
	best    int64         // the place with the most; -1: there is none
	most    int
	ahead   int64 // where it stands behind the source's next record; -1 nowhere
	missing map[uint64]bool
}

// read reads the source.
func (s *scan) read(sides *takeoverSides) error {
	for _, t := range s.look {
		s.missing[t.hash], s.missing[t.bare] = true, true
	}
	next, stop := sides.source(sides.logStart)
	defer stop()
	w := takenWindow{read: next}
	for {
		r, err := w.peek(0)
		if err != nil || r == nil {
			s.end()
			return err
		}
		s.see(r)
		w.pop(1)
	}
}

func (s *scan) see(r *takenRecord) {
	if r.offset < s.start {
		return
	}
	delete(s.missing, r.hash)
	if r.offset >= s.next {
		if s.look[0].equal(r.hash) && !r.aborted && s.ahead < 0 {
			s.ahead = r.offset
		}
		return
	}
	for place, n := range s.places {
		switch {
		case n < len(s.look) && n < takeoverRun && s.look[n].equal(r.hash):
			s.places[place]++
		case !r.aborted:
			s.leave(place)
		}
	}
	if s.look[0].equal(r.hash) && len(s.places) < takeoverPlaces {
		s.places[r.offset] = 1
	}
}

// leave ends following a place.
func (s *scan) leave(place int64) {
	if n := s.places[place]; n > s.most || n == s.most && place > s.best {
		s.best, s.most = place, n
	}
	delete(s.places, place)
}

func (s *scan) end() {
	var all []int64
	for place := range s.places {
		all = append(all, place)
	}
	slices.Sort(all)
	for _, place := range all {
		s.leave(place)
	}
}
