package mm2_test

import (
	"errors"
	"regexp"
	"strings"
	"testing"

	"apograph/internal/mm2"
)

// FuzzPatterns takes a list of expressions as a person gives it, and a name. An
// element that is refused is none by itself; one that is taken matches whole names
// only.
func FuzzPatterns(f *testing.F) {
	for _, list := range []string{"orders", "a, b.*", "a)|(b", "(?i)A", `\Qa`, "a|ab", "*", ",,", "[", "a$|^b", "x{2,1}", "(?m)^a$", "\x00", "(?i)a,AB", `a\.b,a.b`, "a{1,2}", "[a&&b]", `(a)\1`, "a++"} {
		f.Add(list, "ab")
	}
	f.Fuzz(func(t *testing.T, list, name string) {
		p, err := mm2.ParsePatterns([]string{list})
		if err != nil {
			var bad *mm2.PatternError
			if !errors.As(err, &bad) || !strings.Contains(list, bad.Element) || !strings.HasPrefix(bad.Element[bad.At:], bad.Piece) {
				t.Fatalf("%q: %v", list, err)
			}
			if _, err := regexp.Compile(bad.Element); err == nil && bad.Why == "" {
				t.Fatalf("%q is refused", bad.Element)
			}
			return
		}
		for _, text := range p.Texts() {
			if text == "" || strings.Contains(text, ",") || text != strings.TrimSpace(text) {
				t.Fatalf("%q is an element of %q", text, list)
			}
		}
		want := len(p.Texts()) > 0 && matchesWhole(t, strings.Join(p.Texts(), "|"), name) // as MirrorMaker 2 joins them
		by, got := p.Match(name)
		if got != want || got == (by == "") {
			t.Fatalf("%q matches %q: %t by %q, want %t", list, name, got, by, want)
		}
		if unmatched := p.Unmatched([]string{name}); got == (len(unmatched) == len(p.Texts())) && len(p.Texts()) > 0 {
			t.Fatalf("%q matches %q: %t, and does not: %q", list, name, got, unmatched)
		}
	})
}

// matchesWhole is another way to ask: by what is left when the longest match is
// taken away.
func matchesWhole(t *testing.T, text, name string) bool {
	t.Helper()
	re, err := regexp.Compile(text)
	if err != nil {
		t.Fatalf("%q is taken", text)
	}
	re.Longest()
	found := re.FindString(name)
	return found == name && (name != "" || re.MatchString(name))
}

// FuzzParseInterval: what is taken is positive, and its own text is taken for the
// same.
func FuzzParseInterval(f *testing.F) {
	for _, text := range []string{"1", "30s", "1m30s", "-5s", "9223372036854775807", " 5 ", "0s"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		d, err := mm2.ParseInterval(text)
		if err != nil {
			return
		}
		if again, err := mm2.ParseInterval(d.String()); d <= 0 || err != nil || again != d {
			t.Fatalf("ParseInterval(%q) = %v, which is read as %v, %v", text, d, again, err)
		}
	})
}
