package replicate

import (
	"errors"
	"fmt"

	"apograph/ledger"
)

// attachSides are the two sides of one partition. Each can be read as often as
// it takes; stop ends a reading.
type attachSides struct {
	source func(from int64) (next func() (*unit, error), stop func())
	target func() (next func() (*targetBatch, error), stop func())

	logStart               int64 // of the source
	targetStart, targetEnd int64
}

// errNothingMatches says that no record of the target is one of the source.
var errNothingMatches = errors.New("no record of the target equals one that the source has")

// A beginning is where the alignment of two logs begins.
type beginning struct {
	anchor  anchor
	skipped int64 // records of the source in front of the anchor
	start   int64 // of the scope
	whole   bool  // the target has all that it ever held in front of the anchor
}

// notOnTarget counts records of the source in front of the scope that the target
// never had, or that somebody took out of its log.
func (b *beginning) notOnTarget() int64 {
	if !b.whole {
		return 0
	}
	return b.skipped
}

// certain reports whether the beginning needs no further proof: both logs begin
// with their first record, and it is the same.
func (b *beginning) certain(s *attachSides) bool {
	return s.logStart == 0 && s.targetStart == 0 && b.skipped == 0 && b.anchor.sequence == 0 && b.anchor.room == 0
}

// A sighting is a record of one side that was also seen on the other.
type sighting struct {
	record  sourceRecord
	skipped int64 // records of the source in front
	room    int64 // source offsets in front that held a record once, or may have
	run     targetRun
}

// possible reports whether the source record can be the one that was sent under
// the run's number: so many records of the copier's are in front of it, each of
// another source offset.
func (x *sighting) possible() bool { return x.record.offset >= int64(x.run.sequence) }

// maxEqual bounds how many places of the same record an index knows.
const maxEqual = 256

// A headIndex finds records of the first attachWindow of one side by hash.
type headIndex struct {
	records []sighting
	byHash  map[uint64][]int
}

func (h *headIndex) add(hash uint64, x sighting) {
	if at := h.byHash[hash]; len(at) < maxEqual {
		h.byHash[hash] = append(at, len(h.records))
	}
	h.records = append(h.records, x)
}

// A locator looks for the first record that stands on both sides.
type locator struct {
	source *sourceWindow
	target *targetWindow

	sources, targets headIndex
	skipped, room    int64
	hole             int64 // where the target first holds nothing
	begun            map[producerKey]beginningOf
	found            *sighting
}

// A beginningOf is what of a producer the target holds first.
type beginningOf struct {
	run  targetRun
	gone bool // places of it are empty, up to where the target was read
}

// locate returns where the alignment begins.
func (s *attachSides) locate() (beginning, error) {
	nextSource, stopSource := s.source(s.logStart)
	defer stopSource()
	nextTarget, stopTarget := s.target()
	defer stopTarget()
	l := &locator{
		source: &sourceWindow{read: nextSource}, target: newTargetWindow(nextTarget, s.targetStart, s.targetEnd),
		room: s.logStart, hole: s.targetEnd,
		begun: map[producerKey]beginningOf{}, sources: headIndex{byHash: map[uint64][]int{}}, targets: headIndex{byHash: map[uint64][]int{}},
	}
	found, err := l.search()
	if err != nil {
		return beginning{}, err
	}
	return l.beginningAt(found, s)
}

// search reads both sides in turn until a record was seen on both.
func (l *locator) search() (*sighting, error) {
	for {
		sources, err := l.readSource()
		if err != nil || l.found != nil {
			return l.found, err
		}
		targets, err := l.readTarget()
		if err != nil || l.found != nil {
			return l.found, err
		}
		if !sources && !targets {
			return nil, errNothingMatches
		}
	}
}

// locateStep is how many records of one side are read before the other has its
// turn.
const locateStep = 512

