package canon_test

import (
	"bytes"
	"encoding/hex"
	"os"
	"strconv"
	"strings"
	"testing"

	"apograph/internal/canon"
)

type header struct{ key, value []byte }

type record struct {
	timestamp  int64
	key, value []byte
	headers    []header
}

func (r record) canonical(dst []byte) []byte {
	dst = canon.AppendRecord(dst, r.timestamp, r.key, r.value, len(r.headers))
	for _, h := range r.headers {
		dst = canon.AppendHeader(dst, h.key, h.value)
	}
	return dst
}

type vector struct {
	record    record
	canonical []byte
	sum       uint64
}

func TestVectors(t *testing.T) {
	vectors := mustVectors(t)
	if len(vectors) != 4 {
		t.Fatalf("testdata holds %d vectors, want 4", len(vectors))
	}
	for i, v := range vectors {
		got := v.record.canonical(nil)
		if !bytes.Equal(got, v.canonical) {
			t.Errorf("vector %d: canonical bytes = %x, want %x", i, got, v.canonical)
		}
		if sum := canon.Sum(v.canonical); sum != v.sum {
			t.Errorf("vector %d: Sum = %016x, want %016x", i, sum, v.sum)
		}
	}
}

func TestAppendKeepsWhatIsThere(t *testing.T) {
	r := record{timestamp: 5, key: []byte("k"), headers: []header{{key: []byte("h")}}}
	got := r.canonical([]byte("before"))
	want := append([]byte("before"), r.canonical(nil)...)
	if !bytes.Equal(got, want) {
		t.Errorf("appended to a prefix: %x, want %x", got, want)
	}
}

func TestNullIsNotEmpty(t *testing.T) {
	pairs := []struct {
		name        string
		null, empty record
	}{
		{"key", record{}, record{key: []byte{}}},
		{"value", record{}, record{value: []byte{}}},
		{
			"header value",
			record{headers: []header{{key: []byte("h")}}},
			record{headers: []header{{key: []byte("h"), value: []byte{}}}},
		},
	}
	for _, p := range pairs {
		if bytes.Equal(p.null.canonical(nil), p.empty.canonical(nil)) {
			t.Errorf("%s: null and empty have the same canonical bytes", p.name)
		}
	}
}

func TestNilHeaderKeyIsEmpty(t *testing.T) {
	null := canon.AppendHeader(nil, nil, []byte("v"))
	empty := canon.AppendHeader(nil, []byte{}, []byte("v"))
	if !bytes.Equal(null, empty) {
		t.Errorf("nil header key = %x, empty header key = %x, want the same", null, empty)
	}
}

func TestNoAllocation(t *testing.T) {
	r := record{
		timestamp: 1700000000000,
		key:       []byte("key"),
		value:     bytes.Repeat([]byte("v"), 1000),
		headers:   []header{{[]byte("a"), []byte("b")}, {[]byte("c"), nil}},
	}
	buf := make([]byte, 0, 2048)
	var sum uint64
	allocs := testing.AllocsPerRun(100, func() {
		buf = r.canonical(buf[:0])
		sum ^= canon.Sum(buf)
	})
	if allocs != 0 {
		t.Errorf("canonical record and hash: %v allocations, want 0", allocs)
	}
}

func mustVectors(t *testing.T) []vector {
	t.Helper()
	data, err := os.ReadFile("testdata/vectors.txt")
	if err != nil {
		t.Fatal(err)
	}
	var vectors []vector
	for line := range strings.Lines(string(data)) {
		if line = strings.TrimSpace(line); line == "" || line[0] == '#' {
			continue
		}
		vectors = append(vectors, mustVector(t, line))
	}
	return vectors
}

func mustVector(t *testing.T, line string) vector {
	t.Helper()
	columns := strings.Split(line, "|")
	if len(columns) != 6 {
		t.Fatalf("vector has %d columns, want 6: %s", len(columns), line)
	}
	for i := range columns {
		columns[i] = strings.TrimSpace(columns[i])
	}
	timestamp, err := strconv.ParseInt(columns[0], 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	sum, err := strconv.ParseUint(columns[5], 16, 64)
	if err != nil {
		t.Fatal(err)
	}
	v := vector{
		record:    record{timestamp: timestamp, key: mustHex(t, columns[1]), value: mustHex(t, columns[2])},
		canonical: mustHex(t, "x"+columns[4]),
		sum:       sum,
	}
	if columns[3] == "-" {
		return v
	}
	for pair := range strings.SplitSeq(columns[3], ",") {
		key, value, ok := strings.Cut(pair, "=")
		if !ok {
			t.Fatalf("header without =: %s", pair)
		}
		v.record.headers = append(v.record.headers, header{mustHex(t, key), mustHex(t, value)})
	}
	return v
}

// mustHex reads the notation of the vector file: null, or hex after an x.
func mustHex(t *testing.T, s string) []byte {
	t.Helper()
	if s == "null" {
		return nil
	}
	digits, ok := strings.CutPrefix(s, "x")
	if !ok {
		t.Fatalf("%q is neither null nor hex after x", s)
	}
	b, err := hex.DecodeString(digits)
	if err != nil {
		t.Fatal(err)
	}
	return b
}
