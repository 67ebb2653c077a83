package mm2

import (
	"regexp"
	"strings"
)

// A Cut is a place where a list of expressions is split although its author meant
// one expression: at a comma inside of What.
type Cut struct {
	From, Comma int    // bytes of the list in front of what is cut, and of the comma
	What        string // "a quantifier", "a group", "a class" or "a quotation"
}

// openQuantifier is what a quantifier with a comma begins with, up to the comma.
var openQuantifier = regexp.MustCompile(`^\{\s*\d+\s*,\s*\d*\s*\}`)

// FindCut returns the first place where a list is cut so; false if there is none.
// What does not end behind the comma is not cut, but wrong in itself.
func FindCut(list string) (Cut, bool) {
	type group struct{ from, comma int }
	var open []group
	for at := 0; at < len(list); at++ {
		rest := list[at:]
		switch {
		case strings.HasPrefix(rest, `\Q`):
			quoted, _, ends := strings.Cut(rest, `\E`)
			if comma := strings.IndexByte(quoted, ','); ends && comma >= 0 {
				return Cut{at, at + comma, "a quotation"}, true
			}
			at += len(quoted)
		case rest[0] == '\\':
			at++
		case openQuantifier.MatchString(rest):
			return Cut{at, at + strings.IndexByte(rest, ','), "a quantifier"}, true
		case rest[0] == '[':
			size := classSize(rest)
			if comma := strings.IndexByte(rest[:size], ','); comma >= 0 {
				return Cut{at, at + comma, "a class"}, true
			}
			at += max(size-1, 0)
		case rest[0] == '(':
			open = append(open, group{at, -1})
		case rest[0] == ',' && len(open) > 0:
			for i := range open {
				if open[i].comma < 0 {
					open[i].comma = at
				}
			}
		case rest[0] == ')' && len(open) > 0:
			if g := open[len(open)-1]; g.comma >= 0 {
				return Cut{g.from, g.comma, "a group"}, true
			}
			open = open[:len(open)-1]
		}
	}
	return Cut{}, false
}

// classSize returns how many bytes the class takes with which s begins; 0 if it
// does not end.
func classSize(s string) int {
	first := 1
	if strings.HasPrefix(s, "[^") {
		first = 2
	}
	for i := first; i < len(s); i++ {
		switch {
		case s[i] == '\\':
			i++
		case s[i] == ']' && i > first:
			return i + 1
		}
	}
	return 0
}

// cutError returns what is wrong with an element of a list that begins with what
// is cut; nil if it does not. A quantifier says so by itself.
func cutError(list string, e ListElement) error {
	cut, ok := FindCut(list)
	at := cut.From - e.At
	if !ok || cut.What == "a quantifier" || at < 0 || at >= len(e.Text) {
		return nil
	}
	return &PatternError{Element: e.Text, At: at, Piece: e.Text[at:], Why: cut.What + " that is cut at its comma: commas separate patterns"}
}
