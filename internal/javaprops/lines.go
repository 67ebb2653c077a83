package javaprops

import "unicode/utf8"

// A lineReader gives the logical lines of a file, as Properties.LineReader does:
// without comments, lines of blanks, line ends, the backslashes that continue a
// line, and the blanks that lead a physical one.
type lineReader struct {
	data   []byte
	asUTF8 bool // characters are those of UTF-8, else bytes
	runes  bool // the file is UTF-8: columns count its characters
	offset int

	line, column int  // of the next character
	pair         bool // the last character was CR LF

	chars  []char // the logical line; valid until the next call of next
	start  char   // its first character
	end    char   // the place behind its last
	begins []char // where its further physical lines begin
}

// next reads the next logical line, and reports whether there was one. A last
// one that consists of a backslash alone is one, and empty: Java makes an empty
// key of it.
func (l *lineReader) next() bool {
	l.chars, l.begins = l.chars[:0], l.begins[:0]
	blanks, continued, escaped := true, false, false
	for {
		c, ok := l.read()
		if !ok {
			return l.atEnd(escaped)
		}
		isEnd := c.r == '\n' || c.r == '\r'
		if blanks {
			if isBlank(c.r) || isEnd && !continued {
				continue
			}
			if continued {
				l.begins = append(l.begins, c)
			}
			blanks, continued = false, false
		}
		if len(l.chars) == 0 && (c.r == '#' || c.r == '!') {
			l.skipLine()
			l.begins, blanks = l.begins[:0], true
			continue
		}
		if !isEnd {
			l.add(c)
			escaped = c.r == '\\' && !escaped
			continue
		}
		if len(l.chars) == 0 {
			l.begins, blanks = l.begins[:0], true
			continue
		}
		if !escaped {
			return true
		}
		// Java looks for the end of the file here before it has seen the LF of
		// CR LF, so only after a single character.
		if l.offset == len(l.data) && !l.pair {
			return l.atEnd(escaped)
		}
		l.drop()
		blanks, continued, escaped = true, true, false
	}
}

// atEnd ends the last line where the file ends, and reports whether it is one.
func (l *lineReader) atEnd(escaped bool) bool {
	if len(l.chars) == 0 {
		return false
	}
	if escaped {
		l.drop()
	}
	return true
}

func (l *lineReader) add(c char) {
	if len(l.chars) == 0 {
		l.start = c
	}
	l.chars = append(l.chars, c)
	l.end = char{line: c.line, column: c.column + 1}
}

// drop takes back the backslash at the end of a line.
func (l *lineReader) drop() {
	last := len(l.chars) - 1
	l.end = l.chars[last]
	l.chars = l.chars[:last]
}

func (l *lineReader) skipLine() {
	for {
		if c, ok := l.read(); !ok || c.r == '\n' || c.r == '\r' {
			return
		}
	}
}

// read returns the next character. Of CR LF it returns one: where Java sees
// both, the second is a line without anything on it.
func (l *lineReader) read() (char, bool) {
	if l.offset == len(l.data) {
		return char{}, false
	}
	c := char{rune(l.data[l.offset]), l.line, l.column}
	size := 1
	if l.asUTF8 && c.r >= utf8.RuneSelf {
		c.r, size = utf8.DecodeRune(l.data[l.offset:])
	}
	l.offset += size
	l.column++
	// The further bytes of a character stand where it stands.
	if l.runes && l.offset < len(l.data) && !utf8.RuneStart(l.data[l.offset]) {
		l.column--
	}
	l.pair = c.r == '\r' && l.offset < len(l.data) && l.data[l.offset] == '\n'
	if l.pair {
		l.offset++
	}
	if c.r == '\n' || c.r == '\r' {
		l.line, l.column = l.line+1, 1
	}
	return c, true
}
