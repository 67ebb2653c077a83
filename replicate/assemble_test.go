package replicate

import (
	"encoding/binary"
	"errors"
	"hash/crc32"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"apograph/internal/recordbatch"
	"apograph/ledger"
)

// batchOf returns a dense batch of n records at base.
func batchOf(base int64, n int32) []byte {
	h := recordbatch.Header{
		BaseOffset: base, Magic: 2, LastOffsetDelta: n - 1, Count: n,
		BaseTimestamp: 1000, MaxTimestamp: 1000, ProducerID: -1, ProducerEpoch: -1, BaseSequence: -1,
	}
	var body []byte
	for i := range n {
		r := recordbatch.Record{OffsetDelta: i, Value: []byte{byte(i)}}
		body = r.Encode(body)
	}
	return h.Encode(nil, body)
}

// newTestAssembler returns an assembler at source offset 0.
func newTestAssembler() *assembler {
	return &assembler{
		tools: &tools{buffers: &buffers{}}, joinLimit: joinBytes,
		logStart: func() (int64, error) { return 0, nil },
		loss:     func(bool) ledger.Cause { return ledger.CauseRetention },
	}
}

// assembleAll returns all units of data and the error that ended them.
func assembleAll(a *assembler, data []byte) ([]*unit, error) {
	c := &chunk{data: data}
	var units []*unit
	for {
		u, err := a.next(c)
		if u == nil || err != nil {
			return units, err
		}
		units = append(units, u)
	}
}

func TestDamageStopsAtItsBatch(t *testing.T) {
	tests := []struct {
		name   string
		damage func(batch []byte) []byte
		reason StopReason
	}{
		{"a flipped byte in the body", func(b []byte) []byte { b[len(b)-1] ^= 1; return b }, StopCorruptSourceBatch},
		{"a flipped byte in the header", func(b []byte) []byte { b[30] ^= 1; return b }, StopCorruptSourceBatch},
		{"an absurd length", func(b []byte) []byte { binary.BigEndian.PutUint32(b[8:], 3); return b }, StopCorruptSourceBatch},
		{"a header that promises more records", func(b []byte) []byte {
			h, _ := recordbatch.Parse(b)
			h.Count, h.LastOffsetDelta = 4, 3
			return h.Encode(nil, b[recordbatch.HeaderSize:])
		}, StopCorruptSourceBatch},
		{"two records at one offset", func(b []byte) []byte {
			h, _ := recordbatch.Parse(b)
			r := recordbatch.Record{OffsetDelta: 0}
			return h.Encode(nil, r.Encode(r.Encode(r.Encode(nil))))
		}, StopCorruptSourceBatch},
		{"a codec that nobody knows", func(b []byte) []byte {
			h, _ := recordbatch.Parse(b)
			h.Attributes = 6
			return h.Encode(nil, b[recordbatch.HeaderSize:])
		}, StopCorruptSourceBatch},
		{"a control record of an unknown type", func(b []byte) []byte {
			r := recordbatch.Record{Key: []byte{0, 0, 0, 9}}
			h, _ := recordbatch.Parse(b)
			h.Attributes, h.Count, h.LastOffsetDelta = 0x30, 1, 0
			return h.Encode(nil, r.Encode(nil))
		}, StopUnsupportedFormat},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			a := newTestAssembler()
			units, err := assembleAll(a, append(batchOf(0, 5), tt.damage(batchOf(5, 3))...))
			var bad *sourceError
			if !errors.As(err, &bad) || bad.offset != 5 || bad.reason != tt.reason {
				t.Errorf("error %v, want %s at offset 5", err, tt.reason)
			}
			if len(units) != 1 || units[0].records != 5 {
				t.Errorf("%d units before the damage, want the good batch", len(units))
			}
			if again, err := assembleAll(a, tt.damage(batchOf(5, 3))); len(again) != 0 || err == nil {
				t.Errorf("a second look gives %d units and %v", len(again), err)
			}
		})
	}
}

// messageSet returns one entry of the formats before Kafka 0.11.
func messageSet(magic int8, offset int64, timestamp int64, key, value []byte) []byte {
	m := []byte{byte(magic), 0}
	if magic == 1 {
		m = binary.BigEndian.AppendUint64(m, uint64(timestamp))
	}
	for _, f := range [][]byte{key, value} {
		m = binary.BigEndian.AppendUint32(m, uint32(len(f)))
		m = append(m, f...)
	}
	entry := binary.BigEndian.AppendUint64(nil, uint64(offset))
	entry = binary.BigEndian.AppendUint32(entry, uint32(len(m)+4))
	entry = binary.BigEndian.AppendUint32(entry, crc32.ChecksumIEEE(m))
	return append(entry, m...)
}

