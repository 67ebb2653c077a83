package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"

	"github.com/urfave/cli/v2"

	"apograph/ledger"
)

// The books that can be exported, as --book names them.
const (
	bookSource = "source"
	bookTarget = "target"
)

func ledgerExportCommand() command {
	return command{
		path:    "ledger export",
		args:    "[FILE] --book source|target",
		maxArgs: 1,
		summary: "write a book, one line a tile",
		details: "The lines of one partition and generation stand in the order of offsets and\n" +
			"leave none out: the source's book from offset 0, the target's from where the\n" +
			"flow began. A copied line is a run of consecutive copied offsets; the lines of\n" +
			"one entry repeat it with its digest, which covers all its records in order.\n" +
			"Topics are chosen by their names on the source, for either book.\n\n" +
			"Works on a private copy, so that the ledger stays free for a replicator; the\n" +
			"copy needs as much room as the ledger, in the directory for temporary files.",
		examples: []string{
			"apograph ledger export orders.ledger --book source",
			"apograph ledger export orders.ledger --book target --topics 'orders.*' -o csv",
		},
		formats: []format{formatJSONLines, formatCSV},
		flags: append([]cli.Flag{
			ledgerFlag(),
			stringFlag("book", "the `BOOK` to write: "+bookSource+" or "+bookTarget),
			statsFlag(),
		}, selectionFlags()...),
		exits: []exitCode{exitNoLedger, exitLocked, exitDamaged},
		run:   runLedgerExport,
	}
}

func runLedgerExport(ctx context.Context, inv *invocation) error {
	book := inv.String("book")
	switch book {
	case bookSource, bookTarget:
	case "":
		return usagef("no book given").withHint("choose with --book %s or --book %s", bookSource, bookTarget)
	default:
		return usagef("--book must be %s or %s, not %s", bookSource, bookTarget, quoteArg(book))
	}
	chosen, err := newSelection(inv)
	if err != nil {
		return err
	}
	path, err := ledgerPath(inv)
	if err != nil {
		return err
	}
	export := &ledgerExport{book: book, chosen: chosen, writer: newTileWriter(inv, book)}
	progress := func() string {
		return fmt.Sprintf("ledger export: %s: %s", path, counted(export.lines.Load(), "line"))
	}
	if inv.stdout.terminal {
		// The lines themselves are progress enough, and would be torn apart.
		return export.run(ctx, path)
	}
	return inv.withProgress(ctx, progress, func(ctx context.Context) error {
		return export.run(ctx, path)
	})
}

// A ledgerExport writes one book.
type ledgerExport struct {
	book   string
	chosen selection
	writer tileWriter
	lines  atomic.Int64 // written so far
}

// run writes the chosen topics of the ledger at path. It reads the ledger page
// by page, and holds no lock on it.
func (x *ledgerExport) run(ctx context.Context, path string) (err error) {
	l, _, err := freshLedger(ctx, path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, l.Close()) }()
	pairs := x.order(l.Pairs())
	if len(pairs) == 0 && len(l.Pairs()) > 0 {
		return usagef("nothing to export: no topic of ledger %s matches %s", path, x.chosen).
			withHint("topics are chosen by their names on the source, as regular expressions on the whole name")
	}
	if err := x.writer.begin(); err != nil {
		return err
	}
	for _, pair := range pairs {
		if err := x.writePair(ctx, l, pair); err != nil {
			return err
		}
	}
	return x.writer.end()
}

// order returns the chosen pairs in the order of the book's own topics.
func (x *ledgerExport) order(pairs []ledger.Pair) []ledger.Pair {
	pairs = slices.DeleteFunc(pairs, func(p ledger.Pair) bool { return !x.chosen.has(p.SourceTopic) })
	topic := func(p ledger.Pair) string {
		if x.book == bookTarget {
			return p.TargetTopic
		}
		return p.SourceTopic
	}
	slices.SortStableFunc(pairs, func(a, b ledger.Pair) int {
		return cmp.Or(
			cmp.Compare(topic(a), topic(b)),
			cmp.Compare(a.Partition, b.Partition),
			cmp.Compare(a.Generation, b.Generation))
	})
	return pairs
}

func (x *ledgerExport) writePair(ctx context.Context, l *ledger.Ledger, pair ledger.Pair) error {
	for entry, err := range l.Entries(pair.ID, 0) {
		if err == nil {
			err = context.Cause(ctx)
		}
		if err != nil {
			return err
		}
		for run := range entry.Runs() {
			if !x.holds(run.Tile) {
				continue
			}
			if err := x.writer.write(x.lineOf(&pair, &entry, run)); err != nil {
				return err
			}
			x.lines.Add(1)
		}
	}
	return nil
}

// holds reports whether a tile has a line in the book.
func (x *ledgerExport) holds(t ledger.Tile) bool {
	if x.book == bookTarget {
		return t.AdvancesTarget()
	}
	return t.AdvancesSource()
}

// lineOf returns the line of one run of an entry.
func (x *ledgerExport) lineOf(pair *ledger.Pair, entry *ledger.Entry, run ledger.Run) tileLine {
	line := tileLine{
		Book:        x.book,
		Partition:   pair.Partition,
		Generation:  pair.Generation,
		Tile:        run.Tile.String(),
		LeaderEpoch: entry.LeaderEpoch,
		Time:        instantOf(entry.TimeMillis),
	}
	if run.Tile == entry.Tile {
		line.Cause, line.Reason = entry.Cause.String(), entry.Reason
		line.LastKnown = instantOf(entry.LastKnownMillis)
	}
	if run.Tile == ledger.Copied {
		line.Entry = entryLineOf(entry)
	}
	if x.book == bookTarget {
		line.setTarget(pair, entry, run)
	} else {
		line.setSource(pair, run)
	}
	return line
}
