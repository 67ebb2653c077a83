package replicate

import (
	"slices"

	"apograph/ledger"
)

// A takenAnchor is the first record of the source that the target has.
type takenAnchor struct {
	source, target int64
	skipped        int64 // records of the source in front of it
	holes          int64 // target offsets in front of it that hold nothing
}

// inHoles returns the anchor that holds where what the source has in front of one
// stood in holes of the target, and nothing else does: there all is aligned from
// the first offset on.
func (x takenAnchor) inHoles(targetStart int64) takenAnchor {
	if x.skipped > 0 && x.skipped <= x.holes && x.skipped < attachWindow/2 && targetStart+x.holes == x.target {
		return takenAnchor{target: targetStart}
	}
	return x
}

// A takenHead finds records at the beginning of one side by hash.
type takenHead struct {
	records []takenHeadRecord // at most attachWindow
	byHash  map[uint64][]int  // at most maxEqual each
	read    int               // so many in all
}

type takenHeadRecord struct {
	offset  int64
	sums    // of the source's, hash alone
	aborted bool
	before  int64 // records of the source in front of it; of the target's, offsets without a record
}

func (h *takenHead) add(r takenHeadRecord) {
	if h.read++; len(h.records) == attachWindow {
		return
	}
	for i, hash := range []uint64{r.hash, r.bare} {
		if at := h.byHash[hash]; len(at) < maxEqual && (i == 0 || r.bare != 0 && r.bare != r.hash) {
			h.byHash[hash] = append(at, len(h.records))
		}
	}
	h.records = append(h.records, r)
}

// A takenLocator looks for the anchor.
type takenLocator struct {
	source  *takenWindow
	target  *copyWindow
	sources takenHead
	targets takenHead
	skipped int64
	holes   int64 // of the target, as far as it was read
	hints   map[int64]int64

	found *takenAnchor
	weak  []weakAnchor // none stands behind another one on the target, and not before it on the source
}

// A weakAnchor is a record that both sides have, where what follows does not fit:
// the copy has a gap behind it, or something between.
type weakAnchor struct {
	takenAnchor
	i, j int // which record of each side it is
	fit  int // so many do
}

// maxWeak bounds how many are known.
const maxWeak = 64

// locate returns where the copy begins.
func (s *takeoverSides) locate() (takenAnchor, error) {
	nextSource, stopSource := s.source(s.logStart)
	defer stopSource()
	nextTarget, stopTarget := s.target()
	defer stopTarget()
	l := &takenLocator{
		source: &takenWindow{read: nextSource}, target: &copyWindow{read: nextTarget, at: s.targetStart, end: s.targetEnd},
		sources: takenHead{byHash: map[uint64][]int{}}, targets: takenHead{byHash: map[uint64][]int{}}, hints: s.hints,
	}
	for l.found == nil {
		sources, err := l.readSource()
		if err != nil {
			return takenAnchor{}, err
		}
		targets, err := l.readTarget()
		if err != nil {
			return takenAnchor{}, err
		}
		if !sources && !targets {
			break
		}
	}
	switch {
	case l.found != nil:
		return *l.found, nil
	case len(l.weak) > 0:
		return l.likeliest(), nil
	}
	return takenAnchor{}, errNothingMatches
}

func (l *takenLocator) likeliest() takenAnchor {
	best := l.weak[0]
	for _, w := range l.weak {
		if w.fit > best.fit {
			best = w
		}
	}
	return best.takenAnchor
}

// readSource reads some of the source. It reports whether there was any.
func (l *takenLocator) readSource() (bool, error) {
	for n := 0; n < locateStep && l.found == nil; n++ {
		r, err := l.source.peek(0)
		if err != nil || r == nil {
			return n > 0, err
		}
		i := l.sources.read
		x := takenHeadRecord{r.offset, sums{hash: r.hash}, r.aborted, l.skipped}
		if !r.aborted {
			l.skipped++
		}
		l.source.pop(1)
		l.sources.add(x)
		for _, j := range l.targets.byHash[x.hash] {
			if err := l.sighted(i, x, j, l.targets.records[j]); err != nil {
				return true, err
			}
		}
	}
	return true, nil
}

// readTarget reads some of the target.
func (l *takenLocator) readTarget() (bool, error) {
	for n := 0; n < locateStep && l.found == nil; n++ {
		t, err := l.target.peek(0)
		if err != nil || t == nil {
			return n > 0, err
		}
		x, j := takenHeadRecord{offset: t.offset, sums: t.sums, before: l.holes}, l.targets.read
		if t.kind == copyHole {
			l.holes += t.n
		}
		record := t.kind == copyRecord
		if l.target.pop(); !record {
			continue
		}
		l.targets.add(x)
		for _, i := range slices.Concat(l.sources.byHash[x.hash], l.sources.byHash[x.bare]) {
			if err := l.sighted(i, l.sources.records[i], j, x); err != nil {
				return true, err
			}
		}
	}
	return true, nil
}

