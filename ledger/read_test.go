package ledger

import (
	"errors"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
)

// compareReads reads pages from random offsets on, each into the memory of the one
// before, and compares them with all entries.
func (w *world) compareReads(l *Ledger, m *modelPair, all []Entry) {
	w.t.Helper()
	var into []Entry
	ways := []struct {
		name       string
		start, end int64
		span       func(*Entry) Range
		read       func(PairID, int64, []Entry) ([]Entry, error)
	}{
		{"ReadSource", 0, m.committed().Source, func(e *Entry) Range { return e.Source }, l.ReadSource},
		{"ReadTarget", m.info.TargetBase, m.committed().Target, func(e *Entry) Range { return e.Target }, l.ReadTarget},
	}
	for range 20 {
		way := ways[w.rand.IntN(2)]
		offset := way.start + w.rand.Int64N(way.end-way.start+3) - 1
		var err error
		into, err = way.read(m.id, offset, into)
		if offset < way.start || offset >= way.end {
			if !errors.Is(err, ErrNotFound) || len(into) > 0 {
				w.t.Fatalf("pair %d: %s(%d) outside: %d entries, %v", m.id, way.name, offset, len(into), err)
			}
			continue
		}
		from := slices.IndexFunc(all, func(e Entry) bool { return way.span(&e).Contains(offset) })
		if err != nil || len(into) == 0 || len(into) > min(pageEntries, len(all)-from) {
			w.t.Fatalf("pair %d: %s(%d): %d entries, %v", m.id, way.name, offset, len(into), err)
		}
		w.compareLists(m, way.name, offset, into, all[from:from+len(into)])
	}
}

// mustMakeLong returns the path of a ledger whose one pair, of id 1, has many
// pages, and its entries.
func mustMakeLong(t *testing.T) (path string, all []Entry) {
	t.Helper()
	l := mustCreate(t)
	id := mustOpenPair(t, l, 0, 0)
	random := rand.New(rand.NewPCG(5, 0))
	for i := range 2000 {
		at := l.End(id)
		e := copiedEntry(at, 1+random.Int64N(3))
		e.LeaderEpoch = int32(i % 7) // entries of two epochs are not joined
		if i%3 == 0 {
			e.Gaps = []Gap{{CommitMarker, Range{e.Source.End, e.Source.End + 1}}}
			e.Source.End++
		}
		mustAppend(t, l, id, e)
		if i%50 == 0 {
			mustCommit(t, l)
		}
	}
	mustCommit(t, l)
	all = mustCollect(t, l.Entries(id, 0))
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	return l.path, all
}

// TestManyReaders has many at once find and read entries, which use memory again
// that others gave back.
func TestManyReaders(t *testing.T) {
	path, all := mustMakeLong(t)
	for _, readOnly := range []bool{true, false} {
		l, err := Open(path, Options{ReadOnly: readOnly, Now: newClock()})
		if err != nil {
			t.Fatal(err)
		}
		var wait sync.WaitGroup
		for reader := range uint64(4) {
			wait.Go(func() {
				random := rand.New(rand.NewPCG(reader, 9))
				var into []Entry
				for range 1500 {
					i := random.IntN(len(all))
					source, sourceErr := l.FindSource(1, all[i].Source.Start)
					target, targetErr := l.FindTarget(1, all[i].Target.Start)
					var readErr error
					into, readErr = l.ReadSource(1, all[i].Source.Start, into)
					if err := errors.Join(sourceErr, targetErr, readErr); err != nil {
						t.Error(err)
						return
					}
					if !sameEntry(source, all[i]) || !sameEntry(target, all[i]) || !slices.EqualFunc(into, all[i:i+len(into)], sameEntry) {
						t.Errorf("entry %d is read as %+v, %+v and %+v, want %+v", i, source, target, into, all[i])
						return
					}
				}
			})
		}
		wait.Wait()
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
		for offset := range int64(2) {
			if _, err := l.FindSource(1, offset); !errors.Is(err, ErrClosed) {
				t.Errorf("after closing: %v", err)
			}
		}
	}
}

// TestCloseWhileReading closes a ledger under readers: what they get is an answer
// or ErrClosed.
func TestCloseWhileReading(t *testing.T) {
	path, all := mustMakeLong(t)
	for range 20 {
		l, err := Open(path, Options{ReadOnly: true})
		if err != nil {
			t.Fatal(err)
		}
		var wait sync.WaitGroup
		started := make(chan struct{}, 3)
		for reader := range 3 {
			wait.Go(func() {
				for i := reader; ; i = (i + 37) % len(all) {
					e, err := l.FindSource(1, all[i].Source.Start)
					if errors.Is(err, ErrClosed) {
						return
					}
					if err != nil || !sameEntry(e, all[i]) {
						t.Errorf("%+v, %v, want %+v", e, err, all[i])
						return
					}
					select {
					case started <- struct{}{}:
					default:
					}
				}
			})
		}
		<-started
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
		wait.Wait()
	}
}
