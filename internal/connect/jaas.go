package connect

import (
	"errors"
	"fmt"
	"strings"
)

// A loginModule is the one entry of a sasl.jaas.config.
type loginModule struct {
	class   string
	options map[string]secret // by name; any may be a secret
}

// name returns the class without its package: builds of the same class under
// other package names exist.
func (m loginModule) name() string { return m.class[strings.LastIndexByte(m.class, '.')+1:] }

// option returns an option's value; empty if it is not there.
func (m loginModule) option(name string) string { return m.options[name].reveal() }

// parseJAAS reads the value of sasl.jaas.config as Kafka's JaasConfig does:
//
//	Module flag (option=value)* ;
//
// with the words, quotes, escapes and comments of java.io.StreamTokenizer. There
// is to be exactly one entry (JaasContext.load). Errors hold nothing of the text:
// a misplaced quote makes a name of a piece of a password.
func parseJAAS(text string) (loginModule, error) {
	t := &jaasTokens{rest: []rune(text)}
	if t.next().kind == jaasEnd {
		return loginModule{}, errors.New("names no login module")
	}
	m, err := t.entry()
	if err != nil {
		return loginModule{}, err
	}
	if t.next().kind != jaasEnd {
		return loginModule{}, errors.New("something follows the semicolon: there is to be one login module")
	}
	return m, nil
}

// A jaasToken is a word or quoted text, one other character, or the end.
type jaasToken struct {
	kind rune   // jaasText, jaasNumber, jaasEnd, or the character
	text string // of jaasText
}

const (
	jaasEnd    rune = -1
	jaasText   rune = -2
	jaasNumber rune = -3 // what begins with a digit and is not quoted: StreamTokenizer gives it no text
)

// jaasTokens cuts a text as StreamTokenizer does with the settings of JaasConfig.
type jaasTokens struct {
	rest []rune
	last jaasToken
}

func (t *jaasTokens) entry() (loginModule, error) {
	if t.last.kind != jaasText {
		return loginModule{}, errors.New("does not begin with the class of a login module")
	}
	m := loginModule{class: t.last.text, options: map[string]secret{}}
	switch strings.ToUpper(t.next().text) {
	case "REQUIRED", "REQUISITE", "SUFFICIENT", "OPTIONAL":
	default:
		return m, errors.New("the class of the login module is not followed by required, requisite, sufficient or optional")
	}
	for n := 1; ; n++ {
		name := t.next()
		switch {
		case name.kind == ';':
			return m, nil
		case name.kind == jaasEnd:
			return m, errors.New("does not end with a semicolon")
		case name.kind != jaasText:
			return m, fmt.Errorf("option %d does not begin with a name (is a quote missing before it?)", n)
		}
		if t.next().kind != '=' {
			return m, fmt.Errorf("option %d has no = (is a quote missing before it?)", n)
		}
		value := t.next()
		if value.kind != jaasText {
			return m, fmt.Errorf("option %d has no value, or one that is not in quotes and is no word", n)
		}
		m.options[name.text] = hide(value.text)
	}
}

// next returns the next token, which stays in last.
func (t *jaasTokens) next() jaasToken {
	t.skip()
	switch {
	case len(t.rest) == 0:
		t.last = jaasToken{kind: jaasEnd}
	case t.rest[0] == '"' || t.rest[0] == '\'':
		t.last = jaasToken{jaasText, t.quoted()}
	case isJAASDigit(t.rest[0]):
		t.last = jaasToken{kind: t.number()}
	case isJAASWord(t.rest[0]):
		n := 0
		for n < len(t.rest) && (isJAASWord(t.rest[n]) || isJAASDigit(t.rest[n])) {
			n++
		}
		t.last = jaasToken{jaasText, string(t.take(n))}
	default:
		t.last = jaasToken{kind: t.take(1)[0]}
	}
	return t.last
}

func (t *jaasTokens) take(n int) []rune {
	taken := t.rest[:n]
	t.rest = t.rest[n:]
	return taken
}

// skip leaves out blanks and comments. A single slash begins a comment too: it is
// StreamTokenizer's default comment character.
func (t *jaasTokens) skip() {
	for len(t.rest) > 0 {
		switch {
		case t.rest[0] <= ' ':
			t.take(1)
		case t.rest[0] == '/' && len(t.rest) > 1 && t.rest[1] == '*':
			end := strings.Index(string(t.rest[2:]), "*/")
			if end < 0 {
				t.rest = nil
				return
			}
			t.take(2 + len([]rune(string(t.rest[2:])[:end])) + 2)
		case t.rest[0] == '/':
			n := 0
			for n < len(t.rest) && t.rest[n] != '\n' && t.rest[n] != '\r' {
				n++
			}
			t.take(n)
		default:
			return
		}
	}
}

// number leaves out digits, dots and a leading minus, which alone is a character
// of its own.
func (t *jaasTokens) number() rune {
	first := t.take(1)[0]
	if first == '-' && (len(t.rest) == 0 || t.rest[0] == '-' || !isJAASDigit(t.rest[0])) {
		return first
	}
	for len(t.rest) > 0 && t.rest[0] != '-' && isJAASDigit(t.rest[0]) {
		t.take(1)
	}
	return jaasNumber
}

// quoted reads up to the same quote, the end of the line or of the text.
func (t *jaasTokens) quoted() string {
	quote := t.take(1)[0]
	var text []rune
	for len(t.rest) > 0 {
		switch t.rest[0] {
		case '\n', '\r':
			return string(text)
		case quote:
			t.take(1)
			return string(text)
		case '\\':
			t.take(1)
			text = append(text, t.escaped())
		default:
			text = append(text, t.take(1)[0])
		}
	}
	return string(text)
}

// escaped reads what follows a backslash: up to three octal digits, the first of
// three at most 3; a letter of C; or the character itself.
func (t *jaasTokens) escaped() rune {
	if len(t.rest) == 0 {
		return jaasReplacement
	}
	c := t.take(1)[0]
	if c >= '0' && c <= '7' {
		most, value := 2, c-'0'
		if c > '3' {
			most = 1
		}
		for ; most > 0 && len(t.rest) > 0 && t.rest[0] >= '0' && t.rest[0] <= '7'; most-- {
			value = value*8 + t.take(1)[0] - '0'
		}
		return value
	}
	if meant, ok := map[rune]rune{'a': 7, 'b': '\b', 'f': '\f', 'n': '\n', 'r': '\r', 't': '\t', 'v': '\v'}[c]; ok {
		return meant
	}
	return c
}

// jaasReplacement is what Java makes of a backslash at the very end: the
// character of code -1.
const jaasReplacement = '\uffff'

func isJAASDigit(r rune) bool { return r >= '0' && r <= '9' || r == '.' || r == '-' }

func isJAASWord(r rune) bool {
	return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r == '-' || r == '_' || r == '$' || r >= 0xa0
}
