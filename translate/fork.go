package translate

import (
	"errors"
	"sort"

	"apograph/ledger"
)

// A fork is where a cut parts a source's log in two: up to an offset both are the
// same, and behind it the offsets of the log from before are those of other records.
// Leader epochs tell them apart, for an epoch's offsets are written once (KIP-101,
// KIP-320).
type fork struct {
	older, newer epochs
	past         past // the books from before

	at    int64 // the first offset at which the logs differ
	end   int64 // of the books of all logs before
	epoch int32 // with which the newer log begins there; -1: not known yet
	last  int32 // the last one of all logs before; -1: not known
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
	all := epochs{l, []ledger.Pair{pair}}
	for before, ok := l.Previous(pair.ID); ok && before.SourceTopicID == pair.SourceTopicID; before, ok = l.Previous(before.ID) {
		all.pairs = append(all.pairs, before)
	}
	for i := range all.pairs[1:] {
		f := fork{newer: epochs{l, all.pairs[i : i+1]}, older: epochs{l, all.pairs[i+1:]}}
		parts, err := f.find()
		if err != nil {
			return nil, err
		}
		if !parts {
			continue
		}
		f.end = f.older.reach()
		if err := f.past.open(l, f.older.pairs[0]); err != nil {
			return nil, err
		}
		forks = append(forks, f)
	}
	return forks, nil
}

// find looks for where the log of a generation parts from what was known of it before,
// and reports whether it does.
func (f *fork) find() (parts bool, err error) {
	newer, older := &f.newer.pairs[0], &f.older.pairs[0]
	f.at, f.epoch, f.last = newer.ScopeStart, -1, f.older.last()
	if f.last >= 0 {
		common := max(min(f.newer.reach(), f.older.reach())-f.at, 0)
		start := f.at
		f.at += int64(sort.Search(int(common), func(i int) bool {
			here, hereErr := f.newer.from(start + int64(i))
			there, thereErr := f.older.from(start + int64(i))
			err = errors.Join(err, hereErr, thereErr)
			return here >= 0 && there >= 0 && here != there
		}))
		if err != nil {
			return false, err
		}
		if f.at < start+common {
			f.epoch, err = f.newer.from(f.at)
			return true, err
		}
	}
	// The epochs do not tell, or not yet. Books that go on in the same target topic, of
	// which that has lost nothing, ended because the source was cut.
	return f.at < f.older.ledger.Committed(older.ID).Source && older.Closed.Cut == nil && sameTarget(older, newer), nil
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
	if c.epoch >= 0 && f.last >= 0 {
		here, hereErr := f.newer.at(c.offset - 1)
		there, thereErr := f.older.at(c.offset - 1)
		switch {
		case hereErr != nil || thereErr != nil:
			return false, false, errors.Join(hereErr, thereErr)
		case here == c.epoch:
			return false, true, nil
		case there == c.epoch:
			return true, true, nil
		case f.epoch >= 0 && c.epoch >= f.epoch, f.epoch < 0 && c.epoch > f.last:
			return false, true, nil
		case within:
			return true, true, nil
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

// Epochs are what the books of generations know of the leader epochs of a source's log,
// the newest first, as it was when the first of them was open: also of what the target
// has lost since.
type epochs struct {
	ledger *ledger.Ledger
	pairs  []ledger.Pair
}

// reach returns where the books end.
func (s *epochs) reach() (end int64) {
	for i := range s.pairs {
		end = max(end, s.ledger.Committed(s.pairs[i].ID).Source)
	}
	return end
}

// entry returns the entry of the newest generation that has one with an offset in its
// scope, as one without an epoch where there is none.
func (s *epochs) entry(offset int64) (ledger.Entry, error) {
	for i := range s.pairs {
		e, err := s.ledger.FindSource(s.pairs[i].ID, offset)
		if err == nil && e.Tile != ledger.BeforeStart {
			return e, nil
		}
		if err != nil && !errors.Is(err, ledger.ErrNotFound) {
			return ledger.Entry{}, err
		}
	}
	return ledger.Entry{Source: ledger.Range{Start: offset, End: offset + 1}, LeaderEpoch: -1}, nil
}

// at returns the leader epoch of an offset; -1 if the books do not tell.
func (s *epochs) at(offset int64) (int32, error) {
	e, err := s.entry(offset)
	return e.LeaderEpoch, err
}

// epochsNear is how many entries are looked at for a leader epoch: those of what no
// batch told have none.
const epochsNear = 16

// from returns the first leader epoch that is known at an offset or behind it; -1 if
// there is none near it.
func (s *epochs) from(offset int64) (int32, error) {
	for range epochsNear {
		e, err := s.entry(offset)
		if err != nil || e.LeaderEpoch >= 0 {
			return e.LeaderEpoch, err
		}
		offset = e.Source.End
	}
	return -1, nil
}

// last returns the last leader epoch of all; -1 if none is known.
func (s *epochs) last() int32 {
	last := int32(-1)
	for i := range s.pairs {
		epoch, _ := s.ledger.NewestEpoch(s.pairs[i].ID)
		last = max(last, epoch)
	}
	return last
}