func TestOldMessageFormatsAreEncodedAnew(t *testing.T) {
	for _, magic := range []int8{0, 1} {
		a := newTestAssembler()
		data := messageSet(magic, 0, 7000, []byte("k"), []byte("v"))
		data = append(data, messageSet(magic, 1, 8000, []byte("l"), []byte("w"))...)
		units, err := assembleAll(a, data)
		if err != nil || len(units) != 1 || units[0].records != 2 || a.pos != 2 {
			t.Fatalf("magic %d: %d units, position %d, %v; want one of two records", magic, len(units), a.pos, err)
		}
		want := int64(7000)
		if magic == 0 {
			want = -1
		}
		_ = a.tools.each(units[0].batch, func(r *recordbatch.Record, timestamp int64) error {
			if r.OffsetDelta == 0 && (timestamp != want || string(r.Value) != "v") {
				t.Errorf("magic %d: first record %q at %d, want v at %d", magic, r.Value, timestamp, want)
			}
			return nil
		})
	}
}

func TestOldMessageFormatThatCannotBeRead(t *testing.T) {
	a := newTestAssembler()
	entry := messageSet(1, 0, 0, nil, []byte("v"))
	entry[len(entry)-1] ^= 1
	_, err := assembleAll(a, entry)
	var bad *sourceError
	if !errors.As(err, &bad) || bad.reason != StopUnsupportedFormat {
		t.Errorf("error %v, want unsupported_format", err)
	}
}

func TestSmallBatchesAreJoinedAndLargeOnesPass(t *testing.T) {
	small := append(batchOf(0, 3), batchOf(3, 4)...)
	units, err := assembleAll(newTestAssembler(), small)
	if err != nil || len(units) != 1 || units[0].records != 7 || !units[0].recoded {
		t.Errorf("two small batches: %d units, %v; want one of 7 records", len(units), err)
	}
	alone := batchOf(0, 3)
	units, err = assembleAll(newTestAssembler(), alone)
	if err != nil || len(units) != 1 || units[0].recoded || &units[0].batch[0] != &alone[0] {
		t.Errorf("a small batch alone is not passed as it is")
	}
	large := append(batchOf(0, 90_000), batchOf(90_000, 90_000)...)
	units, err = assembleAll(newTestAssembler(), large)
	if err != nil || len(units) != 2 || units[0].recoded || units[1].recoded {
		t.Errorf("two large batches: %d units, %v; want both as they are", len(units), err)
	}
}

// TestWhatIsJoined: batches are joined where that costs less than they do by
// themselves, and all where the round trip limits what is copied.
func TestWhatIsJoined(t *testing.T) {
	for _, tt := range []struct {
		codec recordbatch.Codec
		size  int
		far   bool
		units int
	}{
		{recordbatch.None, 64 << 10, false, 1},
		{recordbatch.LZ4, 16 << 10, false, 1},
		{recordbatch.LZ4, 32 << 10, false, 3},
		{recordbatch.LZ4, 64 << 10, true, 1},
		{recordbatch.Snappy, 16 << 10, false, 1},
		{recordbatch.Snappy, 32 << 10, false, 3},
		{recordbatch.Zstd, 4 << 10, false, 1},
		{recordbatch.Zstd, 16 << 10, false, 3},
		{recordbatch.Zstd, 16 << 10, true, 1},
		{recordbatch.Gzip, 4 << 10, false, 1},
		{recordbatch.Gzip, 16 << 10, false, 3},
	} {
		a := newTestAssembler()
		a.far = tt.far
		units, err := assembleAll(a, noiseBatches(t, tt.codec, tt.size))
		if err != nil || len(units) != tt.units {
			t.Errorf("%+v: %d units, %v", tt, len(units), err)
		}
	}
}

// noiseBatches returns three batches of one record each, which does not compress.
func noiseBatches(t *testing.T, codec recordbatch.Codec, size int) (data []byte) {
	r := rand.New(rand.NewPCG(1, 2))
	value := make([]byte, size)
	for i := range uint64(3) {
		for j := range value {
			value[j] = byte(r.IntN(256))
		}
		var b recordbatch.Builder
		b.Reset(codec)
		b.Append(&recordbatch.Record{Value: value}, 5)
		batch, err := b.Seal(nil, -1, -1, -1)
		if err != nil {
			t.Fatal(err)
		}
		binary.BigEndian.PutUint64(batch, i) // the base offset, which no checksum covers
		data = append(data, batch...)
	}
	return data
}

