package recordbatch_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math"
	"math/rand"
	"slices"
	"testing"

	"github.com/leanovate/gopter"
	"github.com/leanovate/gopter/gen"
	"github.com/leanovate/gopter/prop"

	rb "apograph/internal/recordbatch"
)

// TestWalkerReadsThePlainWriter: any records, with any rising deltas, relative to
// any base timestamp.
func TestWalkerReadsThePlainWriter(t *testing.T) {
	properties := gopter.NewProperties(propertyParameters(300))
	properties.Property("walk(plain body) == records", prop.ForAll(
		func(records []plainRecord, step uint8, base int64) string {
			for i := range records {
				records[i].delta = int32(i) * (1 + int32(step))
			}
			body := plainBody(records, base)
			got, err := walkBody(body, len(records), base)
			if err != nil {
				return err.Error()
			}
			return diffRecords(got, records)
		},
		genRecords(60), gen.UInt8(), gen.Int64(),
	))
	properties.Property("Encode(record) == plain record", prop.ForAll(
		func(records []plainRecord, base int64) bool {
			var body []byte
			for _, p := range records {
				r := p.toRecord(base)
				body = r.Encode(body)
			}
			return bytes.Equal(body, plainBody(records, base))
		},
		genRecords(60), gen.Int64(),
	))
	properties.TestingRun(t)
}

// walkBody walks without a header.
func walkBody(body []byte, count int, base int64) ([]plainRecord, error) {
	var (
		w       rb.Walker
		r       rb.Record
		records []plainRecord
	)
	w.Reset(body, int32(count))
	for w.Next(&r) {
		records = append(records, toPlain(&r, base+r.TimestampDelta))
	}
	return records, w.Err()
}

// field and number build the broken records below.
func number(v int32) []byte { return binary.AppendVarint(nil, int64(v)) }

func record(parts ...[]byte) []byte {
	raw := slices.Concat(parts...)
	return append(binary.AppendVarint(nil, int64(len(raw))), raw...)
}

var (
	attributes = []byte{0}
	zero       = []byte{0}
	null       = []byte{1}
)

func TestWalkerRefuses(t *testing.T) {
	good := record(attributes, zero, zero, null, null, zero)
	second := record(attributes, zero, number(1), null, null, zero)
	overlong := []byte{0x80, 0x80, 0x80, 0x80, 0x80, 0x01}
	tests := []struct {
		name   string
		body   []byte
		count  int32
		record int // that the error must name; -1 for the batch
		at     int
	}{
		{"no records where one is counted", nil, 1, 0, 0},
		{"fewer records than counted", good, 2, 1, 7},
		{"more records than counted", slices.Concat(good, second), 1, -1, 7},
		{"a record where none is counted", good, 0, -1, 0},
		{"negative count", nil, -1, -1, 0},
		{"a byte behind the last record", append(bytes.Clone(good), 0), 1, -1, 7},
		{"empty record", []byte{0}, 1, 0, 1},
		{"negative record length", []byte{1}, 1, 0, 0},
		{"record length beyond the body", []byte{14, 0, 0, 0, 1, 1, 0}, 1, 0, 0},
		{"record length of six bytes", slices.Concat(overlong, good), 1, 0, 0},
		{"record length cut off", []byte{0x80}, 1, 0, 0},
		{"record length of more than 32 bits", append([]byte{0x8c, 0x80, 0x80, 0x80, 0x10}, good[1:]...), 1, 0, 0},
		{"attributes alone", record(attributes), 1, 0, 2},
		{"timestamp delta cut off", record(attributes, []byte{0x80}), 1, 0, 2},
		{"timestamp delta of eleven bytes", record(attributes, bytes.Repeat([]byte{0x80}, 10), zero, zero, null, null, zero), 1, 0, 2},
		{"timestamp delta of more than 64 bits", record(attributes, bytes.Repeat([]byte{0x80}, 9), []byte{2}, zero, null, null, zero), 1, 0, 2},
		{"offset delta missing", record(attributes, zero), 1, 0, 3},
		{"offset delta of six bytes", record(attributes, zero, overlong, null, null, zero), 1, 0, 3},
		{"negative offset delta", record(attributes, zero, number(-1), null, null, zero), 1, 0, 1},
		{"key length missing", record(attributes, zero, zero), 1, 0, 4},
		{"key beyond the record", record(attributes, zero, zero, number(4), []byte("key")), 1, 0, 4},
		{"key length beyond any record", record(attributes, zero, zero, number(math.MaxInt32), null, zero), 1, 0, 4},
		{"value length missing", record(attributes, zero, zero, null), 1, 0, 5},
		{"value beyond the record", record(attributes, zero, zero, null, number(2), []byte{0}), 1, 0, 5},
		{"header count missing", record(attributes, zero, zero, null, null), 1, 0, 6},
		{"negative header count", record(attributes, zero, zero, null, null, number(-1)), 1, 0, 6},
		{"more headers than bytes", record(attributes, zero, zero, null, null, number(2), zero, null), 1, 0, 6},
		{"very many headers", record(attributes, zero, zero, null, null, number(math.MaxInt32)), 1, 0, 6},
		{"null header key", record(attributes, zero, zero, null, null, number(1), null, null), 1, 0, 7},
		{"header key beyond the record", record(attributes, zero, zero, null, null, number(1), number(2), []byte("h")), 1, 0, 7},
		{"header value length missing", record(attributes, zero, zero, null, null, number(1), number(1), []byte("h")), 1, 0, 9},
		{"header value beyond the record", record(attributes, zero, zero, null, null, number(1), number(0), number(1)), 1, 0, 8},
		{"a byte behind the headers", record(attributes, zero, zero, null, null, zero, zero), 1, 0, 7},
		{"second record has the first one's offset", slices.Concat(good, good), 2, 1, 8},
		{"second record is broken", slices.Concat(good, record(attributes)), 2, 1, 9},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := walkBody(tt.body, int(tt.count), 0)
			var format *rb.FormatError
			if !errors.As(err, &format) {
				t.Fatalf("walk error = %v, want a FormatError", err)
			}
			if format.Record != tt.record || format.At != tt.at || !format.InBody {
				t.Errorf("walk error names record %d, byte %d (%v), want record %d, byte %d",
					format.Record, format.At, err, tt.record, tt.at)
			}
		})
	}
}

