package kafkatest

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

var (
	errChecksum = errors.New("wrong checksum")
	errRecord   = errors.New("record is malformed")
)

// DecodeBatch reads one whole batch of magic 2 and all its records. What it
// returns encodes to a batch with the same meaning (the payload may be
// compressed differently). Keys and values may alias raw.
func DecodeBatch(raw []byte) (Batch, error) {
	return decodeBatch(raw, NewDecompressor())
}

func decodeBatch(raw []byte, decompressor *Decompressor) (Batch, error) {
	var k kmsg.RecordBatch
	if err := k.ReadFrom(raw); err != nil {
		return Batch{}, fmt.Errorf("record batch: %w", err)
	}
	if int(k.Length) != len(raw)-batchOverhead || k.Magic != 2 || k.NumRecords < 0 {
		return Batch{}, fmt.Errorf("record batch at %d: length %d of %d bytes, magic %d, count %d", k.FirstOffset, k.Length, len(raw), k.Magic, k.NumRecords)
	}
	if crc32.Checksum(raw[batchCRCStart:], crc32.MakeTable(crc32.Castagnoli)) != uint32(k.CRC) {
		return Batch{}, fmt.Errorf("record batch at %d: %w", k.FirstOffset, errChecksum)
	}
	b := Batch{
		BaseOffset: k.FirstOffset, LeaderEpoch: k.PartitionLeaderEpoch,
		Attributes: k.Attributes &^ attrCodec, Codec: Codec(k.Attributes & attrCodec),
		LastOffsetDelta: k.LastOffsetDelta, BaseTimestamp: k.FirstTimestamp, MaxTimestamp: k.MaxTimestamp,
		ProducerID: k.ProducerID, ProducerEpoch: k.ProducerEpoch, BaseSequence: k.FirstSequence,
	}
	body := k.Records
	if len(body) > 0 { // an empty batch has no body, whatever its codec
		var err error
		if body, err = decompressor.Decompress(body, kgo.CompressionCodecType(b.Codec)); err != nil {
			return Batch{}, fmt.Errorf("record batch at %d: %v: %w", k.FirstOffset, b.Codec, err)
		}
	}
	r := recordReader{rest: body}
	for i := range k.NumRecords {
		b.Records = append(b.Records, r.record(b.BaseTimestamp))
		if r.failed {
			return Batch{}, fmt.Errorf("record batch at %d: record %d of %d: %w", k.FirstOffset, i, k.NumRecords, errRecord)
		}
	}
	if len(r.rest) != 0 {
		return Batch{}, fmt.Errorf("record batch at %d: %d bytes behind the last of %d records", k.FirstOffset, len(r.rest), k.NumRecords)
	}
	return b, nil
}

// A recordReader reads the records of a body (Kafka's DefaultRecord: varints
// are zigzag, lengths of -1 are null). After the first failure it returns zero
// values.
type recordReader struct {
	rest   []byte
	failed bool
}

func (r *recordReader) record(baseTimestamp int64) BatchRecord {
	length := r.varint()
	one := recordReader{rest: r.take(length), failed: r.failed}
	one.take(1) // attributes, unused
	record := BatchRecord{Timestamp: baseTimestamp + one.varint(), OffsetDelta: int32(one.varint())}
	record.Key, record.Value = one.nullable(), one.nullable()
	for range one.varint() {
		if one.failed {
			break
		}
		name := one.take(one.varint())
		record.Headers = append(record.Headers, Header{Key: string(name), Value: one.nullable()})
	}
	r.failed = r.failed || one.failed || len(one.rest) > 0
	return record
}

func (r *recordReader) varint() int64 {
	v, n := binary.Varint(r.rest)
	if n <= 0 {
		r.failed, r.rest = true, nil
		return 0
	}
	r.rest = r.rest[n:]
	return v
}

func (r *recordReader) take(n int64) []byte {
	if n < 0 || n > int64(len(r.rest)) {
		r.failed, r.rest = true, nil
		return nil
	}
	taken := r.rest[:n:n]
	r.rest = r.rest[n:]
	return taken
}

// nullable returns nil for null and a slice that is not nil for what is empty.
func (r *recordReader) nullable() []byte {
	n := r.varint()
	if n == -1 {
		return nil
	}
	return append([]byte{}, r.take(n)...)
}
