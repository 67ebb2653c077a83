package recordbatch_test

import (
	"bytes"
	"errors"
	"math"
	"math/rand"
	"testing"

	"github.com/leanovate/gopter"
	"github.com/leanovate/gopter/gen"
	"github.com/leanovate/gopter/prop"

	rb "apograph/internal/recordbatch"
)

// TestBuildInverse: what is built walks back to the same records, in every codec,
// and the header says what was asked for.
func TestBuildInverse(t *testing.T) {
	eachCodec(t, func(t *testing.T, codec rb.Codec) {
		var (
			d       rb.Decoder
			builder rb.Builder
		)
		check := func(records []plainRecord, pid int64, epoch int16, sequence int32) string {
			builder.Reset(codec)
			for _, p := range records {
				r := p.toRecord(0)
				builder.Append(&r, p.timestamp)
			}
			batch, err := builder.Seal(nil, pid, epoch, sequence)
			if err != nil {
				return err.Error()
			}
			got, err := walkPlain(&d, batch)
			if err != nil {
				return err.Error()
			}
			if diff := diffRecords(got, records); diff != "" {
				return diff
			}
			return checkSealedHeader(batch, codec, records, pid, epoch, sequence)
		}
		properties := gopter.NewProperties(propertyParameters(60))
		properties.Property("walk(build(records)) == records", prop.ForAll(check,
			genRecords(100), gen.Int64(), gen.Int16(), gen.Int32()))
		properties.TestingRun(t)

		large := gopter.NewProperties(propertyParameters(2))
		large.Property("thousands of records", prop.ForAll(check,
			genRecords(6_000), gen.Int64(), gen.Int16(), gen.Int32()))
		large.TestingRun(t)
	})
}

func checkSealedHeader(batch []byte, codec rb.Codec, records []plainRecord, pid int64, epoch int16, sequence int32) string {
	maximum := int64(-1)
	for _, r := range records {
		maximum = max(maximum, r.timestamp)
	}
	want := plainBatch(plainHeaderFields{
		LeaderEpoch: -1, Magic: 2, Attributes: int16(codec), LastOffsetDelta: int32(len(records) - 1),
		BaseTimestamp: records[0].timestamp, MaxTimestamp: maximum,
		ProducerID: pid, ProducerEpoch: epoch, BaseSequence: sequence, Count: int32(len(records)),
	}, batch[61:])
	if !bytes.Equal(batch, want) {
		return "header differs from the plain writer's"
	}
	return ""
}

// TestUncompressedBuildIsThePlainWriters: byte for byte.
func TestUncompressedBuildIsThePlainWriters(t *testing.T) {
	records := randomRecords(rand.New(rand.NewSource(1)), 50)
	batch := mustBuild(t, rb.None, records)
	if want := plainBody(records, records[0].timestamp); !bytes.Equal(batch[61:], want) {
		t.Error("uncompressed body differs from the plain writer's")
	}
}

// TestSplitAndJoin: batches cut anywhere and joined again hold the same records,
// whatever the codecs, and joining is what one Builder does.
func TestSplitAndJoin(t *testing.T) {
	properties := gopter.NewProperties(propertyParameters(100))
	properties.Property("join(split(batch)) == batch", prop.ForAll(
		func(records []plainRecord, seed int64) string {
			rng := rand.New(rand.NewSource(seed))
			whole := mustBuild(t, rb.Codec(rng.Intn(5)), records)
			parts := split(t, rng, whole)
			joined := join(t, rb.None, parts)
			if want := mustBuild(t, rb.None, records); !bytes.Equal(joined, want) {
				return diffRecords(mustWalkPlain(t, joined), records) + " (batches differ)"
			}
			return ""
		},
		genRecords(60), gen.Int64(),
	))
	properties.TestingRun(t)
}

