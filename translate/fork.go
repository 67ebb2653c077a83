package translate

import (
	"errors"
	"math"
	"slices"
	"sort"

	"apograph/ledger"
)

// A fork is where a cut parts a source's log in two: up to an offset both are the
// same, and behind it the offsets of the log from before are those of other records.
// Leader epochs tell them apart, for an epoch's offsets are written once (KIP-101,
// KIP-320).
type fork struct {
	older, newer epochs
	since        epochs // of the newer log, and those behind it
	past         past   // the books from before

	at   int64 // below which the logs are the same, as far as their epochs prove it
	end  int64 // of the books of all logs before
	last int32 // the newest epoch that these know; -1: none
}

// A past is a reading of the books as a generation had them, as far as the target
// still has what they say.
type past struct {
	reading
	gone bool // the target has lost all that the generation had copied
}

func (s *past) open(l *ledger.Ledger, pair ledger.Pair) error {
	if err := s.start(l, pair); err != nil {
		return err
	}
	cut, err := l.CutOff(pair.ID)
	if cut != nil {
		s.end.Source, s.end.Target, s.gone = cut.Source, cut.Target, cut.Target <= pair.TargetBase
	}
	return err
}

// forksOf returns the forks of the source's log behind an open pair, the newest first.
func forksOf(l *ledger.Ledger, pair ledger.Pair) (forks []fork, err error) {
	all := epochs{ledger: l, pairs: []ledger.Pair{pair}}
	for before, ok := l.Previous(pair.ID); ok && before.SourceTopicID == pair.SourceTopicID; before, ok = l.Previous(before.ID) {
		all.pairs = append(all.pairs, before)
	}
	all.parts = make([]bool, len(all.pairs))
	for i := len(all.pairs) - 2; i >= 0; i-- { // what is known of an older log ends where that one was cut
		f := fork{newer: all.of(i, i+1), older: all.of(i+1, len(all.pairs)), since: all.of(0, i+1)}
		if all.parts[i], err = f.find(); err != nil {
			return nil, err
		}
		if !all.parts[i] {
			continue
		}
		f.end = f.older.end()
		if f.last, err = f.older.last(); err != nil {
			return nil, err
		}
		if err := f.past.open(l, f.older.pairs[0]); err != nil {
			return nil, err
		}
		forks = append(forks, f)
	}
	slices.Reverse(forks)
	return forks, nil
}

// find looks for where the log of a generation parts from what was known of it before,
// and reports whether it does.
func (f *fork) find() (parts bool, err error) {
	newer, older := &f.newer.pairs[0], &f.older.pairs[0]
	f.at = newer.ScopeStart
	for high := min(f.newer.reach(), f.older.reach()); f.at < high; {
		s, err := f.stretchIn(f.at, high)
		switch {
		case err != nil:
			return false, err
		case s.here < 0 || s.there < 0:
			high = f.at // nothing in between tells
		case s.here == s.there:
			f.at = s.end
		default:
			high, parts = s.start, true
		}
	}
	// The epochs do not tell, or not yet. Books that go on in the same target topic, of
	// which that has lost nothing, ended because the source was cut.
	return parts || f.at < f.older.ledger.Committed(older.ID).Source && older.Closed.Cut == nil && sameTarget(older, newer), nil
}

// A stretch is a run of offsets that have one leader epoch in the newer log, and one in
// the older; -1 where the books do not tell.
type stretch struct {
	start, end  int64
	here, there int32
}

// stretchIn returns a stretch within bounds of which both epochs are known, near their
// middle; one without an epoch if there is none.
func (f *fork) stretchIn(low, high int64) (s stretch, err error) {
	middle := low + (high-low)/2
	for _, down := range []bool{true, false} {
		at := middle
		for range epochsNear {
			if s, err = f.stretchAt(at); err != nil {
				return s, err
			}
			s.start, s.end = max(s.start, low), min(s.end, high)
			if s.here >= 0 && s.there >= 0 {
				return s, nil
			}
			if at = s.end; down {
				at = s.start - 1
			}
			if at < low || at >= high {
				break
			}
		}
	}
	return stretch{here: -1, there: -1}, nil
}