// TestPositionIsTheBatchsEnd: what the cleaner left of a batch says where the
// next one begins, not the last record in it; also where nothing follows it.
func TestPositionIsTheBatchsEnd(t *testing.T) {
	h, _ := recordbatch.Parse(batchOf(0, 1))
	h.LastOffsetDelta = 9 // of ten records, the one of offset 3 is left
	left := recordbatch.Record{OffsetDelta: 3, Value: []byte("v")}
	compacted := h.Encode(nil, left.Encode(nil))
	h.Count = 0
	empty := h.Encode(nil, nil)
	for name, batch := range map[string][]byte{"one record left": compacted, "none left": empty} {
		a := newTestAssembler()
		units, err := assembleAll(a, batch)
		if err != nil || len(units) != 1 || units[0].entry.Source != (ledger.Range{Start: 0, End: 10}) || a.settled() != 10 {
			t.Errorf("%s: %d units, position %d, %v; want one that ends at 10", name, len(units), a.settled(), err)
		}
	}
}

func TestLeaderEpochsAreNotMixed(t *testing.T) {
	second := batchOf(3, 3)
	binary.BigEndian.PutUint32(second[12:], 4)
	units, err := assembleAll(newTestAssembler(), append(batchOf(0, 3), second...))
	if err != nil || len(units) != 2 || units[0].entry.LeaderEpoch != 0 || units[1].entry.LeaderEpoch != 4 {
		t.Errorf("%d units, %v; want one for each epoch", len(units), err)
	}
}

func TestClassifyProduce(t *testing.T) {
	tests := []struct {
		err  *kerr.Error
		base int64
		want outcome
	}{
		{kerr.NotLeaderForPartition, -1, notAppended},
		{kerr.NotLeaderForPartition, 10, unknown},
		{kerr.NotEnoughReplicas, -1, notAppended},
		{kerr.NotEnoughReplicasAfterAppend, 10, unknown},
		{kerr.NotEnoughReplicasAfterAppend, -1, unknown},
		{kerr.RequestTimedOut, -1, unknown},
		{kerr.KafkaStorageError, -1, unknown},
		{kerr.KafkaStorageError, 10, unknown},
		{kerr.UnknownProducerID, -1, outOfOrder},
		{kerr.UnknownTopicID, -1, notAppended},
		{kerr.ProducerFenced, -1, denied},
		{kerr.ThrottlingQuotaExceeded, -1, notAppended},
		{kerr.OutOfOrderSequenceNumber, -1, outOfOrder},
		{kerr.DuplicateSequenceNumber, -1, outOfOrder},
		{kerr.InvalidProducerEpoch, -1, denied},
		{kerr.MessageTooLarge, -1, refused},
		{kerr.InvalidRecord, -1, refused},
		{kerr.UnknownServerError, -1, refused},
		{&kerr.Error{Code: 9999}, -1, unknown},
	}
	for _, tt := range tests {
		if got := classifyProduce(tt.err.Code, tt.base, "").outcome; got != tt.want {
			t.Errorf("code %d with base %d: outcome %d, want %d", tt.err.Code, tt.base, got, tt.want)
		}
	}
	if got := classifyProduce(0, 7, ""); got.outcome != appended || got.base != 7 {
		t.Errorf("success: %+v", got)
	}
}

// TestHalvesTellTheSameStory splits units until each has one record: entries
// and batches of the parts put together are those of the whole.
func TestHalvesTellTheSameStory(t *testing.T) {
	a := newTestAssembler()
	units, err := assembleAll(a, append(batchOf(0, 5), batchOf(8, 6)...))
	if err == nil && len(units) != 3 {
		t.Fatalf("%d units, want data, a gap, data", len(units))
	}
	a = newTestAssembler()
	a.compactPolicy = true
	units, err = assembleAll(a, append(batchOf(0, 5), batchOf(8, 6)...))
	if err != nil || len(units) != 1 {
		t.Fatalf("%d units, %v; want one with a gap", len(units), err)
	}
	whole := units[0].entry
	parts := halveAll(t, a.tools, units[0])
	if len(parts) != 11 {
		t.Fatalf("%d parts, want 11", len(parts))
	}
	var digest ledger.Digest
	end, bytes := int64(0), int64(0)
	for _, p := range parts {
		p.land(0)
		if err := p.entry.Validate(); err != nil {
			t.Error(err)
		}
		if p.entry.Source.Start != end {
			t.Errorf("a part starts at %d, want %d", p.entry.Source.Start, end)
		}
		end = p.entry.Source.End
		bytes += p.entry.Bytes
		digest = ledger.Concat(digest, p.entry.Digest, int64(p.records))
	}
	if end != whole.Source.End || bytes != whole.Bytes || digest != whole.Digest {
		t.Errorf("parts end at %d with %d bytes and digest %v, the whole at %d, %d, %v", end, bytes, digest, whole.Source.End, whole.Bytes, whole.Digest)
	}
}

