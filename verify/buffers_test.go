package verify

import (
	"context"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// TestSizes: the size for n elements is the smallest that has room for them, and
// none is much too large.
func TestSizes(t *testing.T) {
	size := 0
	for n := 1; n <= 1<<20; n++ {
		if roomOf(size) < n {
			size++
		}
		if got := sizeFor(n); got != size || roomOf(size) < n {
			t.Fatalf("%d elements go to size %d, which has room for %d; want size %d", n, got, roomOf(got), size)
		}
		if room := roomOf(size); n > 4 && room > n+n/4+1 {
			t.Fatalf("%d elements get room for %d", n, room)
		}
	}
}

// TestShelf: what was put is got again where there is room enough, whatever its
// capacity, and no more is kept than may be.
func TestShelf(t *testing.T) {
	var s shelf[byte]
	odd := make([]byte, 100, 1001)
	s.put(odd, 1001)
	if got := s.get(1001); cap(got) < 1001 || &got[:1][0] == &odd[0] {
		t.Fatalf("got room for %d, for 1001 bytes; 1001 is between two sizes, and the slice counts as one of the lower", cap(got))
	}
	if got := s.get(800); len(got) != 0 || cap(got) != 1001 || &got[:1][0] != &odd[0] {
		t.Fatalf("got a slice of %d with room for %d, not the one that was put", len(got), cap(got))
	}
	if got := s.get(800); &got[:1][0] == &odd[0] {
		t.Fatal("the same slice is got twice")
	}
	s.put(make([]byte, 600), 1000)
	s.put(make([]byte, 600), 1000)
	if s.held != 600 {
		t.Fatalf("%d bytes are held, of at most 1000", s.held)
	}
	if s.put(nil, 1000); s.held != 600 {
		t.Fatal("a slice with room for nothing is held")
	}
}

// TestDilation: what is fetched is as much as decodes into the memory that there
// is, by what was decoded of late.
func TestDilation(t *testing.T) {
	d := &dilation{buffers: &buffers{}}
	if got := d.fetchBytes(8<<20, maxFetchBytes); got != fetchBytes {
		t.Errorf("asks for %d bytes before anything is known, want %d", got, fetchBytes)
	}
	read := func(times, fetched, decoded, records int) {
		for range times {
			d.OnFetchBatchRead(kgo.BrokerMetadata{}, "t", 0, kgo.FetchBatchMetrics{NumRecords: records, CompressedBytes: fetched, UncompressedBytes: decoded})
		}
	}
	for _, c := range []struct {
		name                      string
		fetched, decoded, records int
		want                      int
	}{
		{"as it is", 64 << 10, 64 << 10, 1, maxFetchBytes},
		{"four times as much", 16 << 10, 64 << 10, 1, (8 << 20) / 4},
		{"small records", 16 << 10, 64 << 10, 1024, (8 << 20) * 16 / (64 + 176)},
		{"a thousand times as much", 1 << 10, 1 << 20, 1, leastFetchBytes},
	} {
		read(10_000, c.fetched, c.decoded, c.records)
		if got := int(d.fetchBytes(8<<20, maxFetchBytes)); got < c.want*97/100 || got > c.want*103/100 {
			t.Errorf("%s: asks for %d bytes, want about %d", c.name, got, c.want)
		}
	}
	if got := d.GetDecompressBytes(make([]byte, 1<<10), kgo.CodecLz4); cap(got) < 1<<20+512 || cap(got) > 2<<20 {
		t.Errorf("room for %d bytes, for a batch that is likely to have a million", cap(got))
	}
}

// TestGuessIsBounded: a batch that is hardly compressed, behind many that were
// greatly, does not get hundreds of megabytes to be decompressed into.
func TestGuessIsBounded(t *testing.T) {
	d := &dilation{buffers: &buffers{}}
	for range 10_000 {
		d.OnFetchBatchRead(kgo.BrokerMetadata{}, "t", 0, kgo.FetchBatchMetrics{NumRecords: 1, CompressedBytes: 1 << 10, UncompressedBytes: 1 << 20})
	}
	const size = 1 << 20
	if got := d.GetDecompressBytes(make([]byte, size), kgo.CodecZstd); cap(got) < size || cap(got) > 2*maxFetchBytes {
		t.Errorf("room for %d bytes, for a batch of %d", cap(got), size)
	}
}

// TestShareOfMemory: whatever is fetched, what all consumers hold is bounded.
func TestShareOfMemory(t *testing.T) {
	for jobs := range 10 {
		r := run{config: Config{Parallel: 4}, jobs: make([]*job, jobs)}
		consumers := 2 * min(4, max(jobs, 1))
		if held := 2 * consumers * int(r.share()); held > inMemory || held < inMemory*9/10 {
			t.Errorf("%d consumers hold %d bytes, of %d", consumers, held, inMemory)
		}
	}
}

// TestWaitingIsNoSilence: while a side waits for the other one nobody asks its
// consumer for more; that is not taken for a log that has nothing more.
func TestWaitingIsNoSilence(t *testing.T) {
	clock := time.Unix(1_700_000_000, 0)
	chunks := make(chan chunk)
	r := &reading{
		round:  &round{reader: &logReader{meter: &meter{}, now: func() time.Time { return clock }}},
		chunks: chunks, heard: clock,
	}
	handed := make(chan error)
	go func() { handed <- r.hand(context.Background(), 0, nil) }()
	clock = clock.Add(10 * quiet)
	<-chunks
	if err := <-handed; err != nil {
		t.Fatal(err)
	}
	if silent := clock.Sub(r.heard); silent >= quiet {
		t.Errorf("the log counts as silent for %v", silent)
	}
	if late := clock.Sub(r.progress); late >= quiet {
		t.Errorf("it counts as without progress for %v", late)
	}
}

// TestChunksAreUsedAgain: a chunk goes back to who reads ahead once its items are
// used up, and not before.
func TestChunksAreUsedAgain(t *testing.T) {
	chunks, used := make(chan chunk, 3), make(chan []item, 3)
	first := []item{{offset: 0}, {offset: 1}}
	chunks <- chunk{items: first, next: 2}
	chunks <- chunk{next: 5}
	chunks <- chunk{items: []item{{offset: 5}}, next: 6}
	s := &stream{chunks: chunks, used: used}
	for want := range int64(2) {
		if i := s.peek(); i.offset != want || len(used) != 0 {
			t.Fatalf("item %d is at hand and %d chunks went back, want item %d and none", i.offset, len(used), want)
		}
		s.next()
	}
	if i := s.peek(); i.offset != 5 {
		t.Fatalf("item %d is at hand, want 5", i.offset)
	}
	if back := <-used; cap(back) != cap(first) || len(back) != 0 || &back[:1][0] != &first[0] {
		t.Errorf("a slice of %d with room for %d went back, not the first chunk", len(back), cap(back))
	}
}
