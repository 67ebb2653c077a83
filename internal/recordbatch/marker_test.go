package recordbatch_test

import (
	"bytes"
	"errors"
	"testing"

	rb "apograph/internal/recordbatch"
)

// TestJavaMarkers reads the control batches that brokers write.
func TestJavaMarkers(t *testing.T) {
	batches := mustJavaBatches(t)
	for name, want := range map[string]bool{"commit-marker": true, "abort-marker": false} {
		batch := batches[name]
		h := mustParse(t, batch)
		if !h.Control() || !h.Transactional() || h.Count != 1 || len(batch) != 78 || h.LastSequence() != -1 {
			t.Errorf("%s: header %+v of %d bytes", name, h, len(batch))
		}
		if commit, err := rb.MarkerType(h, batch); err != nil || commit != want {
			t.Errorf("%s: commit %v, error %v, want %v", name, commit, err, want)
		}
	}
}

// TestJavaEmptyBatch: what the cleaner leaves behind moves offsets on, and holds
// nothing.
func TestJavaEmptyBatch(t *testing.T) {
	batch := mustJavaBatches(t)["empty"]
	h := mustParse(t, batch)
	if h.Count != 0 || h.Dense() || h.NextOffset() != 110 || h.BaseTimestamp != -1 || h.LastSequence() != 26 {
		t.Errorf("header %+v", h)
	}
	if records := mustWalkPlain(t, batch); len(records) != 0 {
		t.Errorf("%d records", len(records))
	}
}

func TestMarkerType(t *testing.T) {
	value := []byte{0, 0, 0, 0, 0, 7}
	tests := []struct {
		name    string
		key     []byte
		change  func(h *rb.Header, body *[]byte)
		commit  bool
		broken  bool
		unknown int16 // type in the UnknownMarkerError, 0 for none
	}{
		{name: "abort", key: []byte{0, 0, 0, 0}},
		{name: "commit", key: []byte{0, 0, 0, 1}, commit: true},
		{name: "commit of a later version", key: []byte{0, 9, 0, 1}, commit: true},
		{name: "commit with a longer key", key: []byte{0, 1, 0, 1, 5, 6}, commit: true},
		{name: "leader change of the quorum", key: []byte{0, 0, 0, 2}, unknown: 2},
		{name: "negative type", key: []byte{0, 0, 0xff, 0xff}, unknown: -1},
		{name: "type 257 is not commit", key: []byte{0, 0, 1, 1}, unknown: 257},
		{name: "negative version", key: []byte{0x80, 0, 0, 1}, broken: true},
		{name: "short key", key: []byte{0, 0, 0}, broken: true},
		{name: "null key", broken: true},
		{name: "no control batch", key: []byte{0, 0, 0, 1}, change: func(h *rb.Header, _ *[]byte) { h.Attributes = 0x10 }, broken: true},
		{name: "compressed", key: []byte{0, 0, 0, 1}, change: func(h *rb.Header, _ *[]byte) { h.Attributes = 0x31 }, broken: true},
		{name: "empty", change: func(h *rb.Header, b *[]byte) { h.Count, *b = 0, nil }, broken: true},
		{name: "two records", key: []byte{0, 0, 0, 1}, change: func(h *rb.Header, b *[]byte) {
			h.Count, h.LastOffsetDelta = 2, 1
			*b = append(*b, plainBody([]plainRecord{{delta: 1, key: []byte{0, 0, 0, 0}}}, 0)...)
		}, broken: true},
		{name: "a byte behind", key: []byte{0, 0, 0, 1}, change: func(_ *rb.Header, b *[]byte) { *b = append(*b, 0) }, broken: true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			h := rb.Header{Magic: 2, Attributes: 0x30, Count: 1}
			body := plainBody([]plainRecord{{key: tt.key, value: value}}, 0)
			if tt.change != nil {
				tt.change(&h, &body)
			}
			batch := h.Encode(nil, body)
			commit, err := rb.MarkerType(mustParse(t, batch), batch)
			if commit != tt.commit {
				t.Errorf("commit = %v, want %v", commit, tt.commit)
			}
			if isFormatError(err) != tt.broken {
				t.Errorf("error = %v, want a FormatError %v", err, tt.broken)
			}
			var unknown *rb.UnknownMarkerError
			if errors.As(err, &unknown) != (tt.unknown != 0) || unknown != nil && unknown.Type != tt.unknown {
				t.Errorf("error = %v, want an UnknownMarkerError of %d", err, tt.unknown)
			}
			if err != nil && !tt.broken && tt.unknown == 0 {
				t.Errorf("error = %v, want none", err)
			}
		})
	}
	h := rb.Header{Magic: 2, Attributes: 0x30, Count: 1}
	if _, err := rb.MarkerType(h, bytes.Repeat([]byte{0}, 60)); !isFormatError(err) {
		t.Errorf("batch cut in its header: error = %v, want a FormatError", err)
	}
}
