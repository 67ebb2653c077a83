package kafkatest

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"hash/crc32"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// Sizes of a record batch of magic 2 (Kafka's DefaultRecordBatch).
const (
	batchOverhead   = 12 // base offset and length, which the length does not count
	batchHeaderSize = 61
	batchCRCStart   = 21 // the checksum covers everything from here on
)

// Attribute bits of a record batch (DefaultRecordBatch).
const (
	AttrLogAppendTime = 0x08
	AttrTransactional = 0x10
	AttrControl       = 0x20
	AttrDeleteHorizon = 0x40

	attrCodec = 0x07
)

// A Codec is the number of a compression codec in a batch's attributes.
type Codec int16

const (
	None Codec = iota
	Gzip
	Snappy
	LZ4
	Zstd
)

// Codecs returns all codecs, in the order of their numbers.
func Codecs() []Codec { return []Codec{None, Gzip, Snappy, LZ4, Zstd} }

func (c Codec) String() string {
	names := []string{"none", "gzip", "snappy", "lz4", "zstd"}
	if c < 0 || int(c) >= len(names) {
		return fmt.Sprintf("Codec(%d)", int16(c))
	}
	return names[c]
}

// compression returns kgo's name of the codec.
func (c Codec) compression() kgo.CompressionCodec {
	switch c {
	case Gzip:
		return kgo.GzipCompression()
	case Snappy:
		return kgo.SnappyCompression()
	case LZ4:
		return kgo.Lz4Compression()
	case Zstd:
		return kgo.ZstdCompression()
	default:
		return kgo.NoCompression()
	}
}

// A Header is one header of a record; a nil value is null.
type Header struct {
	Key   string
	Value []byte
}

// A BatchRecord is a record inside a batch. Nil keys and values are null.
type BatchRecord struct {
	OffsetDelta int32
	Timestamp   int64 // milliseconds
	Key, Value  []byte
	Headers     []Header
}

// A Batch is a record batch of magic 2 whose every field can be set, right or
// wrong: for building logs that a producer cannot write. It is independent of
// the product's own encoder.
type Batch struct {
	BaseOffset      int64
	LeaderEpoch     int32
	Attributes      int16 // without the codec
	Codec           Codec
	LastOffsetDelta int32
	BaseTimestamp   int64 // record times are written relative to it
	MaxTimestamp    int64
	ProducerID      int64
	ProducerEpoch   int16
	BaseSequence    int32
	Records         []BatchRecord

	Payload []byte // if not nil, stands in place of the encoded and compressed records
	Count   int32  // with Payload: the record count of the header
}

// NewBatch returns a dense batch without producer at baseOffset, as a plain
// producer writes it: offset deltas are 0, 1, ..., whatever the records say.
func NewBatch(baseOffset int64, records ...BatchRecord) Batch {
	b := Batch{
		BaseOffset: baseOffset, LastOffsetDelta: int32(len(records)) - 1,
		ProducerID: -1, ProducerEpoch: -1, BaseSequence: -1, BaseTimestamp: -1, MaxTimestamp: -1,
		Records: records,
	}
	for i := range records {
		records[i].OffsetDelta = int32(i)
		if i == 0 {
			b.BaseTimestamp = records[i].Timestamp
		}
		b.MaxTimestamp = max(b.MaxTimestamp, records[i].Timestamp)
	}
	return b
}

// Marker returns the control batch that ends a transaction: one record whose
// key is version 0 and type 1 for commit or 0 for abort (ControlRecordType),
// and whose value is an EndTxnMarker of coordinator epoch 0.
func Marker(baseOffset, producerID int64, epoch int16, commit bool, timestamp int64) Batch {
	key := kmsg.ControlRecordKey{Type: kmsg.ControlRecordKeyTypeAbort}
	if commit {
		key.Type = kmsg.ControlRecordKeyTypeCommit
	}
	b := NewBatch(baseOffset, BatchRecord{Timestamp: timestamp, Key: key.AppendTo(nil), Value: (&kmsg.EndTxnMarker{}).AppendTo(nil)})
	b.Attributes = AttrTransactional | AttrControl
	b.ProducerID, b.ProducerEpoch = producerID, epoch
	return b
}

// NextOffset is the offset after the batch's last one.
func (b *Batch) NextOffset() int64 { return b.BaseOffset + int64(b.LastOffsetDelta) + 1 }

// Control reports whether the batch holds a control record.
func (b *Batch) Control() bool { return b.Attributes&AttrControl != 0 }

// Transactional reports whether the batch belongs to a transaction.
func (b *Batch) Transactional() bool { return b.Attributes&AttrTransactional != 0 }

// HasDeleteHorizon reports whether BaseTimestamp is the time from which the
// tombstones of the batch may be removed, not a record's time (KIP-534).
func (b *Batch) HasDeleteHorizon() bool { return b.Attributes&AttrDeleteHorizon != 0 }

// Encode returns the batch's bytes, with right length and checksum whatever
// the fields say.
func (b *Batch) Encode() ([]byte, error) {
	compressor, err := kgo.DefaultCompressor(b.Codec.compression())
	if err != nil {
		return nil, fmt.Errorf("compress with %v: %w", b.Codec, err)
	}
	return b.encode(compressor)
}

// encode is Encode with a compressor of the batch's codec; nil for none.
func (b *Batch) encode(compressor kgo.Compressor) ([]byte, error) {
	payload, count := b.Payload, b.Count
	if payload == nil {
		count = int32(len(b.Records))
		var err error
		if payload, err = compress(compressor, b.Codec, encodeRecords(b.BaseTimestamp, b.Records)); err != nil {
			return nil, err
		}
	}
	raw := (&kmsg.RecordBatch{
		FirstOffset: b.BaseOffset, PartitionLeaderEpoch: b.LeaderEpoch, Magic: 2,
		Attributes:      b.Attributes&^attrCodec | int16(b.Codec),
		LastOffsetDelta: b.LastOffsetDelta,
		FirstTimestamp:  b.BaseTimestamp, MaxTimestamp: b.MaxTimestamp,
		ProducerID: b.ProducerID, ProducerEpoch: b.ProducerEpoch, FirstSequence: b.BaseSequence,
		NumRecords: count, Records: payload,
	}).AppendTo(nil)
	binary.BigEndian.PutUint32(raw[8:], uint32(len(raw)-batchOverhead))
	checksum := crc32.Checksum(raw[batchCRCStart:], crc32.MakeTable(crc32.Castagnoli))
	binary.BigEndian.PutUint32(raw[17:], checksum)
	return raw, nil
}

func encodeRecords(baseTimestamp int64, records []BatchRecord) []byte {
	var body []byte
	for i := range records {
		r := &records[i]
		k := kmsg.Record{TimestampDelta64: r.Timestamp - baseTimestamp, OffsetDelta: r.OffsetDelta, Key: r.Key, Value: r.Value}
		for _, h := range r.Headers {
			k.Headers = append(k.Headers, kmsg.Header{Key: h.Key, Value: h.Value})
		}
		// The length counts what follows it; encoded as 0 it is one byte.
		k.Length = int32(len(k.AppendTo(nil)) - 1)
		body = k.AppendTo(body)
	}
	return body
}

func compress(compressor kgo.Compressor, codec Codec, body []byte) ([]byte, error) {
	if codec == None || len(body) == 0 {
		return body, nil
	}
	out, used := compressor.Compress(new(bytes.Buffer), body)
	if Codec(used) != codec {
		return nil, fmt.Errorf("compress with %v: got codec %v", codec, Codec(used))
	}
	return bytes.Clone(out), nil
}
