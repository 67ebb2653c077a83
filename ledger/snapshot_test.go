package ledger

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.etcd.io/bbolt"
)

// TestSnapshotWhileWriting makes copies while commits go on: each one is sound,
// says what was committed at some moment of its making, and has the hash that
// was returned.
func TestSnapshotWhileWriting(t *testing.T) {
	l := mustCreate(t)
	id := mustOpenPair(t, l, 0, 0)
	stop, done := make(chan struct{}), make(chan error)
	go func() {
		for {
			select {
			case <-stop:
				done <- nil
				return
			default:
				if err := errors.Join(l.Append(id, childEntry(l.End(id))), l.Commit()); err != nil {
					done <- err
					return
				}
			}
		}
	}()
	directory := t.TempDir()
	for i := range 20 {
		path := filepath.Join(directory, fmt.Sprintf("%d.ledger", i%3)) // over an older one, too
		before := l.Committed(id)
		sum, err := l.Snapshot(t.Context(), path)
		if err != nil {
			t.Fatal(err)
		}
		after := l.Committed(id)
		if got := sha256.Sum256(mustReadFile(t, path)); got != sum {
			t.Fatalf("the copy has hash %x, Snapshot says %x", got, sum)
		}
		mustCheckFile(t, path)
		copied := mustOpen(t, path)
		if got := copied.Committed(id); got.Source < before.Source || got.Source > after.Source {
			t.Fatalf("the copy ends at %d, the ledger at %d before and %d after", got.Source, before.Source, after.Source)
		}
		mustAppend(t, copied, id, copiedEntry(copied.End(id), 1)) // a copy goes on like any ledger
		mustCommit(t, copied)
		if err := copied.Close(); err != nil {
			t.Fatal(err)
		}
	}
	close(stop)
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	mustHold(t, directory, "0.ledger", "1.ledger", "2.ledger")
}

// TestSnapshotWaitsForTheCommit: while a commit is on its way to the disk a copy
// would hold it already, though a crash may still undo it.
func TestSnapshotWaitsForTheCommit(t *testing.T) {
	l := mustCreate(t)
	path := filepath.Join(t.TempDir(), "copy.ledger")
	done := make(chan error)
	l.commitMu.Lock() // as a commit does
	go func() {
		_, err := l.Snapshot(t.Context(), path)
		done <- err
	}()
	select {
	case err := <-done:
		l.commitMu.Unlock()
		t.Fatalf("a snapshot in the middle of a commit: %v", err)
	case <-time.After(50 * time.Millisecond):
	}
	l.commitMu.Unlock()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// TestSnapshotInterrupted leaves what was at the path, and nothing beside it.
func TestSnapshotInterrupted(t *testing.T) {
	l := mustCreate(t)
	directory := t.TempDir()
	path := filepath.Join(directory, "copy.ledger")
	if err := os.WriteFile(path, []byte("older"), 0o600); err != nil {
		t.Fatal(err)
	}
	reason := errors.New("enough")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(reason)
	if _, err := l.Snapshot(ctx, path); !errors.Is(err, reason) {
		t.Errorf("Snapshot = %v, want %v", err, reason)
	}
	if err := l.Check(ctx, func(Violation) {}); !errors.Is(err, reason) {
		t.Errorf("Check = %v, want %v", err, reason)
	}
	if got := string(mustReadFile(t, path)); got != "older" {
		t.Errorf("the path now holds %q", got)
	}
	mustHold(t, directory, "copy.ledger")
	if _, err := l.Snapshot(t.Context(), filepath.Join(directory, "none", "copy.ledger")); err == nil {
		t.Error("a snapshot into a missing directory succeeds")
	}
}

// TestSnapshotOverItself is refused, by whatever name.
func TestSnapshotOverItself(t *testing.T) {
	l := mustCreate(t)
	id := mustOpenPair(t, l, 0, 0)
	other := filepath.Join(t.TempDir(), "other.ledger")
	if err := os.Symlink(l.path, other); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{l.path, other} {
		if _, err := l.Snapshot(t.Context(), path); err == nil {
			t.Errorf("a snapshot to %s replaces the ledger", path)
		}
	}
	mustAppend(t, l, id, copiedEntry(l.End(id), 5))
	mustCommit(t, l)
	if got := reopen(t, l).Committed(id).Source; got != 5 {
		t.Errorf("the file ends at %d, want 5", got)
	}
}

// TestSnapshotFile copies a file that nobody writes to.
func TestSnapshotFile(t *testing.T) {
	l := mustCreate(t)
	id := mustOpenPair(t, l, 0, 0)
	mustAppend(t, l, id, copiedEntry(l.End(id), 5))
	mustCommit(t, l)
	to := filepath.Join(t.TempDir(), "copy.ledger")
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	sum, err := SnapshotFile(t.Context(), l.path, to)
	if err != nil || sha256.Sum256(mustReadFile(t, to)) != sum {
		t.Fatalf("SnapshotFile = %x, %v", sum, err)
	}
	again := mustOpen(t, to)
	if got := again.Committed(id).Source; got != 5 {
		t.Errorf("the copy ends at %d, want 5", got)
	}
}

// TestOpenCopyWithoutRoom: a missing directory for the copy is not a missing
// ledger, and leaves the ledger free.
func TestOpenCopyWithoutRoom(t *testing.T) {
	l := mustCreate(t)
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	nowhere := filepath.Join(t.TempDir(), "nowhere")
	t.Setenv("TMPDIR", nowhere)
	_, err := OpenCopy(l.path, Options{})
	if err == nil || errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), nowhere) || !strings.Contains(err.Error(), l.path) {
		t.Errorf("OpenCopy without room: %v, want an error that names %s and is not fs.ErrNotExist", err, nowhere)
	}
	again, err := Open(l.path, Options{LockTimeout: -1})
	if err != nil {
		t.Fatalf("afterwards the ledger is not free: %v", err)
	}
	if err := again.Close(); err != nil {
		t.Fatal(err)
	}
}

