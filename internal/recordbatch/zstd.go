package recordbatch

import (
	"encoding/binary"
	"errors"
	"math"

	"github.com/klauspost/compress/zstd"
)

const (
	zstdMagic         = 0xfd2fb528
	zstdSkippable     = 0x184d2a50 // with any value in the lowest four bits
	zstdMaxBlock      = 128 << 10
	zstdBlockHeader   = 3
	zstdMinWindow     = 1 << 10
	zstdChecksumSize  = 4
	zstdUnknownSize   = math.MaxUint64
	zstdSingleSegment = 0x20 // flags of the frame header descriptor
	zstdReserved      = 0x08
	zstdHasChecksum   = 0x04

	// zstdMaxWindow is the largest window that libzstd, with which the Java
	// client reads, accepts unasked (ZSTD_WINDOWLOG_LIMIT_DEFAULT).
	zstdMaxWindow = 128 << 20

	// zstdStreamWindow is the window that streaming accepts whatever the limit.
	// It is that of levels up to 19.
	zstdStreamWindow = 8 << 20

	// What is decompressed at once may take this much more memory than it turns
	// out to need: so many bytes, and so many times the payload.
	zstdDirectBytes = 4 << 20
	zstdDirectRatio = 64

	// zstdSlack is room behind what the blocks can hold. The decoder notices that
	// a block exceeds the declared size only behind that block, is fastest with
	// room for a whole one, and copies a few bytes beyond the end.
	zstdSlack = zstdMaxBlock + 32
)

var (
	errZstdCut   = errors.New("zstd: the frame is cut off")
	errZstdFrame = errors.New("zstd: the frame header is not valid")
	errZstdBlock = errors.New("zstd: a block is not valid")
	errZstdSize  = errors.New("zstd: the declared size does not fit the blocks")
)

// unzstd decompresses any number of frames, skipping skippable ones, as
// com.github.luben.zstd.ZstdInputStream does.
//
// The block headers are read first. They tell between which bounds the size lies,
// so that the buffer is as large as it must be, and what is certain to exceed the
// limit is refused before anything is decompressed.
func (d *Decoder) unzstd(payload []byte) ([]byte, error) {
	least, most, err := zstdBounds(payload)
	if err != nil {
		return nil, err
	}
	limit := uint64(d.limit())
	if least > limit {
		return nil, d.tooLarge(Zstd, least)
	}
	if most > limit+zstdMaxBlock || most-least > zstdDirectBytes+zstdDirectRatio*uint64(len(payload)) {
		return d.streamZstd(payload)
	}
	if d.zstd == nil {
		if d.zstd, err = newZstd(zstdMaxWindow); err != nil {
			return nil, err
		}
	}
	room := int(most) + zstdSlack
	out, err := d.zstd.DecodeAll(payload, d.reserve(d.buf[:0], room, room))
	if err != nil {
		return nil, err
	}
	if len(out) > d.limit() {
		return nil, d.tooLarge(Zstd, 0)
	}
	return out, nil
}

// streamZstd decompresses a payload whose blocks have room for very much, which
// says little: a writer that flushes often makes many small blocks. It needs the
// window that the frame declares, besides the body.
func (d *Decoder) streamZstd(payload []byte) (out []byte, err error) {
	window := uint64(min(max(d.limit(), zstdStreamWindow), zstdMaxWindow))
	if d.stream == nil || d.streamWindow != window {
		if d.stream, err = newZstd(window); err != nil {
			return nil, err
		}
		d.streamWindow = window
	}
	d.source.Reset(payload)
	if err := d.stream.Reset(&d.source); err != nil {
		return nil, err
	}
	return d.fill(Zstd, d.buf[:0], d.stream)
}

// newZstd returns a decoder that starts no goroutine. Its own memory limit stays
// off: it would refuse every frame whose window is larger, however small the frame.
func newZstd(window uint64) (*zstd.Decoder, error) {
	return zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true), zstd.WithDecoderMaxWindow(window))
}

