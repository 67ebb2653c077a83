package mm2

import (
	"errors"
	"fmt"
	"regexp"
	"regexp/syntax"
	"strings"
)

// A PatternError reports an element of a list that is no regular expression, or
// one that means something else to java.util.regex than here (RE2), or cannot be
// said here at all.
type PatternError struct {
	Element string
	At      int    // bytes of Element in front of Piece
	Piece   string // the part that is at fault
	Why     string // what Piece is; "" if Element is no expression
	Err     error  // of the compiler; nil if Why is there
}

func (e *PatternError) Error() string {
	if e.Why == "" {
		return fmt.Sprintf("%q is no regular expression: %s", e.Element, e.reason())
	}
	return fmt.Sprintf("%q cannot be used: %q at character %d is %s", e.Element, e.Piece, len([]rune(e.Element[:e.At]))+1, e.Why)
}

func (e *PatternError) Unwrap() error { return e.Err }

// Hint returns what its author may have meant; "" if that is not clear.
func (e *PatternError) Hint() string {
	switch {
	case strings.HasPrefix(e.Element, "*"):
		return fmt.Sprintf("patterns are regular expressions: .%s", e.Element)
	case strings.HasPrefix(e.Why, "a possessive quantifier"):
		return fmt.Sprintf("write %s without the + behind it", strings.TrimSuffix(e.Piece, "+"))
	case strings.HasPrefix(e.Why, "a quantifier that is cut"):
		return "write a{1,2} as aa?"
	}
	return ""
}

// reason returns what is wrong, without the expression as it was compiled.
func (e *PatternError) reason() string {
	if bad := (*syntax.Error)(nil); errors.As(e.Err, &bad) {
		return bad.Code.String()
	}
	return e.Err.Error()
}

// compileError returns the error of an element that the compiler refuses.
func compileError(element string, err error) *PatternError {
	e := &PatternError{Element: element, Piece: element, Err: err}
	if bad := (*syntax.Error)(nil); errors.As(err, &bad) {
		if at := strings.Index(element, bad.Expr); at >= 0 && bad.Expr != "" {
			e.At, e.Piece = at, bad.Expr
		}
	}
	return e
}

// A javaScan is what an expression has in it that java.util.regex and RE2 do not
// read alike, or that often is not meant as it stands. It holds on names of
// topics and the like: what differs for other characters alone is left out.
type javaScan struct {
	element string
	depth   int
	flags   string // those that hold to the end of the expression
	dots    []int  // that have no quantifier
	quoteAt int    // of a quotation without an end; -1: none
	err     error  // the first piece that cannot be used
}

// scanJava looks through an expression. One that neither of them can read it
// leaves to the compiler.
func scanJava(element string) javaScan {
	s := javaScan{element: element, quoteAt: -1}
	for at := 0; at < len(element) && s.err == nil; {
		switch element[at] {
		case '\\':
			at = s.escape(at)
		case '[':
			at = s.class(at)
		case '(':
			at = s.group(at)
		case ')':
			s.depth--
			at++
		case '*', '+', '?':
			at = s.quantified(at, at+1)
		case '{':
			at = s.braces(at)
		case '.':
			if at++; at == len(element) || !strings.ContainsRune("*+?{", rune(element[at])) {
				s.dots = append(s.dots, at-1)
			}
		default:
			at++
		}
	}
	return s
}

// refuse says that a piece of the expression cannot be used.
func (s *javaScan) refuse(at, end int, why string) int {
	if s.err == nil {
		s.err = &PatternError{Element: s.element, At: at, Piece: s.element[at:end], Why: why}
	}
	return len(s.element)
}

// javaEscapes are letters behind a backslash that only Java knows.
var javaEscapes = map[byte]string{
	'h': "horizontal white space in Java", 'H': "all but horizontal white space in Java", 'V': "all but vertical white space in Java",
	'R': "a line break in Java", 'X': "a grapheme cluster in Java", 'G': "the end of the previous match in Java",
	'Z': "the end in front of a line break in Java", 'N': "a named character in Java", 'c': "a control character in Java",
	'e': "the escape character in Java", 'u': "a character by its code in Java; write it as it is",
}

