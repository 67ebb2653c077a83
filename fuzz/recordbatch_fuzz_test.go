package fuzz

import (
	"bytes"
	"encoding/hex"
	"errors"
	"os"
	"strings"
	"testing"

	"apograph/internal/canon"
	"apograph/internal/recordbatch"
)

// bodyLimit bounds decompressed bodies while fuzzing.
const bodyLimit = 1 << 18

// FuzzParse takes bytes as a fetch response would bring them, and reads them as far
// as they can be read: as they are, and as a batch whose length and checksum are
// made right, so that the fuzzer gets past them. Nothing may panic, and what is
// read must be consistent with itself.
func FuzzParse(f *testing.F) {
	for _, batch := range seedBatches(f) {
		f.Add(batch)
		f.Add(append(bytes.Clone(batch), batch[:40]...))
	}
	var r batchReader
	r.decoder.MaxBytes = bodyLimit
	f.Fuzz(func(t *testing.T, data []byte) {
		for rest := data; ; {
			size, magic, err := recordbatch.Peek(rest)
			if err != nil {
				break
			}
			if size < 26 || size > len(rest) || magic < 0 || magic > 2 {
				t.Fatalf("Peek of %d bytes = %d, %d", len(rest), size, magic)
			}
			r.read(t, rest[:size])
			rest = rest[size:]
		}
		if len(data) < recordbatch.HeaderSize {
			return
		}
		// Parse looks at length and checksum, so a header without them is decoded
		// from a copy that has both.
		whole := bytes.Clone(data)
		putLength(whole)
		if h, err := recordbatch.Parse(whole); err == nil {
			r.read(t, h.Encode(nil, whole[recordbatch.HeaderSize:]))
		}
	})
}

// putLength makes the length field of b count the bytes behind it.
func putLength(b []byte) {
	n := len(b) - 12
	b[8], b[9], b[10], b[11] = byte(n>>24), byte(n>>16), byte(n>>8), byte(n)
}

// A batchReader reads batches as replication does, and checks what it reads.
type batchReader struct {
	decoder recordbatch.Decoder
	builder recordbatch.Builder
	second  recordbatch.Decoder // for what was built anew
}

func (r *batchReader) read(t *testing.T, batch []byte) {
	h, err := recordbatch.Parse(batch)
	if err != nil {
		var format *recordbatch.FormatError
		if !errors.As(err, &format) {
			t.Fatalf("Parse: %v is no FormatError", err)
		}
		return
	}
	if h.Size() != len(batch) || h.Count < 0 || h.NextOffset() <= h.BaseOffset || int64(h.Count) > h.NextOffset()-h.BaseOffset {
		t.Fatalf("Parse of %d bytes = %+v", len(batch), h)
	}
	if encoded := h.Encode(nil, batch[recordbatch.HeaderSize:]); (recordbatch.CheckCRC(batch) == nil) != bytes.Equal(encoded, batch) {
		t.Fatal("CheckCRC and Encode disagree about the checksum")
	}
	if _, err := recordbatch.MarkerType(h, batch); err == nil && (!h.Control() || h.Count != 1) {
		t.Fatalf("MarkerType accepts %+v", h)
	}
	checkPatch(t, batch)
	body, err := r.decoder.Body(h, batch)
	if err != nil {
		return
	}
	if h.Codec() != recordbatch.None && len(body) > bodyLimit {
		t.Fatalf("body of %d bytes", len(body))
	}
	if canonical, ok := r.walk(t, h, body); ok && h.Count > 0 {
		r.rebuild(t, h.Codec(), canonical)
	}
}

// walk returns the canonical bytes of all records, and whether the body is whole.
// It leaves the records in the builder.
func (r *batchReader) walk(t *testing.T, h recordbatch.Header, body []byte) ([]byte, bool) {
	var (
		w         recordbatch.Walker
		record    recordbatch.Record
		canonical []byte
		n         int32
	)
	r.builder.Reset(h.Codec())
	last := int32(-1)
	w.ResetBatch(h, body)
	for w.Next(&record) {
		if record.OffsetDelta <= last || record.OffsetDelta > h.LastOffsetDelta {
			t.Fatalf("offset delta %d behind %d, the last is %d", record.OffsetDelta, last, h.LastOffsetDelta)
		}
		if h.Dense() && record.OffsetDelta != n {
			t.Fatalf("offset delta %d of record %d in a dense batch", record.OffsetDelta, n)
		}
		last = record.OffsetDelta
		n++
		canonical = appendCanonical(canonical, h.Timestamp(&record), &record)
		r.builder.Append(&record, h.Timestamp(&record))
	}
	if w.Err() == nil && n != h.Count {
		t.Fatalf("%d records, %d are counted", n, h.Count)
	}
	return canonical, w.Err() == nil
}

