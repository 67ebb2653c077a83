package kafkatest

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
)

// An openedLog is a log whose batches are decoded, so that single records can
// be changed. Batches that nothing touches keep their bytes, but for the base
// offset.
type openedLog struct {
	start   int64 // what lies below cannot be read and is left alone
	batches []openedBatch
}

type openedBatch struct {
	Batch
	raw     []byte
	touched bool
}

// A place is where a record lies in an openedLog. It is not its offset: with
// Shift offsets change while places do not.
type place struct{ batch, record int }

func openLog(l *Log) (*openedLog, error) {
	w := &openedLog{start: l.Start}
	for _, raw := range l.Batches {
		b, err := DecodeBatch(raw)
		if err != nil {
			return nil, err
		}
		w.batches = append(w.batches, openedBatch{Batch: b, raw: raw})
	}
	return w, nil
}

// close puts the batches back into the log; end is the log's end if there are
// none left.
func (w *openedLog) close(l *Log, end int64) error {
	l.Batches, l.End = nil, end
	for i := range w.batches {
		b := &w.batches[i]
		raw := slices.Clone(b.raw)
		if b.touched {
			var err error
			if raw, err = b.Encode(); err != nil {
				return err
			}
		}
		binary.BigEndian.PutUint64(raw, uint64(b.BaseOffset)) // outside the checksum
		l.Batches = append(l.Batches, raw)
	}
	return nil
}

func (w *openedLog) record(at place) *BatchRecord { return &w.batches[at.batch].Records[at.record] }

func (w *openedLog) offset(at place) int64 {
	return w.batches[at.batch].BaseOffset + int64(w.record(at).OffsetDelta)
}

// places returns where the readable data records are, in offset order.
func (w *openedLog) places() []place {
	var places []place
	for i := range w.batches {
		if w.batches[i].Control() {
			continue
		}
		for j := range w.batches[i].Records {
			if at := (place{i, j}); w.offset(at) >= w.start {
				places = append(places, at)
			}
		}
	}
	return places
}

func (w *openedLog) find(offset int64) (place, error) {
	for _, at := range w.places() {
		if w.offset(at) == offset {
			return at, nil
		}
	}
	return place{}, fmt.Errorf("no record at offset %d", offset)
}

// next returns the data record after the one at a place.
func (w *openedLog) next(at place) (place, bool) {
	places := w.places()
	i := slices.Index(places, at)
	if i < 0 || i+1 == len(places) {
		return place{}, false
	}
	return places[i+1], true
}

// touch has a batch encoded anew, with the largest timestamp that it then has.
func (w *openedLog) touch(at place) {
	b := &w.batches[at.batch]
	b.touched = true
	if b.Attributes&AttrLogAppendTime != 0 {
		return
	}
	b.MaxTimestamp = -1
	for _, r := range b.Records {
		b.MaxTimestamp = max(b.MaxTimestamp, r.Timestamp)
	}
}

// drop removes a record. An emptied batch goes, too, unless it is the last and
// offsets shall stay: it then keeps the log end.
func (w *openedLog) drop(at place, shift bool) {
	b := &w.batches[at.batch]
	b.Records = slices.Delete(b.Records, at.record, at.record+1)
	w.touch(at)
	if shift {
		for i := at.record; i < len(b.Records); i++ {
			b.Records[i].OffsetDelta--
		}
		b.LastOffsetDelta--
		w.shift(at.batch+1, -1)
	}
	if len(b.Records) == 0 && (shift || at.batch < len(w.batches)-1) {
		w.batches = slices.Delete(w.batches, at.batch, at.batch+1)
	}
}

// shift moves the batches from the given one on.
func (w *openedLog) shift(from int, by int64) {
	for i := from; i < len(w.batches); i++ {
		w.batches[i].BaseOffset += by
	}
}

// insert puts a record into a batch of its own, without producer, behind the
// record at a place (Shift) or at the log end, and notes its offset.
func (w *openedLog) insert(at place, r BatchRecord, done *Sabotaged) {
	index, offset := len(w.batches), w.batches[len(w.batches)-1].NextOffset()
	if done.Shift {
		offset = w.offset(at) + 1
		index = w.split(at)
	}
	b := NewBatch(offset, r)
	b.LeaderEpoch = w.batches[at.batch].LeaderEpoch
	w.batches = slices.Insert(w.batches, index, openedBatch{Batch: b, touched: true})
	w.shift(index+1, 1)
	done.Start, done.End = offset, offset+1
}

// split cuts a batch behind the record at a place, unless nothing of it lies
// behind, and returns the index at which the cut is.
func (w *openedLog) split(at place) int {
	head := &w.batches[at.batch]
	cut := w.record(at).OffsetDelta + 1
	if cut > head.LastOffsetDelta {
		return at.batch + 1
	}
	tail := *head
	tail.BaseOffset += int64(cut)
	tail.LastOffsetDelta -= cut
	if tail.BaseSequence >= 0 {
		tail.BaseSequence += cut
	}
	tail.Records = slices.Clone(head.Records[at.record+1:])
	for i := range tail.Records {
		tail.Records[i].OffsetDelta -= cut
	}
	head.Records = head.Records[:at.record+1]
	head.LastOffsetDelta = cut - 1
	w.batches = slices.Insert(w.batches, at.batch+1, tail)
	w.touch(at)
	w.touch(place{batch: at.batch + 1})
	return at.batch + 1
}

// truncate cuts the log before the count-th last data record.
func (w *openedLog) truncate(count int, done *Sabotaged) error {
	places := w.places()
	if count > len(places) {
		return errors.New("the partition does not hold as many records")
	}
	at := places[len(places)-count]
	done.Start, done.End = w.offset(at), w.batches[len(w.batches)-1].NextOffset()
	done.Detail = fmt.Sprintf("the log cut from %d to %d", done.End, done.Start)
	b := &w.batches[at.batch]
	w.batches = w.batches[:at.batch+1]
	if b.LastOffsetDelta = b.Records[at.record].OffsetDelta - 1; b.LastOffsetDelta < 0 {
		w.batches = w.batches[:at.batch]
		return nil
	}
	b.Records = b.Records[:at.record]
	w.touch(at)
	return nil
}
