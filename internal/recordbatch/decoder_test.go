package recordbatch_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math/rand"
	"runtime"
	"slices"
	"testing"
	"weak"

	rb "apograph/internal/recordbatch"
)

// TestEveryFormDecodes: each way in which clients compress gives the body back,
// from a decoder that is used for all of them in turn.
func TestEveryFormDecodes(t *testing.T) {
	rng := rand.New(rand.NewSource(propertySeed))
	var d rb.Decoder
	for _, size := range []int{1, 7, 100, 1 << 10, 70_000, 1 << 20, 7} {
		body := compressible(rng, size)
		for _, fm := range forms() {
			h, batch := packBatch(fm.codec, 1, fm.pack(t, body))
			got, err := d.Body(h, batch)
			if err != nil {
				t.Fatalf("%s, %d bytes: %v", fm.name, size, err)
			}
			if !bytes.Equal(got, body) {
				t.Fatalf("%s, %d bytes: body differs", fm.name, size)
			}
		}
	}
}

// TestEncoderInverse: what Encoder compresses Decoder decompresses.
func TestEncoderInverse(t *testing.T) {
	rng := rand.New(rand.NewSource(propertySeed))
	var (
		d rb.Decoder
		e rb.Encoder
	)
	for _, size := range []int{0, 1, 100, 64 << 10, 64<<10 + 1, 300_000, 3} {
		for codec := rb.None; codec <= rb.Zstd; codec++ {
			for _, body := range [][]byte{compressible(rng, size), incompressible(rng, size)} {
				payload, err := e.Body([]byte("before"), codec, body)
				if err != nil || !bytes.HasPrefix(payload, []byte("before")) {
					t.Fatalf("%v, %d bytes: %v", codec, size, err)
				}
				h, batch := packBatch(codec, 1, payload[len("before"):])
				got, err := d.Body(h, batch)
				if err != nil || !bytes.Equal(got, body) {
					t.Fatalf("%v, %d bytes: body differs, error %v", codec, size, err)
				}
				if slack := 200 + size/50; len(payload) > size+slack {
					t.Errorf("%v, %d bytes: payload of %d", codec, size, len(payload))
				}
			}
		}
	}
}

func compressible(rng *rand.Rand, n int) []byte {
	var b []byte
	for len(b) < n {
		b = append(b, bytes.Repeat([]byte{byte(rng.Intn(256))}, 1+rng.Intn(30))...)
		b = append(b, "some words that come again "...)
	}
	return b[:n]
}

func incompressible(rng *rand.Rand, n int) []byte {
	b := make([]byte, n)
	rng.Read(b)
	return b
}

func TestBodyOfNoneIsTheBatchs(t *testing.T) {
	h, batch := packBatch(rb.None, 1, []byte("payload"))
	d := rb.Decoder{MaxBytes: 1}
	body, err := d.Body(h, batch)
	if err != nil || len(body) != 7 || &body[0] != &batch[61] {
		t.Errorf("body %q, error %v, want the batch's own bytes", body, err)
	}
}

func TestBodyOfEmptyBatch(t *testing.T) {
	for codec := rb.None; codec <= 7; codec++ {
		h := rb.Header{Magic: 2, Attributes: int16(codec), LastOffsetDelta: 5}
		body, err := new(rb.Decoder).Body(h, h.Encode(nil, nil))
		if err != nil || len(body) != 0 {
			t.Errorf("%v: body %q, error %v, want an empty body", codec, body, err)
		}
	}
}

func TestBodyRefuses(t *testing.T) {
	var d rb.Decoder
	for codec := rb.Codec(5); codec <= 7; codec++ {
		h, batch := packBatch(codec, 1, []byte("payload"))
		if _, err := d.Body(h, batch); !errors.Is(err, rb.ErrUnknownCodec) {
			t.Errorf("%v: error = %v, want ErrUnknownCodec", codec, err)
		}
	}
	if _, err := d.Body(rb.Header{Count: 1}, make([]byte, 60)); !isFormatError(err) {
		t.Errorf("batch cut in its header: error = %v, want a FormatError", err)
	}
	for codec := rb.Gzip; codec <= rb.Zstd; codec++ {
		h, batch := packBatch(codec, 1, []byte("this is no payload of any codec, whatever the header says"))
		var decompress *rb.DecompressError
		if _, err := d.Body(h, batch); !errors.As(err, &decompress) || decompress.Codec != codec {
			t.Errorf("%v: error = %v, want a DecompressError of that codec", codec, err)
		}
	}
}

