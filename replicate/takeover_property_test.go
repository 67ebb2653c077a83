package replicate

import (
	"errors"
	"fmt"
	"iter"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/leanovate/gopter"
	"github.com/leanovate/gopter/gen"
	"github.com/leanovate/gopter/prop"

	"apograph/ledger"
)

// A mirrorModel is a source, and what the simplest MirrorMaker that there can be
// makes of it: it reads from a place on, up to another one, and begins again at one
// before.
type mirrorModel struct {
	r         *rand.Rand
	values    int // of hashes; 0: all differ
	committed bool

	source   []modelOffset // Copied: a record; Aborted: one, too
	logStart int64
	first    int64 // where the copy begins
	reached  int64 // up to where it got
	target   []mirroredOffset
	start    int64 // of the target's log
}

// A mirroredOffset is one offset of the model's target, and the truth about it.
type mirroredOffset struct {
	sums
	kind   copyKind
	origin int64 // on the source; of records
}

// info describes a record of the model's source.
func (o modelOffset) info(offset int64) recordInfo {
	return recordInfo{offset: offset, hash: o.hash, bytes: 1, timeless: o.timeless}
}

func newMirrorModel(seed uint64, values int) *mirrorModel {
	m := &mirrorModel{r: rand.New(rand.NewPCG(seed, 11)), values: values}
	m.committed = m.chance(40)
	for range 1 + m.r.IntN(25) {
		m.run()
	}
	return m
}

func (m *mirrorModel) chance(percent int) bool { return m.r.IntN(100) < percent }

// run adds some records to the source, or a transaction.
func (m *mirrorModel) run() {
	tile := ledger.Copied
	aborted := m.chance(25)
	if aborted {
		tile = ledger.Aborted
	}
	for range 1 + m.r.IntN(8) {
		o := modelOffset{tile: tile, hash: m.r.Uint64(), timeless: m.chance(5)}
		if m.values > 0 {
			o.hash = 1 + uint64(m.r.IntN(m.values))
		}
		m.source = append(m.source, o)
	}
	switch {
	case aborted:
		m.source = append(m.source, modelOffset{tile: ledger.AbortMarker})
	case m.chance(30):
		m.source = append(m.source, modelOffset{tile: ledger.CommitMarker})
	}
}

func (m *mirrorModel) copies(offset int64) bool {
	tile := m.source[offset].tile
	return tile == ledger.Copied || tile == ledger.Aborted && !m.committed
}

// copy copies the source in [from, to), in transactions if it reads committed data
// and chance has it.
func (m *mirrorModel) copy(from, to int64, transactions bool) {
	for from < to {
		end, kind := to, copyRecord
		if transactions {
			end = min(to, from+1+m.r.Int64N(9))
			if m.chance(20) {
				kind = copyDiscarded
			}
		}
		for offset := from; offset < end; offset++ {
			if m.copies(offset) {
				m.target = append(m.target, mirroredOffset{m.stamp(m.source[offset]), kind, offset})
			}
		}
		if transactions {
			m.target = append(m.target, mirroredOffset{kind: copyMarker})
		}
		if kind == copyRecord {
			from, m.reached = end, max(m.reached, end)
		}
	}
}

// stamp returns what tells a copy of a record: one without a time gets one.
func (m *mirrorModel) stamp(o modelOffset) sums {
	if o.timeless {
		return sums{m.r.Uint64(), o.hash}
	}
	return sums{o.hash, ^o.hash}
}

// play copies with restarts.
func (m *mirrorModel) play() {
	end := int64(len(m.source))
	if m.chance(30) {
		m.first = m.r.Int64N(end)
	}
	m.reached = m.first
	transactions := m.committed && m.chance(30)
	for range 1 + m.r.IntN(5) {
		from := m.reached
		if m.chance(70) && !transactions {
			from = m.first + m.r.Int64N(m.reached-m.first+1)
		}
		m.copy(from, from+m.r.Int64N(end-from+1), transactions)
	}
}

// sides returns the model as the aligner reads it.
func (m *mirrorModel) sides() *takeoverSides {
	return &takeoverSides{
		source:    m.units,
		target:    m.batches,
		undecided: func() (map[uint64]int64, error) { return nil, nil },
		logStart:  m.logStart, targetStart: m.start, targetEnd: int64(len(m.target)),
	}
}

