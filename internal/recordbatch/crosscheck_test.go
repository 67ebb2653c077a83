package recordbatch_test

import (
	"bytes"
	"hash/crc32"
	"testing"
	"time"

	"github.com/leanovate/gopter"
	"github.com/leanovate/gopter/gen"
	"github.com/leanovate/gopter/prop"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	rb "apograph/internal/recordbatch"
)

// This file compares the package with the Kafka client, in both directions.

// kgoMillis bounds the times that the client can represent: it counts nanoseconds
// since 1970 in an int64.
const kgoMillis = 9_000_000_000_000

// TestClientReadsBuilder: the client's fetch path reads what Builder writes, and
// finds it once more behind a patch.
func TestClientReadsBuilder(t *testing.T) {
	eachCodec(t, func(t *testing.T, codec rb.Codec) {
		properties := gopter.NewProperties(propertyParameters(50))
		properties.Property("client(build(records)) == records", prop.ForAll(
			func(records []plainRecord) string {
				for i := range records {
					records[i].timestamp %= kgoMillis
				}
				batch := mustBuild(t, codec, records)
				if diff := diffRecords(clientRecords(t, batch, 4711), records); diff != "" {
					return diff
				}
				rb.Patch(batch, 99, 1, 5)
				return diffRecords(clientRecords(t, batch, 99), records)
			},
			genRecords(60),
		))
		properties.TestingRun(t)
	})
}

// clientRecords reads batches as the client reads a fetch response.
func clientRecords(t *testing.T, batches []byte, producerID int64) []plainRecord {
	t.Helper()
	partition := kmsg.FetchResponseTopicPartition{RecordBatches: batches}
	got, _ := kgo.ProcessFetchPartition(kgo.ProcessFetchPartitionOpts{KeepControlRecords: true}, &partition, kgo.DefaultDecompressor(), nil)
	if got.Err != nil {
		t.Fatalf("client: %v", got.Err)
	}
	var records []plainRecord
	for _, r := range got.Records {
		if r.ProducerID != producerID {
			t.Errorf("client: producer id %d, want %d", r.ProducerID, producerID)
		}
		p := plainRecord{delta: int32(r.Offset), timestamp: r.Timestamp.UnixNano() / int64(time.Millisecond), key: r.Key, value: r.Value}
		for _, h := range r.Headers {
			p.headers = append(p.headers, plainHeader{[]byte(h.Key), h.Value})
		}
		records = append(records, p)
	}
	return records
}

// TestWalkerReadsTheClientsWriter: batches encoded with the client's types, and
// compressed with its compressor.
func TestWalkerReadsTheClientsWriter(t *testing.T) {
	compressors := []kgo.CompressionCodec{kgo.NoCompression(), kgo.GzipCompression(), kgo.SnappyCompression(), kgo.Lz4Compression(), kgo.ZstdCompression()}
	for codec, option := range compressors {
		compressor, err := kgo.DefaultCompressor(option)
		if err != nil {
			t.Fatal(err)
		}
		properties := gopter.NewProperties(propertyParameters(50))
		properties.Property("walk(client's batch) == records", prop.ForAll(
			func(records []plainRecord, base int64) string {
				batch := clientBatch(compressor, records, base)
				h := mustParse(t, batch)
				if int(h.Codec()) != codec {
					return "codec " + h.Codec().String()
				}
				return diffRecords(mustWalkPlain(t, batch), records)
			},
			genRecords(60), gen.Int64(),
		))
		properties.TestingRun(t)
	}
}

func clientBatch(compressor kgo.Compressor, records []plainRecord, base int64) []byte {
	var body []byte
	for _, p := range records {
		body = append(body, clientRecord(p, base)...)
	}
	payload, codec := body, kgo.CodecNone
	if compressor != nil {
		payload, codec = compressor.Compress(new(bytes.Buffer), body)
	}
	b := kmsg.RecordBatch{
		Length: int32(49 + len(payload)), PartitionLeaderEpoch: -1, Magic: 2, Attributes: int16(codec),
		LastOffsetDelta: int32(len(records) - 1), FirstTimestamp: base, ProducerID: 1, NumRecords: int32(len(records)), Records: payload,
	}
	b.CRC = int32(crc32.Checksum(b.AppendTo(nil)[21:], crc32.MakeTable(crc32.Castagnoli)))
	return b.AppendTo(nil)
}

func clientRecord(p plainRecord, base int64) []byte {
	r := kmsg.Record{TimestampDelta64: p.timestamp - base, OffsetDelta: p.delta, Key: p.key, Value: p.value}
	for _, h := range p.headers {
		r.Headers = append(r.Headers, kmsg.Header{Key: string(h.key), Value: h.value})
	}
	// The length before it is that of the record with a length of 0, less that byte.
	r.Length = int32(len(r.AppendTo(nil)) - 1)
	return r.AppendTo(nil)
}

// TestClientsTypesAgree: the client's types decode header and records to the same
// fields, and encode them to the same bytes.
func TestClientsTypesAgree(t *testing.T) {
	properties := gopter.NewProperties(propertyParameters(200))
	properties.Property("kmsg.RecordBatch == Header", prop.ForAll(
		func(f plainHeaderFields, records []plainRecord) bool {
			var body []byte
			for _, p := range records {
				r := p.toRecord(f.BaseTimestamp)
				encoded := r.Encode(nil)
				if !bytes.Equal(encoded, clientRecord(p, f.BaseTimestamp)) {
					return false
				}
				body = append(body, encoded...)
			}
			batch := rb.Header(f).Encode(nil, body)
			var b kmsg.RecordBatch
			if err := b.ReadFrom(batch); err != nil || !bytes.Equal(b.AppendTo(nil), batch) {
				return false
			}
			got := plainHeaderFields{
				b.FirstOffset, b.Length, b.PartitionLeaderEpoch, b.Magic, uint32(b.CRC), b.Attributes, b.LastOffsetDelta,
				b.FirstTimestamp, b.MaxTimestamp, b.ProducerID, b.ProducerEpoch, b.FirstSequence, b.NumRecords,
			}
			f.Length, f.CRC = int32(49+len(body)), slowCRC(batch[21:])
			return got == f
		},
		genHeader(), genRecords(10),
	))
	properties.TestingRun(t)
}
