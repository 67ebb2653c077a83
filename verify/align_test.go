package verify

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/leanovate/gopter"
	"github.com/leanovate/gopter/gen"
	"github.com/leanovate/gopter/prop"

	"apograph/ledger"
)

// A history is a source partition, its book, and what a target holds, made of
// hashes alone: no cluster and no file.
type history struct {
	source []uint64 // content by source offset
	units  int      // records in an entry, at most
	target []item   // in order of offset
	end    int64    // of the target's log; 0: behind the last item

	gone     map[int]bool // source offsets that compaction has emptied since the copy
	blind    bool         // the source is not read
	compacts bool         // the target topic compacts
	follows  int          // how many source records the books lack

	differences int    // of the last comparison
	pacer       *pacer // nil: everything is at hand from the beginning
}

func (h *history) stream(side int, items []item, end int64) *stream {
	if h.pacer != nil {
		return h.pacer.stream(side, items, end)
	}
	return fixedStream(items, end)
}

// itemsOf returns a log that holds these contents from offset 0 on.
func itemsOf(hashes []uint64) []item {
	var items []item
	for i, h := range hashes {
		items = append(items, item{offset: int64(i), hash: h, bare: h})
	}
	return items
}

// fixedStream returns a stream of items that is read up to an end.
func fixedStream(items []item, end int64) *stream {
	chunks := make(chan chunk, len(items)/100+2)
	for len(items) > 0 {
		n := min(len(items), 100)
		chunks <- chunk{items: items[:n:n], next: items[n-1].offset + 1}
		items = items[n:]
	}
	chunks <- chunk{next: end}
	close(chunks)
	return &stream{chunks: chunks}
}

// A pacer tells how far one side of a comparison runs ahead of the other.
type pacer struct {
	at    [2]atomic.Int64
	ahead atomic.Int64
}

// stream returns a stream of items that are handed over one chunk at a time.
func (p *pacer) stream(side int, items []item, end int64) *stream {
	chunks := make(chan chunk)
	go func() {
		defer close(chunks)
		for len(items) > 0 {
			n := min(len(items), 100)
			chunks <- chunk{items: items[:n:n], next: items[n-1].offset + 1}
			items = items[n:]
			ahead := p.at[side].Add(int64(n)) - p.at[1-side].Load()
			for old := p.ahead.Load(); ahead > old && !p.ahead.CompareAndSwap(old, ahead); old = p.ahead.Load() {
			}
		}
		chunks <- chunk{next: end}
	}()
	return &stream{chunks: chunks}
}

// compare runs the comparison and returns its counts and findings, and how many
// differences the alignment has: slots and items that do not belong together.
func (h history) compare(t testing.TB) (Counts, findings, int) {
	t.Helper()
	b := h.books()
	counts, f := &Counts{Copied: b.end.Source}, &findings{topic: "t", limit: 1 << 20}
	c := h.comparePart(t, b, b.whole(), false)
	for _, own := range c.own() {
		counts.add(own.counts)
		f.merge(own.findings)
	}
	if n := counts.Equal + counts.Missing + counts.Changed + counts.Reordered + counts.NotVerified; n != counts.Copied {
		t.Fatalf("%+v do not add up", *counts)
	}
	return *counts, *f, h.differences
}

func (h *history) books() *books {
	booked := int64(len(h.source) - h.follows)
	return &books{end: ledger.Position{Source: booked, Target: booked}}
}

// comparePart compares a part of the history, of which it reads no more than the
// part says.
func (h *history) comparePart(t testing.TB, b *books, p part, told bool) *judge {
	t.Helper()
	f := &findings{topic: "t", limit: 1 << 20}
	found := newTallies(p, f)
	view := &sourceView{found: &found, end: int64(len(h.source)), compacts: len(h.gone) > 0, cut: !p.last}
	end := h.end
	if end == 0 && len(h.target) > 0 {
		end = h.target[len(h.target)-1].offset + 1
	}
	sourceEnd := int64(len(h.source))
	if !p.last {
		sourceEnd, end = p.trail.source, min(end, p.reach(b.end.Target))
	}
	if !h.blind {
		left := slices.DeleteFunc(itemsOf(h.source), func(i item) bool {
			return h.gone[int(i.offset)] || i.offset < p.lead.source || i.offset >= sourceEnd
		})
		view.log = h.stream(0, left, sourceEnd)
	}
	items := slices.DeleteFunc(slices.Clone(h.target), func(i item) bool { return i.offset < p.lead.target || i.offset >= end })
	entries := h.entries()
	c := &comparer{
		expected: &expectation{books: b, part: p, source: view, pull: func() (ledger.Entry, error, bool) {
			if len(entries) == 0 {
				return ledger.Entry{}, nil, false
			}
			e := entries[0]
			entries = entries[1:]
			return e, nil, true
		}},
		target: &targetView{log: h.stream(1, items, end), end: end, compacts: h.compacts},
		judge:  &judge{tally: found.in, tallies: found},
		tail:   tail{follows: p.last},
	}
	if err := c.run(); err != nil {
		t.Fatal(err)
	}
	for _, s := range []*stream{view.log, c.target.log} { // so that whoever feeds them ends
		for h.pacer != nil && s != nil && s.more() {
		}
	}
	h.differences = len(c.judge.open.losses)
	for i := range c.judge.open.spares {
		if !c.judge.open.spares[i].paired {
			h.differences++
		}
	}
	c.judge.finish(told)
	if err := c.check(); err != nil {
		t.Fatal(err)
	}
	return c.judge
}