// readSource reads some of the source. It reports whether there was any.
func (l *locator) readSource() (bool, error) {
	for n := range locateStep {
		r, err := l.source.peek(0)
		if err != nil || r == nil {
			return n > 0, err
		}
		l.room += r.absent
		x := sighting{record: *r, skipped: l.skipped, room: l.room}
		for _, i := range l.targets.byHash[r.hash] {
			seen := l.targets.records[i]
			if x.run = seen.run; x.possible() {
				l.found = &x
				return true, nil
			}
		}
		x.record.unit, x.record.before = nil, nil
		if len(l.sources.records) < attachWindow {
			l.sources.add(r.hash, x)
		}
		l.skipped++
		l.source.pop()
	}
	return true, nil
}

// readTarget reads some of the target.
func (l *locator) readTarget() (bool, error) {
	for n := range locateStep {
		t, err := l.target.peek(0)
		if err != nil || t == nil {
			return n > 0, err
		}
		if t.gone || t.hole {
			l.hole = min(l.hole, t.offset)
		}
		first, seen := l.begun[t.producer]
		if !seen && t.ours() {
			first = beginningOf{run: *t}
		}
		if first.gone = first.gone || t.gone; t.ours() {
			l.begun[t.producer] = first
		}
		if t.record() {
			x := sighting{run: *t}
			for _, i := range l.sources.byHash[t.hash] {
				seen := l.sources.records[i]
				if x.record, x.skipped, x.room = seen.record, seen.skipped, seen.room; x.possible() {
					l.found = &x
					return true, nil
				}
			}
			if len(l.targets.records) < attachWindow {
				l.targets.add(t.hash, x)
			}
		}
		l.target.pop(1)
	}
	return true, nil
}

// beginningAt returns the beginning that a sighting stands for. Where places on
// the target are empty, records of the source in front of it may have stood
// there: all is aligned then from the first number on.
func (l *locator) beginningAt(x *sighting, s *attachSides) (beginning, error) {
	b := beginning{anchor: anchor{
		source: x.record.offset, target: x.run.offset, producer: x.run.producer, sequence: x.run.sequence, room: x.room,
	}, skipped: x.skipped, start: s.logStart}
	first := l.begun[x.run.producer]
	if x.skipped > 0 && first.gone && first.run.sequence == 0 && len(l.sources.records) > 0 {
		at := &l.sources.records[0]
		b.skipped = 0
		b.anchor.source, b.anchor.target, b.anchor.sequence = at.record.offset, first.run.offset, 0
		b.anchor.open, b.anchor.room = true, at.room
	}
	b.whole = s.targetStart == 0 && l.hole >= b.anchor.target
	if b.skipped == 0 {
		return b, nil
	}
	b.start = b.anchor.source
	b.anchor.room = 0 // a record in front would be one of those that the source has there
	b.anchor.skipped = map[uint64]bool{}
	for _, x := range l.sources.records[:min(b.skipped, int64(len(l.sources.records)))] {
		b.anchor.skipped[x.record.hash] = true
		b.anchor.below = append(b.anchor.below, x.record.offset)
	}
	if n := int64(first.run.sequence); b.whole && n > 0 {
		return b, b.lacks(b.skipped-ahead(b.anchor.sequence, 0), n,
			fmt.Sprintf("its log has its beginning, and target offset %d, the copier's first there, has the number %d", first.run.offset, n))
	}
	return b, nil
}

// lacks is the error that the target does not have n of the records in front of
// the anchor, from the one with an index on.
func (b *beginning) lacks(index, n int64, why string) error {
	below := b.anchor.below
	switch {
	case index < 0 || index+n > int64(len(below)):
		return misaligned("the target lacks %d records that stood in front of source offset %d: %s", n, b.anchor.source, why)
	case n == 1:
		return misaligned("the target lacks source offset %d: %s", below[index], why)
	}
	return misaligned("the target lacks source offsets [%d, %d), %d records: %s", below[index], below[index+n-1]+1, n, why)
}

