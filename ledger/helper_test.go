package ledger

import (
	"context"
	"encoding/binary"
	"fmt"
	"hash/fnv"
	"math/big"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"
)

// startMillis is when the clocks of tests start.
const startMillis = 1_800_000_000_000

// newClock returns a clock that moves by a millisecond each time it is read.
func newClock() func() time.Time {
	var ticks atomic.Int64
	return func() time.Time { return time.UnixMilli(startMillis + ticks.Add(1)) }
}

func testIdentity() Identity {
	return Identity{
		LedgerID: "test-ledger", SourceAlias: "a", TargetAlias: "b",
		SourceClusterID: "cluster-a", TargetClusterID: "cluster-b", CreatedMillis: startMillis,
	}
}

// mustCreate makes a ledger in a directory of the test. At its end the file is
// closed, if it is not yet, and checked.
func mustCreate(t testing.TB) *Ledger {
	t.Helper()
	path := filepath.Join(t.TempDir(), "test.ledger")
	l, err := Create(path, testIdentity(), Options{Now: newClock()})
	if err != nil {
		t.Fatal(err)
	}
	checkAtEnd(t, l)
	return l
}

func mustOpen(t testing.TB, path string) *Ledger {
	t.Helper()
	l, err := Open(path, Options{Now: newClock()})
	if err != nil {
		t.Fatal(err)
	}
	checkAtEnd(t, l)
	return l
}

// reopen closes a ledger and opens its file again. How much is folded at once
// stays as it was.
func reopen(t testing.TB, l *Ledger) *Ledger {
	t.Helper()
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	again := mustOpen(t, l.path)
	again.writer.minimum = l.writer.minimum
	return again
}

// checkAtEnd makes every test of a ledger a test of its laws as well.
func checkAtEnd(t testing.TB, l *Ledger) {
	t.Helper()
	t.Cleanup(func() {
		if err := l.Close(); err != nil {
			t.Error(err)
		}
		mustCheckFile(t, l.path)
	})
}

func mustCheckFile(t testing.TB, path string) {
	t.Helper()
	l, err := Open(path, Options{ReadOnly: true})
	if err != nil {
		t.Errorf("at the end of the test: %v", err)
		return
	}
	defer l.Close()
	for _, v := range violations(t, l) {
		t.Errorf("at the end of the test: %v", v)
	}
}

func violations(t testing.TB, l *Ledger) (found []Violation) {
	t.Helper()
	if err := l.Check(context.Background(), func(v Violation) { found = append(found, v) }); err != nil {
		t.Fatal(err)
	}
	return found
}

// mustOpenPair opens orders-0 with its scope from source offset start, and its
// target book from base.
func mustOpenPair(t testing.TB, l *Ledger, start, base int64) PairID {
	t.Helper()
	ids, err := l.OpenPairs([]Pair{{
		SourceTopic: "orders", TargetTopic: "orders", ScopeStart: start, TargetBase: base,
		Producer: Producer{ID: 4000},
	}})
	if err != nil {
		t.Fatal(err)
	}
	return ids[0]
}

func mustAppend(t testing.TB, l *Ledger, id PairID, entries ...Entry) {
	t.Helper()
	if err := l.Append(id, entries...); err != nil {
		t.Fatal(err)
	}
}

func mustCommit(t testing.TB, l *Ledger) {
	t.Helper()
	if err := l.Commit(); err != nil {
		t.Fatal(err)
	}
}

// copiedEntry returns a dense copied entry of n records, as it may follow at.
func copiedEntry(at Position, n int64) Entry {
	e := Entry{
		Tile:   Copied,
		Source: Range{at.Source, at.Source + n},
		Target: Range{at.Target, at.Target + n},
		Bytes:  100 * n, LeaderEpoch: 7,
	}
	for i := range n {
		e.Digest = e.Digest.Add(hashOf(at.Source + i))
	}
	return e
}

// sourceEntry returns an entry of n source offsets, as it may follow at.
func sourceEntry(t Tile, at Position, n int64) Entry {
	e := Entry{
		Tile:   t,
		Source: Range{at.Source, at.Source + n}, Target: Range{at.Target, at.Target}, LeaderEpoch: 7,
	}
	if t == Filtered {
		e.Cause, e.Reason = CauseRule, "too large"
	}
	return e
}

// targetEntry returns an entry of n target offsets, as it may follow at.
func targetEntry(t Tile, at Position, n int64) Entry {
	e := Entry{
		Tile:   t,
		Source: Range{at.Source, at.Source}, Target: Range{at.Target, at.Target + n}, LeaderEpoch: 7,
	}
	if t == Duplicate {
		e.Origin = Range{0, n}
	}
	return e
}

// hashOf returns the hash of the made-up record at a source offset.
func hashOf(offset int64) uint64 { return uint64(offset)*0x9e3779b97f4a7c15 + 0xbf58476d1ce4e5b9 }

// naiveDigest folds hashes as the definition says, in big numbers.
func naiveDigest(hashes []uint64) Digest {
	p := new(big.Int).Sub(new(big.Int).Lsh(big.NewInt(1), 61), big.NewInt(1))
	r := big.NewInt(0x8baf25199c6ad16)
	d := new(big.Int)
	for _, h := range hashes {
		d.Mul(d, r)
		d.Add(d, new(big.Int).Mod(new(big.Int).SetUint64(h), p))
		d.Add(d, big.NewInt(1))
		d.Mod(d, p)
	}
	return Digest(d.Uint64())
}

// advance is the position behind an entry.
func advance(at Position, e *Entry) Position {
	at.Source, at.Target = e.Source.End, e.Target.End
	if e.Tile == Copied || e.Tile == Orphan {
		at.Appended += e.Target.Len()
	}
	return at
}

// formatRecord returns values as a text, to compare.
func formatRecord(values ...any) string { return fmt.Sprintf("%+v", values) }

// setMeta changes a meta page, whose bytes are at the front of page, and makes
// its checksum right again.
func setMeta(page []byte, change func(meta []byte)) {
	m := page[fileHeader : fileHeader+metaSize]
	change(m)
	sum := fnv.New64a()
	_, _ = sum.Write(m[:metaSummed])
	putNative64(m[metaSummed:], sum.Sum64())
}

func putNative64(b []byte, v uint64) { binary.NativeEndian.PutUint64(b, v) }

// childEntry returns an entry that is a function of the position, so that
// whoever knows the position knows what must be there.
func childEntry(at Position) Entry {
	n := at.Source%5 + 1
	if at.Source%7 == 3 {
		return sourceEntry(Lost, at, n)
	}
	return copiedEntry(at, n)
}