func (h history) entries() []ledger.Entry {
	var entries []ledger.Entry
	booked := h.source[:len(h.source)-h.follows]
	for start := 0; start < len(booked); start += h.units {
		end := min(start+h.units, len(booked))
		r := ledger.Range{Start: int64(start), End: int64(end)}
		e := ledger.Entry{Tile: ledger.Copied, Source: r, Target: r}
		for _, hash := range booked[start:end] {
			e.Digest = e.Digest.Add(hash)
		}
		entries = append(entries, e)
	}
	return entries
}

// naiveDistance returns the least number of differences between two sequences
// (Wagner and Fischer, whole table).
func naiveDistance(a, b []uint64) int {
	table := make([][]int, len(a)+1)
	for i := range table {
		table[i] = make([]int, len(b)+1)
		table[i][0] = i
	}
	for j := range b {
		table[0][j+1] = j + 1
	}
	for i := range a {
		for j := range b {
			best := table[i][j]
			if a[i] != b[j] {
				best++
			}
			table[i+1][j+1] = min(best, table[i][j+1]+1, table[i+1][j]+1)
		}
	}
	return table[len(a)][len(b)]
}

func hashesOf(items []item) []uint64 {
	var hashes []uint64
	for _, i := range items {
		hashes = append(hashes, i.hash)
	}
	return hashes
}

// spoil makes n random changes of a sequence: drop, double, insert, change,
// swap.
func spoil(rng *rand.Rand, hashes []uint64, n int) []uint64 {
	out := append([]uint64{}, hashes...)
	for range n {
		if len(out) < 2 {
			return out
		}
		at := rng.IntN(len(out) - 1)
		switch rng.IntN(5) {
		case 0:
			out = append(out[:at], out[at+1:]...)
		case 1:
			out = append(out[:at+1], out[at:]...)
		case 2:
			out = append(out[:at], append([]uint64{rng.Uint64() | 1<<63}, out[at:]...)...)
		case 3:
			out[at] = rng.Uint64() | 1<<63
		default:
			out[at], out[at+1] = out[at+1], out[at]
		}
	}
	return out
}

// TestAlignmentAgainstNaiveDiff compares the number of differences that the
// comparison finds with the least possible one, for sequences with a few
// changes anywhere, of records that differ and of records among which many are
// alike.
func TestAlignmentAgainstNaiveDiff(t *testing.T) {
	parameters := gopter.DefaultTestParametersWithSeed(20261129)
	parameters.MinSuccessfulTests = 1500
	t.Logf("seed %d", parameters.Seed())
	properties := gopter.NewProperties(parameters)
	properties.Property("as few differences as possible", prop.ForAll(
		func(seed uint64, records, kinds, changes, units, follows int) (string, error) {
			rng := rand.New(rand.NewPCG(seed, 2))
			h := history{units: units, follows: min(follows, records)}
			for range records {
				h.source = append(h.source, 1+rng.Uint64N(uint64(kinds)))
			}
			booked := h.source[:records-h.follows]
			h.target = itemsOf(spoil(rng, booked, changes))
			counts, found, differences := h.compare(t)
			naive := naiveDistance(booked, hashesOf(h.target))
			switch {
			case differences != naive:
				return fmt.Sprintf("%d differences, %d would do", differences, naive), nil
			case found.sawFault != (naive > 0):
				return fmt.Sprintf("%d differences, fault %t", naive, found.sawFault), nil
			case naive == 0 && counts.Equal != counts.Copied:
				return fmt.Sprintf("nothing differs, and %+v", counts), nil
			}
			return "", nil
		},
		gen.UInt64(), gen.IntRange(0, 300), gen.OneConstOf(1_000_000, 40, 5), gen.IntRange(0, 25), gen.IntRange(1, 60), gen.Const(0),
	))
	properties.TestingRun(t)
}

