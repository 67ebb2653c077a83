package recordbatch_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math"
	"math/rand"
	"testing"

	"github.com/leanovate/gopter"
	"github.com/leanovate/gopter/gen"
	"github.com/leanovate/gopter/prop"

	rb "apograph/internal/recordbatch"
)

func TestPeek(t *testing.T) {
	entry := func(length int32, magic byte, n int) []byte {
		b := make([]byte, n)
		binary.BigEndian.PutUint32(b[8:], uint32(length))
		if n > 16 {
			b[16] = magic
		}
		return b
	}
	tests := []struct {
		name      string
		bytes     []byte
		size      int
		magic     int8
		truncated bool
		broken    bool
	}{
		{name: "nothing", bytes: nil, magic: -1, truncated: true},
		{name: "ends within the length", bytes: make([]byte, 11), magic: -1, truncated: true},
		{name: "ends behind the length", bytes: entry(49, 0, 12), size: 61, magic: -1, truncated: true},
		{name: "ends before the magic", bytes: entry(49, 0, 16), size: 61, magic: -1, truncated: true},
		{name: "ends behind the magic", bytes: entry(49, 2, 17), size: 61, magic: 2, truncated: true},
		{name: "ends before the last byte", bytes: entry(49, 2, 60), size: 61, magic: 2, truncated: true},
		{name: "smallest batch", bytes: entry(49, 2, 61), size: 61, magic: 2},
		{name: "bytes of the next one follow", bytes: entry(49, 2, 80), size: 61, magic: 2},
		{name: "smallest message of magic 0", bytes: entry(14, 0, 26), size: 26, magic: 0},
		{name: "smallest message of magic 1", bytes: entry(22, 1, 34), size: 34, magic: 1},
		{name: "cut message of magic 1", bytes: entry(22, 1, 33), size: 34, magic: 1, truncated: true},
		{name: "length below any format", bytes: entry(13, 0, 40), magic: -1, broken: true},
		{name: "length below magic 1", bytes: entry(21, 1, 40), magic: 1, broken: true},
		{name: "length below magic 2", bytes: entry(48, 2, 80), magic: 2, broken: true},
		{name: "negative length", bytes: entry(-1, 2, 80), magic: -1, broken: true},
		{name: "largest length", bytes: entry(math.MaxInt32-12, 2, 80), size: math.MaxInt32, magic: 2, truncated: true},
		{name: "size overflows", bytes: entry(math.MaxInt32-11, 2, 80), magic: -1, broken: true},
		{name: "magic 3", bytes: entry(49, 3, 80), magic: 3, broken: true},
		{name: "negative magic", bytes: entry(49, 0xff, 80), magic: -1, broken: true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			size, magic, err := rb.Peek(tt.bytes)
			if size != tt.size || magic != tt.magic {
				t.Errorf("Peek = %d, %d, want %d, %d", size, magic, tt.size, tt.magic)
			}
			if truncated := errors.Is(err, rb.ErrTruncated); truncated != tt.truncated {
				t.Errorf("Peek error = %v, truncated %v, want %v", err, truncated, tt.truncated)
			}
			if broken := isFormatError(err); broken != tt.broken {
				t.Errorf("Peek error = %v, format error %v, want %v", err, broken, tt.broken)
			}
			if err != nil && !tt.truncated && !tt.broken {
				t.Errorf("Peek error = %v, want none", err)
			}
		})
	}
}

