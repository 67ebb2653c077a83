package mm2_test

import (
	"cmp"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"apograph/internal/mm2"
)

const (
	compatibility = "../../docs/mm2-compatibility.md"
	keysBegin     = "<!-- keys: begin -->\n"
	keysEnd       = "<!-- keys: end -->\n"
)

// TestDocs: the keys in docs/mm2-compatibility.md are what the table says. With
// UPDATE_GOLDEN=1 in the environment they are written anew.
func TestDocs(t *testing.T) {
	page, err := os.ReadFile(compatibility)
	if err != nil {
		t.Fatal(err)
	}
	head, rest, begins := strings.Cut(string(page), keysBegin)
	_, tail, ends := strings.Cut(rest, keysEnd)
	if !begins || !ends {
		t.Fatalf("%s has no place for the keys", compatibility)
	}
	want := head + keysBegin + "\n" + keyTables() + "\n" + keysEnd + tail
	if os.Getenv("UPDATE_GOLDEN") != "" {
		if err := os.WriteFile(compatibility, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if string(page) != want {
		t.Errorf("%s is not what the table says; UPDATE_GOLDEN=1 writes it", compatibility)
	}
}

// TestDocsVerdicts: each row of a table that compares says same, better or not,
// and what is not the same has a reason.
func TestDocsVerdicts(t *testing.T) {
	page, err := os.ReadFile(compatibility)
	if err != nil {
		t.Fatal(err)
	}
	column, rows := 0, 0 // of the verdict in the table at hand; 0: it has none
	for line := range strings.Lines(string(page)) {
		cells := strings.Split(strings.TrimSpace(line), "|")
		at := slices.Index(cells, " here ")
		switch {
		case at > 0:
			column = at
		case len(cells) < 3:
			column = 0
		case column > 0 && !strings.HasPrefix(line, "| ---"):
			rows++
			if why := wrongRow(cells, column); why != "" {
				t.Errorf("%s: %s", why, line)
			}
		}
	}
	if rows < len(mm2.Keys()) {
		t.Errorf("%d rows", rows)
	}
}

func wrongRow(cells []string, column int) string {
	if len(cells) != column+3 {
		return "another number of cells"
	}
	verdict, reason := strings.TrimSpace(cells[column]), strings.TrimSpace(cells[column+1])
	switch {
	case verdict != "same" && verdict != "better" && verdict != "not":
		return "no verdict"
	case verdict != "same" && reason == "":
		return "no reason"
	}
	return ""
}

// keyTables returns the table of keys by the part of MirrorMaker 2 that has them,
// and apograph's own.
func keyTables() string {
	var connectors, process, own strings.Builder
	for _, k := range mm2.Keys() {
		row := fmt.Sprintf("| `%s` | %s | %s | %s | %s |\n", k.Name, defaultOf(k), releases(k), verdict(k), reason(k))
		switch {
		case k.On&mm2.Ours != 0:
			fmt.Fprintf(&own, "| `%s` | %s |\n", k.Name, defaultOf(k))
		case k.On&(mm2.AllConnectors|mm2.Filter|mm2.Framework) != 0:
			connectors.WriteString(row)
		default:
			process.WriteString(row)
		}
	}
	const head = "| key | default | since | here | how, or why not |\n| --- | --- | --- | --- | --- |\n"
	return "### Of the connectors\n\n" + head + connectors.String() +
		"\n### Of the process and its Connect worker\n\n" + head + process.String() +
		"\n### apograph's own\n\n| key | default |\n| --- | --- |\n" + own.String()
}

func defaultOf(k mm2.Key) string {
	if k.Default == "" {
		return ""
	}
	return "`" + k.Default + "`"
}

func releases(k mm2.Key) string {
	if k.Until != "" {
		return cmp.Or(k.Since, "?") + " to " + k.Until
	}
	return k.Since
}

func verdict(k mm2.Key) string {
	switch {
	case k.Treatment == mm2.Honoured, ownClasses(k):
		return "same"
	case k.Treatment == mm2.Better:
		return "better"
	}
	return "not"
}

// ownClasses reports whether the classes that come with MirrorMaker 2 are taken,
// and none but these.
func ownClasses(k mm2.Key) bool {
	return k.Treatment == mm2.Refused && k.Type == mm2.ClassKey && k.HasDefault
}

func reason(k mm2.Key) string {
	switch {
	case ownClasses(k):
		return "the classes that come with MirrorMaker 2; another is refused: " + k.Reason
	case k.Treatment == mm2.Refused:
		return "refused: " + k.Reason
	}
	return k.Reason
}