func text(f findings) string {
	var b strings.Builder
	for _, found := range order(append(f.faults, f.others...)) {
		fmt.Fprintf(&b, "%s %v %v; ", found.Kind, found.Source, found.Target)
	}
	return b.String()
}

// TestBlindAlignment compares with digests alone, as when the source is gone:
// what nothing was done to is equal, and a fault is found within the entries
// that were damaged, or at the very record where the digest can tell.
func TestBlindAlignment(t *testing.T) {
	parameters := gopter.DefaultTestParametersWithSeed(20261130)
	parameters.MinSuccessfulTests = 1500
	t.Logf("seed %d", parameters.Seed())
	properties := gopter.NewProperties(parameters)
	properties.Property("damage is found where it is", prop.ForAll(
		func(seed uint64, records, damage, units int) (string, error) {
			rng := rand.New(rand.NewPCG(seed, 3))
			h := history{units: units, blind: true}
			for range records {
				h.source = append(h.source, rng.Uint64())
			}
			at := rng.IntN(records)
			want, changed := spoilAt(h.source, at, damage)
			h.target = itemsOf(changed)
			counts, found, _ := h.compare(t)
			if got := text(found); !strings.HasPrefix(got, want) || (want == "") != (got == "") {
				return fmt.Sprintf("at %d: found %q, want %q", at, got, want), nil
			}
			entry := min((at/units+1)*units, records) - at/units*units
			if hurt := counts.Copied - counts.Equal; damage != 0 && hurt > int64(entry)+1 {
				return fmt.Sprintf("%d records are not equal, an entry has %d", hurt, entry), nil
			}
			return "", nil
		},
		gen.UInt64(), gen.IntRange(2, 300), gen.IntRange(0, 5), gen.IntRange(1, 60),
	))
	properties.TestingRun(t)
}

// spoilAt damages a sequence in one place, and returns how the findings must
// begin.
func spoilAt(hashes []uint64, at, damage int) (want string, changed []uint64) {
	out := append([]uint64{}, hashes...)
	switch {
	case damage == 1 && at < len(out)-1:
		return "missing", append(out[:at], out[at+1:]...)
	case damage == 2 && at < len(out)-1:
		return fmt.Sprintf("duplicate %d %d; ", at, at+1), append(out[:at+1], hashes[at:]...)
	case damage == 3 && at < len(out)-1:
		return fmt.Sprintf("extra [%d, %d) %d; ", at, at, at), append(append(out[:at], 42), hashes[at:]...)
	case damage == 4:
		out[at]++
		return "changed", out
	case damage == 5 && at < len(out)-1:
		out[at], out[at+1] = out[at+1], out[at]
		return fmt.Sprintf("reordered [%d, %d) [%d, %d); ", at, at+2, at, at+2), out
	default:
		return "", out
	}
}

// unlike returns n records of which no two are alike.
func unlike(seed uint64, n int) []uint64 {
	rng := rand.New(rand.NewPCG(seed, 4))
	hashes := make([]uint64, n)
	for i := range hashes {
		hashes[i] = rng.Uint64() | 1
	}
	return hashes
}

// TestLargeDamage: long runs of records missing, too many, changed or moved, up
// to what a window holds, and a target that has nothing to do with the source.
func TestLargeDamage(t *testing.T) {
	const n = 100_000
	source, strange := unlike(1, n), unlike(2, n)
	cut := func(parts ...[]uint64) []item { return itemsOf(slices.Concat(parts...)) }
	for _, tt := range []struct {
		name   string
		target []item
		want   Counts
	}{
		{"nothing", cut(source), Counts{Equal: n}},
		{"5000 missing", cut(source[:30_000], source[35_000:]), Counts{Equal: n - 5000, Missing: 5000}},
		{"20000 missing", cut(source[:30_000], source[50_000:]), Counts{Equal: n - 20_000, Missing: 20_000}},
		{"5000 too many", cut(source[:30_000], strange[:5000], source[30_000:]), Counts{Equal: n, Extra: 5000}},
		{"5000 changed", cut(source[:30_000], strange[:5000], source[35_000:]), Counts{Equal: n - 5000, Changed: 5000}},
		{"300 twice", cut(source[:30_000], source[29_700:]), Counts{Equal: n, Duplicates: 300}},
		{"two runs exchanged", cut(source[:30_000], source[30_500:31_000], source[30_000:30_500], source[31_000:]), Counts{Equal: n - 500, Reordered: 500}},
		{"two far ones exchanged", cut(source[:10], source[90_000:90_001], source[11:90_000], source[10:11], source[90_001:]), Counts{Equal: n - 2, Reordered: 2}},
		{"half of it", cut(source[:n/2]), Counts{Equal: n / 2, Missing: n / 2}},
		{"none of it", nil, Counts{Missing: n}},
		{"another one", cut(strange), Counts{Changed: n}},
		{"another one behind it", cut(source, strange[:1000]), Counts{Equal: n, Extra: 1000}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			started := time.Now()
			h := history{source: source, units: 64, target: tt.target}
			counts, _, _ := h.compare(t)
			tt.want.Copied = n
			if counts != tt.want {
				t.Errorf("counts are %+v, want %+v", counts, tt.want)
			}
			t.Logf("%v", time.Since(started))
			h.blind = true
			counts, found, _ := h.compare(t)
			if faults := tt.name != "nothing"; found.sawFault != faults || counts.Equal > tt.want.Equal || counts.Equal < tt.want.Equal-4*64 {
				t.Errorf("by digests alone: fault %t, %d equal of %d", found.sawFault, counts.Equal, tt.want.Equal)
			}
			t.Logf("with digests alone %v", time.Since(started))
		})
	}
}

