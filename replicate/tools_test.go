package replicate

import (
	"errors"
	"testing"

	"apograph/internal/recordbatch"
)

// TestDamageInMemoryIsNotEncodedAnew: a batch that changed after it was hashed
// is refused by the broker; splitting it would give the damage a new checksum.
func TestDamageInMemoryIsNotEncodedAnew(t *testing.T) {
	if a := classifyProduce(2, -1, ""); a.outcome != refused { // CORRUPT_MESSAGE
		t.Fatal(a)
	}
	units, err := assembleAll(newTestAssembler(), largeBatch(0, 10, 2000))
	if err != nil || len(units) != 1 || units[0].recoded {
		t.Fatal(err, len(units))
	}
	u := units[0]
	recordbatch.Patch(u.batch, 7, 0, 0)
	u.batch[len(u.batch)-100] ^= 0x40 // inside the last value
	if parts, err := (&tools{buffers: &buffers{}}).halve(u); !errors.Is(err, errDamaged) {
		t.Errorf("split into %d parts, %v", len(parts), err)
	}
}

// TestWrongDigestIsNotEncodedAnew: the same where the checksum holds.
func TestWrongDigestIsNotEncodedAnew(t *testing.T) {
	units, err := assembleAll(newTestAssembler(), largeBatch(0, 10, 2000))
	if err != nil {
		t.Fatal(err)
	}
	units[0].entry.Digest++
	if parts, err := (&tools{buffers: &buffers{}}).halve(units[0]); !errors.Is(err, errDamaged) {
		t.Errorf("split into %d parts, %v", len(parts), err)
	}
}

func largeBatch(base int64, n int32, size int) []byte {
	h := recordbatch.Header{
		BaseOffset: base, Magic: 2, LastOffsetDelta: n - 1, Count: n,
		BaseTimestamp: 1000, MaxTimestamp: 1000, ProducerID: -1, ProducerEpoch: -1, BaseSequence: -1,
	}
	var body []byte
	for i := range n {
		r := recordbatch.Record{OffsetDelta: i, Value: make([]byte, size)}
		body = r.Encode(body)
	}
	return h.Encode(nil, body)
}

// TestRecodedUnitsAreHeld: what is encoded anew counts as held data until it is
// booked.
func TestRecodedUnitsAreHeld(t *testing.T) {
	s := &source{budget: newBudget(1 << 20)}
	u := &unit{batch: make([]byte, 1000), records: 1}
	s.hold(u)
	s.hold(u)
	if s.budget.used != 1000 {
		t.Errorf("held %d bytes, want 1000", s.budget.used)
	}
	u.release()
	if s.budget.used != 0 {
		t.Errorf("%d bytes are held still", s.budget.used)
	}
}

// TestHalvesKeepTheirTimes: each half knows the newest time of its own records.
func TestHalvesKeepTheirTimes(t *testing.T) {
	units, err := assembleAll(newTestAssembler(), largeBatch(0, 10, 2000))
	if err != nil {
		t.Fatal(err)
	}
	for _, part := range halveAll(t, &tools{buffers: &buffers{}}, units[0]) {
		if part.maxTimestamp != 1000 {
			t.Errorf("a part of one record is of %d ms, want 1000", part.maxTimestamp)
		}
	}
}
