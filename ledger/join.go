package ledger

const (
	// joinBytes is how many canonical bytes adjacent copied entries of one
	// commit may have to become one entry: what one digest stands for, and so
	// what has to be read again to find a fault in it.
	joinBytes = 64 << 10

	// joinGaps bounds the gaps of an entry that was joined.
	joinGaps = 4096
)

// join puts e, which starts where the last entry of queue ends, into that entry
// or behind it. It keeps no reference to the slices of e.
func join(queue []Entry, e *Entry) []Entry {
	if n := len(queue); n > 0 && extend(&queue[n-1], e) {
		return queue
	}
	own := *e
	own.Gaps = nil
	for _, g := range e.Gaps {
		own.addGap(g)
	}
	return append(queue, own)
}

// extend joins e to a, which ends where e starts, and reports whether it could.
// Only what says the same in one entry as in two is joined: lost, filtered and
// other tiles that somebody has to answer for, and all of the target alone,
// stay as they came.
func extend(a, e *Entry) bool {
	switch {
	case a.Tile == Copied && e.Tile == Copied:
		return extendRun(a, e)
	case a.Tile == Copied && e.Tile.gap() && e.Reason == "":
		// What no batch told has no epoch, and none to lose.
		if len(a.Gaps) >= joinGaps || e.LeaderEpoch != a.LeaderEpoch && e.LeaderEpoch != -1 {
			return false
		}
		a.addGap(Gap{e.Tile, e.Source})
	case a.Tile.gap() && a.Tile == e.Tile && a.Reason == e.Reason && a.LeaderEpoch == e.LeaderEpoch:
	default:
		return false
	}
	a.Source.End = e.Source.End
	return true
}

func extendRun(a, e *Entry) bool {
	alike := a.LeaderEpoch == e.LeaderEpoch && a.TimestampsReplaced == e.TimestampsReplaced
	if !alike || a.Bytes > joinBytes-e.Bytes || len(a.Gaps)+len(e.Gaps) > joinGaps {
		return false
	}
	a.Digest = Concat(a.Digest, e.Digest, e.Records())
	a.Bytes += e.Bytes
	a.Source.End, a.Target.End = e.Source.End, e.Target.End
	for _, g := range e.Gaps {
		a.addGap(g)
	}
	return true
}

// addGap puts g behind the gaps of e, or into the last one if that is of the
// same kind and ends where g starts.
func (e *Entry) addGap(g Gap) {
	if n := len(e.Gaps); n > 0 && e.Gaps[n-1].Tile == g.Tile && e.Gaps[n-1].Range.End == g.Range.Start {
		e.Gaps[n-1].Range.End = g.Range.End
		return
	}
	e.Gaps = append(e.Gaps, g)
}