// TestCompactedOnBothSides takes records away on either side, as compaction
// does, and damages at most one that is left on both: what is gone is not
// verified, the damage is found where it is, and everything else is equal.
func TestCompactedOnBothSides(t *testing.T) {
	parameters := gopter.DefaultTestParametersWithSeed(20261201)
	parameters.MinSuccessfulTests = 1500
	t.Logf("seed %d", parameters.Seed())
	properties := gopter.NewProperties(parameters)
	properties.Property("only damage is a fault", prop.ForAll(
		func(seed uint64, records, percent, damage, units int) (string, error) {
			rng := rand.New(rand.NewPCG(seed, 5))
			h := history{source: unlike(seed, records), units: units, compacts: true, gone: map[int]bool{}}
			var left []int // on both sides
			for i := range records {
				h.gone[i] = rng.IntN(100) < percent
				if i < records-1 && rng.IntN(100) < percent { // the last record keeps the log end
					continue
				}
				h.target = append(h.target, item{offset: int64(i), hash: h.source[i], bare: h.source[i]})
				if !h.gone[i] {
					left = append(left, i)
				}
			}
			want := ""
			if damage > 0 && len(left) > 0 {
				want = h.damage(left[rng.IntN(len(left))], damage)
			}
			counts, found, _ := h.compare(t)
			found.others = nil
			equal := int64(len(left))
			if strings.HasPrefix(want, "changed") {
				equal--
			}
			switch {
			case text(found) != want:
				return fmt.Sprintf("faults %q, want %q", text(found), want), nil
			case counts.Equal != equal:
				return fmt.Sprintf("%d equal, want %d", counts.Equal, equal), nil
			}
			return "", nil
		},
		gen.UInt64(), gen.IntRange(1, 300), gen.IntRange(0, 90), gen.IntRange(0, 2), gen.IntRange(1, 60),
	))
	properties.TestingRun(t)
}

// damage damages the target's record at an offset, and returns the finding.
func (h *history) damage(offset, kind int) string {
	at := slices.IndexFunc(h.target, func(i item) bool { return i.offset == int64(offset) })
	if kind == 1 {
		h.target[at].hash++
		return fmt.Sprintf("changed %d %d; ", offset, offset)
	}
	extra := item{offset: int64(len(h.source)), hash: 42, kind: otherControl}
	h.target = append(h.target, extra)
	return fmt.Sprintf("extra [%d, %d) %d; ", len(h.source), len(h.source), len(h.source))
}

// TestCopyBesideChange: of two copies in a row the first is the copy, also where
// another difference is near.
func TestCopyBesideChange(t *testing.T) {
	source := unlike(9, 400)
	target := slices.Concat(source[:6], source[5:])
	target[8]++
	for _, units := range []int{1, 7, 400} {
		h := history{source: source, units: units, target: itemsOf(target)}
		_, found, _ := h.compare(t)
		if got, want := text(found), "duplicate 5 6; changed 7 7; "; got != want {
			t.Errorf("entries of %d: found %q, want %q", units, got, want)
		}
	}
}

// TestNobodyRunsAhead: however the two sides differ, no more is held of one of
// them than a window and some chunks.
func TestNobodyRunsAhead(t *testing.T) {
	const n = 200_000
	source, strange := unlike(1, n), unlike(2, n)
	for _, target := range [][]uint64{source, strange, source[n/2:], slices.Concat(strange[:n/4], source)} {
		for _, blind := range []bool{false, true} {
			h := history{source: source, units: 64, target: itemsOf(target), blind: blind, pacer: &pacer{}}
			h.compare(t)
			if ahead := h.pacer.ahead.Load(); !blind && ahead > 3*lastWindow && len(target) == n {
				t.Errorf("one side was %d records ahead", ahead)
			}
		}
	}
}
