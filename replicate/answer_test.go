package replicate

import (
	"slices"
	"testing"
)

// TestAnswerCutInABatch: brokers end an answer in the middle of a batch where
// its bytes are used up. What is whole is taken, the next fetch begins behind
// it, and the cut part comes again.
func TestAnswerCutInABatch(t *testing.T) {
	batches := [][]byte{batchOf(0, 5), batchOf(5, 3), batchOf(8, 4)}
	whole := slices.Concat(batches...)
	for cut := range len(whole) + 1 {
		want, wantNext := 0, int64(0)
		for i, next := range []int64{5, 8, 12} {
			if end := len(slices.Concat(batches[:i+1]...)); end <= cut {
				want, wantNext = end, next
			}
		}
		c := &chunk{}
		next, _ := wholeBatches(c, whole[:cut], &fetchState{})
		if next != wantNext || len(c.data) != want {
			t.Fatalf("cut at %d: next offset %d and %d bytes, want %d and %d", cut, next, len(c.data), wantNext, want)
		}
		a := newTestAssembler()
		first, err := assembleAll(a, c.data)
		if err != nil {
			t.Fatal(err)
		}
		rest, err := assembleAll(a, whole[want:])
		if err != nil {
			t.Fatal(err)
		}
		var records int32
		for _, u := range append(first, rest...) {
			records += u.records
		}
		if records != 12 || a.pos != 12 {
			t.Fatalf("cut at %d: %d records up to %d, want 12", cut, records, a.pos)
		}
	}
}
