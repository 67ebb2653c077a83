//go:build unix

package ledger

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// removals are ways to take the file of a ledger away while it is open. After
// each, nothing that is written into the open file can be found again.
func removals() map[string]func(t *testing.T, path string) {
	must := func(t *testing.T, err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	return map[string]func(t *testing.T, path string){
		"deleted": func(t *testing.T, path string) { must(t, os.Remove(path)) },
		"moved":   func(t *testing.T, path string) { must(t, os.Rename(path, path+".old")) },
		"its directory moved": func(t *testing.T, path string) {
			must(t, os.Rename(filepath.Dir(path), filepath.Dir(path)+".old"))
		},
		"replaced by a copy": func(t *testing.T, path string) {
			must(t, os.WriteFile(path+".copy", mustReadFile(t, path), 0o600))
			must(t, os.Rename(path+".copy", path))
		},
		"replaced by a directory": func(t *testing.T, path string) {
			must(t, os.Remove(path))
			must(t, os.Mkdir(path, 0o700))
		},
		"cut to half":    func(t *testing.T, path string) { must(t, os.Truncate(path, int64(len(mustReadFile(t, path))/2))) },
		"cut to a page":  func(t *testing.T, path string) { must(t, os.Truncate(path, fileBlock)) },
		"cut to nothing": func(t *testing.T, path string) { must(t, os.Truncate(path, 0)) },
		"cut and filled": func(t *testing.T, path string) {
			size := int64(len(mustReadFile(t, path)))
			must(t, os.Truncate(path, 0))
			must(t, os.Truncate(path, size))
		},
		"overwritten by an older copy": func(t *testing.T, path string) {
			f, err := os.OpenFile(path, os.O_RDWR, 0)
			must(t, err)
			defer f.Close()
			for page := range int64(2) { // both meta pages as of one transaction before
				var b [fileBlock]byte
				_, err := f.ReadAt(b[:], page*fileBlock)
				must(t, err)
				setMeta(b[:], func(m []byte) { putNative64(m[48:], 3-uint64(page)) })
				_, err = f.WriteAt(b[:], page*fileBlock)
				must(t, err)
			}
		},
	}
}

// abandonedLedger makes a ledger whose file is not looked at when the test ends.
func abandonedLedger(t *testing.T) (*Ledger, PairID) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "flow", "test.ledger")
	if err := os.Mkdir(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	l, err := Create(path, testIdentity(), Options{Now: newClock()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	id := mustOpenPair(t, l, 0, 0)
	for range 30 {
		mustAppendMany(t, l, id, 300)
		mustCommit(t, l)
	}
	return l, id
}

// mustBeDamageAt asks for an error that names the path and a law.
func mustBeDamageAt(t *testing.T, what string, err error, path string) {
	t.Helper()
	var damage *CorruptError
	if !errors.As(err, &damage) || damage.Path != path || damage.Law == "" || strings.Contains(err.Error(), "goroutine") {
		t.Errorf("%s: %v, want a CorruptError of %s", what, err, path)
	}
}

// TestCommitIntoRemovedFile: a file that is taken away is noticed by the next
// commit, which writes nothing, and the ledger takes nothing any more.
func TestCommitIntoRemovedFile(t *testing.T) {
	for name, remove := range removals() {
		t.Run(name, func(t *testing.T) {
			l, id := abandonedLedger(t)
			mustAppend(t, l, id, copiedEntry(l.End(id), 3))
			committed := l.Committed(id)
			remove(t, l.path)
			before, _ := os.ReadFile(l.path)
			mustBeDamageAt(t, "commit", l.Commit(), l.path)
			mustBeDamageAt(t, "append", l.Append(id, copiedEntry(l.End(id), 3)), l.path)
			mustBeDamageAt(t, "a second commit", l.Commit(), l.path)
			if after, _ := os.ReadFile(l.path); !slices.Equal(before, after) {
				t.Error("the file that is there now was written to")
			}
			if l.Committed(id) != committed {
				t.Error("what was not committed seems to be")
			}
		})
	}
}

// TestLoopNoticesRemovedFile: the same when nothing is to be committed, within
// two seconds.
func TestLoopNoticesRemovedFile(t *testing.T) {
	for name, remove := range removals() {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l, id := abandonedLedger(t)
				loop := make(chan error, 1)
				go func() { loop <- l.CommitLoop(t.Context()) }()
				<-time.After(time.Minute)
				select {
				case err := <-loop:
					t.Fatalf("the loop ends with nothing wrong: %v", err)
				default:
				}
				remove(t, l.path)
				started := time.Now()
				err := <-loop
				mustBeDamageAt(t, "the loop", err, l.path)
				if time.Since(started) > 2*time.Second {
					t.Errorf("%v after %v", err, time.Since(started))
				}
				mustBeDamageAt(t, "append", l.Append(id, copiedEntry(l.End(id), 3)), l.path)
			})
		})
	}
}