// A payloadCase is a payload made by hand, and what the body must then be.
type payloadCase struct {
	name    string
	payload []byte
	want    string // "" for an error
}

// checkPayloads decodes each case with a decoder that has been used before.
func checkPayloads(t *testing.T, codec rb.Codec, cases []payloadCase) {
	t.Helper()
	var d rb.Decoder
	for _, tt := range cases {
		h, batch := packBatch(codec, 1, tt.payload)
		got, err := d.Body(h, batch)
		var decompress *rb.DecompressError
		switch {
		case tt.want != "" && (err != nil || string(got) != tt.want):
			t.Errorf("%s: body %q, error %v, want %q", tt.name, got, err, tt.want)
		case tt.want == "" && !errors.As(err, &decompress):
			t.Errorf("%s: body %q, error %v, want a DecompressError", tt.name, got, err)
		}
	}
}

// TestGzipAsJava: java.util.zip.GZIPInputStream reads members as long as there is
// a member's header.
func TestGzipAsJava(t *testing.T) {
	a, b := packGzip(t, []byte("first ")), packGzip(t, []byte("second"))
	flip := func(payload []byte, at int) []byte {
		payload = bytes.Clone(payload)
		payload[len(payload)+at] ^= 1
		return payload
	}
	checkPayloads(t, rb.Gzip, []payloadCase{
		{"one member", a, "first "},
		{"two members", slices.Concat(a, b), "first second"},
		{"two members and padding", slices.Concat(a, b, make([]byte, 30)), "first second"},
		{"padding shorter than a header", slices.Concat(a, []byte{0x1f, 0x8b, 8}), "first "},
		{"no members", []byte{}, ""},
		{"padding alone", make([]byte, 30), ""},
		{"second member cut off", slices.Concat(a, b[:len(b)-1]), ""},
		{"second member's size wrong", slices.Concat(a, flip(b, -1)), ""},
		{"checksum wrong", flip(a, -8), ""},
		{"size wrong", flip(a, -4), ""},
		{"trailer missing", a[:len(a)-8], ""},
		{"header alone", a[:10], ""},
	})
}

// TestSnappyAsJava: org.xerial.snappy.SnappyInputStream.
func TestSnappyAsJava(t *testing.T) {
	block := func(s string) []byte { return xerialBlock(packSnappy(t, []byte(s))) }
	versionZero := bytes.Clone(xerialHead)
	versionZero[11] = 0
	falseMagic := bytes.Clone(xerialHead)
	falseMagic[7] = 1
	lying := packSnappy(t, []byte("text"))
	lying[0]++
	checkPayloads(t, rb.Snappy, []payloadCase{
		{"raw", packSnappy(t, []byte("text")), "text"},
		{"raw, shorter than a framing's header", packSnappy(t, []byte("t")), "t"},
		{"framed", slices.Concat(xerialHead, block("one "), block("two")), "one two"},
		{"framed twice", slices.Concat(xerialHead, block("one "), xerialHead, block("two")), "one two"},
		{"two headers in a row", slices.Concat(xerialHead, xerialHead, block("one")), "one"},
		{"three bytes behind", slices.Concat(xerialHead, block("one"), []byte{0, 0, 0}), "one"},
		{"version 0 in the first header is not looked at", slices.Concat(versionZero, block("one")), "one"},
		{"version 0 in a later header", slices.Concat(xerialHead, block("one"), versionZero, block("two")), ""},
		{"false magic in a later header", slices.Concat(xerialHead, block("one"), falseMagic, block("two")), ""},
		{"later header cut off", slices.Concat(xerialHead, block("one"), xerialHead[:15]), ""},
		{"nothing", []byte{}, ""},
		{"block longer than the payload", slices.Concat(xerialHead, block("one")[:8]), ""},
		{"negative block length", slices.Concat(xerialHead, []byte{0x80, 0, 0, 0}), ""},
		{"empty block", slices.Concat(xerialHead, []byte{0, 0, 0, 0}), ""},
		{"second block broken", slices.Concat(xerialHead, block("one"), xerialBlock(lying)), ""},
		{"declared length wrong", lying, ""},
		{"declared length beyond what a block can hold", []byte{0xff, 0xff, 0xff, 0xff, 0x0f, 0, 'x'}, ""},
		{"declared length of six bytes", []byte{0xff, 0xff, 0xff, 0xff, 0xff, 1, 'x'}, ""},
	})
}

