package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/leanovate/gopter"
	"github.com/leanovate/gopter/gen"
	"github.com/leanovate/gopter/prop"
)

func TestPrintable(t *testing.T) {
	for in, want := range map[string]string{
		"orders-1":           "orders-1",
		"":                   "",
		"a b":                "a b",
		"\u00fc \u4e2d":      "\u00fc \u4e2d",
		`C:\x1b`:             `C:\x1b`,
		"\x1b[31mred\x1b[0m": `\x1b[31mred\x1b[0m`,
		"\r\n\t\a\x00\x7f":   `\r\n\t\a\x00\x7f`,
		"\u009b31m":          `\u009b31m`,
		"\u202etxt\u200b":    `\u202etxt\u200b`,
		"\u00a0":             `\u00a0`,
		"\U000e0041":         `\U000e0041`,
		"ok\xffok\xc3":       `ok\xffok\xc3`,
		"\ufffd":             "\ufffd",
		"it's \"so\"":        `it's "so"`,
	} {
		if got := printable(in); got != want {
			t.Errorf("printable(%q) = %s, want %s", in, got, want)
		}
	}
}

// anyText generates strings with more trouble in them than chance would bring.
func anyText() gopter.Gen {
	return gen.SliceOf(gen.OneGenOf(
		gen.OneConstOf("a", " ", "\x1b", "\n", "\"", "\\", "\u009b", "\u202e", "\u4e2d", "\u0301",
			"\U000e0041", "\U0001f600", "\xff", "\xe4\xb8", "<", "&", "\u2028"),
		gen.AnyString(),
	)).Map(func(parts []string) string { return strings.Join(parts, "") })
}

func TestEscapingLaws(t *testing.T) {
	const seed = 4
	parameters := gopter.DefaultTestParametersWithSeed(seed)
	parameters.MinSuccessfulTests = 300
	t.Logf("seed %d", seed)
	properties := gopter.NewProperties(parameters)
	properties.Property("a cell holds printing characters only", prop.ForAll(
		func(s string) bool { return onlyPrints(printable(s)) }, anyText()))
	properties.Property("a cell that is escaped stays as it is", prop.ForAll(
		func(s string) bool { return printable(printable(s)) == printable(s) }, anyText()))
	properties.Property("a JSON document is one line, prints, and means the same", prop.ForAll(
		func(s string) string {
			var out bytes.Buffer
			var got map[string]string
			if err := writeJSON(&out, map[string]string{"text": s}); err != nil {
				return err.Error()
			}
			line, ended := strings.CutSuffix(out.String(), "\n")
			want := strings.ToValidUTF8(s, "\ufffd")
			err := json.Unmarshal(out.Bytes(), &got)
			// encoding/json replaces each byte that is no UTF-8, ToValidUTF8 a run of them.
			same := strings.ReplaceAll(got["text"], "\ufffd", "") == strings.ReplaceAll(want, "\ufffd", "")
			if err != nil || !ended || !onlyPrints(line) || !same {
				return fmt.Sprintf("%q became %s (%v)", s, out.String(), err)
			}
			return ""
		}, anyText()))
	properties.Property("a snipped line fits, and says that it is snipped", prop.ForAll(
		func(s string, width int) string {
			s = printable(s)
			got := snip(s, width)
			switch {
			case slowWidth(s) <= width && got != s:
				return fmt.Sprintf("snip(%q, %d) = %q although it fits", s, width, got)
			case slowWidth(s) > width && (!strings.HasSuffix(got, "~") ||
				slowWidth(got) > width || !strings.HasPrefix(s, strings.TrimSuffix(got, "~"))):
				return fmt.Sprintf("snip(%q, %d) = %q", s, width, got)
			}
			return ""
		}, anyText(), gen.IntRange(1, 30)))
	properties.TestingRun(t)
}

func onlyPrints(s string) bool {
	for _, r := range s {
		if !unicode.IsPrint(r) {
			return false
		}
	}
	return utf8.ValidString(s)
}

// slowWidth counts columns for the characters that anyText makes by name, and
// trusts displayWidth with the rest of Unicode.
func slowWidth(s string) int {
	width := 0
	for _, r := range s {
		switch {
		case r == '\u0301':
		case r == '\u4e2d' || r == '\U0001f600':
			width += 2
		case r < 0x300:
			width++
		default:
			width += displayWidth(string(r))
		}
	}
	return width
}
