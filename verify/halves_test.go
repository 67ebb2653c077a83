package verify

import (
	"math/rand/v2"
	"path/filepath"
	"testing"

	"apograph/internal/kafkatest"
	"apograph/ledger"
)

// TestHalvesOfProofs: what is left of a long proof, in front of a new one and
// behind it, is what reading the entries again would prove.
func TestHalvesOfProofs(t *testing.T) {
	rng := rand.New(rand.NewPCG(20261130, 5))
	path := filepath.Join(t.TempDir(), "f.ledger")
	l, err := ledger.Create(path, ledger.Identity{SourceAlias: "a", TargetAlias: "b"}, ledger.Options{})
	if err != nil {
		t.Fatal(err)
	}
	kafkatest.CheckLedgerAtEnd(t, path)
	defer l.Close()
	ids, err := l.OpenPairs([]ledger.Pair{{SourceTopic: "t", TargetTopic: "t"}})
	if err != nil {
		t.Fatal(err)
	}
	var borders []mark
	for range 60 {
		end := l.End(ids[0])
		borders = append(borders, mark{end.Source, end.Target})
		n := 1 + rng.Int64N(9)
		e := ledger.Entry{Tile: ledger.Copied, Source: ledger.Range{Start: end.Source, End: end.Source + n},
			Target: ledger.Range{Start: end.Target, End: end.Target + n}, LeaderEpoch: int32(rng.IntN(3))}
		for range n {
			e.Digest = e.Digest.Add(rng.Uint64())
		}
		if err := l.Append(ids[0], e); err != nil {
			t.Fatal(err)
		}
		if err := l.Commit(); err != nil {
			t.Fatal(err)
		}
	}
	pair, _ := l.Pair(ids[0])
	books, err := openBooks(l, pair, nil)
	if err != nil {
		t.Fatal(err)
	}
	j := &job{books: books}
	between := func(a, b int) proof {
		s, err := books.stretch(borders[a], borders[b])
		if err != nil {
			t.Fatal(err)
		}
		return newProof(&s, unixZero())
	}
	for range 300 {
		at := []int{rng.IntN(60), rng.IntN(60), rng.IntN(60), rng.IntN(60)}
		if at[0] >= at[1] || at[2] >= at[3] || at[0] >= at[3] || at[2] >= at[1] {
			continue // not overlapping
		}
		old, made := between(at[0], at[1]), between(at[2], at[3])
		got, err := j.halves(&old, &made)
		if err != nil {
			t.Fatal(err)
		}
		var want []proof
		if at[0] < at[2] {
			want = append(want, between(at[0], at[2]))
		}
		if at[3] < at[1] {
			want = append(want, between(at[3], at[1]))
		}
		if len(got) != len(want) {
			t.Fatalf("%v: %+v, want %+v", at, got, want)
		}
		for i := range got {
			if got[i] != want[i] {
				t.Errorf("%v: %+v, want %+v", at, got[i], want[i])
			}
		}
	}
}
