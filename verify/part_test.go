package verify

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/leanovate/gopter"
	"github.com/leanovate/gopter/gen"
	"github.com/leanovate/gopter/prop"

	"apograph/ledger"
)

// partsOf cuts the books of a history at entries, and surrounds each part with
// entries of at least so many records.
func (h *history) partsOf(rng *rand.Rand, parts, around int) []part {
	booked := len(h.source) - h.follows
	cuts := []int{0, booked}
	for range parts - 1 {
		cuts = append(cuts, rng.IntN(booked/h.units+1)*h.units)
	}
	slices.Sort(cuts)
	cuts = slices.Compact(cuts)
	at := func(offset int) mark { return mark{int64(offset), int64(offset)} }
	var out []part
	for i := range cuts[1:] {
		from, to := cuts[i], cuts[i+1]
		lead := max(from-around, 0) / h.units * h.units
		trail := min((to+around+h.units-1)/h.units*h.units, booked)
		out = append(out, part{from: at(from), to: at(to), lead: at(lead), trail: at(trail), last: to == booked})
	}
	return out
}

// TestPartsAreTheWhole: whatever is wrong with a copy and wherever it is cut, the
// parts together count and find what the whole does, nothing twice and nothing
// not at all. Only that records stand elsewhere than booked is said by each part
// behind the place, unless one before has said so.
func TestPartsAreTheWhole(t *testing.T) {
	parameters := gopter.DefaultTestParametersWithSeed(20261202)
	parameters.MinSuccessfulTests = 1000
	t.Logf("seed %d", parameters.Seed())
	properties := gopter.NewProperties(parameters)
	properties.Property("parts add up", prop.ForAll(
		func(seed uint64, records, parts, changes, units, follows int, chained bool) (string, error) {
			rng := rand.New(rand.NewPCG(seed, 6))
			h := history{units: units, source: unlike(seed, records+follows), follows: follows}
			h.target = itemsOf(spoilApart(rng, h.source[:records], changes))
			want, whole, _ := h.compare(t)
			counts, found := Counts{Copied: want.Copied}, &findings{topic: "t", limit: 1 << 20}
			b, said := h.books(), map[int64]bool{}
			for _, p := range h.partsOf(rng, parts, 100) {
				j := h.comparePart(t, b, p, said[p.from.source])
				for _, own := range j.own() {
					counts.add(own.counts)
					found.merge(own.findings)
				}
				if chained {
					said[p.to.source] = j.moves()
				}
			}
			moved := slices.DeleteFunc(slices.Clone(found.faults), func(f Finding) bool { return !strings.Contains(f.Detail, "in a part that was not read now") })
			found.faults = slices.DeleteFunc(found.faults, func(f Finding) bool { return strings.Contains(f.Detail, "in a part that was not read now") })
			switch {
			case counts != want:
				return fmt.Sprintf("counts %+v, of the whole %+v", counts, want), nil
			case text(*found) != text(whole):
				return fmt.Sprintf("findings %s\nof the whole %s", text(*found), text(whole)), nil
			case chained && len(moved) > 0:
				return fmt.Sprintf("movement told again: %v", moved), nil
			}
			return "", nil
		},
		gen.UInt64(), gen.IntRange(1, 800), gen.IntRange(1, 6), gen.IntRange(0, 4), gen.IntRange(1, 40), gen.IntRange(0, 3), gen.Bool(),
	))
	properties.TestingRun(t)
}

// spoilApart makes changes in places that are far from each other and from the
// end, so that there is no doubt which is which. Neighbours are only exchanged if
// that is the only change: where records stand elsewhere than booked as well, to
// move the one record explains as much as to move the other.
func spoilApart(rng *rand.Rand, hashes []uint64, n int) []uint64 {
	out, kinds := slices.Clone(hashes), 4
	if n == 1 {
		kinds = 5
	}
	for at := len(out) - 30; at >= 0 && n > 0; at -= 60 + rng.IntN(100) {
		n--
		switch rng.IntN(kinds) {
		case 0:
			out = slices.Delete(out, at, at+1)
		case 1:
			out = slices.Insert(out, at+1, out[at])
		case 2:
			out = slices.Insert(out, at, rng.Uint64()|1<<63)
		case 3:
			out[at]++
		default:
			out[at], out[at+1] = out[at+1], out[at]
		}
	}
	return out
}

