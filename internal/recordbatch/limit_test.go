package recordbatch_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math/rand"
	"runtime"
	"slices"
	"testing"

	"github.com/klauspost/compress/zstd"
	"github.com/pierrec/lz4/v4"

	rb "apograph/internal/recordbatch"
)

// TestLimitIsExact: a body of exactly the limit passes and one byte more does not,
// in each form, also where the limit falls within a block.
func TestLimitIsExact(t *testing.T) {
	rng := rand.New(rand.NewSource(propertySeed))
	eachForm(t, func(t *testing.T, fm form) {
		if fm.codec == rb.None {
			return // what is in memory already has no limit
		}
		for _, size := range []int{1, 2, 100, 4096, 65536, 65537, 131072, 200_001} {
			for _, body := range [][]byte{compressible(rng, size), incompressible(rng, size), make([]byte, size)} {
				h, batch := packBatch(fm.codec, 1, fm.pack(t, body))
				d := rb.Decoder{MaxBytes: size}
				if got, err := d.Body(h, batch); err != nil || !bytes.Equal(got, body) {
					t.Errorf("%d bytes within %d: error %v", size, d.MaxBytes, err)
				}
				for _, limit := range []int{size - 1, size / 2, 1} {
					if d.MaxBytes = limit; limit < 1 || limit >= size {
						continue
					}
					_, err := d.Body(h, batch)
					mustBeTooLarge(t, err, fm.codec, limit, size)
				}
			}
		}
	})
}

func mustBeTooLarge(t *testing.T, err error, codec rb.Codec, limit, size int) {
	t.Helper()
	var tooLarge *rb.TooLargeError
	if !errors.Is(err, rb.ErrTooLarge) || !errors.As(err, &tooLarge) {
		t.Errorf("%d bytes within %d: error %v, want ErrTooLarge", size, limit, err)
		return
	}
	if tooLarge.Codec != codec || tooLarge.MaxBytes != limit {
		t.Errorf("error %+v, want codec %v and limit %d", tooLarge, codec, limit)
	}
	if tooLarge.Size != 0 && (tooLarge.Size <= int64(limit) || tooLarge.Size > int64(size)) {
		t.Errorf("error says %d bytes, want 0 or more than %d up to %d", tooLarge.Size, limit, size)
	}
}

func TestDefaultLimit(t *testing.T) {
	zeros := handZstd(windowHeader(10), slices.Repeat([]zstdBlock{{1, 128 << 10, []byte{0}}}, rb.DefaultMaxBytes>>17)...)
	h, batch := packBatch(rb.Zstd, 1, zeros)
	for _, limit := range []int{0, -1} {
		d := rb.Decoder{MaxBytes: limit}
		if body, err := d.Body(h, batch); err != nil || len(body) != rb.DefaultMaxBytes {
			t.Errorf("MaxBytes %d: %d bytes, error %v, want the default limit to pass", limit, len(body), err)
		}
	}
	more := slices.Concat(zeros, handZstd(windowHeader(0), zstdBlock{1, 1, []byte{0}}))
	h, batch = packBatch(rb.Zstd, 1, more)
	_, err := new(rb.Decoder).Body(h, batch)
	mustBeTooLarge(t, err, rb.Zstd, rb.DefaultMaxBytes, rb.DefaultMaxBytes+1)
}

// TestZeros is the second half of the case "codecs and sizes": 3 MB of zeros in a
// zstd batch of a few hundred bytes.
func TestZeros(t *testing.T) {
	records := []plainRecord{{value: make([]byte, 3<<20)}}
	batch := mustBuild(t, rb.Zstd, records)
	if len(batch) > 1000 {
		t.Fatalf("batch has %d bytes", len(batch))
	}
	got, err := walkPlain(&rb.Decoder{MaxBytes: 4 << 20}, batch)
	if err != nil {
		t.Fatal(err)
	}
	if diff := diffRecords(got, records); diff != "" {
		t.Error("records differ")
	}
	_, err = walkPlain(&rb.Decoder{MaxBytes: 1 << 20}, batch)
	mustBeTooLarge(t, err, rb.Zstd, 1<<20, 3<<20+100)
}

