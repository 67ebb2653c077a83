package lint_test

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"apograph/internal/lint"
)

const page = "../../docs/lint.md"

// TestDocs: docs/lint.md is what the table says. With UPDATE_GOLDEN=1 in the
// environment it is written anew.
func TestDocs(t *testing.T) {
	if os.Getenv("UPDATE_GOLDEN") != "" {
		if err := os.WriteFile(page, []byte(lint.Markdown()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != lint.Markdown() {
		t.Error("docs/lint.md is not what the table says; UPDATE_GOLDEN=1 writes it")
	}
}

// TestCodes: codes are unique, in order, of a known level, and each says what it
// means and what to do.
func TestCodes(t *testing.T) {
	form := regexp.MustCompile(`^AP0[1-7]\d\d$`)
	last := ""
	for _, c := range lint.Codes() {
		if !form.MatchString(c.ID) || c.ID <= last {
			t.Errorf("%s behind %s", c.ID, last)
		}
		last = c.ID
		if c.Level != lint.Error && c.Level != lint.Warning && c.Level != lint.Notice {
			t.Errorf("%s: level %q", c.ID, c.Level)
		}
		if c.Title == "" || strings.HasSuffix(c.Title, ".") || !strings.HasSuffix(c.Meaning, ".") || !strings.HasSuffix(c.Do, ".") && !strings.Contains(c.Do, "=") && !strings.HasSuffix(c.Do, ".*") {
			t.Errorf("%s: %q, %q, %q", c.ID, c.Title, c.Meaning, c.Do)
		}
		if c.Example == "" && !strings.HasPrefix(c.ID, "AP07") {
			t.Errorf("%s has no example", c.ID)
		}
	}
}
