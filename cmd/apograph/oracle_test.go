package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"apograph/internal/kafkatest"
)

// A double is a record that a target partition holds once more: where it
// stands, and the source offset of what it repeats.
type double struct{ target, source int64 }

// A comparison is what an outside reader finds in a partition of both clusters.
type comparison struct {
	lost    []int64  // source offsets that the target does not hold in their place
	doubled []double // in the order of the target
	strange []int64  // target offsets of what the source never held
}

// compareRecords walks both sides once. The target has to hold the source's
// records in order. What it holds out of order is a double if the source's
// record has been passed before, and strange otherwise.
func compareRecords(source, target []kafkatest.Record) comparison {
	var c comparison
	place := map[string][]int{} // of each content, ascending
	for i := range source {
		place[contentOf(&source[i])] = append(place[contentOf(&source[i])], i)
	}
	next := 0
	for i := range target {
		at, passed := nextPlace(place[contentOf(&target[i])], next)
		switch {
		case at == next:
			next++
		case passed >= 0:
			c.doubled = append(c.doubled, double{target[i].Offset, source[passed].Offset})
		case at > next:
			for ; next < at; next++ {
				c.lost = append(c.lost, source[next].Offset)
			}
			next++
		default:
			c.strange = append(c.strange, target[i].Offset)
		}
	}
	for ; next < len(source); next++ {
		c.lost = append(c.lost, source[next].Offset)
	}
	return c
}

// nextPlace returns the first of ascending places that is not below next, and
// the last that is; -1 for none.
func nextPlace(places []int, next int) (at, passed int) {
	passed = -1
	for _, p := range places {
		if p >= next {
			return p, passed
		}
		passed = p
	}
	return -1, passed
}

// contentOf returns everything of a record but its offset, null and empty apart.
func contentOf(r *kafkatest.Record) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d %t%q %t%q", r.Timestamp, r.Key == nil, r.Key, r.Value == nil, r.Value)
	for _, h := range r.Headers {
		fmt.Fprintf(&b, " %q=%t%q", h.Key, h.Value == nil, h.Value)
	}
	return b.String()
}

// A bookLine is a line of `apograph ledger export`, as a script reads it.
type bookLine struct {
	Topic       string `json:"topic"`
	Partition   int32  `json:"partition"`
	Generation  int32  `json:"generation"`
	Start       int64  `json:"start"`
	End         int64  `json:"end"`
	Tile        string `json:"tile"`
	SourceStart *int64 `json:"source_start"`
	Cause       string `json:"cause"`
	LastKnown   string `json:"last_known"`
}

// bookOf reads what `apograph ledger export` has written.
func bookOf(t *testing.T, exported []byte) []bookLine {
	t.Helper()
	var lines []bookLine
	for d := json.NewDecoder(bytes.NewReader(exported)); d.More(); {
		var line bookLine
		if err := d.Decode(&line); err != nil {
			t.Fatal(err)
		}
		lines = append(lines, line)
	}
	return lines
}

// namedDoubles returns the doubles that the target's book names in one partition,
// record by record. They repeat the source's records from where the book says on;
// between those there may be offsets without a record, such as markers.
func namedDoubles(book []bookLine, topic string, partition int32, source []kafkatest.Record) []double {
	var named []double
	for _, line := range book {
		if line.Tile != "duplicate" || line.Topic != topic || line.Partition != partition || line.SourceStart == nil {
			continue
		}
		from, _ := slices.BinarySearchFunc(source, *line.SourceStart, func(r kafkatest.Record, offset int64) int { return cmp.Compare(r.Offset, offset) })
		for i, r := range source[from:min(from+int(line.End-line.Start), len(source))] {
			named = append(named, double{line.Start + int64(i), r.Offset})
		}
	}
	return named
}

// TestNamedDoubles: what a line names are records, not offsets.
func TestNamedDoubles(t *testing.T) {
	source := []kafkatest.Record{{Offset: 4}, {Offset: 5}, {Offset: 7}, {Offset: 8}}
	start := int64(5)
	book := []bookLine{{Topic: "t", Start: 20, End: 22, Tile: "duplicate", SourceStart: &start}, {Topic: "t", Start: 22, End: 23, Tile: "foreign"}}
	if got, want := namedDoubles(book, "t", 0, source), []double{{20, 5}, {21, 7}}; !slices.Equal(got, want) {
		t.Errorf("named %v, want %v", got, want)
	}
}

// TestOracle: the oracle of the campaigns finds what is wrong.
func TestOracle(t *testing.T) {
	records := func(values ...string) []kafkatest.Record {
		var list []kafkatest.Record
		for i, v := range values {
			list = append(list, kafkatest.Record{Offset: int64(i), Value: []byte(v)})
		}
		return list
	}
	source := records("a", "b", "c", "d")
	for want, target := range map[string][]kafkatest.Record{
		"lost [] doubled [] strange []":             records("a", "b", "c", "d"),
		"lost [2] doubled [] strange []":            records("a", "b", "d"),
		"lost [3] doubled [] strange []":            records("a", "b", "c"),
		"lost [] doubled [{2 0} {3 1}] strange []":  records("a", "b", "a", "b", "c", "d"),
		"lost [] doubled [{4 3}] strange []":        records("a", "b", "c", "d", "d"),
		"lost [] doubled [] strange [1]":            records("a", "x", "b", "c", "d"),
		"lost [1] doubled [{2 1}] strange []":       records("a", "c", "b", "d"),
		"lost [0 1 2 3] doubled [] strange []":      nil,
		"lost [] doubled [{1 0} {2 0}] strange [6]": records("a", "a", "a", "b", "c", "d", "x"),
		"lost [0] doubled [{1 1}] strange [2]":      records("b", "b", "", "c", "d"),
	} {
		c := compareRecords(source, target)
		if got := fmt.Sprintf("lost %v doubled %v strange %v", c.lost, c.doubled, c.strange); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}
