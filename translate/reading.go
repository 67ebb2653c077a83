package translate

import (
	"fmt"
	"slices"

	"apograph/ledger"
)

// A reading answers questions to the books of one pair, with those of the
// generations that it goes on from, as they were at one commit. Questions in ascending order are answered fastest. One goroutine uses
// it.
type reading struct {
	pair ledger.Pair
	line lineage
	torn bool            // an earlier generation has something of what lies below, and does not join
	end  ledger.Position // of both books, as far as they hold; later commits change nothing before it

	source cursor // on the entry of the offset that is asked for
	ahead  cursor // on the entries behind it
	target cursor

	// What the last searches found, as neighbours ask for the same again.
	copied copiedSearch
	bad    ledger.Range // source offsets, all of them bad; the last one ends a run of bad tiles
}

// A copiedSearch is what [reading.copiedFrom] has found.
type copiedSearch struct {
	from  int64 // target offset; the books hold no copied record from here to entry
	found bool
	entry ledger.Entry
	done  bool // a search has been made
}

// open begins a reading, or returns the reason why offsets of the pair have no
// translation. It may be called again, for another pair.
func (s *reading) open(b Books) (why string, err error) {
	pair, ok := b.Ledger.Pair(b.Pair)
	switch {
	case !ok:
		return "the ledger has no such pair", nil
	case pair.Closed != nil:
		return closedDetail(&pair), nil
	}
	return "", s.start(b.Ledger, pair)
}

// start begins a reading of the books that end with a pair, open or closed.
func (s *reading) start(l *ledger.Ledger, pair ledger.Pair) error {
	line, whole, err := l.Lineage(pair)
	if err != nil {
		return fmt.Errorf("translate offsets of %s-%d: %w", pair.SourceTopic, pair.Partition, err)
	}
	s.pair, s.line, s.torn, s.end = pair, line, !whole, l.Committed(pair.ID)
	s.source.open(l, line, sourceBook())
	s.ahead.open(l, line, sourceBook())
	s.target.open(l, line, targetBook())
	s.copied, s.bad = copiedSearch{}, ledger.Range{}
	return nil
}

func closedDetail(pair *ledger.Pair) string {
	detail := fmt.Sprintf("generation %d of the book is closed", pair.Generation)
	if reason := pair.Closed.Reason; reason != "" {
		detail += ": " + reason
	}
	return detail
}

func (s *reading) tornDetail() string {
	first := &s.line[0]
	return fmt.Sprintf("generation %d of the book begins at source offset %d, target offset %d, and the one before it does not join it there",
		first.Generation, first.ScopeStart, first.TargetBase)
}

func (s *reading) forward(offset int64) (Result, error) {
	if s.torn && offset < s.line[0].ScopeStart {
		return forwards().unknown(offset, s.tornDetail()), nil
	}
	r := Result{SourceOffset: offset, TargetOffset: s.end.Target, CopiedTo: s.end.Source}
	if offset >= s.end.Source {
		r.Status, r.Distance, r.Detail = pastEnd("source", s.end.Source, offset)
		return r, nil
	}
	e, err := s.source.entry(offset)
	if err != nil {
		return Result{}, err
	}
	r.Status = Exact
	if in := e.TargetOf(offset); in < e.Target.End {
		r.TargetOffset = in
		return r, nil
	}
	next, found, err := s.copiedFrom(e.Target.End)
	if err != nil {
		return Result{}, err
	}
	if found {
		r.TargetOffset = next.Target.Start
	} else {
		r.Status = End
	}
	switch {
	case e.Tile == ledger.BeforeStart:
		r.Status, r.Distance = BeforeStart, s.line[0].ScopeStart-offset
		r.Detail = fmt.Sprintf("the scope starts at source offset %d", s.line[0].ScopeStart)
	case e.Tile.Bad():
		if err := s.lost(&r, e); err != nil {
			return Result{}, err
		}
	}
	r.Detail += nothingBehind(r.Status, found)
	return r, nil
}

// nothingBehind completes the detail of an inexact answer that is no record.
func nothingBehind(status Status, found bool) string {
	if found || status.IsExact() {
		return ""
	}
	return "; no record after it is copied"
}

// lost fills in the answer for an offset in e, a bad tile.
func (s *reading) lost(r *Result, e *ledger.Entry) error {
	end, err := s.badEnd(e)
	if err != nil {
		return err
	}
	what := e.Tile.String()
	if e.Cause != ledger.CauseNone {
		what += " (" + e.Cause.String() + ")"
	}
	r.Status, r.Distance = Lost, end-r.SourceOffset
	r.Detail = fmt.Sprintf("source offsets [%d, %d) were never copied; %d is %s", r.SourceOffset, end, r.SourceOffset, what)
	return nil
}

// badEnd returns where on the source the run of adjacent bad tiles ends to
// which e belongs. Notes between them take no source offset.
func (s *reading) badEnd(e *ledger.Entry) (int64, error) {
	if s.bad.Contains(e.Source.Start) {
		return s.bad.End, nil
	}
	run := e.Source
	for run.End < s.end.Source {
		next, err := s.ahead.entry(run.End)
		if err != nil {
			return 0, err
		}
		if !next.Tile.Bad() {
			break
		}
		run.End = next.Source.End
	}
	s.bad = run
	return run.End, nil
}

func (s *reading) reverse(offset int64) (Result, error) {
	if s.torn && offset < s.line[0].TargetBase {
		return backwards().unknown(offset, s.tornDetail()), nil
	}
	r := Result{SourceOffset: s.end.Source, TargetOffset: offset, CopiedTo: s.end.Source}
	if offset >= s.end.Target {
		r.Status, r.Distance, r.Detail = pastEnd("target", s.end.Target, offset)
		return r, nil
	}
	from := max(offset, s.line[0].TargetBase)
	next, found, err := s.copiedFrom(from)
	if err != nil {
		return Result{}, err
	}
	r.Status = End
	if found {
		r.Status, r.SourceOffset = Exact, next.SourceOf(from)
	}
	if offset < s.line[0].TargetBase {
		r.Status, r.Distance = BeforeStart, s.line[0].TargetBase-offset
		r.Detail = fmt.Sprintf("the target book starts at offset %d", s.line[0].TargetBase)
	}
	r.Detail += nothingBehind(r.Status, found)
	return r, nil
}

// pastEnd returns what there is to say of an offset at or beyond the end of a
// book.
func pastEnd(book string, end, offset int64) (Status, int64, string) {
	if offset == end {
		return End, 0, ""
	}
	return BeyondCopied, offset - end, fmt.Sprintf("the %s book ends at offset %d", book, end)
}

// copiedFrom returns the first copied entry that ends behind a target offset,
// and false if there is none. The target book leads to it past all source-only
// tiles at once: only notes are stepped over one by one.
func (s *reading) copiedFrom(target int64) (*ledger.Entry, bool, error) {
	c := &s.copied
	if c.done && target >= c.from && (!c.found || target <= c.entry.Target.Start) {
		return &c.entry, c.found, nil
	}
	for at := target; ; {
		if at = s.line.behindHole(at); at >= s.end.Target {
			break
		}
		e, err := s.target.entry(at)
		if err != nil {
			return nil, false, err
		}
		if e.Tile == ledger.Copied {
			if e.Target.Start > target {
				*c = copiedSearch{from: target, found: true, entry: *e, done: true}
				c.entry.Gaps = slices.Clone(e.Gaps) // the cursor uses its own again
			}
			return e, true, nil
		}
		at = e.Target.End
	}
	*c = copiedSearch{from: target, done: true}
	return nil, false, nil
}
