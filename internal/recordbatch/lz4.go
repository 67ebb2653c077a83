package recordbatch

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"

	"github.com/pierrec/lz4/v4"
)

// The lz4 frame format, as far as Kafka's Java client knows it
// (Lz4BlockInputStream): one frame with its magic, no dictionary, neither legacy
// nor skippable frames. Blocks that depend on earlier ones are read as well, though
// the Java client refuses them.
const (
	lz4Magic       = 0x184d2204
	lz4MinHeader   = 7       // magic, two flag bytes, header checksum
	lz4BlockHeader = 4       // length, highest bit: not compressed
	lz4StoredBit   = 1 << 31 // the block is stored as it is
	lz4Checksum    = 4
	lz4Window      = 64 << 10 // how far back a match can reach

	// lz4Expansion is the most that one byte of a compressed block can become:
	// each further byte of a match's length adds up to 255.
	lz4Expansion = 255

	lz4FlagDictionary      = 0x01
	lz4FlagReserved        = 0x02
	lz4FlagContentChecksum = 0x04
	lz4FlagContentSize     = 0x08
	lz4FlagBlockChecksum   = 0x10
	lz4FlagIndependent     = 0x20
	lz4Version             = 0x40 // in the flags' two highest bits
)

var (
	errLZ4Cut      = errors.New("lz4: the frame is cut off")
	errLZ4Frame    = errors.New("lz4: the frame is not supported")
	errLZ4Block    = errors.New("lz4: a block is broken")
	errLZ4Checksum = errors.New("lz4: a checksum differs")
	errLZ4Size     = errors.New("lz4: the content size differs")
)

// An lz4Frame reads the blocks of one frame.
type lz4Frame struct {
	flags       byte
	maxBlock    int    // the most that one block may decompress to
	contentSize uint64 // 0 unless the flags have it
	rest        []byte // what is behind the last block read
}

// openLZ4 reads the header of the frame that b begins with.
func openLZ4(b []byte) (lz4Frame, error) {
	if len(b) < lz4MinHeader {
		return lz4Frame{}, errLZ4Cut
	}
	if binary.LittleEndian.Uint32(b) != lz4Magic {
		return lz4Frame{}, fmt.Errorf("%w: magic %08x", errLZ4Frame, binary.LittleEndian.Uint32(b))
	}
	flags, sizes, at := b[4], b[5], 6
	if flags&0xc0 != lz4Version || flags&(lz4FlagReserved|lz4FlagDictionary) != 0 || sizes&0x8f != 0 || sizes < 0x40 {
		return lz4Frame{}, fmt.Errorf("%w: flags %02x%02x", errLZ4Frame, flags, sizes)
	}
	f := lz4Frame{flags: flags, maxBlock: 1 << (8 + 2*(sizes>>4))}
	if f.has(lz4FlagContentSize) {
		if at += 8; at >= len(b) {
			return lz4Frame{}, errLZ4Cut
		}
		f.contentSize = binary.LittleEndian.Uint64(b[6:])
	}
	if b[at] != byte(xxh32(b[4:at])>>8) {
		return lz4Frame{}, fmt.Errorf("%w: frame header", errLZ4Checksum)
	}
	f.rest = b[at+1:]
	return f, nil
}

func (f *lz4Frame) has(flag byte) bool { return f.flags&flag != 0 }

// next returns the next block, which is nil at the frame's end mark.
func (f *lz4Frame) next() (block []byte, stored bool, err error) {
	length, err := f.uint32()
	size := int(length &^ lz4StoredBit)
	if err != nil || size == 0 {
		return nil, false, err
	}
	if size > f.maxBlock {
		return nil, false, fmt.Errorf("%w: %d bytes, the frame allows %d", errLZ4Block, size, f.maxBlock)
	}
	if size > len(f.rest) {
		return nil, false, errLZ4Cut
	}
	block, f.rest = f.rest[:size:size], f.rest[size:]
	if f.has(lz4FlagBlockChecksum) {
		if err := f.verify(block, "block"); err != nil {
			return nil, false, err
		}
	}
	return block, length&lz4StoredBit != 0, nil
}

// verify reads a checksum and compares it with that of b.
func (f *lz4Frame) verify(b []byte, what string) error {
	sum, err := f.uint32()
	if err == nil && sum != xxh32(b) {
		err = fmt.Errorf("%w: %s", errLZ4Checksum, what)
	}
	return err
}

func (f *lz4Frame) uint32() (uint32, error) {
	if len(f.rest) < 4 {
		return 0, errLZ4Cut
	}
	v := binary.LittleEndian.Uint32(f.rest)
	f.rest = f.rest[4:]
	return v, nil
}

// close checks what the frame says about the whole content.
func (f *lz4Frame) close(content []byte) error {
	if f.has(lz4FlagContentSize) && f.contentSize != uint64(len(content)) {
		return fmt.Errorf("%w: %d, the frame says %d", errLZ4Size, len(content), f.contentSize)
	}
	if f.has(lz4FlagContentChecksum) {
		return f.verify(content, "content")
	}
	return nil
}

