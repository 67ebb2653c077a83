package kafkatest_test

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"testing"

	"github.com/leanovate/gopter"
	"github.com/leanovate/gopter/gen"
	"github.com/leanovate/gopter/prop"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"apograph/internal/kafkatest"
)

// TestBatchRoundTrip: DecodeBatch is the inverse of Encode, and kgo reads the
// same records out of the bytes. (Times stay below the year 2262, after which kgo's
// overflow: it computes in nanoseconds.)
func TestBatchRoundTrip(t *testing.T) {
	parameters := gopter.DefaultTestParametersWithSeed(20240501)
	parameters.MinSuccessfulTests = 60
	properties := gopter.NewProperties(parameters)
	maybe := gen.OneGenOf(gen.Const([]byte(nil)), gen.SliceOf(gen.UInt8()))
	properties.Property("decode of encode is the batch", prop.ForAll(
		func(base int64, codec int, times []int64, keys, contents [][]byte) (string, error) {
			var records []kafkatest.BatchRecord
			for i, ms := range times {
				r := kafkatest.BatchRecord{Timestamp: ms, Key: at(keys, i), Value: at(contents, i)}
				for h := range i % 3 {
					r.Headers = append(r.Headers, kafkatest.Header{Key: fmt.Sprint(h), Value: at(keys, i+h)})
				}
				records = append(records, r)
			}
			b := kafkatest.NewBatch(base, records...)
			b.Codec = kafkatest.Codec(codec)
			raw, err := b.Encode()
			if err != nil {
				return "", err
			}
			again, err := kafkatest.DecodeBatch(raw)
			if err != nil {
				return "", err
			}
			if fmt.Sprintf("%#v", again) != fmt.Sprintf("%#v", b) {
				return fmt.Sprintf("%#v\nis not\n%#v", again, b), nil
			}
			return readByClient(raw, b), nil
		},
		gen.Int64Range(0, 1<<60), gen.IntRange(0, 4), gen.SliceOfN(7, gen.Int64Range(-5, 9_000_000_000_000)),
		gen.SliceOfN(5, maybe), gen.SliceOfN(3, maybe),
	))
	properties.TestingRun(t)
}

func at(all [][]byte, i int) []byte { return all[i%len(all)] }

// readByClient compares with what kgo's consumer code makes of the bytes.
func readByClient(raw []byte, b kafkatest.Batch) string {
	fetched, next := kgo.ProcessFetchPartition(kgo.ProcessFetchPartitionOpts{Offset: b.BaseOffset},
		&kmsg.FetchResponseTopicPartition{RecordBatches: raw}, kafkatest.NewDecompressor(), nil)
	if fetched.Err != nil || next != b.NextOffset() || len(fetched.Records) != len(b.Records) {
		return fmt.Sprintf("kgo: %v, next %d, %d records", fetched.Err, next, len(fetched.Records))
	}
	for i, r := range fetched.Records {
		want := b.Records[i]
		if r.Timestamp.UnixMilli() != want.Timestamp || string(r.Key) != string(want.Key) || (r.Key == nil) != (want.Key == nil) || len(r.Headers) != len(want.Headers) {
			return fmt.Sprintf("kgo reads %+v, want %+v", r, want)
		}
	}
	return ""
}

// TestDecodeBatchRefuses cuts and damages a batch in every place: an error, or a
// batch, but never a panic; and each check has its case.
func TestDecodeBatchRefuses(t *testing.T) {
	good := encode(t, kafkatest.NewBatch(0, record("a", 1), kafkatest.BatchRecord{Timestamp: 2, Headers: []kafkatest.Header{{Key: "h"}}}))[0]
	for n := range len(good) {
		if _, err := kafkatest.DecodeBatch(good[:n]); err == nil {
			t.Errorf("the first %d of %d bytes are a batch", n, len(good))
		}
	}
	for bit := range len(good) * 8 {
		raw := append([]byte{}, good...)
		raw[bit/8] ^= 1 << (bit % 8)
		_, err := kafkatest.DecodeBatch(raw)
		if outside := bit/8 < 8 || (bit/8 >= 12 && bit/8 < 16); !outside && err == nil {
			t.Errorf("bit %d flipped: still a batch", bit)
		}
		seal(raw)
		_, _ = kafkatest.DecodeBatch(raw) // with a right checksum: whatever, but no panic
	}
	// A record whose length counts one byte more than its fields take.
	long := append([]byte{}, good...)
	long = append(long[:61], append([]byte{long[61] + 2}, append(long[62:62+int(long[61]/2)], append([]byte{0}, good[62+int(good[61]/2):]...)...)...)...)
	binary.BigEndian.PutUint32(long[8:], uint32(len(long)-12))
	seal(long)
	if b, err := kafkatest.DecodeBatch(long); err == nil {
		t.Errorf("a record with a byte too many: %+v", b)
	}
}

func seal(raw []byte) {
	binary.BigEndian.PutUint32(raw[17:], crc32.Checksum(raw[21:], crc32.MakeTable(crc32.Castagnoli)))
}
