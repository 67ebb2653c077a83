package recordbatch_test

import (
	"bytes"
	"encoding/hex"
	"os"
	"strings"
	"testing"

	"apograph/internal/canon"
	rb "apograph/internal/recordbatch"
)

// TestHandmade reads a batch that was written by hand.
func TestHandmade(t *testing.T) {
	data := mustRead(t, "testdata/handmade.txt")
	var batch []byte
	for line := range strings.Lines(data) {
		bytes, _, _ := strings.Cut(line, "#")
		batch = append(batch, mustHex(t, strings.Join(strings.Fields(bytes), ""))...)
	}
	h := mustParse(t, batch)
	want := rb.Header{
		BaseOffset: 1000, Length: 88, LeaderEpoch: 7, Magic: 2, CRC: h.CRC, Attributes: 8, LastOffsetDelta: 4,
		BaseTimestamp: 1700000000000, MaxTimestamp: 1700000001000, ProducerID: 4711, ProducerEpoch: 3,
		BaseSequence: 2147483645, Count: 2,
	}
	if h != want {
		t.Errorf("header %+v, want %+v", h, want)
	}
	if h.Dense() || !h.LogAppendTime() || h.LastOffset() != 1004 || h.NextOffset() != 1005 || h.LastSequence() != 1 {
		t.Errorf("Dense %v, LogAppendTime %v, LastOffset %d, NextOffset %d, LastSequence %d",
			h.Dense(), h.LogAppendTime(), h.LastOffset(), h.NextOffset(), h.LastSequence())
	}
	records := []plainRecord{
		{delta: 1, timestamp: 1700000001000, key: []byte("key"), value: []byte("value")},
		{delta: 4, timestamp: 1700000001000, value: []byte{}, headers: []plainHeader{
			{[]byte("a"), []byte("1")}, {[]byte("a"), nil}, {[]byte{}, []byte{}}, {[]byte("trace"), []byte{}},
		}},
	}
	if diff := diffRecords(mustWalkPlain(t, batch), records); diff != "" {
		t.Error(diff)
	}
	if encoded := h.Encode(nil, batch[rb.HeaderSize:]); !bytes.Equal(encoded, batch) {
		t.Errorf("encoded header % x, want % x", encoded[:rb.HeaderSize], batch[:rb.HeaderSize])
	}
}

// javaRecords are what the small batches of testdata/java.txt hold.
func javaRecords() []plainRecord {
	return []plainRecord{
		{timestamp: 1700000000000, key: []byte("k"), value: []byte("v")},
		{delta: 1, timestamp: 1699999999000},
		{delta: 2, timestamp: 1700000000007, key: []byte{}, value: []byte{}, headers: []plainHeader{
			{[]byte("h"), []byte("1")}, {[]byte("h"), nil}, {[]byte{}, []byte{}},
		}},
		{delta: 3, timestamp: -1, key: []byte("é"), value: []byte("tombstone is next"), headers: []plainHeader{{[]byte("trace"), []byte("abc")}}},
		{delta: 4, timestamp: 1700000000008, key: []byte("k")},
	}
}

// TestJavaBatches reads what Kafka's own client writes.
func TestJavaBatches(t *testing.T) {
	batches := mustJavaBatches(t)
	large := []plainRecord{{timestamp: 1700000000000, key: []byte("big"), value: bytes.Repeat([]byte("0123456789"), 10_000)}}
	for codec := rb.None; codec <= rb.Zstd; codec++ {
		small := batches[codec.String()]
		if diff := diffRecords(mustWalkPlain(t, small), javaRecords()); diff != "" {
			t.Errorf("%v: %s", codec, diff)
		}
		h := mustParse(t, small)
		if h.BaseOffset != 42 || h.LeaderEpoch != 5 || h.ProducerID != 4711 || h.ProducerEpoch != 3 ||
			h.BaseSequence != 17 || h.LastSequence() != 21 || h.Codec() != codec || !h.Dense() || h.MaxTimestamp != 1700000000008 {
			t.Errorf("%v: header %+v", codec, h)
		}
		if codec == rb.None {
			continue
		}
		if diff := diffRecords(mustWalkPlain(t, batches[codec.String()+"-large"]), large); diff != "" {
			t.Errorf("%v, large: records differ", codec)
		}
	}
}

// TestBuilderWritesWhatJavaWrites: the uncompressed batch is equal byte for byte,
// but for the offset and the leader epoch, which a producer does not know.
func TestBuilderWritesWhatJavaWrites(t *testing.T) {
	want := bytes.Clone(mustJavaBatches(t)["none"])
	rb.Patch(want, 4711, 3, 17)
	if got := mustBuild(t, rb.None, javaRecords()); !bytes.Equal(got, want) {
		t.Errorf("built % x, Java's is % x", got, want)
	}
}

// TestCodecsAndSizes is the case of that name: the same record in six codecs and
// framings gives six times the same canonical bytes; a broken lz4 payload is an
// error that names the codec.
func TestCodecsAndSizes(t *testing.T) {
	r := plainRecord{timestamp: 0, key: []byte("key"), value: bytes.Repeat([]byte("value "), 20_000), headers: []plainHeader{{[]byte("h"), nil}}}
	body := plainBody([]plainRecord{r}, 0)
	var want []byte
	want = canon.AppendRecord(want, r.timestamp, r.key, r.value, 1)
	want = canon.AppendHeader(want, []byte("h"), nil)
	eachForm(t, func(t *testing.T, fm form) {
		h, batch := packBatch(fm.codec, 1, fm.pack(t, body))
		if got := mustCanonical(t, h, batch); !bytes.Equal(got, want) {
			t.Error("canonical bytes differ")
		}
	})
	payload := packLZ4(t, body)
	payload[len(payload)/2] ^= 0xff
	_, batch := packBatch(rb.LZ4, 1, payload)
	if _, err := walkPlain(new(rb.Decoder), batch); err == nil || !strings.Contains(err.Error(), "lz4") {
		t.Errorf("broken lz4 payload: error %v, want one that names lz4", err)
	}
}

func mustCanonical(t *testing.T, h rb.Header, batch []byte) []byte {
	t.Helper()
	body, err := new(rb.Decoder).Body(h, batch)
	if err != nil {
		t.Fatal(err)
	}
	var canonical []byte
	for _, r := range mustWalk(t, h, body) {
		canonical = appendCanonical(canonical, h, &r)
	}
	return canonical
}

func mustJavaBatches(t testing.TB) map[string][]byte {
	t.Helper()
	batches := make(map[string][]byte)
	for line := range strings.Lines(mustRead(t, "testdata/java.txt")) {
		if strings.HasPrefix(line, "#") {
			continue
		}
		name, digits, _ := strings.Cut(strings.TrimSpace(line), " ")
		batches[name] = mustHex(t, digits)
	}
	return batches
}

func mustRead(t testing.TB, name string) string {
	t.Helper()
	data, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func mustHex(t testing.TB, digits string) []byte {
	t.Helper()
	b, err := hex.DecodeString(digits)
	if err != nil {
		t.Fatal(err)
	}
	return b
}
