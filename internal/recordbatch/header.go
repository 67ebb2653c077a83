package recordbatch

import (
	"encoding/binary"
	"math"
	"slices"
	"strconv"
)

// HeaderSize is the number of bytes before a batch's body
// (DefaultRecordBatch.RECORD_BATCH_OVERHEAD).
const HeaderSize = 61

// Where the header's fields lie, in bytes from the start of a batch. Positions
// up to and including the magic byte are the same for all message formats. The
// checksum covers everything from the attributes on.
const (
	baseOffsetAt      = 0
	lengthAt          = 8
	leaderEpochAt     = 12
	magicAt           = 16
	crcAt             = 17
	attributesAt      = 21
	lastOffsetDeltaAt = 23
	baseTimestampAt   = 27
	maxTimestampAt    = 35
	producerIDAt      = 43
	producerEpochAt   = 51
	baseSequenceAt    = 53
	countAt           = 57

	// logOverhead is what the length field does not count: the base offset
	// and the length itself (Records.LOG_OVERHEAD).
	logOverhead = 12
)

// Bits of the attributes (DefaultRecordBatch).
const (
	codecMask        = 0x07
	logAppendTimeBit = 0x08
	transactionalBit = 0x10
	controlBit       = 0x20
	deleteHorizonBit = 0x40
)

// Values that stand for nothing (RecordBatch).
const (
	noSequence   = -1
	noTimestamp  = -1
	unknownEpoch = -1
)

// Magic values, and the least that entries of each format can hold.
const (
	currentMagic  = 2
	minMessageV0  = 14 // LegacyRecord.RECORD_OVERHEAD_V0, what the length counts
	minMessageV1  = 22 // LegacyRecord.RECORD_OVERHEAD_V1
	minRecordSize = 7  // length, attributes, two deltas, key length, value length, header count
)

// A Codec is the compression of a batch's body, by the number that the batch's
// attributes carry (CompressionType).
type Codec int8

// The codecs that Kafka knows. Zstd needs Produce version 7 or later (KIP-110).
const (
	None Codec = iota
	Gzip
	Snappy
	LZ4
	Zstd
)

// String returns Kafka's name of the codec, as in compression.type.
func (c Codec) String() string {
	names := [...]string{"none", "gzip", "snappy", "lz4", "zstd"}
	if c < 0 || int(c) >= len(names) {
		return "codec(" + strconv.Itoa(int(c)) + ")"
	}
	return names[c]
}

// A Header is the decoded header of a record batch. [Parse] fills it from
// bytes that it has checked; a Header from elsewhere may hold anything, and its
// methods then answer by arithmetic alone.
type Header struct {
	BaseOffset      int64  // offset of the first record, or of the first that compaction removed
	Length          int32  // bytes that follow the length field
	LeaderEpoch     int32  // partition leader epoch; -1 unknown
	Magic           int8   // message format; 2
	CRC             uint32 // CRC-32C of everything from the attributes on
	Attributes      int16  // codec and flags; ask the methods
	LastOffsetDelta int32  // last offset less base offset; survives compaction
	BaseTimestamp   int64  // milliseconds; what the records' deltas are relative to, see HasDeleteHorizon
	MaxTimestamp    int64  // milliseconds; every record's time where LogAppendTime
	ProducerID      int64  // -1 none
	ProducerEpoch   int16  // -1 none
	BaseSequence    int32  // sequence of the record at the base offset; -1 none
	Count           int32  // records in the body; compaction lowers it, down to 0
}

// Size returns the bytes of the whole batch.
func (h Header) Size() int { return logOverhead + int(h.Length) }

// LastOffset returns the offset of the last record that the batch had when it
// was written. Compaction may have removed that record.
func (h Header) LastOffset() int64 { return h.BaseOffset + int64(h.LastOffsetDelta) }

// NextOffset returns the first offset behind the batch.
func (h Header) NextOffset() int64 { return h.LastOffset() + 1 }

// Codec returns the compression of the body. It may be a number that Kafka has
// not assigned; [Decoder.Body] then refuses the batch.
func (h Header) Codec() Codec { return Codec(h.Attributes & codecMask) }

