package verify

import (
	"math/bits"

	"apograph/ledger"
)

// A digest that does not agree says more than that: taking one record too many
// away, or putting two back into order, makes it agree again, and by chance
// nothing else does. So these two are located exactly although the source cannot
// say what should be there.

// maxPinned bounds the records of which two may have been exchanged: every two
// of them are tried.
const maxPinned = 2048

// A riddle is a block of slots, some of which are not known, and the items that
// stand there. With x the summand of a record and f the factor of its place, a
// digest is the sum of all x*f.
type riddle struct {
	slots  []*slot
	factor []ledger.Digest
	items  []uint64      // hashes, as the units compare them
	want   ledger.Digest // sum over slots
}

// pin aligns a block of which not everything is known, if what is not can be
// told from the digests. ok is false if it cannot.
func (w *window) pin(exit place) (steps []step, ok bool) {
	r, ok := w.riddle(exit)
	if !ok {
		return nil, false
	}
	switch len(r.items) - len(r.slots) {
	case 1:
		if extra := r.superfluous(); extra >= 0 {
			r.prove(append(append([]uint64{}, r.items[:extra]...), r.items[extra+1:]...))
			return without(extra, len(r.items)), true
		}
	case 0:
		if i, j, found := r.exchanged(); found {
			hashes := append([]uint64{}, r.items...)
			hashes[i], hashes[j] = hashes[j], hashes[i]
			r.prove(hashes)
			return paired(len(hashes)), true
		}
	}
	return nil, false
}

// riddle returns the block before exit, if all that is not known of its units
// lies in it.
func (w *window) riddle(exit place) (r riddle, ok bool) {
	units, ok := w.unitsBefore(exit.want)
	if !ok {
		return r, false
	}
	replaced := units[0].entry.TimestampsReplaced
	for i := range exit.have {
		if w.have[i].kind != dataRecord {
			return r, false
		}
		r.items = append(r.items, w.have[i].hashAs(replaced))
	}
	first, last := w.want[0].slot, w.want[exit.want-1].slot
	total, power, unknown := 0, ledger.Digest(1), 0
	for _, u := range units {
		r.want = ledger.Concat(r.want, u.entry.Digest, int64(len(u.slots)))
		total += len(u.slots)
	}
	r.slots, r.factor = make([]*slot, exit.want), make([]ledger.Digest, exit.want)
	for n := len(units) - 1; n >= 0; n-- {
		u := units[n]
		for k := len(u.slots) - 1; k >= 0; k-- {
			s := &u.slots[k]
			total--
			switch inside := total - first; {
			case n == 0 && k < first || n == len(units)-1 && k > last:
				if !s.known() {
					return r, false
				}
				r.want = minus(r.want, times(summand(s.hash), power))
			default:
				r.slots[inside], r.factor[inside] = s, power
				if !s.known() {
					unknown++
				}
			}
			power = times(power, ledger.Concat(1, 0, 1))
		}
	}
	return r, unknown > 0
}

// unitsBefore returns the units of the first n elems. ok is false if one is no
// copy, or they differ in how times are compared.
func (w *window) unitsBefore(n int) (units []*unit, ok bool) {
	for i := range n {
		u := w.want[i].unit
		if u == nil || u.torn || u.note() || u.entry.TimestampsReplaced != w.want[0].unit.entry.TimestampsReplaced {
			return nil, false
		}
		if len(units) == 0 || units[len(units)-1] != u {
			units = append(units, u)
		}
	}
	return units, n > 0
}

// value returns what slot k adds to the digest if an item stands there; ok is
// false if it cannot.
func (r *riddle) value(k int, item uint64) (v ledger.Digest, ok bool) {
	s := r.slots[k]
	return times(summand(item), r.factor[k]), !s.known() || s.hash == item
}

// superfluous returns the item without which the digest agrees, -1 if there is
// none; of two equal neighbours the second.
func (r *riddle) superfluous() int {
	n := len(r.slots)
	before, fits := make([]ledger.Digest, n+1), 0 // sums of slots with items in front of the one too many
	for k := range n {
		v, ok := r.value(k, r.items[k])
		if !ok {
			break
		}
		before[k+1], fits = plus(before[k], v), k+1
	}
	behind := ledger.Digest(0)
	for extra := n; extra >= 0; extra-- {
		if extra <= fits && plus(before[extra], behind) == r.want {
			return extra
		}
		if extra == 0 {
			break
		}
		v, ok := r.value(extra-1, r.items[extra])
		if !ok {
			break
		}
		behind = plus(behind, v)
	}
	return -1
}

// exchanged returns two slots, of which nothing else is known, whose items make
// the digest agree if they are exchanged: that adds (x[j]-x[i]) * (f[i]-f[j]).
func (r *riddle) exchanged() (i, j int, found bool) {
	var open []int
	missing := r.want
	for k := range r.slots {
		v, ok := r.value(k, r.items[k])
		if !ok {
			return 0, 0, false
		}
		missing = minus(missing, v)
		if !r.slots[k].known() {
			open = append(open, k)
		}
	}
	if len(open) > maxPinned {
		return 0, 0, false
	}
	for n, i := range open {
		for _, j := range open[n+1:] {
			change := times(minus(summand(r.items[j]), summand(r.items[i])), minus(r.factor[i], r.factor[j]))
			if change == missing && r.items[i] != r.items[j] {
				return i, j, true
			}
		}
	}
	return 0, 0, false
}

// prove says which records should stand in the slots.
func (r *riddle) prove(hashes []uint64) {
	for k, s := range r.slots {
		if !s.known() {
			s.hash, s.proven = hashes[k], true
		}
	}
}

// paired returns the steps that pair n slots and items.
func paired(n int) []step {
	steps := make([]step, n)
	for i := range steps {
		steps[i] = step{pairUp, place{i, i}}
	}
	return steps
}

// without returns the steps that pair all of n items but one.
func without(extra, n int) []step {
	steps := paired(n)
	steps[extra].kind = haveOnly
	for j := extra + 1; j < n; j++ {
		steps[j].want--
	}
	return steps
}

// prime is the modulus of digests, a Mersenne prime: 2^61 is 1.
const prime = 1<<61 - 1

// summand returns what a record with a hash adds to a digest, before the factor
// of its place.
func summand(hash uint64) ledger.Digest { return ledger.Digest(0).Add(hash) }

func plus(a, b ledger.Digest) ledger.Digest { return minus(a, minus(0, b)) }

// minus returns a - b modulo the prime.
func minus(a, b ledger.Digest) ledger.Digest {
	if a >= b {
		return a - b
	}
	return a + prime - b
}

// times returns a * b modulo the prime.
func times(a, b ledger.Digest) ledger.Digest {
	high, low := bits.Mul64(uint64(a), uint64(b))
	sum := low&prime + (high<<3 | low>>61)
	if sum >= prime {
		sum -= prime
	}
	return ledger.Digest(sum)
}