// A rivalWatch looks for further places where an alignment could begin: where
// the records with which it begins come again.
type rivalWatch struct {
	source, target *matcher
	rivals         []anchor
	at             anchor
	room           int64 // of a rival on the target
	many           bool
}

// maxRivals bounds how many other beginnings are tried.
const maxRivals = 8

func (s *attachSides) watch(b *beginning) (*rivalWatch, error) {
	next, stop := s.source(b.anchor.source)
	defer stop()
	w := sourceWindow{read: next}
	watch := &rivalWatch{at: b.anchor, room: b.anchor.source - b.skipped}
	var pattern []uint64
	side := 0 // how many stand side by side
	for i := range 4 * attachRun {
		r, err := w.peek(i)
		if err != nil {
			return nil, err
		}
		if r == nil {
			break
		}
		if i > 0 && r.absent > 0 && side == 0 {
			side = i
		}
		pattern = append(pattern, r.hash)
	}
	if side == 0 {
		side = len(pattern)
	}
	watch.source, watch.target = newMatcher(pattern), newMatcher(pattern[:side])
	return watch, nil
}

func (w *rivalWatch) sawSource(r recordInfo) {
	if at, ok := w.source.feed(r.hash, targetRun{offset: r.offset}); ok {
		w.addSource(at.offset)
	}
}

func (w *rivalWatch) addSource(offset int64) {
	if offset == w.at.source || offset < int64(w.at.sequence) {
		return
	}
	rival := w.at
	rival.source, rival.room = offset, offset
	w.add(rival)
}

func (w *rivalWatch) sawTarget(t targetRun) {
	if at, ok := w.target.feed(t.hash, t); ok {
		w.addTarget(at)
	}
}

func (w *rivalWatch) addTarget(t targetRun) {
	if t.offset == w.at.target || w.at.source < int64(t.sequence) {
		return
	}
	rival := w.at
	rival.target, rival.producer, rival.sequence, rival.room = t.offset, t.producer, t.sequence, w.room
	w.add(rival)
}

func (w *rivalWatch) add(rival anchor) {
	if len(w.rivals) == maxRivals {
		w.many = true
		return
	}
	w.rivals = append(w.rivals, rival)
}

// outweighs reports whether an alignment of n records needs no heed of another
// one of so many: chance repeats a few, and not half.
func outweighs(n, other int64) bool { return n >= attachRun/2 && 2*other < n }

// close notes the places at the ends where the pattern begins and the log ends.
func (w *rivalWatch) close(copied int64) {
	for _, at := range w.source.partial() {
		if !outweighs(copied, at.n) {
			w.addSource(at.run.offset)
		}
	}
	for _, at := range w.target.partial() {
		if !outweighs(copied, at.n) {
			w.addTarget(at.run)
		}
	}
}

// A matcher finds a pattern in a stream (Knuth, Morris, Pratt).
type matcher struct {
	pattern []uint64
	fail    []int
	state   int
	recent  []targetRun // the last ones that came
	end     int
}

func newMatcher(pattern []uint64) *matcher {
	m := &matcher{pattern: pattern, fail: make([]int, len(pattern)+1), recent: make([]targetRun, len(pattern))}
	for i, k := 1, 0; i < len(pattern); i++ {
		for k > 0 && pattern[i] != pattern[k] {
			k = m.fail[k]
		}
		if pattern[i] == pattern[k] {
			k++
		}
		m.fail[i+1] = k
	}
	return m
}

// feed takes the next element, and returns the first one of the pattern if it
// has just been completed.
func (m *matcher) feed(hash uint64, t targetRun) (targetRun, bool) {
	if len(m.pattern) == 0 {
		return targetRun{}, false
	}
	m.recent[m.end%len(m.pattern)] = t
	m.end++
	if m.state == len(m.pattern) {
		m.state = m.fail[m.state]
	}
	for m.state > 0 && m.pattern[m.state] != hash {
		m.state = m.fail[m.state]
	}
	if m.pattern[m.state] == hash {
		m.state++
	}
	if m.state < len(m.pattern) {
		return targetRun{}, false
	}
	return m.back(len(m.pattern)), true
}

