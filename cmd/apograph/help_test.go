package main

import (
	"slices"
	"strings"
	"testing"

	"github.com/urfave/cli/v2"
)

// TestHelpIsReadable: no help shows an escape in place of what it stands for,
// and what each flag says of its variable agrees with what help says of all.
func TestHelpIsReadable(t *testing.T) {
	table := commands()
	for _, c := range table {
		help, err := helpText(table, strings.Fields(c.path))
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(help, `\n`) || strings.Contains(help, `\t`) {
			t.Errorf("help %s shows an escape:\n%s", c.path, help)
		}
		for _, example := range c.examples {
			for line := range strings.Lines(example) {
				if !strings.Contains(help, "\n  "+strings.TrimSuffix(line, "\n")+"\n") {
					t.Errorf("help %s lacks the line %q", c.path, line)
				}
			}
		}
	}
}

// TestVariables: a flag has its own variable, or is named in help as one that
// has none; what permits something has none.
func TestVariables(t *testing.T) {
	table := commands()
	none := table.flagsWithoutVariable()
	for _, c := range table {
		for _, f := range c.flags {
			name := f.Names()[0]
			variables := f.(cli.DocGenerationFlag).GetEnvVars()
			switch {
			case len(variables) == 0 && name != "output" && !slices.Contains(none, dashed(name)):
				t.Errorf("%s: %s has no variable, and help does not say so", c.path, dashed(name))
			case len(variables) > 0 && !slices.Equal(variables, []string{envVar(name)}):
				t.Errorf("%s: %s has the variables %v", c.path, dashed(name), variables)
			}
		}
	}
	for _, flag := range []string{"--append", "--include-inexact"} {
		if !slices.Contains(none, flag) {
			t.Errorf("%s can be given in the environment, where nobody sees it", flag)
		}
	}
	if slices.Contains(none, "--once") || slices.Contains(none, "--output") || slices.Contains(none, "--topics") {
		t.Errorf("flags without a variable: %v", none)
	}
	overview := strings.Join(strings.Fields(table.overview()), " ")
	if !strings.Contains(overview, strings.Join(none, ", ")) {
		t.Errorf("the overview does not name %v:\n%s", none, overview)
	}
}

// TestLockedHints: advice fits the command that met the lock.
func TestLockedHints(t *testing.T) {
	for path, want := range map[string]bool{"replicate": false, "ledger snapshot": false, "ledger inspect": true, "verify": true} {
		if got := strings.Contains(lockedHint(path, 0), "ask a snapshot"); got != want {
			t.Errorf("%s: hint %q", path, lockedHint(path, 0))
		}
	}
}
