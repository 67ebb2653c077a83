package recordbatch

import "slices"

// A Record is one record of a batch. [Walker.Next] fills it with subslices of
// the body, which are valid as long as the body is; their capacity ends with
// them, so appending to one copies it. Tests fill it by hand.
type Record struct {
	// OffsetDelta is the record's offset less the batch's base offset.
	OffsetDelta int32

	// TimestampDelta is in milliseconds from the batch's base timestamp. See
	// [Header.Timestamp] for the record's time.
	TimestampDelta int64

	Key, Value []byte // nil is null, empty is empty

	// HeaderCount is the number of headers. Walker and AddHeader set it.
	HeaderCount int

	// Raw is the whole record as it lies in the body, without its length
	// prefix. Walker sets it; what is written never depends on it.
	Raw []byte

	// headers holds HeaderCount encoded headers, known to be well formed.
	headers []byte
}

// Headers returns an iterator over the record's headers. It does not allocate.
func (r *Record) Headers() HeaderIter {
	return HeaderIter{rest: r.headers, count: r.HeaderCount}
}

// AddHeader appends a header to the record. A nil value is null; a header's key
// cannot be null. It copies both, and leaves a walked body untouched.
func (r *Record) AddHeader(key, value []byte) {
	r.headers = appendVarint(r.headers, int32(len(key)))
	r.headers = append(r.headers, key...)
	r.headers = appendBytes(r.headers, value)
	r.HeaderCount++
}

// Encode appends the record to dst with the deltas that it has, and returns the
// extended slice. Together with [Header.Encode] it makes test data that a
// [Builder] refuses to make, such as sparse batches.
func (r *Record) Encode(dst []byte) []byte {
	return r.encode(dst, r.OffsetDelta, r.TimestampDelta)
}

// encode appends the record with the given deltas. The record's attributes, which
// Kafka does not use, become 0.
func (r *Record) encode(dst []byte, offsetDelta int32, timestampDelta int64) []byte {
	size := 1 + varlongLen(timestampDelta) + varintLen(offsetDelta) +
		bytesLen(r.Key) + bytesLen(r.Value) + varintLen(int32(r.HeaderCount)) + len(r.headers)
	dst = slices.Grow(dst, varintLen(int32(size))+size)
	dst = appendVarint(dst, int32(size))
	dst = append(dst, 0)
	dst = appendVarlong(dst, timestampDelta)
	dst = appendVarint(dst, offsetDelta)
	dst = appendBytes(dst, r.Key)
	dst = appendBytes(dst, r.Value)
	dst = appendVarint(dst, int32(r.HeaderCount))
	return append(dst, r.headers...)
}

func appendBytes(dst, b []byte) []byte {
	if b == nil {
		return appendVarint(dst, -1)
	}
	dst = appendVarint(dst, int32(len(b)))
	return append(dst, b...)
}

func bytesLen(b []byte) int {
	if b == nil {
		return varintLen(-1)
	}
	return varintLen(int32(len(b))) + len(b)
}

// A HeaderIter iterates over the headers of one record, in order. Keys may
// repeat. It is valid as long as the record's bytes are.
type HeaderIter struct {
	rest  []byte
	count int
}

// Next returns the next header and true, or false behind the last one. A nil
// value is null; the key is never nil. The slices are those of the record.
func (it *HeaderIter) Next() (key, value []byte, ok bool) {
	if it.count <= 0 {
		return nil, nil, false
	}
	it.count--
	key, at := field(it.rest, 0)
	value, at = field(it.rest, max(at, 0))
	it.rest = it.rest[max(at, 0):]
	return key, value, true
}

// Positions that field returns instead of one behind the field.
const (
	noLength = -1 // no valid length is there
	tooLong  = -2 // the field ends behind the record
)

// field reads a length-prefixed field at b[at:], nil if its length is negative,
// and returns the position behind it, or a negative one.
func field(b []byte, at int) (value []byte, next int) {
	n, next := varint(b, at)
	switch {
	case next < 0:
		return nil, noLength
	case n < 0:
		return nil, next
	case int(n) > len(b)-next:
		return nil, tooLong
	}
	end := next + int(n)
	return b[next:end:end], end
}
