package javaprops

import (
	"fmt"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// A SyntaxError is the place where a file is no properties file for Java, which
// then reads nothing of it.
type SyntaxError struct {
	At   Position
	What string
}

func (e *SyntaxError) Error() string { return fmt.Sprintf("%v: %s", e.At, e.What) }

// Parse reads data as Properties.load(InputStream) does: each byte is a
// character of ISO-8859-1. Kafka's programs read their files so. The error is a
// [*SyntaxError]: a malformed \u escape, the only thing that Java refuses.
func Parse(name string, data []byte) (*File, error) { return parse(name, data, false) }

// ParseUTF8 reads data as Properties.load(Reader) does from a reader of UTF-8,
// as Kafka's FileConfigProvider reads its files. The error is a [*SyntaxError]:
// a malformed \u escape, or bytes that are no UTF-8.
func ParseUTF8(name string, data []byte) (*File, error) { return parse(name, data, true) }

// A char is a character of the file in Java's eyes, with its place.
type char struct {
	r            rune
	line, column int
}

func parse(name string, data []byte, asUTF8 bool) (*File, error) {
	p := parser{
		lines: lineReader{data: data, asUTF8: asUTF8, runes: utf8.Valid(data), line: 1, column: 1},
		file:  &File{Name: name, last: map[string]int{}, BOM: strings.HasPrefix(string(data[:min(3, len(data))]), "\ufeff")},
	}
	if asUTF8 && !p.lines.runes {
		return nil, p.notUTF8(name, data)
	}
	for p.lines.next() {
		if err := p.entry(p.lines.chars); err != nil {
			return nil, err
		}
	}
	p.file.Lines = p.lines.line
	if p.lines.column == 1 {
		p.file.Lines--
	}
	return p.file, nil
}

type parser struct {
	lines lineReader
	file  *File
}

// notUTF8 returns where the first byte stands that belongs to no character.
func (p *parser) notUTF8(name string, data []byte) error {
	at := Position{name, 1, 1}
	for i := 0; i < len(data); {
		r, size := utf8.DecodeRune(data[i:])
		if r == utf8.RuneError && size == 1 {
			break
		}
		at.Column++
		if r == '\n' || r == '\r' && !(i+1 < len(data) && data[i+1] == '\n') {
			at.Line, at.Column = at.Line+1, 1
		}
		i += size
	}
	return &SyntaxError{at, "a byte that is not UTF-8"}
}

// entry makes an entry of a logical line, as Properties.load0 does.
func (p *parser) entry(line []char) error {
	keyEnd, valueStart := split(line)
	e := Entry{name: p.file.Name, Continued: p.positions(p.lines.begins)}
	key, err := p.convert(&e, line[:keyEnd], true)
	if err != nil {
		return err
	}
	value, err := p.convert(&e, line[valueStart:], false)
	if err != nil {
		return err
	}
	e.Key, e.Value = key.String(), value.String()
	e.spots = value.spots
	e.Trailing = len(e.Value) - len(strings.TrimRight(e.Value, " \t\f"))
	e.At, e.ValueAt = p.position(p.lines.start), p.position(p.lines.end)
	if valueStart < len(line) {
		e.ValueAt = p.position(line[valueStart])
	}
	p.note(&e, line, valueStart)
	p.file.add(e)
	return nil
}

// escapes reports whether a backslash behind line would be one that escapes, not
// one that is escaped.
func escapes(line []char) bool {
	n := 0
	for n < len(line) && line[len(line)-1-n].r == '\\' {
		n++
	}
	return n%2 == 0
}

// note keeps what the author may have meant otherwise: a continued line, and
// letters outside ASCII.
func (p *parser) note(e *Entry, line []char, valueStart int) {
	end := len(line)
	for end > valueStart && isBlank(line[end-1].r) {
		end--
	}
	if end > valueStart && end < len(line) && line[end-1].r == '\\' && escapes(line[:end-1]) {
		e.Unjoined = p.position(line[end-1])
	}
	if p.lines.asUTF8 {
		return
	}
	for _, c := range line {
		if c.r >= utf8.RuneSelf {
			e.HighAt = p.position(c)
			break
		}
	}
	if e.HighAt.IsZero() || !p.lines.runes {
		return
	}
	raw := make([]byte, 0, len(line))
	for _, c := range line[valueStart:] {
		raw = append(raw, byte(c.r))
	}
	meant := make([]char, 0, len(raw))
	for _, r := range string(raw) {
		meant = append(meant, char{r: r})
	}
	var unused Entry
	if s, err := p.convert(&unused, meant, false); err == nil && s.String() != e.Value {
		e.Meant = s.String()
	}
}

func (p *parser) position(c char) Position { return Position{p.file.Name, c.line, c.column} }

func (p *parser) positions(chars []char) []Position {
	var all []Position
	for _, c := range chars {
		all = append(all, p.position(c))
	}
	return all
}

// split returns where the key of a logical line ends and where its value begins.
func split(line []char) (keyEnd, valueStart int) {
	separated, escaped := false, false
	for keyEnd < len(line) {
		r := line[keyEnd].r
		if !escaped && (isSeparator(r) || isBlank(r)) {
			break
		}
		escaped = r == '\\' && !escaped
		keyEnd++
	}
	for valueStart = keyEnd; valueStart < len(line); valueStart++ {
		r := line[valueStart].r
		if isBlank(r) {
			continue
		}
		if !isSeparator(r) || separated {
			break
		}
		separated = true
	}
	return keyEnd, valueStart
}

func isSeparator(r rune) bool { return r == '=' || r == ':' }

func isBlank(r rune) bool { return r == ' ' || r == '\t' || r == '\f' }

// convert resolves the escapes of a key or a value, as Properties.loadConvert
// does. No backslash is the last: the line reader saw to that.
func (p *parser) convert(e *Entry, in []char, isKey bool) (*text, error) {
	out := &text{}
	for i := 0; i < len(in); i++ {
		c := in[i]
		if c.r != '\\' {
			out.add(c.r, c)
			continue
		}
		i++
		switch r := in[i].r; r {
		case 'u':
			unit, ok := hex4(in[i+1:])
			if !ok {
				return nil, &SyntaxError{p.position(c), `\u without four hexadecimal digits`}
			}
			i += 4
			out.add(unit, c)
		case 't', 'n', 'r', 'f':
			e.Controls = append(e.Controls, Backslash{p.position(c), r, isKey, out.size()})
			out.add(map[rune]rune{'t': '\t', 'n': '\n', 'r': '\r', 'f': '\f'}[r], c)
		default:
			// What Properties.store escapes is no finding; anything else is.
			if !strings.ContainsRune(`\=:#! `, r) {
				e.Dropped = append(e.Dropped, Backslash{p.position(c), r, isKey, out.size()})
			}
			out.add(r, in[i])
		}
	}
	out.flush()
	return out, nil
}

// hex4 returns the number of the first four characters.
func hex4(in []char) (rune, bool) {
	if len(in) < 4 {
		return 0, false
	}
	var unit rune
	for _, c := range in[:4] {
		i := strings.IndexRune("0123456789abcdefABCDEF", c.r)
		if i < 0 {
			return 0, false
		}
		if i >= 16 {
			i -= 6
		}
		unit = unit<<4 | rune(i)
	}
	return unit, true
}

// A text is a string in the making, with the place of each character. It puts
// surrogate pairs together.
type text struct {
	strings.Builder
	spots []spot
	high  rune // a high surrogate that waits for its other half
	at    char // where it stands
	next  spot // the spot that would go on the last run
}

// size returns how many bytes there will be before the next character.
func (t *text) size() int {
	if t.high != 0 {
		return t.Len() + len(string(utf8.RuneError))
	}
	return t.Len()
}

func (t *text) add(r rune, at char) {
	if t.high != 0 {
		high, highAt := t.high, t.at
		t.high = 0
		if pair := utf16.DecodeRune(high, r); pair != utf8.RuneError {
			t.write(pair, highAt)
			return
		}
		t.write(utf8.RuneError, highAt)
	}
	if r >= 0xD800 && r < 0xDC00 {
		t.high, t.at = r, at
		return
	}
	if utf16.IsSurrogate(r) {
		r = utf8.RuneError
	}
	t.write(r, at)
}

func (t *text) flush() {
	if t.high != 0 {
		t.high = 0
		t.write(utf8.RuneError, t.at)
	}
}

func (t *text) write(r rune, at char) {
	here := spot{t.Len(), at.line, at.column, r >= utf8.RuneSelf}
	t.WriteRune(r)
	if here != t.next || len(t.spots) == 0 {
		t.spots = append(t.spots, here)
	}
	t.next = spot{index: t.Len(), line: at.line, column: at.column + 1}
	if here.wide {
		t.next.line = -1 // a run of its own
	}
}
