package javaprops

import (
	"fmt"
	"io"
	"os"
	"slices"
	"sort"
)

// maxSize bounds what is read of a file, in bytes: the largest real ones hold a
// few certificates.
const maxSize = 16 << 20

// A Position is a place in a file. The zero value is no place.
type Position struct {
	File string
	Line int // from 1; lines end with LF, CR or CR LF
	// Column counts characters of the line from 1: of UTF-8 if the whole file
	// is UTF-8, else bytes. A tab is one.
	Column int
}

// String returns file:line:column.
func (p Position) String() string {
	if p.IsZero() {
		return p.File
	}
	return fmt.Sprintf("%s:%d:%d", p.File, p.Line, p.Column)
}

// IsZero reports whether p is no place in a file.
func (p Position) IsZero() bool { return p.Line == 0 }

// A File is what a properties file says. It is read-only.
type File struct {
	Name    string
	Entries []Entry // in order; duplicates are kept
	Lines   int     // physical lines, a last one without its end included

	// BOM: the file begins with a UTF-8 byte order mark, which Java takes for
	// the beginning of the first key.
	BOM bool

	last map[string]int // index of the last entry of each key
}

// An Entry is one key with its value.
type Entry struct {
	Key, Value string
	At         Position // the first character of the key
	// ValueAt is the first character of the value; of an empty one, the place
	// behind the key and its separator.
	ValueAt Position

	// Earlier is where the key stands before, if it does: in Java the last one
	// wins, silently.
	Earlier Position

	// Trailing is how many blanks, tabs and form feeds end the value. Java keeps
	// them.
	Trailing int

	// Dropped are the backslashes that Java drops although nobody will have
	// meant that: those before a character that needs none.
	Dropped []Backslash
	// Controls are the backslashes that, with a letter behind them, became a tab,
	// line feed, carriage return or form feed.
	Controls []Backslash

	// Continued is where each further physical line of the entry begins, its
	// leading blanks left out. A comment sign there is part of the entry.
	Continued []Position

	// Unjoined is the backslash that was meant to continue the line, and does not:
	// blanks stand behind it.
	Unjoined Position

	// HighAt is the first byte above 0x7F, if there is one, and Meant what the
	// value is in UTF-8, if that is another: Kafka reads ISO-8859-1.
	HighAt Position
	Meant  string

	spots []spot
	name  string
}

// A Backslash is one that is not in the key or value that Java made of it.
type Backslash struct {
	At    Position
	Char  rune // what stands behind it in the file
	InKey bool
	Index int // byte of the key or value that it stood before
}

// A spot says where a run of a value's bytes stands: one character a byte, one
// column a character; or one character of several bytes.
type spot struct {
	index, line, column int
	wide                bool
}

// ValuePosition returns where the character stands that byte i of the value
// belongs to; for i = len(Value), the place behind the last one.
func (e *Entry) ValuePosition(i int) Position {
	if len(e.spots) == 0 {
		return e.ValueAt
	}
	n := sort.Search(len(e.spots), func(n int) bool { return e.spots[n].index > i })
	s := e.spots[max(n-1, 0)]
	column := s.column + i - s.index
	if s.wide {
		column = s.column
		if i >= len(e.Value) {
			column++
		}
	}
	return Position{e.name, s.line, column}
}

// Get returns the entry that counts for a key: its last.
func (f *File) Get(key string) (Entry, bool) {
	i, ok := f.last[key]
	if !ok {
		return Entry{}, false
	}
	return f.Entries[i], true
}

// Map returns the values by key. As in Java the last one of a key wins.
func (f *File) Map() map[string]string {
	m := make(map[string]string, len(f.last))
	for key, i := range f.last {
		m[key] = f.Entries[i].Value
	}
	return m
}

// Last returns the entries that count, in order: of each key the last.
func (f *File) Last() []Entry {
	entries := make([]Entry, 0, len(f.last))
	for i, e := range f.Entries {
		if f.last[e.Key] == i {
			entries = append(entries, e)
		}
	}
	return entries
}

// New returns a file of entries that were not read from bytes, such as those of
// a command line. Their keys are in order; positions have no line.
func New(name string, values map[string]string) *File {
	keys := make([]string, 0, len(values))
	for key := range values {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	f := &File{Name: name, last: make(map[string]int, len(keys))}
	for _, key := range keys {
		f.add(Entry{Key: key, Value: values[key], At: Position{File: name}, ValueAt: Position{File: name}, name: name})
	}
	return f
}

// With returns a file that has the entries of f, without those that drop wants
// gone, and behind them those of over, which win.
func (f *File) With(over *File, drop func(key string) bool) *File {
	all := &File{Name: f.Name, Lines: f.Lines, BOM: f.BOM, last: map[string]int{}}
	for _, e := range f.Entries {
		if !drop(e.Key) {
			all.put(e)
		}
	}
	for _, e := range over.Entries {
		all.put(e)
	}
	return all
}

// put adds an entry as it is.
func (f *File) put(e Entry) {
	f.last[e.Key] = len(f.Entries)
	f.Entries = append(f.Entries, e)
}

func (f *File) add(e Entry) {
	if i, ok := f.last[e.Key]; ok {
		e.Earlier = f.Entries[i].At
	}
	f.put(e)
}

// Read parses the file at path, see [Parse]. Positions name the path as given.
func Read(path string) (*File, error) {
	data, err := readBounded(path)
	if err != nil {
		return nil, err
	}
	return Parse(path, data)
}

// readBounded returns what is in a file, which may be a pipe.
func readBounded(path string) ([]byte, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	data, err := io.ReadAll(io.LimitReader(file, maxSize+1))
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", path, err)
	}
	if len(data) > maxSize {
		return nil, fmt.Errorf("read %s: larger than %d bytes", path, maxSize)
	}
	return data, nil
}
