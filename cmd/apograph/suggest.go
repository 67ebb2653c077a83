package main

import (
	"maps"
	"slices"
	"strings"

	"apograph/internal/spelling"
)

// nearest returns the candidate that name is most likely a misspelling of: the
// one at the smallest edit distance, the alphabetically first of several. Far
// ones do not count: about one edit in three letters is allowed.
func nearest(name string, candidates []string) (string, bool) {
	best, bestDistance := "", 0
	for _, candidate := range slices.Sorted(slices.Values(candidates)) {
		d := spelling.Distance([]rune(strings.ToLower(name)), []rune(candidate))
		if best == "" || d < bestDistance {
			best, bestDistance = candidate, d
		}
	}
	limit := max(1, (len([]rune(best))+1)/3)
	return best, best != "" && bestDistance <= limit
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
