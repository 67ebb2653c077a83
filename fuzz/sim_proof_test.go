package fuzz

import (
	"bytes"
	"fmt"
	"slices"

	"apograph/internal/kafkatest"
	"apograph/ledger"
	"apograph/translate"
)

// A simProof holds one finished partition to what the source ever held.
type simProof struct {
	*simWorld
	partition simPartition
	archive   *simArchive
	tiles     []kafkatest.SourceTile // of the source, now
	target    []kafkatest.Record     // all that the target holds
	book      *ledger.Ledger
	pair      ledger.Pair

	source  map[int64]ledger.Tile // the source book, offset by offset
	lost    map[int64]bool        // source offsets in bad tiles
	orphan  map[int64]bool        // target offsets
	copied  []simCopied           // what is copied, by the clusters alone
	booked  []simCopied           // and by the books
	highest int64                 // of the source
}

// A simCopied says where a record is.
type simCopied struct{ source, target int64 }

// prove holds the end of a history to everything that is promised.
func (w *simWorld) prove() {
	kafkatest.CheckLedgerAtEnd(w.t, w.config.LedgerPath)
	book, err := ledger.Open(w.config.LedgerPath, ledger.Options{ReadOnly: true})
	w.must(err)
	defer book.Close()
	pairs := map[simPartition]ledger.Pair{}
	for _, pair := range book.Pairs() {
		p := simPartition{pair.SourceTopic, pair.Partition}
		if _, twice := pairs[p]; twice || pair.Closed != nil || pair.TargetBase != 0 {
			w.t.Errorf("%v: pair %+v", p, pair)
		}
		pairs[p] = pair
	}
	all := w.partitions()
	if len(pairs) != len(all) {
		w.t.Fatalf("%d pairs, %d partitions", len(pairs), len(all))
	}
	whole := true
	for _, p := range all {
		proof := &simProof{
			simWorld: w, partition: p, archive: w.archived(p), tiles: w.archiveNow(p), book: book, pair: pairs[p],
			source: map[int64]ledger.Tile{}, lost: map[int64]bool{}, orphan: map[int64]bool{},
		}
		proof.run()
		whole = whole && !proof.shortened()
	}
	if whole { // the source still has everything
		var names []string
		for _, t := range w.topics {
			names = append(names, t.name)
		}
		kafkatest.Compare(w.t, w.pair.Source.Bootstrap, w.pair.Target.Bootstrap, kafkatest.Same(names...))
	}
}

// shortened reports whether the source holds less than it did.
func (p *simProof) shortened() bool {
	return slices.ContainsFunc(p.tiles, func(t kafkatest.SourceTile) bool {
		return t.Fate == kafkatest.BelowStart || t.Fate == kafkatest.Absent
	})
}

func (p *simProof) wrong(format string, args ...any) {
	p.t.Helper()
	p.t.Errorf("%v: %s", p.partition, fmt.Sprintf(format, args...))
}

func (p *simProof) run() {
	if n := len(p.tiles); n > 0 {
		p.highest = p.tiles[n-1].End
	}
	var err error
	p.target, err = p.simWorld.pair.Target.ReadUncommitted(p.t.Context(), p.partition.topic, p.partition.partition)
	p.must(err)
	p.readBook()
	kafkatest.CompareSourceBook(p.t, p.book, p.pair.ID, p.asCopied())
	for offset := range p.highest {
		p.checkTile(offset)
	}
	p.checkTarget()
	p.totals()
	if !p.t.Failed() {
		p.translate()
	}
}

// asCopied returns the source's tiles, but with what the cleaner may have
// removed since it was copied counted as below the log start: any tile will do
// for CompareSourceBook there, and checkTile decides.
func (p *simProof) asCopied() []kafkatest.SourceTile {
	tiles := slices.Clone(p.tiles)
	for i := range tiles {
		if tiles[i].Fate == kafkatest.Absent && p.archive.cleaned {
			tiles[i].Fate = kafkatest.BelowStart
		}
	}
	return tiles
}

// readBook walks the list of entries, which must tile both axes.
func (p *simProof) readBook() {
	source, target := int64(0), int64(0)
	for e, err := range p.book.Entries(p.pair.ID, 0) {
		p.must(err)
		for run := range e.Runs() {
			if run.Source.Start != source || run.Target.Start != target {
				p.wrong("%v at %v and %v, after %d and %d", run.Tile, run.Source, run.Target, source, target)
			}
			source, target = run.Source.End, run.Target.End
			for offset := run.Source.Start; offset < run.Source.End; offset++ {
				p.source[offset] = run.Tile
				p.lost[offset] = run.Tile.Bad()
				if run.Tile == ledger.Copied {
					p.booked = append(p.booked, simCopied{offset, run.Target.Start + offset - run.Source.Start})
				}
			}
			switch {
			case !run.Tile.AdvancesTarget() || run.Tile == ledger.Copied:
			case run.Tile == ledger.Orphan:
				for offset := run.Target.Start; offset < run.Target.End; offset++ {
					p.orphan[offset] = true
				}
			default:
				p.wrong("a %v at target offsets %v", run.Tile, run.Target)
			}
		}
	}
	if source != p.highest || target != int64(len(p.target)) {
		p.wrong("the books end at %d and %d, the logs at %d and %d", source, target, p.highest, len(p.target))
	}
}

