package recordbatch_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/rand"
	"slices"
	"testing"

	"github.com/leanovate/gopter"

	rb "apograph/internal/recordbatch"
)

// This file is the tests' own knowledge of the format: slow, obvious, and written
// from its description without any code of the package.

// A plainRecord is a record as its producer gave it, plus its offset delta.
type plainRecord struct {
	delta      int32
	timestamp  int64 // absolute, milliseconds
	key, value []byte
	headers    []plainHeader
}

type plainHeader struct{ key, value []byte }

// plainBody writes records as the description of DefaultRecord says, relative to
// a base timestamp.
func plainBody(records []plainRecord, baseTimestamp int64) []byte {
	var body []byte
	for _, r := range records {
		b := []byte{0} // attributes
		b = binary.AppendVarint(b, r.timestamp-baseTimestamp)
		b = binary.AppendVarint(b, int64(r.delta))
		b = plainField(b, r.key)
		b = plainField(b, r.value)
		b = binary.AppendVarint(b, int64(len(r.headers)))
		for _, h := range r.headers {
			b = plainField(b, h.key)
			b = plainField(b, h.value)
		}
		body = binary.AppendVarint(body, int64(len(b)))
		body = append(body, b...)
	}
	return body
}

func plainField(dst, b []byte) []byte {
	if b == nil {
		return binary.AppendVarint(dst, -1)
	}
	dst = binary.AppendVarint(dst, int64(len(b)))
	return append(dst, b...)
}

// readPlainBody reads count records back, or says why it cannot.
func readPlainBody(body []byte, baseTimestamp int64, count int) ([]plainRecord, error) {
	in := bytes.NewReader(body)
	var records []plainRecord
	for len(records) < count {
		raw, err := readPlainField(in)
		if err != nil || raw == nil {
			return nil, fmt.Errorf("record %d: %v", len(records), err)
		}
		r, err := readPlainRecord(raw, baseTimestamp)
		if err != nil {
			return nil, fmt.Errorf("record %d: %w", len(records), err)
		}
		records = append(records, r)
	}
	if in.Len() > 0 {
		return nil, fmt.Errorf("%d bytes are left", in.Len())
	}
	return records, nil
}

func readPlainRecord(raw []byte, baseTimestamp int64) (r plainRecord, err error) {
	in := bytes.NewReader(raw)
	if _, err = in.ReadByte(); err != nil {
		return r, err
	}
	delta, err := binary.ReadVarint(in)
	if err != nil {
		return r, err
	}
	r.timestamp = baseTimestamp + delta
	if r.delta, err = readPlainInt(in); err != nil {
		return r, err
	}
	if r.key, err = readPlainField(in); err != nil {
		return r, err
	}
	if r.value, err = readPlainField(in); err != nil {
		return r, err
	}
	headers, err := readPlainInt(in)
	if err != nil || headers < 0 {
		return r, fmt.Errorf("%d headers: %v", headers, err)
	}
	for range headers {
		var h plainHeader
		if h.key, err = readPlainField(in); err != nil || h.key == nil {
			return r, fmt.Errorf("header key: %v", err)
		}
		if h.value, err = readPlainField(in); err != nil {
			return r, err
		}
		r.headers = append(r.headers, h)
	}
	if in.Len() > 0 {
		return r, errors.New("bytes are left")
	}
	return r, nil
}

func readPlainInt(in *bytes.Reader) (int32, error) {
	v, err := binary.ReadVarint(in)
	if err == nil && v != int64(int32(v)) {
		err = errors.New("more than 32 bits")
	}
	return int32(v), err
}

func readPlainField(in *bytes.Reader) ([]byte, error) {
	n, err := readPlainInt(in)
	if err != nil || n < 0 {
		return nil, err
	}
	if int(n) > in.Len() {
		return nil, io.ErrUnexpectedEOF
	}
	b := make([]byte, n)
	_, err = io.ReadFull(in, b)
	return b, err
}

// plainHeaderFields are those of a batch header in order, for plainBatch.
type plainHeaderFields struct {
	BaseOffset      int64
	Length          int32
	LeaderEpoch     int32
	Magic           int8
	CRC             uint32
	Attributes      int16
	LastOffsetDelta int32
	BaseTimestamp   int64
	MaxTimestamp    int64
	ProducerID      int64
	ProducerEpoch   int16
	BaseSequence    int32
	Count           int32
}

// plainBatch writes a batch field by field, computing its length and checksum.
func plainBatch(f plainHeaderFields, payload []byte) []byte {
	f.Length = int32(49 + len(payload))
	f.CRC = 0
	var buf bytes.Buffer
	if err := binary.Write(&buf, binary.BigEndian, f); err != nil {
		panic(err)
	}
	buf.Write(payload)
	b := buf.Bytes()
	binary.BigEndian.PutUint32(b[17:], slowCRC(b[21:]))
	return b
}

// slowCRC is CRC-32C bit by bit: polynomial 1EDC6F41, input and output reflected,
// initial value and final exclusive-or all ones.
func slowCRC(b []byte) uint32 {
	crc := ^uint32(0)
	for _, c := range b {
		crc ^= uint32(c)
		for range 8 {
			low := crc & 1
			crc >>= 1
			if low != 0 {
				crc ^= 0x82f63b78
			}
		}
	}
	return ^crc
}

// toRecord makes the package's record of a plain one.
func (p plainRecord) toRecord(baseTimestamp int64) rb.Record {
	r := rb.Record{OffsetDelta: p.delta, TimestampDelta: p.timestamp - baseTimestamp, Key: p.key, Value: p.value}
	for _, h := range p.headers {
		r.AddHeader(h.key, h.value)
	}
	return r
}