// TestZstdWindowIsNoLimit: a producer declares the window of its level, 2 MiB and
// more, however little it writes. A small limit must not refuse that.
func TestZstdWindowIsNoLimit(t *testing.T) {
	body := []byte("a few bytes")
	for exponent := range 18 {
		payload := handZstd(windowHeader(exponent), zstdBlock{0, len(body), body})
		h, batch := packBatch(rb.Zstd, 1, payload)
		d := rb.Decoder{MaxBytes: len(body)}
		if got, err := d.Body(h, batch); err != nil || !bytes.Equal(got, body) {
			t.Errorf("window of %d KiB: error %v", 1<<exponent, err)
		}
	}
}

// TestZstdManySmallBlocks: blocks that have room for far more than the limit, but
// hold less, are decompressed all the same; unless they declare a large window.
func TestZstdManySmallBlocks(t *testing.T) {
	body := compressible(rand.New(rand.NewSource(1)), 20_000)
	payload := packZstdStream(t, body, 50)
	if _, most, err := rb.ZstdBounds(payload); err != nil || most < 10<<20 {
		t.Fatalf("the blocks have room for %d bytes, error %v; the test wants more", most, err)
	}
	h, batch := packBatch(rb.Zstd, 1, payload)
	d := rb.Decoder{MaxBytes: len(body)}
	if got, err := d.Body(h, batch); err != nil || !bytes.Equal(got, body) {
		t.Errorf("within the limit: error %v", err)
	}
	d.MaxBytes--
	_, err := d.Body(h, batch)
	mustBeTooLarge(t, err, rb.Zstd, len(body)-1, len(body))

	payload[5] = 16 << 3 // 64 MiB
	h, batch = packBatch(rb.Zstd, 1, payload)
	if _, err := d.Body(h, batch); !errors.Is(err, zstd.ErrWindowSizeExceeded) {
		t.Errorf("with a large window: error %v, want ErrWindowSizeExceeded", err)
	}
	d.MaxBytes = 64 << 20
	if got, err := d.Body(h, batch); err != nil || !bytes.Equal(got, body) {
		t.Errorf("with a large window and limit: error %v", err)
	}
}

// A bomb is a small payload that decompresses, or claims to, to very much.
type bomb struct {
	name    string
	codec   rb.Codec
	payload []byte
}

func bombs(t *testing.T) []bomb {
	t.Helper()
	gzipped := packGzip(t, make([]byte, 100<<20))
	zeros := make([]byte, 16<<20)
	lyingGzip := bytes.Clone(gzipped)
	binary.LittleEndian.PutUint32(lyingGzip[len(lyingGzip)-4:], 5)
	rle := func(header []byte, blocks int) []byte {
		return handZstd(header, slices.Repeat([]zstdBlock{{1, 128 << 10, []byte{0}}}, blocks)...)
	}
	stream := packZstdStream(t, zeros, len(zeros))
	snappyZeros := packSnappy(t, zeros)
	claim := func(n uint64, rest int) []byte {
		return append(binary.AppendUvarint(nil, n), make([]byte, rest)...)
	}
	return []bomb{
		{"gzip", rb.Gzip, gzipped},
		{"gzip that claims to be small", rb.Gzip, lyingGzip},
		{"gzip of many members", rb.Gzip, slices.Repeat(packGzip(t, zeros[:1<<20]), 16)},
		{"snappy", rb.Snappy, snappyZeros},
		{"snappy framed", rb.Snappy, slices.Concat(xerialHead, xerialBlock(snappyZeros))},
		{"snappy framed, many blocks", rb.Snappy, slices.Concat(xerialHead, slices.Repeat(xerialBlock(packSnappy(t, zeros[:1<<20])), 16))},
		{"snappy that claims as much as its size can hold", rb.Snappy, claim(20*100<<10, 100<<10)},
		{"snappy that claims 4 GiB", rb.Snappy, claim(1<<32-1, 100<<10)},
		{"lz4", rb.LZ4, packLZ4(t, zeros)},
		{"lz4 of one block", rb.LZ4, handLZ4(0x60, 0x70, zerosLZ4(4<<20))},
		{"lz4 with its content size", rb.LZ4, packLZ4(t, zeros, lz4.SizeOption(uint64(len(zeros))))},
		{"zstd with its content size", rb.Zstd, packZstd(t, zeros)},
		{"zstd without", rb.Zstd, stream},
		{"zstd without, window of 128 MiB", rb.Zstd, slices.Concat(stream[:5], []byte{17 << 3}, stream[6:])},
		{"zstd of repeated bytes", rb.Zstd, rle(windowHeader(10), 25_000)},
		{"zstd of one segment that claims 100 MB", rb.Zstd, handZstd([]byte{0xa0, 0, 0, 0x40, 6}, zstdBlock{1, 128 << 10, []byte{0}})},
		{"zstd of many frames", rb.Zstd, slices.Repeat(packZstd(t, zeros[:1<<20]), 16)},
	}
}

