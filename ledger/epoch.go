package ledger

import (
	"errors"
	"fmt"
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

// An EpochEnd says how far a leader epoch of a source's log goes: as books know it, or
// as its leader tells, which answers with the newest one that it has of those not newer
// than one asked about, and the offset at which the next begins (OffsetForLeaderEpoch,
// KIP-320). The epoch is -1 where there is none, or the leader does not know.
type EpochEnd struct {
	Epoch  int32
	Offset int64
}

func (e EpochEnd) unknown() bool { return e.Epoch < 0 || e.Offset < 0 }

// Lacks reports whether a log that answers so about a known epoch does not have all of
// it.
func (e EpochEnd) Lacks(known EpochEnd) bool {
	return !e.unknown() && (e.Epoch < known.Epoch || e.Offset < known.Offset)
}

// A Parting says where books part from a log.
type Parting struct {
	// At is the first source offset of which the log has another record than the
	// books, or none; lower by what was compacted away there, of whose epoch nothing is
	// known, or has no epoch.
	At  int64
	Log EpochEnd // what the log has of the newest epoch that the books know
}

// NewestEpoch returns the newest leader epoch of the source that a pair's committed
// books know, and the source offset up to which it holds; epoch -1 if there is none near
// their end. Where the pair knows none, as it has copied nothing yet, an earlier
// generation of the same source topic does, of what lies below. Errors are those of
// [Ledger.FindSource].
func (l *Ledger) NewestEpoch(id PairID) (EpochEnd, error) {
	return l.epochOfSource(id, math.MaxInt64)
}

// epochOfSource is NewestEpoch of what lies below a source offset.
func (l *Ledger) epochOfSource(id PairID, below int64) (EpochEnd, error) {
	for pair := range l.ofOneSource(id) {
		if found, err := l.epochBelow(pair.ID, below); err != nil || found.Epoch >= 0 {
			return found, err
		}
		below = min(below, pair.ScopeStart)
	}
	return EpochEnd{Epoch: -1}, nil
}

// epochBelow returns the newest leader epoch that a pair's books know of what lies
// below a source offset, and how far it holds there.
func (l *Ledger) epochBelow(id PairID, below int64) (EpochEnd, error) {
	at := min(l.Committed(id).Source, below)
	for range epochsBack {
		e, err := l.FindSource(id, at-1)
		if errors.Is(err, ErrNotFound) {
			break
		} else if err != nil {
			return EpochEnd{}, err
		}
		if epoch, end := e.EpochIn(); epoch >= 0 && e.Source.Start < end {
			return EpochEnd{epoch, min(end, below)}, nil
		}
		at = e.Source.Start
	}
	return EpochEnd{Epoch: -1}, nil
}

// PartsAt returns where a pair's committed books, which know the given epoch as their
// newest (see [Ledger.NewestEpoch]), part from the source's log, of whose epochs ask
// tells; nil if they do not, as far as the log's leader knows. Books that know no epoch,
// as of message formats before 0.11, are taken to be whole. Errors are those of ask and of
// [Ledger.FindSource].
//
// The end of an epoch that the books know tells where both part only where the log has
// that epoch. Where it has none, both may part lower still, in an older epoch that the
// log ended earlier: it is asked for that as well, as a follower does before it cuts its
// log (KIP-101, KIP-279).
func (l *Ledger) PartsAt(id PairID, known EpochEnd, ask func(epoch int32) (EpochEnd, error)) (*Parting, error) {
	if known.Epoch < 0 {
		return nil, nil
	}
	log, err := ask(known.Epoch)
	if err != nil || !log.Lacks(known) {
		return nil, err
	}
	p := &Parting{At: min(log.Offset, known.Offset), Log: log}
	for asked := known; log.Epoch < asked.Epoch; p.At = min(p.At, log.Offset) {
		if p.At, err = l.behindEpoch(id, log.Epoch, p.At); err != nil {
			return nil, err
		}
		if asked, err = l.epochOfSource(id, p.At); err != nil || asked.Epoch < 0 || asked.Epoch >= log.Epoch {
			return p, err
		}
		if log, err = ask(asked.Epoch); err != nil {
			return nil, err
		} else if log.unknown() {
			return nil, fmt.Errorf("the leader of the source does not know leader epoch %d, though it knew newer ones", asked.Epoch)
		}
	}
	return p, nil
}

// behindEpoch returns the lowest offset, up to one, from which on the books know of no
// epoch that is as old as the given one.
func (l *Ledger) behindEpoch(id PairID, epoch int32, end int64) (int64, error) {
	at := end
	for pair := range l.ofOneSource(id) {
		for below := min(end, l.Committed(pair.ID).Source); below > pair.ScopeStart; {
			e, err := l.FindSource(pair.ID, below-1)
			if err != nil {
				return 0, err
			}
			if known, until := e.EpochIn(); known >= 0 && known <= epoch {
				return min(at, until), nil
			}
			below = max(e.Source.Start, pair.ScopeStart)
			at = min(at, below)
		}
		end = min(end, pair.ScopeStart)
	}
	return at, nil
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
