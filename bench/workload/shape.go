// Package workload makes the data that the benchmarks copy: record batches of
// exact shapes, from a seed.
//
// The data is varied. A benchmark that repeats one canned batch flatters every
// candidate that compresses: a compressor finds the batch again within the larger
// one that it is writing, at a fraction of what new data costs. So there are
// hundreds of different batches, and the same one comes again only after many
// megabytes, further away than any compressor looks within one batch.
//
// A record is a line in the manner of JSON: field names that repeat, values from
// a vocabulary whose words are as unequally frequent as those of a language
// (Zipf), and random ids that do not compress. Ratio says how well it compresses.
package workload

import (
	"fmt"
	"math/rand/v2"

	"apograph/internal/recordbatch"
)

// A Shape says what the batches of a topic look like.
type Shape struct {
	RecordBytes int // key and value of a record together; at least MinRecordBytes
	// BatchBytes bounds a batch's records before compression, framing included:
	// the batch.size of a producer. A batch has at least one record.
	BatchBytes int
	Codec      recordbatch.Codec
	Keys       int // different keys; 0 means 100,000
	Different  int // batches that differ; 0 means as many as Distinct says
}

// MinRecordBytes is the least size of a record.
const MinRecordBytes = keyBytes + 16

const keyBytes = 8

// poolBytes is the size, before compression, of the different batches of a shape.
// Of large batches there are at least 256, of small ones at most 8,192.
const poolBytes = 32 << 20

// Distinct returns how many different batches Batches makes.
func (s Shape) Distinct() int {
	if s.Different > 0 {
		return s.Different
	}
	return min(max(poolBytes/max(s.BatchBytes, s.RecordBytes), 256), 8192)
}

// A Batch is the bytes of one batch as a producer without id sends them.
type Batch struct {
	Bytes   []byte
	Records int // in it
	Payload int // bytes of keys and values in it; of Tiny its records
}

// Batches returns the different batches of a shape, the same ones for the same
// seed and time. Records are stamped one millisecond apart, from time
// milliseconds on.
func (s Shape) Batches(seed uint64, timeMillis int64) ([]Batch, error) {
	if s.RecordBytes < MinRecordBytes {
		return nil, fmt.Errorf("records of %d bytes: the least is %d", s.RecordBytes, MinRecordBytes)
	}
	keys := s.Keys
	if keys == 0 {
		keys = 100_000
	}
	lines := newLines(rand.New(rand.NewPCG(seed, uint64(s.RecordBytes))))
	var builder recordbatch.Builder
	batches := make([]Batch, s.Distinct())
	for i := range batches {
		builder.Reset(s.Codec)
		for builder.Count() == 0 || builder.BodyBytes()+s.framed() <= s.BatchBytes {
			key, value := lines.record(keys, s.RecordBytes)
			builder.Append(&recordbatch.Record{Key: key, Value: value}, timeMillis)
			timeMillis++
		}
		sealed, err := builder.Seal(nil, -1, -1, -1)
		if err != nil {
			return nil, err
		}
		batches[i] = Batch{Bytes: sealed, Records: builder.Count(), Payload: builder.Count() * s.RecordBytes}
	}
	return batches, nil
}

// framed returns the most bytes that a record takes in a batch: its length, its
// attributes, the deltas of time and offset, the lengths of key and value, the
// count of headers.
func (s Shape) framed() int { return s.RecordBytes + 5 + 1 + 3 + 3 + 1 + 5 + 1 }

// Ratio returns how many bytes of keys and values there are for each byte of the
// batches.
func Ratio(batches []Batch) float64 {
	payload, wire := 0, 0
	for _, b := range batches {
		payload += b.Payload
		wire += len(b.Bytes)
	}
	return float64(payload) / float64(wire)
}

// Tiny returns a batch of so many records without key, whose values are a few random
// bytes: for topics of very many records that take little room, in batches that no
// copier takes for small ones. Its payload counts records.
func Tiny(records int, codec recordbatch.Codec, timeMillis int64) (Batch, error) {
	rng := rand.New(rand.NewPCG(1, uint64(records)))
	var builder recordbatch.Builder
	builder.Reset(codec)
	for range records {
		value := make([]byte, tinyBytes)
		for i := range value {
			value[i] = byte(rng.Uint32())
		}
		builder.Append(&recordbatch.Record{Value: value}, timeMillis)
	}
	sealed, err := builder.Seal(nil, -1, -1, -1)
	return Batch{Bytes: sealed, Records: records, Payload: records}, err
}

const tinyBytes = 12

// A Record is a key and a value.
type Record struct{ Key, Value []byte }

// Records returns n records of a shape, the same ones for the same seed.
func (s Shape) Records(seed uint64, n int) []Record {
	lines := newLines(rand.New(rand.NewPCG(seed, uint64(s.RecordBytes))))
	records := make([]Record, n)
	for i := range records {
		records[i].Key, records[i].Value = lines.record(max(s.Keys, 1000), s.RecordBytes)
	}
	return records
}