func halveAll(t *testing.T, tools *tools, u *unit) []*unit {
	t.Helper()
	if u.records == 1 {
		return []*unit{u}
	}
	halves, err := tools.halve(u)
	if err != nil {
		t.Fatal(err)
	}
	var parts []*unit
	for _, h := range halves {
		var b kmsg.RecordBatch
		if err := b.ReadFrom(h.batch); err != nil || b.NumRecords != h.records {
			t.Fatalf("a half of %d records does not read back: %v", h.records, err)
		}
		parts = append(parts, halveAll(t, tools, h)...)
	}
	return parts
}

// TestWhatComesAgainIsNotTakenAgain: the reader gives 0 to 9, and then 5 to 9
// and what follows.
func TestWhatComesAgainIsNotTakenAgain(t *testing.T) {
	a := newTestAssembler()
	var records int32
	var ends []int64
	for _, data := range [][]byte{slices.Concat(batchOf(0, 5), batchOf(5, 5)), batchOf(5, 5), slices.Concat(batchOf(5, 5), batchOf(10, 2)), batchOf(8, 6)} {
		units, err := assembleAll(a, data)
		if err != nil {
			t.Fatal(err)
		}
		for _, u := range units {
			records += u.records
			ends = append(ends, u.entry.Source.End)
		}
	}
	if records != 14 || !slices.IsSorted(ends) || ends[len(ends)-1] != 14 {
		t.Errorf("%d records, up to %v; want 14 records up to 14", records, ends)
	}
}

// TestSmallBatchesHoldLittle: a batch that is small does not keep the memory of a
// large one.
func TestSmallBatchesHoldLittle(t *testing.T) {
	a := newTestAssembler()
	large := valueBatch(0, 700<<10)
	units, err := assembleAll(a, append(valueBatch(0, 400<<10), valueBatch(1, 400<<10)...))
	if err != nil || len(units) != 1 || len(units[0].batch) < len(large) {
		t.Fatalf("%d units, %v", len(units), err)
	}
	units[0].release()
	held, used := 0, 0
	for i := range 20 {
		base := int64(2 + 2*i)
		units, err := assembleAll(a, append(valueBatch(base, 100), valueBatch(base+1, 100)...))
		if err != nil || len(units) != 1 {
			t.Fatalf("%d units, %v", len(units), err)
		}
		held, used = held+cap(units[0].batch), used+len(units[0].batch)
	}
	if held > 4*used {
		t.Errorf("20 batches with %d bytes hold %d", used, held)
	}
}

// valueBatch returns an uncompressed batch of one record at base.
func valueBatch(base int64, size int) []byte {
	h := recordbatch.Header{BaseOffset: base, Magic: 2, Count: 1, BaseTimestamp: 1000, MaxTimestamp: 1000, ProducerID: -1, ProducerEpoch: -1, BaseSequence: -1}
	r := recordbatch.Record{Value: make([]byte, size)}
	return h.Encode(nil, r.Encode(nil))
}

// TestJoinedBatchKeepsItsLimit: offsets and times take more bytes in a large batch
// than they did in the small ones. A batch that the target would not take would be
// split, and all of it encoded once more.
func TestJoinedBatchKeepsItsLimit(t *testing.T) {
	const slack = 8 << 10 // of the batch that comes last
	var data []byte
	for base := int64(0); len(data) < 3<<20; base += 50 {
		data = append(data, batchOf(base, 50)...)
	}
	units, err := assembleAll(newTestAssembler(), data)
	if err != nil {
		t.Fatal(err)
	}
	for _, u := range units {
		if len(u.batch) > joinBytes+slack {
			t.Errorf("a joined batch of %d records has %d bytes, at most %d are joined", u.records, len(u.batch), joinBytes)
		}
	}
}

// TestJoinedBatchIsFullOverDistance: where each batch costs a round trip, what is
// joined is as large on the wire as it may be, from the second batch on.
func TestJoinedBatchIsFullOverDistance(t *testing.T) {
	data, _ := benchChunk(t, recordbatch.LZ4, 1<<10, 256<<10) // 8 MB, before compression
	a := newTestAssembler()
	a.far = true
	units, err := assembleAll(a, data)
	if err != nil || len(units) < 4 {
		t.Fatalf("%d units, %v", len(units), err)
	}
	for i, u := range units[1 : len(units)-1] {
		if size := len(u.batch); size < joinBytes*7/10 || size > joinBytes {
			t.Errorf("joined batch %d has %d bytes, up to %d are joined", i+1, size, joinBytes)
		}
	}
	if size := len(units[0].batch); size > joinBytes*7/10 {
		t.Errorf("the first joined batch has %d bytes, before anything is known of how the records compress", size)
	}
}
