package verify

import (
	"math/bits"
	"sync"
	"sync/atomic"

	"github.com/twmb/franz-go/pkg/kgo"
)

const (
	// inMemory is about how many bytes of fetched records all consumers of a run
	// hold: each has one fetch that is being looked at and the next one.
	inMemory = 48 << 20

	// recordCost is what a record costs beside its own bytes: a kgo.Record, and
	// the pointer to it.
	recordCost = 176

	// maxFetchBytes is what one fetch asks for at most.
	maxFetchBytes = 4 << 20

	// maxSpare bounds what is kept to be used again, in bytes of each kind.
	maxSpare = 32 << 20
)

// buffers is memory into which the consumers of a run decode, over and over:
// batches that were decompressed, and records. What a record holds is valid until
// it is recycled. Safe for concurrent use.
type buffers struct {
	mu      sync.Mutex // guards what follows
	bytes   shelf[byte]
	records shelf[kgo.Record]
}

// GetRecords returns a slice with room for n records.
func (b *buffers) GetRecords(n int) []kgo.Record {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.records.get(n)
}

// PutRecords takes back a slice of GetRecords, its records zeroed.
func (b *buffers) PutRecords(s []kgo.Record) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.records.put(s, maxSpare/recordCost)
}

// A shelf keeps slices by size, four sizes to each power of two, so that none is
// more than a quarter too large.
type shelf[E any] struct {
	slices [][][]E // by size
	held   int     // elements of all
}

// get returns a slice with room for n elements.
func (s *shelf[E]) get(n int) []E {
	size := sizeFor(n)
	if size >= len(s.slices) || len(s.slices[size]) == 0 {
		return make([]E, 0, roomOf(size))
	}
	last := len(s.slices[size]) - 1
	found := s.slices[size][last]
	s.slices[size][last] = nil
	s.slices[size] = s.slices[size][:last]
	s.held -= cap(found)
	return found[:0]
}

// put keeps a slice, unless that makes more than limit elements of all.
func (s *shelf[E]) put(slice []E, limit int) {
	size := sizeFor(cap(slice) + 1)
	if size == 0 || s.held+cap(slice) > limit {
		return
	}
	size-- // the largest whose room it has
	for size >= len(s.slices) {
		s.slices = append(s.slices, nil)
	}
	s.slices[size] = append(s.slices[size], slice)
	s.held += cap(slice)
}

// sizeFor returns the smallest size that has room for n elements.
func sizeFor(n int) int {
	if n <= 4 {
		return 0
	}
	shift := bits.Len(uint(n-1)) - 3
	return 4*shift + int(uint(n-1)>>shift) - 3
}

// roomOf returns for how many elements a size has room.
func roomOf(size int) int { return (4 + size%4) << (size / 4) }

// A dilation is what decoding makes of the bytes that one consumer fetches. Safe
// for concurrent use.
type dilation struct {
	buffers *buffers

	fetched, decoded, weight atomic.Int64 // of late: bytes of batches, decompressed, with what their records cost
}

// OnFetchBatchRead takes a batch into account.
func (d *dilation) OnFetchBatchRead(_ kgo.BrokerMetadata, _ string, _ int32, m kgo.FetchBatchMetrics) {
	fetched := d.fetched.Add(int64(m.CompressedBytes))
	d.decoded.Add(int64(m.UncompressedBytes))
	d.weight.Add(int64(m.UncompressedBytes) + recordCost*int64(m.NumRecords))
	if fetched > maxFetchBytes { // what was long ago counts less and less
		for _, n := range []*atomic.Int64{&d.fetched, &d.decoded, &d.weight} {
			n.Store(n.Load() / 2)
		}
	}
}

// GetDecompressBytes returns a slice in which there is most likely room for what a
// batch decompresses to. That it is as much as for others of late is a guess: most
// codecs do not tell. So it is bounded; what has no room in it grows.
func (d *dilation) GetDecompressBytes(compressed []byte, _ kgo.CompressionCodecType) []byte {
	n := int64(len(compressed))
	if fetched := d.fetched.Load(); fetched > 0 {
		n = n * d.decoded.Load() / fetched
	}
	n += n/8 + 1024 // bytes.Buffer grows unless 512 bytes are left over at the end
	d.buffers.mu.Lock()
	defer d.buffers.mu.Unlock()
	return d.buffers.bytes.get(int(max(int64(len(compressed)), min(n, maxFetchBytes))))
}

// PutDecompressBytes takes back a slice into which a batch was decompressed.
func (d *dilation) PutDecompressBytes(b []byte) {
	d.buffers.mu.Lock()
	defer d.buffers.mu.Unlock()
	d.buffers.bytes.put(b, maxSpare)
}

// fetchBytes returns how many bytes to fetch for records that take up no more than
// some memory, and at most limit.
func (d *dilation) fetchBytes(memory, limit int32) int32 {
	fetched, weight := d.fetched.Load(), d.weight.Load()
	if fetched <= 0 || weight <= 0 {
		return min(fetchBytes, limit)
	}
	return int32(min(max(int64(memory)*fetched/weight, leastFetchBytes), int64(limit)))
}