func (f *fork) stretchAt(offset int64) (stretch, error) {
	here, hereErr := f.newer.stretchOf(offset)
	there, thereErr := f.older.stretchOf(offset)
	return stretch{max(here.start, there.start), min(here.end, there.end), here.here, there.here}, errors.Join(hereErr, thereErr)
}

func sameTarget(a, b *ledger.Pair) bool {
	return a.TargetTopic == b.TargetTopic && a.TargetTopicID == b.TargetTopicID
}

// isThere reports whether the target topic of an open pair has something of what the log
// before had behind the fork.
func (f *fork) isThere(pair *ledger.Pair) bool {
	return sameTarget(&f.past.pair, pair) && !f.past.gone && f.past.end.Source > f.at
}

// isOlder reports whether a commit was made in the log before the fork, and whether
// that can be told. A commit's epoch is that of the last batch its consumer has read
// (CompletedFetch.lastEpoch in Kafka's); but there are clients that send one of long ago
// with each commit (Sarama's offset manager sends the one it once found), so that behind
// the end of the log before it proves nothing.
func (f *fork) isOlder(c *commitOf) (older, known bool, err error) {
	if c.offset <= f.at {
		return false, true, nil
	}
	within := c.offset <= f.end
	if c.epoch >= 0 {
		at := c.offset - 1
		here, hereErr := f.newer.at(at)
		if here < 0 && hereErr == nil { // what came of it since may tell
			here, hereErr = f.since.at(at)
		}
		if here == c.epoch || hereErr != nil {
			return false, hereErr == nil, hereErr
		}
		if older, err := f.older.hasAt(c.epoch, at); older || err != nil {
			return older, err == nil, err
		}
		if newer, err := f.provesNewer(c.epoch, at); newer || err != nil {
			return false, err == nil, err
		}
		if there, err := f.older.at(at); err != nil || within && there >= 0 {
			return true, err == nil, err
		}
	}
	seen, began := c.seen, f.newer.pairs[0].OpenedMillis
	switch {
	case seen.millis > 0 && seen.offset == c.offset && seen.millis < began:
		return true, true, nil // it has not moved since
	case seen.millis > 0 && seen.offset != c.offset && seen.millis >= began:
		return false, true, nil // it has moved since
	}
	return false, !within && c.epoch < 0, nil
}

// provesNewer reports whether the epoch of a commit behind an offset shows that it is not
// of the older log: that one does not have the epoch, or has an older one there, where
// epochs only grow. There are clients that send the leader's own.
func (f *fork) provesNewer(epoch int32, offset int64) (bool, error) {
	if began, err := f.beganSince(epoch); began || err != nil {
		return began, err
	}
	here, hereErr := f.since.stretchOf(offset)
	there, thereErr := f.older.stretchOf(offset)
	known := there.here >= 0 && epoch > there.here || f.last >= 0 && here.here > f.last && epoch > here.here
	return known, errors.Join(hereErr, thereErr)
}

// beganSince reports whether a leader epoch is known to have begun in the newer log, or
// one that came of it, behind the fork: the older log has nothing of it, then.
func (f *fork) beganSince(epoch int32) (bool, error) {
	if f.at > 0 {
		if common, err := f.older.at(f.at - 1); err != nil || common < 0 || common >= epoch {
			return false, err
		}
	}
	for i := range f.since.pairs {
		one := f.since.of(i, i+1)
		if has, err := one.has(epoch, max(f.at, one.pairs[0].ScopeStart)); has || err != nil {
			return has, err
		}
	}
	return false, nil
}

// Epochs are what the books of generations know of the leader epochs of a source's log,
// the newest first, as it was when the first of them was open: also of what the target
// has lost since.
type epochs struct {
	ledger *ledger.Ledger
	pairs  []ledger.Pair
	parts  []bool // of each, whether its log parts from those of the next ones
}

// of returns what some of the generations know.
func (s *epochs) of(from, to int) epochs {
	return epochs{s.ledger, s.pairs[from:to], s.parts[from:to]}
}

