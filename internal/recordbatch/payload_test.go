package recordbatch_test

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"slices"
	"testing"

	"github.com/klauspost/compress/snappy"
	"github.com/klauspost/compress/zstd"
	"github.com/pierrec/lz4/v4"

	rb "apograph/internal/recordbatch"
)

// This file compresses as clients other than this package do: with the standard
// library, with the codecs' own stream writers, and by hand.

// A form is one way in which clients write a codec.
type form struct {
	name  string
	codec rb.Codec
	pack  func(t testing.TB, body []byte) []byte
}

func forms() []form {
	return []form{
		{"none", rb.None, func(_ testing.TB, body []byte) []byte { return body }},
		{"gzip", rb.Gzip, packGzip},
		{"snappy raw", rb.Snappy, packSnappy},
		{"snappy framed", rb.Snappy, packXerial},
		{"lz4", rb.LZ4, func(t testing.TB, body []byte) []byte { return packLZ4(t, body) }},
		{"lz4 with all checksums", rb.LZ4, func(t testing.TB, body []byte) []byte {
			return packLZ4(t, body, lz4.BlockChecksumOption(true), lz4.ChecksumOption(true),
				lz4.SizeOption(uint64(len(body))), lz4.BlockSizeOption(lz4.Block64Kb))
		}},
		{"zstd", rb.Zstd, packZstd},
		{"zstd stream", rb.Zstd, func(t testing.TB, body []byte) []byte { return packZstdStream(t, body, 1<<20) }},
		{"zstd stream, flushed often", rb.Zstd, func(t testing.TB, body []byte) []byte { return packZstdStream(t, body, 40) }},
	}
}

func eachForm(t *testing.T, f func(t *testing.T, fm form)) {
	t.Helper()
	for _, fm := range forms() {
		t.Run(fm.name, func(t *testing.T) { f(t, fm) })
	}
}

// packBatch makes a batch of count records whose payload is already compressed.
func packBatch(codec rb.Codec, count int, payload []byte) (rb.Header, []byte) {
	h := rb.Header{Magic: 2, Attributes: int16(codec), LastOffsetDelta: int32(count - 1), Count: int32(count), ProducerID: -1, BaseSequence: -1}
	return h, h.Encode(nil, payload)
}

func packGzip(t testing.TB, body []byte) []byte {
	t.Helper()
	var buf bytes.Buffer
	w := gzip.NewWriter(&buf)
	if _, err := w.Write(body); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return buf.Bytes()
}

func packSnappy(_ testing.TB, body []byte) []byte { return snappy.Encode(nil, body) }

// xerialHead is the head of the Java client's snappy framing.
var xerialHead = []byte{0x82, 'S', 'N', 'A', 'P', 'P', 'Y', 0, 0, 0, 0, 1, 0, 0, 0, 1}

func packXerial(t testing.TB, body []byte) []byte {
	out := bytes.Clone(xerialHead)
	for part := range slices.Chunk(body, 32<<10) {
		out = append(out, xerialBlock(packSnappy(t, part))...)
	}
	return out
}

func xerialBlock(block []byte) []byte {
	return append(binary.BigEndian.AppendUint32(nil, uint32(len(block))), block...)
}

func packLZ4(t testing.TB, body []byte, options ...lz4.Option) []byte {
	t.Helper()
	var buf bytes.Buffer
	w := lz4.NewWriter(&buf)
	if err := w.Apply(options...); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Write(body); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return buf.Bytes()
}

func packZstd(t testing.TB, body []byte) []byte {
	t.Helper()
	w := mustZstdWriter(t, nil)
	defer w.Close()
	return w.EncodeAll(body, nil)
}

// packZstdStream writes a frame without a content size, as stream writers do, and
// flushes a block after every step bytes.
func packZstdStream(t testing.TB, body []byte, step int) []byte {
	t.Helper()
	var buf bytes.Buffer
	w := mustZstdWriter(t, &buf)
	for part := range slices.Chunk(body, step) {
		if _, err := w.Write(part); err != nil {
			t.Fatal(err)
		}
		if err := w.Flush(); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return buf.Bytes()
}

func mustZstdWriter(t testing.TB, buf *bytes.Buffer) *zstd.Encoder {
	t.Helper()
	var (
		w   *zstd.Encoder
		err error
	)
	// A small window makes the writer cheap; what it writes is of the same form.
	options := []zstd.EOption{zstd.WithEncoderConcurrency(1), zstd.WithZeroFrames(true), zstd.WithWindowSize(128 << 10)}
	if buf == nil {
		w, err = zstd.NewWriter(nil, options...)
	} else {
		w, err = zstd.NewWriter(buf, options...)
	}
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// A zstdBlock is one block of a frame made by hand.
type zstdBlock struct {
	kind int // 0 raw, 1 one byte repeated
	size int // decompressed
	data []byte
}

// handZstd writes a frame header of the given bytes and blocks behind it.
func handZstd(header []byte, blocks ...zstdBlock) []byte {
	out := append([]byte{0x28, 0xb5, 0x2f, 0xfd}, header...)
	for i, b := range blocks {
		head := b.size<<3 | b.kind<<1
		if i == len(blocks)-1 {
			head |= 1
		}
		out = append(out, byte(head), byte(head>>8), byte(head>>16))
		out = append(out, b.data...)
	}
	return out
}

// windowHeader is a frame header without a content size, with a window of
// 1 KiB << exponent.
func windowHeader(exponent int) []byte { return []byte{0, byte(exponent << 3)} }

// handLZ4 writes a frame of the given flags and blocks, whose lengths are theirs.
// The blocks' and the content's checksums are left to the caller.
func handLZ4(flags, sizes byte, blocks ...[]byte) []byte {
	out := []byte{0x04, 0x22, 0x4d, 0x18, flags, sizes}
	out = append(out, byte(rb.XXH32(out[4:])>>8))
	for _, b := range blocks {
		out = append(out, b...)
	}
	return append(out, 0, 0, 0, 0)
}

func lz4Compressed(block ...byte) []byte {
	return append(binary.LittleEndian.AppendUint32(nil, uint32(len(block))), block...)
}

func lz4Stored(block ...byte) []byte {
	return append(binary.LittleEndian.AppendUint32(nil, uint32(len(block))|1<<31), block...)
}
