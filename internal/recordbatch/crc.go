package recordbatch

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
)

// CheckCRC compares the checksum in the header of b, one whole batch that
// [Parse] accepted, with its bytes. The error wraps [ErrCRC].
//
// The checksum is CRC-32C over everything from the attributes on. It does not
// cover the base offset and the leader epoch, which brokers set, nor the length
// and the magic.
func CheckCRC(b []byte) error {
	stored := binary.BigEndian.Uint32(b[crcAt:])
	if computed := checksum(b[attributesAt:]); computed != stored {
		return fmt.Errorf("%w: stored %08x, computed %08x", ErrCRC, stored, computed)
	}
	return nil
}

func checksum(b []byte) uint32 {
	return crc32.Checksum(b, crc32.MakeTable(crc32.Castagnoli))
}

// crcPolynomial is CRC-32C's polynomial with its bits reversed, as the checksum
// keeps them: bit 31 is the coefficient of x^0.
const crcPolynomial = 0x82f63b78

// crcShift returns what the register difference c between two inputs becomes
// after n further bytes that are equal in both. A CRC is linear, so the
// difference of two checksums depends on the difference of their inputs alone,
// and n equal bytes multiply it by x^(8n).
func crcShift(c uint32, n int) uint32 {
	for k := 0; n > 0; k++ {
		if n&1 != 0 {
			c = crcMultiply(crcPowers[k], c)
		}
		n >>= 1
	}
	return c
}

// crcMultiply returns the product of two polynomials modulo crcPolynomial.
func crcMultiply(a, b uint32) uint32 {
	var product uint32
	for bit := uint32(1) << 31; bit != 0; bit >>= 1 {
		if a&bit != 0 {
			product ^= b
		}
		b = b>>1 ^ crcPolynomial&-(b&1)
	}
	return product
}

// crcPowers[k] is x^(8*2^k) modulo crcPolynomial: the effect of 2^k equal bytes.
// Never written to.
var crcPowers = [31]uint32{
	0x00800000, 0x00008000, 0x82f63b78, 0x6ea2d55c, 0x18b8ea18, 0x510ac59a,
	0xb82be955, 0xb8fdb1e7, 0x88e56f72, 0x74c360a4, 0xe4172b16, 0x0d65762a,
	0x35d73a62, 0x28461564, 0xbf455269, 0xe2ea32dc, 0xfe7740e6, 0xf946610b,
	0x3c204f8f, 0x538586e3, 0x59726915, 0x734d5309, 0xbc1ac763, 0x7d0722cc,
	0xd289cabe, 0xe94ca9bc, 0x05b74f3f, 0xa51e1f42, 0x40000000, 0x20000000,
	0x08000000,
}
