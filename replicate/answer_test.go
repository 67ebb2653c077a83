package replicate

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"slices"
	"strings"
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

// compressedSet returns an entry of format 1 that holds other entries, gzipped.
func compressedSet(t *testing.T, inner []byte, last int64) []byte {
	t.Helper()
	var packed bytes.Buffer
	w := gzip.NewWriter(&packed)
	if _, err := w.Write(inner); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	entry := messageSet(1, last, 7000, nil, packed.Bytes())
	entry[17] = 1 // attributes: gzip
	binary.BigEndian.PutUint32(entry[12:], crc32.ChecksumIEEE(entry[16:]))
	return entry
}

// TestOldMessageFormatIsDecompressedWithinBounds: what a compressed message set
// may become is bounded like a batch.
func TestOldMessageFormatIsDecompressedWithinBounds(t *testing.T) {
	for _, size := range []int{1000, 1 << 20} {
		a := newTestAssembler()
		a.tools.decoder.MaxBytes = 100_000
		inner := slices.Concat(messageSet(1, 0, 7000, nil, []byte("v")), messageSet(1, 1, 8000, nil, make([]byte, size)))
		units, err := assembleAll(a, compressedSet(t, inner, 1))
		if size == 1000 {
			if err != nil || len(units) != 1 || units[0].records != 2 || a.pos != 2 {
				t.Errorf("%d units up to %d, %v; want one of two records", len(units), a.pos, err)
			}
			continue
		}
		var bad *sourceError
		if !errors.As(err, &bad) || bad.reason != StopUnsupportedFormat || bad.offset != 0 || !strings.Contains(err.Error(), "100000") {
			t.Errorf("error %v, want unsupported_format that names the bound", err)
		}
	}
}
