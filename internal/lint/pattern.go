package lint

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// A patternPiece is one character of an expression outside of escapes,
// quotations and classes.
type patternPiece struct {
	r       rune
	at      int  // its byte in the expression
	literal bool // it stands for itself: an escaped one, or one without a meaning of its own
}

// pieces returns the characters of an expression; a class counts as one piece
// that is no literal.
func pieces(expression string) []patternPiece {
	var all []patternPiece
	for at := 0; at < len(expression); {
		r, size := utf8.DecodeRuneInString(expression[at:])
		switch {
		case strings.HasPrefix(expression[at:], `\Q`):
			quoted, _, _ := strings.Cut(expression[at+2:], `\E`)
			for i, r := range quoted {
				all = append(all, patternPiece{r, at + 2 + i, true})
			}
			size = min(len(`\Q`+quoted+`\E`), len(expression)-at)
		case r == '\\' && at+1 < len(expression):
			escaped, width := utf8.DecodeRuneInString(expression[at+1:])
			all = append(all, patternPiece{escaped, at, !unicode.IsLetter(escaped) && !unicode.IsDigit(escaped)})
			size += width
		case r == '[':
			all = append(all, patternPiece{r, at, false})
			size = classLength(expression[at:])
		default:
			all = append(all, patternPiece{r, at, !strings.ContainsRune(`.*+?(){}|^$`, r)})
		}
		at += size
	}
	return all
}

// classLength returns how many bytes the class takes with which s begins.
func classLength(s string) int {
	depth := 0
	for i := 0; i < len(s); i++ {
		switch s[i] {
		case '\\':
			i++
		case '[':
			depth++
		case ']':
			if before := s[:i]; before == "[" || before == "[^" {
				continue // it stands for itself
			}
			if depth--; depth == 0 {
				return i + 1
			}
		}
	}
	return len(s)
}

// looseDots returns where in an expression a dot stands between two characters
// of a name, and so may have been meant as a dot.
func looseDots(expression string) []int {
	var dots []int
	all := pieces(expression)
	for i, p := range all {
		if p.r != '.' || p.literal || i == 0 || i == len(all)-1 {
			continue
		}
		if before, after := all[i-1], all[i+1]; before.literal && after.literal && after.r != ',' {
			dots = append(dots, p.at)
		}
	}
	return dots
}

// anotherName returns a name that expression matches because a dot at this byte
// means any character; "" if the expression is more than a name with dots.
func anotherName(expression string, dot int) string {
	var name strings.Builder
	for _, p := range pieces(expression) {
		switch {
		case p.at == dot:
			name.WriteByte('-')
		case p.literal || p.r == '.':
			name.WriteRune(p.r)
		default:
			return ""
		}
	}
	return name.String()
}

// shellStar returns where in an expression a star repeats a single letter, digit,
// - or _, which makes sense in a wildcard of a shell only.
func shellStar(expression string) (at int, ok bool) {
	all := pieces(expression)
	for i, p := range all {
		if p.r != '*' || p.literal || i == 0 {
			continue
		}
		if before := all[i-1]; before.literal && (unicode.IsLetter(before.r) || unicode.IsDigit(before.r) || strings.ContainsRune("-_", before.r)) {
			return p.at, true
		}
	}
	return 0, false
}

// deadAnchor returns where in an expression a ^ stands that is not at the
// beginning of an alternative, or a $ that is not at the end of one.
func deadAnchor(expression string) (at int, ok bool) {
	all := pieces(expression)
	for i, p := range all {
		switch {
		case p.literal:
		case p.r == '^' && i > 0 && (all[i-1].literal || !strings.ContainsRune("(|:", all[i-1].r)):
			return p.at, true
		case p.r == '$' && i < len(all)-1 && (all[i+1].literal || !strings.ContainsRune(")|", all[i+1].r)):
			return p.at, true
		}
	}
	return 0, false
}
