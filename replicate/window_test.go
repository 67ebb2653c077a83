package replicate

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/leanovate/gopter"
	"github.com/leanovate/gopter/gen"
	"github.com/leanovate/gopter/prop"

	"apograph/internal/recordbatch"
	"apograph/ledger"
)

// testUnit returns a unit of n records whose digest is its identity.
func testUnit(n int32, identity uint64) *unit {
	return &unit{records: n, entry: ledger.Entry{Tile: ledger.Copied, Digest: ledger.Digest(identity)}}
}

// A fakeLog is a target partition as brokers behave: it knows the newest five
// batches of one producer, or, after a restart, one; an unknown producer may
// start anywhere; a duplicate is answered with its first base offset.
type fakeLog struct {
	batches []fakeBatch
	end     int64
	memory  []int // indexes into batches, newest last; empty: producer unknown
}

type fakeBatch struct {
	base     int64
	sequence int32
	records  int32
	digest   ledger.Digest
}

func (l *fakeLog) append(u *unit, sequence int32) (base int64, ok bool) {
	for _, i := range l.memory {
		b := l.batches[i]
		if b.sequence == sequence && b.records == u.records {
			return b.base, true
		}
	}
	if n := len(l.memory); n > 0 {
		last := l.batches[l.memory[n-1]]
		if sequence != recordbatch.IncrementSequence(last.sequence, last.records) {
			return -1, false
		}
	}
	base = l.end
	l.batches = append(l.batches, fakeBatch{base, sequence, u.records, u.entry.Digest})
	l.end += int64(u.records)
	l.memory = append(l.memory, len(l.batches)-1)
	if len(l.memory) > 5 {
		l.memory = l.memory[1:]
	}
	return base, true
}

func (l *fakeLog) tail(from int64) []tailBatch {
	var tail []tailBatch
	for _, b := range l.batches {
		if b.base >= from {
			tail = append(tail, tailBatch{base: b.base, records: int64(b.records), ours: true, sequence: b.sequence, digest: b.digest})
		}
	}
	return tail
}

// A windowRun drives a window against a fakeLog: requests in flight are
// handled in order, each with a fault now and then.
type windowRun struct {
	r      *rand.Rand
	log    *fakeLog
	win    *window
	flight []*unit
	booked []*unit
	units  []*unit
}

// TestWindowUnderFaults holds the window to its promise: whatever is lost,
// refused or answered late, the log ends up with every unit once, in order, and
// the books say where.
func TestWindowUnderFaults(t *testing.T) {
	parameters := gopter.DefaultTestParametersWithSeed(20261129)
	parameters.MinSuccessfulTests = 400
	properties := gopter.NewProperties(parameters)
	properties.Property("every unit once, in order, where the books say", prop.ForAll(
		func(seed uint64, limit int) (string, error) {
			run := newWindowRun(seed, limit)
			if err := run.drive(); err != nil {
				return "", err
			}
			return run.verdict(), nil
		},
		gen.UInt64(), gen.IntRange(1, 5),
	))
	properties.TestingRun(t)
}

func newWindowRun(seed uint64, limit int) *windowRun {
	r := rand.New(rand.NewPCG(seed, 1))
	start := int32(0)
	if r.IntN(4) == 0 {
		start = 1<<31 - 1 - int32(r.IntN(60)) // wraps during the run
	}
	run := &windowRun{r: r, log: &fakeLog{end: int64(r.IntN(3) * 10)}}
	run.win = newWindow(limit, run.log.end, start)
	for i := range 60 {
		n := int32(r.IntN(5))
		run.units = append(run.units, testUnit(n, uint64(i+1)))
	}
	return run
}

func (run *windowRun) drive() error {
	next := 0
	for step := 0; len(run.booked) < len(run.units); step++ {
		if step > 20_000 {
			return fmt.Errorf("no end in sight: %d of %d booked", len(run.booked), len(run.units))
		}
		run.booked = append(run.booked, run.win.retired()...)
		if hold, _ := run.win.pending(); hold != holdNone {
			if err := run.settle(hold); err != nil {
				return err
			}
			continue
		}
		if next < len(run.units) && run.win.room() && run.r.IntN(2) == 0 {
			run.win.add(run.units[next])
			next++
			continue
		}
		if run.win.flying == 0 && run.r.IntN(8) == 0 { // a silence, in which the target forgets the producer
			run.log.memory = nil
			run.win.suspect()
		}
		if u := run.win.next(); u != nil {
			run.flight = append(run.flight, u)
			continue
		}
		if len(run.flight) > 0 {
			run.answerOne()
		}
	}
	return nil
}

