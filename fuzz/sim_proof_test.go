package fuzz

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"apograph/internal/kafkatest"
	"apograph/ledger"
)

// A simProof holds one finished partition to what the source ever held, and to
// what the target holds.
type simProof struct {
	*simWorld
	partition simPartition
	archive   *simArchive
	tiles     []kafkatest.SourceTile // of the source, now
	target    []kafkatest.Record     // all that the target holds
	targetID  ledger.TopicID         // of the topic that holds it
	book      *ledger.Ledger
	books     []*simBooks // of each generation, oldest first
	highest   int64       // of the source

	// Of the newest generation, which answers, with those whose books go on in it.
	pair   ledger.Pair
	base   int64                 // target offset at which they begin
	source map[int64]ledger.Tile // their source books, offset by offset
	copied []simCopied           // what is copied, by the books; the target's records are held to it
}

// A simCopied says where a record is.
type simCopied struct{ source, target int64 }

// simBooks are the books of one generation, offset by offset.
type simBooks struct {
	pair       ledger.Pair
	source     map[int64]ledger.Tile
	copied     []simCopied
	target     map[int64]simClaim
	end        simCopied // where both end
	totals     ledger.Totals
	sourceEnds int64 // up to where the generation answers: the next one begins there
	targetEnds int64
}

// A simClaim is what a target book says about an offset.
type simClaim struct {
	tile   ledger.Tile
	source int64        // of a copy
	origin ledger.Range // of a duplicate
}

// prove holds the end of a history to everything that is promised.
func (w *simWorld) prove() {
	kafkatest.CheckLedgerAtEnd(w.t, w.config.LedgerPath)
	book, err := ledger.Open(w.config.LedgerPath, ledger.Options{ReadOnly: true})
	w.must(err)
	defer book.Close()
	pairs := map[simPartition][]ledger.Pair{}
	for _, pair := range book.Pairs() {
		p := simPartition{pair.SourceTopic, pair.Partition}
		pairs[p] = append(pairs[p], pair)
	}
	all := w.partitions()
	if len(pairs) != len(all) {
		w.t.Fatalf("books of %d partitions, there are %d", len(pairs), len(all))
	}
	whole := true
	for _, p := range all {
		proof := &simProof{simWorld: w, partition: p, archive: w.archived(p), tiles: w.archiveNow(p), book: book}
		if len(pairs[p]) == 0 {
			w.t.Fatalf("%v has no books", p)
		}
		proof.run(pairs[p])
		whole = whole && proof.whole()
	}
	if whole { // the source still has everything, and nothing was in the way
		var names []string
		for _, t := range w.topics {
			names = append(names, t.name)
		}
		kafkatest.Compare(w.t, w.pair.Source.Bootstrap, w.pair.Target.Bootstrap, kafkatest.Same(names...))
	}
}

// whole reports whether the target must hold what the source holds and no more.
func (p *simProof) whole() bool {
	shortened := slices.ContainsFunc(p.tiles, func(t kafkatest.SourceTile) bool {
		return t.Fate == kafkatest.BelowStart || t.Fate == kafkatest.Absent
	})
	return !shortened && len(p.archive.eras) == 1 && len(p.books) == 1 && len(p.copied) == len(p.target)
}

func (p *simProof) wrong(format string, args ...any) {
	p.t.Helper()
	p.t.Errorf("%v: %s", p.partition, fmt.Sprintf(format, args...))
}

func (p *simProof) run(pairs []ledger.Pair) {
	if n := len(p.tiles); n > 0 {
		p.highest = p.tiles[n-1].End
	}
	p.readTarget()
	for _, pair := range pairs {
		p.books = append(p.books, p.readBooks(pair))
	}
	p.connect()
	p.follow()
	if len(p.books) == 1 {
		kafkatest.CompareSourceBook(p.t, p.book, p.pair.ID, p.asCopied())
	}
	for offset := range p.highest {
		p.checkTile(offset)
	}
	p.checkTarget()
	for _, b := range p.books {
		p.totals(b)
	}
	if !p.t.Failed() {
		p.translate()
	}
}

