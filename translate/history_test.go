package translate_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"apograph/ledger"
	"apograph/translate"
)

// A history is what happened to one partition, step by step: what goes into the
// ledger, and beside it the two axes written down offset by offset, which is
// all that the oracle looks at.
type history struct {
	scope, base int64    // where the books begin as far as they hold
	opens       severing // where they began
	steps       []step
	earlier     *history // the closed generation before it; nil if there is none
	cuts        []int    // steps in which the target was cut off, ascending; see cutIn

	source []sourcePlace // by source offset
	target []int64       // by target offset less base: the source offset; -1 for a note
	booked []int64       // by target offset less base: the source offset that the books say, held or not; of a note -1 less that behind it
}

// A step is an entry, or a severing, and whether the ledger commits behind it.
type step struct {
	entry   ledger.Entry
	severed *severing
	commit  bool
}

// A severing is where the next generation begins behind a cut of the source's log,
// and of the target's if that is below the books' end there.
type severing struct{ scope, base int64 }

// A sourcePlace is what became of one source offset.
type sourcePlace struct {
	tile   ledger.Tile
	target int64 // -1 unless copied
}

// newHistory returns the history of a partition whose scope starts at a source
// offset, and whose target log ended at base when the pair was opened.
func newHistory(scope, base int64) *history {
	h := &history{scope: scope, base: base, opens: severing{scope, base}}
	for range scope {
		h.source = append(h.source, sourcePlace{ledger.BeforeStart, -1})
	}
	return h
}

func (h *history) sourceEnd() int64 { return int64(len(h.source)) }
func (h *history) targetEnd() int64 { return h.base + int64(len(h.target)) }

// copied adds an entry with one offset for each letter of plan: r a record, c a
// commit marker, a an abort marker, x an aborted record, - a compacted one.
func (h *history) copied(plan string, epoch int32) *history {
	e := ledger.Entry{
		Tile:        ledger.Copied,
		Source:      ledger.Range{Start: h.sourceEnd(), End: h.sourceEnd() + int64(len(plan))},
		Target:      ledger.Range{Start: h.targetEnd()},
		Bytes:       20,
		LeaderEpoch: epoch,
	}
	letters := map[rune]ledger.Tile{
		'r': ledger.Copied, 'c': ledger.CommitMarker, 'a': ledger.AbortMarker, 'x': ledger.Aborted, '-': ledger.Compacted,
	}
	for _, letter := range plan {
		offset, tile := h.sourceEnd(), letters[letter]
		if tile == ledger.Copied {
			h.source = append(h.source, sourcePlace{tile, h.targetEnd()})
			h.target, h.booked = append(h.target, offset), append(h.booked, offset)
			continue
		}
		h.source = append(h.source, sourcePlace{tile, -1})
		e.Gaps = append(e.Gaps, ledger.Gap{Tile: tile, Range: ledger.Range{Start: offset, End: offset + 1}})
	}
	e.Target.End = h.targetEnd()
	h.steps = append(h.steps, step{entry: e})
	return h
}

// absent adds a tile of n source offsets that are not copied.
func (h *history) absent(tile ledger.Tile, n int64) *history {
	e := ledger.Entry{
		Tile:        tile,
		Source:      ledger.Range{Start: h.sourceEnd(), End: h.sourceEnd() + n},
		Target:      ledger.Range{Start: h.targetEnd(), End: h.targetEnd()},
		LeaderEpoch: -1,
	}
	switch tile {
	case ledger.Filtered:
		e.Cause, e.Reason = ledger.CauseRule, "a rule"
	case ledger.Lost:
		e.Cause = ledger.CauseRetention
	}
	for range n {
		h.source = append(h.source, sourcePlace{tile, -1})
	}
	h.steps = append(h.steps, step{entry: e})
	return h
}

// note adds a tile of n target offsets that are no copy which the books count.
func (h *history) note(tile ledger.Tile, n int64) *history {
	e := ledger.Entry{
		Tile:        tile,
		Source:      ledger.Range{Start: h.sourceEnd(), End: h.sourceEnd()},
		Target:      ledger.Range{Start: h.targetEnd(), End: h.targetEnd() + n},
		LeaderEpoch: -1,
	}
	if tile == ledger.Duplicate {
		e.Origin = ledger.Range{Start: 0, End: n}
	}
	for range n {
		h.target, h.booked = append(h.target, -1), append(h.booked, -1-h.sourceEnd())
	}
	h.steps = append(h.steps, step{entry: e})
	return h
}

