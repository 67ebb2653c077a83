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

// A rawPath does with a chunk all that the copier does between the fetch and the
// books, but for the requests themselves: parse, check, decompress, walk, hash,
// queue, patch, and take the answer. Returned are the units booked.
type rawPath struct {
	asm *assembler
	win *window
}

func newRawPath() *rawPath { return &rawPath{newTestAssembler(), newWindow(5, 0, 0)} }

func (p *rawPath) copy(tb testing.TB, data []byte) (units int) {
	tb.Helper()
	p.asm.pos = 0
	c := &chunk{data: data}
	for {
		u, err := p.asm.next(c)
		if err != nil {
			tb.Fatal(err)
		}
		if u == nil {
			return units
		}
		p.win.add(u)
		sent := p.win.next()
		recordbatch.Patch(sent.batch, 4711, 0, sent.sequence)
		p.win.answered(sent, answer{outcome: appended, base: p.win.target})
		for _, done := range p.win.retired() {
			binary.BigEndian.PutUint64(done.batch, uint64(done.entry.Source.Start)) // as it was fetched
			done.release()
			units++
		}
	}
}

// BenchmarkPass is the raw path: batches that pass as they are.
func BenchmarkPass(b *testing.B) {
	for _, codec := range []recordbatch.Codec{recordbatch.None, recordbatch.Gzip, recordbatch.Snappy, recordbatch.LZ4, recordbatch.Zstd} {
		for _, record := range []int{100, 1 << 10} {
			body := 64 << 10
			if codec == recordbatch.None {
				body = farBatch + 1<<16 // below that they are joined
			}
			b.Run(fmt.Sprintf("%v/record=%d", codec, record), func(b *testing.B) { benchPath(b, codec, record, body, benchBatches) })
		}
	}
}

// BenchmarkJoin is the path of small batches, which are written anew as large ones.
func BenchmarkJoin(b *testing.B) {
	for _, codec := range []recordbatch.Codec{recordbatch.None, recordbatch.LZ4} {
		for _, body := range []int{1 << 10, 4 << 10} {
			b.Run(fmt.Sprintf("%v/batch=%d", codec, body), func(b *testing.B) { benchPath(b, codec, 1<<10, body, -1) })
		}
	}
}

// benchPath copies a chunk again and again. Units is how many come of it, -1 fewer
// than batches.
func benchPath(b *testing.B, codec recordbatch.Codec, record, body, units int) {
	data, payload := benchChunk(b, codec, record, body)
	b.SetBytes(int64(payload))
	b.ReportAllocs()
	p := newRawPath()
	for b.Loop() {
		if got := p.copy(b, data); got != units && (units >= 0 || got >= benchBatches) {
			b.Fatalf("%d units of %d batches", got, benchBatches)
		}
	}
}

// TestAllocationsOfRawPath holds the raw path to what it may allocate for a batch,
// however many records that has: the unit, and three slices that it goes through.
func TestAllocationsOfRawPath(t *testing.T) {
	const most = 4
	for _, record := range []int{100, 1 << 10} {
		data, _ := benchChunk(t, recordbatch.LZ4, record, 64<<10)
		p := newRawPath()
		all := testing.AllocsPerRun(20, func() {
			if got := p.copy(t, data); got != benchBatches {
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
