package translate

import (
	"testing"

	"apograph/ledger"
)

// A countingBook is a book of entries of ten offsets each, and how it was read.
type countingBook struct {
	finds, reads, entries int
}

// pageOfTest is how many entries a page has.
const pageOfTest = 100

func (b *countingBook) entryAt(offset int64) ledger.Entry {
	start := offset / 10 * 10
	return ledger.Entry{Source: ledger.Range{Start: start, End: start + 10}}
}

func (b *countingBook) cursor() *cursor {
	return &cursor{line: lineage{{}}, book: book{
		generation: lineage.bySource,
		find: func(_ *ledger.Ledger, _ ledger.PairID, offset int64) (ledger.Entry, error) {
			b.finds++
			return b.entryAt(offset), nil
		},
		read: func(_ *ledger.Ledger, _ ledger.PairID, from int64, into []ledger.Entry) ([]ledger.Entry, error) {
			b.reads++
			into = into[:0]
			for ; len(into) == 0 || from%(10*pageOfTest) != 0; from += 10 {
				b.entries++
				into = append(into, b.entryAt(from))
			}
			return into, nil
		},
		span: func(e *ledger.Entry) ledger.Range { return e.Source },
	}}
}

// TestCursorReadsLittle holds what makes batches fast: neighbours are read
// along, what lies far apart is searched for, and nothing is read twice.
func TestCursorReadsLittle(t *testing.T) {
	const asked = 30_000
	tests := []struct {
		name           string
		step           int64
		finds, entries int // at most
	}{
		{"every offset", 1, 2, asked / 10 * 2},
		{"every entry", 10, 2, asked * 2},
		{"one in seven entries", 70, 2, asked * 7 * 2},
		{"far apart", 100_000, asked, 0},
		{"the same again", 0, 1, 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var book countingBook
			c := book.cursor()
			for i := range int64(asked) {
				offset := i * tt.step
				e, err := c.entry(offset)
				if err != nil || !e.Source.Contains(offset) {
					t.Fatalf("entry(%d) = %v, %v", offset, e.Source, err)
				}
			}
			if book.finds > tt.finds || book.entries > tt.entries || book.reads > tt.entries/pageOfTest+10 {
				t.Errorf("%d searches, %d entries in %d reads, want at most %d and %d",
					book.finds, book.entries, book.reads, tt.finds, tt.entries)
			}
		})
	}
}

// TestCursorStaysWhereItJumped: an entry that was searched for is at hand, also
// behind a block of many.
func TestCursorStaysWhereItJumped(t *testing.T) {
	var book countingBook
	c := book.cursor()
	for _, offset := range []int64{0, 10, 20, 30, 40, 50, 900_000, 900_001, 900_002, 900_009} {
		if _, err := c.entry(offset); err != nil {
			t.Fatal(err)
		}
	}
	if book.finds != 3 {
		t.Errorf("%d searches, want 3: for the first two entries, and for the last", book.finds)
	}
}

func TestNewestGenerationOrTheOpenOne(t *testing.T) {
	closed := &ledger.Closing{}
	tests := []struct {
		name  string
		pairs []ledger.Pair
		want  ledger.PairID
	}{
		{"the newest of closed ones", []ledger.Pair{{ID: 2, Closed: closed}, {ID: 3, Closed: closed}, {ID: 1, Closed: closed}}, 3},
		{"the open one behind", []ledger.Pair{{ID: 2, Closed: closed}, {ID: 3}}, 3},
		{"the open one, although a closed one is newer", []ledger.Pair{{ID: 2, Closed: closed}, {ID: 1}, {ID: 3, Closed: closed}}, 1},
		{"whatever the order", []ledger.Pair{{ID: 1}, {ID: 3, Closed: closed}, {ID: 2, Closed: closed}}, 1},
	}
	for _, tt := range tests {
		index := make(map[partition]ledger.Pair)
		for _, pair := range tt.pairs {
			keepNewer(index, partition{"orders", 0}, pair)
		}
		if got := index[partition{"orders", 0}].ID; got != tt.want {
			t.Errorf("%s: pair %d, want %d", tt.name, got, tt.want)
		}
	}
}
