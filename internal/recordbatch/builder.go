package recordbatch

import (
	"math"
	"slices"
)

// A Builder makes one batch at a time out of records. The zero Builder makes
// uncompressed ones. It is meant to be kept: it reuses its buffer, which grows to
// the largest body built, and its codecs' states. It must not be copied after its
// first use, is not safe for concurrent use, and starts no goroutine.
type Builder struct {
	codec   Codec
	batch   []byte // room for a header, then the records, uncompressed; empty without records
	count   int
	base    int64 // time of the first record
	maximum int64 // latest time, at least noTimestamp
	encoder Encoder
}

// Reset drops all records and begins a batch whose body [Builder.Seal] will
// compress by codec.
func (b *Builder) Reset(codec Codec) {
	b.codec = codec
	b.batch = b.batch[:0]
	b.count = 0
}

// Append adds a record with the given time, in milliseconds. It copies r, which
// may be a record that a [Walker] returned or one made by hand.
//
// The record gets the next offset: deltas are 0, 1, 2 and so on, whatever
// r.OffsetDelta says, and its time is written relative to that of the first
// record, whatever r.TimestampDelta says. Everything else stays as it is; headers
// are copied without being decoded. Any two times fit one batch, also where their
// difference overflows, since readers add it back modulo 2^64.
func (b *Builder) Append(r *Record, timestampMillis int64) {
	if b.count == 0 {
		b.base, b.maximum = timestampMillis, noTimestamp
		b.batch = slices.Grow(b.batch[:0], HeaderSize)[:HeaderSize]
	}
	b.batch = r.encode(b.batch, int32(b.count), timestampMillis-b.base)
	b.maximum = max(b.maximum, timestampMillis)
	b.count++
}

// Count returns the number of records appended since Reset.
func (b *Builder) Count() int { return b.count }

// BodyBytes returns the size of the records appended since Reset, uncompressed.
// An uncompressed batch is [HeaderSize] larger.
func (b *Builder) BodyBytes() int { return max(0, len(b.batch)-HeaderSize) }

// Seal appends the batch of the records appended since Reset to dst and returns
// the extended slice: base offset 0, leader epoch unknown, no flags, the given
// producer id, epoch and base sequence. Its maximum timestamp is the latest time
// of a record but not below -1, as Kafka computes it (MemoryRecordsBuilder), so
// that a broker need not correct it.
//
// The builder keeps the records until Reset. The error is [ErrEmptyBatch], wraps
// [ErrUnknownCodec], or comes from a batch of 2 GiB or more; dst is then returned
// as it was.
func (b *Builder) Seal(dst []byte, producerID int64, epoch int16, sequence int32) ([]byte, error) {
	if b.count == 0 {
		return dst, ErrEmptyBatch
	}
	// A body that the encoder accepts has fewer records than an int32 counts.
	start := len(dst)
	dst = slices.Grow(dst, HeaderSize)
	dst, err := b.encoder.Body(dst[:start+HeaderSize], b.codec, b.batch[HeaderSize:])
	if err != nil {
		return dst[:start], err
	}
	if size := len(dst) - start; size > math.MaxInt32 {
		return dst[:start], bodyTooLong(size - HeaderSize)
	}
	b.header(producerID, epoch, sequence).put(dst[start:])
	return dst, nil
}

// Take is [Builder.Seal] without the copy of what is not compressed: such a batch
// is the builder's own memory, and the builder goes on with that of spare. A
// compressed one is written over spare. In either case the batch is the caller's
// and the records are dropped. The errors are those of Seal; spare is lost then.
func (b *Builder) Take(spare []byte, producerID int64, epoch int16, sequence int32) ([]byte, error) {
	if b.codec != None || b.count == 0 {
		batch, err := b.Seal(spare[:0], producerID, epoch, sequence)
		b.Reset(b.codec)
		return batch, err
	}
	batch := b.batch
	if len(batch) > math.MaxInt32 {
		return nil, bodyTooLong(len(batch) - HeaderSize)
	}
	b.header(producerID, epoch, sequence).put(batch)
	if cap(spare) < cap(batch) {
		spare = make([]byte, 0, cap(batch)) // once, rather than by and by
	}
	b.batch = spare
	b.Reset(b.codec)
	return batch, nil
}

// header returns the header of the batch of all records appended.
func (b *Builder) header(producerID int64, epoch int16, sequence int32) Header {
	return Header{
		LeaderEpoch:     unknownEpoch,
		Magic:           currentMagic,
		Attributes:      int16(b.codec),
		LastOffsetDelta: int32(b.count - 1),
		BaseTimestamp:   b.base,
		MaxTimestamp:    b.maximum,
		ProducerID:      producerID,
		ProducerEpoch:   epoch,
		BaseSequence:    sequence,
		Count:           int32(b.count),
	}
}