// TestLZ4AsJava: Lz4BlockInputStream, but that checksums and sizes are enforced.
func TestLZ4AsJava(t *testing.T) {
	text := func(s string) []byte { return lz4Stored([]byte(s)...) }
	sum := func(b []byte) []byte { return binary.LittleEndian.AppendUint32(nil, rb.XXH32(b)) }
	sized := func(size byte) []byte {
		out := []byte{0x04, 0x22, 0x4d, 0x18, 0x68, 0x40, size, 0, 0, 0, 0, 0, 0, 0}
		out = append(out, byte(rb.XXH32(out[4:])>>8))
		return slices.Concat(out, text("text"), make([]byte, 4))
	}
	plain := handLZ4(0x60, 0x40, text("text"))
	wrongHead := bytes.Clone(plain)
	wrongHead[6]++
	// Four literals, then a match of eight that overlaps itself, then a literal.
	compressed := lz4Compressed(0x44, 'a', 'b', 'c', 'd', 4, 0, 0x10, '!')
	linked := lz4Compressed(0x04, 4, 0, 0x10, '?') // a match into the block before
	checkPayloads(t, rb.LZ4, []payloadCase{
		{"stored block", plain, "text"},
		{"compressed block", handLZ4(0x60, 0x40, compressed), "abcdabcdabcd!"},
		{"two blocks", handLZ4(0x60, 0x40, text("one "), text("two")), "one two"},
		{"largest block size", handLZ4(0x60, 0x70, text("text")), "text"},
		{"second frame is not read", slices.Concat(plain, plain), "text"},
		{"bytes behind are not read", append(bytes.Clone(plain), 1, 2, 3), "text"},
		{"an empty stored block ends it", slices.Concat(handLZ4(0x60, 0x40, text("text"), []byte{0, 0, 0, 0x80}), text("more")), "text"},
		{"linked blocks", handLZ4(0x40, 0x40, text("wxyz"), linked), "wxyzwxyzwxyz?"},
		{"a match into the block before, independent", handLZ4(0x60, 0x40, text("wxyz"), linked), ""},
		{"block checksum", handLZ4(0x70, 0x40, text("text"), sum([]byte("text"))), "text"},
		{"block checksum wrong", handLZ4(0x70, 0x40, text("text"), sum([]byte("Text"))), ""},
		{"block checksum missing", handLZ4(0x70, 0x40, text("text")), ""},
		{"content checksum", append(handLZ4(0x64, 0x40, text("te"), text("xt")), sum([]byte("text"))...), "text"},
		{"content checksum wrong", append(handLZ4(0x64, 0x40, text("text")), sum([]byte("Text"))...), ""},
		{"content checksum missing", handLZ4(0x64, 0x40, text("text")), ""},
		{"content size", sized(4), "text"},
		{"content size too small", sized(3), ""},
		{"content size too large", sized(5), ""},
		{"header checksum wrong", wrongHead, ""},
		{"magic of a skippable frame", append([]byte{0x50, 0x2a, 0x4d, 0x18, 0, 0, 0, 0}, plain...), ""},
		{"legacy magic", append([]byte{0x02, 0x21, 0x4c, 0x18}, plain[4:]...), ""},
		{"dictionary", handLZ4(0x61, 0x40, text("text")), ""},
		{"reserved flag", handLZ4(0x62, 0x40, text("text")), ""},
		{"version 0", handLZ4(0x20, 0x40, text("text")), ""},
		{"version 2", handLZ4(0xa0, 0x40, text("text")), ""},
		{"block size 3", handLZ4(0x60, 0x30, text("text")), ""},
		{"reserved block size bits", handLZ4(0x60, 0xc0, text("text")), ""},
		{"reserved low bits", handLZ4(0x60, 0x41, text("text")), ""},
		{"end mark missing", plain[:len(plain)-4], ""},
		{"block cut off", plain[:len(plain)-5], ""},
		{"header cut off", plain[:6], ""},
		{"content size cut off", sized(4)[:13], ""},
		{"nothing", []byte{}, ""},
		{"block larger than the frame allows", handLZ4(0x60, 0x40, lz4Stored(make([]byte, 65537)...)), ""},
		{"block decompresses to as much as the frame allows", handLZ4(0x60, 0x40, zerosLZ4(65536)), string(make([]byte, 65536))},
		{"block decompresses to more than the frame allows", handLZ4(0x60, 0x40, zerosLZ4(65537)), ""},
		{"match at distance 0", handLZ4(0x60, 0x40, lz4Compressed(0x14, 'a', 0, 0, 0x10, 'b')), ""},
		{"match before the start", handLZ4(0x60, 0x40, lz4Compressed(0x14, 'a', 9, 0, 0x10, 'b')), ""},
	})
}

