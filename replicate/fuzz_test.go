package replicate

import (
	"encoding/binary"
	"errors"
	"math"
	"testing"

	"apograph/internal/recordbatch"
	"apograph/ledger"
)

// fuzzBodyLimit bounds decompressed bodies while fuzzing.
const fuzzBodyLimit = 1 << 18

// FuzzAssemble takes bytes as a broker may send them in answer to a fetch, with a
// list of aborted transactions, and assembles them from a position on. Whatever
// comes: each offset is accounted for once and in order, what would be sent is one
// dense batch that holds what its entry says, and what cannot be read stops at the
// offset from which it cannot.
func FuzzAssemble(f *testing.F) {
	for _, seed := range assembleSeeds() {
		f.Add(seed.data, seed.aborted, seed.pos, seed.logStart, byte(0))
		f.Add(seed.data, seed.aborted, seed.pos, seed.logStart, byte(7))
	}
	t := &tools{buffers: &buffers{}}
	t.decoder.MaxBytes = fuzzBodyLimit
	f.Fuzz(func(tt *testing.T, data, aborted []byte, pos, logStart int64, flags byte) {
		if pos < 0 || pos == math.MaxInt64 || logStart < 0 {
			return
		}
		a := &assembler{
			tools: t, joinLimit: joinBytes, pos: pos, compactPolicy: flags&1 > 0, firstSight: flags&2 > 0,
			timestampsReplaced: flags&8 > 0, keepInfos: flags&16 > 0,
			logStart: func() (int64, error) { return logStart, nil },
			loss:     func(bool) ledger.Cause { return ledger.CauseRetention },
		}
		c := &chunk{aborted: newAborted(abortedIn(aborted)), logStart: logStart}
		wholeBatches(c, data, &fetchState{next: pos})
		checkAssembled(tt, a, c, pos)
	})
}

func checkAssembled(t *testing.T, a *assembler, c *chunk, at int64) {
	t.Helper()
	for n := 0; ; n++ {
		u, err := a.next(c)
		if err != nil {
			var bad *sourceError
			if !errors.As(err, &bad) || bad.offset < at {
				t.Fatalf("at %d: %v", at, err)
			}
			return
		}
		if u == nil {
			break
		}
		if u.entry.Source.Start != at || u.entry.Source.End <= at {
			t.Fatalf("source offsets %v, expected from %d on", u.entry.Source, at)
		}
		at = u.entry.Source.End
		checkUnit(t, u)
		u.release()
	}
	if a.settled() != at {
		t.Fatalf("settled at %d, the units end at %d", a.settled(), at)
	}
}

func checkUnit(t *testing.T, u *unit) {
	t.Helper()
	u.land(0)
	if err := u.entry.Validate(); err != nil {
		t.Fatalf("%+v: %v", u.entry, err)
	}
	if (u.records > 0) != (u.entry.Tile == ledger.Copied) || int64(u.records) != u.entry.Records() {
		t.Fatalf("%d records in %+v", u.records, u.entry)
	}
	if u.records == 0 {
		return
	}
	recordbatch.Patch(u.batch, 7, 1, 42)
	h, err := recordbatch.Parse(u.batch)
	if err != nil || !h.Dense() || h.Count != u.records || h.Control() || h.Transactional() || h.ProducerID != 7 {
		t.Fatalf("batch %+v of %d records: %v", h, u.records, err)
	}
	if err := checkBatch(u); err != nil {
		t.Fatal(err)
	}
}

func abortedIn(b []byte) (starts []abortedStart) {
	for ; len(b) >= 3; b = b[3:] {
		starts = append(starts, abortedStart{producerID: int64(b[0]), firstOffset: int64(binary.BigEndian.Uint16(b[1:]))})
	}
	return starts
}

type assembleSeed struct {
	data, aborted []byte
	pos, logStart int64
}

func assembleSeeds() []assembleSeed {
	changed := func(b []byte, change func(*recordbatch.Header)) []byte {
		h, _ := recordbatch.Parse(b)
		change(&h)
		return h.Encode(nil, b[recordbatch.HeaderSize:])
	}
	plain := append(batchOf(0, 3), batchOf(3, 5)...)
	sparse := changed(batchOf(8, 3), func(h *recordbatch.Header) { h.LastOffsetDelta = 9 })
	empty := recordbatch.Header{BaseOffset: 18, Magic: 2, LastOffsetDelta: 4, ProducerID: -1, ProducerEpoch: -1, BaseSequence: -1}.Encode(nil, nil)
	transaction := changed(batchOf(0, 4), func(h *recordbatch.Header) {
		h.Attributes, h.ProducerID, h.ProducerEpoch, h.BaseSequence = 0x10, 5, 0, 0
	})
	abort := changed(recordbatch.Header{BaseOffset: 4, Magic: 2, Count: 1, ProducerID: 5, BaseSequence: -1}.Encode(nil, (&recordbatch.Record{Key: make([]byte, 4), Value: []byte{0, 0, 0, 0, 0, 0}}).Encode(nil)),
		func(h *recordbatch.Header) { h.Attributes = 0x30 })
	unknown := changed(recordbatch.Header{BaseOffset: 0, Magic: 2, Count: 1, ProducerID: 5, BaseSequence: -1}.Encode(nil, (&recordbatch.Record{Key: []byte{0, 0, 0, 9}}).Encode(nil)),
		func(h *recordbatch.Header) { h.Attributes = 0x30 })
	return []assembleSeed{
		{data: plain},
		{data: append(plain[:len(plain):len(plain)], sparse...), pos: 2},
		{data: append(plain[:len(plain):len(plain)], empty...)},
		{data: plain, pos: 1, logStart: 4},
		{data: plain[:len(plain)-9]},
		{data: append(transaction[:len(transaction):len(transaction)], abort...), aborted: []byte{5, 0, 0}},
		{data: append(transaction[:len(transaction):len(transaction)], abort...)},
		{data: unknown},
		{data: batchOf(math.MaxInt64-4, 3), pos: math.MaxInt64 - 5},
		{data: batchOf(math.MaxInt64-2, 3), pos: math.MaxInt64 - 2},
		{data: messageSet(1, 0, 7000, []byte("k"), []byte("v"))},
		{data: append(messageSet(0, 3, 0, nil, nil), batchOf(4, 1)...), pos: 3},
	}
}
