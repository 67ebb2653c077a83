package translate

import (
	"fmt"

	"apograph/ledger"
)

// A commitOf is a commit of a group on the source.
type commitOf struct {
	offset int64
	epoch  int32 // -1: none
	seen   sighting
}

// A sighting is what a group is known to have had on the source at some time.
type sighting struct {
	offset int64
	millis int64 // 0: nothing is known
}

// placeCommits corrects the answers about commits that are of the source's log from
// before a cut. What was copied of it the target still has, and what the log holds
// since stands behind that: a group goes on in the one, and then in the other.
func (x *Index) placeCommits(transfers []Transfer) error {
	known := make(map[ledger.PairID][]fork)
	for i := range transfers {
		t := &transfers[i]
		if t.Epoch == NewestEpoch || t.Pair.ID == 0 || t.Pair.Closed != nil {
			continue
		}
		forks, ok := known[t.Pair.ID]
		if !ok {
			var err error
			if forks, err = forksOf(x.ledger, t.Pair); err != nil {
				return err
			}
			known[t.Pair.ID] = forks
		}
		if len(forks) == 0 {
			continue
		}
		if err := x.placeCommit(t, forks); err != nil {
			return fmt.Errorf("translate offset %d of group %s in %s-%d: %w", t.Offset, t.Group, t.Topic, t.Partition, err)
		}
	}
	return nil
}

func (x *Index) placeCommit(t *Transfer, forks []fork) error {
	c := commitOf{t.Offset, t.Epoch, x.sighting(t)}
	var log *reading // nil: the one that there is
	var last *fork
	offset := t.Offset
	for i := range forks {
		f := &forks[i]
		switch older, known, err := f.isOlder(&c); {
		case err != nil:
			return err
		case !known:
			t.doubt(fmt.Sprintf("the source's log was cut at offset %d, and it is not known whether this one is of the log from before, of which the books reach %d: %s",
				f.at, f.end, c.epochText()), false)
			return nil
		case older && f.isThere(&t.Pair):
			log, last, offset = &f.past.reading, f, t.Offset
		case older: // the target has nothing of what the log had there
			offset, last = min(offset, f.at), f
		}
	}
	if last == nil {
		return nil
	}
	if log == nil {
		log = new(reading)
		if err := log.start(x.ledger, t.Pair); err != nil {
			return err
		}
	}
	r, err := log.forward(offset)
	if err != nil {
		return err
	}
	t.TargetOffset, t.Status, t.Distance = r.TargetOffset, r.Status, r.Distance
	detail := fmt.Sprintf("committed before the source's log was cut at offset %d", last.at)
	if r.Status == BeyondCopied && log.pair.ID != t.Pair.ID {
		t.Status, t.Distance = End, 0 // nothing more of that log is ever copied
	} else if r.Detail != "" {
		detail += "; " + r.Detail
	}
	t.Detail = detail
	return nil
}

func (c *commitOf) epochText() string {
	if c.epoch < 0 {
		return "its commit has no leader epoch"
	}
	return fmt.Sprintf("leader epoch %d of its commit is older than that of the log there, and the log from before is not known to reach it", c.epoch)
}

// sighting returns what is known of when the group of a transfer had which offset: what
// the ledger keeps of it, unless the transfer itself knows of an earlier time.
func (x *Index) sighting(t *Transfer) sighting {
	var s sighting
	for _, c := range x.ledger.GroupCommits(t.Group) {
		if c.Topic == t.Pair.TargetTopic && c.Partition == t.Partition {
			s = sighting{c.Source, c.AtMillis}
		}
	}
	if t.SeenMillis > 0 && (s.millis == 0 || s.offset != t.Offset || t.SeenMillis < s.millis) {
		s = sighting{t.Offset, t.SeenMillis}
	}
	return s
}

// doubtReverse takes back the answers about commits on the target that may be of the
// log as it was before the target had lost its end, and got it again, where they were
// others then. The books know no leader epochs of the target.
func (x *Index) doubtReverse(transfers []Transfer) error {
	known := make(map[ledger.PairID][]lostEnd)
	for i := range transfers {
		t := &transfers[i]
		if t.Epoch == NewestEpoch || t.Pair.ID == 0 || t.Pair.Closed != nil {
			continue
		}
		ends, ok := known[t.Pair.ID]
		if !ok {
			var err error
			if ends, err = lostEnds(x.ledger, t.Pair); err != nil {
				return err
			}
			known[t.Pair.ID] = ends
		}
		for _, lost := range ends {
			if t.Status == Unknown || t.Offset <= lost.from || t.Offset > lost.books.end.Target {
				continue
			}
			then, err := lost.books.reverse(t.Offset)
			if err != nil {
				return err
			}
			if then.SourceOffset != t.SourceOffset || then.Status.IsExact() != t.Status.IsExact() {
				t.doubt(fmt.Sprintf("the target's log was cut at offset %d and has got other records there since: it is not known whether this offset is of the log from before", lost.from), true)
			}
		}
	}
	return nil
}

// A lostEnd is what a target's log had from an offset on before it lost it.
type lostEnd struct {
	from  int64
	books *reading // as they were then
}

// lostEnds returns what the target had lost, and has got again, before an open pair
// began.
func lostEnds(l *ledger.Ledger, pair ledger.Pair) (ends []lostEnd, err error) {
	from := pair.TargetBase
	for before, ok := l.Previous(pair.ID); ok && sameTarget(&before, &pair); before, ok = l.Previous(before.ID) {
		if l.Committed(before.ID).Target > from {
			s := new(reading)
			if err := s.start(l, before); err != nil {
				return nil, err
			}
			ends = append(ends, lostEnd{from, s})
		}
		from = min(from, before.TargetBase)
	}
	return ends, nil
}

// doubt takes an answer back of which nobody can know whether it holds.
func (t *Transfer) doubt(why string, reverse bool) {
	t.forget(why, reverse)
	t.Doubtful = true
}
