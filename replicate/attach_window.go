package replicate

import (
	"math"
	"slices"

	"apograph/internal/recordbatch"
	"apograph/ledger"
)

// attachWindow bounds how many records of each side an alignment holds at one
// time: read ahead, and matched last.
const attachWindow = 1 << 16

// A producerKey names a producer by what its batches say of it.
type producerKey struct {
	id    int64
	epoch int16
}

// stranger stands for all that no copier writes: batches without a producer id,
// those of transactions, and control batches.
var stranger = producerKey{-1, -1}

// A targetBatch is one batch of the target's log.
type targetBatch struct {
	base, next int64
	producer   producerKey
	sequence   int32
	records    []readRecord // none of a stranger's
}

// number returns the sequence number of the record at an offset of b.
func (b *targetBatch) number(offset int64) int32 { return advance(b.sequence, offset-b.base) }

// advance returns the sequence number n records behind one.
func advance(sequence int32, n int64) int32 {
	return recordbatch.IncrementSequence(sequence, int32(n&math.MaxInt32))
}

// A targetRun is one record of the target's log, or a run of offsets of which
// no more than the place is known.
type targetRun struct {
	offset   int64
	n        int64 // offsets; 1 for a record
	hash     uint64
	producer producerKey
	sequence int32 // of the first; of a stranger's it means nothing
	gone     bool  // a copier's, and not in the log any more
	open     bool  // a hole, and whose it was is not known yet
	again    bool  // its producer has used the number before
	hole     bool  // nothing is there, and no number tells whose it was
}

// ours reports whether a copier may have written r.
func (r *targetRun) ours() bool { return r.producer != stranger }

// record reports whether the record itself is there.
func (r *targetRun) record() bool { return r.ours() && !r.gone }

// A targetWindow reads the target's log ahead. A hole in it is given to the
// producer whose sequence numbers leave room for it.
type targetWindow struct {
	read     func() (*targetBatch, error) // nil at the end
	at, end  int64                        // all below at was read; of the log
	ended    bool
	runs     []targetRun
	open     int // how many of the runs are open
	expected map[producerKey]int32
	limit    int // runs held because of an open one
}

func newTargetWindow(read func() (*targetBatch, error), start, end int64) *targetWindow {
	return &targetWindow{read: read, at: start, end: end, expected: map[producerKey]int32{}, limit: attachWindow}
}

// peek returns run i, nil behind the end of the log. The pointer is good until
// the window is used again.
func (w *targetWindow) peek(i int) (*targetRun, error) {
	for !w.ended && (i >= len(w.runs) || w.blocked(i)) {
		if err := w.fill(); err != nil {
			return nil, err
		}
	}
	if i >= len(w.runs) {
		return nil, nil
	}
	if w.open > 0 && w.runs[i].open {
		w.runs[i].open = false
		w.open--
	}
	return &w.runs[i], nil
}

// blocked reports whether run i must not be looked at yet, as a hole up to it
// may find its owner still.
func (w *targetWindow) blocked(i int) bool {
	return w.open > 0 && len(w.runs) < w.limit &&
		slices.ContainsFunc(w.runs[:i+1], func(r targetRun) bool { return r.open })
}

// pop takes the first n runs away.
func (w *targetWindow) pop(n int) { w.runs = w.runs[n:] }

// split makes two runs of run i, the second of which begins at offset; nothing
// if offset does not lie inside it.
func (w *targetWindow) split(i int, offset int64) {
	r := w.runs[i]
	if offset <= r.offset || offset >= r.offset+r.n {
		return
	}
	rest := r
	rest.offset, rest.n = offset, r.offset+r.n-offset
	rest.sequence = advance(r.sequence, offset-r.offset)
	w.runs[i].n = offset - r.offset
	w.runs = slices.Insert(w.runs, i+1, rest)
	if r.open {
		w.open++
	}
}

// fill reads one batch more.
func (w *targetWindow) fill() error {
	b, err := w.read()
	if err != nil {
		return err
	}
	if b == nil {
		if w.at < w.end {
			w.hole(w.end)
		}
		w.ended = true
		w.close()
		return nil
	}
	if b.base > w.at {
		w.hole(b.base)
	}
	if b.producer != stranger {
		w.resolve(b)
	}
	w.take(b)
	if next, known := w.expected[b.producer]; b.producer != stranger && (!known || ahead(b.number(b.next), next) > 0) {
		w.expected[b.producer] = b.number(b.next)
	}
	return nil
}

// hole notes that the log holds nothing from the window's end to end.
func (w *targetWindow) hole(end int64) {
	w.runs = append(w.runs, targetRun{offset: w.at, n: end - w.at, producer: stranger, open: true, hole: true})
	w.open++
	w.at = end
}

