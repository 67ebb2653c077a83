package verify

import (
	"fmt"
	"strings"
	"time"

	"apograph/ledger"
)

// A books is one pair of the ledger with what its entries sum up to.
type books struct {
	ledger *ledger.Ledger
	pair   ledger.Pair
	state  ledger.State
	end    ledger.Position
	totals ledger.Totals

	accepted []ledger.Acceptance
	doubts   []ledger.Doubt

	cut  *ledger.Cut     // the books end there, although the ledger has more; nil: they do not
	torn int64           // source offset of the copied entry that the cut tears; -1: none
	kept bool            // the source's log was cut, not the target's: the target holds what is behind the cut
	last ledger.Position // where they end in the ledger
	rest Counts          // of what is behind the cut, if that is kept

	behind *ledger.Pair // the later generation that begins lowest in the target's log, below where the books end; nil: none does

	overwritten bool // cut, and on the source there is something else below the cut by now

	beside Beside // what others wrote to the target

	stands string // why a copier at work does not go on with it, for details; else ""

	replaced bool // an entry has TimestampsReplaced
}

func openBooks(l *ledger.Ledger, pair ledger.Pair, later []ledger.Pair) (*books, error) {
	b := &books{
		ledger: l, pair: pair, state: l.State(pair.ID), end: l.Committed(pair.ID), totals: l.Totals(pair.ID),
		accepted: l.Acceptances(pair.ID), doubts: l.StandingDoubts(pair.ID),
	}
	return b, b.cutAt(later)
}

// survey reads all entries once: it reports the tiles that are bad, or that the
// ledger names, and fills in what the entries sum up to. The totals that the
// ledger keeps must agree.
func (b *books) survey(f *findings, p *planner) error {
	var seen, within ledger.Totals
	for e, err := range b.ledger.Entries(b.pair.ID, 0) {
		if err != nil {
			return err
		}
		seen.Entries++
		b.replaced = b.replaced || e.TimestampsReplaced
		for run := range e.Runs() {
			seen.Tiles[run.Tile] += max(run.Source.Len(), run.Target.Len())
		}
		if b.kept {
			b.report(f, &e)
		}
		if !b.clip(&e) {
			continue
		}
		for run := range e.Runs() {
			within.Tiles[run.Tile] += max(run.Source.Len(), run.Target.Len())
		}
		if !b.kept {
			b.report(f, &e)
		}
		p.add(&e)
	}
	if seen.Tiles != b.totals.Tiles || seen.Entries != b.totals.Entries {
		return &ledger.CorruptError{
			Path: b.ledger.Path(), Bucket: "pages", Key: fmt.Sprintf("pair %d", b.pair.ID), Law: "totals",
			Detail: fmt.Sprintf("the entries are %v, the totals say %v", seen, b.totals),
		}
	}
	b.totals = within
	if b.kept {
		b.rest = restOf(&seen.Tiles, &within.Tiles, b.last.Source-b.end.Source)
	}
	b.doubt(f)
	return nil
}

// report reports an entry that is a finding in itself.
func (b *books) report(f *findings, e *ledger.Entry) {
	target := rangeOf(e.Target)
	b.beside.add(e)
	switch e.Tile {
	case ledger.Lost:
		b.bad(f, e, Finding{Kind: Lost, Target: target, Reason: Reason(e.Cause.String()), Detail: lostDetail(e)})
	case ledger.Unexplained:
		b.bad(f, e, Finding{Kind: Unexplained, Target: target,
			Detail: "the book has no record at these source offsets and knows no cause" + because(e.Reason)})
	case ledger.Duplicate:
		f.note(Duplicate, NoReason, rangeOf(e.Origin), target, "named by the ledger: second physical copy of source offsets %v%s", e.Origin, because(e.Reason))
	}
}

func lostDetail(e *ledger.Entry) string {
	detail := "gone from the source before they were copied"
	switch e.Cause {
	case ledger.CauseNone:
	case ledger.CauseRetention: // all that a copier can know is that retention was on
		detail += ", by retention or deletion (cause recorded: retention)"
	default:
		detail += ", by " + strings.ReplaceAll(e.Cause.String(), "_", " ")
	}
	if e.LastKnownMillis != 0 {
		detail += ", last known " + time.UnixMilli(e.LastKnownMillis).UTC().Format("2006-01-02T15:04:05.000Z")
	}
	return detail + because(e.Reason)
}

func because(reason string) string {
	if reason == "" {
		return ""
	}
	return ": " + reason
}

// count returns the tiles as counts; what is copied is not judged.
func (b *books) count() Counts {
	return countsOf(&b.totals.Tiles, b.end.Source)
}

func countsOf(t *[ledger.NumTiles]int64, offsets int64) Counts {
	return Counts{
		SourceOffsets: offsets,
		Copied:        t[ledger.Copied],
		CommitMarkers: t[ledger.CommitMarker],
		AbortMarkers:  t[ledger.AbortMarker],
		Aborted:       t[ledger.Aborted],
		Compacted:     t[ledger.Compacted],
		Filtered:      t[ledger.Filtered],
		BeforeStart:   t[ledger.BeforeStart],
		Lost:          t[ledger.Lost],
		Unexplained:   t[ledger.Unexplained],
		Duplicates:    t[ledger.Duplicate],
		Foreign:       t[ledger.Foreign],
		Orphans:       t[ledger.Orphan],
	}
}

// restOf counts what the books say that is not within the part that is judged.
func restOf(all, within *[ledger.NumTiles]int64, offsets int64) Counts {
	var tiles [ledger.NumTiles]int64
	for i := range tiles {
		tiles[i] = all[i] - within[i]
	}
	c := countsOf(&tiles, offsets)
	c.NotVerified = c.Copied
	return c
}

// A sourceEnd is where the source ends, and where it is undecided.
type sourceEnd struct {
	stable int64 // last stable offset
	end    int64 // high watermark, or where the books end if that is further
	known  bool
}

// seenEnd returns the end of the source that the copier saw last.
func (b *books) seenEnd() sourceEnd {
	if b.state.HighWatermark < 0 {
		return sourceEnd{stable: b.end.Source, end: b.end.Source}
	}
	end := max(b.state.HighWatermark, b.end.Source)
	stable := end
	if b.state.LastStable >= 0 {
		stable = min(b.state.LastStable, end)
	}
	return sourceEnd{stable: stable, end: end, known: true}
}

// notCopiedYet counts and reports what the source holds beyond the books.
func notCopiedYet(f *findings, c *Counts, b *books, e sourceEnd) {
	position := b.end
	c.SourceOffsets = e.end
	c.NotCopiedYet = e.end - position.Source
	target := at(position.Target)
	if !e.known {
		f.note(NotCopiedYet, Behind, at(position.Source), target, "the end of the source is not known")
		return
	}
	open := max(e.stable, position.Source)
	if open > position.Source {
		f.note(NotCopiedYet, Behind, &Range{position.Source, open}, target, "the books end before the source does%s", b.stands)
	}
	if open < e.end {
		f.note(NotCopiedYet, OpenTransaction, &Range{open, e.end}, target,
			"held back by a transaction that is open since source offset %d", open)
	}
}