// TestMovedBefore: a part alone, with what has moved its records far before it,
// says that they stand elsewhere.
func TestMovedBefore(t *testing.T) {
	source := unlike(3, 2000)
	for _, tt := range []struct {
		name   string
		target []uint64
		want   string
	}{
		{"lower", slices.Concat(source[:5], source[8:]), "missing [1000, 1000) [1000, 1000); "},
		{"higher", slices.Concat(source[:5], unlike(4, 2), source[5:]), "extra [1000, 1000) [1000, 1000); "},
		{"not at all", source, ""},
	} {
		for _, blind := range []bool{false, true} {
			h := history{source: source, units: 20, target: itemsOf(tt.target), blind: blind}
			at := func(n int64) mark { return mark{n, n} }
			c := h.comparePart(t, h.books(), part{from: at(1000), to: at(1100), lead: at(900), trail: at(1200)}, false)
			if got := text(*c.in.findings); got != tt.want || c.in.counts.Equal != 100 {
				t.Errorf("%s, blind %t: findings %q, want %q; %+v", tt.name, blind, got, tt.want, *c.in.counts)
			}
		}
	}
}

// TestReconcileKeepsPlace: to settle what is open of another part, in the midst of
// a unit, does not change whose counts the unit goes into.
func TestReconcileKeepsPlace(t *testing.T) {
	at := func(n int64) mark { return mark{n, n} }
	found := newTallies(part{from: at(10), to: at(20)}, &findings{topic: "t", limit: 10})
	j := judge{tally: found.in, tallies: found}
	j.open.losses = append(j.open.losses, loss{kind: Missing, source: 5, target: 5, partner: -1})
	j.reconcile()
	if j.tally != found.in || found.before.counts.Missing != 1 || found.in.counts.Missing != 0 {
		t.Errorf("counts before are %+v, of the part %+v", *found.before.counts, *found.in.counts)
	}
}

// randomEntries returns the entries of a book of which everything is random.
func randomEntries(rng *rand.Rand, n int) []ledger.Entry {
	var entries []ledger.Entry
	source, target := int64(0), int64(rng.IntN(3)*7)
	for range n {
		e := ledger.Entry{Source: ledger.Range{Start: source, End: source}, Target: ledger.Range{Start: target, End: target}}
		switch size := 1 + rng.Int64N(9); rng.IntN(6) {
		case 0:
			e.Tile = ledger.Orphan
			e.Target.End += size
		case 1:
			e.Tile = ledger.Compacted
			e.Source.End += size
		default:
			e.Tile = ledger.Copied
			e.Source.End += size
			e.Target.End += size
			e.Bytes = rng.Int64N(1000)
			for range size {
				e.Digest = e.Digest.Add(rng.Uint64())
			}
		}
		source, target = e.Source.End, e.Target.End
		entries = append(entries, e)
	}
	return entries
}

func cellsOf(entries []ledger.Entry, g grain, proofs []proof) []cell {
	p := newPlanner(g, proofs)
	for i := range entries {
		p.add(&entries[i])
	}
	return p.cells
}

