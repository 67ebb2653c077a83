package translate_test

import (
	"fmt"
	"math/rand"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"apograph/ledger"
	"apograph/translate"
)

// A shape is a ledger to measure: what one commit of it holds.
type shape struct {
	name    string
	entries int // in all
	commit  int // entries
	entry   ledger.Entry
}

// shapes returns the two that the file format is made for: 100 million records in
// batches of 64 records and 64 KiB, and one million transactions of one record,
// which the ledger joins to entries of some 650.
func shapes() []shape {
	marker := []ledger.Gap{{Tile: ledger.CommitMarker, Range: ledger.Range{Start: 1, End: 2}}}
	return []shape{
		{"batches", 1_562_500, 12_500, ledger.Entry{
			Source: ledger.Range{End: 64}, Target: ledger.Range{End: 64}, Bytes: 64 << 10,
		}},
		{"transactions", 1_000_000, 50_000, ledger.Entry{
			Source: ledger.Range{End: 2}, Target: ledger.Range{End: 1}, Gaps: marker, Bytes: 100,
		}},
	}
}

// mustFill returns the books of a shape, opened anew for reading.
func (s shape) mustFill(b *testing.B) translate.Books {
	b.Helper()
	path := filepath.Join(b.TempDir(), "flow.ledger")
	l, err := create(path)
	if err != nil {
		b.Fatal(err)
	}
	ids, err := l.OpenPairs([]ledger.Pair{newHistory(0, 0).orders(0)})
	if err != nil {
		b.Fatal(err)
	}
	for i := range int64(s.entries) {
		if err := l.Append(ids[0], s.entryAt(i)); err != nil {
			b.Fatal(err)
		}
		if (i+1)%int64(s.commit) == 0 {
			if err := l.Commit(); err != nil {
				b.Fatal(err)
			}
		}
	}
	if err := l.Close(); err != nil {
		b.Fatal(err)
	}
	if l, err = ledger.Open(path, ledger.Options{ReadOnly: true}); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { l.Close() })
	return translate.Books{Ledger: l, Pair: ids[0]}
}

// entryAt returns the entry of the shape that stands at place i.
func (s shape) entryAt(i int64) ledger.Entry {
	e := s.entry
	move := func(r ledger.Range, by int64) ledger.Range { return ledger.Range{Start: r.Start + by, End: r.End + by} }
	source := i * s.entry.Source.End
	e.Source, e.Target = move(e.Source, source), move(e.Target, i*s.entry.Target.End)
	e.Gaps = slices.Clone(s.entry.Gaps)
	for j := range e.Gaps {
		e.Gaps[j].Range = move(e.Gaps[j].Range, source)
	}
	return e
}

// randomOffsets returns n offsets of the source book.
func randomOffsets(books translate.Books, n int) []int64 {
	rng := rand.New(rand.NewSource(propertySeed))
	end := books.Ledger.Committed(books.Pair).Source
	offsets := make([]int64, n)
	for i := range offsets {
		offsets[i] = rng.Int63n(end)
	}
	return offsets
}

// BenchmarkFind measures one translation at a time at random offsets, as of who
// holds a ledger open. The budget of p99 is 100 us.
func BenchmarkFind(b *testing.B) {
	for _, s := range shapes() {
		b.Run(s.name, func(b *testing.B) {
			books := s.mustFill(b)
			offsets := randomOffsets(books, 1<<16)
			times := make([]time.Duration, 0, 1<<20)
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				start := time.Now()
				if _, err := translate.Forward(books, offsets[i%len(offsets)]); err != nil {
					b.Fatal(err)
				}
				if len(times) < cap(times) {
					times = append(times, time.Since(start))
				}
			}
			slices.Sort(times)
			b.ReportMetric(float64(times[len(times)*99/100].Microseconds()), "p99-us")
		})
	}
}

// BenchmarkForwardAll measures batches of offsets in random order, from one in
// every few records of the book to one in many entries. The budget of 100,000 is
// one second.
func BenchmarkForwardAll(b *testing.B) {
	for _, s := range shapes() {
		books := s.mustFill(b)
		for _, n := range []int{1_000_000, 100_000, 10_000} {
			b.Run(fmt.Sprintf("%s/%d", s.name, n), func(b *testing.B) {
				offsets := randomOffsets(books, n)
				b.ReportAllocs()
				for b.Loop() {
					if _, err := translate.ForwardAll(b.Context(), books, offsets); err != nil {
						b.Fatal(err)
					}
				}
				b.ReportMetric(float64(n)*float64(b.N)/b.Elapsed().Seconds(), "offsets/s")
			})
		}
	}
}