// checkTile holds the book's word about a source offset to what was there.
func (p *simProof) checkTile(offset int64) {
	tile := p.source[offset]
	want, known := map[kafkatest.Fate]ledger.Tile{
		kafkatest.Committed: ledger.Copied, kafkatest.Aborted: ledger.Aborted,
		kafkatest.CommitMarker: ledger.CommitMarker, kafkatest.AbortMarker: ledger.AbortMarker,
	}[p.archive.fates[offset]]
	a := p.archive
	switch {
	case known && tile == want:
	case tile == ledger.Lost && simIn(a.lost, offset):
	case tile == ledger.Compacted && simIn(a.compacted, offset):
	case tile == ledger.BeforeStart && simIn(a.before, offset):
	default:
		p.wrong("source offset %d held %v, and is %v in the book", offset, a.fates[offset], tile)
	}
}

// checkTarget finds each target record among all that the source ever had, by
// its timestamp, which no two have in common. It must be equal and come after
// the one before it. So nothing is there twice, and with what checkTile says,
// nothing is missing.
func (p *simProof) checkTarget() {
	byTime := map[int64]kafkatest.Record{}
	for _, r := range p.archive.records {
		byTime[r.Timestamp] = r
	}
	last := int64(-1)
	for i, got := range p.target {
		want, ok := byTime[got.Timestamp]
		switch {
		case got.Offset != int64(i):
			p.wrong("target offset %d after %d", got.Offset, i-1)
		case !ok:
			p.wrong("target offset %d: the source never had it: %+v", i, got)
		case !simEqual(want, got):
			p.wrong("target offset %d is %+v, not %+v", i, got, want)
		case want.Offset <= last:
			p.wrong("target offset %d is source offset %d, after %d", i, want.Offset, last)
		case p.orphan[got.Offset] && !p.mayBeOrphan(want.Offset):
			p.wrong("target offset %d is an orphan, and the source had it: %d", i, want.Offset)
		}
		last = max(last, want.Offset)
		if !p.orphan[got.Offset] {
			p.copied = append(p.copied, simCopied{want.Offset, got.Offset})
		}
	}
	if !slices.Equal(p.copied, p.booked) {
		p.wrong("booked as copied %v, is %v", p.booked, p.copied)
	}
}

func (p *simProof) mayBeOrphan(offset int64) bool {
	return simIn(p.archive.lost, offset) || simIn(p.archive.compacted, offset)
}

func simEqual(a, b kafkatest.Record) bool {
	same := func(x, y []byte) bool { return (x == nil) == (y == nil) && bytes.Equal(x, y) }
	return a.Timestamp == b.Timestamp && same(a.Key, b.Key) && same(a.Value, b.Value) &&
		slices.EqualFunc(a.Headers, b.Headers, func(x, y kafkatest.Header) bool { return x.Key == y.Key && same(x.Value, y.Value) })
}

// totals adds up what the ledger counts.
func (p *simProof) totals() {
	var counted [ledger.NumTiles]int64
	for _, tile := range p.source {
		counted[tile]++
	}
	counted[ledger.Orphan] = int64(len(p.orphan))
	got := p.book.Totals(p.pair.ID)
	if got.Tiles != counted {
		p.wrong("totals %v, counted %v", got.Tiles, counted)
	}
	p.say("%v: %v", p.partition, got)
}

// translate asks for every offset of both sides, from 0 to beyond the end, and
// compares with looking through the list of what is copied.
func (p *simProof) translate() {
	const beyond = 3
	var forward, backward []translate.Query
	for offset := range p.highest + 1 + beyond {
		forward = append(forward, translate.Query{Topic: p.partition.topic, Partition: p.partition.partition, Offset: offset})
	}
	for offset := range int64(len(p.target)) + 1 + beyond {
		backward = append(backward, translate.Query{Topic: p.partition.topic, Partition: p.partition.partition, Offset: offset})
	}
	index := translate.NewIndex(p.book)
	answers, err := index.Forward(p.t.Context(), forward)
	p.must(err)
	for i, a := range answers {
		got, want := simAnswer{a.TargetOffset, a.Status, a.Distance}, p.wantForward(int64(i))
		if got != want {
			p.wrong("source offset %d translates to %v, want %v", i, got, want)
		}
	}
	answers, err = index.Reverse(p.t.Context(), backward)
	p.must(err)
	for i, a := range answers {
		got, want := simAnswer{a.SourceOffset, a.Status, a.Distance}, p.wantReverse(int64(i))
		if got != want {
			p.wrong("target offset %d translates to %v, want %v", i, got, want)
		}
	}
}

// A simAnswer is what a translation has to say.
type simAnswer struct {
	offset   int64
	status   translate.Status
	distance int64
}

func (p *simProof) wantForward(offset int64) simAnswer {
	want := simAnswer{offset: int64(len(p.target)), status: translate.End}
	for _, c := range p.copied {
		if c.source >= offset {
			want.offset, want.status = c.target, translate.Exact
			break
		}
	}
	before := func(at int64) bool { return at < p.highest && p.source[at] == ledger.BeforeStart }
	switch {
	case offset > p.highest:
		want.status, want.distance = translate.BeyondCopied, offset-p.highest
	case p.lost[offset]:
		want.status = translate.Lost
		for at := offset; p.lost[at]; at++ {
			want.distance++
		}
	case before(offset):
		want.status = translate.BeforeStart
		for at := offset; before(at); at++ {
			want.distance++
		}
	}
	return want
}

func (p *simProof) wantReverse(offset int64) simAnswer {
	for _, c := range p.copied {
		if c.target >= offset {
			return simAnswer{c.source, translate.Exact, 0}
		}
	}
	if end := int64(len(p.target)); offset > end {
		return simAnswer{p.highest, translate.BeyondCopied, offset - end}
	}
	return simAnswer{p.highest, translate.End, 0}
}
