package ledger

import (
	"errors"
	"fmt"
	"iter"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// A modelOffset is everything that a book says about one of its offsets.
type modelOffset struct {
	tile       Tile
	other      int64 // copied: the offset in the other book
	hash       uint64
	bytes      int64
	replaced   bool
	cause      Cause
	reason     string
	origin     Range
	lastKnown  int64
	partnerEnd int64 // end of the other book at this offset, where it does not advance
}

// A modelPair is a pair as two plain lists of offsets: no entries, no pages, no
// joining.
type modelPair struct {
	id             PairID
	info           Pair
	source, target []modelOffset // from offset 0, from info.TargetBase
	closed         bool
	producers      []Producer
	state          State
	appended       int64
	marks          modelMarks

	// What a crash leaves.
	durableSource, durableTarget int
	durableAppended              int64
}

func (m *modelPair) end() Position {
	return Position{
		Source: int64(len(m.source)), Target: m.info.TargetBase + int64(len(m.target)), Appended: m.appended,
	}
}

func (m *modelPair) committed() Position {
	return Position{
		Source:   int64(m.durableSource),
		Target:   m.info.TargetBase + int64(m.durableTarget),
		Appended: m.durableAppended,
	}
}

func (m *modelPair) makeDurable() {
	m.durableSource, m.durableTarget, m.durableAppended = len(m.source), len(m.target), m.appended
	m.marks.durable = maps.Clone(m.marks.doubts)
}

// crash takes back what was not committed.
func (m *modelPair) crash() {
	m.source, m.target, m.appended = m.source[:m.durableSource], m.target[:m.durableTarget], m.durableAppended
	m.marks.doubts = maps.Clone(m.marks.durable)
}

// A world is a ledger file and what it has to say.
type world struct {
	t     *testing.T
	rand  *rand.Rand
	l     *Ledger
	pairs []*modelPair
	next  int // number of the next source partition
}

// TestHistoriesAgainstModel drives ledgers through random histories of
// appending, committing, opening and closing of pairs, restarts and crashes,
// and compares everything that can be asked with plain lists of offsets.
func TestHistoriesAgainstModel(t *testing.T) {
	for seed := range uint64(24) {
		t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) {
			t.Parallel()
			w := &world{t: t, rand: rand.New(rand.NewPCG(seed, 1)), l: mustCreate(t)}
			w.l.writer.minimum = 1 + w.rand.IntN(4) // few pairs, and yet a journal
			w.openPairs()
			for range 150 {
				w.step()
			}
			w.compare(w.l)
		})
	}
}

func (w *world) step() {
	switch n := w.rand.IntN(100); {
	case n < 60:
		w.append()
	case n < 73:
		w.commit()
	case n < 76:
		w.accept()
	case n < 79:
		w.doubt()
	case n < 80:
		w.cutPair()
	case n < 84:
		w.setState()
	case n < 86:
		w.setProducer()
	case n < 89:
		w.openPairs()
	case n < 91:
		w.closePair()
	case n < 92:
		w.reopenPair()
	case n < 94:
		w.restart()
	case n < 97:
		w.compareCopy()
	default:
		w.compare(w.l)
	}
}

func (w *world) pick() *modelPair { return w.pairs[w.rand.IntN(len(w.pairs))] }

func (w *world) openPairs() {
	var pairs []Pair
	for range 1 + w.rand.IntN(3) {
		p := Pair{
			SourceTopic: "orders", TargetTopic: "copy", Partition: int32(w.next),
			ScopeStart: int64(max(w.rand.IntN(12)-6, 0)), TargetBase: int64(w.rand.IntN(3) * 100),
			Producer: Producer{ID: int64(w.next), Epoch: 1, Sequence: int32(w.rand.IntN(9))},
		}
		w.next++
		pairs = append(pairs, p)
	}
	if closed := w.reopenable(); closed != nil {
		p := closed.info
		p.ID, p.Generation, p.Closed = 0, 0, nil
		if closed.marks.cut != nil {
			p.ScopeStart = closed.marks.cut.Source
		}
		pairs = append(pairs, p)
	}
	ids, err := w.l.OpenPairs(pairs)
	if err != nil {
		w.t.Fatal(err)
	}
	for i, id := range ids {
		w.opened(id, pairs[i])
	}
	w.durable()
}

