package replicate

import (
	"errors"
	"fmt"

	"apograph/internal/canon"
	"apograph/internal/recordbatch"
	"apograph/ledger"
)

// tools are the reusable buffers of one goroutine that reads and encodes
// batches. Not safe for concurrent use; a flow keeps a pool of them, so memory
// follows the partitions at work and not those that exist.
type tools struct {
	decoder   recordbatch.Decoder
	builder   recordbatch.Builder
	walker    recordbatch.Walker
	record    recordbatch.Record
	canonical []byte
	buffers   *buffers // shared by all
}

// each calls f for each record of batch with its time in milliseconds as a
// consumer sees it. The record is valid during the call.
func (t *tools) each(batch []byte, f func(r *recordbatch.Record, timestamp int64) error) error {
	header, err := recordbatch.Parse(batch)
	if err != nil {
		return err
	}
	body, err := t.decoder.Body(header, batch)
	if err != nil {
		return err
	}
	for t.walker.ResetBatch(header, body); t.walker.Next(&t.record); {
		if err := f(&t.record, header.Timestamp(&t.record)); err != nil {
			return err
		}
	}
	return t.walker.Err()
}

// hash returns the record's hash (design: xxHash64 of the canonical record)
// and the length of its canonical bytes.
func (t *tools) hash(r *recordbatch.Record, timestamp int64) (hash uint64, bytes int64) {
	c := canon.AppendRecord(t.canonical[:0], timestamp, r.Key, r.Value, r.HeaderCount)
	for headers := r.Headers(); ; {
		key, value, ok := headers.Next()
		if !ok {
			break
		}
		c = canon.AppendHeader(c, key, value)
	}
	t.canonical = c
	return canon.Sum(c), int64(len(c))
}

// describe fills u.infos by reading the unit's own batch.
func (t *tools) describe(u *unit) error {
	if u.infos != nil || u.records == 0 {
		return nil
	}
	infos := make([]recordInfo, 0, u.records)
	for run := range u.entry.Runs() {
		if run.Tile != ledger.Copied {
			continue
		}
		for offset := run.Source.Start; offset < run.Source.End; offset++ {
			infos = append(infos, recordInfo{offset: offset})
		}
	}
	if len(infos) != int(u.records) {
		return fmt.Errorf("entry has %d records, its batch %d", len(infos), u.records)
	}
	i := 0
	err := t.each(u.batch, func(r *recordbatch.Record, timestamp int64) error {
		if u.entry.TimestampsReplaced {
			timestamp = 0
		}
		infos[i].hash, infos[i].bytes = t.hash(r, timestamp)
		i++
		return nil
	})
	if err != nil {
		return err
	}
	u.infos = infos
	return nil
}

// errDamaged reports that a unit's batch is not what was hashed any more.
var errDamaged = errors.New("batch damaged in memory")

// checkBatch reports damage to a unit's batch since its checksum was taken.
func checkBatch(u *unit) error {
	if err := recordbatch.CheckCRC(u.batch); err != nil {
		return fmt.Errorf("%w: %w", errDamaged, err)
	}
	return nil
}

// halve splits a unit into two that hold its records in the same order. A
// unit of one record is encoded anew instead. What would give a new checksum to
// other records than those that were hashed is refused with errDamaged.
func (t *tools) halve(u *unit) ([]*unit, error) {
	if err := checkBatch(u); err != nil {
		return nil, err
	}
	if err := t.describe(u); err != nil {
		return nil, err
	}
	bounds := []int{0, 1}
	if n := int(u.records); n > 1 {
		bounds = []int{0, n / 2, n}
	}
	parts, err := t.cut(u, bounds...)
	if err != nil {
		return nil, err
	}
	var whole ledger.Digest
	for _, part := range parts {
		whole = ledger.Concat(whole, part.entry.Digest, int64(part.records))
	}
	if whole != u.entry.Digest {
		return nil, fmt.Errorf("%w: digest %v, %v was booked", errDamaged, whole, u.entry.Digest)
	}
	return parts, nil
}

// cut encodes the records between each two bounds as a unit of their own.
// Source-only tiles between two of them go with the former.
func (t *tools) cut(u *unit, bounds ...int) ([]*unit, error) {
	header, err := recordbatch.Parse(u.batch)
	if err != nil {
		return nil, err
	}
	var parts []*unit
	start := u.entry.Source.Start
	for i := range len(bounds) - 1 {
		from, to := bounds[i], bounds[i+1]
		end := u.entry.Source.End
		if to < len(u.infos) {
			end = u.infos[to].offset
		}
		batch, err := t.encode(header.Codec(), u.batch, from, to)
		if err != nil {
			return nil, err
		}
		part := u.part(start, from, to, end)
		encoded, err := recordbatch.Parse(batch)
		if err != nil {
			return nil, err
		}
		part.batch, part.recoded, part.maxTimestamp = batch, true, encoded.MaxTimestamp
		parts = append(parts, part)
		start = end
	}
	u.release()
	return parts, nil
}

// encode encodes the records [from, to) of batch as a batch of their own.
func (t *tools) encode(codec recordbatch.Codec, batch []byte, from, to int) ([]byte, error) {
	t.builder.Reset(codec)
	i := 0
	err := t.each(batch, func(r *recordbatch.Record, timestamp int64) error {
		if i >= from && i < to {
			t.builder.Append(r, timestamp)
		}
		i++
		return nil
	})
	if err != nil {
		return nil, err
	}
	return t.builder.Seal(nil, -1, -1, -1)
}