// sever has the source's log cut at an offset, and the target's at another: what the
// target had of the source behind that is a copy of nothing any more, and what it has
// lost is copied again, from the first of it on.
func (h *history) sever(source, target int64) *history {
	s := severing{source, max(target, h.base)}
	for _, offset := range h.booked[s.base-h.base:] {
		if offset >= 0 {
			s.scope = min(s.scope, offset)
		}
	}
	h.source = h.source[:s.scope]
	h.target, h.booked = h.target[:s.base-h.base], h.booked[:s.base-h.base]
	for i, offset := range h.target {
		if offset >= s.scope {
			h.target[i] = -1
		}
	}
	note := len(h.booked) > 0 && h.booked[0] < 0 && -1-h.booked[0] <= s.scope
	if s.scope < h.scope || s.scope == h.scope && !note { // nothing is left
		h.scope, h.base, h.target, h.booked = s.scope, s.base, nil, nil
	}
	h.steps = append(h.steps, step{severed: &s})
	return h
}

// commit has the ledger commit behind the last step.
func (h *history) commit() *history {
	h.steps[len(h.steps)-1].commit = true
	return h
}

// decode returns a history made of numbers, so that gopter can make one, and
// make it smaller. Each number is a step: its kind and its size.
func decode(numbers []uint32) *history {
	if len(numbers) == 0 {
		return newHistory(0, 0)
	}
	h := newHistory(int64(numbers[0]%5), int64(numbers[0]/5%4))
	cuts := numbers[0]/60%2 == 0
	if numbers[0]/20%3 == 0 {
		h.earlier = decode(numbers[1+len(numbers)/2:])
	}
	for _, n := range numbers[1:] {
		kind, rest := n%17, n/17
		size := int64(rest%4) + 1
		switch {
		case kind == 16:
			source, target := h.sourceEnd()-int64(rest%16), h.targetEnd()
			if rest/16%3 == 0 {
				target -= int64(rest / 48 % 16)
			}
			h.sever(max(source, h.scope), target)
			continue
		case kind < 8:
			// The leader epoch keeps some entries from being joined.
			h.copied(plan(rest/4), int32(rest%3))
		case kind < 13:
			tiles := []ledger.Tile{
				ledger.CommitMarker, ledger.AbortMarker, ledger.Aborted, ledger.Compacted,
				ledger.Filtered, ledger.Lost, ledger.Unexplained, ledger.Lost,
			}
			h.absent(tiles[rest/4%8], size)
		default:
			tiles := []ledger.Tile{ledger.Duplicate, ledger.Foreign, ledger.Orphan}
			h.note(tiles[rest/4%3], size)
		}
		if rest/32%8 == 0 {
			h.commit()
		}
		if rest/256%9 == 0 && cuts {
			h.cuts = append(h.cuts, len(h.steps)-1)
		}
	}
	return h
}

// plan returns a plan for [history.copied] with at least one record.
func plan(n uint32) string {
	letters, text := "rrrcax--", "r"
	for range n % 7 {
		n /= 7
		if text += string(letters[n%8]); n%11 == 0 {
			text = text[1:] + "r"
		}
	}
	return text
}

// mustCreate returns a new ledger that is checked and closed at the test's end.
func mustCreate(t testing.TB) *ledger.Ledger {
	t.Helper()
	l, err := create(filepath.Join(t.TempDir(), "flow.ledger"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := checkAndClose(l); err != nil {
			t.Error(err)
		}
	})
	return l
}

func create(path string) (*ledger.Ledger, error) {
	clock := func() time.Time { return time.Date(2026, 11, 29, 20, 13, 51, 0, time.UTC) }
	return ledger.Create(path, ledger.Identity{LedgerID: "test", SourceAlias: "a", TargetAlias: "b"}, ledger.Options{Now: clock})
}

func checkAndClose(l *ledger.Ledger) (err error) {
	checkErr := l.Check(context.Background(), func(v ledger.Violation) {
		err = fmt.Errorf("ledger check: %v", v)
	})
	if closeErr := l.Close(); err == nil {
		err = closeErr
	}
	if err == nil {
		err = checkErr
	}
	return err
}

// orders is the pair of a history: the topic orders, called b.orders on the
// target.
func (h *history) orders(partition int32) ledger.Pair {
	p := ledger.Pair{
		SourceTopic: "orders", TargetTopic: "b.orders", Partition: partition,
		ScopeStart: h.opens.scope, TargetBase: h.opens.base,
	}
	for before := h; before != nil; before = before.earlier {
		p.SourceTopicID[0]++
	}
	return p
}

