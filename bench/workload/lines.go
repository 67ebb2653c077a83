package workload

import (
	"fmt"
	"math/rand/v2"
)

// fields are the names of a line's fields, and what kind of value each has.
var fields = []struct {
	name string
	kind byte // i: random id, w: a word, n: a small number, t: a time, s: a sentence
}{
	{"event_id", 'i'}, {"type", 'w'}, {"ts", 't'}, {"user", 'w'}, {"status", 'n'},
	{"session", 'i'}, {"page", 'w'}, {"agent", 's'}, {"duration_ms", 'n'}, {"country", 'w'},
	{"message", 's'}, {"trace_id", 'i'}, {"tags", 's'}, {"amount", 'n'}, {"product", 'w'}, {"notes", 's'},
}

// Sizes of the vocabulary, and how unequally frequent its words are.
const (
	vocabularyWords = 4000
	zipfExponent    = 1.1
)

// Lines writes lines from one stream of random numbers.
type lines struct {
	rng   *rand.Rand
	zipf  *rand.Zipf
	words []string
	time  int64
	line  []byte
}

func newLines(rng *rand.Rand) *lines {
	l := &lines{rng: rng, zipf: rand.NewZipf(rng, zipfExponent, 1, vocabularyWords-1), time: 1_700_000_000_000}
	for range vocabularyWords {
		word := make([]byte, 3+rng.IntN(9))
		for i := range word {
			word[i] = 'a' + byte(rng.IntN(26))
		}
		l.words = append(l.words, string(word))
	}
	return l
}

// record returns a key, one of so many, and a value that together have exactly
// so many bytes.
func (l *lines) record(keys, size int) (key, value []byte) {
	key = fmt.Appendf(nil, "k%07d", l.rng.IntN(keys)%10_000_000)
	size -= len(key)
	l.line = append(l.line[:0], '{')
	for i := 0; len(l.line) < size; i++ {
		l.field(fields[i%len(fields)].name, fields[i%len(fields)].kind)
	}
	l.line = l.line[:size]
	l.line[size-1] = '}'
	return key, append([]byte{}, l.line...)
}

func (l *lines) field(name string, kind byte) {
	l.line = fmt.Appendf(l.line, "%q:", name)
	switch kind {
	case 'i':
		l.line = fmt.Appendf(l.line, "\"%016x\"", l.rng.Uint64())
	case 'w':
		l.line = fmt.Appendf(l.line, "%q", l.word())
	case 'n':
		l.line = fmt.Appendf(l.line, "%d", l.zipf.Uint64())
	case 't':
		l.time += l.rng.Int64N(50)
		l.line = fmt.Appendf(l.line, "%d", l.time)
	case 's':
		l.sentence()
	}
	l.line = append(l.line, ',')
}

func (l *lines) sentence() {
	l.line = append(l.line, '"')
	for i := range 4 + l.rng.IntN(8) {
		if i > 0 {
			l.line = append(l.line, ' ')
		}
		l.line = append(l.line, l.word()...)
	}
	l.line = append(l.line, '"')
}

func (l *lines) word() string { return l.words[l.zipf.Uint64()] }