// Control reports whether the batch holds control records, which consumers
// never see. See [MarkerType].
func (h Header) Control() bool { return h.Attributes&controlBit != 0 }

// Transactional reports whether the batch is part of a transaction.
func (h Header) Transactional() bool { return h.Attributes&transactionalBit != 0 }

// LogAppendTime reports whether the broker stamped the batch: the time of every
// record is then MaxTimestamp, whatever its delta says.
func (h Header) LogAppendTime() bool { return h.Attributes&logAppendTimeBit != 0 }

// HasDeleteHorizon reports whether the log cleaner has set the time at which
// tombstones and markers of the batch may go (KIP-534). BaseTimestamp then holds
// that time, often in the future, and the records' deltas are relative to it.
func (h Header) HasDeleteHorizon() bool { return h.Attributes&deleteHorizonBit != 0 }

// Dense reports whether the header claims a record at each of its offsets, with
// at least one record. A broker accepts nothing else from a producer. Whether the
// claim holds is for [Walker.ResetBatch] to find out.
func (h Header) Dense() bool { return h.Count > 0 && h.Count-1 == h.LastOffsetDelta }

// LastSequence returns the sequence of the batch's last record, or -1 if the
// batch has no sequences. Sequences wrap, see [IncrementSequence].
func (h Header) LastSequence() int32 {
	if h.BaseSequence < 0 {
		return noSequence
	}
	return IncrementSequence(h.BaseSequence, h.LastOffsetDelta)
}

// Timestamp returns the time of a record of this batch as a consumer sees it, in
// milliseconds. The sum wraps on overflow, as it does in Kafka's clients, so that
// [Builder] can carry any two times in one batch.
func (h Header) Timestamp(r *Record) int64 {
	if h.LogAppendTime() {
		return h.MaxTimestamp
	}
	return h.BaseTimestamp + r.TimestampDelta
}

// IncrementSequence returns the sequence that comes n records after sequence.
// After 2^31-1 comes 0 (DefaultRecordBatch.incrementSequence). Neither argument
// may be negative.
func IncrementSequence(sequence, n int32) int32 {
	return int32((int64(sequence) + int64(n)) & math.MaxInt32)
}

// Encode appends a batch of this header and body to dst and returns the extended
// slice. Length and CRC are computed; every other field is written as it is,
// however dishonest.
//
// It exists so that tests can build sparse, compacted, control and lying batches.
// Batches to be produced come from [Builder] or [Patch].
func (h Header) Encode(dst, body []byte) []byte {
	start := len(dst)
	dst = slices.Grow(dst, HeaderSize+len(body))
	dst = append(dst[:start+HeaderSize], body...)
	h.put(dst[start:])
	return dst
}

// put writes the header into the first HeaderSize bytes of the whole batch b,
// with the length and the checksum that b has.
func (h Header) put(b []byte) {
	be := binary.BigEndian
	be.PutUint64(b[baseOffsetAt:], uint64(h.BaseOffset))
	be.PutUint32(b[lengthAt:], uint32(len(b)-logOverhead))
	be.PutUint32(b[leaderEpochAt:], uint32(h.LeaderEpoch))
	b[magicAt] = byte(h.Magic)
	be.PutUint16(b[attributesAt:], uint16(h.Attributes))
	be.PutUint32(b[lastOffsetDeltaAt:], uint32(h.LastOffsetDelta))
	be.PutUint64(b[baseTimestampAt:], uint64(h.BaseTimestamp))
	be.PutUint64(b[maxTimestampAt:], uint64(h.MaxTimestamp))
	be.PutUint64(b[producerIDAt:], uint64(h.ProducerID))
	be.PutUint16(b[producerEpochAt:], uint16(h.ProducerEpoch))
	be.PutUint32(b[baseSequenceAt:], uint32(h.BaseSequence))
	be.PutUint32(b[countAt:], uint32(h.Count))
	be.PutUint32(b[crcAt:], checksum(b[attributesAt:]))
}
