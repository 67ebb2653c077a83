package main

import (
	"fmt"
	"os"
	"strings"
	"testing"
)

func mustReadme(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// TestReadmeHasTheExitCodes holds README's table to the one in code.
func TestReadmeHasTheExitCodes(t *testing.T) {
	var want strings.Builder
	want.WriteString("| code | meaning |\n| --- | --- |\n")
	for _, row := range exitCodes() {
		fmt.Fprintf(&want, "| %d | %s |\n", row.code, row.meaning)
	}
	if !strings.Contains(mustReadme(t), want.String()+"\n") {
		t.Errorf("README lacks the table\n%s", want.String())
	}
}

// TestReadmeSaysWhatStandsInTheEnvironment holds README to what help says.
func TestReadmeSaysWhatStandsInTheEnvironment(t *testing.T) {
	readme := strings.Join(strings.Fields(strings.ReplaceAll(mustReadme(t), "`", "")), " ")
	if want := commands().environmentText(); !strings.Contains(readme, want) {
		t.Errorf("README lacks the sentences\n%s", want)
	}
}

// TestReadmeSaysWhatToDoWhenAPartitionStops holds README's table to the one in
// code.
func TestReadmeSaysWhatToDoWhenAPartitionStops(t *testing.T) {
	var want strings.Builder
	want.WriteString("| reason | what to do |\n| --- | --- |\n")
	for _, row := range stopAdvices() {
		fmt.Fprintf(&want, "| `%s` | %s |\n", row.reason, row.advice)
	}
	if !strings.Contains(mustReadme(t), "\n## When a partition stops\n") || !strings.Contains(mustReadme(t), want.String()+"\n") {
		t.Errorf("README lacks the table\n%s", want.String())
	}
}

// TestReadmeNamesTheCommands looks for each command, or its group, in README.
func TestReadmeNamesTheCommands(t *testing.T) {
	readme := mustReadme(t)
	for _, c := range commands() {
		word, rest, nested := strings.Cut(c.path, " ")
		if !strings.Contains(readme, "`apograph "+word) || nested && !strings.Contains(readme, rest) {
			t.Errorf("README does not name apograph %s", c.path)
		}
	}
}
