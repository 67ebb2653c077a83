package replicate

import "math"

const (
	// attachRun is how many records in a row are looked at to tell whether a
	// place fits.
	attachRun = 64

	// attachRivals is how far ahead a second place for the same record is
	// looked for.
	attachRivals = 4096
)

// search finds the source's next record among what the target holds next, and
// explains what stands in front of it.
func (a *aligner) search() error {
	at, err := a.place()
	if err != nil {
		return err
	}
	if at < 0 {
		return a.lacking()
	}
	t := a.target.runs[at]
	if !a.known(&t) && len(a.next) > 0 {
		a.inexact = true
		if err := a.takeover(at); err != nil {
			return err
		}
	}
	for range at {
		skipped := &a.target.runs[0]
		if a.follows(skipped, t.producer) {
			err = a.orphan(skipped)
		} else {
			err = a.other(skipped)
		}
		if err != nil {
			return err
		}
		a.target.pop(1)
	}
	return a.match()
}

// follows reports whether t is the copier's, with a number that is new, if the
// given producer is.
func (a *aligner) follows(t *targetRun, producer producerKey) bool {
	return t.ours() && !t.again && (a.known(t) || t.producer == producer)
}

// place returns the run of the target that is the source's next record, -1 if
// there is none. Between two records of the source that stand side by side the
// copier wrote nothing else.
func (a *aligner) place() (int, error) {
	var fits []int
	s, ended := a.source.records[0], false
	passed, limit := int64(0), attachWindow
	a.scanned = 0
	for i := 0; i < limit && passed <= s.absent; i++ {
		a.scanned = i
		t, err := a.target.peek(i)
		if err != nil {
			return -1, err
		}
		if t == nil || t.gone && !t.again {
			ended = true // or what was there cannot be compared
			break
		}
		if !t.record() || t.again {
			continue
		}
		if t.hash == s.hash && a.between(i) <= s.absent {
			if fits = append(fits, i); len(fits) == 1 {
				limit = min(limit, i+attachRivals)
			}
		}
		if a.known(t) {
			passed++
		}
	}
	switch len(fits) {
	case 0:
		return -1, nil
	case 1:
		if ended && s.absent > 0 {
			return fits[0], a.distinct(fits[0])
		}
		return fits[0], nil
	}
	return a.choose(fits)
}

// distinct refuses run at as the source's next record if it may as well be one
// that the source has lost, as the same content comes more than once: all that
// follows on the target could be lost then.
func (a *aligner) distinct(at int) error {
	hash := a.target.runs[at].hash
	again := a.recent.find(hash) >= 0
	for k := 1; k < attachRun && !again; k++ {
		s, err := a.source.peek(k)
		if err != nil {
			return err
		}
		if s == nil {
			break
		}
		again = s.hash == hash
	}
	if !again {
		return nil
	}
	return undecided("target offset %d may be source offset %d, or an equal record that the source does not have any more",
		a.target.runs[at].offset, a.source.records[0].offset)
}

// between counts the records in front of run i that are the copier's if run i
// is.
func (a *aligner) between(i int) (n int64) {
	for j := range a.target.runs[:i] {
		if a.follows(&a.target.runs[j], a.target.runs[i].producer) {
			n += a.target.runs[j].n
		}
	}
	return n
}

// choose returns the one of several equal records that fits what follows.
func (a *aligner) choose(fits []int) (int, error) {
	var good []int
	for _, at := range fits {
		ok, err := a.leads(at)
		if err != nil {
			return -1, err
		}
		if ok {
			good = append(good, at)
		}
	}
	switch len(good) {
	case 0:
		return fits[0], nil // what follows will tell
	case 1:
		return good[0], nil
	}
	return -1, undecided("source offset %d equals target offsets %d and %d, and so does what follows",
		a.source.records[0].offset, a.target.runs[good[0]].offset, a.target.runs[good[1]].offset)
}