// book writes a history into a ledger, as the next generation of orders, behind
// those before it.
func (h *history) book(l *ledger.Ledger, partition int32) (translate.Books, error) {
	if h.earlier != nil {
		books, err := h.earlier.book(l, partition)
		if err != nil {
			return translate.Books{}, err
		}
		if err := l.ClosePair(books.Pair, ledger.Closing{Reason: "topic_recreated"}); err != nil {
			return translate.Books{}, err
		}
	}
	ids, err := l.OpenPairs([]ledger.Pair{h.orders(partition)})
	if err != nil {
		return translate.Books{}, err
	}
	books := translate.Books{Ledger: l, Pair: ids[0]}
	cuts := h.cuts
	for i, s := range h.steps {
		if len(cuts) > 0 && cuts[0] == i {
			cuts = cuts[1:]
			if books.Pair, err = h.cutIn(books, i, partition); err != nil {
				return translate.Books{}, err
			}
			_, s.entry = halves(&s.entry)
		}
		if s.severed != nil {
			books.Pair, err = h.severIn(books, s.severed, partition)
		} else {
			err = l.Append(books.Pair, s.entry)
		}
		if err != nil {
			return translate.Books{}, err
		}
		if !s.commit {
			continue
		}
		if err := l.Commit(); err != nil {
			return translate.Books{}, err
		}
	}
	return books, l.Commit()
}

// cutIn books a step and some more, of which the target loses the end, from the
// middle of the step on, and opens the generation that copies it again: what
// comes before is in the one generation, and what comes behind in the other. It
// makes no difference to what an offset translates to.
func (h *history) cutIn(books translate.Books, at int, partition int32) (ledger.PairID, error) {
	for i := at; i < min(at+1+at%3, len(h.steps)) && h.steps[i].severed == nil; i++ {
		if err := books.Ledger.Append(books.Pair, h.steps[i].entry); err != nil {
			return 0, err
		}
	}
	_, rest := halves(&h.steps[at].entry)
	next := h.orders(partition)
	next.ScopeStart, next.TargetBase = rest.Source.Start, rest.Target.Start
	cut := &ledger.Cut{Source: next.ScopeStart, Target: next.TargetBase}
	return books.Ledger.Reopen(books.Pair, ledger.Closing{Reason: "target_lost_records", Cut: cut}, next)
}

// severIn opens the next generation behind a cut of the source's log.
func (h *history) severIn(books translate.Books, s *severing, partition int32) (ledger.PairID, error) {
	l := books.Ledger
	if err := l.Commit(); err != nil {
		return 0, err
	}
	closing := ledger.Closing{Reason: "source_truncated"}
	if s.base < l.End(books.Pair).Target {
		cut, err := l.CutAt(books.Pair, s.base)
		if err != nil {
			return 0, err
		}
		closing.Cut = &cut
	}
	next := h.orders(partition)
	next.ScopeStart, next.TargetBase = s.scope, s.base
	return l.Reopen(books.Pair, closing, next)
}

// halves cuts an entry in two, of which the second is not empty: a copied one in
// front of a record.
func halves(e *ledger.Entry) (front, back ledger.Entry) {
	front, back = *e, *e
	back.Source.Start = e.Source.End - (e.Source.Len()+1)/2
	back.Target.Start = e.Target.End - (e.Target.Len()+1)/2
	if e.Tile != ledger.Copied {
		return front, back
	}
	source := e.SourceOf(back.Target.Start)
	back.Source.Start, back.Gaps = source, nil
	for _, g := range e.Gaps {
		if g.Range.Start > source {
			back.Gaps = append(back.Gaps, g)
		}
	}
	return front, back
}

func (h *history) mustBook(t testing.TB, l *ledger.Ledger, partition int32) translate.Books {
	t.Helper()
	books, err := h.book(l, partition)
	if err != nil {
		t.Fatal(err)
	}
	return books
}

// withLedger runs work on a new ledger with a history, and checks the ledger.
func (h *history) withLedger(work func(translate.Books) error) (err error) {
	dir, err := os.MkdirTemp("", "translate")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	l, err := create(filepath.Join(dir, "flow.ledger"))
	if err != nil {
		return err
	}
	defer func() {
		if checkErr := checkAndClose(l); err == nil {
			err = checkErr
		}
	}()
	books, err := h.book(l, 0)
	if err != nil {
		return err
	}
	return work(books)
}
