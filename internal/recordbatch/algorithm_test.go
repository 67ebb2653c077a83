package recordbatch_test

import (
	"encoding/binary"
	"math/bits"
	"math/rand"
	"slices"
	"testing"

	"github.com/pierrec/lz4/v4"

	rb "apograph/internal/recordbatch"
)

func TestXXH32(t *testing.T) {
	// Published values of the reference implementation with seed 0.
	known := map[string]uint32{
		"":    0x02cc5d05,
		"a":   0x550d7456,
		"abc": 0x32d153ff,
		"Nobody inspects the spammish repetition": 0xe2293b2f,
	}
	for text, want := range known {
		if got := rb.XXH32([]byte(text)); got != want {
			t.Errorf("XXH32(%q) = %08x, want %08x", text, got, want)
		}
	}
	rng := rand.New(rand.NewSource(propertySeed))
	data := incompressible(rng, 200)
	for n := range len(data) + 1 {
		if got, want := rb.XXH32(data[:n]), slowXXH32(data[:n]); got != want {
			t.Fatalf("XXH32 of %d bytes = %08x, want %08x", n, got, want)
		}
	}
}

// slowXXH32 follows the steps of the xxHash specification for XXH32, seed 0.
func slowXXH32(data []byte) uint32 {
	const p1, p2, p3, p4, p5 uint32 = 2654435761, 2246822519, 3266489917, 668265263, 374761393
	rest, acc := data, p5
	if len(data) >= 16 {
		first, last := p1, p1
		lanes := []uint32{first + p2, p2, 0, 0 - last}
		for len(rest) >= 16 {
			for i := range lanes {
				lane := binary.LittleEndian.Uint32(rest[4*i:])
				lanes[i] = bits.RotateLeft32(lanes[i]+lane*p2, 13) * p1
			}
			rest = rest[16:]
		}
		acc = 0
		for i, rotation := range []int{1, 7, 12, 18} {
			acc += bits.RotateLeft32(lanes[i], rotation)
		}
	}
	acc += uint32(len(data))
	for len(rest) >= 4 {
		acc += binary.LittleEndian.Uint32(rest) * p3
		acc = bits.RotateLeft32(acc, 17) * p4
		rest = rest[4:]
	}
	for _, b := range rest {
		acc += uint32(b) * p5
		acc = bits.RotateLeft32(acc, 11) * p1
	}
	acc ^= acc >> 15
	acc *= p2
	acc ^= acc >> 13
	acc *= p3
	return acc ^ acc>>16
}

// TestLZ4BlockLen: the size read from a block's sequences is the size that
// decompressing gives, for honest blocks and for damaged ones that still decompress.
func TestLZ4BlockLen(t *testing.T) {
	rng := rand.New(rand.NewSource(propertySeed))
	var c lz4.Compressor
	out := make([]byte, 1<<20)
	decoded := 0
	for range 1500 {
		content := compressible(rng, rng.Intn(2000))
		if rng.Intn(2) == 0 {
			content = make([]byte, rng.Intn(100_000))
		}
		block := make([]byte, lz4.CompressBlockBound(len(content)))
		n, err := c.CompressBlock(content, block)
		if err != nil {
			t.Fatal(err)
		}
		block = block[:n]
		if size, ok := rb.LZ4BlockLen(block); !ok || size != len(content) {
			t.Fatalf("block of %d bytes: %d, %v", len(content), size, ok)
		}
		if len(block) == 0 {
			continue
		}
		for range 3 {
			block[rng.Intn(len(block))] ^= byte(1 << rng.Intn(8))
		}
		if n, err = lz4.UncompressBlock(block, out); err != nil {
			continue
		}
		decoded++
		if size, ok := rb.LZ4BlockLen(block); !ok || size != n {
			t.Fatalf("damaged block % x: %d, %v, but it decompresses to %d", block, size, ok, n)
		}
	}
	if decoded < 100 {
		t.Errorf("%d damaged blocks decompressed: too few were compared", decoded)
	}
}

