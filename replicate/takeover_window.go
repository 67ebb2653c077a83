package replicate

import (
	"context"
	"errors"
	"fmt"

	"apograph/internal/recordbatch"
	"apograph/ledger"
)

// A takenRecord is a record of the source that a copier may have brought over.
type takenRecord struct {
	sourceRecord
	aborted bool // of an aborted transaction: unit, before and index mean nothing
}

// A takenWindow reads the source ahead, aborted records with the others.
type takenWindow struct {
	read    func() (*unit, error) // nil at the end
	ended   bool
	records []takenRecord
	absent  int64
	before  []*unit
}

// peek returns record i, nil behind the end. The pointer is good until the
// window is used again.
func (w *takenWindow) peek(i int) (*takenRecord, error) {
	for !w.ended && i >= len(w.records) {
		u, err := w.read()
		if err != nil {
			return nil, err
		}
		if u == nil {
			w.ended = true
			break
		}
		w.take(u)
	}
	if i >= len(w.records) {
		return nil, nil
	}
	return &w.records[i], nil
}

func (w *takenWindow) pop(n int) { w.records = w.records[n:] }

func (w *takenWindow) take(u *unit) {
	if u.records == 0 {
		w.before = append(w.before, u)
		switch u.entry.Tile {
		case ledger.CommitMarker, ledger.AbortMarker, ledger.Aborted:
		default:
			w.absent += u.entry.Source.Len()
		}
	}
	u.everyInfo(func(info recordInfo, copied int) {
		r := takenRecord{sourceRecord: sourceRecord{recordInfo: info}, aborted: copied < 0}
		if !r.aborted {
			r.unit, r.index, r.before, r.absent = u, copied, w.before, w.absent+compactedBefore(u, copied)
			w.absent, w.before = 0, nil
		}
		w.records = append(w.records, r)
	})
	if u.records > 0 {
		w.absent = trailingGap(u)
	}
}

// What stands at offsets of a target that somebody else has written.
type copyKind uint8

const (
	copyRecord    copyKind = iota // a record that consumers see
	copyDiscarded                 // a record of an aborted transaction of the copier's
	copyMarker                    // a control record
	copyHole                      // nothing
)

// A copyRun is one record of the target, or offsets that hold none.
type copyRun struct {
	offset, n int64
	kind      copyKind
	sums      // of copyRecord
}

// sums tell a record of the target.
type sums struct {
	hash uint64
	bare uint64 // as if its time were 0
}

// equal reports whether a record of the target is one of the source, whose hash is
// given, with its time or, if that has none, with any.
func (s sums) equal(hash uint64) bool { return s.hash == hash || s.bare == hash }

// A stampedRecord is a record of the target.
type stampedRecord struct {
	offset int64
	sums
}

// A copyBatch is one batch of the target.
type copyBatch struct {
	base, next int64
	kind       copyKind // of its records
	records    []stampedRecord
}

// A copyWindow reads the target ahead.
type copyWindow struct {
	read    func() (*copyBatch, error) // nil at the end
	at, end int64                      // all below at was read; of the log
	ended   bool
	runs    []copyRun
}

// peek returns run i, nil behind the end of the log.
func (w *copyWindow) peek(i int) (*copyRun, error) {
	for !w.ended && i >= len(w.runs) {
		b, err := w.read()
		if err != nil {
			return nil, err
		}
		if b == nil {
			w.add(copyRun{n: w.end - w.at, kind: copyHole})
			w.ended = true
			break
		}
		w.take(b)
	}
	if i >= len(w.runs) {
		return nil, nil
	}
	return &w.runs[i], nil
}

func (w *copyWindow) pop() { w.runs = w.runs[1:] }

// add appends a run at the window's end; nothing if it is empty.
func (w *copyWindow) add(r copyRun) {
	if r.n > 0 {
		r.offset = w.at
		w.runs = append(w.runs, r)
		w.at += r.n
	}
}

func (w *copyWindow) take(b *copyBatch) {
	w.add(copyRun{n: b.base - w.at, kind: copyHole})
	if b.kind == copyMarker {
		w.add(copyRun{n: b.next - w.at, kind: copyMarker})
	}
	for _, r := range b.records {
		if r.offset >= w.at {
			w.add(copyRun{n: r.offset - w.at, kind: copyHole})
			w.add(copyRun{n: 1, sums: r.sums, kind: b.kind})
		}
	}
	w.add(copyRun{n: b.next - w.at, kind: copyHole})
}

// copyBatches hands over the batches of a target partition from r.next on, as
// one who reads committed data takes them.
func (f *Flow) copyBatches(r attachReader, timestampsReplaced bool) func(ctx context.Context, emit func([]*copyBatch) bool) error {
	return func(ctx context.Context, emit func([]*copyBatch) bool) error {
		for r.next < r.end {
			answer, err := r.fetch(ctx)
			if err != nil || answer == nil {
				return err
			}
			aborted := abortedOf(answer)
			batches, err := f.copyPiece(&r, &aborted, answer.RecordBatches, timestampsReplaced)
			if len(batches) > 0 && !emit(batches) {
				return context.Cause(ctx)
			}
			if err != nil {
				return err
			}
		}
		return nil
	}
}

// copyPiece reads the whole batches of one answer.
func (f *Flow) copyPiece(r *attachReader, aborted *abortedTransactions, data []byte, timestampsReplaced bool) (batches []*copyBatch, err error) {
	t := f.tools()
	defer f.giveBack(t)
	before := r.next
	for r.next < r.end {
		size, magic, err := recordbatch.Peek(data)
		if errors.Is(err, recordbatch.ErrTruncated) || len(data) == 0 {
			break
		}
		if err == nil && magic != 2 {
			err = fmt.Errorf("message format %d", magic)
		}
		var b *copyBatch
		if err == nil {
			b, err = t.readCopy(data[:size], aborted, timestampsReplaced)
		}
		if err != nil {
			return batches, misaligned("target offset %d: %v", r.next, err)
		}
		data = data[size:]
		if b.next > r.next {
			r.next = b.next
			batches = append(batches, b)
		}
	}
	if r.next == before {
		return nil, fmt.Errorf("%v: no whole batch at offset %d", r.tp, r.next)
	}
	return batches, nil
}

// readCopy describes one batch.
func (t *tools) readCopy(raw []byte, aborted *abortedTransactions, timestampsReplaced bool) (*copyBatch, error) {
	h, err := recordbatch.Parse(raw)
	if err != nil {
		return nil, err
	}
	if err := recordbatch.CheckCRC(raw); err != nil {
		return nil, err
	}
	tile, err := aborted.classify(h, raw)
	if err != nil {
		return nil, err
	}
	b := &copyBatch{base: h.BaseOffset, next: h.NextOffset()}
	switch {
	case tile == ledger.CommitMarker || tile == ledger.AbortMarker:
		b.kind = copyMarker
		return b, nil
	case h.Count == 0:
		return b, nil // what stood there was compacted away
	case tile == ledger.Aborted:
		b.kind = copyDiscarded
	}
	err = t.each(raw, func(r *recordbatch.Record, timestamp int64) error {
		x := stampedRecord{offset: h.BaseOffset + int64(r.OffsetDelta)}
		x.bare, _ = t.hash(r, 0)
		if x.hash = x.bare; !timestampsReplaced {
			x.hash, _ = t.hash(r, timestamp)
		}
		b.records = append(b.records, x)
		return nil
	})
	return b, err
}
