package recordbatch

import "math/bits"

// A record's lengths and deltas are zigzag varints (ByteUtils.readVarint). Longer
// encodings than needed are legal, as in Kafka's clients. Bits beyond the
// integer's width are not: the Java client drops them and others refuse them, so
// such a record has no one meaning.

// varint decodes a 32-bit zigzag varint at b[at:] and returns the position behind
// it, or -1 if there is none.
func varint(b []byte, at int) (int32, int) {
	u, next := uvarint(b, at)
	return int32(u>>1) ^ -int32(u&1), next
}

// varlong decodes a 64-bit zigzag varint at b[at:] and returns the position
// behind it, or -1 if there is none.
func varlong(b []byte, at int) (int64, int) {
	u, next := longUvarint(b, at, 64)
	return int64(u>>1) ^ -int64(u&1), next
}

// uvarint decodes an unsigned varint of at most 32 bits. Nearly all have one or
// two bytes.
func uvarint(b []byte, at int) (uint32, int) {
	if at+1 < len(b) {
		low, high := uint32(b[at]), uint32(b[at+1])
		if low < 0x80 {
			return low, at + 1
		}
		if high < 0x80 {
			return low&0x7f | high<<7, at + 2
		}
	}
	u, next := longUvarint(b, at, 32)
	return uint32(u), next
}

// longUvarint decodes an unsigned varint of at most width bits.
func longUvarint(b []byte, at int, width uint) (uint64, int) {
	var u uint64
	for shift := uint(0); shift < width && at < len(b); shift += 7 {
		c := uint64(b[at])
		at++
		if room := width - shift; room < 7 && c>>room != 0 {
			return 0, -1
		}
		u |= c & 0x7f << shift
		if c < 0x80 {
			return u, at
		}
	}
	return 0, -1
}

func appendVarint(dst []byte, v int32) []byte {
	return appendUvarint(dst, uint64(uint32(v<<1)^uint32(v>>31)))
}

func appendVarlong(dst []byte, v int64) []byte {
	return appendUvarint(dst, uint64(v<<1)^uint64(v>>63))
}

func appendUvarint(dst []byte, u uint64) []byte {
	for u >= 0x80 {
		dst = append(dst, byte(u)|0x80)
		u >>= 7
	}
	return append(dst, byte(u))
}

func varintLen(v int32) int { return uvarintLen(uint64(uint32(v<<1) ^ uint32(v>>31))) }

func varlongLen(v int64) int { return uvarintLen(uint64(v<<1) ^ uint64(v>>63)) }

func uvarintLen(u uint64) int { return (bits.Len64(u|1) + 6) / 7 }
