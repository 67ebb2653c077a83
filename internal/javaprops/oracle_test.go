package javaprops_test

import (
	"encoding/hex"
	"fmt"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"unicode/utf16"
	"unicode/utf8"

	"apograph/internal/javaprops"
)

// oracle parses bytes as the documentation of Properties.load tells it, with
// strings and expressions, without places; false if the file is refused. Java's
// strings are kept: a character is a unit of UTF-16.
func oracle(data []byte) (entries [][2]string, ok bool) {
	units := make([]rune, len(data))
	for i, b := range data {
		units[i] = rune(b)
	}
	lineEnd := regexp.MustCompile("\r\n|\r|\n")
	ends := lineEnd.FindAllString(string(units), -1)
	natural := lineEnd.Split(string(units), -1)
	for i := 0; i < len(natural); i++ {
		line := strings.TrimLeft(natural[i], " \t\f")
		if line == "" || line[0] == '#' || line[0] == '!' {
			continue
		}
		for continues(line) {
			line = line[:len(line)-1]
			if line == "" || i+1 == len(natural) {
				break
			}
			i++
			line += strings.TrimLeft(natural[i], " \t\f")
		}
		// A line of a backslash alone has not begun: the next one may be a comment.
		// It is an entry only where the file ends, at once or after a line end of
		// one character.
		atEnd := i+1 == len(natural) || i+2 == len(natural) && natural[i+1] == "" && ends[i] != "\r\n"
		if line == "" && !atEnd {
			continue
		}
		key, value := cutEntry(line)
		k, fine := unescape(key)
		v, fineToo := unescape(value)
		if !fine || !fineToo {
			return nil, false
		}
		entries = append(entries, [2]string{k, v})
	}
	return entries, true
}

// continues reports whether a line ends with an odd number of backslashes.
func continues(line string) bool {
	return (len(line)-len(strings.TrimRight(line, `\`)))%2 == 1
}

// cutEntry splits at the first separator or blank that no backslash escapes.
func cutEntry(line string) (key, value string) {
	key = regexp.MustCompile(`^(?s:\\.|[^\\=: \t\f])*`).FindString(line)
	separator := regexp.MustCompile(`^[ \t\f]*[=:]?[ \t\f]*`).FindString(line[len(key):])
	return key, line[len(key)+len(separator):]
}

func unescape(s string) (string, bool) {
	if regexp.MustCompile(`^(?s:[^\\]|\\[^u]|\\u[0-9a-fA-F]{4})*$`).FindString(s) != s {
		return "", false
	}
	var units []uint16
	for _, token := range regexp.MustCompile(`(?s)\\u....|\\.|.`).FindAllString(s, -1) {
		switch {
		case len(token) == 6:
			n, _ := strconv.ParseUint(token[2:], 16, 16)
			units = append(units, uint16(n))
		case token[0] == '\\' && len(token) > 1:
			units = append(units, utf16.Encode([]rune(strings.NewReplacer("t", "\t", "n", "\n", "r", "\r", "f", "\f").Replace(token[1:])))...)
		default:
			units = append(units, utf16.Encode([]rune(token))...)
		}
	}
	return string(utf16.Decode(units)), true
}

// TestOracle holds the oracle to Java as well.
func TestOracle(t *testing.T) {
	golden, err := os.ReadFile(goldenFile)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(string(golden), "\n")
	for i := 0; i+1 < len(lines); i += 2 {
		if lines[i][0] == 'U' {
			continue
		}
		data, err := hex.DecodeString(lines[i][1:])
		if err != nil {
			t.Fatal(err)
		}
		answer := "error"
		if entries, ok := oracle(data); ok {
			all := make([]string, len(entries))
			for n, e := range entries {
				all[n] = fmt.Sprintf("%x=%x", e[0], e[1])
			}
			answer = strings.Join(all, " ")
		}
		if answer != lines[i+1] {
			t.Errorf("line %d: %q\n got %s\nwant %s", i+1, data, answer, lines[i+1])
		}
	}
}

func FuzzParse(f *testing.F) {
	for _, seed := range []string{
		"", "clusters = A, B\nA->B.enabled = true\n", "a=b\\\n  c\\\r\n\td", "\\", "\\\n", "\\\r\n", "\\\n#c\nk", "#c", "! x\r=v", "k\\:\\=\\ =v ", "k=\\u00e4\\uD83D\\uDE00\\uD83D", "k=\\u12",
		"topics=app\\.orders, \\\n # not a comment\n", "k=tr\xc3\xa4ffic \xe4", "\xef\xbb\xbfclusters=A", "a=1\na=2\n", "k = v\\ \nnext",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		want, ok := oracle(data)
		got, err := javaprops.Parse("f", data)
		if ok != (err == nil) {
			t.Fatalf("Parse(%q): %v, want an entry list: %v", data, err, ok)
		}
		if !ok {
			return
		}
		if len(got.Entries) != len(want) {
			t.Fatalf("Parse(%q): %d entries, want %q", data, len(got.Entries), want)
		}
		for i := range want {
			e := &got.Entries[i]
			if e.Key != want[i][0] || e.Value != want[i][1] {
				t.Errorf("Parse(%q): entry %d = %q = %q, want %q", data, i, e.Key, e.Value, want[i])
			}
			checkPlaces(t, data, e)
		}
	})
}

// checkPlaces: where a character of a value is said to stand, there stands that
// character, or the backslash of its escape.
func checkPlaces(t *testing.T, data []byte, e *javaprops.Entry) {
	t.Helper()
	lines := regexp.MustCompile("\r\n|\r|\n").Split(string(data), -1)
	for i, r := range e.Value {
		at := e.ValuePosition(i)
		if at.Line < 1 || at.Line > len(lines) || at.Column < 1 {
			t.Fatalf("%q: byte %d of %q is at %v", data, i, e.Value, at)
		}
		rest := lines[at.Line-1]
		if utf8.Valid(data) {
			for range at.Column - 1 {
				_, size := utf8.DecodeRuneInString(rest)
				rest = rest[size:]
			}
		} else {
			rest = rest[at.Column-1:]
		}
		if rest == "" || rest[0] != '\\' && !stands(rest, r) {
			t.Errorf("%q: %q of %q is not at %v", data, r, e.Value, at)
		}
	}
}

// stands reports whether a character of ISO-8859-1 is one of the bytes of the
// first character of rest.
func stands(rest string, r rune) bool {
	_, size := utf8.DecodeRuneInString(rest)
	for _, b := range []byte(rest[:size]) {
		if rune(b) == r {
			return true
		}
	}
	return false
}
