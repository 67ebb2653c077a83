package workload_test

import (
	"bytes"
	"testing"

	"apograph/bench/workload"
	"apograph/internal/kafkatest"
	"apograph/internal/recordbatch"
)

// shapes are a few of each kind; few batches, so that the test is short.
func shapes() []workload.Shape {
	return []workload.Shape{
		{RecordBytes: 100, BatchBytes: 64 << 10, Codec: recordbatch.LZ4, Different: 20},
		{RecordBytes: 1024, BatchBytes: 64 << 10, Codec: recordbatch.None, Different: 20},
		{RecordBytes: 1024, BatchBytes: 4 << 10, Codec: recordbatch.Zstd, Different: 20},
		{RecordBytes: 1024, BatchBytes: 0, Codec: recordbatch.Snappy, Different: 20},
		{RecordBytes: 100 << 10, BatchBytes: 64 << 10, Codec: recordbatch.Gzip, Different: 20},
	}
}

// TestShapes decodes the batches with another decoder than the product's: records
// have exactly the size asked for, batches as many of them as fit, and none is the
// same as another.
func TestShapes(t *testing.T) {
	for _, s := range shapes() {
		batches, err := s.Batches(7, 1_700_000_000_000)
		if err != nil {
			t.Fatal(err)
		}
		if len(batches) != 20 {
			t.Errorf("%+v: %d batches", s, len(batches))
		}
		seen := make(map[string]bool)
		for _, b := range batches {
			seen[string(b.Bytes)] = true
			checkBatch(t, s, b)
		}
		if len(seen) != len(batches) {
			t.Errorf("%+v: %d different batches of %d", s, len(seen), len(batches))
		}
		if ratio := workload.Ratio(batches); s.Codec != recordbatch.None && (ratio < 1.2 || ratio > 6) {
			t.Errorf("%+v: a ratio of %.2f is not like that of real data", s, ratio)
		}
	}
}

func checkBatch(t *testing.T, s workload.Shape, b workload.Batch) {
	t.Helper()
	decoded, err := kafkatest.DecodeBatch(b.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	if int(decoded.Codec) != int(s.Codec) || decoded.ProducerID != -1 {
		t.Errorf("%+v: codec %v, producer %d", s, decoded.Codec, decoded.ProducerID)
	}
	for _, r := range decoded.Records {
		if len(r.Key)+len(r.Value) != s.RecordBytes {
			t.Fatalf("%+v: a record of %d bytes", s, len(r.Key)+len(r.Value))
		}
	}
	if n := len(decoded.Records); n != b.Records || b.Payload != n*s.RecordBytes {
		t.Errorf("%+v: %d records, said are %d and %d bytes", s, n, b.Records, b.Payload)
	}
	if s.Codec == recordbatch.None && b.Records > 1 && len(b.Bytes) > s.BatchBytes+recordbatch.HeaderSize {
		t.Errorf("%+v: a batch of %d bytes", s, len(b.Bytes))
	}
	// What a record takes beside its bytes is less than 20.
	if fit := max(1, s.BatchBytes/(s.RecordBytes+20)); b.Records < fit || b.Records > max(1, s.BatchBytes/s.RecordBytes) {
		t.Errorf("%+v: %d records where %d fit", s, b.Records, fit)
	}
}

func TestSameSeedSameBatches(t *testing.T) {
	s := shapes()[0]
	all := func(seed uint64) []byte {
		batches, err := s.Batches(seed, 5)
		if err != nil {
			t.Fatal(err)
		}
		var b []byte
		for _, batch := range batches {
			b = append(b, batch.Bytes...)
		}
		return b
	}
	if !bytes.Equal(all(1), all(1)) {
		t.Error("the same seed makes other batches")
	}
	if bytes.Equal(all(1), all(2)) {
		t.Error("another seed makes the same batches")
	}
}

// TestDistinct: hundreds at least, and all of them larger than what a compressor
// looks back over.
func TestDistinct(t *testing.T) {
	for _, s := range []workload.Shape{{RecordBytes: 1024, BatchBytes: 256 << 10}, {RecordBytes: 1024, BatchBytes: 64 << 10}, {RecordBytes: 1024}, {RecordBytes: 100 << 10}} {
		n := s.Distinct()
		if bytes := n * max(s.BatchBytes, s.RecordBytes); n < 256 || bytes < 8<<20 {
			t.Errorf("%+v: %d batches, %d bytes", s, n, bytes)
		}
	}
}

func TestTooSmallRecords(t *testing.T) {
	if _, err := (workload.Shape{RecordBytes: workload.MinRecordBytes - 1}).Batches(1, 0); err == nil {
		t.Error("records that hold no key are accepted")
	}
	if _, err := (workload.Shape{RecordBytes: workload.MinRecordBytes, Different: 1}).Batches(1, 0); err != nil {
		t.Error(err)
	}
}

func TestTiny(t *testing.T) {
	b, err := workload.Tiny(600, recordbatch.LZ4, 5)
	if err != nil {
		t.Fatal(err)
	}
	decoded, err := kafkatest.DecodeBatch(b.Bytes)
	if err != nil || len(decoded.Records) != 600 || b.Payload != 600 {
		t.Errorf("%d records (%v), payload %d", len(decoded.Records), err, b.Payload)
	}
	if n := len(b.Bytes); n < 8<<10 || n > 16<<10 {
		t.Errorf("%d bytes", n)
	}
}
