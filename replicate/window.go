package replicate

import (
	"fmt"
	"slices"

	"apograph/internal/recordbatch"
	"apograph/ledger"
)

// An outcome is what an answer to a produce request proves about one batch.
// Error codes are classified by classifyProduce.
type outcome uint8

const (
	// appended: the batch is in the log at the answer's base offset. It may
	// have been there before: a broker answers a duplicate with success and
	// the original base offset (ProducerStateManager, never code 46).
	appended outcome = iota

	// notAppended: the broker refused without looking at the batch
	// (leadership, too few replicas, quota). The same bytes may go again.
	notAppended

	// unknown: the batch may or may not be in the log, now or later.
	unknown

	// outOfOrder: the sequence number does not follow the broker's last one, or
	// is one that it knows, by a code that brokers have and do not send.
	// For any but the oldest open batch this is the consequence of an older
	// one. For the oldest it says nothing about the log: a broker that
	// restarted remembers only the newest batch.
	outOfOrder

	// refused: the batch itself is at fault and will never be taken as it is.
	refused

	// denied: nothing of this partition can be written (rights, fencing).
	denied
)

// An answer is the outcome of one send.
type answer struct {
	outcome outcome
	base    int64      // offset of the first record; with appended only
	stop    StopReason // with refused, denied, and appended elsewhere: why the partition stops if nothing helps
	detail  string     // what the broker said, for people
}

// A hold says why a window sends nothing, and so what its driver must do once
// nothing is in flight any more. A higher one wins.
type hold uint8

const (
	holdNone      hold = iota
	holdRetry          // wait a little, learn the leader, send again
	holdRefused        // split or park the oldest unit
	holdReconcile      // read the log's end to learn what was appended
	holdStop           // stop the partition
)

// A window is the state machine of raw produce for one target partition: pure,
// without I/O or clock. It holds the units that are not known to be appended,
// oldest first, and decides which may be sent, what an answer proves and when
// the log itself has to be asked.
//
// Invariants:
//   - Sequence numbers are given in order of add and never change, except
//     through rotate, so a number always stands for the same bytes: brokers
//     compare numbers only.
//   - A unit is retired only when the log's content up to its end is known: by
//     a success at exactly the expected offset, which proves the older ones
//     too, or by reconciled.
//   - While a hold is set nothing is sent.
//   - While probe is set at most one unit is in flight: an unknown producer id
//     may start at any sequence number, so of two units in flight the first
//     could be refused and the second taken. A stale unit, behind which the
//     target may forget the producer, is in flight alone for the same reason.
//
// A window is owned by one goroutine.
type window struct {
	limit  int   // units in flight at most, at least 1
	target int64 // offset at which the oldest open unit must land
	seq    int32 // sequence number of the next unit

	open   []*unit // not known to be appended, oldest first
	sent   int     // open[:sent] were handed out by next since the last resume
	flying int     // sends without an answer, including those of retired units
	probe  bool
	newest int64 // time of the newest record of the unit retired last, ms

	hold      hold
	last      answer // the answer that set hold, for holdRefused and holdStop
	elsewhere int    // readings of the log in a row after a success at another offset, without progress
	disorder  int    // outOfOrder of the oldest unit in a row, without progress
	done      []*unit
}

// newWindow returns a window whose first unit lands at offset target with
// sequence number seq.
func newWindow(limit int, target int64, seq int32) *window {
	return &window{limit: max(limit, 1), target: target, seq: seq, probe: true}
}

// add appends u, giving it its sequence number.
func (w *window) add(u *unit) {
	u.sequence = w.seq
	w.seq = recordbatch.IncrementSequence(w.seq, u.records)
	w.open = append(w.open, u)
	w.retireEmpty()
}

// room reports whether another unit should be prepared: one beyond what may be
// in flight.
func (w *window) room() bool {
	return w.hold == holdNone && len(w.open) <= w.limit
}

// full reports whether as much is in flight as may be.
func (w *window) full() bool { return w.flying >= w.allowed() }

// allowed returns how many units may be in flight now.
func (w *window) allowed() int {
	if w.probe {
		return 1
	}
	return w.limit
}

// idle reports whether nothing is open or in flight.
func (w *window) idle() bool { return len(w.open) == 0 && w.flying == 0 }