// leads reports whether the next records of the source can follow on the target,
// if the first of them is run at. Where several places are possible, all are
// followed.
func (a *aligner) leads(at int) (bool, error) {
	places := map[int]bool{at: true}
	for k := 1; k < attachRun; k++ {
		s, err := a.source.peek(k)
		if err != nil || s == nil {
			return true, err
		}
		want := *s
		next := map[int]bool{}
		for from := range places {
			open, err := a.successors(from, &want, next)
			if err != nil || open {
				return true, err
			}
		}
		if len(next) == 0 {
			return false, nil
		}
		places = next
	}
	return true, nil
}

// successors adds the places behind run from where want can be. It reports
// whether it may be somewhere that cannot be looked at.
func (a *aligner) successors(from int, want *sourceRecord, places map[int]bool) (open bool, err error) {
	passed, first := int64(0), a.target.runs[from].producer
	for i := from + 1; passed <= want.absent && i-from < attachRivals; i++ {
		t, err := a.target.peek(i)
		if err != nil || t == nil || t.gone {
			return true, err
		}
		if !t.record() || t.again {
			continue
		}
		if t.hash == want.hash {
			places[i] = true
		}
		if a.known(t) || t.producer == first {
			passed++
		}
	}
	return false, nil
}

// takeover refuses run at, the first of a producer that is not known yet, if it
// can as well be what repeats records that were matched before.
func (a *aligner) takeover(at int) error {
	first := a.target.runs[at]
	from := a.recent.find(first.hash)
	for n := 0; from >= 0; n++ {
		t, err := a.target.peek(at + n)
		if err != nil {
			return err
		}
		r := a.recent.get(from + n)
		if n == attachRun || t == nil || t.producer != first.producer || t.gone || r == nil {
			return undecided("target offset %d on, of producer id %d, may be new copies or second ones: the records are the same as those of source offset %d on",
				first.offset, first.producer.id, a.recent.get(from).offset)
		}
		if r.hash != t.hash {
			return nil
		}
	}
	return nil
}

// lacking explains what the target holds next, where that is no copy of the
// source's next record.
func (a *aligner) lacking() error {
	for n := 0; n == 0 || n < a.scanned; n++ {
		t := a.target.runs[0]
		switch {
		case a.follows(&t, stranger):
			if n > 0 {
				return nil
			}
			return a.leftover()
		case t.gone && !t.again:
			return nil
		case t.record() && !t.again:
			within := attachWindow
			if t.producer == a.passed {
				within = attachRun
			}
			if err := a.missing(&t, within); err != nil {
				return err
			}
		}
		if err := a.pass(1); err != nil {
			return err
		}
	}
	return nil
}

// missing returns an error if t is a later one of the source's next records: then
// the target lacks those before it.
func (a *aligner) missing(t *targetRun, within int) error {
	for k := 1; k < within; k++ {
		s, err := a.source.peek(k)
		if err != nil || s == nil {
			return err
		}
		if s.hash != t.hash {
			continue
		}
		if ok, err := a.goesOn(0, k); err != nil || !ok {
			if err != nil {
				return err
			}
			continue
		}
		return a.lacks(k, t)
	}
	return nil
}

// lacks is the error that the target does not have the source's next k records,
// though it has the one behind them.
func (a *aligner) lacks(k int, t *targetRun) error {
	first, last := a.source.records[0].offset, a.source.records[k-1].offset
	if k == 1 {
		return misaligned("the target lacks source offset %d: target offset %d holds source offset %d", first, t.offset, a.source.records[k].offset)
	}
	return misaligned("the target lacks source offsets [%d, %d), %d records: target offset %d holds source offset %d",
		first, last+1, k, t.offset, a.source.records[k].offset)
}

// goesOn reports whether the target from run i on and the source from record k
// on hold the same for as long as can be told, up to attachRun records.
func (a *aligner) goesOn(i, k int) (bool, error) {
	first := a.target.runs[i].producer
	for n := 0; n < attachRun; i++ {
		t, err := a.target.peek(i)
		if err != nil {
			return false, err
		}
		if t != nil && (!t.ours() || t.again) {
			continue
		}
		s, err := a.source.peek(k + n)
		if err != nil {
			return false, err
		}
		if s == nil || t == nil || t.gone || t.producer != first || n > 0 && s.absent > 0 {
			break
		}
		if t.hash != s.hash {
			return false, nil
		}
		n++
	}
	return true, nil
}