// opened adds a pair as it was opened.
func (w *world) opened(id PairID, p Pair) {
	m := &modelPair{id: id, info: p, producers: []Producer{p.Producer}, state: unknownState(), marks: newModelMarks()}
	for range p.ScopeStart {
		m.source = append(m.source, modelOffset{tile: BeforeStart, partnerEnd: m.info.TargetBase})
	}
	w.pairs = append(w.pairs, m)
}

// reopenable returns the last generation of a source partition, if it is
// closed; nil if none is.
func (w *world) reopenable() *modelPair {
	for _, m := range w.pairs {
		again := slices.ContainsFunc(w.pairs, func(o *modelPair) bool {
			return o.id > m.id && o.info.Partition == m.info.Partition
		})
		if m.closed && !again {
			return m
		}
	}
	return nil
}

func (w *world) closePair() {
	m := w.pick()
	err := w.l.ClosePair(m.id, Closing{Reason: "recreated"})
	if m.closed != errors.Is(err, ErrPairClosed) || !m.closed && err != nil {
		w.t.Fatalf("ClosePair of a pair that is closed (%t): %v", m.closed, err)
	}
	if !m.closed {
		m.closed = true
		w.durable()
	}
}

// reopenPair begins the next generation of a pair that is open.
func (w *world) reopenPair() {
	m := w.pick()
	next := m.info
	next.ID, next.Generation, next.Closed, next.ScopeStart = 0, 0, nil, int64(w.rand.IntN(3))
	id, err := w.l.Reopen(m.id, Closing{Reason: "recreated"}, next)
	if m.closed != errors.Is(err, ErrPairClosed) || !m.closed && err != nil {
		w.t.Fatalf("Reopen of a pair that is closed (%t): %v", m.closed, err)
	}
	if m.closed {
		return
	}
	m.closed = true
	w.opened(id, next)
	w.durable()
}

func (w *world) commit() {
	mustCommit(w.t, w.l)
	w.durable()
}

func (w *world) durable() {
	for _, m := range w.pairs {
		m.makeDurable()
	}
}

func (w *world) restart() {
	w.l = reopen(w.t, w.l)
	for _, m := range w.pairs {
		m.crash()
		// Neither is durable before a commit, and either may be with one that
		// the model does not follow: take what the ledger says.
		m.producers, m.state = w.l.Producers(m.id), w.l.State(m.id)
	}
	w.compare(w.l)
}

// compareCopy opens a copy of the file as a crash would have left it.
func (w *world) compareCopy() {
	b, err := os.ReadFile(w.l.path)
	if err != nil {
		w.t.Fatal(err)
	}
	path := filepath.Join(w.t.TempDir(), "crashed.ledger")
	if err := os.WriteFile(path, b, 0o600); err != nil {
		w.t.Fatal(err)
	}
	l := mustOpen(w.t, path)
	w.compareBooks(l)
	if err := l.Close(); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) setState() {
	m := w.pick()
	s := State{LogStart: int64(w.rand.IntN(5)), LastStable: 10 + int64(w.rand.IntN(5)),
		HighWatermark: 20 + int64(w.rand.IntN(5)), SeenMillis: startMillis, CaughtUpMillis: w.rand.Int64N(2) * startMillis,
		CompactSeen: w.rand.IntN(2) == 0}
	if err := w.l.SetState(m.id, s); (err != nil) != m.closed {
		w.t.Fatalf("SetState of a pair that is closed (%t): %v", m.closed, err)
	} else if err == nil {
		s.CompactSeen = s.CompactSeen || m.state.CompactSeen
		if s.CaughtUpMillis == 0 {
			s.CaughtUpMillis = m.state.CaughtUpMillis
		}
		m.state = s
	}
}

func (w *world) setProducer() {
	m := w.pick()
	p := Producer{ID: int64(w.rand.IntN(1000)), Epoch: 2, Appended: m.appended}
	if err := w.l.SetProducer(m.id, p); (err != nil) != m.closed {
		w.t.Fatalf("SetProducer of a pair that is closed (%t): %v", m.closed, err)
	} else if err == nil {
		m.producers = append(m.producers, p)
	}
}

