package replicate

import (
	"encoding/binary"
	"fmt"
	"testing"

	"apograph/bench/workload"
	"apograph/internal/recordbatch"
)

// benchBatches is how many batches a fetched chunk of a benchmark has.
const benchBatches = 32

// benchChunk returns dense batches, one behind the other, of records of some size
// and of bodies of at most some bytes, and how many bytes of keys and values there
// are.
func benchChunk(tb testing.TB, codec recordbatch.Codec, record, body int) (data []byte, payload int) {
	tb.Helper()
	batches, err := workload.Shape{RecordBytes: record, BatchBytes: body, Codec: codec, Different: benchBatches}.Batches(1, 1000)
	if err != nil {
		tb.Fatal(err)
	}
	base := int64(0)
	for _, b := range batches {
		h, err := recordbatch.Parse(b.Bytes)
		if err != nil {
			tb.Fatal(err)
		}
		h.BaseOffset = base
		base = h.NextOffset()
		data = h.Encode(data, b.Bytes[recordbatch.HeaderSize:])
		payload += b.Payload
	}
	return data, payload
}

// A rawPath does with a chunk, again and again, all that the copier does between the
// fetch and the books, but for the requests themselves: parse, check, decompress,
// walk, hash, queue, patch, and take the answer.
type rawPath struct {
	asm   *assembler
	win   *window
	chunk *chunk
}

func newRawPath(data []byte) *rawPath {
	return &rawPath{newTestAssembler(), newWindow(5, 0, 0), &chunk{data: data}}
}

// one copies one unit; false at the chunk's end, behind which it begins again.
func (p *rawPath) one(tb testing.TB) bool {
	u, err := p.asm.next(p.chunk)
	if err != nil {
		tb.Fatal(err)
	}
	if u == nil {
		p.asm.pos, p.chunk.at = 0, 0
		return false
	}
	p.win.add(u)
	sent := p.win.next()
	recordbatch.Patch(sent.batch, 4711, 0, sent.sequence)
	p.win.answered(sent, answer{outcome: appended, base: p.win.target})
	for _, done := range p.win.retired() {
		binary.BigEndian.PutUint64(done.batch, uint64(done.entry.Source.Start)) // as it was fetched
		done.release()
	}
	return true
}

// all copies the whole chunk, and returns how many units came of it.
func (p *rawPath) all(tb testing.TB) (units int) {
	for p.one(tb) {
		units++
	}
	return units
}

// BenchmarkPass is the raw path of one batch, which passes as it is.
func BenchmarkPass(b *testing.B) {
	for _, codec := range []recordbatch.Codec{recordbatch.None, recordbatch.Gzip, recordbatch.Snappy, recordbatch.LZ4, recordbatch.Zstd} {
		for _, record := range []int{100, 1 << 10} {
			body := 64 << 10
			if codec == recordbatch.None {
				body = wideBatch + 1<<16 // below that they are joined
			}
			b.Run(fmt.Sprintf("%v/record=%d", codec, record), func(b *testing.B) { benchPath(b, codec, record, body, false) })
		}
	}
}

// BenchmarkJoin is the path of small batches, of which one large one is made.
func BenchmarkJoin(b *testing.B) {
	for _, codec := range []recordbatch.Codec{recordbatch.None, recordbatch.LZ4} {
		for _, body := range []int{1 << 10, 4 << 10} {
			b.Run(fmt.Sprintf("%v/batch=%d", codec, body), func(b *testing.B) { benchPath(b, codec, 1<<10, body, true) })
		}
	}
}

// benchPath copies one unit after the other. A chunk makes so many of them; joined
// batches make fewer than there are.
func benchPath(b *testing.B, codec recordbatch.Codec, record, body int, joined bool) {
	data, payload := benchChunk(b, codec, record, body)
	p := newRawPath(data)
	units := p.all(b)
	if joined != (units < benchBatches) {
		b.Fatalf("%d units of %d batches", units, benchBatches)
	}
	b.SetBytes(int64(payload / units))
	b.ReportAllocs()
	for b.Loop() {
		if !p.one(b) {
			p.one(b)
		}
	}
}

// TestAllocationsOfRawPath holds the raw path to what it may allocate for a batch,
// however many records that has: the unit, and three slices that it goes through.
func TestAllocationsOfRawPath(t *testing.T) {
	const most = 4
	for _, record := range []int{100, 1 << 10} {
		data, _ := benchChunk(t, recordbatch.LZ4, record, 64<<10)
		p := newRawPath(data)
		all := testing.AllocsPerRun(20, func() {
			if got := p.all(t); got != benchBatches {
				t.Fatalf("%d units of %d batches", got, benchBatches)
			}
		})
		each := all / benchBatches
		t.Logf("records of %d bytes: %.2f allocations for each batch", record, each)
		if each > most {
			t.Errorf("records of %d bytes: %.2f allocations for each batch, at most %d are allowed", record, each, most)
		}
	}
}
