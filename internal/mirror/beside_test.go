package mirror

import (
	"math/rand/v2"
	"slices"
	"testing"

	"apograph/internal/mm2"
	"apograph/ledger"
)

// A taskWriter is MirrorMaker 2's rule for emitting syncs
// (OffsetSyncWriter.PartitionState.update of 4.3.1) with what waits promoted at
// each commit of offsets, and no limit on what is under way: the most that it can
// do.
type taskWriter struct {
	lagMax                   int64
	lastSync, before, behind int64
	delayed                  copied
}

func newTaskWriter(lagMax int64) *taskWriter { return &taskWriter{lagMax, -1, -1, -1, none()} }

// acknowledged takes a record, and returns whether it gets a sync at once.
func (w *taskWriter) acknowledged(c copied) bool {
	due := w.lastSync == -1 || c.downstream-(w.lastSync+1) >= w.lagMax || c.upstream-w.before != 1 || c.downstream < w.behind
	w.before, w.behind, w.delayed = c.upstream, c.downstream, c
	if due {
		w.lastSync, w.delayed = c.downstream, none()
	}
	return due
}

// A bench compares two writers of the same partition by what a checkpoint task
// makes of their syncs.
type bench struct {
	*scribe
	theirs *mm2.OffsetSyncStore
	writer *taskWriter

	again, againTheirs []int64 // records that groups read again
	number, numberOf   int     // syncs written: ours, theirs
}

// second has so many records copied, in transactions or thinned out by compaction,
// and both write. MirrorMaker 2 flushes once in a minute.
func (b *bench) second(r *rand.Rand, n int64, flush bool) {
	before := len(b.records)
	for end := b.ledger.End(b.id).Target + n; b.ledger.End(b.id).Target < end; {
		b.copy(1 + r.Int64N(30))
		switch r.IntN(8) {
		case 0:
			b.gap(ledger.Aborted, 1+r.Int64N(20))
			b.gap(ledger.AbortMarker, 1)
		case 1:
			b.gap(ledger.Compacted, 1+r.Int64N(40))
		default:
			b.gap(ledger.CommitMarker, 1)
		}
	}
	for _, c := range b.records[before:] {
		if b.writer.acknowledged(c) {
			b.put(c)
		}
	}
	if flush && b.writer.delayed.exists() {
		b.put(b.writer.delayed)
	}
	b.number += len(b.write(100/stepShare, syncsOfOne))
}

func (b *bench) put(c copied) {
	b.numberOf++
	b.theirs.Add(mm2.OffsetSync{Topic: b.topic, Upstream: c.upstream, Downstream: c.downstream})
}

// look compares the translations for groups at all distances from the end.
func (b *bench) look(r *rand.Rand, groups int) {
	for range groups {
		behind := min(int(float64(len(b.records))*(r.Float64()*r.Float64()*r.Float64())), len(b.records)-1)
		i := len(b.records) - 1 - behind
		g, exact := b.records[i].upstream, b.records[i].downstream
		theirs, ok := b.theirs.Translate(b.topic, 0, g)
		if !ok {
			theirs = 0
		}
		ours := b.translate(g)
		if ours < 0 || ours > exact || theirs > exact {
			b.t.Fatalf("%d becomes %d, with MirrorMaker 2 %d, and the record is at %d", g, ours, theirs, exact)
		}
		b.again, b.againTheirs = append(b.again, exact-ours), append(b.againTheirs, exact-theirs)
	}
}

func spread(of []int64) (median, mean, most int64) {
	slices.Sort(of)
	for _, n := range of {
		mean += n
	}
	return of[len(of)/2], mean / int64(len(of)), of[len(of)-1]
}

// TestBesideMirrorMaker: with fewer records than MirrorMaker 2 itself writes,
// groups on transactional and compacted logs read no more again, but for chance.
func TestBesideMirrorMaker(t *testing.T) {
	tests := []struct {
		name    string
		seconds int
		records func(r *rand.Rand) int64
		share   int // of MirrorMaker 2's records, in percent, at most
	}{
		{"first copy, 10,000 a second", 10, func(*rand.Rand) int64 { return 10_000 }, 5},
		{"1,000 a second", 100, func(*rand.Rand) int64 { return 1000 }, 20},
		{"bursts", 60, func(r *rand.Rand) int64 { return 1 << r.Int64N(13) }, 20},
		{"10 a second", 120, func(*rand.Rand) int64 { return 10 }, 120},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			b := &bench{}
			for seed := range uint64(2) {
				r := rand.New(rand.NewPCG(3, seed))
				b.scribe, b.theirs, b.writer = newScribe(newModel(t, newLedger(t), "orders", 0, 0)), mm2.NewOffsetSyncStore(false), newTaskWriter(100)
				b.theirs.ReachedEnd()
				for second := range tt.seconds {
					b.second(r, tt.records(r), second%60 == 59)
					b.look(r, 300/min(tt.seconds, 100)+1)
				}
			}
			median, mean, most := spread(b.again)
			medianOf, meanOf, mostOf := spread(b.againTheirs)
			t.Logf("%d groups; ours: %d syncs, read again median %d mean %d max %d; MirrorMaker 2: %d syncs, median %d mean %d max %d",
				len(b.again), b.number, median, mean, most, b.numberOf, medianOf, meanOf, mostOf)
			if b.number*100 > b.numberOf*tt.share {
				t.Errorf("%d syncs, MirrorMaker 2 writes %d", b.number, b.numberOf)
			}
			if median > medianOf+medianOf/2+10 || mean > meanOf+meanOf/4 {
				t.Errorf("groups read again %d (mean %d), with MirrorMaker 2 %d (%d)", median, mean, medianOf, meanOf)
			}
		})
	}
}