// units returns the source from an offset on, in units of any size.
func (m *mirrorModel) units(from int64) (func() (*unit, error), func()) {
	next := from
	return func() (*unit, error) {
		if next >= int64(len(m.source)) {
			return nil, nil
		}
		u := &unit{entry: ledger.Entry{Tile: ledger.Copied, Source: ledger.Range{Start: next, End: next}}}
		for next < int64(len(m.source)) {
			o := m.source[next]
			if o.tile != ledger.Copied && u.records == 0 {
				u.entry.Tile, u.entry.Source.End = o.tile, next+1
				if o.tile == ledger.Aborted {
					u.aborted = []recordInfo{o.info(next)}
				}
				next++
				return u, nil
			}
			switch one := (ledger.Range{Start: next, End: next + 1}); {
			case o.tile == ledger.Copied:
				u.records++
				u.infos = append(u.infos, o.info(next))
				u.entry.Source.End = next + 1
			default:
				u.addGap(o.tile, one)
				if o.tile == ledger.Aborted {
					u.aborted = append(u.aborted, o.info(next))
				}
			}
			if next++; m.chance(10) {
				break
			}
		}
		return u, nil
	}, func() {}
}

// batches returns the target, a batch for each offset.
func (m *mirrorModel) batches() (func() (*copyBatch, error), func()) {
	next := m.start
	return func() (*copyBatch, error) {
		if next >= int64(len(m.target)) {
			return nil, nil
		}
		t := m.target[next]
		b := &copyBatch{base: next, next: next + 1, kind: t.kind}
		if t.kind != copyMarker {
			b.records = []stampedRecord{{next, sums{t.hash, t.bare}}}
		}
		next++
		return b, nil
	}, func() {}
}

// attach returns the entries that come of the model.
func (m *mirrorModel) attach() (entries []ledger.Entry, got *takeover, err error) {
	sides := m.sides()
	at, err := sides.locate()
	if err != nil {
		return nil, nil, err
	}
	got, err = sides.takeover(at, m.committed, keepEntries(&entries))
	return entries, got, err
}

// keepEntries returns a sink that keeps the entries, those that were made last.
func keepEntries(entries *[]ledger.Entry) attachSink {
	return attachSink{
		entry: func(e ledger.Entry) error {
			*entries = append(*entries, e)
			return e.Validate()
		},
		again: func() (attachSink, iter.Seq2[ledger.Entry, error], error) {
			was := *entries
			*entries = nil
			return keepEntries(entries), func(yield func(ledger.Entry, error) bool) {
				for _, e := range was {
					if !yield(e, nil) {
						return
					}
				}
			}, nil
		},
	}
}

// lastCopies returns where on the target the copy of each record of the source in
// [start, end) stands that counts: of its copies, the last one in front of where that
// of the record behind it stands. It knows nothing of runs.
func (m *mirrorModel) lastCopies(start, end int64) map[int64]int64 {
	last, before := map[int64]int64{}, len(m.target)
	for offset := end - 1; offset >= start; offset-- {
		if m.source[offset].tile != ledger.Copied {
			continue
		}
		for before--; before >= 0 && (m.target[before].kind != copyRecord || m.target[before].origin != offset); before-- {
		}
		last[offset] = int64(before)
	}
	return last
}

// committedFrom returns the offset of the first record from one on that was not
// aborted.
func (m *mirrorModel) committedFrom(offset int64) int64 {
	for offset < int64(len(m.source)) && m.source[offset].tile != ledger.Copied {
		offset++
	}
	return offset
}

// placesOf returns where on the target the copies are by the books.
func placesOf(entries []ledger.Entry) map[int64]int64 {
	places := map[int64]int64{}
	for i := range entries {
		for run := range entries[i].Runs() {
			for n := range run.Target.Len() {
				if run.Tile == ledger.Copied {
					places[run.Source.Start+n] = run.Target.Start + n
				}
			}
		}
	}
	return places
}

// agreesLast holds what is booked as copied to the copies that count.
func (m *mirrorModel) agreesLast(entries []ledger.Entry, start int64) error {
	got, end := placesOf(entries), entries[len(entries)-1].Source.End
	if want := m.lastCopies(start, end); !maps.Equal(got, want) {
		return fmt.Errorf("from source offset %d to %d copied are %v, want %v", start, end, got, want)
	}
	return nil
}

