package main

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/leanovate/gopter"
	"github.com/leanovate/gopter/gen"
	"github.com/leanovate/gopter/prop"
)

func TestTable(t *testing.T) {
	table := &textTable{header: []string{"TOPIC", "LAST-N", "WHY"}, right: []bool{false, true}}
	table.add("orders", "5", "a\nb")
	table.add("\u4e2d\u6587", "12345", "")
	table.add("e\u0301", "1", "one two three four five six")
	wide := "TOPIC   LAST-N  WHY\n" +
		"orders       5  a\\nb\n" +
		"\u4e2d\u6587     12345\n" +
		"e\u0301            1  one two three four five six\n"
	blocks := "topic:   orders\nlast n:  5\nwhy:     a\\nb\n\n" +
		"topic:   \u4e2d\u6587\nlast n:  12345\n\n" +
		"topic:   e\u0301\nlast n:  1\nwhy:     one two three four\n         five six\n"
	narrow := "topic:\n  orders\nlast n:\n  5\nwhy:\n  a\\nb\n\n" +
		"topic:\n  \u4e2d\u6587\nlast n:\n  12345\n\n" +
		"topic:\n  e\u0301\nlast n:\n  1\nwhy:\n  one\n  two\n  three\n  four\n  five\n  six\n"
	one := strings.Replace(blocks, "four\n         five", "four five", 1)
	for columns, want := range map[int]string{0: wide, 43: wide, 42: one, 29: blocks, 8: narrow} {
		if got := table.text(columns); got != want {
			t.Errorf("text(%d) =\n%s\nwant\n%s", columns, got, want)
		}
	}
	if got := (&textTable{}).text(0); got != "" {
		t.Errorf("an empty table is %q", got)
	}
	if got := (&textTable{}).text(3); got != "" {
		t.Errorf("an empty table on a narrow terminal is %q", got)
	}
}

// TestTableWithALongGroup: the id of a group makes no line as long.
func TestTableWithALongGroup(t *testing.T) {
	group := "begin" + strings.Repeat("\u4e2d", 8000) + "end"
	topic := strings.Repeat("t", 249)
	table := &textTable{header: []string{"GROUP", "TOPIC", "TARGET-GROUP", "WHY"}}
	table.add(group, topic, group, group)
	cells := strings.Fields(strings.Split(table.text(0), "\n")[1])
	if len(cells) != 4 || cells[1] != topic || cells[2] != cells[0] || cells[3] != group {
		t.Fatalf("%.600q", cells)
	}
	if got := cells[0]; displayWidth(got) > maxGroup || displayWidth(got) < maxGroup-4 || !strings.HasPrefix(got, "begin\u4e2d") ||
		!strings.HasSuffix(got, "\u4e2dend") || strings.Count(got, "\u2026") != 1 {
		t.Errorf("%d columns: %q", displayWidth(got), got)
	}
	for _, text := range []string{strings.Repeat("e\u0301", maxGroup), strings.Repeat("a", maxGroup)} {
		if got := shortened(text); got != text {
			t.Errorf("%q", got)
		}
	}
	if got := shortened(strings.Repeat("a", maxGroup+1)); displayWidth(got) != maxGroup {
		t.Errorf("%q", got)
	}
}

// A madeTable is a table of random names, numbers and sentences.
type madeTable struct {
	table *textTable
	words []string // everything in it, in order
}

func newMadeTable(seed uint64) madeTable {
	random := rand.New(rand.NewPCG(seed, 0))
	made := madeTable{table: &textTable{}}
	named := random.IntN(2) == 0
	if named {
		made.table.header = []string{"TOPIC", "SOURCE-OFFSET", "NOT COPIED YET", "DETAIL"}
		made.table.right = []bool{false, true, true}
	}
	for range 1 + random.IntN(4) {
		name := strings.Repeat(string(rune('a'+random.IntN(26))), 1+random.IntN(60))
		offset := fmt.Sprint(random.Int64())
		words := make([]string, random.IntN(12))
		for i := range words {
			words[i] = []string{"[10, 20)", "lost", "\u4e2d\u6587", "retention;", "9223372036854775807"}[random.IntN(5)]
		}
		cells := []string{name, offset, fmt.Sprint(random.IntN(9)), strings.Join(words, " ")}
		if !named {
			cells = []string{"verdict", strings.Join(cells, " ")}
		}
		made.table.add(cells...)
		made.words = append(made.words, cells...)
	}
	return made
}

// TestNothingIsCutAndNothingWraps: on a terminal of any width a table holds all
// that it holds on a wide one, in order; no line is wider than the terminal;
// and what fits on a line, as any offset does, is not broken.
func TestNothingIsCutAndNothingWraps(t *testing.T) {
	const seed = 3
	t.Logf("seed %d", seed)
	parameters := gopter.DefaultTestParametersWithSeed(seed)
	parameters.MinSuccessfulTests = 2000
	properties := gopter.NewProperties(parameters)
	properties.Property("complete and within the width", prop.ForAll(
		func(seed uint64, columns int) string {
			made := newMadeTable(seed)
			text := made.table.text(columns)
			for line := range strings.Lines(text) {
				if line = strings.TrimSuffix(line, "\n"); slowWidth(line) > columns || strings.HasSuffix(line, " ") {
					return fmt.Sprintf("%d columns: %q", columns, line)
				}
			}
			rest := strings.Join(strings.Fields(text), "")
			for _, word := range made.words {
				word = strings.Join(strings.Fields(word), "")
				at := strings.Index(rest, word)
				if at < 0 {
					return fmt.Sprintf("%d columns: %q is missing or broken in\n%s", columns, word, text)
				}
				rest = rest[at+len(word):]
			}
			for _, word := range strings.Fields(strings.Join(made.words, " ")) {
				if slowWidth(word) <= min(columns-2, minValueColumns) && !slices.Contains(strings.Fields(text), word) {
					return fmt.Sprintf("%d columns: %q is broken in\n%s", columns, word, text)
				}
			}
			return ""
		}, gen.UInt64(), gen.OneGenOf(gen.OneConstOf(40, 80, 200), gen.IntRange(22, 250))))
	properties.TestingRun(t)
}

// TestWriteText: a sentence is escaped and wraps between words, where there is
// a terminal and nobody asks for a wide answer.
func TestWriteText(t *testing.T) {
	const line = "a\x1b is intact: every law"
	for _, tt := range []struct {
		columns int
		format  format
		want    string
	}{
		{0, formatTable, `a\x1b is intact: every law` + "\n"},
		{15, formatTable, `a\x1b is` + "\nintact: every\nlaw\n"},
		{15, formatWide, `a\x1b is intact: every law` + "\n"},
	} {
		var out bytes.Buffer
		inv := &invocation{stdout: newOutput(&out), format: tt.format}
		inv.stdout.columns = tt.columns
		if err := inv.writeText(line); err != nil {
			t.Fatal(err)
		}
		if err := inv.stdout.Flush(); err != nil || out.String() != tt.want {
			t.Errorf("%d columns, %s: %q (%v), want %q", tt.columns, tt.format, out.String(), err, tt.want)
		}
	}
}