// next returns the unit to send now, or nil.
func (w *window) next() *unit {
	if w.hold != holdNone || w.full() {
		return nil
	}
	for ; w.sent < len(w.open); w.sent++ {
		u := w.open[w.sent]
		if u.records == 0 {
			continue
		}
		if u.stale && w.flying > 0 {
			return nil
		}
		w.sent++
		w.flying++
		u.flying++
		w.probe = w.probe || u.stale
		return u
	}
	return nil
}

// unsent takes out the units behind the last one that was handed out, among
// them those that have nothing to send: they would be retired with it.
func (w *window) unsent() []*unit {
	n := w.sent
	for n > 0 && w.open[n-1].records == 0 {
		n--
	}
	rest := w.open[n:]
	w.open, w.sent = w.open[:n:n], n
	return rest
}

// answered takes the answer to one send of u.
func (w *window) answered(u *unit, a answer) {
	w.flying--
	u.flying--
	i := w.index(u)
	if i < 0 {
		return // proven by a later success: whatever this answer says, it is late
	}
	switch a.outcome {
	case appended:
		if a.base != w.expected(i) {
			w.answeredElsewhere(i, a)
			return
		}
		if w.hold == holdRetry && i > w.firstWithRecords() || w.declinedBefore(i) {
			w.stopFor(holdReconcile, a) // an older one was refused: what stands in its place is not it
			return
		}
		w.retire(i + 1)
		w.probe = u.stale
	case notAppended:
		u.declined = true
		w.stopFor(holdRetry, a)
	case unknown:
		w.stopFor(holdReconcile, a)
	case outOfOrder:
		w.answeredOutOfOrder(i, a)
	case refused:
		u.declined = true
		if i == w.firstWithRecords() {
			w.stopFor(holdRefused, a)
		} else {
			w.stopFor(holdRetry, a)
		}
	case denied:
		u.declined = true
		w.stopFor(holdStop, a)
	default:
		panic(fmt.Sprintf("replicate: unknown produce outcome %d", a.outcome))
	}
}

// answeredElsewhere deals with a success that proves nothing: it names another
// offset than the expected one. The log is read; where it does not hold the
// unit and the same answer comes again, nothing here can settle it.
func (w *window) answeredElsewhere(i int, a answer) {
	a.stop = StopUnavailable
	a.detail = joinDetail(fmt.Sprintf("the target answers that it holds a batch at offset %d; it should stand at %d, where its log has nothing", a.base, w.expected(i)), a.detail)
	w.stopFor(holdReconcile, a)
}

func (w *window) answeredOutOfOrder(i int, a answer) {
	if i != w.firstWithRecords() {
		w.stopFor(holdRetry, a)
		return
	}
	w.disorder++
	w.stopFor(holdReconcile, a)
}

func (w *window) stopFor(h hold, a answer) {
	if h > w.hold {
		w.hold, w.last = h, a
	}
}

// pending returns what the driver must do now: holdNone while answers are
// still to come, or if there is nothing to do.
func (w *window) pending() (hold, answer) {
	if w.flying > 0 {
		return holdNone, answer{}
	}
	return w.hold, w.last
}

// resume lifts a hold: everything open goes again, one at a time until a
// success shows that the target knows our producer id.
func (w *window) resume() {
	w.hold, w.last = holdNone, answer{}
	w.sent, w.probe = 0, true
	for _, u := range w.open {
		u.declined = false
	}
}

// suspect says that the target may not know the producer: until it has shown that
// it does, one unit is in flight at most.
func (w *window) suspect() { w.probe = true }

// declinedBefore reports whether a unit in front of open[i] was refused since the last
// resume, and so is not in the log.
func (w *window) declinedBefore(i int) bool {
	return slices.ContainsFunc(w.open[:i], func(u *unit) bool { return u.declined })
}

// A tailBatch is one batch that the target holds behind what is booked.
type tailBatch struct {
	base     int64
	records  int64 // that it holds; not ours: the offsets that it takes
	ours     bool  // written under a producer id and epoch of the pair's
	sequence int32 // that its first record has, or would have, under this window's
	digest   ledger.Digest

	generation int32 // not ours: the earlier one of the copy whose producer wrote it; 0: none
}

