package recordbatch

import (
	"fmt"
	"math"
)

// A Walker reads the records of one decompressed body, in order, and checks all
// of it on the way: that varints end and fit, that lengths stay inside the record
// and the record inside the body, that headers are well formed, that offset
// deltas rise strictly from 0 or more, and that the body holds exactly the
// records that the header counts and no byte more. The usual loop is:
//
//	w.ResetBatch(header, body)
//	for w.Next(&record) {
//		...
//	}
//	if err := w.Err(); err != nil {
//
// The zero Walker has no records. Reset makes it reusable; it does not allocate.
//
// What a consumer sees follows Kafka's Java client (DefaultRecord.readFrom): any
// negative length of a key, value or header value is null, the record attributes
// mean nothing, and header keys need not be UTF-8. Offset deltas that do not rise
// strictly are an error here and not there: a log cannot hold two records at one
// offset, so such a batch has no true copy.
type Walker struct {
	body  []byte
	at    int
	count int32 // records that the body must hold
	read  int32
	last  int32 // offset delta of the last record read, -1 before the first
	limit int32 // largest offset delta that leaves room for the records behind
	err   error
}

// Reset makes the walker read body, which must hold exactly count records with
// any rising offset deltas.
func (w *Walker) Reset(body []byte, count int32) {
	*w = Walker{body: body, count: count, last: -1, limit: math.MaxInt32 - (count - 1)}
}

// ResetBatch makes the walker read the body of the batch with header h: as Reset,
// but no offset delta may exceed the header's last one, nor leave the records
// behind it too few offsets. A batch that is [Header.Dense] thus passes only with
// a record at each offset.
func (w *Walker) ResetBatch(h Header, body []byte) {
	*w = Walker{body: body, count: h.Count, last: -1, limit: h.LastOffsetDelta - (h.Count - 1)}
}

// Next reads the next record into r and returns true, or returns false at the end
// or at the first problem, which [Walker.Err] then holds. It overwrites all of r,
// which need not be empty. The record's slices are those of the body.
//
// Records that Next returned before a problem were well formed, but a body with a
// problem anywhere should be trusted nowhere.
func (w *Walker) Next(r *Record) bool {
	if w.err != nil {
		return false
	}
	if w.read >= w.count {
		w.finish()
		return false
	}
	length, start := varint(w.body, w.at)
	switch {
	case start < 0:
		return w.fail(w.at, "the record has no valid length")
	case length < 0 || int(length) > len(w.body)-start:
		return w.fail(w.at, fmt.Sprintf("record length %d does not fit the %d bytes left", length, len(w.body)-start))
	}
	end := start + int(length)
	if at, what := r.decode(w.body[start:end:end]); what != "" {
		return w.fail(start+at, what)
	}
	if r.OffsetDelta <= w.last || r.OffsetDelta > w.limit {
		return w.fail(start, fmt.Sprintf("offset delta %d is not in [%d, %d]", r.OffsetDelta, int64(w.last)+1, w.limit))
	}
	w.at, w.last = end, r.OffsetDelta
	w.limit++ // not used any more behind the last record, where it may overflow
	w.read++
	return true
}

// Err returns nil once all records were read and nothing was left over, and a
// [*FormatError] if Next stopped at a problem. Before Next has returned false it
// says nothing.
func (w *Walker) Err() error { return w.err }

// finish checks what can be checked only behind the last record.
func (w *Walker) finish() {
	switch {
	case w.count < 0:
		w.err = &FormatError{Record: -1, InBody: true, Reason: fmt.Sprintf("count %d is negative", w.count)}
	case w.at != len(w.body):
		w.err = &FormatError{Record: -1, At: w.at, InBody: true,
			Reason: fmt.Sprintf("%d bytes follow the last of %d records", len(w.body)-w.at, w.count)}
	}
}

func (w *Walker) fail(at int, reason string) bool {
	w.err = &FormatError{Record: int(w.read), At: at, InBody: true, Reason: reason}
	return false
}

// decode fills r from raw, one whole record without its length prefix. If raw is
// broken, what says how and at where in raw.
func (r *Record) decode(raw []byte) (at int, what string) {
	if len(raw) == 0 {
		return 0, "the record is empty"
	}
	var next int
	at = 1 // behind the attributes
	if r.TimestampDelta, next = varlong(raw, at); next < 0 {
		return at, "the timestamp delta is not valid"
	}
	at = next
	if r.OffsetDelta, next = varint(raw, at); next < 0 {
		return at, "the offset delta is not valid"
	}
	at = next
	if r.Key, next = field(raw, at); next < 0 {
		return at, "the key " + fieldProblem(next)
	}
	at = next
	if r.Value, next = field(raw, at); next < 0 {
		return at, "the value " + fieldProblem(next)
	}
	r.Raw = raw
	return r.decodeHeaders(next)
}

// decodeHeaders checks the headers at r.Raw[at:], which end the record, so that
// iterating over them later cannot fail.
func (r *Record) decodeHeaders(at int) (int, string) {
	raw := r.Raw
	count, next := varint(raw, at)
	switch {
	case next < 0:
		return at, "the header count is not valid"
	case count < 0:
		return at, "the header count is negative"
	case int(count) > (len(raw)-next)/2:
		return at, "there are more headers than the record has room for"
	}
	r.HeaderCount = int(count)
	r.headers = raw[next:]
	at = next
	for range count {
		key, next := field(raw, at)
		switch {
		case next < 0:
			return at, "a header key " + fieldProblem(next)
		case key == nil:
			return at, "a header key is null"
		}
		at = next
		if _, next = field(raw, at); next < 0 {
			return at, "a header value " + fieldProblem(next)
		}
		at = next
	}
	if at != len(raw) {
		return at, "bytes follow the record's last field"
	}
	return at, ""
}

// fieldProblem says what a negative position from field means.
func fieldProblem(position int) string {
	if position == tooLong {
		return "is longer than the record"
	}
	return "has no valid length"
}