// append books a few random entries of a random pair.
func (w *world) append() {
	m := w.pick()
	var entries []Entry
	at := m.end()
	for range 1 + w.rand.IntN(6) {
		e := w.entry(m, at)
		entries = append(entries, e)
		at = advance(at, &e)
	}
	err := w.l.Append(m.id, entries...)
	if m.closed != errors.Is(err, ErrPairClosed) || !m.closed && err != nil {
		w.t.Fatalf("Append to a pair that is closed (%t): %v", m.closed, err)
	}
	if m.closed {
		return
	}
	for i := range entries {
		w.record(m, &entries[i])
	}
}

// entry returns a random entry that may follow at.
func (w *world) entry(m *modelPair, at Position) Entry {
	n := 1 + w.rand.Int64N(5)
	t := Tile(w.rand.IntN(NumTiles))
	if w.rand.IntN(2) == 0 {
		t = Copied
	}
	if t == BeforeStart && !slices.ContainsFunc(m.source, func(o modelOffset) bool { return o.tile != BeforeStart }) && at == m.end() {
		return sourceEntry(BeforeStart, at, n)
	}
	switch {
	case t == BeforeStart:
		t = CommitMarker
	case t == Copied:
		return w.copied(at)
	}
	e := sourceEntry(t, at, n)
	if t.AdvancesTarget() {
		e = targetEntry(t, at, n)
	}
	e.LeaderEpoch = int32(w.rand.IntN(3)) - 1
	switch {
	case t == Lost:
		e.Cause, e.LastKnownMillis = CauseRetention, startMillis-int64(w.rand.IntN(2))*5
	case t == Foreign && n > 2:
		e.Cause = CauseAborted
	case t == Unexplained && n > 2:
		e.Reason = "nobody knows"
	}
	return e
}

// copied returns a random copied entry, often with gaps.
func (w *world) copied(at Position) Entry {
	e := copiedEntry(at, 0)
	e.LeaderEpoch = int32(w.rand.IntN(20) / 15)
	e.TimestampsReplaced = w.rand.IntN(20) == 0
	e.Bytes = []int64{20, 700, 30_000, 90_000}[w.rand.IntN(4)]
	for e.Records() == 0 || w.rand.IntN(5) > 0 {
		if w.rand.IntN(3) > 0 {
			e.Digest = e.Digest.Add(hashOf(e.Source.End))
			e.Source.End, e.Target.End = e.Source.End+1, e.Target.End+1
			continue
		}
		n := 1 + w.rand.Int64N(3)
		e.Gaps = append(e.Gaps, Gap{CommitMarker + Tile(w.rand.IntN(4)), Range{e.Source.End, e.Source.End + n}})
		e.Source.End += n
	}
	return e
}

// record adds the offsets of an entry, one by one, to the plain lists.
func (w *world) record(m *modelPair, e *Entry) {
	gaps := e.Gaps
	for offset := e.Source.Start; offset < e.Source.End; offset++ {
		o := modelOffset{tile: e.Tile, cause: e.Cause, reason: e.Reason, lastKnown: e.LastKnownMillis}
		for len(gaps) > 0 && gaps[0].Range.End <= offset {
			gaps = gaps[1:]
		}
		o.partnerEnd = m.end().Target
		switch {
		case len(gaps) > 0 && gaps[0].Range.Start <= offset:
			o.tile = gaps[0].Tile
		case e.Tile == Copied:
			o.hash, o.replaced, o.other = hashOf(offset), e.TimestampsReplaced, m.end().Target
			m.target = append(m.target, modelOffset{tile: Copied, other: offset})
			m.appended++
		}
		m.source = append(m.source, o)
	}
	if e.Tile == Copied {
		m.source[e.Source.Start].bytes = e.Bytes // all of it, at the first offset
		return
	}
	for range e.Target.Len() {
		m.target = append(m.target, modelOffset{tile: e.Tile, origin: e.Origin, cause: e.Cause, reason: e.Reason,
			partnerEnd: m.end().Source})
		if e.Tile == Orphan {
			m.appended++
		}
	}
}