// split cuts a batch into parts of one to ten records.
func split(t *testing.T, rng *rand.Rand, batch []byte) [][]byte {
	t.Helper()
	var (
		d       rb.Decoder
		w       rb.Walker
		r       rb.Record
		builder rb.Builder
		parts   [][]byte
	)
	h := mustParse(t, batch)
	body, err := d.Body(h, batch)
	if err != nil {
		t.Fatal(err)
	}
	seal := func() {
		part, err := builder.Seal(nil, 1, 2, 3)
		if err != nil {
			t.Fatal(err)
		}
		parts = append(parts, part)
	}
	builder.Reset(rb.Codec(rng.Intn(5)))
	w.ResetBatch(h, body)
	for w.Next(&r) {
		if builder.Count() > rng.Intn(10) {
			seal()
			builder.Reset(rb.Codec(rng.Intn(5)))
		}
		builder.Append(&r, h.Timestamp(&r))
	}
	if w.Err() != nil {
		t.Fatal(w.Err())
	}
	seal()
	return parts
}

func join(t *testing.T, codec rb.Codec, parts [][]byte) []byte {
	t.Helper()
	var (
		d       rb.Decoder
		w       rb.Walker
		r       rb.Record
		builder rb.Builder
	)
	builder.Reset(codec)
	for _, part := range parts {
		h := mustParse(t, part)
		body, err := d.Body(h, part)
		if err != nil {
			t.Fatal(err)
		}
		w.ResetBatch(h, body)
		for w.Next(&r) {
			builder.Append(&r, h.Timestamp(&r))
		}
		if w.Err() != nil {
			t.Fatal(w.Err())
		}
	}
	batch, err := builder.Seal(nil, 4711, 3, 17)
	if err != nil {
		t.Fatal(err)
	}
	return batch
}

// TestRenumberKeepsEverythingButOffsets rebuilds a compacted batch.
func TestRenumberKeepsEverythingButOffsets(t *testing.T) {
	properties := gopter.NewProperties(propertyParameters(100))
	properties.Property("renumber(sparse) == the same records, dense", prop.ForAll(
		func(records []plainRecord, base int64, seed int64) string {
			rng := rand.New(rand.NewSource(seed))
			sparse := make([]plainRecord, len(records))
			delta := int32(rng.Intn(3))
			for i, r := range records {
				sparse[i] = r
				sparse[i].delta = delta
				delta += 1 + int32(rng.Intn(500))
			}
			h := rb.Header{BaseOffset: 77, Magic: 2, Attributes: 0x40, LastOffsetDelta: delta, BaseTimestamp: base, Count: int32(len(sparse))}
			batch := h.Encode(nil, plainBody(sparse, base))
			return diffRecords(mustWalkPlain(t, join(t, rb.Zstd, [][]byte{batch})), records)
		},
		genRecords(60), gen.Int64(), gen.Int64(),
	))
	properties.TestingRun(t)
}

// TestLogAppendTimeKept: what a broker stamped is written into the records.
func TestLogAppendTimeKept(t *testing.T) {
	records := []plainRecord{{timestamp: 5, value: []byte("a")}, {delta: 1, timestamp: 9, value: []byte("b")}}
	h := rb.Header{Magic: 2, Attributes: 0x08, LastOffsetDelta: 1, MaxTimestamp: 1000, Count: 2}
	rebuilt := join(t, rb.None, [][]byte{h.Encode(nil, plainBody(records, 0))})
	for _, got := range mustWalkPlain(t, rebuilt) {
		if got.timestamp != 1000 {
			t.Errorf("record %d has time %d, want the stamp, 1000", got.delta, got.timestamp)
		}
	}
	if h := mustParse(t, rebuilt); h.LogAppendTime() || h.BaseTimestamp != 1000 || h.MaxTimestamp != 1000 {
		t.Errorf("rebuilt header %+v, want CreateTime and 1000", h)
	}
}

func TestBuilderTimestampsWrap(t *testing.T) {
	records := []plainRecord{
		{timestamp: math.MinInt64}, {delta: 1, timestamp: math.MaxInt64}, {delta: 2, timestamp: 0}, {delta: 3, timestamp: -1},
	}
	if diff := diffRecords(mustWalkPlain(t, mustBuild(t, rb.None, records)), records); diff != "" {
		t.Error(diff)
	}
}

func TestMaxTimestampIsKafkas(t *testing.T) {
	tests := []struct {
		name  string
		times []int64
		want  int64
	}{
		{"latest in the middle", []int64{5, 9, 7}, 9},
		{"no times", []int64{-1, -1}, -1},
		{"all before no time", []int64{-1000, -2000}, -1},
	}
	for _, tt := range tests {
		var records []plainRecord
		for _, time := range tt.times {
			records = append(records, plainRecord{timestamp: time})
		}
		if h := mustParse(t, mustBuild(t, rb.None, records)); h.MaxTimestamp != tt.want {
			t.Errorf("%s: MaxTimestamp = %d, want %d", tt.name, h.MaxTimestamp, tt.want)
		}
	}
}