// TestSamplesAreTheWhole: cells tile the books, no source offset is torn, blocks
// stay where they are while the books grow, and each block is in exactly one of
// n samples.
func TestSamplesAreTheWhole(t *testing.T) {
	parameters := gopter.DefaultTestParametersWithSeed(20261203)
	parameters.MinSuccessfulTests = 500
	t.Logf("seed %d", parameters.Seed())
	properties := gopter.NewProperties(parameters)
	properties.Property("blocks and samples", prop.ForAll(
		func(seed uint64, n, of int, bytes, offsets int64) (string, error) {
			rng := rand.New(rand.NewPCG(seed, 8))
			entries := randomEntries(rng, n)
			g := grain{bytes: bytes, offsets: offsets, blocks: 3, context: 5}
			cells := cellsOf(entries, g, nil)
			owners := map[int64]int{} // block of each entry's source start
			for i, c := range cells {
				switch {
				case i == 0 && c.from.source != 0, i > 0 && cells[i-1].to != c.from:
					return fmt.Sprintf("cell %d begins at %v", i, c.from), nil
				case i > 0 && cells[i-1].from.source >= c.from.source:
					return fmt.Sprintf("cells %d and %d share source offset %d", i-1, i, c.from.source), nil
				}
				for _, e := range entries {
					if e.Source.Start >= c.from.source && (i == len(cells)-1 || e.Source.Start < cells[i+1].from.source) {
						owners[e.Source.Start] = int(c.block)
					}
				}
				in := 0
				for k := 1; k <= of; k++ {
					if (Slice{k, of}).has(topicPartition{"t", int32(seed % 5)}, c.block) {
						in++
					}
				}
				if in != 1 {
					return fmt.Sprintf("block %d is in %d of %d samples", c.block, in, of), nil
				}
			}
			if len(owners) == 0 {
				return "no entry is in a block", nil
			}
			if cells[len(cells)-1].to.source != entries[n-1].Source.End {
				return "the books' end is in no cell", nil
			}
			earlier := cellsOf(entries[:1+rng.IntN(n)], g, nil)
			for i := range earlier[:len(earlier)-1] {
				if earlier[i] != cells[i] {
					return fmt.Sprintf("block %d moves when the books grow", i), nil
				}
			}
			return "", nil
		},
		gen.UInt64(), gen.IntRange(1, 200), gen.IntRange(1, 9), gen.Int64Range(1, 5000), gen.Int64Range(1, 100),
	))
	properties.TestingRun(t)
}

// TestProofsFitTheirEntries: a proof of any run of cells is recognized in the
// same books, cut or not, and in no others.
func TestProofsFitTheirEntries(t *testing.T) {
	parameters := gopter.DefaultTestParametersWithSeed(20261204)
	parameters.MinSuccessfulTests = 500
	t.Logf("seed %d", parameters.Seed())
	properties := gopter.NewProperties(parameters)
	properties.Property("proofs", prop.ForAll(
		func(seed uint64, n int) (string, error) {
			rng := rand.New(rand.NewPCG(seed, 9))
			entries := randomEntries(rng, n)
			fine := cellsOf(entries, grain{bytes: 1, offsets: 1}, nil)
			if end := fine[len(fine)-1]; end.from.source == end.to.source {
				fine = fine[:len(fine)-1] // notes at the end, of which nothing is kept
			}
			if len(fine) == 0 {
				return "", nil
			}
			first := rng.IntN(len(fine))
			last := first + rng.IntN(len(fine)-first)
			sum := stretch{from: fine[first].from, to: fine[first].from}
			for _, c := range fine[first : last+1] {
				sum.join(&c.stretch)
			}
			made := newProof(&sum, unixZero())
			coarse := grain{bytes: 2000, offsets: 50}
			p := newPlanner(coarse, []proof{made})
			for i := range entries {
				p.add(&entries[i])
			}
			cells := p.covered(&made)
			if cells == nil || cells[0].from != sum.from || cells[len(cells)-1].to != sum.to {
				return fmt.Sprintf("proof of [%d, %d) covers %v", sum.from.source, sum.to.source, cells), nil
			}
			for i := range entries { // another record somewhere
				e := &entries[i]
				if e.Tile != ledger.Copied || e.Source.Start < sum.from.source || e.Source.Start >= sum.to.source {
					continue
				}
				e.Digest = (e.Digest + 1) % prime
				q := newPlanner(coarse, []proof{made})
				for k := range entries {
					q.add(&entries[k])
				}
				if q.covered(&made) != nil {
					return fmt.Sprintf("a change at %d is not seen", e.Source.Start), nil
				}
				break
			}
			return "", nil
		},
		gen.UInt64(), gen.IntRange(1, 100),
	))
	properties.TestingRun(t)
}

func unixZero() time.Time { return time.Unix(0, 0) }