// compare asks a ledger for everything, and compares it with the lists.
func (w *world) compare(l *Ledger) {
	w.t.Helper()
	for _, m := range w.pairs {
		if got, want := l.End(m.id), m.end(); got != want {
			w.t.Fatalf("pair %d: End = %+v, want %+v", m.id, got, want)
		}
		if got := l.Producers(m.id); !slices.Equal(got, m.producers) {
			w.t.Fatalf("pair %d: Producers = %v, want %v", m.id, got, m.producers)
		}
		if got := l.State(m.id); got != m.state {
			w.t.Fatalf("pair %d: State = %+v, want %+v", m.id, got, m.state)
		}
	}
	w.compareBooks(l)
}

func (w *world) compareBooks(l *Ledger) {
	w.t.Helper()
	if got := len(l.Pairs()); got != len(w.pairs) {
		w.t.Fatalf("%d pairs, want %d", got, len(w.pairs))
	}
	for _, m := range w.pairs {
		if got, want := l.Committed(m.id), m.committed(); got != want {
			w.t.Fatalf("pair %d: Committed = %+v, want %+v", m.id, got, want)
		}
		info, _ := l.Pair(m.id)
		if (info.Closed != nil) != m.closed {
			w.t.Fatalf("pair %d: closed = %v, want %t", m.id, info.Closed, m.closed)
		}
		w.compareTotals(l, m)
		w.compareMarks(l, m)
		w.compareFind(l, m)
		w.compareEntries(l, m)
	}
	for _, v := range violations(w.t, l) {
		w.t.Fatalf("check: %v", v)
	}
}

func (w *world) compareTotals(l *Ledger, m *modelPair) {
	w.t.Helper()
	got, want := l.Totals(m.id), Totals{}
	want.Entries = got.Entries // compared with the entries themselves
	for _, o := range m.source[:m.durableSource] {
		want.Tiles[o.tile]++
		want.Bytes += o.bytes
	}
	for _, o := range m.target[:m.durableTarget] {
		if o.tile != Copied {
			want.Tiles[o.tile]++
		}
	}
	if got != want {
		w.t.Fatalf("pair %d: Totals = %v, want %v", m.id, got, want)
	}
}

// compareFind looks up every offset, and some outside.
func (w *world) compareFind(l *Ledger, m *modelPair) {
	w.t.Helper()
	end := m.committed()
	for offset := int64(-2); offset < end.Source+3; offset++ {
		e, err := l.FindSource(m.id, offset)
		if outside := offset < 0 || offset >= end.Source; outside {
			if !errors.Is(err, ErrNotFound) {
				w.t.Fatalf("pair %d: FindSource(%d) outside of %d offsets: %v", m.id, offset, end.Source, err)
			}
			continue
		}
		if err != nil || !e.Source.Contains(offset) {
			w.t.Fatalf("pair %d: FindSource(%d) = %v, %v", m.id, offset, e, err)
		}
		w.compareEntry(m, &e)
	}
	for offset := m.info.TargetBase - 2; offset < end.Target+3; offset++ {
		e, err := l.FindTarget(m.id, offset)
		if outside := offset < m.info.TargetBase || offset >= end.Target; outside {
			if !errors.Is(err, ErrNotFound) {
				w.t.Fatalf("pair %d: FindTarget(%d) outside: %v", m.id, offset, err)
			}
			continue
		}
		if err != nil || !e.Target.Contains(offset) {
			w.t.Fatalf("pair %d: FindTarget(%d) = %v, %v", m.id, offset, e, err)
		}
		w.compareEntry(m, &e)
	}
}

