package ledger

import (
	"iter"
	"math"
)

// epochsBack is how many entries are looked at for a leader epoch.
const epochsBack = 16

// EpochIn returns the source's leader epoch that an entry knows, and the source
// offset up to which it holds; -1 if it knows none. Offsets that were compacted away
// behind the last batch may have had any.
func (e *Entry) EpochIn() (epoch int32, end int64) {
	end = e.Source.End
	if n := len(e.Gaps); n > 0 && e.Gaps[n-1].Range.End == end && e.Gaps[n-1].Tile == Compacted {
		end = e.Gaps[n-1].Range.Start
	}
	return e.LeaderEpoch, end
}

// NewestEpoch returns the newest leader epoch of the source that a pair's committed
// books know, and the source offset up to which it holds; -1 if there is none near
// their end. Where the pair knows none, as it has copied nothing yet, an earlier
// generation of the same source topic does, of what lies below.
func (l *Ledger) NewestEpoch(id PairID) (epoch int32, end int64) {
	below := int64(math.MaxInt64)
	for pair := range l.ofOneSource(id) {
		if epoch, end := l.epochBelow(pair.ID, below); epoch >= 0 {
			return epoch, end
		}
		below = min(below, pair.ScopeStart)
	}
	return -1, 0
}

// epochBelow returns the newest leader epoch that a pair's books know of what lies
// below a source offset, and how far it holds there.
func (l *Ledger) epochBelow(id PairID, below int64) (epoch int32, end int64) {
	at := min(l.Committed(id).Source, below)
	for range epochsBack {
		e, err := l.FindSource(id, at-1)
		if err != nil {
			break
		}
		if epoch, end := e.EpochIn(); epoch >= 0 && e.Source.Start < end {
			return epoch, min(end, below)
		}
		at = e.Source.Start
	}
	return -1, 0
}

// PartsAt returns where a pair's committed books part from a source's log that has
// nothing between a leader epoch, which ends there at an offset, and what the books
// know of a later one: where the books have a later one already below that end, the
// log of a leader that had lost touch, and came back, goes on in the older one (KIP-101
// has followers cut to the lower of both ends).
func (l *Ledger) PartsAt(id PairID, epoch int32, end int64) int64 {
	at := end
	for pair := range l.ofOneSource(id) {
		for below := min(end, l.Committed(pair.ID).Source); below > pair.ScopeStart; {
			e, err := l.FindSource(pair.ID, below-1)
			if err != nil || e.LeaderEpoch >= 0 && e.LeaderEpoch <= epoch {
				return at
			}
			if below = max(e.Source.Start, pair.ScopeStart); e.LeaderEpoch > epoch {
				at = below
			}
		}
		end = min(end, pair.ScopeStart)
	}
	return at
}

// ofOneSource yields a pair, and the generations before it of the same source topic,
// the newest first.
func (l *Ledger) ofOneSource(id PairID) iter.Seq[Pair] {
	return func(yield func(Pair) bool) {
		pair, ok := l.Pair(id) // its start may have grown since the opening
		for topic := pair.SourceTopicID; ok && pair.SourceTopicID == topic && yield(pair); {
			pair, ok = l.Previous(pair.ID)
		}
	}
}
