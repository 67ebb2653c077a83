package translate_test

import (
	"cmp"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"apograph/ledger"
	"apograph/translate"
)

// A capture is what a real MirrorMaker 2 made of a topic, beside the truth, which
// an outside reader found by the records' payloads.
type capture struct {
	Partitions []captured `json:"partitions"`
	Groups     []struct {
		Group   string `json:"group"`
		Offsets []struct {
			Source    string `json:"source"`
			Partition int32  `json:"partition"`
			Upstream  int64  `json:"upstream"`
			Exact     *int64 `json:"exact"` // the first target offset from which on all that is unread stands
		} `json:"offsets"`
	} `json:"groups"`
}

type captured struct {
	Source      string     `json:"source"`
	Partition   int32      `json:"partition"`
	SourceStart int64      `json:"source_start"`
	SourceEnd   int64      `json:"source_end"`
	TargetStart int64      `json:"target_start"`
	TargetEnd   int64      `json:"target_end"`
	Map         [][3]int64 `json:"map"` // source, target, count
}

// history makes books of the truth. Of a record that was copied twice, after
// MirrorMaker was killed, the last copy is the copy.
func (c *captured) history() *history {
	runs := slices.Clone(c.Map)
	slices.SortFunc(runs, func(a, b [3]int64) int { return cmp.Compare(a[1], b[1]) })
	h := newHistory(min(c.SourceStart, runs[0][0]), c.TargetStart)
	for i, run := range runs {
		source, target, count := run[0], run[1], run[2]
		again := source + count
		for _, later := range runs[i+1:] {
			again = max(source, min(again, later[0]))
		}
		h.foreign(target)
		if count = again - source; count > 0 {
			h.missing(source)
			h.copied(strings.Repeat("r", int(count)), 0)
		}
	}
	return h.foreign(c.TargetEnd).missing(c.SourceEnd)
}

func (h *history) foreign(end int64) *history {
	if n := end - h.targetEnd(); n > 0 {
		h.note(ledger.Foreign, n)
	}
	return h
}

func (h *history) missing(end int64) *history {
	if n := end - h.sourceEnd(); n > 0 {
		h.absent(ledger.Compacted, n)
	}
	return h
}

// TestCapturesAreTranslatedExactly: books of what MirrorMaker copied answer for
// each of its groups what the outside reader says, whatever it made of them itself.
func TestCapturesAreTranslatedExactly(t *testing.T) {
	paths, err := filepath.Glob("../internal/mm2/testdata/captures/*.json")
	if err != nil || len(paths) != 11 {
		t.Fatalf("%v, %v", paths, err)
	}
	asked := 0
	for _, path := range paths {
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		var c capture
		if err := json.Unmarshal(data, &c); err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		for _, p := range c.Partitions {
			err := p.history().withLedger(func(books translate.Books) error {
				for _, g := range c.Groups {
					for _, o := range g.Offsets {
						if o.Source != p.Source || o.Partition != p.Partition || o.Exact == nil {
							continue
						}
						asked++
						got, err := translate.Forward(books, o.Upstream)
						if err != nil || got.TargetOffset != *o.Exact {
							t.Errorf("%s: %s at %d of %s-%d: %+v, %v, want %d", filepath.Base(path), g.Group, o.Upstream, p.Source, p.Partition, got, err, *o.Exact)
						}
					}
				}
				return nil
			})
			if err != nil {
				t.Errorf("%s: %v", path, err)
			}
		}
	}
	if asked < 70 {
		t.Errorf("only %d offsets asked for", asked)
	}
}
