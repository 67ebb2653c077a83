package main

import (
	"maps"
	"slices"
	"strings"
)

// nearest returns the candidate that name is most likely a misspelling of: the
// one at the smallest edit distance, the alphabetically first of several. Far
// ones do not count: about one edit in three letters is allowed.
func nearest(name string, candidates []string) (string, bool) {
	best, bestDistance := "", 0
	for _, candidate := range slices.Sorted(slices.Values(candidates)) {
		d := editDistance(strings.ToLower(name), candidate)
		if best == "" || d < bestDistance {
			best, bestDistance = candidate, d
		}
	}
	limit := max(1, (len([]rune(best))+1)/3)
	return best, best != "" && bestDistance <= limit
}

// editDistance returns how many insertions, deletions, substitutions and swaps
// of neighbours turn a into b, no letter being edited twice (optimal string
// alignment).
func editDistance(a, b string) int {
	from, to := []rune(a), []rune(b)
	d := make([][]int, len(from)+1)
	for i := range d {
		d[i] = make([]int, len(to)+1)
		d[i][0] = i
	}
	for j := range d[0] {
		d[0][j] = j
	}
	for i := 1; i <= len(from); i++ {
		for j := 1; j <= len(to); j++ {
			substitution := d[i-1][j-1]
			if from[i-1] != to[j-1] {
				substitution++
			}
			d[i][j] = min(d[i-1][j]+1, d[i][j-1]+1, substitution)
			if i > 1 && j > 1 && from[i-1] == to[j-2] && from[i-2] == to[j-1] {
				d[i][j] = min(d[i][j], d[i-2][j-2]+1)
			}
		}
	}
	return d[len(from)][len(to)]
}

// keys returns the keys of m in alphabetical order.
func keys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

// orList joins words as a sentence does: "a", "a or b", "a, b or c".
func orList(words []string) string {
	if len(words) < 2 {
		return strings.Join(words, "")
	}
	last := len(words) - 1
	return strings.Join(words[:last], ", ") + " or " + words[last]
}
