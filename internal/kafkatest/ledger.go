package kafkatest

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"apograph/ledger"
)

// OpenLedger opens a ledger for a test. At the test's end it is closed and then
// checked, as CheckLedgerAtEnd says.
func OpenLedger(t TB, path string, o ledger.Options) *ledger.Ledger {
	t.Helper()
	l, err := ledger.Open(path, o)
	if err != nil {
		t.Fatalf("open ledger: %v", err)
	}
	CheckLedgerAtEnd(t, path)
	t.Cleanup(func() {
		if err := l.Close(); err != nil {
			t.Errorf("close ledger: %v", err)
		}
	})
	return l
}

// CheckLedgerAtEnd has every law of the ledger at path checked at the test's
// end, whoever wrote it. If it breaks one the test fails, and the file is kept
// at a place that the failure names. Cleanup functions run last first, so call
// it before whatever holds the ledger open is started.
func CheckLedgerAtEnd(t TB, path string) {
	t.Helper()
	ctx := context.WithoutCancel(t.Context())
	t.Cleanup(func() { checkLedger(ctx, t, path) })
}

func checkLedger(ctx context.Context, t TB, path string) {
	t.Helper()
	broken := false
	l, err := ledger.Open(path, ledger.Options{ReadOnly: true})
	if err != nil {
		broken = true
		t.Errorf("check ledger: %v", err)
	} else {
		err = l.Check(ctx, func(v ledger.Violation) {
			broken = true
			t.Errorf("check ledger: %v", v)
		})
		if err != nil {
			broken = true
			t.Errorf("check ledger: %v", err)
		}
		if err := l.Close(); err != nil {
			t.Errorf("close ledger: %v", err)
		}
	}
	if broken {
		keepFile(t, path)
	}
}

// keepFile copies a file out of the test's directory, which is removed.
func keepFile(t TB, path string) {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Logf("the broken ledger cannot be kept: %v", err)
		return
	}
	dir, err := os.MkdirTemp("", "apograph-broken-*")
	if err != nil {
		t.Logf("the broken ledger cannot be kept: %v", err)
		return
	}
	kept := filepath.Join(dir, filepath.Base(path))
	if err := os.WriteFile(kept, data, 0o600); err != nil {
		t.Logf("the broken ledger cannot be kept: %v", err)
		return
	}
	t.Logf("the broken ledger is kept at %s", kept)
}

// CompareSourceBook fails the test unless the committed source book of a pair
// agrees with what the oracle has found out from the source: it begins at 0,
// leaves nothing out, does not reach into what is undecided or beyond the high
// watermark, and has the right tile for every offset. Below the log start any
// tile will do, since the records may have been there when they were copied;
// where nothing is, the book may say compacted, lost or unexplained.
func CompareSourceBook(t TB, l *ledger.Ledger, id ledger.PairID, tiles []SourceTile) {
	t.Helper()
	problems, err := bookProblems(l, id, tiles)
	if err != nil {
		t.Fatalf("source book of pair %d: %v", id, err)
	}
	for _, problem := range problems {
		t.Errorf("source book of pair %d: %s", id, problem)
	}
}

func bookProblems(l *ledger.Ledger, id ledger.PairID, tiles []SourceTile) ([]string, error) {
	var problems []string
	report := func(format string, args ...any) {
		if len(problems) < maxDifferences {
			problems = append(problems, fmt.Sprintf(format, args...))
		}
	}
	position := int64(0)
	for entry, err := range l.Entries(id, 0) {
		if err != nil {
			return nil, err
		}
		for run := range entry.Runs() {
			if !run.Tile.AdvancesSource() {
				continue
			}
			if run.Source.Start != position {
				report("%v [%d, %d) after %d", run.Tile, run.Source.Start, run.Source.End, position)
			}
			position = run.Source.End
			for _, wrong := range disagreements(run, tiles) {
				report("%s", wrong)
			}
		}
	}
	return problems, nil
}

// disagreements lists what the oracle has otherwise about the offsets of one
// run of the book.
func disagreements(run ledger.Run, tiles []SourceTile) []string {
	var wrong []string
	covered := run.Source.Start
	for _, tile := range tiles {
		start, end := max(tile.Start, run.Source.Start), min(tile.End, run.Source.End)
		if start >= end {
			continue
		}
		covered = end
		if !slices.Contains(tilesFor(tile.Fate), run.Tile) && tile.Fate != BelowStart {
			wrong = append(wrong, fmt.Sprintf("[%d, %d) is %v in the book, %v on the source", start, end, run.Tile, tile.Fate))
		}
	}
	if covered < run.Source.End {
		wrong = append(wrong, fmt.Sprintf("%v [%d, %d) is beyond the high watermark", run.Tile, covered, run.Source.End))
	}
	return wrong
}

// tilesFor returns the tiles that a book may have where an offset has a fate.
func tilesFor(f Fate) []ledger.Tile {
	switch f {
	case Committed:
		return []ledger.Tile{ledger.Copied}
	case CommitMarker:
		return []ledger.Tile{ledger.CommitMarker}
	case AbortMarker:
		return []ledger.Tile{ledger.AbortMarker}
	case Aborted:
		return []ledger.Tile{ledger.Aborted}
	case Absent:
		return []ledger.Tile{ledger.Compacted, ledger.Lost, ledger.Unexplained}
	default: // Undecided: nothing yet
		return nil
	}
}