// compareEntry compares an entry with the lists, offset by offset.
func (w *world) compareEntry(m *modelPair, e *Entry) {
	w.t.Helper()
	if err := e.Validate(); err != nil {
		w.t.Fatalf("pair %d: %v", m.id, err)
	}
	var hashes []uint64
	bytes := int64(0)
	for r := range e.Runs() {
		for offset := r.Source.Start; offset < r.Source.End; offset++ {
			o := m.source[offset]
			bytes += o.bytes
			if o.tile != r.Tile {
				w.t.Fatalf("pair %d: source offset %d is %v in %v, want %v", m.id, offset, r.Tile, e, o.tile)
			}
			if r.Tile == Copied {
				hashes = append(hashes, o.hash)
				if got := r.Target.Start + offset - r.Source.Start; got != o.other || o.replaced != e.TimestampsReplaced {
					w.t.Fatalf("pair %d: source offset %d is copied to %d in %v, want %d", m.id, offset, got, e, o.other)
				}
			} else if o.partnerEnd != r.Target.Start || !r.Target.Empty() {
				w.t.Fatalf("pair %d: %v at source %d stands at target %v, want %d", m.id, r.Tile, offset, r.Target, o.partnerEnd)
			}
		}
	}
	if e.Tile == Copied {
		if e.Digest != naiveDigest(hashes) || e.Bytes != bytes {
			w.t.Fatalf("pair %d: %v has digest %v and %d bytes, want %v and %d", m.id, e, e.Digest, e.Bytes, naiveDigest(hashes), bytes)
		}
		return
	}
	w.compareAttributes(m, e)
}

func (w *world) compareAttributes(m *modelPair, e *Entry) {
	w.t.Helper()
	for offset := e.Source.Start; offset < e.Source.End; offset++ {
		o := m.source[offset]
		if o.cause != e.Cause || o.reason != e.Reason || o.lastKnown != e.LastKnownMillis {
			w.t.Fatalf("pair %d: source offset %d: %+v, want %+v", m.id, offset, e, o)
		}
	}
	for offset := e.Target.Start; offset < e.Target.End; offset++ {
		o := m.target[offset-m.info.TargetBase]
		if o.tile != e.Tile || o.origin != e.Origin || o.cause != e.Cause || o.partnerEnd != e.Source.Start {
			w.t.Fatalf("pair %d: target offset %d: %+v, want %+v", m.id, offset, e, o)
		}
	}
}

// compareEntries walks the books from the start, and from random places.
func (w *world) compareEntries(l *Ledger, m *modelPair) {
	w.t.Helper()
	all := mustCollect(w.t, l.Entries(m.id, 0))
	if got := int64(len(all)); got != l.Totals(m.id).Entries {
		w.t.Fatalf("pair %d: %d entries, totals say %d", m.id, got, l.Totals(m.id).Entries)
	}
	at := place{0, m.info.TargetBase}
	for i := range all {
		if all[i].start() != at {
			w.t.Fatalf("pair %d: entry %v does not start at %v", m.id, all[i], at)
		}
		w.compareEntry(m, &all[i])
		at = all[i].end()
	}
	if want := m.committed(); at != (place{want.Source, want.Target}) {
		w.t.Fatalf("pair %d: entries end at %v, want %v", m.id, at, want)
	}
	w.compareReads(l, m, all)
	for range 5 {
		from := w.rand.Int64N(m.committed().Source+4) - 1
		want := slices.DeleteFunc(slices.Clone(all), func(e Entry) bool { return e.Source.End <= from && e.Source.Start < from })
		w.compareLists(m, "Entries", from, mustCollect(w.t, l.Entries(m.id, from)), want)
		from = m.info.TargetBase + w.rand.Int64N(int64(m.durableTarget)+4) - 1
		want = slices.DeleteFunc(slices.Clone(all), func(e Entry) bool { return e.Target.End <= from && e.Target.Start < from })
		w.compareLists(m, "EntriesFromTarget", from, mustCollect(w.t, l.EntriesFromTarget(m.id, from)), want)
	}
}

func (w *world) compareLists(m *modelPair, what string, from int64, got, want []Entry) {
	w.t.Helper()
	if !slices.EqualFunc(got, want, sameEntry) {
		w.t.Fatalf("pair %d: %s(%d) = %v, want %v", m.id, what, from, got, want)
	}
}

func sameEntry(a, b Entry) bool {
	return fmt.Sprintf("%+v", a) == fmt.Sprintf("%+v", b)
}

func mustCollect(t testing.TB, entries iter.Seq2[Entry, error]) (all []Entry) {
	t.Helper()
	for e, err := range entries {
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, e)
	}
	return all
}