func (m *matcher) back(n int) targetRun { return m.recent[(m.end-n)%len(m.pattern)] }

// A partialMatch is how much of the pattern stands at a stream's end.
type partialMatch struct {
	run targetRun
	n   int64
}

// partial returns all of them, the longest first.
func (m *matcher) partial() (all []partialMatch) {
	for k := m.state; k > 0; k = m.fail[k] {
		if k < len(m.pattern) {
			all = append(all, partialMatch{m.back(k), int64(k)})
		}
	}
	return all
}

// An alignment is what came of two sides.
type alignment struct {
	counts attachCounts
	end    ledger.Position
}

// attempt aligns both sides from a place on.
func (s *attachSides) attempt(at anchor, start int64, sink attachSink, watch *rivalWatch) (alignment, error) {
	nextSource, stopSource := s.source(start)
	defer stopSource()
	nextTarget, stopTarget := s.target()
	defer stopTarget()
	source := &sourceWindow{read: nextSource}
	a := newAligner(source, newTargetWindow(nextTarget, s.targetStart, s.targetEnd), at,
		ledger.Position{Source: start, Target: s.targetStart}, sink)
	if watch != nil {
		source.seen, a.ours, a.inexact = watch.sawSource, watch.sawTarget, true
	}
	err := a.align()
	if err == nil && watch != nil {
		err = drain(source)
	}
	if err == nil {
		err = a.doubtful()
	}
	return alignment{a.counts, a.position}, err
}

// drain reads the rest of the source, for whoever watches it.
func drain(w *sourceWindow) error {
	for {
		w.records = nil
		if r, err := w.peek(0); err != nil || r == nil {
			return err
		}
	}
}

// reconstruct finds out where both sides begin and aligns them. The books go to
// sink; with an error they are worth nothing.
func (s *attachSides) reconstruct(b *beginning, sink attachSink) (alignment, error) {
	if b.certain(s) {
		return s.attempt(b.anchor, b.start, sink, nil)
	}
	watch, err := s.watch(b)
	if err != nil {
		return alignment{}, err
	}
	got, err := s.attempt(b.anchor, b.start, sink, watch)
	if err != nil {
		return got, err
	}
	if n := got.counts.jumped; n > 0 && b.notOnTarget() > 0 {
		return got, b.lacks(b.skipped-n, n, fmt.Sprintf("by its numbers the copier wrote as many more than there are in front of target offset %d", got.counts.jumpedTo))
	}
	if got.counts.tail > 0 && got.counts.copied < attachRun/2 {
		return got, undecided("only %d records are on both sides, and the copier wrote more behind them that the source does not have", got.counts.copied)
	}
	watch.close(got.counts.copied)
	if watch.many {
		return got, undecided("source offset %d is the first that the target has, and the same records stand in many other places", b.anchor.source)
	}
	for _, rival := range watch.rivals {
		if err := s.dismiss(rival, got.counts.copied); err != nil {
			return got, err
		}
	}
	return got, nil
}

// dismiss returns an error if the alignment can begin at another place as well.
func (s *attachSides) dismiss(rival anchor, copied int64) error {
	other, err := s.attempt(rival, rival.source, attachSink{}, nil)
	var refusal *alignError
	switch {
	case errors.As(err, &refusal) && !refusal.undecided:
		return nil
	case err != nil && refusal == nil:
		return err
	case refusal == nil && (other.counts.tail > 0 || outweighs(copied, other.counts.copied)):
		return nil
	}
	return undecided("target offset %d equals source offset %d, and the copy can begin there as well", rival.target, rival.source)
}
