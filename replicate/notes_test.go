package replicate_test

import (
	"context"
	"hash/crc32"
	"math/rand"
	"slices"
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"

	"apograph/internal/kafkatest"
	"apograph/ledger"
	"apograph/replicate"
)

// order gives an order to a flow that does not run.
func order(t *testing.T, config replicate.Config, o ledger.Order) {
	t.Helper()
	offline(t, config, func(book *ledger.Ledger) {
		mustOrder(t, func(o ledger.Order) error { return replicate.OrderOffline(book, o) }, o)
	})
}

// proveNotes holds the books of t-0 to what an outside reader finds on a target
// that holds more than the copy: each target offset has one tile; a copied record
// equals the source's at the offset that the book says, as far as the source still
// has it; what the reader finds twice is what the books call duplicates, each with
// the source range that it is a copy of. Values tell records apart.
func proveNotes(t *testing.T, pair *kafkatest.Pair, path string, want map[ledger.Tile]int64) {
	t.Helper()
	kafkatest.CheckLedgerAtEnd(t, path)
	source, target := mustRead(t, pair.Source.Bootstrap, "t", 0), mustRead(t, pair.Target.Bootstrap, "t", 0)
	l, err := ledger.Open(path, ledger.Options{ReadOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	got, twice := map[ledger.Tile]int64{}, map[string]bool{}
	end := int64(0)
	pairs := l.Pairs()
	for i, p := range pairs {
		upto := l.Committed(p.ID).Target
		if p.TargetTopicID != pairs[len(pairs)-1].TargetTopicID {
			continue // of a topic that is gone
		}
		for _, later := range pairs[i+1:] { // what stood from there on was gone
			upto = min(upto, later.TargetBase)
		}
		for e, err := range l.EntriesFromTarget(p.ID, p.TargetBase) {
			if err != nil {
				t.Fatal(err)
			}
			for at := e.Target.Start; at < min(e.Target.End, upto); at++ {
				if at != end {
					t.Errorf("target offset %d has no tile, or more than one: the next is %d", end, at)
				}
				end = at + 1
				got[e.Tile]++
				proveOffset(t, &e, at, source, target[at], twice)
			}
		}
	}
	bounds, err := pair.Target.ReadBounds(t.Context(), "t", 0)
	if err != nil || end != bounds.HighWatermark {
		t.Errorf("the books name target offsets up to %d, it ends at %d (%v)", end, bounds.HighWatermark, err)
	}
	counts, doubles := map[string]int{}, map[string]bool{}
	for _, r := range target {
		if counts[string(r.Value)]++; counts[string(r.Value)] > 1 {
			doubles[string(r.Value)] = true
		}
	}
	for value := range doubles {
		if !twice[value] {
			t.Errorf("%q is on the target %d times, and the books do not say so", value, counts[value])
		}
	}
	for tile := range ledger.Tile(ledger.NumTiles) {
		if want != nil && got[tile] != want[tile] {
			t.Errorf("%d target offsets are %s, want %d", got[tile], tile, want[tile])
		}
	}
}

// proveOffset compares one target offset with what its entry says.
func proveOffset(t *testing.T, e *ledger.Entry, at int64, source map[int64]kafkatest.Record, got kafkatest.Record, twice map[string]bool) {
	t.Helper()
	switch e.Tile {
	case ledger.Copied:
		if want, ok := source[e.SourceOf(at)]; ok && got.Value != nil && string(want.Value) != string(got.Value) {
			t.Errorf("target offset %d is %q, its source %d %q", at, got.Value, e.SourceOf(at), want.Value)
		}
	case ledger.Duplicate:
		var from []string
		for offset := e.Origin.Start; offset < e.Origin.End; offset++ {
			from = append(from, string(source[offset].Value))
		}
		if !slices.Contains(from, string(got.Value)) {
			t.Errorf("target offset %d is %q, and the books call it a copy of source offsets %v: %q", at, got.Value, e.Origin, from)
		}
		twice[string(got.Value)] = true
	case ledger.Foreign:
		twice[string(got.Value)] = true // whatever it is, it is named
	}
}

// proveNothingMissing asks that each record of the source is on the target.
func proveNothingMissing(t *testing.T, pair *kafkatest.Pair) {
	t.Helper()
	have := map[string]bool{}
	for _, r := range mustRead(t, pair.Target.Bootstrap, "t", 0) {
		have[string(r.Value)] = true
	}
	for offset, r := range mustRead(t, pair.Source.Bootstrap, "t", 0) {
		if !have[string(r.Value)] {
			t.Errorf("source offset %d, %q, is not on the target", offset, r.Value)
		}
	}
}

// ours makes the batch that a copier sends under a producer of the pair.
func ours(t *testing.T, p ledger.Producer, sequence int32, records []*kgo.Record) []byte {
	t.Helper()
	b := kafkatest.NewBatch(0)
	for i, r := range records {
		at := r.Timestamp.UnixMilli()
		b.Records = append(b.Records, kafkatest.BatchRecord{OffsetDelta: int32(i), Timestamp: at, Key: r.Key, Value: r.Value})
		b.MaxTimestamp = max(b.MaxTimestamp, at)
	}
	b.BaseTimestamp = records[0].Timestamp.UnixMilli()
	b.LastOffsetDelta = int32(len(records) - 1)
	b.ProducerID, b.ProducerEpoch, b.BaseSequence = p.ID, p.Epoch, sequence
	return encode(t, b)
}

func mustAppendBatch(t *testing.T, pair *kafkatest.Pair, batch []byte) int64 {
	t.Helper()
	base, err := pair.Target.AppendBatch(t.Context(), "t", 0, batch)
	if err != nil {
		t.Fatal(err)
	}
	return base
}

// appendBig appends records of 20 kB to the source, each a batch of its own that
// passes as it is.
func appendBig(t *testing.T, pair *kafkatest.Pair, from, n int) {
	t.Helper()
	appendEachBig(t, pair, numbered(from, n)...)
}

func appendEachBig(t *testing.T, pair *kafkatest.Pair, records ...*kgo.Record) {
	t.Helper()
	for _, r := range records {
		r.Value = append(r.Value, noise(r.Key, 20_000)...)
		mustAppendBatchOf(t, pair, r)
	}
}

// mustAppendBatchOf appends one batch to the source that passes as it is: it is
// compressed, and too large to be joined with another.
func mustAppendBatchOf(t *testing.T, pair *kafkatest.Pair, records ...*kgo.Record) {
	t.Helper()
	if err := pair.Source.Bootstrap.Append(t.Context(), kafkatest.Zstd, records...); err != nil {
		t.Fatal(err)
	}
}

// noise returns n bytes that compress to somewhat more than half, other ones for
// another key.
func noise(key []byte, n int) []byte {
	b := make([]byte, n)
	_, _ = rand.New(rand.NewSource(int64(crc32.ChecksumIEEE(key)))).Read(b[:n/2])
	return b
}

// producers returns the producers of the only pair.
func producers(t *testing.T, config replicate.Config) []ledger.Producer {
	t.Helper()
	book := kafkatest.OpenLedger(t, config.LedgerPath, ledger.Options{ReadOnly: true})
	defer book.Close()
	return book.Producers(book.Pairs()[0].ID)
}

// copied makes a flow that has copied n records, numbered from 0.
func copied(t *testing.T, n int) (*kafkatest.Pair, replicate.Config) {
	t.Helper()
	pair := stored(t)
	mustTopic(t, pair.Source, "t", nil)
	mustAppend(t, pair.Source.Bootstrap, numbered(0, n)...)
	config := configFor(t, pair, "t")
	mustRun(t, config)
	return pair, config
}

func wantStop(t *testing.T, s replicate.Summary, reason replicate.StopReason) {
	t.Helper()
	if s.Complete || len(s.Stopped) != 1 || s.Stopped[0].Reason != reason {
		t.Errorf("complete %v, stopped %+v, want %s", s.Complete, s.Stopped, reason)
	}
}

// TestForeignWriterIsSticky: neither time nor a restart makes a partition go on
// beside a foreign writer; a person's word does, once or for good.
func TestForeignWriterIsSticky(t *testing.T) {
	pair, config := copied(t, 10)
	mustAppend(t, pair.Target.Bootstrap, numbered(100, 3)...)
	mustAppend(t, pair.Source.Bootstrap, numbered(10, 10)...)
	for range 2 {
		wantStop(t, mustRun(t, config), replicate.StopForeignWriter)
	}
	proveNotes(t, pair, config.LedgerPath, map[ledger.Tile]int64{ledger.Copied: 10, ledger.Foreign: 3})

	order(t, config, ledger.Order{SourceTopic: "t"})
	if s := mustRun(t, config); !s.Complete {
		t.Errorf("after resume: %+v", s)
	}
	mustAppend(t, pair.Target.Bootstrap, numbered(200, 2)...)
	wantStop(t, mustRun(t, config), replicate.StopForeignWriter)

	order(t, config, ledger.Order{SourceTopic: "t", TolerateForeign: true})
	mustAppend(t, pair.Target.Bootstrap, numbered(300, 2)...)
	mustAppend(t, pair.Source.Bootstrap, numbered(20, 10)...)
	if s := mustRun(t, config); !s.Complete {
		t.Errorf("after resume --tolerate-foreign: %+v", s)
	}
	order(t, config, ledger.Order{SourceTopic: "t", Paused: true})
	order(t, config, ledger.Order{SourceTopic: "t", Partition: -1, Paused: true})
	offline(t, config, func(book *ledger.Ledger) {
		if o := book.Orders(); len(o) != 2 || !o[1].TolerateForeign {
			t.Errorf("orders %+v: a pause took back what is tolerated", o)
		}
	})
	order(t, config, ledger.Order{SourceTopic: "t", Partition: -1})
	proveNotes(t, pair, config.LedgerPath, map[ledger.Tile]int64{ledger.Copied: 30, ledger.Foreign: 7})
	proveNothingMissing(t, pair)
	mustAppend(t, pair.Target.Bootstrap, numbered(400, 1)...)
	wantStop(t, mustRun(t, config), replicate.StopForeignWriter) // tolerated no more
}

// TestForeignWriterWhileRunning: the stop is not tried again by itself; an order
// through the running flow lifts it.
func TestForeignWriterWhileRunning(t *testing.T) {
	t.Parallel()
	pair := stored(t)
	mustTopic(t, pair.Source, "t", nil)
	mustAppend(t, pair.Source.Bootstrap, numbered(0, 5)...)
	config := livingConfig(t, pair, "t")
	l := live(t, pair, config)
	l.at("t", 0, 5)
	mustAppend(t, pair.Target.Bootstrap, numbered(100, 2)...)
	mustAppend(t, pair.Source.Bootstrap, numbered(5, 5)...)
	s := l.stopped("t", 0, replicate.StopForeignWriter)
	if !s.NextRetry.IsZero() {
		t.Errorf("it is to be tried again at %v", s.NextRetry)
	}
	mustOrder(t, l.Order, ledger.Order{SourceTopic: "t"})
	l.at("t", 0, 10)
	l.end()
	proveNotes(t, pair, config.LedgerPath, map[ledger.Tile]int64{ledger.Copied: 10, ledger.Foreign: 2})
	proveNothingMissing(t, pair)
}

// TestForeignWriterThatNeverStops: where it is tolerated the copy goes on, beside
// a writer who is faster than it.
func TestForeignWriterThatNeverStops(t *testing.T) {
	for _, window := range []int{1, 5} {
		pair, config := copied(t, 1)
		order(t, config, ledger.Order{SourceTopic: "t", TolerateForeign: true})
		appendEachBig(t, pair, numberedFor(window, 1, 40)...)
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan int)
		go func() {
			n := 0
			for ; ctx.Err() == nil; n++ {
				mustAppend(t, pair.Target.Bootstrap, numbered(1000+n, 1)...)
			}
			done <- n
		}()
		config.Window = window
		if s := mustRun(t, config); !s.Complete {
			t.Errorf("window %d: %+v", window, s)
		}
		cancel()
		t.Logf("window %d: %d foreign records", window, <-done)
		mustRun(t, config)
		proveNotes(t, pair, config.LedgerPath, nil)
		proveNothingMissing(t, pair)
	}
}

// TestFencedProducerIsReplaced: somebody wrote under the pair's producer id with a
// later epoch, so that the target takes no more under ours. A person says to go on:
// under an id of its own, behind all that is there.
func TestFencedProducerIsReplaced(t *testing.T) {
	pair, config := copied(t, 10)
	p := producers(t, config)[0]
	p.Epoch++
	mustAppendBatch(t, pair, ours(t, p, 0, numbered(100, 2)))
	mustAppend(t, pair.Source.Bootstrap, numbered(10, 10)...)
	wantStop(t, mustRun(t, config), replicate.StopForeignWriter)
	order(t, config, ledger.Order{SourceTopic: "t"})
	for range 2 {
		wantStop(t, mustRun(t, config), replicate.StopFenced)
	}
	order(t, config, ledger.Order{SourceTopic: "t"})
	if s := mustRun(t, config); !s.Complete {
		t.Errorf("summary %+v", s)
	}
	proveNotes(t, pair, config.LedgerPath, map[ledger.Tile]int64{ledger.Copied: 20, ledger.Foreign: 2})
}