// reach returns where ends what the books know of the newest log.
func (s *epochs) reach() (end int64) {
	for i := range s.pairs {
		if end = max(end, s.ledger.Committed(s.pairs[i].ID).Source); s.parts[i] {
			break
		}
	}
	return end
}

// end returns where the books of all logs end.
func (s *epochs) end() (end int64) {
	for i := range s.pairs {
		end = max(end, s.ledger.Committed(s.pairs[i].ID).Source)
	}
	return end
}

// hasAt reports whether an offset has a leader epoch in one of the logs.
func (s *epochs) hasAt(epoch int32, offset int64) (bool, error) {
	for i := range s.pairs {
		one := s.of(i, i+1)
		if found, err := one.at(offset); found == epoch || err != nil {
			return err == nil, err
		}
	}
	return false, nil
}

// entry returns the entry of the newest generation that has one with an offset in its
// scope, as one without an epoch where there is none; and of what offsets it tells.
func (s *epochs) entry(offset int64) (ledger.Entry, ledger.Range, error) {
	within := ledger.Range{End: math.MaxInt64}
	for i := range s.pairs {
		e, err := s.ledger.FindSource(s.pairs[i].ID, offset)
		if err == nil && e.Tile != ledger.BeforeStart {
			return e, ledger.Range{Start: max(e.Source.Start, within.Start), End: min(e.Source.End, within.End)}, nil
		}
		if err != nil && !errors.Is(err, ledger.ErrNotFound) {
			return ledger.Entry{}, within, err
		}
		if start := s.pairs[i].ScopeStart; offset < start {
			within.End = min(within.End, start)
		} else {
			within.Start = max(within.Start, s.ledger.Committed(s.pairs[i].ID).Source)
			if s.parts[i] { // those before it know another log there
				break
			}
		}
	}
	return ledger.Entry{LeaderEpoch: -1}, ledger.Range{Start: offset, End: offset + 1}, nil
}

// at returns the leader epoch of an offset, or of what was read in front of it if it was
// compacted away; -1 if the books do not tell.
func (s *epochs) at(offset int64) (int32, error) {
	e, _, err := s.entry(offset)
	return e.LeaderEpoch, err
}

// stretchOf returns an offset's stretch of these books alone.
func (s *epochs) stretchOf(offset int64) (stretch, error) {
	e, of, err := s.entry(offset)
	if epoch, end := e.EpochIn(); epoch >= 0 && offset < end {
		return stretch{of.Start, min(end, of.End), epoch, -1}, err
	} else if epoch >= 0 {
		return stretch{max(end, of.Start), of.End, -1, -1}, err
	}
	return stretch{of.Start, of.End, -1, -1}, err
}

// epochsNear is how many entries are looked at for a leader epoch: those of what no
// batch told have none.
const epochsNear = 16

// has reports whether an epoch is known at an offset or behind it.
func (s *epochs) has(epoch int32, offset int64) (bool, error) {
	var err error
	n := sort.Search(int(max(s.reach()-offset, 0)), func(i int) bool {
		found, fromErr := s.from(offset + int64(i))
		err = errors.Join(err, fromErr)
		return found < 0 || found >= epoch
	})
	if err != nil {
		return false, err
	}
	found, err := s.from(offset + int64(n))
	return found == epoch, err
}

// from returns the first leader epoch that is known at an offset or behind it; -1 if
// there is none near it.
func (s *epochs) from(offset int64) (int32, error) {
	for range epochsNear {
		e, of, err := s.entry(offset)
		if err != nil || e.LeaderEpoch >= 0 {
			return e.LeaderEpoch, err
		}
		offset = of.End
	}
	return -1, nil
}

// last returns the last leader epoch of all; -1 if none is known.
func (s *epochs) last() (int32, error) {
	last := int32(-1)
	for i := range s.pairs {
		newest, err := s.ledger.NewestEpoch(s.pairs[i].ID)
		if err != nil {
			return -1, err
		}
		last = max(last, newest.Epoch)
	}
	return last, nil
}