func TestParseRefuses(t *testing.T) {
	// An honest batch of two records of the smallest size, changed in one way each.
	body := bytes.Repeat([]byte{12, 0, 0, 0, 1, 1, 0}, 2)
	honest := rb.Header{BaseOffset: 10, Magic: 2, LastOffsetDelta: 1, Count: 2, ProducerID: -1, BaseSequence: -1}
	tests := []struct {
		name   string
		change func(h *rb.Header, body *[]byte)
		at     int // where the error must point to; -1 for no error
	}{
		{"honest", func(*rb.Header, *[]byte) {}, -1},
		{"negative base offset", func(h *rb.Header, _ *[]byte) { h.BaseOffset = -1 }, 0},
		{"no leader epoch", func(h *rb.Header, _ *[]byte) { h.LeaderEpoch = -1 }, -1},
		{"impossible leader epoch", func(h *rb.Header, _ *[]byte) { h.LeaderEpoch = -2 }, 12},
		{"magic 1", func(h *rb.Header, _ *[]byte) { h.Magic = 1 }, 16},
		{"magic 3", func(h *rb.Header, _ *[]byte) { h.Magic = 3 }, 16},
		{"negative last offset delta", func(h *rb.Header, _ *[]byte) { h.LastOffsetDelta = -1 }, 23},
		{"next offset overflows", func(h *rb.Header, _ *[]byte) { h.BaseOffset = math.MaxInt64 - 1 }, 23},
		{"next offset is the largest", func(h *rb.Header, _ *[]byte) { h.BaseOffset = math.MaxInt64 - 2 }, -1},
		{"negative count", func(h *rb.Header, _ *[]byte) { h.Count = -1 }, 57},
		{"more records than offsets", func(h *rb.Header, _ *[]byte) { h.LastOffsetDelta = 0 }, 57},
		{"as many offsets as there are", func(h *rb.Header, _ *[]byte) { h.LastOffsetDelta = math.MaxInt32 }, -1},
		{"no records but a body", func(h *rb.Header, _ *[]byte) { h.Count = 0 }, 57},
		{"records but no body", func(_ *rb.Header, b *[]byte) { *b = nil }, 57},
		{"compressed records but no body", func(h *rb.Header, b *[]byte) { *b, h.Attributes = nil, 4 }, 57},
		{"body too short for its records", func(_ *rb.Header, b *[]byte) { *b = (*b)[:13] }, 57},
		{"compressed body may be short", func(h *rb.Header, b *[]byte) { *b, h.Attributes = (*b)[:13], 4 }, -1},
		{"empty batch of the cleaner", func(h *rb.Header, b *[]byte) {
			*b, h.Count, h.LastOffsetDelta, h.BaseTimestamp = nil, 0, 264, -1
		}, -1},
		{"unknown codec is for the decoder", func(h *rb.Header, _ *[]byte) { h.Attributes = 7 }, -1},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			h, b := honest, bytes.Clone(body)
			tt.change(&h, &b)
			batch := h.Encode(nil, b)
			got, err := rb.Parse(batch)
			if tt.at < 0 {
				if err != nil {
					t.Fatalf("Parse: %v", err)
				}
				h.Length, h.CRC = int32(49+len(b)), slowCRC(batch[21:])
				if got != h {
					t.Errorf("Parse = %+v, want %+v", got, h)
				}
				return
			}
			var format *rb.FormatError
			if !errors.As(err, &format) {
				t.Fatalf("Parse error = %v, want a FormatError", err)
			}
			if format.At != tt.at || format.InBody || format.Record != -1 {
				t.Errorf("Parse error at %d (%v), want header byte %d", format.At, err, tt.at)
			}
		})
	}
}

func TestParseWantsExactlyOneBatch(t *testing.T) {
	batch := mustBuild(t, rb.None, randomRecords(rand.New(rand.NewSource(1)), 3))
	if _, err := rb.Parse(batch); err != nil {
		t.Fatal(err)
	}
	for n := range len(batch) {
		if _, err := rb.Parse(batch[:n]); !isFormatError(err) {
			t.Fatalf("Parse of the first %d of %d bytes: error = %v, want a FormatError", n, len(batch), err)
		}
	}
	if _, err := rb.Parse(append(bytes.Clone(batch), 0)); !isFormatError(err) {
		t.Errorf("Parse with one byte behind: error = %v, want a FormatError", err)
	}
}

// TestHeaderInverse: encoding, writing field by field and parsing agree on any
// header that has a right structure.
func TestHeaderInverse(t *testing.T) {
	properties := gopter.NewProperties(propertyParameters(500))
	properties.Property("Parse(Encode(h)) == h == the plain writer's", prop.ForAll(
		func(f plainHeaderFields, size int) bool {
			body := make([]byte, size)
			plain := plainBatch(f, body)
			h := rb.Header(f)
			encoded := h.Encode([]byte("before"), body)
			if !bytes.Equal(encoded, append([]byte("before"), plain...)) {
				return false
			}
			got, err := rb.Parse(plain)
			h.Length, h.CRC = int32(49+size), slowCRC(plain[21:])
			return err == nil && got == h && rb.CheckCRC(plain) == nil && got.Size() == len(plain)
		},
		genHeader(), gen.IntRange(7, 3000),
	))
	properties.TestingRun(t)
}