// leftover explains a record of the copier's that is not what the source has
// next, nor later: the source has lost it, if it has lost one there.
func (a *aligner) leftover() error {
	t, s := a.target.runs[0], &a.source.records[0]
	if err := a.missing(&t, attachWindow); err != nil {
		return err
	}
	hidden, n := false, int64(0) // what follows cannot be compared, or there is nothing
	for i := 0; n <= s.absent && !hidden; i++ {
		t, err := a.target.peek(i)
		if err != nil {
			return err
		}
		switch {
		case t == nil || t.gone && !t.again:
			hidden = true
		case a.follows(t, stranger):
			n += t.n
		}
	}
	if s = &a.source.records[0]; hidden && s.absent > 0 {
		s.absent--
		err := a.orphan(&t)
		a.target.pop(1)
		return err
	}
	if len(a.target.runs) > 1 && len(a.source.records) > 1 {
		if same, err := a.goesOn(1, 1); err != nil || same {
			return firstOf(err, misaligned("target offset %d holds another record than source offset %d; what follows is the same", t.offset, s.offset))
		}
	}
	return misaligned("target offset %d was written by the copier, and is not what the source has from offset %d on", t.offset, s.offset)
}

func firstOf(err error, other *alignError) error {
	if err != nil {
		return err
	}
	return other
}

// orphans explains all that is left of the target: nothing of it is what the
// source has next.
func (a *aligner) orphans() error {
	for {
		t, err := a.target.peek(0)
		if err != nil || t == nil {
			return err
		}
		if a.follows(t, stranger) {
			a.counts.tail += t.n
			err = a.orphan(t)
		} else {
			err = a.other(t)
		}
		if err != nil {
			return err
		}
		a.target.pop(1)
	}
}

// A placing says what the next places of the copier's held, up to a record that
// is there.
type placing struct {
	gone    int64 // places
	seen    int64 // records of the copier's between them, which the source has lost
	records int64 // of the source, that stood in the places; the others it has lost
	next    int   // the run behind; -1: there is none

	producer producerKey // that is the copier's, beside those that are known
}

// places explains a run of the copier's of which the target has no more than
// the places: it was the source's next records, or some that the source has lost
// as well.
func (a *aligner) places(producer producerKey) error {
	p, err := a.placing(producer)
	if err != nil {
		return err
	}
	lost := p.gone - p.records
	for lost+p.records+p.seen > 0 {
		t, err := a.target.peek(0)
		if err != nil {
			return err
		}
		switch {
		case !a.follows(t, producer) && !a.follows(t, p.producer):
			err = a.pass(1)
		case !t.gone && p.seen == 0:
			return nil // no more is known than that it is no place
		case !t.gone:
			p.seen--
			err = a.orphanFirst(t.n)
		case lost > 0:
			n := min(lost, t.n)
			lost -= n
			err = a.orphanFirst(n)
		default:
			p.records--
			err = a.match()
		}
		if err != nil {
			return err
		}
	}
	if p.next >= 0 {
		a.source.records[0].absent = 0 // all that stood in front of it is explained
	}
	return nil
}

// orphanFirst books the target's next n offsets, of one run, as the copier's
// without a source.
func (a *aligner) orphanFirst(n int64) error {
	a.target.split(0, a.target.runs[0].offset+n)
	t := a.target.runs[0]
	a.target.pop(1)
	return a.orphan(&t)
}