// agrees holds entries to what a book must be, and to the truth.
func (m *mirrorModel) agrees(entries []ledger.Entry, start int64) error {
	source, target := start, m.start
	for i := range entries {
		e := &entries[i]
		if e.Source.Start != source || e.Target.Start != target {
			return fmt.Errorf("%+v stands at %d and %d", e, source, target)
		}
		source, target = e.Source.End, e.Target.End
		for run := range e.Runs() {
			if err := m.agreesRun(run, e, start); err != nil {
				return err
			}
		}
	}
	if target != int64(len(m.target)) {
		return fmt.Errorf("the books end at target offset %d, the log at %d", target, len(m.target))
	}
	for offset := source; offset < m.reached; offset++ {
		if m.source[offset].tile == ledger.Copied && m.values == 0 {
			return fmt.Errorf("source offset %d is on the target, and the books end at %d", offset, source)
		}
	}
	return nil
}

func (m *mirrorModel) agreesRun(run ledger.Run, e *ledger.Entry, start int64) error {
	for i := range run.Source.Len() {
		if o := m.source[run.Source.Start+i]; o.tile != run.Tile {
			return fmt.Errorf("source offset %d is said to be %v: %+v", run.Source.Start+i, run.Tile, o)
		}
	}
	next := e.Origin.Start
	for i := range run.Target.Len() {
		t := m.target[run.Target.Start+i]
		var origin, second bool // as the books have it
		switch {
		case run.Tile == ledger.Copied:
			o := m.source[run.Source.Start+i]
			origin = t.equal(o.hash) && o.timeless == e.TimestampsReplaced && t.kind == copyRecord
			second = m.values == 0 && t.origin != run.Source.Start+i
		case run.Tile == ledger.Duplicate:
			next = m.committedFrom(next)
			origin = next < e.Origin.End && t.equal(m.source[next].hash)
			second = m.values == 0 && t.origin != next
			next++
		case e.Cause == ledger.CauseAborted:
			origin = t.kind == copyDiscarded || m.values > 0 || m.source[t.origin].tile == ledger.Aborted
		default:
			origin = t.kind == copyMarker || t.origin < m.logStart || m.values > 0 && t.origin < start // another beginning fits as well
		}
		if !origin || second {
			return fmt.Errorf("target offset %d is said to be %v (source %v, origin %v, %v): %+v", run.Target.Start+i, run.Tile, run.Source, e.Origin, e.Cause, t)
		}
	}
	return nil
}

func takeoverProperty(t *testing.T, tests int, holds func(seed uint64) error) {
	t.Helper()
	const seed = 20261204
	t.Logf("seed %d", seed)
	parameters := gopter.DefaultTestParametersWithSeed(seed)
	parameters.MinSuccessfulTests = tests
	properties := gopter.NewProperties(parameters)
	properties.Property("holds", prop.ForAll(func(seed uint64) (string, error) { return "", holds(seed) }, gen.UInt64()))
	properties.TestingRun(t)
}

// TestTakeoverTellsTheTruth: whatever MirrorMaker did, the books have all of it
// under the right name, of records that are equal under one that is as good.
func TestTakeoverTellsTheTruth(t *testing.T) {
	for _, values := range []int{0, 1, 3} {
		t.Run(fmt.Sprintf("%d values", values), func(t *testing.T) {
			played, refused := 0, 0
			takeoverProperty(t, 1000, func(seed uint64) error {
				played++
				m := newMirrorModel(seed, values)
				m.play()
				if m.values == 0 && m.chance(30) {
					m.logStart = m.r.Int64N(int64(len(m.source)))
				}
				entries, got, err := m.attach()
				if errors.Is(err, errNothingMatches) && !m.matches() {
					return nil
				}
				if values > 1 && errors.As(err, new(*alignError)) {
					refused++ // what begins where cannot be told by content
					return nil
				}
				if err != nil {
					return err
				}
				if err := m.agrees(entries, got.start); err != nil || m.values > 0 {
					return err
				}
				return m.agreesLast(entries, got.start)
			})
			if t.Logf("%d of %d refused", refused, played); 20*refused > played {
				t.Errorf("%d of %d refused", refused, played)
			}
		})
	}
}

// matches reports whether a record of the target is one that the source has.
func (m *mirrorModel) matches() bool {
	return slices.ContainsFunc(m.target[m.start:], func(t mirroredOffset) bool { return t.kind == copyRecord && t.origin >= m.logStart })
}

// TestTakeoverFindsGaps: a record that is not on the target, though one behind it
// is, refuses the copy, with its place.
func TestTakeoverFindsGaps(t *testing.T) {
	takeoverProperty(t, 500, func(seed uint64) error {
		m := newMirrorModel(seed, 0)
		m.play()
		lost := m.loseOne()
		if lost < 0 {
			return nil
		}
		_, _, err := m.attach()
		var refusal *alignError
		if !errors.As(err, &refusal) {
			return fmt.Errorf("without source offset %d: %v", lost, err)
		}
		return nil
	})
}

