package translate

import "apograph/ledger"

// A lineage is the generations whose books are one list together, the oldest
// first: each but the last was cut off where the next one goes on, on both sides.
type lineage []ledger.Pair

// lineageOf returns the lineage that ends with a pair. A generation that goes on
// elsewhere, or of another topic, begins a new one; one of which nothing is left,
// as the target lost all of it, is passed over.
func lineageOf(l *ledger.Ledger, pair ledger.Pair) (lineage, error) {
	line := lineage{pair}
	for before, ok := l.Previous(pair.ID); ok; before, ok = l.Previous(before.ID) {
		cut, err := l.CutOff(before.ID)
		if err != nil {
			return nil, err
		}
		if before.Closed == nil || before.Closed.Cut == nil || !sameTopics(&before, &pair) {
			break
		}
		before.Closed.Cut = cut
		switch {
		case cut.Source == line[0].ScopeStart && cut.Target == line[0].TargetBase:
			line = append(lineage{before}, line...)
		case before.TargetBase < line[0].TargetBase:
			return line, nil
		}
	}
	return line, nil
}

func sameTopics(a, b *ledger.Pair) bool {
	return a.TargetTopic == b.TargetTopic && a.TargetTopicID == b.TargetTopicID && a.SourceTopicID == b.SourceTopicID
}

// bySource and byTarget return the index of the generation that has an offset.
func (line lineage) bySource(offset int64) int {
	i := len(line) - 1
	for i > 0 && offset < line[i].ScopeStart {
		i--
	}
	return i
}

func (line lineage) byTarget(offset int64) int {
	i := len(line) - 1
	for i > 0 && offset < line[i].TargetBase {
		i--
	}
	return i
}

// clip takes from an entry of the i-th generation what lies behind its cut. It
// returns false if nothing is left, or the entry only says what is not in the
// scope of a later generation.
func (line lineage) clip(i int, e *ledger.Entry) bool {
	if i > 0 && e.Tile == ledger.BeforeStart {
		return false
	}
	if i == len(line)-1 {
		return true
	}
	return line[i].Closed.Cut.Clip(e)
}

// clipAll returns what of consecutive entries of the i-th generation counts, in
// their memory.
func (line lineage) clipAll(i int, entries []ledger.Entry) []ledger.Entry {
	if i == 0 && len(line) == 1 {
		return entries
	}
	kept := 0
	for j := range entries {
		if line.clip(i, &entries[j]) {
			// Swapped, so that each keeps gaps of its own.
			entries[kept], entries[j] = entries[j], entries[kept]
			kept++
		}
	}
	return entries[:kept]
}
