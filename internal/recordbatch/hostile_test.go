package recordbatch_test

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand"
	"testing"

	rb "apograph/internal/recordbatch"
)

// hostileLimit is what a body may have in these tests. Honest ones are far below.
const hostileLimit = 1 << 16

// smallBatch has every kind of field, in few bytes.
func smallBatch(t testing.TB, fm form) []byte {
	t.Helper()
	body := plainBody(javaRecords(), 1700000000000)
	_, batch := packBatch(fm.codec, len(javaRecords()), fm.pack(t, body))
	return batch
}

// TestEveryPrefix: no part of a batch is a batch, neither as it was cut nor with
// length and checksum made right again.
func TestEveryPrefix(t *testing.T) {
	d := rb.Decoder{MaxBytes: hostileLimit}
	eachForm(t, func(t *testing.T, fm form) {
		batch := smallBatch(t, fm)
		h := mustParse(t, batch)
		for n := range len(batch) {
			if _, _, err := rb.Peek(batch[:n]); !errors.Is(err, rb.ErrTruncated) {
				t.Fatalf("Peek of the first %d of %d bytes: error %v, want ErrTruncated", n, len(batch), err)
			}
			if n < rb.HeaderSize {
				continue
			}
			if _, err := walkPlain(&d, h.Encode(nil, batch[rb.HeaderSize:n])); err == nil {
				t.Fatalf("the first %d of %d bytes, made a batch again, are read without an error", n, len(batch))
			}
		}
	})
}

// TestEveryFlippedBit flips each bit of a batch and makes length and checksum right
// again: what is still read must be consistent with itself.
func TestEveryFlippedBit(t *testing.T) {
	d := rb.Decoder{MaxBytes: hostileLimit}
	eachForm(t, func(t *testing.T, fm form) {
		batch := smallBatch(t, fm)
		for bit := range len(batch) * 8 {
			damaged := bytes.Clone(batch)
			damaged[bit/8] ^= 1 << (bit % 8)
			if err := checkDamaged(&d, damaged); err != nil {
				t.Fatalf("bit %d: %v", bit, err)
			}
		}
	})
}

// TestRandomDamage does worse to more kinds of batches.
func TestRandomDamage(t *testing.T) {
	rng := rand.New(rand.NewSource(propertySeed))
	d := rb.Decoder{MaxBytes: hostileLimit}
	var honest [][]byte
	for _, fm := range forms() {
		for range 10 {
			records := randomRecords(rng, 1+rng.Intn(5))
			_, batch := packBatch(fm.codec, len(records), fm.pack(t, plainBody(records, records[0].timestamp)))
			honest = append(honest, batch)
		}
	}
	for round := range 5000 {
		batch := bytes.Clone(honest[round%len(honest)])
		for range 1 + rng.Intn(4) {
			at := rng.Intn(len(batch))
			switch rng.Intn(3) {
			case 0:
				batch[at] = byte(rng.Intn(256))
			case 1:
				batch = append(batch[:at], batch[at+1:]...)
			default:
				batch = append(batch[:at+1], batch[at:]...)
			}
		}
		if err := checkDamaged(&d, batch); err != nil {
			t.Fatalf("round %d, % x: %v", round, batch, err)
		}
	}
}

// checkDamaged reads bytes that may be anything, and says what of the result is
// inconsistent. The checksum is made right first, or nothing would be read.
func checkDamaged(d *rb.Decoder, damaged []byte) error {
	size, magic, peekErr := rb.Peek(damaged)
	h, err := rb.Parse(damaged)
	if err != nil {
		return nil
	}
	if peekErr != nil || size != len(damaged) || magic != 2 || h.Size() != size {
		return fmt.Errorf("parsed, but Peek = %d, %d, %v", size, magic, peekErr)
	}
	if h.NextOffset() <= h.BaseOffset || int64(h.Count) > h.NextOffset()-h.BaseOffset {
		return fmt.Errorf("offsets of %+v", h)
	}
	batch := h.Encode(nil, damaged[rb.HeaderSize:])
	if err := rb.CheckCRC(batch); err != nil {
		return err
	}
	body, err := d.Body(h, batch)
	if err != nil {
		return nil
	}
	if len(body) > max(hostileLimit, len(batch)) {
		return fmt.Errorf("body of %d bytes", len(body))
	}
	records, err := walkPlain(d, batch)
	if err != nil {
		return checkRefused(h, body, err)
	}
	return checkAccepted(h, body, records)
}

