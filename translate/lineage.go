package translate

import "apograph/ledger"

// A lineage is the generations whose books are one list together: see
// [ledger.Ledger.Lineage].
type lineage []ledger.Pair

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

// behindHole returns the first target offset at or above one that books can have: a
// generation may begin behind copies of which the source has lost the records, and
// which those before it therefore do not count.
func (line lineage) behindHole(offset int64) int64 {
	i := line.byTarget(offset)
	for ; i < len(line)-1 && offset >= line[i].Closed.Cut.Target; i++ {
		offset = max(offset, line[i+1].TargetBase)
	}
	return offset
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