func TestBuilderReuse(t *testing.T) {
	rng := rand.New(rand.NewSource(7))
	var b rb.Builder
	for round := range 20 {
		records := randomRecords(rng, 1+rng.Intn(30))
		codec := rb.Codec(round % 5)
		b.Reset(codec)
		size := 0
		for i, p := range records {
			r := p.toRecord(0)
			b.Append(&r, p.timestamp)
			size = len(plainBody(records[:i+1], records[0].timestamp))
			if b.Count() != i+1 || b.BodyBytes() != size {
				t.Fatalf("after %d records: Count %d, BodyBytes %d, want %d", i+1, b.Count(), b.BodyBytes(), size)
			}
		}
		prefix := []byte("before")
		batch, err := b.Seal(prefix, 4711, 3, 17)
		if err != nil {
			t.Fatal(err)
		}
		want := mustBuild(t, codec, records)
		if !bytes.HasPrefix(batch, prefix) || !bytes.Equal(batch[len(prefix):], want) {
			t.Fatalf("round %d, %v: a reused builder's batch differs from a new one's", round, codec)
		}
		again, err := b.Seal(nil, 4711, 3, 17)
		if err != nil || !bytes.Equal(again, want) {
			t.Fatalf("round %d, %v: sealing twice differs, error %v", round, codec, err)
		}
	}
}

func TestSealRefuses(t *testing.T) {
	var b rb.Builder
	prefix := []byte("before")
	if got, err := b.Seal(prefix, 1, 0, 0); !errors.Is(err, rb.ErrEmptyBatch) || string(got) != "before" {
		t.Errorf("empty builder: %q, %v, want ErrEmptyBatch", got, err)
	}
	b.Reset(rb.Codec(5))
	b.Append(&rb.Record{}, 0)
	if got, err := b.Seal(prefix, 1, 0, 0); !errors.Is(err, rb.ErrUnknownCodec) || string(got) != "before" {
		t.Errorf("codec 5: %q, %v, want ErrUnknownCodec", got, err)
	}
	b.Reset(rb.None)
	if b.Count() != 0 || b.BodyBytes() != 0 {
		t.Errorf("after Reset: %d records, %d bytes", b.Count(), b.BodyBytes())
	}
}

// TestTake also writes over what was taken and given back, as its next user does.
func TestTake(t *testing.T) {
	rng := rand.New(rand.NewSource(8))
	var b rb.Builder
	var spare []byte
	for round := range 40 {
		records := randomRecords(rng, 1+rng.Intn(30))
		codec := rb.Codec(round % 3)
		b.Reset(codec)
		for _, p := range records {
			r := p.toRecord(0)
			b.Append(&r, p.timestamp)
		}
		batch, err := b.Take(spare, 4711, 3, 17)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(batch, mustBuild(t, codec, records)) {
			t.Fatalf("round %d, %v: what was taken differs from a new builder's batch", round, codec)
		}
		if b.Count() != 0 || b.BodyBytes() != 0 {
			t.Fatalf("after Take: %d records, %d bytes", b.Count(), b.BodyBytes())
		}
		if _, err := b.Take(nil, 4711, 3, 17); !errors.Is(err, rb.ErrEmptyBatch) {
			t.Fatalf("taken twice: %v, want ErrEmptyBatch", err)
		}
		spare = batch
	}
}

func TestTakeDoesNotAllocate(t *testing.T) {
	var b rb.Builder
	var spare []byte
	r := rb.Record{Value: make([]byte, 1000)}
	allocs := testing.AllocsPerRun(50, func() {
		b.Reset(rb.None)
		for range 100 {
			b.Append(&r, 5)
		}
		batch, err := b.Take(spare, 1, 0, 0)
		if err != nil {
			t.Fatal(err)
		}
		spare = batch
	})
	if allocs != 0 {
		t.Errorf("%v allocations for a batch, want 0", allocs)
	}
}
