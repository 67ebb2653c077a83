package recordbatch_test

import (
	"fmt"
	"math/rand"
	"testing"

	"apograph/internal/canon"
	rb "apograph/internal/recordbatch"
)

// benchBatchBytes is the uncompressed size of the batches measured.
const benchBatchBytes = 64 << 10

var benchRecordBytes = []int{100, 1 << 10}

// benchRecords returns records of about size bytes that fill a batch. Their
// values are words of a small vocabulary, so that codecs have something to find
// but not everything.
func benchRecords(size int) []rb.Record {
	rng := rand.New(rand.NewSource(1))
	words := make([][]byte, 500)
	for i := range words {
		words[i] = fmt.Appendf(nil, "%x ", rng.Int63n(1<<(8+rng.Intn(40))))
	}
	var records []rb.Record
	for total := 0; total < benchBatchBytes; total += size {
		r := rb.Record{Key: fmt.Appendf(nil, "key-%08d", rng.Intn(100_000_000))}
		for len(r.Value) < size-30 {
			r.Value = append(r.Value, words[rng.Intn(len(words))]...)
		}
		r.AddHeader([]byte("h"), []byte("1234"))
		records = append(records, r)
	}
	return records
}

func benchBatch(b testing.TB, codec rb.Codec, size int) (batch []byte, bodyBytes int) {
	b.Helper()
	var builder rb.Builder
	builder.Reset(codec)
	records := benchRecords(size)
	for i := range records {
		builder.Append(&records[i], 1_700_000_000_000+int64(i))
	}
	batch, err := builder.Seal(nil, 1, 0, 0)
	if err != nil {
		b.Fatal(err)
	}
	return batch, builder.BodyBytes()
}

func mustParse(t testing.TB, batch []byte) rb.Header {
	t.Helper()
	h, err := rb.Parse(batch)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

func eachRecordSize(b *testing.B, f func(b *testing.B, size int)) {
	for _, size := range benchRecordBytes {
		b.Run(fmt.Sprintf("record=%d", size), func(b *testing.B) { f(b, size) })
	}
}

func eachCodecAndSize(b *testing.B, f func(b *testing.B, codec rb.Codec, size int)) {
	for codec := rb.None; codec <= rb.Zstd; codec++ {
		b.Run(codec.String(), func(b *testing.B) {
			eachRecordSize(b, func(b *testing.B, size int) { f(b, codec, size) })
		})
	}
}

func BenchmarkParse(b *testing.B) {
	batch, size := benchBatch(b, rb.None, 100)
	b.SetBytes(int64(size))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := rb.Parse(batch); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkCheckCRC(b *testing.B) {
	batch, size := benchBatch(b, rb.None, 100)
	b.SetBytes(int64(size))
	b.ReportAllocs()
	for b.Loop() {
		if err := rb.CheckCRC(batch); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkPatch(b *testing.B) {
	for _, size := range []int{16 << 10, 64 << 10, 1 << 20} {
		b.Run(fmt.Sprintf("batch=%d", size), func(b *testing.B) {
			batch := rb.Header{Magic: 2, Count: 1}.Encode(nil, make([]byte, size))
			b.SetBytes(int64(size))
			b.ReportAllocs()
			sequence := int32(0)
			for b.Loop() {
				rb.Patch(batch, 4711, 3, sequence)
				sequence++
			}
		})
	}
}

func BenchmarkWalk(b *testing.B) {
	eachRecordSize(b, func(b *testing.B, size int) {
		batch, bytes := benchBatch(b, rb.None, size)
		h := mustParse(b, batch)
		b.SetBytes(int64(bytes))
		b.ReportAllocs()
		var (
			w rb.Walker
			r rb.Record
		)
		for b.Loop() {
			w.ResetBatch(h, batch[rb.HeaderSize:])
			for w.Next(&r) {
			}
			if w.Err() != nil {
				b.Fatal(w.Err())
			}
		}
	})
}

// BenchmarkWalkAndHash is what replication does with every record that it sends.
func BenchmarkWalkAndHash(b *testing.B) {
	eachRecordSize(b, func(b *testing.B, size int) {
		batch, bytes := benchBatch(b, rb.None, size)
		h := mustParse(b, batch)
		b.SetBytes(int64(bytes))
		b.ReportAllocs()
		var (
			w   rb.Walker
			r   rb.Record
			buf []byte
		)
		for b.Loop() {
			w.ResetBatch(h, batch[rb.HeaderSize:])
			for w.Next(&r) {
				buf = appendCanonical(buf[:0], h, &r)
				_ = canon.Sum(buf)
			}
			if w.Err() != nil {
				b.Fatal(w.Err())
			}
		}
	})
}

func BenchmarkDecode(b *testing.B) {
	eachCodecAndSize(b, func(b *testing.B, codec rb.Codec, size int) {
		batch, bytes := benchBatch(b, codec, size)
		h := mustParse(b, batch)
		b.SetBytes(int64(bytes))
		b.ReportAllocs()
		var d rb.Decoder
		for b.Loop() {
			if _, err := d.Body(h, batch); err != nil {
				b.Fatal(err)
			}
		}
	})
}

func BenchmarkBuild(b *testing.B) {
	eachCodecAndSize(b, func(b *testing.B, codec rb.Codec, size int) {
		batch, bytes := benchBatch(b, rb.None, size)
		records := mustWalk(b, mustParse(b, batch), batch[rb.HeaderSize:])
		b.SetBytes(int64(bytes))
		b.ReportAllocs()
		var (
			builder rb.Builder
			dst     []byte
			err     error
		)
		for b.Loop() {
			builder.Reset(codec)
			for i := range records {
				builder.Append(&records[i], int64(i))
			}
			if dst, err = builder.Seal(dst[:0], 1, 0, 0); err != nil {
				b.Fatal(err)
			}
		}
		b.ReportMetric(float64(bytes)/float64(len(dst)), "ratio")
	})
}

// BenchmarkRenumber is the slow path on an uncompressed batch: walk it and write
// its records into another one.
func BenchmarkRenumber(b *testing.B) {
	eachRecordSize(b, func(b *testing.B, size int) {
		batch, bytes := benchBatch(b, rb.None, size)
		h := mustParse(b, batch)
		b.SetBytes(int64(bytes))
		b.ReportAllocs()
		var (
			w       rb.Walker
			r       rb.Record
			builder rb.Builder
		)
		for b.Loop() {
			builder.Reset(rb.None)
			w.ResetBatch(h, batch[rb.HeaderSize:])
			for w.Next(&r) {
				builder.Append(&r, h.Timestamp(&r))
			}
			if w.Err() != nil {
				b.Fatal(w.Err())
			}
		}
	})
}

func mustWalk(t testing.TB, h rb.Header, body []byte) []rb.Record {
	t.Helper()
	var (
		w       rb.Walker
		r       rb.Record
		records []rb.Record
	)
	w.ResetBatch(h, body)
	for w.Next(&r) {
		records = append(records, r)
	}
	if w.Err() != nil {
		t.Fatal(w.Err())
	}
	return records
}

func appendCanonical(dst []byte, h rb.Header, r *rb.Record) []byte {
	dst = canon.AppendRecord(dst, h.Timestamp(r), r.Key, r.Value, r.HeaderCount)
	headers := r.Headers()
	for {
		key, value, ok := headers.Next()
		if !ok {
			return dst
		}
		dst = canon.AppendHeader(dst, key, value)
	}
}
