package recordbatch

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/klauspost/compress/snappy"
)

// xerialMagic begins the framing of org.xerial.snappy.SnappyOutputStream, which
// the Java client writes: this, two versions of 4 bytes, then blocks of raw snappy
// behind 4 bytes of big-endian length each. Other clients write one raw block.
const xerialMagic = "\x82SNAPPY\x00"

const (
	xerialHeaderSize = len(xerialMagic) + 8
	xerialLengthSize = 4
	xerialMinVersion = 1

	// snappyExpansion is the most that one byte of raw snappy can become: a copy
	// of 64 bytes takes 3. What claims more is broken, and is refused before it
	// costs memory.
	snappyExpansion = 22
)

var (
	errSnappyLength  = errors.New("snappy: the block declares more than it can hold")
	errXerialCut     = errors.New("snappy: the framed payload is cut off")
	errXerialHeader  = errors.New("snappy: a later header of the framing is not valid")
	errXerialVersion = errors.New("snappy: the framing's version is not supported")
)

// unsnappy decompresses a raw or a framed payload. They are told apart as
// org.xerial.snappy.SnappyInputStream does.
func (d *Decoder) unsnappy(payload []byte) ([]byte, error) {
	if len(payload) >= xerialHeaderSize && string(payload[:len(xerialMagic)]) == xerialMagic {
		return d.unxerial(payload[xerialHeaderSize:])
	}
	size, err := snappyLen(payload)
	if err != nil {
		return nil, err
	}
	if size > d.limit() {
		return nil, d.tooLarge(Snappy, uint64(size))
	}
	return snappy.Decode(d.reserve(d.buf[:0], size, d.limit()), payload)
}

// unxerial decompresses the blocks behind the framing's header. Their sizes are
// added up first, so that a body beyond the limit is refused unread.
func (d *Decoder) unxerial(blocks []byte) ([]byte, error) {
	var total uint64
	for rest := blocks; ; {
		block, behind, err := nextXerial(rest)
		if err != nil {
			return nil, err
		}
		if block == nil {
			break
		}
		size, err := snappyLen(block)
		if err != nil {
			return nil, err
		}
		total += uint64(size)
		rest = behind
	}
	if total > uint64(d.limit()) {
		return nil, d.tooLarge(Snappy, total)
	}
	out := d.reserve(d.buf[:0], int(total), d.limit())
	for {
		block, behind, err := nextXerial(blocks)
		if err != nil || block == nil {
			return out, err
		}
		decoded, err := snappy.Decode(out[len(out):cap(out)], block)
		if err != nil {
			return nil, err
		}
		out = out[:len(out)+len(decoded)]
		blocks = behind
	}
}

// nextXerial returns the first block of b and what is behind it, or a nil block at
// the end. Like SnappyInputStream.hasNextChunk it skips the header of a
// concatenated payload, and takes less than a length for the end.
func nextXerial(b []byte) (block, behind []byte, err error) {
	for len(b) >= xerialLengthSize {
		if string(b[:xerialLengthSize]) != xerialMagic[:xerialLengthSize] {
			size := int32(binary.BigEndian.Uint32(b))
			b = b[xerialLengthSize:]
			if size < 0 || int(size) > len(b) {
				return nil, nil, fmt.Errorf("%w: block of %d bytes, %d are left", errXerialCut, size, len(b))
			}
			return b[:size:size], b[size:], nil
		}
		if len(b) < xerialHeaderSize {
			return nil, nil, errXerialCut
		}
		if string(b[:len(xerialMagic)]) != xerialMagic {
			return nil, nil, errXerialHeader
		}
		if version := int32(binary.BigEndian.Uint32(b[len(xerialMagic):])); version < xerialMinVersion {
			return nil, nil, fmt.Errorf("%w: %d", errXerialVersion, version)
		}
		b = b[xerialHeaderSize:]
	}
	return nil, nil, nil
}

// snappyLen returns the size that a raw block decompresses to, as it declares it.
func snappyLen(block []byte) (int, error) {
	size, err := snappy.DecodedLen(block)
	if err == nil && uint64(size) > snappyExpansion*uint64(len(block)) {
		err = errSnappyLength
	}
	return size, err
}