func genHeader() gopter.Gen {
	return func(p *gopter.GenParameters) *gopter.GenResult {
		rng := p.Rng
		f := plainHeaderFields{
			BaseOffset:      rng.Int63() / 2,
			LeaderEpoch:     max(int32(rng.Uint32()), -1),
			Magic:           2,
			Attributes:      int16(rng.Uint32()),
			LastOffsetDelta: rng.Int31(),
			BaseTimestamp:   int64(rng.Uint64()),
			MaxTimestamp:    int64(rng.Uint64()),
			ProducerID:      int64(rng.Uint64()),
			ProducerEpoch:   int16(rng.Uint32()),
			BaseSequence:    int32(rng.Uint32()),
			Count:           1,
		}
		return gopter.NewGenResult(f, gopter.NoShrinker)
	}
}

func TestHeaderMethods(t *testing.T) {
	h := rb.Header{BaseOffset: 100, LastOffsetDelta: 9, Count: 10, Length: 49, BaseTimestamp: 5, MaxTimestamp: 70}
	if h.Size() != 61 || h.LastOffset() != 109 || h.NextOffset() != 110 || !h.Dense() {
		t.Errorf("%+v: Size %d, LastOffset %d, NextOffset %d, Dense %v", h, h.Size(), h.LastOffset(), h.NextOffset(), h.Dense())
	}
	h.Count = 9
	if h.Dense() {
		t.Error("a batch with a hole is called dense")
	}
	if (rb.Header{LastOffsetDelta: -1}).Dense() {
		t.Error("a batch of no records is called dense")
	}
	if (rb.Header{LastOffsetDelta: math.MaxInt32, Count: math.MinInt32}).Dense() {
		t.Error("a negative count wraps around to dense")
	}
	r := rb.Record{TimestampDelta: -7}
	if got := h.Timestamp(&r); got != -2 {
		t.Errorf("Timestamp = %d, want -2", got)
	}
	h.Attributes = 0x08
	if got := h.Timestamp(&r); got != 70 {
		t.Errorf("Timestamp with LogAppendTime = %d, want the maximum, 70", got)
	}
}

func TestAttributes(t *testing.T) {
	for bit := range 16 {
		h := rb.Header{Attributes: int16(uint16(1) << bit)}
		got := [4]bool{h.LogAppendTime(), h.Transactional(), h.Control(), h.HasDeleteHorizon()}
		want := [4]bool{bit == 3, bit == 4, bit == 5, bit == 6}
		if got != want {
			t.Errorf("attribute bit %d: flags %v, want %v", bit, got, want)
		}
		codec := rb.Codec(0)
		if bit < 3 {
			codec = 1 << bit
		}
		if h.Codec() != codec {
			t.Errorf("attribute bit %d: codec %v, want %v", bit, h.Codec(), codec)
		}
	}
	names := []string{"none", "gzip", "snappy", "lz4", "zstd", "codec(5)"}
	for i, want := range names {
		if got := rb.Codec(i).String(); got != want {
			t.Errorf("Codec(%d) = %q, want %q", i, got, want)
		}
	}
	if got := rb.Codec(-1).String(); got != "codec(-1)" {
		t.Errorf("Codec(-1) = %q", got)
	}
}

// TestSequences counts up one by one, around the wrap.
func TestSequences(t *testing.T) {
	for _, base := range []int32{0, 1, math.MaxInt32 - 5, math.MaxInt32} {
		want := base
		for n := range int32(12) {
			if got := rb.IncrementSequence(base, n); got != want {
				t.Errorf("IncrementSequence(%d, %d) = %d, want %d", base, n, got, want)
			}
			h := rb.Header{BaseSequence: base, LastOffsetDelta: n}
			if got := h.LastSequence(); got != want {
				t.Errorf("LastSequence of %d + %d = %d, want %d", base, n, got, want)
			}
			if want == math.MaxInt32 {
				want = 0
			} else {
				want++
			}
		}
	}
	if got := rb.IncrementSequence(math.MaxInt32, math.MaxInt32); got != math.MaxInt32-1 {
		t.Errorf("IncrementSequence of the largest two = %d, want %d", got, math.MaxInt32-1)
	}
	if got := (rb.Header{BaseSequence: -1, LastOffsetDelta: 4}).LastSequence(); got != -1 {
		t.Errorf("LastSequence without sequences = %d, want -1", got)
	}
}

func isFormatError(err error) bool {
	var format *rb.FormatError
	return errors.As(err, &format)
}
