package translate

import (
	"io"
	"strings"
	"unicode/utf16"
)

// WriteCSV writes the plan to the byte as Kafka's tool exports one, less the
// empty line at its end. Plans that [ResetPlan.Validate] refuses are not
// written, nor are groups with a newline in their name, which the tool exports
// but cannot read. The error is a [*PlanError], or that of w.
func (p *ResetPlan) WriteCSV(w io.Writer) error {
	return NewSheet(p).WriteCSV(w)
}

// maxUnquoted is the length, in UTF-16 code units, up to which jackson's
// CsvEncoder looks whether a value needs quotes; a longer one has them always
// (MAX_QUOTE_CHECK).
const maxUnquoted = 24

// quoteField returns a value as jackson's CsvGenerator writes it without
// STRICT_CHECK_FOR_QUOTING: in quotes if it has a character up to the comma, or
// a backslash.
func quoteField(value string) string {
	special := func(r rune) bool { return r <= ',' || r == '\\' }
	if len(utf16.Encode([]rune(value))) <= maxUnquoted && !strings.ContainsFunc(value, special) {
		return value
	}
	return `"` + strings.ReplaceAll(value, `"`, `""`) + `"`
}
