package ledger

import (
	"encoding/binary"
	"math"
	"unicode/utf8"
)

// A wireReader takes values off the front of a payload. After the first value
// that is not there it only returns zeros, and bad stays true, so that a
// decoder checks once, at the end.
type wireReader struct {
	b   []byte
	bad bool
}

func (r *wireReader) fail() {
	r.b, r.bad = nil, true
}

// done reports whether everything was read and nothing was missing.
func (r *wireReader) done() bool { return !r.bad && len(r.b) == 0 }

func (r *wireReader) byte() byte {
	if len(r.b) == 0 {
		r.fail()
		return 0
	}
	v := r.b[0]
	r.b = r.b[1:]
	return v
}

func (r *wireReader) uvarint() uint64 {
	v, n := binary.Uvarint(r.b)
	if n <= 0 {
		r.fail()
		return 0
	}
	r.b = r.b[n:]
	return v
}

func (r *wireReader) varint() int64 {
	v, n := binary.Varint(r.b)
	if n <= 0 {
		r.fail()
		return 0
	}
	r.b = r.b[n:]
	return v
}

// count returns a number that is not negative as an int64.
func (r *wireReader) count() int64 {
	v := r.uvarint()
	if v > math.MaxInt64 {
		r.fail()
		return 0
	}
	return int64(v)
}

// below returns a number that is not above limit.
func (r *wireReader) below(limit uint64) uint64 {
	v := r.uvarint()
	if v > limit {
		r.fail()
		return 0
	}
	return v
}

// delta returns base plus a signed difference, and fails where that overflows.
func (r *wireReader) delta(base int64) int64 {
	d := r.varint()
	v := base + d
	if (d > 0) != (v > base) && d != 0 {
		r.fail()
		return 0
	}
	return v
}

func (r *wireReader) uint64() uint64 {
	return binary.BigEndian.Uint64(r.bytes(8))
}

// bytes returns the next n bytes, which stay part of the payload, or n zeros.
func (r *wireReader) bytes(n int) []byte {
	if n > len(r.b) {
		r.fail()
		return make([]byte, n)
	}
	v := r.b[:n:n]
	r.b = r.b[n:]
	return v
}

// text returns a text of at most limit bytes.
func (r *wireReader) text(limit uint64) string {
	n := r.below(limit)
	s := string(r.bytes(int(n)))
	if !utf8.ValidString(s) {
		r.fail()
		return ""
	}
	return s
}

// flags returns a set of flag bits, and fails if one is not known: it says that
// the value means something that this version cannot read.
func (r *wireReader) flags(known uint64) uint64 {
	v := r.uvarint()
	if v&^known != 0 {
		r.fail()
		return 0
	}
	return v
}

func appendText(b []byte, s string) []byte {
	b = binary.AppendUvarint(b, uint64(len(s)))
	return append(b, s...)
}
