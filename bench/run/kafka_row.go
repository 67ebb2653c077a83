//go:build kafka

package main

import (
	"context"
	"fmt"
	"path"
	"slices"
	"strings"
	"time"

	"apograph/bench/figures"
	"apograph/bench/workload"
	"apograph/internal/recordbatch"
)

// A row is one kind of data, which all its candidates copy.
type row struct {
	Name       string
	Shape      workload.Shape
	Partitions int
	SizeMB     int      // of keys and values
	Candidates []string // nil: all
	Main       bool     // one of those that a quick run does
	Fill       filling  // how the topic comes to be; nil: batches of the shape
	Far        string   // "source" or "target": which is 100 ms away
	TLS        bool     // on both sides
	Age        time.Duration
	Remembered time.Duration // producer.id.expiration.ms of the target; 0: the default
	// Run is what a row does that is not the copying of a topic.
	Run func(*runner, context.Context, row) error
}

// A filling creates a row's topic and writes it. It returns the bytes of batches for
// each byte of keys and values; 0 if it does not know.
type filling func(*runner, context.Context, row, string) (float64, error)

const kib = 1 << 10

// provenOrNot is the product with ledger and digests, and without.
var provenOrNot = []string{figures.Apograph, figures.Unproven, figures.Decompressed}

// rows returns all rows, in the order of the table.
func rows() []row {
	shaped := func(record, batch int, codec recordbatch.Codec) workload.Shape {
		return workload.Shape{RecordBytes: record, BatchBytes: batch, Codec: codec}
	}
	none, gzip, snappy, lz4, zstd := recordbatch.None, recordbatch.Gzip, recordbatch.Snappy, recordbatch.LZ4, recordbatch.Zstd
	plain := shaped(kib, 64*kib, lz4)
	all := []row{
		{Name: "1k-none", Shape: shaped(kib, 64*kib, none), Partitions: 4, SizeMB: 2000, Main: true},
		{Name: "1k-lz4", Shape: shaped(kib, 64*kib, lz4), Partitions: 4, SizeMB: 2000, Main: true},
		{Name: "1k-zstd", Shape: shaped(kib, 64*kib, zstd), Partitions: 4, SizeMB: 2000, Main: true},
		{Name: "1k-gzip", Shape: shaped(kib, 64*kib, gzip), Partitions: 4, SizeMB: 1500},
		{Name: "1k-snappy", Shape: shaped(kib, 64*kib, snappy), Partitions: 4, SizeMB: 2000},
		{Name: "100b-none", Shape: shaped(100, 64*kib, none), Partitions: 4, SizeMB: 1000},
		{Name: "100b-lz4", Shape: shaped(100, 64*kib, lz4), Partitions: 4, SizeMB: 1000, Main: true},
		{Name: "100b-zstd", Shape: shaped(100, 64*kib, zstd), Partitions: 4, SizeMB: 1000},
		{Name: "100k-lz4", Shape: shaped(100*kib, 64*kib, lz4), Partitions: 4, SizeMB: 2000},
		{Name: "batch-256k", Shape: shaped(kib, 256*kib, lz4), Partitions: 4, SizeMB: 2000},
		{Name: "batch-16k", Shape: shaped(kib, 16*kib, lz4), Partitions: 4, SizeMB: 2000},
		{Name: "batch-4k", Shape: shaped(kib, 4*kib, lz4), Partitions: 4, SizeMB: 1000, Main: true},
		{Name: "batch-4k-none", Shape: shaped(kib, 4*kib, none), Partitions: 4, SizeMB: 1000},
		{Name: "batch-1-none", Shape: shaped(kib, 0, none), Partitions: 4, SizeMB: 1000},
		{Name: "batch-1-lz4", Shape: shaped(kib, 0, lz4), Partitions: 4, SizeMB: 500},
		{Name: "parts-1", Shape: shaped(kib, 64*kib, lz4), Partitions: 1, SizeMB: 2000},
		{Name: "parts-64", Shape: shaped(kib, 64*kib, lz4), Partitions: 64, SizeMB: 2000},
		{Name: "parts-1000", Shape: shaped(kib, 64*kib, lz4), Partitions: 1000, SizeMB: 2000},
		{Name: "size-1g", Shape: shaped(kib, 64*kib, lz4), Partitions: 4, SizeMB: 1000, Candidates: []string{figures.Apograph, figures.Copier}},
		{Name: "size-10g", Shape: shaped(kib, 64*kib, lz4), Partitions: 4, SizeMB: 10_000, Candidates: []string{figures.Apograph, figures.Copier}},
		{Name: "compacted", Shape: plain, Partitions: 4, SizeMB: 800, Fill: (*runner).fillCompacted},
		{Name: "txn", Shape: shaped(kib, 0, none), Partitions: 4, SizeMB: 150, Fill: (*runner).fillTransactions},
		{Name: "tls-none", Shape: shaped(kib, 64*kib, none), Partitions: 4, SizeMB: 2000, TLS: true},
		{Name: "tls-lz4", Shape: plain, Partitions: 4, SizeMB: 2000, TLS: true},
		{Name: "no-ledger-none", Shape: shaped(kib, 64*kib, none), Partitions: 4, SizeMB: 2000, Candidates: provenOrNot},
		{Name: "no-ledger-snappy", Shape: shaped(kib, 64*kib, snappy), Partitions: 4, SizeMB: 2000, Candidates: provenOrNot},
		{Name: "no-ledger-lz4", Shape: plain, Partitions: 4, SizeMB: 2000, Candidates: provenOrNot},
		{Name: "tail", Shape: plain, Partitions: 4, SizeMB: 60, Run: (*runner).tail, Candidates: []string{figures.Apograph, figures.Copier, figures.MM2, figures.MM2Tuned}},
		{Name: "start", Shape: plain, Partitions: 4, SizeMB: 1, Candidates: []string{figures.Apograph, figures.Copier, figures.MM2}},
		{Name: "start-100m", Shape: plain, Partitions: 4, SizeMB: 100, Run: (*runner).startLarge, Candidates: []string{figures.Apograph}},
		{Name: "verify-target", Shape: plain, Partitions: 4, SizeMB: 2000, Run: (*runner).verify, Candidates: []string{figures.Apograph, figures.Reader}},
		{Name: "verify-full", Shape: plain, Partitions: 4, SizeMB: 2000, Run: (*runner).verify, Candidates: []string{figures.Apograph, figures.Reader}},
		{Name: "translate", Shape: plain, Partitions: 1000, SizeMB: 1000, Run: (*runner).translate, Candidates: []string{figures.Apograph}},
	}
	return append(all, farRows()...)
}