// close leaves what is open to nobody: it cannot be told any more.
func (w *targetWindow) close() {
	for i := range w.runs {
		w.runs[i].open = false
	}
	w.open = 0
}

// resolve gives open holes to the producer of b, as far as its numbers leave
// room: the last ones in front of b. Where they leave none, what follows a batch
// of the same producer was not its.
func (w *targetWindow) resolve(b *targetBatch) {
	want, known := w.expected[b.producer]
	room := ahead(b.sequence, want) // of one that is not known, from 0 on
	if room <= 0 || w.open == 0 {
		if known && w.open > 0 && w.followed(b.producer) {
			w.close()
		}
		return
	}
	sequence := b.sequence
	for i := len(w.runs) - 1; i >= 0 && w.open > 0 && room > 0; i-- {
		if !w.runs[i].open {
			continue
		}
		if room < w.runs[i].n {
			w.split(i, w.runs[i].offset+w.runs[i].n-room)
			i++
		}
		r := &w.runs[i]
		sequence = advance(sequence, -r.n)
		room -= r.n
		r.producer, r.sequence, r.gone, r.open, r.hole = b.producer, sequence, true, false, false
		w.open--
	}
	w.close()
}

// followed reports whether the first open run stands behind a run of the
// producer, or is the first of all.
func (w *targetWindow) followed(producer producerKey) bool {
	i := slices.IndexFunc(w.runs, func(r targetRun) bool { return r.open })
	return i <= 0 || w.runs[i-1].producer == producer
}

// take appends the offsets of b that lie behind the window's end.
func (w *targetWindow) take(b *targetBatch) {
	if b.producer == stranger {
		w.place(b, b.next)
		return
	}
	for _, r := range b.records {
		if r.offset < w.at {
			continue
		}
		w.place(b, r.offset)
		w.runs = append(w.runs, targetRun{
			offset: r.offset, n: 1, hash: r.hash, producer: b.producer, sequence: b.number(r.offset), again: w.used(b, r.offset),
		})
		w.at = r.offset + 1
	}
	w.place(b, b.next)
}

// place notes the offsets of b up to end, of which b has no record.
func (w *targetWindow) place(b *targetBatch, end int64) {
	if end <= w.at {
		return
	}
	w.runs = append(w.runs, targetRun{
		offset: w.at, n: end - w.at, producer: b.producer, sequence: b.number(w.at), gone: b.producer != stranger, again: w.used(b, w.at),
	})
	w.at = end
}

// used reports whether the number of an offset of b was used before.
func (w *targetWindow) used(b *targetBatch, offset int64) bool {
	next, known := w.expected[b.producer]
	return known && ahead(b.number(offset), next) < 0
}

// A sourceRecord is one record of the source, and what stands in front of it.
type sourceRecord struct {
	recordInfo
	absent int64   // offsets in front of it that held a record once, or may have
	before []*unit // without records, in front of it
	unit   *unit   // that it is part of
	index  int     // in the unit
}

// A sourceWindow reads the source's records ahead.
type sourceWindow struct {
	read    func() (*unit, error) // nil at the end
	ended   bool
	records []sourceRecord
	absent  int64
	before  []*unit
	seen    func(r recordInfo) // each record, once; may be nil
	repeats repetition
}

// peek returns record i, nil behind the end. The pointer is good until the
// window is used again.
func (w *sourceWindow) peek(i int) (*sourceRecord, error) {
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

func (w *sourceWindow) pop() { w.records = w.records[1:] }

func (w *sourceWindow) take(u *unit) {
	if u.records == 0 {
		w.before = append(w.before, u)
		switch u.entry.Tile {
		case ledger.CommitMarker, ledger.AbortMarker, ledger.Aborted: // never copied
		default:
			w.absent += u.entry.Source.Len()
		}
		return
	}
	for i := range u.infos {
		r := sourceRecord{recordInfo: u.infos[i], absent: w.absent + compactedBefore(u, i), before: w.before, unit: u, index: i}
		w.absent, w.before = 0, nil
		w.records = append(w.records, r)
		w.repeats.note(r.hash)
		if w.seen != nil {
			w.seen(r.recordInfo)
		}
	}
	w.absent = trailingGap(u)
}

// A repetition tells how often the same content comes again. It remembers one
// hash for each of its places.
type repetition struct {
	places          []uint64
	records, repeat int64
}

// note counts a record.
func (r *repetition) note(hash uint64) {
	if r.places == nil {
		r.places = make([]uint64, attachWindow)
	}
	r.records++
	at := &r.places[hash%attachWindow]
	if *at == hash {
		r.repeat++
	}
	*at = hash
}

// much reports whether so many records repeat others that content alone does
// not tell which one is which.
func (r *repetition) much() bool { return r.repeat*4 >= r.records && r.repeat > 0 }