// escape passes over what begins with a backslash.
func (s *javaScan) escape(at int) int {
	if at+1 == len(s.element) {
		return at + 1
	}
	switch c := s.element[at+1]; {
	case c == 'Q':
		end := strings.Index(s.element[at:], `\E`)
		if end < 0 {
			s.quoteAt = at
			return len(s.element)
		}
		return at + end + 2
	case c >= '1' && c <= '9':
		return s.refuse(at, at+2, "a back reference, which cannot be taken over")
	case c == 'k':
		return s.refuse(at, s.upTo(at, '>'), "a back reference, which cannot be taken over")
	case c == 'p' || c == 'P':
		return s.property(at)
	case c == 'x' && strings.HasPrefix(s.element[at+2:], "{"):
		return s.upTo(at, '}')
	case javaEscapes[c] != "":
		return s.refuse(at, at+2, javaEscapes[c]+", which cannot be taken over")
	}
	return at + 2
}

// property passes over \pL or \p{Lu}. Java has more of them.
func (s *javaScan) property(at int) int {
	end := min(at+3, len(s.element))
	if strings.HasPrefix(s.element[at+2:], "{") {
		end = s.upTo(at, '}')
	}
	if _, err := syntax.Parse(s.element[at:end], syntax.Perl); err != nil {
		return s.refuse(at, end, "a class of characters in Java, which cannot be taken over; name the characters")
	}
	return end
}

// upTo returns where the first c behind at ends; the end if there is none.
func (s *javaScan) upTo(at int, c byte) int {
	if i := strings.IndexByte(s.element[at:], c); i >= 0 {
		return at + i + 1
	}
	return len(s.element)
}

// class passes over a class of characters.
func (s *javaScan) class(at int) int {
	i := at + 1
	if strings.HasPrefix(s.element[i:], "^") {
		i++
	}
	for first := i; i < len(s.element); {
		switch rest := s.element[i:]; {
		case rest[0] == '\\':
			i = s.escape(i)
		case rest[0] == ']' && i > first:
			return i + 1
		case rest[0] == '[':
			return s.refuse(i, s.upTo(i, ']'), "a class within a class in Java, which cannot be taken over")
		case strings.HasPrefix(rest, "&&"):
			return s.refuse(i, i+2, "an intersection of classes in Java, which cannot be taken over")
		default:
			i++
		}
	}
	return i
}

// lookArounds are groups that Java has and RE2 has not, and one of RE2's.
var lookArounds = []struct{ piece, why string }{
	{"(?=", "a look-ahead, which cannot be taken over"},
	{"(?!", "a negative look-ahead, which cannot be taken over; use the list of what is excluded"},
	{"(?<=", "a look-behind, which cannot be taken over"},
	{"(?<!", "a negative look-behind, which cannot be taken over; use the list of what is excluded"},
	{"(?>", "an atomic group, which cannot be taken over"},
	{"(?P", "no group in Java, which names one by (?<name>...)"},
}

// flagGroup is a group that sets flags, up to what ends it.
var flagGroup = regexp.MustCompile(`^\(\?([a-zA-Z]*)(?:-([a-zA-Z]*))?([:)])`)

// group passes over what opens a group.
func (s *javaScan) group(at int) int {
	rest := s.element[at:]
	for _, x := range lookArounds {
		if strings.HasPrefix(rest, x.piece) {
			return s.refuse(at, at+len(x.piece), x.why)
		}
	}
	flags := flagGroup.FindStringSubmatch(rest)
	if flags == nil {
		s.depth++
		return at + 1
	}
	end := at + len(flags[0])
	if strings.Trim(flags[1]+flags[2], "ims") != "" {
		return s.refuse(at, end, "a flag of Java's, which cannot be taken over")
	}
	switch {
	case flags[3] == ":":
		s.depth++
	case s.depth == 0:
		s.flags += flags[0]
	}
	return end
}

// quantified passes over what follows a quantifier.
func (s *javaScan) quantified(at, end int) int {
	if strings.HasPrefix(s.element[end:], "+") {
		return s.refuse(at, end+1, "a possessive quantifier, which cannot be taken over")
	}
	if strings.HasPrefix(s.element[end:], "?") {
		end++
	}
	return end
}

var counted = regexp.MustCompile(`^\{[0-9]+(,[0-9]*)?\}`)

// braces passes over a quantifier in braces. RE2 takes a brace that opens none
// for itself, such as that of a{1,2} cut at its comma.
func (s *javaScan) braces(at int) int {
	size := len(counted.FindString(s.element[at:]))
	if size == 0 {
		return s.refuse(at, len(s.element), "a quantifier that does not end")
	}
	return s.quantified(at, at+size)
}
