package main

import (
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"path/filepath"
	"testing"

	"apograph/ledger"
)

// BenchmarkFromFile measures the command with a file of a million
// offsets, those of 1,000 groups in each of 1,000 partitions: once of books that
// fit into a page each, and once of books of 64,000 records, in a thousand batches.
func BenchmarkFromFile(b *testing.B) {
	const partitions, groups = 1000, 1000
	for _, batches := range []int64{16, 1000} {
		path := filepath.Join(b.TempDir(), "f.ledger")
		mustFillBooks(b, path, partitions, batches)
		rng := rand.New(rand.NewPCG(5, 0))
		var file bytes.Buffer
		for row := range partitions * groups {
			fmt.Fprintf(&file, "group-%d,orders,%d,%d\n", row/partitions, row%partitions, rng.Int64N(batches*batchRecords))
		}
		for _, form := range []format{formatCSV, formatJSONLines} {
			b.Run(fmt.Sprintf("batches=%d/%s", batches, form), func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					argv := []string{"apograph", "translate", "--ledger", path, "--from-file", "-", "-o", string(form)}
					if code := run(b.Context(), argv, bytes.NewReader(file.Bytes()), io.Discard, io.Discard); code != 0 {
						b.Fatalf("exit %d", code)
					}
				}
				b.ReportMetric(float64(partitions*groups*b.N)/b.Elapsed().Seconds(), "offsets/s")
			})
		}
	}
}

// batchRecords is how many records a batch of 64 KiB has in mustFillBooks.
const batchRecords = 64

// mustFillBooks makes a ledger of a topic with a number of batches in each of
// its partitions.
func mustFillBooks(b *testing.B, path string, partitions int, batches int64) {
	b.Helper()
	l, err := ledger.Create(path, ledger.Identity{SourceAlias: "a", TargetAlias: "b"}, ledger.Options{})
	if err != nil {
		b.Fatal(err)
	}
	pairs := make([]ledger.Pair, partitions)
	for i := range pairs {
		pairs[i] = ledger.Pair{SourceTopic: "orders", TargetTopic: "orders", Partition: int32(i)}
	}
	ids, err := l.OpenPairs(pairs)
	if err != nil {
		b.Fatal(err)
	}
	for i := range batches {
		run := ledger.Range{Start: i * batchRecords, End: (i + 1) * batchRecords}
		for _, id := range ids {
			if err := l.Append(id, ledger.Entry{Source: run, Target: run, Bytes: batchRecords << 10}); err != nil {
				b.Fatal(err)
			}
		}
		if i%8 == 7 || i == batches-1 {
			if err := l.Commit(); err != nil {
				b.Fatal(err)
			}
		}
	}
	if err := l.Close(); err != nil {
		b.Fatal(err)
	}
}
