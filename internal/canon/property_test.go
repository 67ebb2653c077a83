package canon_test

import (
	"bytes"
	"encoding/binary"
	"math/bits"
	"math/rand"
	"testing"

	"github.com/leanovate/gopter"
	"github.com/leanovate/gopter/prop"

	"apograph/internal/canon"
)

// propertySeed is fixed so that a failure repeats. gopter prints it with a failure.
const propertySeed = 20240914

func TestCanonicalAgainstNaive(t *testing.T) {
	properties := gopter.NewProperties(gopter.DefaultTestParametersWithSeed(propertySeed))
	properties.Property("canonical bytes equal the naive ones", prop.ForAll(
		func(r record) bool { return bytes.Equal(r.canonical(nil), naiveCanonical(r)) },
		genRecord(),
	))
	properties.Property("the hash equals the slow one", prop.ForAll(
		func(r record) bool {
			b := r.canonical(nil)
			return canon.Sum(b) == slowXXHash64(b)
		},
		genRecord(),
	))
	properties.TestingRun(t)
}

// TestSumEveryLength covers each of the hash's tails: stripes of 32, then of 8,
// then of 4, then single bytes.
func TestSumEveryLength(t *testing.T) {
	rng := rand.New(rand.NewSource(propertySeed))
	data := make([]byte, 300)
	rng.Read(data)
	for n := range len(data) + 1 {
		if got, want := canon.Sum(data[:n]), slowXXHash64(data[:n]); got != want {
			t.Fatalf("Sum of %d bytes = %016x, want %016x", n, got, want)
		}
	}
}

// naiveCanonical writes the form of the package comment field by field.
func naiveCanonical(r record) []byte {
	var buf bytes.Buffer
	write := func(v any) {
		if err := binary.Write(&buf, binary.BigEndian, v); err != nil {
			panic(err)
		}
	}
	field := func(b []byte) {
		if b == nil {
			write(int32(-1))
			return
		}
		write(int32(len(b)))
		write(b)
	}
	write(r.timestamp)
	field(r.key)
	field(r.value)
	write(int32(len(r.headers)))
	for _, h := range r.headers {
		field(h.key)
		field(h.value)
	}
	return buf.Bytes()
}

// slowXXHash64 follows the steps of the xxHash specification for XXH64 with
// seed 0, without any of its shortcuts.
func slowXXHash64(data []byte) uint64 {
	const (
		prime1 uint64 = 0x9E3779B185EBCA87
		prime2 uint64 = 0xC2B2AE3D27D4EB4F
		prime3 uint64 = 0x165667B19E3779F9
		prime4 uint64 = 0x85EBCA77C2B2AE63
		prime5 uint64 = 0x27D4EB2F165667C5
	)
	round := func(acc, lane uint64) uint64 {
		return bits.RotateLeft64(acc+lane*prime2, 31) * prime1
	}
	rest := data
	acc := prime5
	if len(data) >= 32 {
		lanes := []uint64{prime1, prime2, 0, 0}
		lanes[0] += prime2
		lanes[3] -= prime1
		for len(rest) >= 32 {
			for i := range lanes {
				lanes[i] = round(lanes[i], binary.LittleEndian.Uint64(rest[8*i:]))
			}
			rest = rest[32:]
		}
		acc = 0
		for i, rotation := range []int{1, 7, 12, 18} {
			acc += bits.RotateLeft64(lanes[i], rotation)
		}
		for _, lane := range lanes {
			acc = (acc^round(0, lane))*prime1 + prime4
		}
	}
	acc += uint64(len(data))
	for len(rest) >= 8 {
		acc ^= round(0, binary.LittleEndian.Uint64(rest))
		acc = bits.RotateLeft64(acc, 27)*prime1 + prime4
		rest = rest[8:]
	}
	if len(rest) >= 4 {
		acc ^= uint64(binary.LittleEndian.Uint32(rest)) * prime1
		acc = bits.RotateLeft64(acc, 23)*prime2 + prime3
		rest = rest[4:]
	}
	for _, b := range rest {
		acc ^= uint64(b) * prime5
		acc = bits.RotateLeft64(acc, 11) * prime1
	}
	acc = (acc ^ acc>>33) * prime2
	acc = (acc ^ acc>>29) * prime3
	return acc ^ acc>>32
}

func genRecord() gopter.Gen {
	return func(p *gopter.GenParameters) *gopter.GenResult {
		r := record{timestamp: genTimestamp(p.Rng), key: genBytes(p.Rng), value: genBytes(p.Rng)}
		for range p.Rng.Intn(5) {
			h := header{key: genBytes(p.Rng), value: genBytes(p.Rng)}
			if h.key == nil {
				h.key = []byte{}
			}
			r.headers = append(r.headers, h)
		}
		return gopter.NewGenResult(r, gopter.NoShrinker)
	}
}

func genTimestamp(rng *rand.Rand) int64 {
	switch rng.Intn(4) {
	case 0:
		return -1
	case 1:
		return int64(rng.Uint64())
	default:
		return 1_700_000_000_000 + rng.Int63n(1_000_000)
	}
}

// genBytes returns null, empty, or up to 99 random bytes.
func genBytes(rng *rand.Rand) []byte {
	switch rng.Intn(4) {
	case 0:
		return nil
	case 1:
		return []byte{}
	default:
		b := make([]byte, rng.Intn(100))
		rng.Read(b)
		return b
	}
}
