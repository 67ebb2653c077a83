package fuzz

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestReliabilityNamesItsTests holds each row of RELIABILITY.md to tests that
// are there.
func TestReliabilityNamesItsTests(t *testing.T) {
	page, err := os.ReadFile("../RELIABILITY.md")
	if err != nil {
		t.Fatal(err)
	}
	link := regexp.MustCompile(`\[(\w+)\]\(([\w/]+\.go)\)`)
	rows := 0
	faults, _, _ := strings.Cut(string(page), "\n## Figures")
	for line := range strings.Lines(faults) {
		if !strings.HasPrefix(line, "| ") || strings.HasPrefix(line, "| fault") || strings.HasPrefix(line, "| ---") {
			continue
		}
		rows++
		links := link.FindAllStringSubmatch(line, -1)
		if len(links) == 0 {
			t.Errorf("no test is named in: %s", line)
		}
		for _, l := range links {
			file, err := os.ReadFile(filepath.Join("..", filepath.FromSlash(l[2])))
			if err != nil || !strings.Contains(string(file), "func "+l[1]+"(") {
				t.Errorf("%s is not in %s", l[1], l[2])
			}
		}
	}
	if rows < 30 {
		t.Errorf("%d rows", rows)
	}
}