func (run *windowRun) settle(hold hold) error {
	switch hold {
	case holdRetry:
		run.win.resume()
	case holdReconcile:
		if !run.win.reconciled(run.log.tail(run.win.target), run.log.end) {
			return fmt.Errorf("reconcile: %v", run.log.tail(run.win.target))
		}
		if run.win.exhausted() {
			run.win.rotate()
			run.log.memory = nil
		}
	default:
		return fmt.Errorf("unexpected hold %d", hold)
	}
	return nil
}

// answerOne handles the oldest request in flight.
func (run *windowRun) answerOne() {
	u := run.flight[0]
	run.flight = run.flight[1:]
	switch run.r.IntN(12) {
	case 0: // refused before it was looked at
		run.win.answered(u, answer{outcome: notAppended})
		return
	case 1: // lost before it arrived
		run.win.answered(u, answer{outcome: unknown})
		return
	case 2: // appended, and the answer lost
		run.log.append(u, u.sequence)
		run.win.answered(u, answer{outcome: unknown})
		return
	case 3: // the broker restarts: it remembers the newest batch only
		if n := len(run.log.memory); n > 1 {
			run.log.memory = run.log.memory[n-1:]
		}
	case 4: // the producer state expires, which may lose order unless one batch is in flight
		if run.win.limit == 1 {
			run.log.memory = nil
		}
	}
	base, ok := run.log.append(u, u.sequence)
	if !ok {
		run.win.answered(u, answer{outcome: outOfOrder})
		return
	}
	run.win.answered(u, answer{outcome: appended, base: base})
}

func (run *windowRun) verdict() string {
	var want []ledger.Digest
	for _, u := range run.units {
		if u.records > 0 {
			want = append(want, u.entry.Digest)
		}
	}
	if len(want) != len(run.log.batches) {
		return fmt.Sprintf("%d units, %d batches in the log", len(want), len(run.log.batches))
	}
	for i, b := range run.log.batches {
		if b.digest != want[i] {
			return fmt.Sprintf("batch %d of the log is unit %v, want %v", i, b.digest, want[i])
		}
	}
	return run.booksVerdict()
}

func (run *windowRun) booksVerdict() string {
	bases := map[ledger.Digest]int64{}
	for _, b := range run.log.batches {
		bases[b.digest] = b.base
	}
	for i, u := range run.booked {
		if u != run.units[i] {
			return fmt.Sprintf("booked unit %d out of order", i)
		}
		if u.records > 0 && u.entry.Target.Start != bases[u.entry.Digest] {
			return fmt.Sprintf("unit %d is booked at %d and stands at %d", i, u.entry.Target.Start, bases[u.entry.Digest])
		}
	}
	return ""
}

