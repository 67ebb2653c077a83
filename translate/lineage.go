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
