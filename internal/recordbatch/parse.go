package recordbatch

import (
	"encoding/binary"
	"fmt"
	"math"
)

// Peek returns the size and the magic of the entry at b[0:]: a record batch, or
// a message of magic 0 or 1, which share the first bytes of their layout.
//
// The error is [ErrTruncated] if b ends inside the entry. That is normal at the
// end of a fetch response, which brokers cut at a number of bytes: fetch on from
// the entry's first offset. The size is then still returned where the bytes tell
// it, and 0 where they do not; a magic that they do not tell is -1.
//
// A [*FormatError] means that no entry can begin like this, and that nothing
// behind it can be found (ByteBufferLogInputStream.nextBatchSize).
func Peek(b []byte) (size int, magic int8, err error) {
	if len(b) < logOverhead {
		return 0, -1, ErrTruncated
	}
	length := int32(binary.BigEndian.Uint32(b[lengthAt:]))
	if length < minMessageV0 || length > math.MaxInt32-logOverhead {
		return 0, -1, headerError(lengthAt, fmt.Sprintf("length %d is impossible", length))
	}
	size = logOverhead + int(length)
	if len(b) <= magicAt {
		return size, -1, ErrTruncated
	}
	magic = int8(b[magicAt])
	if magic < 0 || magic > currentMagic {
		return 0, magic, headerError(magicAt, fmt.Sprintf("magic %d is unknown", magic))
	}
	if least := leastLength(magic); length < least {
		return 0, magic, headerError(lengthAt,
			fmt.Sprintf("length %d is below %d, the least for magic %d", length, least, magic))
	}
	if len(b) < size {
		return size, magic, ErrTruncated
	}
	return size, magic, nil
}

// leastLength returns the smallest value of the length field for a message format.
func leastLength(magic int8) int32 {
	switch magic {
	case 0:
		return minMessageV0
	case 1:
		return minMessageV1
	default:
		return HeaderSize - logOverhead
	}
}

// Parse decodes and checks the header of b, which must be exactly one whole
// batch of magic 2. It checks the structure alone: lengths, counts that the
// offsets have room for, offsets that do not overflow, the leader epoch. It reads neither the
// checksum nor, beyond its size, the body. The error is a [*FormatError].
//
// A batch with Count 0 is legal and has no body: the log cleaner leaves it
// behind to remember a producer's last sequence. Its offsets hold nothing.
func Parse(b []byte) (Header, error) {
	size, magic, err := Peek(b)
	switch {
	case err == ErrTruncated:
		return Header{}, headerError(lengthAt, fmt.Sprintf("the batch is cut off at %d bytes", len(b)))
	case err != nil:
		return Header{}, err
	case size != len(b):
		return Header{}, headerError(lengthAt, fmt.Sprintf("%d bytes follow the batch of %d", len(b)-size, size))
	case magic != currentMagic:
		return Header{}, headerError(magicAt, fmt.Sprintf("magic is %d, not %d", magic, currentMagic))
	}
	h := decodeHeader(b)
	if err := h.check(); err != nil {
		return Header{}, err
	}
	return h, nil
}

func decodeHeader(b []byte) Header {
	be := binary.BigEndian
	return Header{
		BaseOffset:      int64(be.Uint64(b[baseOffsetAt:])),
		Length:          int32(be.Uint32(b[lengthAt:])),
		LeaderEpoch:     int32(be.Uint32(b[leaderEpochAt:])),
		Magic:           int8(b[magicAt]),
		CRC:             be.Uint32(b[crcAt:]),
		Attributes:      int16(be.Uint16(b[attributesAt:])),
		LastOffsetDelta: int32(be.Uint32(b[lastOffsetDeltaAt:])),
		BaseTimestamp:   int64(be.Uint64(b[baseTimestampAt:])),
		MaxTimestamp:    int64(be.Uint64(b[maxTimestampAt:])),
		ProducerID:      int64(be.Uint64(b[producerIDAt:])),
		ProducerEpoch:   int16(be.Uint16(b[producerEpochAt:])),
		BaseSequence:    int32(be.Uint32(b[baseSequenceAt:])),
		Count:           int32(be.Uint32(b[countAt:])),
	}
}

// noLeaderEpoch stands for an epoch that is not known
// (RecordBatch.NO_PARTITION_LEADER_EPOCH).
const noLeaderEpoch = -1

// check returns what is wrong with a decoded header of a batch of the right size.
func (h Header) check() error {
	body := int64(h.Size() - HeaderSize)
	switch {
	case h.BaseOffset < 0:
		return headerError(baseOffsetAt, fmt.Sprintf("base offset %d is negative", h.BaseOffset))
	case h.LeaderEpoch < noLeaderEpoch: // which no checksum covers
		return headerError(leaderEpochAt, fmt.Sprintf("leader epoch %d", h.LeaderEpoch))
	case h.LastOffsetDelta < 0:
		return headerError(lastOffsetDeltaAt, fmt.Sprintf("last offset delta %d is negative", h.LastOffsetDelta))
	case h.BaseOffset >= math.MaxInt64-int64(h.LastOffsetDelta):
		return headerError(lastOffsetDeltaAt,
			fmt.Sprintf("offset %d + %d overflows", h.BaseOffset, h.LastOffsetDelta))
	case h.Count < 0:
		return headerError(countAt, fmt.Sprintf("count %d is negative", h.Count))
	case int64(h.Count) > int64(h.LastOffsetDelta)+1:
		return headerError(countAt,
			fmt.Sprintf("count %d exceeds the %d offsets", h.Count, int64(h.LastOffsetDelta)+1))
	case h.Count == 0 && body > 0:
		return headerError(countAt, fmt.Sprintf("count is 0, but a body of %d bytes follows", body))
	case h.Count > 0 && body == 0:
		return headerError(countAt, fmt.Sprintf("count is %d, but there is no body", h.Count))
	case h.Codec() == None && int64(h.Count)*minRecordSize > body:
		return headerError(countAt, fmt.Sprintf("count %d does not fit the body of %d bytes", h.Count, body))
	}
	return nil
}