// TestFileThatStaysInPlace: what leaves the file where it is, leaves the ledger
// at work: other permissions, another name as well, a longer file.
func TestFileThatStaysInPlace(t *testing.T) {
	l := mustCreate(t)
	id := mustOpenPair(t, l, 0, 0)
	steps := map[string]func() error{
		"no permissions":  func() error { return os.Chmod(l.path, 0) },
		"another name":    func() error { return os.Link(l.path, l.path+".link") },
		"a longer file":   func() error { return os.Truncate(l.path, 3<<20) },
		"with permission": func() error { return os.Chmod(l.path, 0o600) },
	}
	for name, step := range steps {
		if err := step(); err != nil {
			t.Fatal(err)
		}
		mustAppend(t, l, id, copiedEntry(l.End(id), 3))
		if err := errors.Join(l.Commit(), l.look()); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := os.Chmod(l.path, 0o600); err != nil {
		t.Fatal(err)
	}
	if got := crashed(t, l).Committed(id).Source; got != 12 {
		t.Errorf("%d records are in the file", got)
	}
}

// readers are all ways to read a ledger that is open.
func readers(id PairID) map[string]func(l *Ledger, directory string) error {
	ended := func(text any) error {
		err, _ := text.(error)
		return err
	}
	return map[string]func(l *Ledger, directory string) error{
		"find by source": func(l *Ledger, _ string) error { _, err := l.FindSource(id, 1); return err },
		"find by target": func(l *Ledger, _ string) error { _, err := l.FindTarget(id, 1); return err },
		"entries":        func(l *Ledger, _ string) error { return ended(listed(l.Entries(id, 0))) },
		"entries by target": func(l *Ledger, _ string) error {
			return ended(listed(l.EntriesFromTarget(id, 0)))
		},
		"topics": func(l *Ledger, _ string) error { return ended(seenListed(l)) },
		"check": func(l *Ledger, _ string) error {
			var found error
			err := l.Check(context.Background(), func(v Violation) {
				found = &CorruptError{Path: l.path, Law: v.Law, Detail: v.Detail}
			})
			return errors.Join(err, found)
		},
		"snapshot": func(l *Ledger, directory string) error {
			_, err := l.Snapshot(context.Background(), filepath.Join(directory, "snapshot"))
			return err
		},
		"in memory": func(l *Ledger, _ string) error {
			_, _, _, _ = l.Totals(id), l.Pairs(), l.State(id), l.Unaccepted(id)
			_, _, _ = l.Usage()
			return nil
		},
	}
}

// TestReadCutFile: a file that is cut while it is open is damage to whoever reads
// it, or as good as before where the pages that are asked for are still there:
// for the one that writes as for those that read.
func TestReadCutFile(t *testing.T) {
	for _, readOnly := range []bool{false, true} {
		for _, share := range []int64{0, 1, 2, 3} {
			t.Run(fmt.Sprintf("read only %t, %d quarters", readOnly, share), func(t *testing.T) {
				l, id := abandonedLedger(t)
				if readOnly {
					if err := l.Close(); err != nil {
						t.Fatal(err)
					}
					var err error
					if l, err = Open(l.path, Options{ReadOnly: true}); err != nil {
						t.Fatal(err)
					}
				}
				_, used, _ := l.Usage()
				if err := os.Truncate(l.path, used*share/4/fileBlock*fileBlock); err != nil {
					t.Fatal(err)
				}
				damaged := 0
				for name, read := range readers(id) {
					err := read(l, t.TempDir())
					if err != nil {
						damaged++
						mustBeDamageAt(t, name, err, l.path)
					}
				}
				if share < 2 && damaged < 4 {
					t.Errorf("only %d readers notice", damaged)
				}
				_ = l.Close() // must come back
			})
		}
	}
}

// TestEveryReaderOfFlippedBytes changes bytes of a small ledger, and lets all that
// read it have it: each answers as before, or that the file is damaged.
func TestEveryReaderOfFlippedBytes(t *testing.T) {
	good := filepath.Join(t.TempDir(), "good.ledger")
	buildGood(t, good)
	b := mustReadFile(t, good)
	directory := t.TempDir()
	path := filepath.Join(directory, "flipped.ledger")
	damaged := 0
	for at := 0; at < len(b); at += 16*13 + 1 {
		flipped := slices.Clone(b)
		flipped[at] ^= 1 << (at % 8)
		if err := os.WriteFile(path, flipped, 0o600); err != nil {
			t.Fatal(err)
		}
		whole := map[string]func() error{
			"snapshot of the file": func() error {
				_, err := SnapshotFile(t.Context(), path, filepath.Join(directory, "snapshot"))
				return err
			},
			"migrate": func() error {
				to := filepath.Join(directory, "migrated")
				_, err := Migrate(t.Context(), path, to, Options{})
				return errors.Join(err, os.RemoveAll(to))
			},
			"copy": func() error {
				l, err := OpenCopy(path, Options{})
				if err == nil {
					err = l.Close()
				}
				return err
			},
		}
		l, err := Open(path, Options{ReadOnly: true})
		for id := PairID(1); err == nil && id <= 7; id += 2 {
			for name, read := range readers(id) {
				whole[fmt.Sprint(name, " of pair ", id)] = func() error { return read(l, directory) }
			}
		}
		for name, read := range whole {
			var newer *FormatError
			if err := read(); err != nil && !errors.As(err, &newer) && !errors.Is(err, ErrNotFound) {
				damaged++
				var damage *CorruptError
				if !errors.As(err, &damage) || damage.Law == "" {
					t.Errorf("byte %d: %s: %v, want a CorruptError", at, name, err)
				}
			}
		}
		if l != nil {
			_ = l.Close()
		}
	}
	if damaged < 100 {
		t.Errorf("only %d readers met damage", damaged)
	}
}

// TestSystemErrorsOfTheDisk: what the system says is wrong with the disk is told
// as that, with the path, and is no damage.
func TestSystemErrorsOfTheDisk(t *testing.T) {
	_, err := Create(filepath.Join(t.TempDir(), "missing", "flow.ledger"), testIdentity(), Options{})
	if !errors.Is(err, os.ErrNotExist) || !strings.Contains(err.Error(), "flow.ledger") {
		t.Errorf("no directory: %v", err)
	}
	if os.Geteuid() == 0 {
		return // may write anywhere
	}
	l := mustCreate(t)
	if err := errors.Join(l.Close(), os.Chmod(l.path, 0o400)); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(l.path, Options{}); !errors.Is(err, os.ErrPermission) || !strings.Contains(err.Error(), l.path) {
		t.Errorf("read only: %v", err)
	}
	if r, err := Open(l.path, Options{ReadOnly: true}); err != nil || r.Close() != nil {
		t.Errorf("read only, for reading: %v", err)
	}
}