// loseOne takes a record from the target wherever it stands, one that another one
// stands on both sides of, and returns its source offset; -1 if there is none.
func (m *mirrorModel) loseOne() int64 {
	first, last := int64(-1), int64(-1)
	for _, t := range m.target {
		if t.kind == copyRecord && m.source[t.origin].tile == ledger.Copied {
			if first < 0 {
				first = t.origin
			}
			last = max(last, t.origin)
		}
	}
	for offset := first + 1; offset < last; offset++ {
		if m.source[offset].tile == ledger.Copied && m.chance(20) {
			m.target = slices.DeleteFunc(m.target, func(t mirroredOffset) bool { return t.kind != copyMarker && t.origin == offset })
			return offset
		}
	}
	return -1
}

// TestTakeoverGoesFarBack repeats more than an alignment holds: it is looked up on
// the source, unless a hint says where.
func TestTakeoverGoesFarBack(t *testing.T) {
	const records, back = attachWindow + 3000, 700
	tests := []struct {
		name  string
		hint  int64 // for the first record that comes again; 0 none
		reads int   // of the source
	}{
		{"found", 0, 5}, // to locate, to align, to look up, to repeat, to book the last copies
		{"hinted", back, 4},
		{"a wrong hint", back + 1, 6},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			m := &mirrorModel{r: rand.New(rand.NewPCG(3, 3))}
			for range records {
				m.source = append(m.source, modelOffset{tile: ledger.Copied, hash: m.r.Uint64()})
			}
			m.copy(0, records-50, false)
			m.copy(back, records, false)
			sides := m.sides()
			if tt.hint > 0 {
				sides.hints = map[int64]int64{records - 50: tt.hint}
			}
			reads, read := 0, sides.source
			sides.source = func(from int64) (func() (*unit, error), func()) { reads++; return read(from) }
			at, err := sides.locate()
			if err != nil {
				t.Fatal(err)
			}
			var entries []ledger.Entry
			got, err := sides.takeover(at, false, keepEntries(&entries))
			if err != nil {
				t.Fatal(err)
			}
			if err := m.agrees(entries, got.start); err != nil || got.counts.duplicates != records-50-back || reads != tt.reads {
				t.Errorf("%v, %d duplicates, the source was read %d times, want %d", err, got.counts.duplicates, reads, tt.reads)
			}
		})
	}
}

// TestTakeoverOfManyRuns: of what is repeated behind more runs than are known the
// first copies count.
func TestTakeoverOfManyRuns(t *testing.T) {
	const records = maxTakenRuns + 3000
	m := &mirrorModel{r: rand.New(rand.NewPCG(4, 4))}
	for range records {
		m.source = append(m.source, modelOffset{tile: ledger.Copied, hash: m.r.Uint64()})
	}
	m.copy(0, 1, false)
	for at := range int64(records - 1) { // none goes over all that the one before did
		m.copy(at, at+2, false)
	}
	entries, got, err := m.attach()
	if err != nil {
		t.Fatal(err)
	}
	if err := m.agrees(entries, got.start); err != nil {
		t.Error(err)
	}
	want := m.lastCopies(0, records)
	for offset := int64(maxTakenRuns); offset < records; offset++ {
		want[offset] = 2 * offset // the last copies are at 2*offset + 1
	}
	for offset, at := range placesOf(entries) {
		if at != want[offset] {
			t.Fatalf("source offset %d is said to be at %d, want %d", offset, at, want[offset])
		}
	}
}

// TestTakeoverBehindManyAborted: more aborted records in a row than an alignment
// holds hide that two runs are next to each other, and nothing else.
func TestTakeoverBehindManyAborted(t *testing.T) {
	m := &mirrorModel{r: rand.New(rand.NewPCG(5, 5))}
	for i := range attachWindow + 3000 {
		tile := ledger.Aborted
		if i < 10 || i > attachWindow+2000 {
			tile = ledger.Copied
		}
		m.source = append(m.source, modelOffset{tile: tile, hash: m.r.Uint64()})
	}
	m.copy(0, attachWindow+2500, false)
	m.copy(attachWindow+2400, int64(len(m.source)), false)
	entries, got, err := m.attach()
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(m.agrees(entries, got.start), m.agreesLast(entries, got.start)); err != nil || got.counts.duplicates != 100 {
		t.Errorf("%v, %d duplicates", err, got.counts.duplicates)
	}
}
