package replicate

import (
	"cmp"
	"fmt"

	"apograph/ledger"
)

// An aligner rebuilds the books of a copy from what stands on both sides. It is
// pure: two streams of records go in, the entries of the books come out, in
// order.
//
// What it relies on: a copier puts the source's committed records on the target
// in order, each once, numbered one by one under a producer id of its own, and
// nothing between two of them. So each record of the source must be on the
// target in its place. What the target has beside them is explained by who wrote
// it, under which number, and by what the source does not have any more; what
// cannot be explained, or can be in more than one way, is an [alignError].
type aligner struct {
	source *sourceWindow
	target *targetWindow
	anchor anchor
	attachBooks

	next    map[producerKey]int32 // of the producers that are the copier's
	recent  recentRecords
	fronted int64             // orphans in front of the first match
	scanned int               // runs among which the source's next record was not found
	passed  producerKey       // of the run that was passed over last
	hole    *targetRun        // the first behind the anchor of which nobody can tell whose it was
	atHole  int64             // orphans up to there
	holed   bool              // a target offset was passed that holds nothing
	inexact bool              // not every record of the source follows from the one before
	ours    func(t targetRun) // each record of the copier's that is there, in order; may be nil
}

// An anchor is the first place where both sides are known to hold the same
// record.
type anchor struct {
	source, target int64
	producer       producerKey
	sequence       int32
	room           int64 // source offsets below of which the target may have records that the source has lost

	open bool // what stands there need not be the same record: the first one may be gone

	// skipped are the records of the source below the anchor, by hash, as far
	// as they are known; below are their offsets.
	skipped map[uint64]bool
	below   []int64
}

// partner returns the source's record below the anchor whose place in the order
// is that of a number; false if it is not known, or there is none.
func (a *anchor) partner(sequence int32) (int64, bool) {
	index := int64(len(a.below)) - ahead(a.sequence, sequence)
	if index < 0 || len(a.below) == 0 || len(a.below) == attachWindow { // there are more
		return 0, false
	}
	return a.below[index], true
}

// An alignError says that source and target do not align, and where.
type alignError struct {
	undecided bool // more than one alignment fits
	detail    string
}

func (e *alignError) Error() string { return e.detail }

func misaligned(format string, args ...any) *alignError {
	return &alignError{detail: fmt.Sprintf(format, args...)}
}

func undecided(format string, args ...any) *alignError {
	return &alignError{undecided: true, detail: "cannot be decided: " + fmt.Sprintf(format, args...)}
}

// newAligner returns an aligner whose books begin at the given place. The source
// begins with its first record that is in scope, the target with its log.
func newAligner(source *sourceWindow, target *targetWindow, at anchor, begin ledger.Position, sink attachSink) *aligner {
	return &aligner{
		source: source, target: target, anchor: at, attachBooks: attachBooks{sink: sink, position: begin},
		next: map[producerKey]int32{},
	}
}

// align goes through both sides to the target's end.
func (a *aligner) align() error {
	if err := a.beforeAnchor(); err != nil {
		return err
	}
	if s, err := a.source.peek(0); err != nil {
		return err
	} else if s != nil && !a.anchor.open {
		s.absent = 0 // there the alignment begins
	}
	for {
		t, err := a.target.peek(0)
		if err != nil || t == nil {
			return firstError(err, a.finish)
		}
		s, err := a.source.peek(0)
		if err != nil {
			return err
		}
		if err := a.step(t, s); err != nil {
			return err
		}
	}
}

func firstError(err error, f func() error) error {
	if err != nil {
		return err
	}
	return f()
}

// step explains at least the target's next offset; s is the source's next
// record, nil if there is none.
func (a *aligner) step(t *targetRun, s *sourceRecord) error {
	switch {
	case !t.ours():
		return a.pass(1)
	case t.again:
		return a.pass(1)
	case s == nil:
		return a.orphans()
	case t.gone && !a.known(t):
		return a.unknownPlaces(t.producer)
	case t.gone:
		return a.places(t.producer)
	case t.hash == s.hash && s.absent == 0 && (a.known(t) || t.offset == a.anchor.target && !a.anchor.open):
		return a.match()
	}
	return a.search()
}

// known reports whether t's producer is known to be the copier's.
func (a *aligner) known(t *targetRun) bool {
	_, known := a.next[t.producer]
	return known
}

