package readlog

import "encoding/binary"

// Where the head of a record batch has its fields (DefaultRecordBatch). Up to the
// magic byte the formats before it are the same.
const (
	baseOffsetAt      = 0
	lengthAt          = 8
	magicAt           = 16
	lastOffsetDeltaAt = 23
	overhead          = 12 // what its length does not count
	headBytes         = 27 // up to behind lastOffsetDelta
)

// firstBatch returns the first batch of what was fetched; nil if it is not all
// there.
func firstBatch(raw []byte) []byte {
	if len(raw) < headBytes {
		return nil
	}
	size := int64(int32(binary.BigEndian.Uint32(raw[lengthAt:]))) + overhead
	if size < headBytes || size > int64(len(raw)) {
		return nil
	}
	return raw[:size]
}

// lastOffset returns the last offset of a batch; of a message of the formats
// before, its own.
func lastOffset(batch []byte) int64 {
	last := int64(binary.BigEndian.Uint64(batch[baseOffsetAt:]))
	if batch[magicAt] == 2 {
		last += int64(max(0, int32(binary.BigEndian.Uint32(batch[lastOffsetDeltaAt:]))))
	}
	return last
}