// zerosLZ4 is one compressed block of n zero bytes, as small as the format allows.
func zerosLZ4(n int) []byte {
	block := []byte{0x1f, 0, 1, 0} // a literal, a match at distance 1
	match := n - 1 - 5 - 19
	for ; match >= 255; match -= 255 {
		block = append(block, 255)
	}
	block = append(block, byte(match), 0x50, 0, 0, 0, 0, 0)
	return lz4Compressed(block...)
}

// TestZstdAsJava: com.github.luben.zstd.ZstdInputStream reads frame after frame.
func TestZstdAsJava(t *testing.T) {
	raw := func(s string) zstdBlock { return zstdBlock{0, len(s), []byte(s)} }
	rle := func(c byte, n int) zstdBlock { return zstdBlock{1, n, []byte{c}} }
	small := windowHeader(0)
	skippable := []byte{0x5e, 0x2a, 0x4d, 0x18, 3, 0, 0, 0, 1, 2, 3}
	checked := packZstd(t, []byte("text")) // this writer adds a checksum
	wrongSum := bytes.Clone(checked)
	wrongSum[len(wrongSum)-1] ^= 1
	checkPayloads(t, rb.Zstd, []payloadCase{
		{"raw block", handZstd(small, raw("text")), "text"},
		{"repeated byte", handZstd(small, rle('x', 5)), "xxxxx"},
		{"two blocks", handZstd(small, raw("one "), raw("two")), "one two"},
		{"two frames", slices.Concat(handZstd(small, raw("one ")), handZstd(small, raw("two"))), "one two"},
		{"skippable frames around", slices.Concat(skippable, checked, skippable), "text"},
		{"content size", handZstd([]byte{0x20, 4}, raw("text")), "text"},
		{"window of 128 MiB for four bytes", handZstd(windowHeader(17), raw("text")), "text"},
		{"window beyond 128 MiB", handZstd(windowHeader(18), raw("text")), ""},
		{"checksum", checked, "text"},
		{"checksum wrong", wrongSum, ""},
		{"checksum cut off", checked[:len(checked)-1], ""},
		{"content size too small", handZstd([]byte{0x20, 3}, raw("text")), ""},
		{"content size too large", handZstd([]byte{0x20, 5}, raw("text")), ""},
		{"content size beyond any block", handZstd([]byte{0xe0, 0, 0, 0, 0, 0, 0, 0, 0x7f}, raw("text")), ""},
		{"reserved bit of the header", handZstd([]byte{0x28, 4}, raw("text")), ""},
		{"dictionary", handZstd([]byte{0x21, 9, 4}, raw("text")), ""},
		{"reserved block kind", handZstd(small, zstdBlock{3, 1, []byte{0}}), ""},
		{"empty compressed block", handZstd(small, zstdBlock{2, 0, nil}), ""},
		{"block larger than the window", handZstd(small, rle('x', 1025)), ""},
		{"block larger than any", handZstd(windowHeader(10), rle('x', 128<<10+1)), ""},
		{"block cut off", handZstd(small, raw("text"))[:12], ""},
		{"last block missing", handZstd(small, raw("text"))[:6], ""},
		{"header cut off", []byte{0x28, 0xb5, 0x2f, 0xfd, 0xe0, 0, 0, 0}, ""},
		{"bytes behind", append(handZstd(small, raw("text")), 1), ""},
		{"another frame's magic behind", append(handZstd(small, raw("text")), 0x28, 0xb5, 0x2f, 0xfd), ""},
		{"skippable frame cut off", append(bytes.Clone(checked), skippable[:10]...), ""},
		{"unknown magic", append([]byte{0x27}, checked[1:]...), ""},
	})
}

// TestDecoderKeepsNoBatch: a decoder that is kept must not keep the batches that
// it has read.
func TestDecoderKeepsNoBatch(t *testing.T) {
	eachForm(t, func(t *testing.T, fm form) {
		var d rb.Decoder
		batch := decodeAndForget(t, &d, fm)
		runtime.GC()
		if batch.Value() != nil {
			t.Error("the batch is still reachable")
		}
		runtime.KeepAlive(&d)
	})
}

//go:noinline
func decodeAndForget(t *testing.T, d *rb.Decoder, fm form) weak.Pointer[byte] {
	t.Helper()
	h, batch := packBatch(fm.codec, 1, fm.pack(t, compressible(rand.New(rand.NewSource(1)), 100_000)))
	if _, err := d.Body(h, batch); err != nil {
		t.Fatal(err)
	}
	return weak.Make(&batch[0])
}
