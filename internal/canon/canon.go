package canon

import (
	"encoding/binary"

	"github.com/cespare/xxhash/v2"
)

// null is the length that stands for an absent key or value, as opposed to an
// empty one.
const null = ^uint32(0)

// AppendRecord appends the canonical form of a record to dst, up to and
// including its header count, and returns the extended slice. The caller then
// appends exactly headers headers with [AppendHeader], in the record's order.
//
// timestampMillis is the time that a consumer sees: the record's own, or the
// batch's maximum timestamp where the broker stamps the time (LogAppendTime). A
// nil key or value is null; an empty one that is not nil is empty. headers is not
// negative. Kafka limits every length here to 2^31-1.
//
// It does not allocate when dst has room, and keeps no reference to its arguments.
func AppendRecord(dst []byte, timestampMillis int64, key, value []byte, headers int) []byte {
	dst = binary.BigEndian.AppendUint64(dst, uint64(timestampMillis))
	dst = appendBytes(dst, key)
	dst = appendBytes(dst, value)
	return binary.BigEndian.AppendUint32(dst, uint32(headers))
}

// AppendHeader appends the canonical form of one record header to dst and
// returns the extended slice. A header's key is never null in Kafka, so a nil key
// is written as an empty one; a nil value is null.
//
// It does not allocate when dst has room, and keeps no reference to its arguments.
func AppendHeader(dst []byte, key, value []byte) []byte {
	dst = binary.BigEndian.AppendUint32(dst, uint32(len(key)))
	dst = append(dst, key...)
	return appendBytes(dst, value)
}

// Sum returns the hash of one canonical record: xxHash64 with seed 0.
func Sum(canonical []byte) uint64 {
	return xxhash.Sum64(canonical)
}

func appendBytes(dst, b []byte) []byte {
	if b == nil {
		return binary.BigEndian.AppendUint32(dst, null)
	}
	dst = binary.BigEndian.AppendUint32(dst, uint32(len(b)))
	return append(dst, b...)
}