// checkAccepted compares what was read with the slow reader, and with what reading
// it once more gives after it was built anew.
func checkAccepted(h rb.Header, body []byte, records []plainRecord) error {
	if len(records) != int(h.Count) {
		return fmt.Errorf("%d records, %d are counted", len(records), h.Count)
	}
	if h.Count == 0 {
		return nil
	}
	last := int32(-1)
	var b rb.Builder
	for i, p := range records {
		if p.delta <= last || p.delta > h.LastOffsetDelta {
			return fmt.Errorf("record %d has offset delta %d behind %d", i, p.delta, last)
		}
		last = p.delta
		r := p.toRecord(0)
		b.Append(&r, p.timestamp)
		if h.LogAppendTime() {
			records[i].timestamp = 0 // the slow reader knows no stamps
		}
	}
	slow, err := readPlainBody(body, h.BaseTimestamp, len(records))
	if err != nil {
		return fmt.Errorf("the slow reader refuses the body: %w", err)
	}
	for i := range slow {
		if h.LogAppendTime() {
			slow[i].timestamp = 0
		}
	}
	if diff := diffRecords(records, slow); diff != "" {
		return fmt.Errorf("the slow reader differs: %s", diff)
	}
	batch, err := b.Seal(nil, 1, 0, 0)
	if err != nil {
		return err
	}
	again, err := walkPlain(new(rb.Decoder), batch)
	if err != nil || len(again) != len(records) {
		return fmt.Errorf("built anew: %d records, error %w", len(again), err)
	}
	return nil
}

// checkRefused wants the slow reader to refuse the body as well, or its offsets to
// be what a log cannot hold, or its numbers longer than they may be.
func checkRefused(h rb.Header, body []byte, refusal error) error {
	slow, err := readPlainBody(body, h.BaseTimestamp, int(h.Count))
	if err != nil {
		return nil
	}
	last := int32(-1)
	for _, p := range slow {
		if p.delta <= last || p.delta > h.LastOffsetDelta {
			return nil
		}
		last = p.delta
	}
	return fmt.Errorf("refused (%w), but the slow reader reads %d records", refusal, len(slow))
}

// TestHostileSizes: lengths and counts that claim much must not cost much.
func TestHostileSizes(t *testing.T) {
	small := record(attributes, zero, zero, null, null, zero)
	hostile := [][]byte{
		rb.Header{Magic: 2, LastOffsetDelta: 1<<31 - 1, Count: 1<<31 - 1}.Encode(nil, small),
		rb.Header{Magic: 2, LastOffsetDelta: 1<<31 - 1, Count: 1<<31 - 1, Attributes: 2}.Encode(nil, packSnappy(t, small)),
		rb.Header{Magic: 2, Count: 1}.Encode(nil, record(attributes, zero, zero, null, null, number(1<<31-1))),
		rb.Header{Magic: 2, Count: 1}.Encode(nil, number(1<<31-1)),
		rb.Header{Magic: 2, Count: 1}.Encode(nil, record(attributes, zero, zero, number(1<<31-1), null, zero)),
	}
	for i, batch := range hostile {
		var (
			d   rb.Decoder
			err error
		)
		if used := allocated(func() { _, err = walkPlain(&d, batch) }); used > 64<<10 {
			t.Errorf("batch %d: %d bytes allocated", i, used)
		}
		if err == nil {
			t.Errorf("batch %d: no error", i)
		}
	}
}
