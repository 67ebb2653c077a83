package mirror

import (
	"path/filepath"
	"testing"

	"apograph/ledger"
)

// manyBooks returns a ledger of so many partitions with a book each, and the syncs
// of a process that has read an empty topic.
func manyBooks(b *testing.B, partitions int) *syncs {
	b.Helper()
	l, err := ledger.Create(filepath.Join(b.TempDir(), "flow.ledger"), ledger.Identity{SourceAlias: "A", TargetAlias: "B", SourceClusterID: "a", TargetClusterID: "b"}, ledger.Options{})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = l.Close() })
	pairs := make([]ledger.Pair, partitions)
	for i := range pairs {
		pairs[i] = pairOf("orders", 0, 0, 1)
		pairs[i].Partition = int32(i)
	}
	ids, err := l.OpenPairs(pairs)
	if err != nil {
		b.Fatal(err)
	}
	for _, id := range ids {
		copyMore(b, l, id)
	}
	if err := l.Commit(); err != nil {
		b.Fatal(err)
	}
	return &syncs{ledger: l, spacing: 25, follower: l.Follow(), known: map[place]copied{}, at: map[place]projection{}, waiting: map[ledger.PairID]bool{}}
}

func copyMore(b *testing.B, l *ledger.Ledger, id ledger.PairID) {
	b.Helper()
	at := l.End(id)
	e := ledger.Entry{
		Tile: ledger.Copied, Source: ledger.Range{Start: at.Source, End: at.Source + 100}, Target: ledger.Range{Start: at.Target, End: at.Target + 100},
		Bytes: 1, LeaderEpoch: 1, Digest: ledger.Digest(0).Add(1),
	}
	if err := l.Append(id, e); err != nil {
		b.Fatal(err)
	}
}

// planAll is what rounds do but for writing.
func (s *syncs) planAll(b *testing.B) (records int) {
	b.Helper()
	s.await(s.follower.Take())
	for len(s.pending) > 0 {
		planned, after, err := s.plan()
		if err != nil {
			b.Fatal(err)
		}
		records += len(planned)
		for at, p := range after {
			s.at[at] = p
		}
	}
	return records
}

// BenchmarkRound is a round of 10,000 partitions: none at work, all at their
// first, or ten at work.
func BenchmarkRound(b *testing.B) {
	const partitions = 10_000
	s := manyBooks(b, partitions)
	var all []ledger.PairID
	for _, pair := range s.ledger.Pairs() {
		all = append(all, pair.ID)
	}
	b.Run("first", func(b *testing.B) {
		for b.Loop() {
			clear(s.at)
			s.await(all)
			b.ReportMetric(float64(s.planAll(b)), "syncs")
		}
	})
	b.Run("idle", func(b *testing.B) {
		for b.Loop() {
			if n := s.planAll(b); n > 0 {
				b.Fatal(n)
			}
		}
	})
	b.Run("ten at work", func(b *testing.B) {
		for b.Loop() {
			b.StopTimer()
			for _, id := range all[:10] {
				copyMore(b, s.ledger, id)
			}
			if err := s.ledger.Commit(); err != nil {
				b.Fatal(err)
			}
			b.StartTimer()
			if n := s.planAll(b); n < 10 {
				b.Fatal(n)
			}
		}
	})
}