// placing finds the next record of the copier's that the source still has, and
// what must have stood in front of it.
func (a *aligner) placing(producer producerKey) (placing, error) {
	p := placing{next: -1, producer: producer}
	begun := map[producerKey]placing{} // of producers that are not known, if they are the copier's
	for i := 0; i < attachWindow; i++ {
		t, err := a.target.peek(i)
		if err != nil {
			return p, err
		}
		if t == nil {
			break
		}
		mine := a.follows(t, producer)
		switch {
		case t.again || !t.ours():
			continue
		case t.gone && mine:
			p.gone += t.n
			continue
		}
		other := begun[t.producer]
		if t.gone {
			other.gone += t.n
			begun[t.producer] = other
			continue
		}
		records, room, err := a.placesOf(p.gone+other.gone, p.seen+other.seen, i)
		if records >= 0 || err != nil {
			p.gone, p.seen, p.records, p.next = p.gone+other.gone, p.seen+other.seen, records, i
			if !mine {
				p.producer = t.producer
			}
			return p, err
		}
		if !mine {
			other.seen++
			begun[t.producer] = other
			continue
		}
		if p.seen++; p.seen > room {
			if p.gone > attachWindow {
				break // the source has more of it than can be read ahead
			}
			return p, a.unplaced(p.gone, i)
		}
	}
	if p.seen > 0 {
		return a.placingAtEnd(p)
	}
	available, err := a.available(min(p.gone, attachWindow/2))
	if p.records = available; available > 0 {
		p.gone = available
	}
	return p, err
}

// placingAtEnd is placing where no record behind the places is one that the
// source still has: as few of its records as possible stood there.
func (a *aligner) placingAtEnd(p placing) (placing, error) {
	room := int64(0)
	for p.records = 0; p.records < p.gone; p.records++ {
		s, err := a.source.peek(int(p.records))
		if err != nil || s == nil {
			return p, err
		}
		if room += s.absent; p.gone-p.records+p.seen <= room {
			return p, nil
		}
	}
	return p, nil
}

// available returns how many of the source's next n records there are.
func (a *aligner) available(n int64) (int64, error) {
	for k := range n {
		if s, err := a.source.peek(int(k)); err != nil || s == nil {
			return k, err
		}
	}
	return n, nil
}

// placesOf returns how many records of the source stood in the places in front
// of run next, -1 if run next cannot be one of the source's next records; and
// how many records the source has lost there.
func (a *aligner) placesOf(gone, seen int64, next int) (found, room int64, err error) {
	found = -1
	for k := int64(0); k <= gone && k < attachWindow; k++ {
		s, err := a.source.peek(int(k))
		if err != nil {
			return -1, room, err
		}
		if s == nil { // what the source had behind may be anything
			return found, math.MaxInt64, nil
		}
		room += s.absent
		if a.target.runs[next].hash != s.hash || gone-k+seen > room {
			continue
		}
		ok, err := a.goesOn(next, int(k))
		if err != nil {
			return -1, room, err
		}
		if ok && found >= 0 {
			return -1, room, undecided("target offset %d may be source offset %d or another one that is equal", a.target.runs[next].offset, s.offset)
		}
		if ok {
			found = k
		}
	}
	return found, room, nil
}

// unplaced is the error that run next of the target has no partner where the
// places in front of it leave it one.
func (a *aligner) unplaced(gone int64, next int) error {
	t := a.target.runs[next]
	for k := int(gone) + 1; k < attachWindow; k++ {
		s, err := a.source.peek(k)
		if err != nil {
			return err
		}
		if s == nil {
			break
		}
		if s.hash == t.hash {
			return misaligned("the target lacks records between source offsets %d and %d: its log has only %d places for them in front of target offset %d",
				a.source.records[0].offset, s.offset, gone, t.offset)
		}
	}
	return misaligned("target offset %d was written by the copier, and is not what the source has from offset %d on", t.offset, a.source.records[0].offset)
}

// unknownPlaces explains places of a producer that is not known to be the
// copier's: it is, if one of its next records that are there is the source's.
func (a *aligner) unknownPlaces(producer producerKey) error {
	if producer == a.anchor.producer {
		return a.places(producer)
	}
	next := map[uint64]bool{}
	for i := 1; i < attachWindow && len(next) < attachRun; i++ {
		t, err := a.target.peek(i)
		if err != nil {
			return err
		}
		if t == nil {
			break
		}
		if t.producer == producer && t.record() {
			next[t.hash] = true
		}
	}
	for k := 0; len(next) > 0 && k < attachWindow; k++ {
		s, err := a.source.peek(k)
		if err != nil {
			return err
		}
		if s == nil {
			break
		}
		if next[s.hash] {
			return a.places(producer)
		}
	}
	return a.pass(1)
}