// TestOpenCopy: the original is free while the copy is open, and the copy is
// gone afterwards.
func TestOpenCopy(t *testing.T) {
	temporary := t.TempDir()
	t.Setenv("TMPDIR", temporary)
	l := mustCreate(t)
	id := mustOpenPair(t, l, 0, 0)
	mustAppend(t, l, id, copiedEntry(l.End(id), 5))
	mustCommit(t, l)
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	private, err := OpenCopy(l.path, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if private.Path() != l.path {
		t.Errorf("the path of a copy is %s, want %s", private.Path(), l.path)
	}
	writer := mustOpen(t, l.path)
	mustAppend(t, writer, id, copiedEntry(writer.End(id), 5))
	mustCommit(t, writer)
	if got := private.Committed(id).Source; got != 5 {
		t.Errorf("the copy ends at %d, want 5", got)
	}
	refuseWrites(t, private, id)
	if err := private.Close(); err != nil {
		t.Fatal(err)
	}
	mustHold(t, temporary)
}

// TestReaderHoldsUpNobody keeps a read transaction open while the file grows to
// many times its size: commits go on.
func TestReaderHoldsUpNobody(t *testing.T) {
	l := mustCreate(t)
	id := mustOpenPair(t, l, 0, 0)
	open, finished := make(chan struct{}), make(chan struct{})
	reader := make(chan error)
	go func() {
		reader <- l.viewTx(func(*bbolt.Tx) error {
			close(open)
			<-finished
			return nil
		})
	}()
	<-open
	before, _, _ := l.Usage()
	committed := make(chan error)
	go func() {
		for range 40 {
			for range 3000 {
				e := targetEntry(Foreign, l.End(id), 1)
				e.Reason = "a text of some length, so that the file grows quickly enough"
				if err := l.Append(id, e); err != nil {
					committed <- err
					return
				}
			}
			if err := l.Commit(); err != nil {
				committed <- err
				return
			}
		}
		committed <- nil
	}()
	select {
	case err := <-committed:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(time.Minute):
		t.Error("commits wait for a reader")
	}
	if after, _, _ := l.Usage(); after < 8*before {
		t.Errorf("the file grew from %d to %d bytes only: the test shows nothing", before, after)
	}
	close(finished)
	if err := <-reader; err != nil {
		t.Error(err)
	}
}

// TestConcurrency appends to many pairs from many goroutines while one commits
// and others read and check: the race detector looks on, and so does the model
// of each pair.
func TestConcurrency(t *testing.T) {
	l := mustCreate(t)
	l.writer.minimum = 1
	const writers, entries = 8, 200
	var pairs []Pair
	for i := range writers {
		pairs = append(pairs, Pair{SourceTopic: "orders", TargetTopic: "orders", Partition: int32(i)})
	}
	ids, err := l.OpenPairs(pairs)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	var writing, others sync.WaitGroup
	errs := make(chan error, 100)
	for _, id := range ids {
		writing.Go(func() { errs <- appendAlone(l, id, entries) })
	}
	others.Go(func() { errs <- l.CommitLoop(ctx) })
	others.Go(func() {
		for ctx.Err() == nil {
			errs <- l.Commit()
			drain(errs)
		}
	})
	for range 3 {
		others.Go(func() { errs <- readAlong(ctx, l, ids) })
	}
	others.Go(func() {
		for ctx.Err() == nil {
			err := l.Check(t.Context(), func(v Violation) { t.Error(v) })
			if err != nil {
				errs <- err
				return
			}
			_, _, _ = l.Usage()
		}
	})
	writing.Wait()
	cancel()
	others.Wait()
	close(errs)
	for err := range errs {
		if err != nil {
			t.Error(err)
		}
	}
	for _, id := range ids {
		if got, want := l.Committed(id), l.End(id); got != want {
			t.Errorf("pair %d is committed to %+v, want %+v", id, got, want)
		}
	}
}

// drain takes results without an error out of errs, so that it does not fill
// up.
func drain(errs chan error) {
	for range len(errs) {
		if err := <-errs; err != nil {
			errs <- err
			return
		}
	}
}

func appendAlone(l *Ledger, id PairID, n int) error {
	for range n {
		e := childEntry(l.End(id))
		s := State{LogStart: 0, LastStable: e.Source.End, HighWatermark: e.Source.End, SeenMillis: startMillis}
		if err := errors.Join(l.Append(id, e), l.SetState(id, s)); err != nil {
			return err
		}
	}
	return nil
}

// readAlong looks up what is committed, again and again: it must be there, and
// never become less.
func readAlong(ctx context.Context, l *Ledger, ids []PairID) error {
	last := make(map[PairID]Position)
	for ctx.Err() == nil {
		for _, id := range ids {
			end := l.Committed(id)
			if end.Source < last[id].Source || end.Target < last[id].Target {
				return fmt.Errorf("pair %d went back from %+v to %+v", id, last[id], end)
			}
			last[id] = end
			if end.Source == 0 {
				continue
			}
			if e, err := l.FindSource(id, end.Source-1); err != nil || e.Source.End < end.Source {
				return fmt.Errorf("pair %d: the last offset before %+v: %+v, %w", id, end, e, err)
			}
			if err := readList(l, id, end); err != nil {
				return err
			}
		}
	}
	return nil
}

func readList(l *Ledger, id PairID, end Position) error {
	var at place
	for e, err := range l.Entries(id, 0) {
		if err != nil || e.start() != at {
			return fmt.Errorf("pair %d: at %+v: %+v, %w", id, at, e, err)
		}
		at = e.end()
	}
	if at.source < end.Source {
		return fmt.Errorf("pair %d: the list ends at %+v, before %+v", id, at, end)
	}
	return nil
}

// TestEntriesEndWhereTheyBegan: a loop over entries does not run after those
// that are committed meanwhile.
func TestEntriesEndWhereTheyBegan(t *testing.T) {
	l := mustCreate(t)
	l.writer.minimum = 1
	id := mustOpenPair(t, l, 0, 0)
	for range 200 {
		mustAppend(t, l, id, copiedEntry(l.End(id), 1))
		mustCommit(t, l)
	}
	var got []int64
	for e, err := range l.Entries(id, 50) {
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, e.Source.Start)
		mustAppend(t, l, id, copiedEntry(l.End(id), 1))
		mustCommit(t, l)
	}
	want := make([]int64, 0, 150)
	for offset := int64(50); offset < 200; offset++ {
		want = append(want, offset)
	}
	if !slices.Equal(got, want) {
		t.Errorf("entries at %v, want those from 50 to 199", got)
	}
}
