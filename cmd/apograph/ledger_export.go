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
			"Where the target lost the end of a generation and it was copied again, the\n" +
			"lines end there: nothing stands in two of them. An entry that lies across such\n" +
			"a place is written whole, and is larger than its lines.\n" +
			"Topics are chosen by their names on the source, for either book.\n\n" +
			"Works on a private copy, so that the ledger stays free for a replicator; the\n" +
			"copy needs as much room as the ledger, in the directory for temporary files.",
		examples: []string{
			"apograph ledger export orders.ledger --book source",
			"apograph ledger export orders.ledger --book target --topics 'orders.*' -o csv",
		},
		formats: []format{formatJSONLines, formatCSV},
		flags: slices.Concat(ledgerFlags(), []cli.Flag{
			stringFlag("book", "the `BOOK` to write: "+bookSource+" or "+bookTarget),
			statsFlag(),
		}, selectionFlags()),
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

	generations map[sourceLog][]generation
}

// A sourceLog is a partition of one source topic.
type sourceLog struct {
	topic     string
	id        ledger.TopicID
	partition int32
}

// A generation begins at a source offset.
type generation struct {
	number int32
	start  int64
}

func sourceLogOf(p *ledger.Pair) sourceLog {
	return sourceLog{p.SourceTopic, p.SourceTopicID, p.Partition}
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
	x.generations = map[sourceLog][]generation{}
	for i := range pairs {
		source := sourceLogOf(&pairs[i])
		x.generations[source] = append(x.generations[source], generation{pairs[i].Generation, pairs[i].ScopeStart})
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

// writePair writes the lines of one generation, up to where the target lost what
// its books say: a later one tells of the offsets from there on.
func (x *ledgerExport) writePair(ctx context.Context, l *ledger.Ledger, pair ledger.Pair) error {
	cut, err := x.heldUntil(l, &pair)
	if err != nil {
		return err
	}
	for entry, err := range l.Entries(pair.ID, 0) {
		if err == nil {
			err = context.Cause(ctx)
		}
		if err != nil {
			return err
		}
		// The digest is of all records of the entry, also of those behind the cut.
		whole := entryLineOf(&entry)
		if cut != nil && !cut.Clip(&entry) {
			continue
		}
		if err := x.writeEntry(&pair, &entry, whole); err != nil {
			return err
		}
	}
	return nil
}

// heldUntil returns where the books of a generation hold no more; nil if they hold
// to their end. Where the target lost all that it had copied, a later one that
// begins lower in the same source topic tells anew what stood before that.
func (x *ledgerExport) heldUntil(l *ledger.Ledger, pair *ledger.Pair) (*ledger.Cut, error) {
	cut, err := l.CutOff(pair.ID)
	if cut == nil || cut.Target > pair.TargetBase {
		return cut, err
	}
	for _, later := range x.generations[sourceLogOf(pair)] {
		if later.number > pair.Generation {
			cut.Source = min(cut.Source, later.start)
		}
	}
	return cut, nil
}

// writeEntry writes the lines of what the books hold of an entry.
func (x *ledgerExport) writeEntry(pair *ledger.Pair, entry *ledger.Entry, whole *entryLine) error {
	for run := range entry.Runs() {
		if !x.holds(run.Tile) {
			continue
		}
		line := x.lineOf(pair, entry, run)
		if run.Tile == ledger.Copied {
			line.Entry = whole
		}
		if err := x.writer.write(line); err != nil {
			return err
		}
		x.lines.Add(1)
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
	if x.book == bookTarget {
		line.setTarget(pair, entry, run)
	} else {
		line.setSource(pair, run)
	}
	return line
}