// TestWalkerAccepts holds what the Java client accepts, however odd.
func TestWalkerAccepts(t *testing.T) {
	tests := []struct {
		name string
		body []byte
		want plainRecord
	}{
		{"attributes that mean nothing", record([]byte{0xff}, zero, zero, null, null, zero), plainRecord{}},
		{"any negative length is null", record(attributes, zero, zero, number(-7), number(math.MinInt32), zero), plainRecord{}},
		{"empty is not null", record(attributes, zero, zero, zero, zero, zero), plainRecord{key: []byte{}, value: []byte{}}},
		{"longer varints than needed", record(attributes, []byte{0x80, 0}, []byte{0x80, 0x80, 0}, []byte{0x81, 0}, []byte{0x80, 0x80, 0x80, 0x80, 0}, []byte{0x80, 0}), plainRecord{value: []byte{}}},
		{"a record length longer than needed", append([]byte{0x8c, 0x80, 0x80, 0x80, 0}, record(attributes, zero, zero, null, null, zero)[1:]...), plainRecord{}},
		{"a header value of any negative length", record(attributes, zero, zero, null, null, number(1), zero, number(-2)), plainRecord{headers: []plainHeader{{key: []byte{}}}}},
		{"a header key that is not UTF-8", record(attributes, zero, zero, null, null, number(1), number(1), []byte{0xff}, zero), plainRecord{headers: []plainHeader{{[]byte{0xff}, []byte{}}}}},
		{"the smallest timestamp delta", record(attributes, binary.AppendVarint(nil, math.MinInt64), zero, null, null, zero), plainRecord{timestamp: math.MinInt64}},
		{"the largest offset delta", record(attributes, zero, number(math.MaxInt32), null, null, zero), plainRecord{delta: math.MaxInt32}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := walkBody(tt.body, 1, 0)
			if err != nil {
				t.Fatal(err)
			}
			if diff := diffRecords(got, []plainRecord{tt.want}); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestResetBatchBoundsOffsets: deltas of a batch lie within its header's range.
func TestResetBatchBoundsOffsets(t *testing.T) {
	//	header: count 3, last offset delta 5
	tests := []struct {
		name   string
		deltas []int32
		record int // refused, -1 for none
	}{
		{"from the first to the last", []int32{0, 3, 5}, -1},
		{"first and last compacted away", []int32{1, 2, 4}, -1},
		{"beyond the last", []int32{0, 3, 6}, 2},
		{"no room for the third", []int32{0, 5, 6}, 1},
		{"not rising", []int32{0, 3, 3}, 2},
		{"falling", []int32{2, 1, 3}, 1},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var records []plainRecord
			for _, delta := range tt.deltas {
				records = append(records, plainRecord{delta: delta})
			}
			_, err := walkPlain(new(rb.Decoder), rb.Header{Magic: 2, LastOffsetDelta: 5, Count: 3}.Encode(nil, plainBody(records, 0)))
			var format *rb.FormatError
			if tt.record < 0 {
				if err != nil {
					t.Fatal(err)
				}
			} else if !errors.As(err, &format) || format.Record != tt.record {
				t.Errorf("walk error = %v, want one at record %d", err, tt.record)
			}
		})
	}
}

// TestDenseHeaderProvesDenseRecords walks every way in which three records can lie
// in four offsets: with a dense header only 0, 1, 2 may pass.
func TestDenseHeaderProvesDenseRecords(t *testing.T) {
	for code := range 4 * 4 * 4 {
		deltas := []int32{int32(code % 4), int32(code / 4 % 4), int32(code / 16)}
		var records []plainRecord
		for _, delta := range deltas {
			records = append(records, plainRecord{delta: delta})
		}
		h := rb.Header{Magic: 2, LastOffsetDelta: 2, Count: 3}
		_, err := walkPlain(new(rb.Decoder), h.Encode(nil, plainBody(records, 0)))
		if dense := slices.Equal(deltas, []int32{0, 1, 2}); dense != (err == nil) {
			t.Errorf("deltas %v under a dense header: error = %v", deltas, err)
		}
	}
}

func TestWalkerStopsForGood(t *testing.T) {
	body := append(plainBody([]plainRecord{{}}, 0), 0xff, 0xff)
	var (
		w rb.Walker
		r rb.Record
	)
	if w.Next(&r) || w.Err() != nil {
		t.Errorf("the zero walker: error = %v, want no record and no error", w.Err())
	}
	w.Reset(body, 3)
	if !w.Next(&r) || w.Next(&r) {
		t.Fatal("want one record, then a problem")
	}
	first := w.Err()
	if w.Next(&r) || w.Err() != first || first == nil {
		t.Errorf("after a problem: error = %v, want to stay at %v", w.Err(), first)
	}
	w.Reset(body[:7], 1)
	if !w.Next(&r) || w.Next(&r) || w.Next(&r) || w.Err() != nil {
		t.Errorf("after Reset: error = %v, want one record and none", w.Err())
	}
}

// TestRecordsShareTheBody: slices end where they end, so that a caller that
// appends to one does not write over its neighbour.
func TestRecordsShareTheBody(t *testing.T) {
	want := plainRecord{key: []byte("key"), value: []byte("value"), headers: []plainHeader{{[]byte("h"), []byte("x")}}}
	body := plainBody([]plainRecord{want, {delta: 1}}, 0)
	untouched := bytes.Clone(body)
	var (
		w rb.Walker
		r rb.Record
	)
	w.Reset(body, 2)
	if !w.Next(&r) {
		t.Fatal(w.Err())
	}
	if !bytes.Equal(r.Raw, body[1:1+len(r.Raw)]) || &r.Raw[0] != &body[1] {
		t.Error("Raw is not the record within the body")
	}
	headers := r.Headers()
	key, value, _ := headers.Next()
	for _, b := range [][]byte{r.Key, r.Value, r.Raw, key, value} {
		_ = append(b, "overwritten"...)
	}
	r.AddHeader([]byte("more"), nil)
	if !bytes.Equal(body, untouched) {
		t.Error("appending to a record's slices changed the body")
	}
	want.headers = append(want.headers, plainHeader{key: []byte("more")})
	if diff := diffRecords([]plainRecord{toPlain(&r, 0)}, []plainRecord{want}); diff != "" {
		t.Errorf("with a header added: %s", diff)
	}
}

func TestHeadersOfMisusedRecord(t *testing.T) {
	r := rb.Record{HeaderCount: 3}
	headers := r.Headers()
	for range 3 {
		headers.Next()
	}
	if _, _, ok := headers.Next(); ok {
		t.Error("more headers than counted")
	}
}

func TestVarints(t *testing.T) {
	rng := rand.New(rand.NewSource(propertySeed))
	values := []int64{0, -1, 1, 63, 64, -64, -65, math.MaxInt32, math.MinInt32, math.MaxInt64, math.MinInt64}
	for range 2000 {
		values = append(values, int64(rng.Uint64())>>rng.Intn(64))
	}
	for _, v := range values {
		long := binary.AppendVarint(nil, v)
		if got := rb.AppendLong(nil, v); !bytes.Equal(got, long) || rb.VarlongLen(v) != len(long) {
			t.Errorf("varlong %d = %x of length %d, want %x", v, got, rb.VarlongLen(v), long)
		}
		if got, next := rb.Varlong(long, 0); got != v || next != len(long) {
			t.Errorf("varlong of %x = %d, %d, want %d, %d", long, got, next, v, len(long))
		}
		short := binary.AppendVarint(nil, int64(int32(v)))
		if got := rb.AppendVar(nil, int32(v)); !bytes.Equal(got, short) || rb.VarintLen(int32(v)) != len(short) {
			t.Errorf("varint %d = %x of length %d, want %x", int32(v), got, rb.VarintLen(int32(v)), short)
		}
		for _, behind := range [][]byte{nil, {0}, {0xff, 0xff}} {
			b := slices.Concat([]byte{0xff}, short, behind)
			if got, next := rb.Varint(b, 1); got != int32(v) || next != 1+len(short) {
				t.Errorf("varint of %x = %d, %d, want %d, %d", b[1:], got, next, int32(v), 1+len(short))
			}
		}
		for n := range len(short) {
			if _, next := rb.Varint(short[:n], 0); next != -1 {
				t.Errorf("varint of the cut %x: position %d, want -1", short[:n], next)
			}
		}
	}
}