// reconciled takes everything that the target's log holds from the expected
// offset on up to its end, once all of it is below the high watermark, and
// retires the units found there. What others wrote is retired as a note. It
// resumes and returns true if that is all; it holds to stop instead where nothing
// was there so often that the answers which say otherwise will not end. For a batch of ours that is not the
// next unit, by sequence number, count and content, and for a hole, it returns
// false and the hold stays: going on would write behind something that is not in
// the books.
func (w *window) reconciled(tail []tailBatch, end int64) bool {
	from := w.target
	for _, b := range tail {
		if b.base != w.target {
			return false
		}
		if !b.ours {
			w.note(b)
			continue
		}
		i := w.firstWithRecords()
		if i < 0 || !w.open[i].matches(b) {
			return false
		}
		w.retire(i + 1)
	}
	if w.target != end {
		return false
	}
	if w.target == from && w.astray() {
		return true
	}
	w.resume()
	return true
}

// astray counts how often the log was read because of a success elsewhere, and
// found to hold nothing. The answers of one round count once: all that were in
// flight behind one foreign record name other offsets. It reports whether the
// partition is to stop.
func (w *window) astray() bool {
	if w.last.outcome != appended || w.last.stop == "" {
		return false
	}
	w.elsewhere++
	if w.elsewhere < rotateAfter {
		return false
	}
	w.hold = holdStop
	return true
}

// note retires what is not ours, in front of the oldest open unit.
func (w *window) note(b tailBatch) {
	u := &unit{note: true, generation: b.generation}
	u.entry.Target = ledger.Range{Start: b.base, End: b.base + b.records}
	w.target = u.entry.Target.End
	w.done = append(w.done, u)
	w.elsewhere = 0
}

// rotateAfter is how often the oldest unit may be called out of order, with
// the log proving each time that it is not there, before the producer id is
// held to be unusable on this partition.
const rotateAfter = 3

// exhausted reports whether the producer id must be replaced.
func (w *window) exhausted() bool { return w.disorder >= rotateAfter }

// rotate numbers all open units anew, from 0 under a new producer id. The
// caller has made the new id durable.
func (w *window) rotate() {
	w.seq, w.disorder = 0, 0
	for _, u := range w.open {
		u.sequence = w.seq
		w.seq = recordbatch.IncrementSequence(w.seq, u.records)
	}
	w.sent, w.probe = 0, true
}

// split replaces the oldest unit with records by parts, which hold the same
// records in the same order.
func (w *window) split(parts ...*unit) {
	i := w.firstWithRecords()
	seq := w.open[i].sequence
	for _, part := range parts {
		part.sequence = seq
		seq = recordbatch.IncrementSequence(seq, part.records)
	}
	w.open = append(w.open[:i:i], append(parts, w.open[i+1:]...)...)
	w.resume()
}

// head returns the oldest unit with records, or nil.
func (w *window) head() *unit {
	if i := w.firstWithRecords(); i >= 0 {
		return w.open[i]
	}
	return nil
}

// retired returns the units that became known as appended since the last call,
// in order, with the target range of their entries set.
func (w *window) retired() []*unit {
	done := w.done
	w.done = nil
	return done
}

func (w *window) retire(n int) {
	for _, u := range w.open[:n] {
		if u.records > 0 {
			w.newest = u.maxTimestamp
		}
		u.land(w.target)
		w.target += int64(u.records)
		w.done = append(w.done, u)
	}
	w.open = w.open[n:]
	w.sent = max(w.sent-n, 0)
	w.disorder, w.elsewhere = 0, 0
	w.retireEmpty()
}

// retireEmpty retires units without records that have nothing older in front:
// there is nothing to send and nothing to wait for.
func (w *window) retireEmpty() {
	for len(w.open) > 0 && w.open[0].records == 0 {
		u := w.open[0]
		u.land(w.target)
		w.done = append(w.done, u)
		w.open = w.open[1:]
		w.sent = max(w.sent-1, 0)
	}
}

func (w *window) index(u *unit) int {
	for i, o := range w.open {
		if o == u {
			return i
		}
	}
	return -1
}

func (w *window) firstWithRecords() int {
	for i, u := range w.open {
		if u.records > 0 {
			return i
		}
	}
	return -1
}

func (w *window) expected(i int) int64 {
	base := w.target
	for _, u := range w.open[:i] {
		base += int64(u.records)
	}
	return base
}