// zstdBounds returns the least and the most that the payload's frames can
// decompress to, as their headers and those of their blocks tell. Both are at most
// 128 KiB a block, whatever a frame declares.
func zstdBounds(b []byte) (least, most uint64, err error) {
	for len(b) > 0 {
		if len(b) < 8 {
			return 0, 0, errZstdCut
		}
		if magic := binary.LittleEndian.Uint32(b); magic&^0xf == zstdSkippable {
			size := uint64(binary.LittleEndian.Uint32(b[4:]))
			if b = b[8:]; size > uint64(len(b)) {
				return 0, 0, errZstdCut
			}
			b = b[size:]
			continue
		} else if magic != zstdMagic {
			return 0, 0, errZstdFrame
		}
		f, behind, err := scanZstdFrame(b[4:])
		if err != nil {
			return 0, 0, err
		}
		least += f.least
		most += f.most
		b = behind
	}
	return least, most, nil
}

// A zstdFrame is what a frame and its blocks say about its content.
type zstdFrame struct {
	declared    uint64 // content size, or zstdUnknownSize
	maxBlock    uint64
	checksum    bool
	least, most uint64
}

// scanZstdFrame reads the frame whose header, less the magic, b begins with, and
// returns what is behind it.
func scanZstdFrame(b []byte) (f zstdFrame, behind []byte, err error) {
	if f, b, err = openZstdFrame(b); err != nil {
		return f, nil, err
	}
	for last := false; !last; {
		if last, b, err = f.scanBlock(b); err != nil {
			return f, nil, err
		}
	}
	if f.checksum {
		if len(b) < zstdChecksumSize {
			return f, nil, errZstdCut
		}
		b = b[zstdChecksumSize:]
	}
	if f.declared != zstdUnknownSize {
		if f.declared < f.least || f.declared > f.most {
			return f, nil, errZstdSize
		}
		f.least, f.most = f.declared, f.declared
	}
	return f, b, nil
}

// openZstdFrame reads a frame header and returns what is behind it.
func openZstdFrame(b []byte) (f zstdFrame, behind []byte, err error) {
	descriptor := b[0]
	b = b[1:]
	single := descriptor&zstdSingleSegment != 0
	dictionary := [...]int{0, 1, 2, 4}[descriptor&3]
	size := [...]int{0, 2, 4, 8}[descriptor>>6]
	if single && size == 0 {
		size = 1
	}
	window := uint64(0)
	if !single {
		window = zstdWindow(b[0])
		b = b[1:]
	}
	if descriptor&zstdReserved != 0 {
		return f, nil, errZstdFrame
	}
	if len(b) < dictionary+size {
		return f, nil, errZstdCut
	}
	f.declared = zstdContentSize(b[dictionary:], size)
	if single {
		window = max(f.declared, zstdMinWindow)
	}
	f.maxBlock = min(window, zstdMaxBlock)
	f.checksum = descriptor&zstdHasChecksum != 0
	return f, b[dictionary+size:], nil
}

// zstdWindow decodes a window descriptor: five bits of exponent, three of mantissa.
func zstdWindow(descriptor byte) uint64 {
	base := uint64(zstdMinWindow) << (descriptor >> 3)
	return base + base/8*uint64(descriptor&7)
}

// zstdContentSize decodes a content size of size bytes.
func zstdContentSize(b []byte, size int) uint64 {
	switch size {
	case 0:
		return zstdUnknownSize
	case 1:
		return uint64(b[0])
	case 2:
		return uint64(binary.LittleEndian.Uint16(b)) + 256
	case 4:
		return uint64(binary.LittleEndian.Uint32(b))
	default:
		return binary.LittleEndian.Uint64(b)
	}
}

// scanBlock adds the block that b begins with to the frame's bounds. It returns
// whether it is the last one, and what is behind it.
func (f *zstdFrame) scanBlock(b []byte) (last bool, behind []byte, err error) {
	if len(b) < zstdBlockHeader {
		return false, nil, errZstdCut
	}
	header := uint32(b[0]) | uint32(b[1])<<8 | uint32(b[2])<<16
	b = b[zstdBlockHeader:]
	last = header&1 != 0
	size := uint64(header >> 3)
	if size > f.maxBlock {
		return false, nil, errZstdBlock
	}
	stored := size // bytes that the block takes here
	switch header >> 1 & 3 {
	case 0: // raw
		f.least += size
		f.most += size
	case 1: // one byte, repeated
		f.least += size
		f.most += size
		stored = 1
	case 2: // compressed
		f.most += f.maxBlock
	default:
		return false, nil, errZstdBlock
	}
	if stored > uint64(len(b)) {
		return false, nil, errZstdCut
	}
	return last, b[stored:], nil
}
