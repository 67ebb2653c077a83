package main

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

// printable returns s with everything that a terminal might act on, or not
// show, written as in a Go string literal: control characters, escape
// sequences, newlines, changes of writing direction, bytes that are no UTF-8.
// Printing characters, the backslash among them, stay as they are.
func printable(s string) string {
	if strings.IndexFunc(s, isUnprintable) < 0 && utf8.ValidString(s) {
		return s
	}
	var b strings.Builder
	for len(s) > 0 {
		r, size := utf8.DecodeRuneInString(s)
		switch {
		case r == utf8.RuneError && size == 1:
			fmt.Fprintf(&b, `\x%02x`, s[0])
		case isUnprintable(r):
			b.WriteString(strings.Trim(strconv.QuoteRune(r), "'"))
		default:
			b.WriteRune(r)
		}
		s = s[size:]
	}
	return b.String()
}

func isUnprintable(r rune) bool { return !unicode.IsPrint(r) }

// printableJSON returns a JSON document with the characters that encoding/json
// leaves alone, although a terminal might act on them, as \u escapes. It means
// the same to every parser: outside strings JSON is ASCII.
func printableJSON(document []byte) []byte {
	if bytes.IndexFunc(document, func(r rune) bool { return r >= 0x7f }) < 0 {
		return document
	}
	escaped := make([]byte, 0, len(document))
	for _, r := range string(document) {
		switch {
		case r == '\n' || !isUnprintable(r):
			escaped = utf8.AppendRune(escaped, r)
		case r > 0xffff:
			high, low := utf16.EncodeRune(r)
			escaped = fmt.Appendf(escaped, `\u%04x\u%04x`, high, low)
		default:
			escaped = fmt.Appendf(escaped, `\u%04x`, r)
		}
	}
	return escaped
}

// displayWidth returns how many columns of a terminal s takes: none for a
// combining mark, two for an ideograph or an emoji.
func displayWidth(s string) int {
	width := 0
	for _, r := range s {
		width += runeWidth(r)
	}
	return width
}

func runeWidth(r rune) int {
	switch {
	case unicode.In(r, unicode.Mn, unicode.Me):
		return 0
	case r >= 0x1100 && (r <= 0x115f || // Hangul initial consonants
		r >= 0x2e80 && r <= 0xa4cf && r != 0x303f || // CJK, Kana, Yi
		r >= 0xac00 && r <= 0xd7a3 || // Hangul syllables
		r >= 0xf900 && r <= 0xfaff || // CJK compatibility ideographs
		r >= 0xfe30 && r <= 0xfe6f || // CJK compatibility forms
		r >= 0xff00 && r <= 0xff60 || r >= 0xffe0 && r <= 0xffe6 || // full-width forms
		r >= 0x1f300 && r <= 0x1faff || // pictographs
		r >= 0x20000 && r <= 0x3fffd): // CJK extensions
		return 2
	default:
		return 1
	}
}

// maxGroup is how many columns a group's id may take in a table: it may have 32 KiB,
// and one would make all lines as long.
const maxGroup = 64

// shortened returns s with its middle left out where it takes more than maxGroup
// columns.
func shortened(s string) string {
	if len(s) <= maxGroup || displayWidth(s) <= maxGroup {
		return s
	}
	const half = (maxGroup - 1) / 2
	taken, end := 0, len(s)
	for taken < half {
		r, size := utf8.DecodeLastRuneInString(s[:end])
		if taken += runeWidth(r); taken <= half {
			end -= size
		}
	}
	return strings.TrimSuffix(snip(s, maxGroup-half), "~") + "…" + s[end:]
}

// snip returns s cut to width columns, with a ~ in the last one where something
// is missing. A width of zero or less means no limit.
func snip(s string, width int) string {
	if width <= 0 || displayWidth(s) <= width {
		return s
	}
	taken := 0
	for i, r := range s {
		if taken += runeWidth(r); taken > width-1 {
			return s[:i] + "~"
		}
	}
	return s
}
