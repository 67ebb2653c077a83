package recordbatch

import (
	"encoding/binary"
	"math/bits"
)

// The primes of XXH32.
const (
	xxhPrime1 uint32 = 0x9e3779b1
	xxhPrime2 uint32 = 0x85ebca77
	xxhPrime3 uint32 = 0xc2b2ae3d
	xxhPrime4 uint32 = 0x27d4eb2f
	xxhPrime5 uint32 = 0x165667b1
)

// xxh32 returns the XXH32 of b with seed 0, the checksum of the lz4 frame format.
func xxh32(b []byte) uint32 {
	size := uint32(len(b))
	h := xxhPrime5
	if len(b) >= 16 {
		h, b = xxh32Stripes(b)
	}
	h += size
	for ; len(b) >= 4; b = b[4:] {
		h = bits.RotateLeft32(h+binary.LittleEndian.Uint32(b)*xxhPrime3, 17) * xxhPrime4
	}
	for _, c := range b {
		h = bits.RotateLeft32(h+uint32(c)*xxhPrime5, 11) * xxhPrime1
	}
	h = (h ^ h>>15) * xxhPrime2
	h = (h ^ h>>13) * xxhPrime3
	return h ^ h>>16
}

// xxh32Stripes hashes the whole stripes of 16 bytes and returns what is behind
// them.
func xxh32Stripes(b []byte) (uint32, []byte) {
	prime1, prime2 := xxhPrime1, xxhPrime2
	v1, v2, v3, v4 := prime1+prime2, prime2, uint32(0), -prime1
	for len(b) >= 16 {
		v1 = xxh32Round(v1, binary.LittleEndian.Uint32(b))
		v2 = xxh32Round(v2, binary.LittleEndian.Uint32(b[4:]))
		v3 = xxh32Round(v3, binary.LittleEndian.Uint32(b[8:]))
		v4 = xxh32Round(v4, binary.LittleEndian.Uint32(b[12:]))
		b = b[16:]
	}
	return bits.RotateLeft32(v1, 1) + bits.RotateLeft32(v2, 7) +
		bits.RotateLeft32(v3, 12) + bits.RotateLeft32(v4, 18), b
}

func xxh32Round(v, lane uint32) uint32 {
	return bits.RotateLeft32(v+lane*xxhPrime2, 13) * xxhPrime1
}
