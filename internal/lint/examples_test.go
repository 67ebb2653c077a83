package lint_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"apograph/internal/javaprops"
	"apograph/internal/lint"
	"apograph/internal/mm2"
)

// flowLines is the file that the examples of docs/lint.md stand in, where they do not
// list clusters themselves.
const flowLines = "clusters = a, b\na.bootstrap.servers = a:9092\nb.bootstrap.servers = b:9092\na->b.enabled = true\n"

// whole returns the file that an example stands for.
func whole(lines string) string {
	mark := strings.HasPrefix(lines, "\ufeff")
	if lines = strings.TrimPrefix(lines, "\ufeff"); !strings.Contains(lines, "clusters =") && !strings.Contains(lines, "\na->b.enabled = true") {
		lines = flowLines + lines
	}
	if mark {
		return "\ufeff" + lines + "\n"
	}
	return lines + "\n"
}

func noEnvironment() mm2.ConfigOptions {
	return mm2.ConfigOptions{LookupEnv: func(string) (string, bool) { return "", false }}
}

func check(text string) *lint.Report {
	return lint.Check("mm2.properties", []byte(text), noEnvironment())
}

// of returns the findings with a code.
func of(r *lint.Report, code string) []lint.Finding {
	return slices.DeleteFunc(slices.Clone(r.Findings), func(f lint.Finding) bool { return f.Code != code })
}

// TestExamples: each example has its finding, and the better lines have it no
// more.
func TestExamples(t *testing.T) {
	for _, c := range lint.Codes() {
		if c.Example == "" {
			continue
		}
		t.Run(c.ID, func(t *testing.T) {
			if r := check(whole(c.Example)); len(of(r, c.ID)) == 0 {
				t.Errorf("not found in\n%s\nbut %v", c.Example, r.Findings)
			}
			if c.Better == "" {
				return
			}
			if r := check(whole(c.Better)); len(of(r, c.ID)) > 0 {
				t.Errorf("still found in\n%s\n%v", c.Better, of(r, c.ID))
			}
		})
	}
}

// TestNothingToSay: the lines that the examples stand in have errors and warnings
// of no kind.
func TestNothingToSay(t *testing.T) {
	r := check(flowLines)
	if n := lint.Count(r.Findings); !n.Clean() {
		t.Errorf("%v", r.Findings)
	}
}

// TestWhatIsRefusedIsAnError: where a configuration is refused, there is an error
// at its line. A flow without addresses has it at clusters.
func TestWhatIsRefusedIsAnError(t *testing.T) {
	for _, c := range lint.Codes() {
		text := whole(c.Example)
		file, err := javaprops.Parse("mm2.properties", []byte(text))
		if err != nil {
			continue
		}
		_, err = mm2.ParseConfig(file, noEnvironment())
		var refused *mm2.ConfigError
		if !errors.As(err, &refused) {
			continue
		}
		r := check(text)
		for _, p := range refused.Problems {
			if !slices.ContainsFunc(r.Findings, func(f lint.Finding) bool { return f.Level == lint.Error && f.Line == p.At.Line }) {
				t.Errorf("%s: refused: %v; found: %v", c.ID, p, r.Findings)
			}
		}
	}
}