func (p *simProof) readTarget() {
	var err error
	p.targetID = p.simWorld.pair.Target.Fake().TopicInfo(p.partition.topic).TopicID
	p.target, err = p.simWorld.pair.Target.ReadUncommitted(p.t.Context(), p.partition.topic, p.partition.partition)
	p.must(err)
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

// readBooks walks the list of entries, which must tile both axes.
func (p *simProof) readBooks(pair ledger.Pair) *simBooks {
	b := &simBooks{pair: pair, source: map[int64]ledger.Tile{}, target: map[int64]simClaim{}, end: simCopied{0, pair.TargetBase}}
	b.totals = p.book.Totals(pair.ID)
	for e, err := range p.book.Entries(pair.ID, 0) {
		p.must(err)
		for run := range e.Runs() {
			if run.Source.Start != b.end.source || run.Target.Start != b.end.target {
				p.wrong("generation %d: %v at %v and %v, after %v", pair.Generation, run.Tile, run.Source, run.Target, b.end)
			}
			b.end = simCopied{run.Source.End, run.Target.End}
			b.add(run.Tile, run.Source, run.Target, e.Origin)
		}
	}
	return b
}

func (b *simBooks) add(tile ledger.Tile, source, target, origin ledger.Range) {
	for offset := source.Start; offset < source.End; offset++ {
		b.source[offset] = tile
	}
	for offset := target.Start; offset < target.End; offset++ {
		claim := simClaim{tile: tile, source: -1, origin: origin}
		if tile == ledger.Copied {
			claim.source = source.Start + offset - target.Start
			b.copied = append(b.copied, simCopied{claim.source, offset})
		}
		b.target[offset] = claim
	}
}

// connect finds out up to where each generation answers, and whether they follow
// one another as they must: all but the newest are closed, and together they
// cover the target's log.
func (p *simProof) connect() {
	for i, b := range p.books {
		b.sourceEnds, b.targetEnds = b.end.source, b.end.target
		newest := i == len(p.books)-1
		if newest != (b.pair.Closed == nil) || b.pair.Generation != int32(i+1) {
			p.wrong("generation %d of %d: %+v", i+1, len(p.books), b.pair)
		}
		if newest {
			break
		}
		next := p.books[i+1].pair
		if next.SourceTopicID == b.pair.SourceTopicID && next.ScopeStart <= b.end.source {
			b.sourceEnds = next.ScopeStart
		}
		if next.TargetTopicID == b.pair.TargetTopicID {
			if next.TargetBase > b.end.target {
				p.wrong("the target book of generation %d ends at %d, the next begins at %d", i+1, b.end.target, next.TargetBase)
			}
		}
		for _, later := range p.books[i+1:] { // what stood from there on was gone
			if later.pair.TargetTopicID == b.pair.TargetTopicID {
				b.targetEnds = min(b.targetEnds, later.pair.TargetBase)
			}
		}
	}
	newest := p.books[len(p.books)-1]
	current := newest.pair.SourceTopicID == p.archive.now().topicID && newest.pair.TargetTopicID == p.targetID
	if ends := (simCopied{p.highest, int64(len(p.target))}); !current || newest.end != ends {
		p.wrong("the books of %+v end at %v, the logs at %v", newest.pair, newest.end, ends)
	}
}

// follow puts the books together that answer for the two logs that there are: of each
// source offset the newest generation that has it in its scope, as far as the target
// still holds what that says.
func (p *simProof) follow() {
	p.pair = p.books[len(p.books)-1].pair
	line, whole, err := p.book.Lineage(p.pair)
	if p.must(err); !whole {
		p.wrong("the generations %+v do not join those before them", line)
	}
	p.base, p.source = line[0].TargetBase, map[int64]ledger.Tile{}
	limit := int64(math.MaxInt64)
	for _, b := range slices.Backward(p.books) {
		if b.pair.SourceTopicID != p.pair.SourceTopicID || b.pair.TargetTopicID != p.pair.TargetTopicID {
			break
		}
		for offset, tile := range b.source {
			if offset >= b.pair.ScopeStart && offset < limit {
				p.source[offset] = tile
			}
		}
		for _, c := range b.copied {
			if c.source < limit && c.target < b.targetEnds {
				p.copied = append(p.copied, c)
			}
		}
		limit = min(limit, b.pair.ScopeStart)
	}
	for offset := range limit {
		p.source[offset] = ledger.BeforeStart
	}
	slices.SortFunc(p.copied, func(a, b simCopied) int { return cmp.Compare(a.source, b.source) })
}

// answering returns the books that answer for a source offset, nil if none do.
func (p *simProof) answering(offset int64) *simBooks {
	for _, b := range slices.Backward(p.books) {
		if b.pair.SourceTopicID == p.archive.now().topicID && (offset >= b.pair.ScopeStart || b == p.books[0]) && offset < b.end.source {
			return b
		}
	}
	return nil
}

// simTileOf says what becomes of what an offset holds.
var simTileOf = map[kafkatest.Fate]ledger.Tile{
	kafkatest.Committed: ledger.Copied, kafkatest.Aborted: ledger.Aborted,
	kafkatest.CommitMarker: ledger.CommitMarker, kafkatest.AbortMarker: ledger.AbortMarker,
}

// checkTile holds the books' word about a source offset to what was there.
func (p *simProof) checkTile(offset int64) {
	b, a := p.answering(offset), p.archive
	if b == nil {
		p.wrong("no book answers for source offset %d", offset)
		return
	}
	tile, generation := b.source[offset], b.pair.Generation
	want, known := simTileOf[a.now().fates[offset]]
	switch {
	case known && tile == want:
	case generation <= a.cutIn && offset < a.forgotten && a.heldBefore(offset, tile):
	case tile == ledger.Lost && simIn(a.lost, generation, offset):
	case tile == ledger.Compacted && simIn(a.compacted, generation, offset):
	case tile == ledger.BeforeStart && (simIn(a.before, generation, offset) || generation > 1 && simIn(a.lost, generation, offset)):
	default:
		p.wrong("source offset %d held %v, and is %v in the book of generation %d", offset, a.now().fates[offset], tile, generation)
	}
}

// totals adds up what the ledger counts.
func (p *simProof) totals(b *simBooks) {
	var counted [ledger.NumTiles]int64
	for _, tile := range b.source {
		counted[tile]++
	}
	for _, claim := range b.target {
		if claim.tile != ledger.Copied {
			counted[claim.tile]++
		}
	}
	if b.totals.Tiles != counted {
		p.wrong("generation %d: totals %v, counted %v", b.pair.Generation, b.totals, counted)
	}
	p.say("%v generation %d: %v", p.partition, b.pair.Generation, b.totals)
}