// sighted takes record i of the source, which equals record j of the target, for
// the anchor, if what follows on the target fits, and nothing in front of it there
// is that record or one that the source has in front.
func (l *takenLocator) sighted(i int, source takenHeadRecord, j int, target takenHeadRecord) error {
	behind := func(w weakAnchor) bool { return w.i <= i && w.j < j }
	if l.found != nil || len(l.weak) == maxWeak || slices.ContainsFunc(l.weak, behind) {
		return nil
	}
	at := takenAnchor{source.offset, target.offset, source.before, target.before}
	hint, hinted := l.hints[target.offset]
	fit, fits, err := l.fits(i, j)
	switch {
	case err != nil:
		return err
	case hinted && hint == source.offset || fits && !hinted:
		l.found = &at
	default:
		l.weak = append(l.weak, weakAnchor{at, i, j, fit})
	}
	return nil
}

// fits reports whether the target from record j on can be a copy of the source
// from record i on, as far as it looks: the source's next records, or ones that
// come again; and how many are.
func (l *takenLocator) fits(i, j int) (n int, fits bool, err error) {
	seen := map[uint64]bool{}
	for ; n < takeoverRun; n++ {
		t, ok, err := l.targetAt(j + n)
		if err != nil || !ok {
			return n, err == nil, err
		}
		next, ok, err := l.pick(i, t.sums)
		if err != nil || !ok {
			return n, err == nil, err
		}
		switch {
		case next >= 0:
			i = next + 1
			seen[t.hash], seen[t.bare] = true, true
		case !seen[t.hash] && !seen[t.bare]:
			return n, false, nil
		}
	}
	return n, true, nil
}

// pick returns which of the source's records from i on a record of the target is,
// aborted ones left out; -1 if none. It reports false if they are not at hand.
func (l *takenLocator) pick(i int, t sums) (int, bool, error) {
	for {
		r, ok, err := l.sourceAt(i)
		if err != nil || !ok {
			return -1, false, err
		}
		switch {
		case t.equal(r.hash):
			return i, true, nil
		case !r.aborted:
			return -1, true, nil
		}
		i++
	}
}

// sourceAt returns record i of the source, as far as it is at hand.
func (l *takenLocator) sourceAt(i int) (takenHeadRecord, bool, error) {
	switch {
	case i < len(l.sources.records):
		return l.sources.records[i], true, nil
	case i < l.sources.read || i-l.sources.read > attachWindow:
		return takenHeadRecord{}, false, nil
	}
	r, err := l.source.peek(i - l.sources.read)
	if err != nil || r == nil {
		return takenHeadRecord{}, false, err
	}
	return takenHeadRecord{offset: r.offset, sums: sums{hash: r.hash}, aborted: r.aborted}, true, nil
}

// targetAt returns record j of the target, as far as it is at hand.
func (l *takenLocator) targetAt(j int) (takenHeadRecord, bool, error) {
	if j < len(l.targets.records) {
		return l.targets.records[j], true, nil
	}
	for i, n := 0, l.targets.read; n <= j && n-l.targets.read < attachWindow; i++ {
		t, err := l.target.peek(i)
		if err != nil || t == nil {
			return takenHeadRecord{}, false, err
		}
		if t.kind != copyRecord {
			continue
		}
		if n == j {
			return takenHeadRecord{offset: t.offset, sums: t.sums}, true, nil
		}
		n++
	}
	return takenHeadRecord{}, false, nil
}

// takeover aligns both sides from the anchor on. The books go to the sink; with
// an error they are worth nothing. It may begin them again.
func (s *takeoverSides) takeover(at takenAnchor, committed bool, sink attachSink) (*takeover, error) {
	start := s.startOf(at)
	nextSource, stopSource := s.source(start)
	defer stopSource()
	nextTarget, stopTarget := s.target()
	defer stopTarget()
	a := &takeover{
		sides: s, start: start, committed: committed, strange: map[int64]bool{}, runs: takenRuns{reached: start},
		attachBooks: attachBooks{sink: sink, position: ledger.Position{Source: start, Target: s.targetStart}},
		source:      &takenWindow{read: nextSource},
		target:      &copyWindow{read: nextTarget, at: s.targetStart, end: s.targetEnd},
	}
	if err := a.align(at.target); err != nil {
		return a, err
	}
	return a, s.rebook(a)
}
