package ledger

import (
	"math"
	"testing"

	"github.com/leanovate/gopter"
	"github.com/leanovate/gopter/gen"
	"github.com/leanovate/gopter/prop"
)

// testSeed makes property tests take the same values each time.
const testSeed = 20260918

func newProperties(t *testing.T) *gopter.Properties {
	t.Helper()
	t.Logf("seed %d", testSeed)
	parameters := gopter.DefaultTestParametersWithSeed(testSeed)
	parameters.MinSuccessfulTests = 300
	return gopter.NewProperties(parameters)
}

func digestOf(hashes ...uint64) (d Digest) {
	for _, h := range hashes {
		d = d.Add(h)
	}
	return d
}

// TestDigestVectors holds the published digests of four records in a row.
func TestDigestVectors(t *testing.T) {
	rows := []struct {
		hash uint64
		want string
	}{
		{0x70df2e0068babe74, "10df2e0068babe78"},
		{0x9a3d48a0d26d4f9c, "0558302b5c739031"},
		{0xc517aa167e641640, "0af1e475b800890d"},
		{0xc4df65e22e02b940, "133948c6b294f87e"},
	}
	var d Digest
	var hashes []uint64
	for _, row := range rows {
		d = d.Add(row.hash)
		hashes = append(hashes, row.hash)
		if d.String() != row.want {
			t.Errorf("digest of %d records = %v, want %s", len(hashes), d, row.want)
		}
		if naive := naiveDigest(hashes); naive.String() != row.want {
			t.Errorf("naive digest of %d records = %v, want %s", len(hashes), naive, row.want)
		}
	}
}

// TestDigestEdges compares the arithmetic with big numbers where it could run
// over: hashes around P and its multiples.
func TestDigestEdges(t *testing.T) {
	const p = 1<<61 - 1
	edges := []uint64{0, 1, p - 2, p - 1, p, p + 1, 2*p - 1, 2 * p, 7 * p, 8*p - 1, 8 * p, math.MaxUint64 - 1, math.MaxUint64}
	for _, a := range edges {
		for _, b := range edges {
			got, want := digestOf(a, b, a), naiveDigest([]uint64{a, b, a})
			if got != want || !got.Valid() {
				t.Errorf("digest of %d, %d, %d = %v, want %v", a, b, a, got, want)
			}
		}
	}
}

func TestDigestLaws(t *testing.T) {
	properties := newProperties(t)
	hashes := gen.SliceOf(gen.UInt64())
	n := func(h []uint64) int64 { return int64(len(h)) }

	properties.Property("is the naive fold", prop.ForAll(
		func(a []uint64) bool { return digestOf(a...) == naiveDigest(a) && digestOf(a...).Valid() }, hashes))
	properties.Property("merging is the digest of both", prop.ForAll(
		func(a, b []uint64) bool {
			return Concat(digestOf(a...), digestOf(b...), n(b)) == naiveDigest(append(append([]uint64{}, a...), b...))
		}, hashes, hashes))
	properties.Property("merging is associative", prop.ForAll(
		func(a, b, c []uint64) bool {
			x, y, z := digestOf(a...), digestOf(b...), digestOf(c...)
			return Concat(x, Concat(y, z, n(c)), n(b)+n(c)) == Concat(Concat(x, y, n(b)), z, n(c))
		}, hashes, hashes, hashes))
	properties.Property("splitting undoes merging", prop.ForAll(
		func(a, b []uint64) bool {
			whole := naiveDigest(append(append([]uint64{}, a...), b...))
			return Suffix(whole, digestOf(a...), n(b)) == digestOf(b...)
		}, hashes, hashes))
	properties.Property("a swap, a change, a loss and a doubling show", prop.ForAll(
		func(a []uint64, i int) bool {
			if len(a) < 2 || a[i%(len(a)-1)]%digestPrime == a[i%(len(a)-1)+1]%digestPrime {
				return true
			}
			i %= len(a) - 1
			whole := digestOf(a...)
			swapped := append([]uint64{}, a...)
			swapped[i], swapped[i+1] = swapped[i+1], swapped[i]
			changed := append([]uint64{}, a...)
			changed[i]++
			lost := append(append([]uint64{}, a[:i]...), a[i+1:]...)
			doubled := append(append([]uint64{}, a[:i+1]...), a[i:]...)
			return digestOf(swapped...) != whole && digestOf(changed...) != whole &&
				digestOf(lost...) != whole && digestOf(doubled...) != whole
		}, hashes, gen.IntRange(0, 1000)))
	properties.TestingRun(t)
}

func TestParseDigest(t *testing.T) {
	for _, d := range []Digest{0, 1, digestPrime - 1, 0x10df2e0068babe78} {
		if got, err := ParseDigest(d.String()); got != d || err != nil {
			t.Errorf("ParseDigest(%v) = %v, %v", d, got, err)
		}
	}
	for _, s := range []string{
		"", "0", "1fffffffffffffff", "2000000000000000", "10DF2E0068BABE78", "+0df2e0068babe78", "0x0f2e0068babe78",
		"00000000000000001", " 0df2e0068babe78", "000000000000000g",
	} {
		if d, err := ParseDigest(s); err == nil {
			t.Errorf("ParseDigest(%q) = %v, want an error", s, d)
		}
	}
}
