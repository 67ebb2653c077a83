package ledger

import (
	"maps"
	"slices"
	"sync"
)

// A Follower learns which pairs get new entries, so that who works at what is
// committed need not look at all pairs again and again. Safe for concurrent use.
type Follower struct {
	mu    sync.Mutex
	pairs map[PairID]bool
}

// Follow returns a follower of the commits from now on. It lasts as long as the
// ledger, and takes no more memory than a number for each pair.
func (l *Ledger) Follow() *Follower {
	f := &Follower{pairs: map[PairID]bool{}}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.followers = append(l.followers, f)
	return f
}

// Take returns the pairs that have got entries since it was called last, by id:
// those entries are there for whoever reads the books. A pair may be closed by
// then.
func (f *Follower) Take() []PairID {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.pairs) == 0 {
		return nil
	}
	ids := slices.Sorted(maps.Keys(f.pairs))
	clear(f.pairs)
	return ids
}

// tell tells followers what a commit has brought.
func (c *commit) tell(followers []*Follower) {
	for _, f := range followers {
		f.mu.Lock()
		for _, ch := range c.changes {
			if len(ch.entries) > 0 {
				f.pairs[ch.pair.ID] = true
			}
		}
		f.mu.Unlock()
	}
}