// farRows are those with 100 ms of round trip to one side, for data that has just
// been written and for data whose producer a broker has forgotten. The last row has a
// broker that remembers.
func farRows() []row {
	var all []row
	for _, side := range []string{"source", "target"} {
		for _, partitions := range []int{1, 64} {
			for _, batch := range []int{4, 16, 64} {
				for _, age := range []time.Duration{time.Hour, 48 * time.Hour} {
					name := fmt.Sprintf("rtt-%s-%d-%dk", side, partitions, batch)
					if age > time.Hour {
						name += "-old"
					}
					all = append(all, row{
						Name: name, Shape: workload.Shape{RecordBytes: kib, BatchBytes: batch * kib, Codec: recordbatch.LZ4},
						Partitions: partitions, SizeMB: 500, Far: side, Age: age,
						Candidates: []string{figures.Apograph, figures.Copier, figures.MM2Tuned},
					})
				}
			}
		}
	}
	kept := all[len(all)-1]
	kept.Name, kept.Partitions, kept.Remembered = "rtt-target-1-64k-old-20d", 1, 20*24*time.Hour
	return append(all, kept)
}

// rowsNamed returns the rows of a list of names or patterns (rtt-*), in the table's
// order; all of an empty list.
func rowsNamed(list string) ([]row, error) {
	if list == "" {
		return rows(), nil
	}
	patterns := strings.Split(list, ",")
	used := make([]bool, len(patterns))
	var chosen []row
	for _, r := range rows() {
		in := false
		for i, pattern := range patterns {
			if matches, _ := path.Match(pattern, r.Name); matches {
				in, used[i] = true, true
			}
		}
		if in {
			chosen = append(chosen, r)
		}
	}
	if i := slices.Index(used, false); i >= 0 {
		return nil, fmt.Errorf("no row %s; there are %s", patterns[i], strings.Join(names(rows()), ", "))
	}
	return chosen, nil
}

func names(rows []row) []string {
	var all []string
	for _, r := range rows {
		all = append(all, r.Name)
	}
	return all
}

// sampleEvery is how often a copy is looked at. A look asks the target for the end
// of every partition, which is not free for it.
func (r row) sampleEvery() time.Duration {
	return max(50*time.Millisecond, time.Duration(r.Partitions)*500*time.Microsecond)
}
