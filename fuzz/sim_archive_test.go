package fuzz

import (
	"math/rand/v2"
	"slices"
	"time"

	"apograph/internal/kafkatest"
	"apograph/ledger"
	"apograph/replicate"
)

// A simArchive is everything that one source partition ever held, as the source
// showed it, also what it has deleted since, and what the copier may not have
// got to see.
type simArchive struct {
	// eras are what the log was taken for, oldest first: a new one begins when
	// its tail is cut off, or its topic is created again. The last one is now.
	eras []*simEra

	// Offsets that were removed when the books did not reach them, by what the
	// books may say of them in place of their fate.
	lost, compacted, before []simRemoval

	// forgotten is up to where offsets were removed after the log had been cut
	// and before the books knew: nobody can tell any more that they held something
	// else once.
	forgotten int64

	// cutIn is the generation that was open when the log of the topic that there
	// is was cut last; 0 if it never was. A later one knows of the cut.
	cutIn int32

	cleaned bool
}

// A simEra is a log to which things were only added.
type simEra struct {
	topicID ledger.TopicID
	fates   map[int64]kafkatest.Fate   // of decided offsets that held something
	records map[int64]kafkatest.Record // that were committed
}

func newSimEra(id ledger.TopicID) *simEra {
	return &simEra{topicID: id, fates: map[int64]kafkatest.Fate{}, records: map[int64]kafkatest.Record{}}
}

// before returns the era's offsets below a cut.
func (e *simEra) before(cut int64) *simEra {
	kept := newSimEra(e.topicID)
	for offset, fate := range e.fates {
		if offset < cut {
			kept.fates[offset] = fate
		}
	}
	for offset, r := range e.records {
		if offset < cut {
			kept.records[offset] = r
		}
	}
	return kept
}

// A simRemoval says that offsets are gone that the books of a generation, the
// open one at that time, did not reach. The books of later ones reach nothing.
type simRemoval struct {
	generation int32
	ledger.Range
}

func simIn(removals []simRemoval, generation int32, offset int64) bool {
	return slices.ContainsFunc(removals, func(r simRemoval) bool {
		return offset < r.End && (r.generation < generation || r.generation == generation && offset >= r.Start)
	})
}

// now returns what the log is at present.
func (a *simArchive) now() *simEra { return a.eras[len(a.eras)-1] }

// held returns the record that a topic held at an offset once and that has a
// timestamp, which no other record has.
func (a *simArchive) held(topicID ledger.TopicID, offset, timestamp int64) (kafkatest.Record, bool) {
	for _, e := range a.eras {
		if r, ok := e.records[offset]; ok && e.topicID == topicID && r.Timestamp == timestamp {
			return r, true
		}
	}
	return kafkatest.Record{}, false
}

// heldBefore reports whether the topic that there is held, before its log was cut, what
// becomes a tile.
func (a *simArchive) heldBefore(offset int64, tile ledger.Tile) bool {
	return slices.ContainsFunc(a.eras[:len(a.eras)-1], func(e *simEra) bool {
		want, known := simTileOf[e.fates[offset]]
		return e.topicID == a.now().topicID && known && tile == want
	})
}

func (w *simWorld) archived(p simPartition) *simArchive {
	a := w.archive[p]
	if a == nil {
		a = &simArchive{eras: []*simEra{newSimEra(w.sourceID(p.topic))}}
		w.archive[p] = a
	}
	return a
}

// sourceID returns the id of a source topic, which exists.
func (w *simWorld) sourceID(topic string) ledger.TopicID {
	info := w.pair.Source.Fake().TopicInfo(topic)
	if info == nil {
		w.t.Fatalf("the source has no topic %s", topic)
	}
	return info.TopicID
}

// archiveNow reads what a source partition holds. What it held before must not
// have changed.
func (w *simWorld) archiveNow(p simPartition) (tiles []kafkatest.SourceTile) {
	w.t.Helper()
	a := w.archived(p).now()
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

// open returns the open pair of a partition, with where its committed books end.
// It reports false if there is none.
func (w *simWorld) open(p simPartition) (open ledger.Pair, end ledger.Position, ok bool) {
	w.withBook(func(l *ledger.Ledger) {
		for _, pair := range l.Pairs() {
			if pair.SourceTopic == p.topic && pair.Partition == p.partition && pair.Closed == nil {
				open, end, ok = pair, l.Committed(pair.ID), true
			}
		}
	})
	return open, end, ok
}

// removal says that offsets below one are gone that the books do not reach.
func (w *simWorld) removal(p simPartition, below int64) simRemoval {
	pair, end, _ := w.open(p) // what begins without a book is generation 1, and reaches nothing
	return simRemoval{max(pair.Generation, 1), ledger.Range{Start: end.Source, End: max(end.Source, below)}}
}

// untouched reports whether the first books of a partition hold nothing yet but
// that something lies before their scope: its start may still move up.
func (w *simWorld) untouched(p simPartition) bool {
	untouched := true
	w.withBook(func(l *ledger.Ledger) {
		for _, pair := range l.Pairs() {
			if pair.SourceTopic == p.topic && pair.Partition == p.partition {
				end := l.Committed(pair.ID)
				untouched = pair.Generation == 1 && end.Source == l.Totals(pair.ID).Tiles[ledger.BeforeStart] && end.Target == 0
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
	a, gone := w.archived(p), w.removal(p, to)
	a.lost = append(a.lost, gone)
	if p.partition < t.old && w.untouched(p) {
		a.before = append(a.before, gone)
	}
	if a.cutIn > 0 && !w.knowsOfCut(p) {
		a.forgotten = to
	}
	w.must(w.pair.Source.DeleteRecords(p.topic, p.partition, to))
	w.say("%v: [%d, %d) deleted, copied to %d", p, start, to, gone.Start)
}

// knowsOfCut reports whether the ledger says that a partition's source was cut: it
// is why the partition stopped, or the next generation has begun there.
func (w *simWorld) knowsOfCut(p simPartition) (knows bool) {
	if open, _, ok := w.open(p); ok && open.Generation > w.archived(p).cutIn {
		return true
	}
	w.withBook(func(l *ledger.Ledger) {
		knows = slices.ContainsFunc(l.Stops(), func(s ledger.Stop) bool {
			return s.SourceTopic == p.topic && s.Partition == p.partition && s.Reason == string(replicate.StopSourceTruncated)
		})
	})
	return knows
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
	a, gone := w.archived(p), w.removal(p, end)
	a.cleaned = true
	a.compacted = append(a.compacted, gone)
	cleaner := kafkatest.Cleaner{Upto: start + 1 + rng.Int64N(end-start), Now: time.Now(), DeleteRetention: time.Duration(rng.IntN(3)) * 5 * time.Second}
	w.must(w.pair.Source.Clean(p.topic, p.partition, cleaner))
	w.say("%v: cleaned below %d of %d, copied to %d", p, cleaner.Upto, end, gone.Start)
}