// rebuild seals the builder's records and wants the same canonical bytes back.
func (r *batchReader) rebuild(t *testing.T, codec recordbatch.Codec, want []byte) {
	batch, err := r.builder.Seal(nil, 1, 2, 3)
	if err != nil {
		t.Fatal(err)
	}
	if err := recordbatch.CheckCRC(batch); err != nil {
		t.Fatal(err)
	}
	h, err := recordbatch.Parse(batch)
	if err != nil {
		t.Fatal(err)
	}
	// Renumbered records may be a few bytes longer than the limit allowed.
	r.second.MaxBytes = 4 * bodyLimit
	body, err := r.second.Body(h, batch)
	if err != nil {
		t.Fatal(err)
	}
	if got, ok := r.walk(t, h, body); !ok || !bytes.Equal(got, want) {
		t.Fatalf("rebuilt with %v, records differ", codec)
	}
}

// checkPatch wants Patch to keep a right checksum right and a wrong one wrong.
func checkPatch(t *testing.T, batch []byte) {
	before := recordbatch.CheckCRC(batch)
	patched := bytes.Clone(batch)
	recordbatch.Patch(patched, 1<<40, 7, 1<<30)
	if after := recordbatch.CheckCRC(patched); (before == nil) != (after == nil) {
		t.Fatalf("checksum before Patch: %v, after: %v", before, after)
	}
	if !bytes.Equal(patched[recordbatch.HeaderSize:], batch[recordbatch.HeaderSize:]) {
		t.Fatal("Patch changed the body")
	}
}

func appendCanonical(dst []byte, timestamp int64, r *recordbatch.Record) []byte {
	dst = canon.AppendRecord(dst, timestamp, r.Key, r.Value, r.HeaderCount)
	headers := r.Headers()
	for {
		key, value, ok := headers.Next()
		if !ok {
			return dst
		}
		dst = canon.AppendHeader(dst, key, value)
	}
}

// FuzzRoundTrip builds records out of arbitrary bytes and wants them back.
func FuzzRoundTrip(f *testing.F) {
	f.Add([]byte("key, value, and headers of some records"), uint8(0), int64(1_700_000_000_000), int64(1))
	f.Add(bytes.Repeat([]byte("again and again "), 200), uint8(4), int64(-1), int64(0))
	f.Add([]byte{0, 1, 2, 3, 0xff, 0xfe}, uint8(2), int64(-1<<63), int64(1<<62))
	f.Add([]byte{}, uint8(1), int64(0), int64(-5))
	f.Add(bytes.Repeat([]byte{0}, 3000), uint8(3), int64(5), int64(7))
	var r batchReader
	f.Fuzz(func(t *testing.T, data []byte, codec uint8, timestamp, step int64) {
		r.builder.Reset(recordbatch.Codec(codec % 5))
		var want []byte
		for len(data) > 0 || r.builder.Count() == 0 {
			var record recordbatch.Record
			record, data = takeRecord(data)
			want = appendCanonical(want, timestamp, &record)
			r.builder.Append(&record, timestamp)
			timestamp += step
		}
		r.rebuild(t, recordbatch.Codec(codec%5), want)
	})
}

// takeRecord makes a record of the first bytes of data. The first says what it has.
func takeRecord(data []byte) (recordbatch.Record, []byte) {
	var r recordbatch.Record
	if len(data) == 0 {
		return r, nil
	}
	shape := data[0]
	data = data[1:]
	take := func(present bool) []byte {
		if !present {
			return nil
		}
		n := min(len(data), int(shape>>4)*3)
		b := data[:n:n]
		data = data[n:]
		if b == nil {
			b = []byte{}
		}
		return b
	}
	r.Key, r.Value = take(shape&1 != 0), take(shape&2 != 0)
	for range shape >> 2 & 3 {
		r.AddHeader(take(true), take(shape&1 == 0))
	}
	return r, data
}

// seedBatches returns batches of Kafka's own client, and our own in every codec.
func seedBatches(f *testing.F) [][]byte {
	f.Helper()
	data, err := os.ReadFile("../internal/recordbatch/testdata/java.txt")
	if err != nil {
		f.Fatal(err)
	}
	var batches [][]byte
	for line := range strings.Lines(string(data)) {
		if strings.HasPrefix(line, "#") {
			continue
		}
		_, digits, _ := strings.Cut(strings.TrimSpace(line), " ")
		batch, err := hex.DecodeString(digits)
		if err != nil {
			f.Fatal(err)
		}
		batches = append(batches, batch)
	}
	var b recordbatch.Builder
	for codec := recordbatch.None; codec <= recordbatch.Zstd; codec++ {
		b.Reset(codec)
		for i := range 3 {
			r := recordbatch.Record{Key: []byte("key"), Value: bytes.Repeat([]byte("value"), i)}
			r.AddHeader([]byte("header"), nil)
			b.Append(&r, int64(i))
		}
		batch, err := b.Seal(nil, 1, 0, 0)
		if err != nil {
			f.Fatal(err)
		}
		batches = append(batches, batch)
	}
	return batches
}