// TestBombs: what decompresses to far more than the limit is refused, at the cost
// of the limit. A buffer that grows is allocated anew, each time doubled up to the
// limit, so the sum of allocations stays below three times the limit.
func TestBombs(t *testing.T) {
	const limit = 600 << 10
	for _, b := range bombs(t) {
		h, batch := packBatch(b.codec, 1, b.payload)
		warm := rb.Decoder{MaxBytes: limit}
		if _, err := warm.Body(packBatch(b.codec, 1, someForm(t, b.codec))); err != nil {
			t.Fatalf("%s: %v", b.name, err)
		}
		var err error
		used := allocated(func() { _, err = warm.Body(h, batch) })
		var decompress *rb.DecompressError
		if !errors.Is(err, rb.ErrTooLarge) && !errors.As(err, &decompress) {
			t.Errorf("%s: error %v, want ErrTooLarge or a DecompressError", b.name, err)
		}
		bound := uint64(3*limit + 64<<10)
		if b.codec == rb.Zstd {
			bound += 2*rb.ZstdSlack + zstdStreamState
		}
		if used > bound {
			t.Errorf("%s: %d bytes allocated, want at most %d", b.name, used, bound)
		}
		if len(b.payload) > 150<<10 && b.codec != rb.Snappy {
			t.Errorf("%s: the payload has %d bytes: no bomb", b.name, len(b.payload))
		}
	}
}

// zstdStreamState is what a zstd stream needs besides its output: the largest
// window that a small limit lets pass, and tables.
const zstdStreamState = 8<<20 + 2<<20

func someForm(t *testing.T, codec rb.Codec) []byte {
	t.Helper()
	for _, fm := range forms() {
		if fm.codec == codec {
			return fm.pack(t, []byte("some payload"))
		}
	}
	t.Fatalf("no form of %v", codec)
	return nil
}