// unlz4 decompresses the first frame of the payload. The content checksum is
// enforced, unlike in the Java client.
func (d *Decoder) unlz4(payload []byte) ([]byte, error) {
	f, err := openLZ4(payload)
	if err != nil {
		return nil, err
	}
	if f.contentSize > uint64(d.limit()) {
		return nil, d.tooLarge(LZ4, f.contentSize)
	}
	hint := min(f.contentSize, uint64(len(payload))*lz4Expansion)
	out := d.reserve(d.buf[:0], int(hint), d.limit())
	for {
		block, stored, err := f.next()
		if err != nil {
			return nil, err
		}
		if block == nil {
			return out, f.close(out)
		}
		if out, err = d.appendLZ4Block(&f, out, block, stored); err != nil {
			return nil, err
		}
	}
}

// appendLZ4Block decompresses one block behind what the frame holds so far.
func (d *Decoder) appendLZ4Block(f *lz4Frame, out, block []byte, stored bool) ([]byte, error) {
	left := d.limit() - len(out)
	if stored {
		if len(block) > left {
			return nil, d.tooLarge(LZ4, 0)
		}
		return append(d.reserve(out, len(out)+len(block), d.limit()), block...), nil
	}
	room := min(f.maxBlock, len(block)*lz4Expansion)
	if room > left {
		// Only here can a block fail for want of room, so only here its size
		// must be known first.
		size, ok := lz4BlockLen(block)
		if !ok || size > room {
			return nil, errLZ4Block
		}
		if size > left {
			return nil, d.tooLarge(LZ4, 0)
		}
		room = left
	}
	var window []byte
	if !f.has(lz4FlagIndependent) {
		window = out[max(0, len(out)-lz4Window):]
	}
	out = d.reserve(out, len(out)+room, d.limit())
	n, err := lz4.UncompressBlockWithDict(block, out[len(out):len(out)+room], window)
	if err != nil {
		return nil, errLZ4Block
	}
	return out[:len(out)+n], nil
}

// lz4BlockLen returns the size that a compressed block decompresses to, read from
// its sequences of literals and matches without executing them, and whether they
// are complete. It does not check where matches point to.
func lz4BlockLen(block []byte) (size int, ok bool) {
	for at := 0; at < len(block); {
		token := block[at]
		literals, next, ok := lz4Length(block, at+1, int(token>>4))
		if !ok || literals > len(block)-next {
			return 0, false
		}
		size += literals
		if at = next + literals; at == len(block) {
			return size, true // the last sequence has no match
		}
		match, next, ok := lz4Length(block, at+2, int(token&15))
		if !ok {
			return 0, false
		}
		size += match + 4
		at = next
	}
	return 0, false
}

// lz4Length reads the bytes at block[at:] that continue a length, if its four
// bits are full.
func lz4Length(block []byte, at, length int) (n, next int, ok bool) {
	if length < 15 {
		return length, at, at <= len(block)
	}
	for at < len(block) {
		c := block[at]
		at++
		length += int(c)
		if c < 255 {
			return length, at, true
		}
	}
	return 0, at, false
}

// lz4BlockSize is the most that one block holds of what appendLZ4 writes, the
// value that the Java client uses: larger blocks make each of its readers allocate
// larger buffers.
const lz4BlockSize = 64 << 10

// appendLZ4 appends body as one lz4 frame of independent blocks, without checksums
// other than the header's, as the Java client writes it.
func appendLZ4(dst, body []byte, c *lz4.Compressor) []byte {
	dst = binary.LittleEndian.AppendUint32(dst, lz4Magic)
	flags := [2]byte{lz4Version | lz4FlagIndependent, 0x40}
	dst = append(dst, flags[0], flags[1], byte(xxh32(flags[:])>>8))
	for len(body) > 0 {
		n := min(len(body), lz4BlockSize)
		dst = appendLZ4Block(dst, body[:n], c)
		body = body[n:]
	}
	return binary.LittleEndian.AppendUint32(dst, 0)
}

func appendLZ4Block(dst, content []byte, c *lz4.Compressor) []byte {
	bound := lz4.CompressBlockBound(len(content))
	dst = slices.Grow(dst, lz4BlockHeader+bound)
	start := len(dst) + lz4BlockHeader
	// With that much room compression cannot fail; a block that does not shrink
	// is stored.
	n, err := c.CompressBlock(content, dst[start:start+bound])
	if err != nil || n == 0 || n >= len(content) {
		dst = binary.LittleEndian.AppendUint32(dst, uint32(len(content))|lz4StoredBit)
		return append(dst, content...)
	}
	return binary.LittleEndian.AppendUint32(dst, uint32(n))[:start+n]
}