// TestWindowFacts pins single transitions of the state machine.
func TestWindowFacts(t *testing.T) {
	t.Run("a success at another offset proves nothing", func(t *testing.T) {
		w := newWindow(1, 100, 0)
		u := testUnit(5, 1)
		w.add(u)
		w.next()
		w.answered(u, answer{outcome: appended, base: 90})
		if h, _ := w.pending(); h != holdReconcile {
			t.Errorf("hold = %d, want holdReconcile", h)
		}
		if len(w.retired()) != 0 {
			t.Error("the unit was retired")
		}
	})
	t.Run("a success at the expected offset proves the older ones", func(t *testing.T) {
		w, a, b := openTwo(t)
		w.answered(b, answer{outcome: appended, base: 105})
		if got := w.retired(); len(got) != 2 || got[0] != a || got[1] != b {
			t.Fatalf("retired %v, want both in order", got)
		}
		w.answered(a, answer{outcome: unknown}) // late
		if h, _ := w.pending(); h != holdNone {
			t.Errorf("a late answer set hold %d", h)
		}
	})
	t.Run("the second of two out of order is a consequence of the first", func(t *testing.T) {
		w, a, b := openTwo(t)
		w.answered(a, answer{outcome: notAppended})
		w.answered(b, answer{outcome: outOfOrder})
		if h, _ := w.pending(); h != holdRetry {
			t.Errorf("hold = %d, want holdRetry", h)
		}
	})
	t.Run("nothing is asked while answers are to come", func(t *testing.T) {
		w, a, _ := openTwo(t)
		w.answered(a, answer{outcome: unknown})
		if h, _ := w.pending(); h != holdNone {
			t.Errorf("hold = %d with a unit in flight", h)
		}
	})
	t.Run("one in flight until a success", func(t *testing.T) {
		w := newWindow(5, 0, 0)
		w.add(testUnit(1, 1))
		w.add(testUnit(1, 2))
		if w.next() == nil || w.next() != nil {
			t.Error("a fresh window must send exactly one unit")
		}
	})
	t.Run("answers of one flight that all name another offset are one", func(t *testing.T) {
		w, a, b := openTwo(t)
		c := testUnit(5, 3)
		w.add(c)
		w.next()
		for i, u := range []*unit{a, b, c} {
			w.answered(u, answer{outcome: appended, base: 101 + 5*int64(i)}) // behind a record of somebody else
		}
		if h, _ := w.pending(); h != holdReconcile {
			t.Errorf("hold = %d, want holdReconcile", h)
		}
	})
	t.Run("what is not sent is taken out, and what would be retired with it", func(t *testing.T) {
		w, a, _ := openTwo(t)
		gap, c := testUnit(0, 3), testUnit(5, 4)
		w.add(gap)
		w.add(c)
		w.sent++ // as next does in passing, before it finds nothing to send
		if got := w.unsent(); len(got) != 2 || got[0] != gap || got[1] != c {
			t.Fatalf("taken out %v, want the gap and what stands behind it", got)
		}
		w.answered(w.open[1], answer{outcome: appended, base: 105})
		if got := w.retired(); len(got) != 2 || got[0] != a || len(w.open) > 0 || w.next() != nil {
			t.Errorf("retired %v, want the two that were in flight, and no more", got)
		}
	})
	t.Run("records of another producer are noted in front of it", func(t *testing.T) {
		w := newWindow(1, 0, 0)
		u := testUnit(3, 1)
		w.add(u)
		w.next()
		w.answered(u, answer{outcome: unknown})
		if !w.reconciled([]tailBatch{{base: 0, records: 3, sequence: 0, digest: u.entry.Digest}}, 3) {
			t.Error("a batch that is not ours cannot be noted")
		}
		if got := w.retired(); len(got) != 1 || !got[0].note || got[0].entry.Target != (ledger.Range{Start: 0, End: 3}) {
			t.Errorf("retired %+v, want a note of [0, 3)", got)
		}
		if w.next() != u || w.expected(0) != 3 {
			t.Error("the unit must go again, to land behind the note")
		}
	})
	t.Run("other content under our numbers stops it", func(t *testing.T) {
		w := newWindow(1, 0, 0)
		u := testUnit(3, 1)
		w.add(u)
		w.next()
		w.answered(u, answer{outcome: unknown})
		if w.reconciled([]tailBatch{{base: 0, records: 3, ours: true, sequence: 0, digest: 999}}, 3) {
			t.Error("other content was adopted")
		}
	})
	t.Run("a hole stops it", func(t *testing.T) {
		w := newWindow(1, 0, 0)
		u := testUnit(3, 1)
		w.add(u)
		w.next()
		w.answered(u, answer{outcome: unknown})
		if w.reconciled(nil, 3) || w.next() != nil {
			t.Error("the log's end was ignored: the unit would be written again")
		}
	})
	t.Run("a success behind a refused unit proves nothing", func(t *testing.T) {
		w, a, b := openTwo(t)
		w.answered(a, answer{outcome: notAppended})
		w.answered(b, answer{outcome: appended, base: 105})
		if h, _ := w.pending(); h != holdReconcile || len(w.retired()) != 0 {
			t.Errorf("hold = %d, want holdReconcile and nothing retired", h)
		}
	})
	t.Run("a unit without records waits for older ones", func(t *testing.T) {
		w := newWindow(1, 0, 0)
		data, marker := testUnit(1, 1), testUnit(0, 2)
		w.add(data)
		w.add(marker)
		if len(w.retired()) != 0 {
			t.Error("the marker was booked before the data in front of it")
		}
		w.next()
		w.answered(data, answer{outcome: appended, base: 0})
		if got := w.retired(); len(got) != 2 {
			t.Errorf("retired %d units, want 2", len(got))
		}
	})
	t.Run("halves keep the numbers", func(t *testing.T) {
		w := newWindow(1, 0, 1<<31-2)
		u, next := testUnit(4, 1), testUnit(1, 2)
		w.add(u)
		w.add(next)
		w.next()
		w.answered(u, answer{outcome: refused})
		a, b := testUnit(2, 3), testUnit(2, 4)
		w.split(a, b)
		if a.sequence != 1<<31-2 || b.sequence != 0 || next.sequence != 2 {
			t.Errorf("sequences %d %d %d, want %d 0 2", a.sequence, b.sequence, next.sequence, 1<<31-2)
		}
	})
}

