package ledger

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// TestReadersShare: any number may read, nobody writes meanwhile.
func TestReadersShare(t *testing.T) {
	l := mustCreate(t)
	id := mustOpenPair(t, l, 0, 0)
	mustAppend(t, l, id, copiedEntry(l.End(id), 5))
	mustCommit(t, l)
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	var readers []*Ledger
	for range 2 {
		r, err := Open(l.path, Options{ReadOnly: true})
		if err != nil {
			t.Fatal(err)
		}
		readers = append(readers, r)
	}
	var locked *LockedError
	if _, err := Open(l.path, Options{LockTimeout: -1}); !errors.As(err, &locked) {
		t.Errorf("open for writing beside readers: %v", err)
	}
	for _, r := range readers {
		refuseWrites(t, r, id)
		if e, err := r.FindSource(id, 3); err != nil || e.Records() != 5 {
			t.Errorf("FindSource = %v, %v", e, err)
		}
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	}
}

func refuseWrites(t *testing.T, r *Ledger, id PairID) {
	t.Helper()
	_, openErr := r.OpenPairs([]Pair{{SourceTopic: "x", TargetTopic: "x"}})
	for what, err := range map[string]error{
		"Append":      r.Append(id, copiedEntry(r.End(id), 1)),
		"Commit":      r.Commit(),
		"SetState":    r.SetState(id, unknownState()),
		"SetProducer": r.SetProducer(id, Producer{}),
		"ClosePair":   r.ClosePair(id, Closing{}),
		"SetScope":    r.SetScope(Scope{Topics: []string{"x"}}),
		"OpenPairs":   openErr,
	} {
		if !errors.Is(err, ErrReadOnly) {
			t.Errorf("%s of a ledger open for reading: %v", what, err)
		}
	}
}

// TestOpenOfNothing: a missing file is never made, nor is one that Create
// cannot make left half made.
func TestOpenOfNothing(t *testing.T) {
	directory := t.TempDir()
	path := filepath.Join(directory, "none.ledger")
	for _, o := range []Options{{}, {ReadOnly: true}} {
		if _, err := Open(path, o); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("Open of a missing file: %v", err)
		}
	}
	if _, err := OpenCopy(path, Options{}); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("OpenCopy of a missing file: %v", err)
	}
	if _, err := Create(filepath.Join(path, "below"), testIdentity(), Options{}); err == nil {
		t.Error("Create below a missing directory succeeds")
	}
	if _, err := Create(path, testIdentity(), Options{ReadOnly: true}); !errors.Is(err, ErrReadOnly) {
		t.Errorf("Create for reading: %v", err)
	}
	if _, err := Create(path, Identity{SourceAlias: "\xff"}, Options{}); err == nil {
		t.Error("an alias that is not text is taken")
	}
	if err := os.WriteFile(path, []byte("something else"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Create(path, testIdentity(), Options{}); !errors.Is(err, ErrExist) || !errors.Is(err, fs.ErrExist) {
		t.Errorf("Create over a file: %v", err)
	}
	if got := string(mustReadFile(t, path)); got != "something else" {
		t.Errorf("the file now holds %q", got)
	}
	mustHold(t, directory, "none.ledger")
}

// TestCreateAtOnce: of many that make one ledger at once one does, and the
// others are told.
func TestCreateAtOnce(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.ledger")
	const creators = 8
	results := make(chan error, creators)
	start := make(chan struct{})
	for range creators {
		go func() {
			<-start
			l, err := Create(path, testIdentity(), Options{LockTimeout: -1})
			if err == nil {
				t.Cleanup(func() { l.Close() })
			}
			results <- err
		}()
	}
	close(start)
	made := 0
	for range creators {
		if err := <-results; err == nil {
			made++
		} else if !errors.Is(err, ErrExist) {
			t.Error(err)
		}
	}
	if made != 1 {
		t.Errorf("%d of %d made the ledger, want one", made, creators)
	}
	mustHold(t, filepath.Dir(path), "a.ledger")
}

// mustHold looks for files that somebody left behind.
func mustHold(t *testing.T, directory string, want ...string) {
	t.Helper()
	entries, err := os.ReadDir(directory)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	if !slices.Equal(names, want) {
		t.Errorf("the directory holds %q, want %q", names, want)
	}
}

// TestIdentity: who the ledger is stays as it was made.
func TestIdentity(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.ledger")
	l, err := Create(path, Identity{SourceAlias: "a", TargetAlias: "b"}, Options{Now: newClock()})
	if err != nil {
		t.Fatal(err)
	}
	checkAtEnd(t, l)
	id := l.Identity()
	if len(id.LedgerID) != 32 || id.CreatedMillis < startMillis || id.Format != format || id.SourceAlias != "a" {
		t.Errorf("identity = %+v", id)
	}
	again := reopen(t, l)
	if got := again.Identity(); got != id || again.Path() != path {
		t.Errorf("identity = %+v of %s, want %+v", got, again.Path(), id)
	}
	mustHold(t, filepath.Dir(path), "a.ledger")
}

// TestClosedLedger answers with ErrClosed, and may be closed again.
func TestClosedLedger(t *testing.T) {
	l := mustCreate(t)
	id := mustOpenPair(t, l, 0, 0)
	mustAppend(t, l, id, copiedEntry(l.End(id), 1))
	mustCommit(t, l)
	for range 2 {
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
	}
	_, findErr := l.FindSource(id, 0)
	var entriesErr error
	for _, err := range l.Entries(id, 0) {
		entriesErr = err
	}
	_, snapshotErr := l.Snapshot(t.Context(), filepath.Join(t.TempDir(), "copy"))
	for what, err := range map[string]error{
		"Append":     l.Append(id, copiedEntry(l.End(id), 1)),
		"Commit":     l.Commit(),
		"SetState":   l.SetState(id, unknownState()),
		"FindSource": findErr,
		"Entries":    entriesErr,
		"Snapshot":   snapshotErr,
		"Check":      l.Check(t.Context(), func(Violation) {}),
	} {
		if !errors.Is(err, ErrClosed) {
			t.Errorf("%s of a closed ledger: %v", what, err)
		}
	}
	if file, used, err := l.Usage(); file != 0 || used != 0 || !errors.Is(err, ErrClosed) {
		t.Errorf("Usage = %d, %d, %v", file, used, err)
	}
}
