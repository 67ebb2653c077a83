package mm2

import (
	"cmp"
	"regexp"
	"slices"
	"strings"
)

// A Cut is a place where a list of expressions is split although its author meant
// one expression: at a comma inside of What.
type Cut struct {
	From, Comma, End int    // bytes of the list in front of what is cut, in front of its first comma, and up to where it ends
	What             string // "a quantifier", "a group", "a class" or "a quotation"
}

// openQuantifier is what a quantifier with a comma begins with, up to the comma.
var openQuantifier = regexp.MustCompile(`^\{\s*\d+\s*,\s*\d*\s*\}`)

// FindCuts returns all places where a list is cut so, in order: of groups within one
// another the inner one. What does not end behind the comma is not cut, but wrong in
// itself.
func FindCuts(list string) []Cut {
	type group struct{ from, comma int }
	var cuts []Cut
	var open []group
	for at := 0; at < len(list); at++ {
		rest := list[at:]
		whole := func(size int, what string) { // a piece that begins here
			if comma := strings.IndexByte(rest[:size], ','); comma >= 0 {
				cuts = append(cuts, Cut{at, at + comma, at + size, what})
			}
			at += max(size-1, 0)
		}
		switch {
		case strings.HasPrefix(rest, `\Q`):
			if end := strings.Index(rest, `\E`); end >= 0 {
				whole(end+len(`\E`), "a quotation")
			} else {
				at = len(list)
			}
		case rest[0] == '\\':
			at++
		case openQuantifier.MatchString(rest):
			whole(len(openQuantifier.FindString(rest)), "a quantifier")
		case rest[0] == '[':
			whole(classSize(rest), "a class")
		case rest[0] == '(':
			open = append(open, group{at, -1})
		case rest[0] == ',' && len(open) > 0:
			if inner := &open[len(open)-1]; inner.comma < 0 {
				inner.comma = at
			}
		case rest[0] == ')' && len(open) > 0:
			if g := open[len(open)-1]; g.comma >= 0 {
				cuts = append(cuts, Cut{g.from, g.comma, at + 1, "a group"})
			}
			open = open[:len(open)-1]
		}
	}
	slices.SortFunc(cuts, func(a, b Cut) int { return cmp.Compare(a.Comma, b.Comma) })
	return cuts
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

// cutError returns what is wrong with an element of a list in which something
// begins that is cut; nil if nothing does.
func cutError(list string, e ListElement) error {
	for _, cut := range FindCuts(list) {
		if at := cut.From - e.At; at >= 0 && at < len(e.Text) {
			return &PatternError{Element: e.Text, At: at, Piece: e.Text[at:], Why: cut.What + " that is cut at its comma: commas separate patterns"}
		}
	}
	return nil
}