// beforeAnchor explains what the target holds in front of the anchor.
func (a *aligner) beforeAnchor() error {
	var refusal error // that it may be possible to put better
	for {
		t, err := a.target.peek(0)
		if err != nil || t == nil || t.offset >= a.anchor.target {
			return cmp.Or(err, refusal)
		}
		a.target.split(0, a.anchor.target)
		t, _ = a.target.peek(0)
		if t.producer == a.anchor.producer && !t.again && ahead(t.sequence, a.anchor.sequence) < 0 {
			var exact bool
			if exact, err = a.front(t); exact {
				return err
			}
			refusal = cmp.Or(refusal, err)
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

// front counts one of the copier's runs in front of the anchor. It returns an
// error if the source has lost nothing that it could be, and whether the error
// is as exact as it can be.
func (a *aligner) front(t *targetRun) (exact bool, err error) {
	if !t.record() {
		return false, nil
	}
	a.fronted++
	partner, known := a.anchor.partner(t.sequence)
	switch {
	case a.anchor.skipped[t.hash]:
		return true, undecided("target offset %d equals a record that the source has in front of offset %d", t.offset, a.anchor.source)
	case a.fronted <= a.anchor.room:
		return false, nil
	case known:
		return true, misaligned("target offset %d holds another record than source offset %d", t.offset, partner)
	}
	return len(a.anchor.below) == 0, misaligned("target offset %d was written by the copier in front of source offset %d, and there is no room on the source for it",
		t.offset, a.anchor.source)
}

// match books the next record of both sides as copied.
func (a *aligner) match() error {
	t, s := &a.target.runs[0], &a.source.records[0]
	if err := a.numbered(t.producer, t.sequence); err != nil {
		return err
	}
	if err := a.copied(s); err != nil {
		return err
	}
	a.next[t.producer] = advance(t.sequence, 1)
	a.recent.add(recentRecord{hash: s.hash, offset: s.offset, producer: t.producer, sequence: t.sequence})
	if a.ours != nil && !t.gone {
		a.ours(*t)
	}
	if t.gone {
		a.counts.byPlace++
	}
	a.holed = a.holed || t.gone
	a.inexact = a.inexact || s.absent > 0 || t.gone
	a.counts.copied++
	a.target.split(0, t.offset+1)
	a.target.pop(1)
	a.source.pop()
	return nil
}

// pass explains the target's next n runs without a record of the source.
func (a *aligner) pass(n int) error {
	for range n {
		t, err := a.target.peek(0)
		if err != nil {
			return err
		}
		if err := a.other(t); err != nil {
			return err
		}
		a.passed = t.producer
		a.target.pop(1)
	}
	return nil
}

// other books a run that is no copy: a second one, or somebody else's.
func (a *aligner) other(t *targetRun) error {
	switch {
	case t.again && a.known(t):
		return a.repeated(t)
	case t.record():
		a.inexact = true
		if again := a.recent.again(t.hash); again != nil && again.offset >= 0 {
			return a.duplicate(t, again.offset)
		}
	}
	a.holed = a.holed || t.hole || t.gone
	if t.hole && a.hole == nil && t.offset >= a.anchor.target {
		hole := *t
		a.hole, a.atHole = &hole, a.counts.orphans
	}
	a.counts.foreign += t.n
	return a.note(ledger.Entry{Tile: ledger.Foreign, Target: ledger.Range{Start: t.offset, End: t.offset + t.n}})
}

// repeated books a run with numbers that were used before.
func (a *aligner) repeated(t *targetRun) error {
	for i := range t.n {
		one := *t
		one.offset, one.n, one.sequence = t.offset+i, 1, advance(t.sequence, i)
		first := a.recent.numbered(one.producer, one.sequence)
		var err error
		switch {
		case first == nil || t.record() && first.hash != t.hash:
			a.counts.foreign++
			a.counts.unknown++
			err = a.note(ledger.Entry{Tile: ledger.Foreign, Target: ledger.Range{Start: one.offset, End: one.offset + 1}})
		case first.offset < 0: // of one that the source has no more
			a.counts.orphans++
			err = a.note(ledger.Entry{Tile: ledger.Orphan, Target: ledger.Range{Start: one.offset, End: one.offset + 1}})
		default:
			err = a.duplicate(&one, first.offset)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (a *aligner) duplicate(t *targetRun, origin int64) error {
	a.counts.duplicates += t.n
	return a.note(ledger.Entry{
		Tile: ledger.Duplicate, Target: ledger.Range{Start: t.offset, End: t.offset + t.n},
		Origin: ledger.Range{Start: origin, End: origin + 1},
	})
}

// orphan books a run of the copier's that the source does not have any more.
func (a *aligner) orphan(t *targetRun) error {
	if err := a.numbered(t.producer, t.sequence); err != nil {
		return err
	}
	a.next[t.producer] = advance(t.sequence, t.n)
	a.counts.orphans += t.n
	a.inexact = true
	if t.gone {
		a.holed = true
		a.counts.byPlace += t.n
	} else {
		a.recent.add(recentRecord{hash: t.hash, offset: -1, producer: t.producer, sequence: t.sequence})
		if a.ours != nil {
			a.ours(*t)
		}
	}
	return a.note(ledger.Entry{Tile: ledger.Orphan, Target: ledger.Range{Start: t.offset, End: t.offset + t.n}})
}

// numbered notes under which number the copier's next record was sent.
func (a *aligner) numbered(producer producerKey, sequence int32) error {
	a.jump(producer, sequence)
	p := ledger.Producer{ID: producer.id, Epoch: producer.epoch, Sequence: sequence, Appended: a.position.Appended}
	switch {
	case !a.open:
		p.Appended = 0
		return a.begin(p)
	case producer.id == a.current.ID && producer.epoch == a.current.Epoch && a.current.Next(a.position.Appended) == sequence:
		return nil
	}
	if err := a.flush(); err != nil {
		return err
	}
	a.current = p
	if a.sink.produce == nil {
		return nil
	}
	return a.sink.produce(p)
}

// jump counts the numbers between the producer's last record and its next one.
func (a *aligner) jump(producer producerKey, sequence int32) {
	next, known := a.next[producer]
	if n := ahead(sequence, next); known && n > 0 && !a.holed {
		a.counts.jumped += n
		a.counts.jumpedTo = a.target.runs[0].offset
	}
}

// finish books what is at hand at the target's end.
func (a *aligner) finish() error {
	if !a.open {
		return errNothingMatches
	}
	return a.flush()
}

// doubtful returns an error if what was found rests on the content of records
// alone, and content tells little: many records have that of another one.
func (a *aligner) doubtful() error {
	if h := a.hole; h != nil && a.counts.orphans > a.atHole {
		return undecided("target offsets [%d, %d) hold nothing, no number tells whose they were, and behind them stand records that the source does not have",
			h.offset, h.offset+h.n)
	}
	r := &a.source.repeats
	if a.recent.repeats.much() {
		r = &a.recent.repeats
	}
	if !a.inexact || !r.much() {
		return nil
	}
	return undecided("%d of %d records have the content of another one, and the rest of the evidence is gone or was written over", r.repeat, r.records)
}