// TestZstdBounds: the size always lies within the bounds, and they meet where the
// frame declares its size.
func TestZstdBounds(t *testing.T) {
	rng := rand.New(rand.NewSource(propertySeed))
	for range 60 {
		body := compressible(rng, rng.Intn(400_000))
		least, most, err := rb.ZstdBounds(packZstd(t, body))
		if err != nil || least != uint64(len(body)) || most != uint64(len(body)) {
			t.Fatalf("%d bytes, declared: bounds %d, %d, error %v", len(body), least, most, err)
		}
		least, most, err = rb.ZstdBounds(packZstdStream(t, body, 1+rng.Intn(100_000)))
		if err != nil || least > uint64(len(body)) || most < uint64(len(body)) {
			t.Fatalf("%d bytes, streamed: bounds %d, %d, error %v", len(body), least, most, err)
		}
	}
}

// TestZstdBoundsOfHandmade: bounds that can be counted, and frames that have none.
func TestZstdBoundsOfHandmade(t *testing.T) {
	raw := func(n int) zstdBlock { return zstdBlock{0, n, make([]byte, n)} }
	rle := func(n int) zstdBlock { return zstdBlock{1, n, []byte{0}} }
	packed := zstdBlock{2, 2, []byte{0, 0}}
	skippable := []byte{0x50, 0x2a, 0x4d, 0x18, 1, 0, 0, 0, 9}
	tests := []struct {
		name        string
		payload     []byte
		least, most uint64
		broken      bool
	}{
		{name: "nothing"},
		{name: "skippable frame", payload: skippable},
		{name: "raw and repeated", payload: handZstd(windowHeader(0), raw(10), rle(1000)), least: 1010, most: 1010},
		{name: "compressed, small window", payload: handZstd(windowHeader(0), packed, raw(1)), least: 1, most: 1025},
		{name: "compressed, window of one and a half", payload: handZstd([]byte{0, 4}, packed), most: 1536},
		{name: "compressed, large window", payload: handZstd(windowHeader(10), packed, packed), most: 256 << 10},
		{name: "declared in one byte", payload: handZstd([]byte{0x20, 7}, packed), least: 7, most: 7},
		{name: "declared in two", payload: handZstd([]byte{0x60, 1, 1}, packed), least: 513, most: 513},
		{name: "declared in four", payload: handZstd([]byte{0x80, 7 << 3, 0, 0, 1, 0}, packed), least: 65536, most: 65536},
		{name: "declared in eight", payload: handZstd([]byte{0xc0, 7 << 3, 9, 0, 0, 0, 0, 0, 0, 0}, packed), least: 9, most: 9},
		{name: "two frames and a skippable one", payload: slices.Concat(handZstd(windowHeader(0), raw(3)), skippable, handZstd([]byte{0x20, 7}, packed)), least: 10, most: 10},
		{name: "raw block larger than the window", payload: handZstd(windowHeader(0), raw(1025)), broken: true},
		{name: "compressed block larger than the segment", payload: handZstd([]byte{0x60, 44, 0}, zstdBlock{2, 1025, make([]byte, 1025)}), broken: true},
		{name: "repeated block larger than any", payload: handZstd(windowHeader(10), rle(128<<10+1)), broken: true},
		{name: "declared less than there is", payload: handZstd([]byte{0x20, 7}, raw(8)), broken: true},
		{name: "declared more than fits", payload: handZstd([]byte{0x80, 0, 0, 0, 1, 0}, packed), broken: true},
		{name: "reserved block kind", payload: handZstd(windowHeader(0), zstdBlock{3, 1, []byte{0}}), broken: true},
		{name: "checksum missing", payload: handZstd([]byte{4, 0}, raw(3)), broken: true},
	}
	for _, tt := range tests {
		least, most, err := rb.ZstdBounds(tt.payload)
		if (err != nil) != tt.broken {
			t.Errorf("%s: error %v, want one %v", tt.name, err, tt.broken)
		}
		if err == nil && (least != tt.least || most != tt.most) {
			t.Errorf("%s: bounds %d, %d, want %d, %d", tt.name, least, most, tt.least, tt.most)
		}
	}
}
