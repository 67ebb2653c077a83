// Package spelling tells how much alike two words are, for suggestions about what
// was probably meant.
package spelling

// Distance returns how many letters are to be put in, taken out, replaced or swapped
// with the next one to make b of a, no letter being touched twice (optimal string
// alignment). A letter is whatever the slices hold: bytes, or characters.
func Distance[T comparable](a, b []T) int {
	before, last, row := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range last {
		last[j] = j
	}
	for i := 1; i <= len(a); i++ {
		row[0] = i
		for j := 1; j <= len(b); j++ {
			replaced := last[j-1]
			if a[i-1] != b[j-1] {
				replaced++
			}
			row[j] = min(last[j]+1, row[j-1]+1, replaced)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], before[j-2]+1)
			}
		}
		before, last, row = last, row, before
	}
	return last[len(b)]
}

// AtLeast returns a number that [Distance] of the bytes of two words is not below. It
// takes a small part of the time: only which letters there are counts.
func AtLeast(a, b string) int {
	var count [256]int
	for i := range len(a) {
		count[a[i]]++
	}
	onlyInB := 0
	for i := range len(b) {
		if count[b[i]]--; count[b[i]] < 0 {
			onlyInB++
		}
	}
	return max(onlyInB, onlyInB+len(a)-len(b))
}
