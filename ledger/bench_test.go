//go:build unix

package ledger

import (
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"runtime"
	"slices"
	"syscall"
	"testing"
	"time"
)

// cpuTime returns the processor time that the process has used.
func cpuTime(b *testing.B) time.Duration {
	b.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// written returns how many bytes of pages commits have written, with the meta
// pages.
func written(l *Ledger) int64 {
	s := l.db.Stats().TxStats
	return s.GetPageAlloc() + int64(l.last.number)*int64(l.pageSize)
}

// BenchmarkCommitManyPartitions is the budget of a wide flow: one new entry and
// one new state in each of 10,000 partitions, at most 4 MB written and 30 ms of
// processor time a commit.
func BenchmarkCommitManyPartitions(b *testing.B) {
	l := mustCreate(b)
	ids := openMany(b, l, 10_000)
	for range 2 * foldShare { // until folding has come round
		appendToAll(b, l, ids)
		mustCommit(b, l)
	}
	runtime.GC()
	start, from := cpuTime(b), written(l)
	b.ResetTimer()
	for range b.N {
		appendToAll(b, l, ids)
		mustCommit(b, l)
	}
	b.StopTimer()
	b.ReportMetric(float64(written(l)-from)/float64(b.N), "bytes/commit")
	b.ReportMetric(float64((cpuTime(b)-start).Milliseconds())/float64(b.N), "cpu-ms/commit")
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	b.ReportMetric(float64(m.HeapAlloc)/float64(len(ids)), "heap-bytes/partition")
}

func openMany(b *testing.B, l *Ledger, n int) []PairID {
	b.Helper()
	pairs := make([]Pair, n)
	for i := range pairs {
		pairs[i] = Pair{SourceTopic: fmt.Sprintf("topic-%d", i/10), TargetTopic: fmt.Sprintf("topic-%d", i/10), Partition: int32(i % 10)}
	}
	ids, err := l.OpenPairs(pairs)
	if err != nil {
		b.Fatal(err)
	}
	return ids
}

func appendToAll(b *testing.B, l *Ledger, ids []PairID) {
	for _, id := range ids {
		end := l.End(id)
		mustAppend(b, l, id, Entry{
			Tile:   Copied,
			Source: Range{end.Source, end.Source + 60}, Target: Range{end.Target, end.Target + 60},
			Bytes: 64_000 + end.Source%1000, Digest: Digest(hashOf(end.Source) >> 3), LeaderEpoch: 4,
		})
		s := State{LastStable: end.Source + 60, HighWatermark: end.Source + 60, SeenMillis: startMillis}
		if err := l.SetState(id, s); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkCommitBusyPartition commits twenty batches of one partition.
func BenchmarkCommitBusyPartition(b *testing.B) {
	l := mustCreate(b)
	id := mustOpenPair(b, l, 0, 0)
	start, from := cpuTime(b), written(l)
	b.ResetTimer()
	for range b.N {
		for range 20 {
			appendToAll(b, l, []PairID{id})
		}
		mustCommit(b, l)
	}
	b.StopTimer()
	b.ReportMetric(float64(written(l)-from)/float64(b.N), "bytes/commit")
	b.ReportMetric(float64((cpuTime(b)-start).Microseconds())/float64(b.N), "cpu-us/commit")
}

// BenchmarkAppendAndCommit books a thousand entries and commits them, as a busy flow
// does every 100 ms: bytes are those of the records that the entries are about.
func BenchmarkAppendAndCommit(b *testing.B) {
	const entries = 1000
	l := mustCreate(b)
	id := mustOpenPair(b, l, 0, 0)
	b.SetBytes(entries * 64_000)
	b.ReportAllocs()
	for range b.N {
		for range entries {
			appendToAll(b, l, []PairID{id})
		}
		mustCommit(b, l)
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/entries, "ns/entry")
}

// BenchmarkAppend queues one entry.
func BenchmarkAppend(b *testing.B) {
	l := mustCreate(b)
	id := mustOpenPair(b, l, 0, 0)
	b.SetBytes(64_000)
	b.ReportAllocs()
	for i := range b.N {
		appendToAll(b, l, []PairID{id})
		if i%10_000 == 0 {
			b.StopTimer()
			mustCommit(b, l)
			b.StartTimer()
		}
	}
}

// millionEntries makes a ledger of 1,000,000 entries in 100 partitions.
func millionEntries(b *testing.B) (*Ledger, []PairID) {
	b.Helper()
	l := mustCreate(b)
	ids := openMany(b, l, 100)
	for range 100 {
		for range 100 {
			appendToAll(b, l, ids)
		}
		mustCommit(b, l)
	}
	return l, ids
}

func BenchmarkFind(b *testing.B) {
	l, ids := millionEntries(b)
	random := rand.New(rand.NewPCG(1, 1))
	for name, find := range map[string]func(PairID, int64) (Entry, error){"source": l.FindSource, "target": l.FindTarget} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for range b.N {
				if _, err := find(ids[random.IntN(len(ids))], random.Int64N(600_000)); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkEntries reads 10,000 entries.
func BenchmarkEntries(b *testing.B) {
	l, ids := millionEntries(b)
	b.ResetTimer()
	for range b.N {
		n := 0
		for _, err := range l.Entries(ids[0], 0) {
			if err != nil {
				b.Fatal(err)
			}
			n++
		}
		if n != 10_000 {
			b.Fatalf("%d entries", n)
		}
	}
}

func BenchmarkOpen(b *testing.B) {
	l, _ := millionEntries(b)
	path := filepath.Join(b.TempDir(), "copy.ledger")
	if _, err := l.Snapshot(b.Context(), path); err != nil {
		b.Fatal(err)
	}
	_, used, _ := l.Usage()
	for name, readOnly := range map[string]bool{"reading": true, "writing": false} {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(used)
			for range b.N {
				again, err := Open(path, Options{ReadOnly: readOnly})
				if err != nil {
					b.Fatal(err)
				}
				if err := again.Close(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkCheck(b *testing.B) {
	l, _ := millionEntries(b)
	_, used, _ := l.Usage()
	b.SetBytes(used)
	b.ResetTimer()
	for range b.N {
		for _, v := range violations(b, l) {
			b.Fatal(v)
		}
	}
}

func BenchmarkDigestAdd(b *testing.B) {
	var d Digest
	for i := range b.N {
		d = d.Add(uint64(i))
	}
	if !d.Valid() {
		b.Fatal(d)
	}
}

// BenchmarkSeeTopics is a survey of 50,000 topics: of which all are known, or
// all but one; and of one that is known it asks when.
func BenchmarkSeeTopics(b *testing.B) {
	topics := manyTopics(50_000)
	l := mustCreate(b)
	mustSee(b, l, topics...)
	b.Run("known", func(b *testing.B) {
		b.ReportAllocs()
		for range b.N {
			mustSee(b, l, topics...)
		}
	})
	b.Run("one-new", func(b *testing.B) {
		from := written(l)
		more := append(slices.Clone(topics), SeenTopic{})
		for i := range b.N {
			more[len(topics)].Name = fmt.Sprintf("new-%d-%d", b.N, i)
			mustSee(b, l, more...)
		}
		b.ReportMetric(float64(written(l)-from)/float64(b.N), "bytes/commit")
	})
	b.Run("lookup", func(b *testing.B) {
		b.ReportAllocs()
		for i := range b.N {
			s := &topics[i%len(topics)]
			if got, ok, err := l.SeenTopic(s.Name, s.ID); !ok || err != nil || got != *s {
				b.Fatal(got, ok, err)
			}
		}
	})
}

// BenchmarkMadeTopic asks for, and changes, the settings of one of 10,000 topics
// that the flow made.
func BenchmarkMadeTopic(b *testing.B) {
	l := mustCreate(b)
	topics := manyTopics(10_000)
	for i, s := range topics[:len(topics)-1] { // all but one as SetMade would
		key := topicKey(s.Name, s.ID)
		l.flow.noteMade(key, madeValue(key, madePointer(s, manySettings(i)))[checksumSize:])
	}
	b.Run("get", func(b *testing.B) {
		b.ReportAllocs()
		for i := range b.N {
			if got, ok := l.MadeTopic("", topics[i%(len(topics)-1)].ID); !ok || len(got) != 8 {
				b.Fatal(got, ok)
			}
		}
	})
	b.Run("set", func(b *testing.B) {
		last := topics[len(topics)-1]
		for i := range b.N {
			if err := l.SetMade(last.Name, last.ID, manySettings(b.N+i)); err != nil {
				b.Fatal(err)
			}
		}
	})
}