// openTwo returns a window at offset 100 with two units of 5 in flight.
func openTwo(t *testing.T) (w *window, a, b *unit) {
	t.Helper()
	w = newWindow(5, 95, 0)
	first := testUnit(5, 9)
	w.add(first)
	w.next()
	w.answered(first, answer{outcome: appended, base: 95})
	w.retired()
	a, b = testUnit(5, 1), testUnit(5, 2)
	w.add(a)
	w.add(b)
	if w.next() != a || w.next() != b {
		t.Fatal("two units should be in flight")
	}
	return w, a, b
}

// TestSuccessElsewhere: the target says again and again that it holds the batch
// at an offset where its log has nothing. One round of several in flight counts
// once.
func TestSuccessElsewhere(t *testing.T) {
	w, a, b := openTwo(t)
	w.answered(a, answer{outcome: appended, base: 7})
	for round := 1; ; round++ {
		w.answered(b, answer{outcome: appended, base: 7})
		if h, _ := w.pending(); h != holdReconcile {
			t.Fatalf("round %d: hold %v, want %v", round, h, holdReconcile)
		}
		if !w.reconciled(nil, 100) {
			t.Fatal("an empty tail was not taken")
		}
		if round == rotateAfter {
			break
		}
		if b = w.next(); b != a {
			t.Fatalf("round %d: %+v is sent, want the oldest", round, b)
		}
	}
	if h, a := w.pending(); h != holdStop || a.stop != StopUnavailable || !strings.Contains(a.detail, "offset 7; it should stand at 100") {
		t.Errorf("hold %v %+v, want a stop", h, a)
	}
}

// TestSuccessesBehindForeignRecords: each round somebody else's record stands in
// front of all that are in flight. The log says so each time: nothing stops.
func TestSuccessesBehindForeignRecords(t *testing.T) {
	w, a, b := openTwo(t)
	c := testUnit(5, 3)
	w.add(c)
	if w.next() != c {
		t.Fatal("three units should be in flight")
	}
	for round := range int64(2 * rotateAfter) {
		target := 100 + round
		w.answered(a, answer{outcome: appended, base: target + 1})
		if round == 0 {
			w.answered(b, answer{outcome: appended, base: target + 6})
			w.answered(c, answer{outcome: appended, base: target + 11})
		}
		if h, _ := w.pending(); h != holdReconcile {
			t.Fatalf("round %d: hold %v, want %v", round, h, holdReconcile)
		}
		if !w.reconciled([]tailBatch{{base: target, records: 1}}, target+1) {
			t.Fatal("a foreign record was not noted")
		}
		if h, _ := w.pending(); h != holdNone || w.next() != a {
			t.Fatalf("round %d: hold %v, want the oldest to go again", round, h)
		}
	}
}

// TestWindowSendsStaleAlone: the target may forget the producer behind a stale
// unit, so that neither what is before it nor what is behind it flies with it.
func TestWindowSendsStaleAlone(t *testing.T) {
	w := newWindow(5, 0, 0)
	var units []*unit
	for i := range 6 {
		u := testUnit(1, uint64(i+1))
		u.stale = i == 3
		units = append(units, u)
		w.add(u)
	}
	sent := func() (all []*unit) {
		for u := w.next(); u != nil; u = w.next() {
			all = append(all, u)
		}
		return all
	}
	for i, round := range [][]*unit{units[:1], units[1:3], units[3:4], units[4:5], units[5:]} {
		got := sent()
		if len(got) != len(round) || got[0] != round[0] {
			t.Fatalf("round %d: %d units in flight, want %d", i, len(got), len(round))
		}
		for _, u := range got {
			w.answered(u, answer{outcome: appended, base: w.expected(w.index(u))})
		}
	}
}

// TestUnitInFlightKeepsItsBuffer: what a request may still be written from is not
// given to the next batch.
func TestUnitInFlightKeepsItsBuffer(t *testing.T) {
	var b buffers
	w := newWindow(5, 0, 0)
	u := testUnit(1, 1)
	u.buffer = b.get()
	buffer := u.buffer
	w.add(u)
	w.next()
	u.release()
	if u.buffer = b.get(); u.buffer == buffer {
		t.Fatal("the buffer of a unit in flight was given away")
	}
	w.answered(u, answer{outcome: unknown})
	if u.flying != 0 {
		t.Fatalf("%d sends of the unit without an answer, want 0", u.flying)
	}
}