// toPlain copies a walked record.
func toPlain(r *rb.Record, timestamp int64) plainRecord {
	p := plainRecord{delta: r.OffsetDelta, timestamp: timestamp, key: bytes.Clone(r.Key), value: bytes.Clone(r.Value)}
	headers := r.Headers()
	for {
		key, value, ok := headers.Next()
		if !ok {
			return p
		}
		p.headers = append(p.headers, plainHeader{bytes.Clone(key), bytes.Clone(value)})
	}
}

// walkPlain reads a whole batch with the package's reader.
func walkPlain(d *rb.Decoder, batch []byte) ([]plainRecord, error) {
	h, err := rb.Parse(batch)
	if err != nil {
		return nil, err
	}
	if err := rb.CheckCRC(batch); err != nil {
		return nil, err
	}
	body, err := d.Body(h, batch)
	if err != nil {
		return nil, err
	}
	var (
		w       rb.Walker
		r       rb.Record
		records []plainRecord
	)
	w.ResetBatch(h, body)
	for w.Next(&r) {
		records = append(records, toPlain(&r, h.Timestamp(&r)))
	}
	return records, w.Err()
}

func mustWalkPlain(t testing.TB, batch []byte) []plainRecord {
	t.Helper()
	records, err := walkPlain(new(rb.Decoder), batch)
	if err != nil {
		t.Fatalf("walk: %v", err)
	}
	return records
}

// mustBuild seals records, whose deltas do not matter, into one batch.
func mustBuild(t testing.TB, codec rb.Codec, records []plainRecord) []byte {
	t.Helper()
	var b rb.Builder
	b.Reset(codec)
	for _, p := range records {
		r := p.toRecord(0)
		b.Append(&r, p.timestamp)
	}
	batch, err := b.Seal(nil, 4711, 3, 17)
	if err != nil {
		t.Fatalf("seal: %v", err)
	}
	return batch
}

// diffRecords says how two lists of records differ, or returns "". Null and empty
// differ.
func diffRecords(got, want []plainRecord) string {
	if len(got) != len(want) {
		return fmt.Sprintf("%d records, want %d", len(got), len(want))
	}
	for i := range got {
		if !got[i].equal(want[i]) {
			return fmt.Sprintf("record %d is %#v, want %#v", i, got[i], want[i])
		}
	}
	return ""
}

func (p plainRecord) equal(q plainRecord) bool {
	return p.delta == q.delta && p.timestamp == q.timestamp && sameBytes(p.key, q.key) && sameBytes(p.value, q.value) &&
		slices.EqualFunc(p.headers, q.headers, func(a, b plainHeader) bool {
			return sameBytes(a.key, b.key) && sameBytes(a.value, b.value)
		})
}

// sameBytes compares, telling null from empty.
func sameBytes(a, b []byte) bool { return bytes.Equal(a, b) && (a == nil) == (b == nil) }

// propertySeed is fixed so that a failure repeats; gopter prints it with a failure.
const propertySeed = 20240914

func propertyParameters(runs int) *gopter.TestParameters {
	p := gopter.DefaultTestParametersWithSeed(propertySeed)
	p.MinSuccessfulTests = runs
	return p
}

// genRecords generates up to most records with dense deltas.
func genRecords(most int) gopter.Gen {
	return func(p *gopter.GenParameters) *gopter.GenResult {
		records := randomRecords(p.Rng, 1+p.Rng.Intn(most))
		return gopter.NewGenResult(records, gopter.NoShrinker)
	}
}

func randomRecords(rng *rand.Rand, n int) []plainRecord {
	base := randomTimestamp(rng)
	records := make([]plainRecord, n)
	for i := range records {
		records[i] = plainRecord{
			delta:     int32(i),
			timestamp: base + rng.Int63n(1000) - 500,
			key:       randomBytes(rng),
			value:     randomBytes(rng),
		}
		if rng.Intn(8) == 0 {
			records[i].timestamp = randomTimestamp(rng)
		}
		for rng.Intn(3) == 0 {
			// Few different keys, so that some repeat.
			h := plainHeader{key: []byte{}, value: randomBytes(rng)}
			if rng.Intn(4) > 0 {
				h.key = []byte{'a' + byte(rng.Intn(3))}
			}
			records[i].headers = append(records[i].headers, h)
		}
	}
	return records
}

func randomTimestamp(rng *rand.Rand) int64 {
	switch rng.Intn(6) {
	case 0:
		return -1
	case 1:
		return -rng.Int63n(1_000_000)
	case 2:
		return int64(rng.Uint64())
	default:
		return 1_700_000_000_000 + rng.Int63n(1_000_000)
	}
}

// randomBytes returns null, empty, repetitive or random bytes, mostly few.
func randomBytes(rng *rand.Rand) []byte {
	n := rng.Intn(40)
	if rng.Intn(50) == 0 {
		n = rng.Intn(5000)
	}
	switch rng.Intn(4) {
	case 0:
		return nil
	case 1:
		return []byte{}
	case 2:
		return bytes.Repeat([]byte{byte(rng.Intn(4))}, n)
	default:
		b := make([]byte, n)
		rng.Read(b)
		return b
	}
}

func eachCodec(t *testing.T, f func(t *testing.T, codec rb.Codec)) {
	t.Helper()
	for codec := rb.None; codec <= rb.Zstd; codec++ {
		t.Run(codec.String(), func(t *testing.T) { f(t, codec) })
	}
}
