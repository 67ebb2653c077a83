package ledger

import (
	"fmt"
	"math/bits"
	"strconv"
)

const (
	digestPrime = 1<<61 - 1         // P, a Mersenne prime: reduction is a shift and an addition
	digestBase  = 0x8baf25199c6ad16 // R = xxHash64("apograph/digest/1") mod P
)

// A Digest is an order-sensitive fold of the hashes of a run of records that
// can be merged and split. The zero value is the digest of no records. It sees
// any change, loss, doubling or swap with probability 1 - 2^-61; it does not
// withstand somebody who wants to deceive.
//
// With P = 2^61 - 1 and R = xxHash64("apograph/digest/1") mod P:
//
//	digest of no records         = 0
//	digest of A and then a record = (digest(A) * R + (h mod P) + 1) mod P
//	digest of A and then B        = (digest(A) * R^records(B) + digest(B)) mod P
//
// where h is the record's hash. A valid digest is below P.
type Digest uint64

// Add returns the digest of the records of d followed by one with hash h.
func (d Digest) Add(h uint64) Digest {
	// h mod P + 1 is at most P, which reduce brings to 0 as the definition
	// asks.
	return Digest(addMod(mulMod(uint64(d), digestBase), reduce(reduce(h)+1)))
}

// Concat returns the digest of the records of a followed by those of b, of
// which there are recordsB.
//
//	Concat(a, Concat(b, c, nc), nb+nc) == Concat(Concat(a, b, nb), c, nc)
//	Suffix(Concat(a, b, nb), a, nb) == b
func Concat(a, b Digest, recordsB int64) Digest {
	return Digest(addMod(mulMod(uint64(a), powMod(recordsB)), uint64(b)))
}

// Suffix takes a prefix away: it returns the digest of the last recordsSuffix
// records of whole, where prefix is the digest of all records before them.
func Suffix(whole, prefix Digest, recordsSuffix int64) Digest {
	taken := mulMod(uint64(prefix), powMod(recordsSuffix))
	return Digest(addMod(uint64(whole), digestPrime-taken))
}

// Valid reports whether d can be the digest of anything: d < P.
func (d Digest) Valid() bool { return d < digestPrime }

// String returns d as 16 lower-case hexadecimal digits.
func (d Digest) String() string { return fmt.Sprintf("%016x", uint64(d)) }

// ParseDigest is the inverse of [Digest.String]. It refuses anything but 16
// lower-case hexadecimal digits of a valid digest.
func ParseDigest(s string) (Digest, error) {
	v, err := strconv.ParseUint(s, 16, 64)
	d := Digest(v)
	if err != nil || d.String() != s || !d.Valid() {
		return 0, fmt.Errorf("ledger: invalid digest %q", s)
	}
	return d, nil
}

// reduce returns v mod P.
func reduce(v uint64) uint64 {
	v = v&digestPrime + v>>61
	if v >= digestPrime {
		v -= digestPrime
	}
	return v
}

// addMod returns a + b mod P for a and b of at most P.
func addMod(a, b uint64) uint64 { return reduce(a + b) }

// mulMod returns a * b mod P for a and b of at most P.
func mulMod(a, b uint64) uint64 {
	hi, lo := bits.Mul64(a, b)
	// The product is below 2^122: its bits from 61 up count once each, since
	// 2^61 mod P is 1.
	return addMod(lo&digestPrime, hi<<3|lo>>61)
}

// powMod returns R^n mod P.
func powMod(n int64) uint64 {
	if n < 0 {
		panic(fmt.Sprintf("ledger: digest of %d records", n))
	}
	result, base := uint64(1), uint64(digestBase)
	for ; n > 0; n >>= 1 {
		if n&1 == 1 {
			result = mulMod(result, base)
		}
		base = mulMod(base, base)
	}
	return result
}
