package fuzz

import (
	"math/rand/v2"
	"slices"
	"time"

	"apograph/internal/kafkatest"
	"apograph/ledger"
)

// A simArchive is everything that one source partition ever held, as the source
// showed it, also what it has deleted since, and what the copier may not have
// got to see.
type simArchive struct {
	fates   map[int64]kafkatest.Fate   // of decided offsets that held something
	records map[int64]kafkatest.Record // that were committed

	// Offsets that were removed when the books did not reach them, by what the
	// books may say of them in place of their fate.
	lost, compacted, before []ledger.Range

	cleaned bool
}

func simIn(ranges []ledger.Range, offset int64) bool {
	return slices.ContainsFunc(ranges, func(r ledger.Range) bool { return r.Contains(offset) })
}

func (w *simWorld) archived(p simPartition) *simArchive {
	a := w.archive[p]
	if a == nil {
		a = &simArchive{fates: map[int64]kafkatest.Fate{}, records: map[int64]kafkatest.Record{}}
		w.archive[p] = a
	}
	return a
}

// archiveNow reads what a source partition holds. What it held before must not
// have changed.
func (w *simWorld) archiveNow(p simPartition) (tiles []kafkatest.SourceTile) {
	w.t.Helper()
	a := w.archived(p)
	w.eventually("archive", func() error {
		ctx, cancel := w.within(time.Minute)
		defer cancel()
		found, err := w.pair.Source.SourceTiles(ctx, p.topic, p.partition)
		if err != nil {
			return err
		}
		records, err := w.pair.Source.ReadCommitted(ctx, p.topic, p.partition)
		if err != nil {
			return err
		}
		tiles = found
		for _, r := range records {
			a.records[r.Offset] = r
		}
		return nil
	})
	for _, tile := range tiles {
		switch tile.Fate {
		case kafkatest.Undecided, kafkatest.Absent, kafkatest.BelowStart:
			continue
		}
		for offset := tile.Start; offset < tile.End; offset++ {
			if before, ok := a.fates[offset]; ok && before != tile.Fate {
				w.t.Fatalf("%v offset %d was %v and is %v", p, offset, before, tile.Fate)
			}
			a.fates[offset] = tile.Fate
		}
	}
	return tiles
}

func (w *simWorld) archiveAll() {
	for _, p := range w.partitions() {
		w.archiveNow(p)
	}
}

// position returns where the committed source book of a partition ends; 0 if it
// has none.
func (w *simWorld) position(p simPartition) (at int64) {
	w.withBook(func(l *ledger.Ledger) {
		for _, pair := range l.Pairs() {
			if pair.SourceTopic == p.topic && pair.Partition == p.partition {
				at = l.Committed(pair.ID).Source
			}
		}
	})
	return at
}

// untouched reports whether the books hold nothing of a partition yet but that
// something lies before their scope: its start may still move up.
func (w *simWorld) untouched(p simPartition) bool {
	untouched := true
	w.withBook(func(l *ledger.Ledger) {
		for _, pair := range l.Pairs() {
			if pair.SourceTopic == p.topic && pair.Partition == p.partition {
				end := l.Committed(pair.ID)
				untouched = end.Source == l.Totals(pair.ID).Tiles[ledger.BeforeStart] && end.Target == 0
			}
		}
	})
	return untouched
}

// simStable returns the log start and the last stable offset of what a partition
// holds.
func simStable(tiles []kafkatest.SourceTile) (start, end int64) {
	for _, tile := range tiles {
		switch tile.Fate {
		case kafkatest.BelowStart:
			start = tile.End
		case kafkatest.Undecided:
			continue
		}
		end = tile.End
	}
	return start, end
}

func (w *simWorld) deleteRecords(rng *rand.Rand) {
	t := w.topic(rng)
	if t == nil {
		return
	}
	w.deleteFrom(t, rng.Int32N(t.partitions), rng)
}

// deleteFrom moves the log start of a partition to anywhere up to its last
// stable offset.
func (w *simWorld) deleteFrom(t *simTopic, partition int32, rng *rand.Rand) {
	p := simPartition{t.name, partition}
	start, end := simStable(w.archiveNow(p))
	if start == end {
		return
	}
	to := start + 1 + rng.Int64N(end-start)
	a, at := w.archived(p), w.position(p)
	gone := ledger.Range{Start: at, End: max(at, to)}
	a.lost = append(a.lost, gone)
	if p.partition < t.old && w.untouched(p) {
		a.before = append(a.before, gone)
	}
	w.must(w.pair.Source.DeleteRecords(p.topic, p.partition, to))
	w.say("%v: [%d, %d) deleted, copied to %d", p, start, to, at)
}

func (w *simWorld) clean(rng *rand.Rand) {
	compacting := slices.DeleteFunc(slices.Clone(w.topics), func(t *simTopic) bool { return !t.compacts })
	if len(compacting) == 0 {
		return
	}
	t := compacting[rng.IntN(len(compacting))]
	p := simPartition{t.name, rng.Int32N(t.partitions)}
	start, end := simStable(w.archiveNow(p))
	if start == end {
		return
	}
	a, at := w.archived(p), w.position(p)
	a.cleaned = true
	a.compacted = append(a.compacted, ledger.Range{Start: at, End: max(at, end)})
	cleaner := kafkatest.Cleaner{Upto: start + 1 + rng.Int64N(end-start), Now: time.Now(), DeleteRetention: time.Duration(rng.IntN(3)) * 5 * time.Second}
	w.must(w.pair.Source.Clean(p.topic, p.partition, cleaner))
	w.say("%v: cleaned below %d of %d, copied to %d", p, cleaner.Upto, end, at)
}
