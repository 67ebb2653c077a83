package kafkatest_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"apograph/internal/kafkatest"
	"apograph/ledger"
)

// A recorder stands in for a test that is expected to fail.
type recorder struct {
	*testing.T
	errors   []string
	logs     []string
	cleanups []func()
}

func (r *recorder) Errorf(format string, args ...any) {
	r.errors = append(r.errors, fmt.Sprintf(format, args...))
}

func (r *recorder) Logf(format string, args ...any) {
	r.logs = append(r.logs, fmt.Sprintf(format, args...))
}

func (r *recorder) Cleanup(f func()) { r.cleanups = append(r.cleanups, f) }

func (r *recorder) finish() {
	for i := len(r.cleanups) - 1; i >= 0; i-- {
		r.cleanups[i]()
	}
}

func newLedger(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "a.ledger")
	l, err := ledger.Create(path, ledger.Identity{
		LedgerID: "test", SourceAlias: "a", TargetAlias: "b", SourceClusterID: "source", TargetClusterID: "target",
	}, ledger.Options{})
	must(t, err)
	must(t, l.Close())
	return path
}

func TestOpenLedgerChecks(t *testing.T) {
	path := newLedger(t)
	good := &recorder{T: t}
	kafkatest.OpenLedger(good, path, ledger.Options{})
	good.finish()
	if len(good.errors) != 0 {
		t.Errorf("a good ledger: %v", good.errors)
	}

	bad := &recorder{T: t}
	kafkatest.OpenLedger(bad, path, ledger.Options{})
	closeLedger := bad.cleanups[len(bad.cleanups)-1]
	bad.cleanups[len(bad.cleanups)-1] = func() {
		closeLedger()
		must(t, os.Truncate(path, 0))
	}
	bad.finish()
	if len(bad.errors) == 0 {
		t.Error("a damaged ledger passes")
	}
	kept := strings.TrimPrefix(strings.Join(bad.logs, ""), "the broken ledger is kept at ")
	if _, err := os.Stat(kept); err != nil {
		t.Errorf("the evidence: %v (%v)", err, bad.logs)
	}
	must(t, os.RemoveAll(filepath.Dir(kept)))
}

// TestCompareSourceBook books what a source really is, and then falsely.
//
//	0-2 records, 3 commit marker, 4-5 aborted, 6 abort marker, 7 gone, 8 record
func TestCompareSourceBook(t *testing.T) {
	tiles := []kafkatest.SourceTile{
		{Fate: kafkatest.Committed, Start: 0, End: 3}, {Fate: kafkatest.CommitMarker, Start: 3, End: 4},
		{Fate: kafkatest.Aborted, Start: 4, End: 6}, {Fate: kafkatest.AbortMarker, Start: 6, End: 7},
		{Fate: kafkatest.Absent, Start: 7, End: 8}, {Fate: kafkatest.Committed, Start: 8, End: 9},
	}
	open := append(slices.Clone(tiles), kafkatest.SourceTile{Fate: kafkatest.Undecided, Start: 9, End: 10})
	for name, tt := range map[string]struct {
		change func([]ledger.Entry) []ledger.Entry
		fails  bool
	}{
		"right":              {func(e []ledger.Entry) []ledger.Entry { return e }, false},
		"not at the end":     {func(e []ledger.Entry) []ledger.Entry { return e[:2] }, false},
		"another cause":      {func(e []ledger.Entry) []ledger.Entry { e[4].Tile = ledger.Unexplained; return e }, false},
		"commit is abort":    {func(e []ledger.Entry) []ledger.Entry { e[1].Tile = ledger.AbortMarker; return e }, true},
		"a record compacted": {func(e []ledger.Entry) []ledger.Entry { e[2].Tile = ledger.Compacted; return e }, true},
		"into the undecided": {func(e []ledger.Entry) []ledger.Entry {
			return append(e, ledger.Entry{Tile: ledger.Aborted, Source: ledger.Range{Start: 9, End: 10}, Target: ledger.Range{Start: 4, End: 4}, LeaderEpoch: -1})
		}, true},
		"beyond the high watermark": {func(e []ledger.Entry) []ledger.Entry {
			e[len(e)-1].Source.End, e[len(e)-1].Target.End = 20, e[len(e)-1].Target.Start+12
			return e
		}, true},
	} {
		t.Run(name, func(t *testing.T) {
			l := kafkatest.OpenLedger(t, newLedger(t), ledger.Options{})
			ids, err := l.OpenPairs([]ledger.Pair{{SourceTopic: "a", SourceTopicID: ledger.TopicID{1}, TargetTopic: "a", TargetTopicID: ledger.TopicID{2}}})
			must(t, err)
			for _, e := range tt.change(bookOf(tiles)) {
				must(t, l.Append(ids[0], e))
			}
			must(t, l.Commit())
			found := tiles
			if name == "into the undecided" {
				found = open
			}
			r := &recorder{T: t}
			kafkatest.CompareSourceBook(r, l, ids[0], found)
			if (len(r.errors) > 0) != tt.fails {
				t.Errorf("problems %v, want some: %t", r.errors, tt.fails)
			}
		})
	}
}

// bookOf books everything that is decided.
func bookOf(tiles []kafkatest.SourceTile) []ledger.Entry {
	var entries []ledger.Entry
	target := int64(0)
	for _, tile := range tiles {
		e := ledger.Entry{Source: ledger.Range{Start: tile.Start, End: tile.End}, Target: ledger.Range{Start: target, End: target}, LeaderEpoch: -1}
		switch tile.Fate {
		case kafkatest.Committed:
			e.Tile, e.Bytes = ledger.Copied, 100
			e.Target.End += tile.End - tile.Start
			target = e.Target.End
		case kafkatest.CommitMarker:
			e.Tile = ledger.CommitMarker
		case kafkatest.AbortMarker:
			e.Tile = ledger.AbortMarker
		case kafkatest.Aborted:
			e.Tile = ledger.Aborted
		case kafkatest.Absent:
			e.Tile = ledger.Compacted
		default:
			continue
		}
		entries = append(entries, e)
	}
	return entries
}
