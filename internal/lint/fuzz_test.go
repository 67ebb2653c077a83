package lint_test

import (
	"strings"
	"testing"

	"apograph/internal/lint"
)

// FuzzCheck takes any bytes for a file. Every finding has a code of the table with
// its level, a message in one line, and a place in the file; and what becomes of a
// topic can be told.
func FuzzCheck(f *testing.F) {
	known := map[string]lint.Level{}
	for _, c := range lint.Codes() {
		known[c.ID] = c.Level
		f.Add([]byte(whole(c.Example)))
	}
	for _, text := range []string{"", "\\", "->", "a->", "->b.enabled=true", "clusters=\\", "clusters=,a,,", "a->b.enabled=true\ntopics=[", "clusters=a,a\na->a.enabled=true", "\ufeff", "topics=\\Q\\\\Q[[", "\r\\\r\n="} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		if strings.Contains(string(data), "${") {
			return // it would be resolved, from files of this machine
		}
		r := lint.Check("f", data, noEnvironment())
		lines := strings.Count(strings.ReplaceAll(string(data), "\r\n", "\n"), "\n") + strings.Count(string(data), "\r") + 1
		for _, x := range r.Findings {
			if level, ok := known[x.Code]; !ok || level != x.Level {
				t.Errorf("%+v: not of the table", x)
			}
			if x.Message == "" || x.File != "f" || x.Line < 0 || x.Line > lines || (x.Line == 0) != (x.Column == 0) {
				t.Errorf("%+v: a file of %d lines", x, lines)
			}
		}
		if _, ok := r.Explain("orders"); ok != (r.Kind == lint.MirrorMaker2) && len(r.Findings) == 0 {
			t.Errorf("explained: %v", ok)
		}
		r.CheckClusters(facts())
	})
}
