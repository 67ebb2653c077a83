package canon_test

import (
	"fmt"
	"testing"

	"apograph/bench/workload"
	"apograph/internal/canon"
)

// BenchmarkHash hashes the records of a batch of 64 KB, which have been read
// already.
func BenchmarkHash(b *testing.B) {
	for _, size := range []int{100, 1 << 10} {
		b.Run(fmt.Sprintf("record=%d", size), func(b *testing.B) {
			records := workload.Shape{RecordBytes: size}.Records(1, 64<<10/size)
			b.SetBytes(int64(len(records) * size))
			b.ReportAllocs()
			var canonical []byte
			for b.Loop() {
				for i := range records {
					canonical = canon.AppendRecord(canonical[:0], 1000, records[i].Key, records[i].Value, 0)
					_ = canon.Sum(canonical)
				}
			}
		})
	}
}