// allocated returns the bytes that f allocates, in sum.
func allocated(f func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

// TestBufferKeepsItsSize: bodies of the same size need no second buffer, and small
// ones no larger one.
func TestBufferKeepsItsSize(t *testing.T) {
	eachForm(t, func(t *testing.T, fm form) {
		large := packed(t, fm, 300_000)
		small := packed(t, fm, 300)
		var d rb.Decoder
		for range 2 {
			large(t, &d)
			small(t, &d)
		}
		used := allocated(func() { large(t, &d); small(t, &d); large(t, &d) })
		if used > 100_000 && !(raceDetector && fm.codec == rb.Zstd) {
			t.Errorf("%d bytes allocated for bodies that the buffer holds", used)
		}
	})
}

// packed returns a function that decodes one batch.
func packed(t *testing.T, fm form, size int) func(*testing.T, *rb.Decoder) {
	t.Helper()
	body := compressible(rand.New(rand.NewSource(1)), size)
	h, batch := packBatch(fm.codec, 1, fm.pack(t, body))
	return func(t *testing.T, d *rb.Decoder) {
		if got, err := d.Body(h, batch); err != nil || len(got) != len(body) {
			t.Fatalf("%s: %d bytes, error %v", fm.name, len(got), err)
		}
	}
}

// TestDeclaredSizeCostsNothing: where a payload tells its size, a body beyond the
// limit is refused before anything is allocated for it, and the error names it.
func TestDeclaredSizeCostsNothing(t *testing.T) {
	const size, limit = 4 << 20, 1 << 20
	zeros := make([]byte, size)
	block := zstdBlock{1, 128 << 10, []byte{0}}
	tests := []bomb{
		{"snappy", rb.Snappy, packSnappy(t, zeros)},
		{"snappy framed", rb.Snappy, packXerial(t, zeros)},
		{"lz4", rb.LZ4, packLZ4(t, zeros, lz4.SizeOption(size))},
		{"zstd", rb.Zstd, packZstd(t, zeros)},
		{"zstd of repeated bytes", rb.Zstd, handZstd(windowHeader(7), slices.Repeat([]zstdBlock{block}, size>>17)...)},
	}
	for _, tt := range tests {
		h, batch := packBatch(tt.codec, 1, tt.payload)
		var err error
		d := rb.Decoder{MaxBytes: limit}
		used := allocated(func() { _, err = d.Body(h, batch) })
		var tooLarge *rb.TooLargeError
		if !errors.As(err, &tooLarge) || tooLarge.Size != size {
			t.Errorf("%s: error %v, want a TooLargeError of %d bytes", tt.name, err, size)
		}
		if used > 4<<10 {
			t.Errorf("%s: %d bytes allocated", tt.name, used)
		}
	}
}

// TestZstdRoomIsNoMemory: what blocks could hold is not allocated, neither for a
// small body in many blocks nor for a large one behind a small limit.
func TestZstdRoomIsNoMemory(t *testing.T) {
	flushed := packZstdStream(t, compressible(rand.New(rand.NewSource(1)), 20_000), 50)
	large := packZstdStream(t, compressible(rand.New(rand.NewSource(1)), 4<<20), 4<<20)
	for _, tt := range []struct {
		name    string
		payload []byte
		limit   int
		fails   bool
	}{
		{"52 MB of room, 20 KB of content", flushed, rb.DefaultMaxBytes, false},
		{"4 MiB of room, a limit of 64 KiB", large, 64 << 10, true},
	} {
		h, batch := packBatch(rb.Zstd, 1, tt.payload)
		d := rb.Decoder{MaxBytes: tt.limit}
		var err error
		used := allocated(func() { _, err = d.Body(h, batch) })
		if (err != nil) != tt.fails {
			t.Errorf("%s: error %v, want one %v", tt.name, err, tt.fails)
		}
		if used > 3<<20 {
			t.Errorf("%s: %d bytes allocated", tt.name, used)
		}
	}
}

// TestZstdUnderstated: a frame that decompresses to more than it declares is found
// out behind its first block. The buffer has room for that block, and is not
// allocated anew with all that it holds.
func TestZstdUnderstated(t *testing.T) {
	w, err := zstd.NewWriter(nil, zstd.WithSingleSegment(false), zstd.WithEncoderCRC(false), zstd.WithEncoderConcurrency(1))
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	honest := w.EncodeAll(make([]byte, 2<<20), nil)
	lying := w.EncodeAll(compressible(rand.New(rand.NewSource(1)), 50_000), nil)
	if lying[4]>>6 != 1 {
		t.Fatalf("frame header % x has no content size of two bytes", lying[:8])
	}
	lying[6], lying[7] = 0, 0 // 256 bytes
	var d rb.Decoder
	if _, err := d.Body(packBatch(rb.Zstd, 1, w.EncodeAll(make([]byte, 2<<20+4096), nil))); err != nil {
		t.Fatal(err)
	}
	h, batch := packBatch(rb.Zstd, 1, slices.Concat(honest, lying))
	used := allocated(func() { _, err = d.Body(h, batch) })
	if !errors.Is(err, zstd.ErrFrameSizeExceeded) {
		t.Errorf("error %v, want ErrFrameSizeExceeded", err)
	}
	if used > 3*rb.ZstdSlack {
		t.Errorf("%d bytes allocated for a block of 50000", used)
	}
}
