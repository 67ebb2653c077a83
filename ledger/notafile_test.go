//go:build unix

package ledger

import (
	"errors"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"testing"
	"time"
)

// nonFiles makes one of each thing that is no regular file, and symbolic links
// to them, and returns their paths with their types.
func nonFiles(t *testing.T) map[string]fs.FileMode {
	t.Helper()
	directory := t.TempDir()
	path := func(name string) string { return filepath.Join(directory, name) }
	listener, err := net.ListenUnix("unix", &net.UnixAddr{Name: path("socket")})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { listener.Close() })
	if err := errors.Join(syscall.Mkfifo(path("pipe"), 0o600), os.Mkdir(path("directory"), 0o700), os.Symlink(os.DevNull, path("device"))); err != nil {
		t.Fatal(err)
	}
	all := map[string]fs.FileMode{
		path("socket"): fs.ModeSocket, path("pipe"): fs.ModeNamedPipe, path("directory"): fs.ModeDir, path("device"): fs.ModeDevice | fs.ModeCharDevice,
	}
	for _, name := range []string{"socket", "pipe", "directory"} {
		if err := os.Symlink(name, path(name+"-link")); err != nil {
			t.Fatal(err)
		}
		all[path(name+"-link")] = all[path(name)]
	}
	return all
}

// TestNotAFile: what is no file is refused at once, in every way in which a path
// is given, and stays as it is. Nobody writes into the pipe, so that opening it
// would never end.
func TestNotAFile(t *testing.T) {
	good := copyOf(t, filepath.Join(fixtures, "good.ledger"))
	l := mustOpen(t, copyOf(t, good))
	free := filepath.Join(t.TempDir(), "free.ledger")
	for path, kind := range nonFiles(t) {
		opens := map[string]func() error{
			"Open": func() error { _, err := Open(path, Options{}); return err },
			"Open for reading": func() error {
				_, err := Open(path, Options{ReadOnly: true})
				return err
			},
			"OpenCopy":  func() error { _, err := OpenCopy(path, Options{}); return err },
			"CheckFile": func() error { return CheckFile(t.Context(), path, Options{}, func(v Violation) { t.Error(v) }) },
			"Create":    func() error { _, err := Create(path, testIdentity(), Options{}); return err },
			"Snapshot":  func() error { _, err := l.Snapshot(t.Context(), path); return err },
			"SnapshotFile to": func() error {
				_, err := SnapshotFile(t.Context(), good, path)
				return err
			},
			"SnapshotFile from": func() error { _, err := SnapshotFile(t.Context(), path, free); return err },
			"Migrate to":        func() error { _, err := Migrate(t.Context(), good, path, Options{}); return err },
			"Migrate from":      func() error { _, err := Migrate(t.Context(), path, free, Options{}); return err },
		}
		for name, open := range opens {
			mustRefuseNonFile(t, name, path, kind, open)
		}
		if info, err := os.Stat(path); err != nil || info.Mode().Type() != kind {
			t.Errorf("%s is now %v, %v", path, info, err)
		}
		mustHoldNothingNew(t, filepath.Dir(path))
	}
	mustHold(t, filepath.Dir(free))
}

func mustRefuseNonFile(t *testing.T, name, path string, kind fs.FileMode, open func() error) {
	t.Helper()
	done := make(chan error, 1)
	go func() { done <- open() }()
	select {
	case err := <-done:
		var refused *NotAFileError
		if !errors.As(err, &refused) || refused.Path != path || refused.Mode.Type() != kind || refused.Error() == "" {
			t.Errorf("%s of %s: %v", name, filepath.Base(path), err)
		}
	case <-time.After(20 * time.Second):
		t.Fatalf("%s of %s waits", name, filepath.Base(path))
	}
}

func mustHoldNothingNew(t *testing.T, directory string) {
	t.Helper()
	mustHold(t, directory, "device", "directory", "directory-link", "pipe", "pipe-link", "socket", "socket-link")
	entries, err := os.ReadDir(filepath.Join(directory, "directory"))
	if err != nil || len(entries) > 0 {
		t.Errorf("the directory holds %v, %v", entries, err)
	}
}

// TestNotAFileTexts: a person is told what is there.
func TestNotAFileTexts(t *testing.T) {
	for mode, want := range map[fs.FileMode]string{
		fs.ModeDir | 0o700:                  "ledger x is a directory, not a file",
		fs.ModeNamedPipe:                    "ledger x is a named pipe, not a file",
		fs.ModeSocket:                       "ledger x is a socket, not a file",
		fs.ModeDevice | fs.ModeCharDevice:   "ledger x is a device, not a file",
		fs.ModeIrregular | fs.ModeTemporary: "ledger x is something else, not a file",
	} {
		if got := (&NotAFileError{"x", mode}).Error(); got != want {
			t.Errorf("%v: %q, want %q", mode, got, want)
		}
	}
}

// TestLinkedFile: a symbolic link to a ledger is as good as the ledger.
func TestLinkedFile(t *testing.T) {
	path := copyOf(t, filepath.Join(fixtures, "good.ledger"))
	link := filepath.Join(t.TempDir(), "link.ledger")
	if err := os.Symlink(path, link); err != nil {
		t.Fatal(err)
	}
	mustCheckFile(t, link)
	l := mustOpen(t, link)
	mustAppend(t, l, 3, copiedEntry(l.End(3), 4))
	mustCommit(t, l)
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	copied, err := OpenCopy(link, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := copied.Close(); err != nil {
		t.Error(err)
	}
	if _, err := Create(link, testIdentity(), Options{}); !errors.Is(err, ErrExist) {
		t.Errorf("Create over a link: %v", err)
	}
	dangling := filepath.Join(t.TempDir(), "dangling.ledger")
	if err := os.Symlink(path+"-gone", dangling); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(dangling, Options{}); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("Open of a link to nothing: %v", err)
	}
	if _, err := Create(dangling, testIdentity(), Options{}); !errors.Is(err, ErrExist) {
		t.Errorf("Create over a link to nothing: %v", err)
	}
	before := mustReadFile(t, path)
	if _, err := SnapshotFile(t.Context(), link, dangling); err != nil {
		t.Fatal(err)
	}
	mustCheckFile(t, dangling)
	if !slices.Equal(before, mustReadFile(t, path)) {
		t.Error("a snapshot changed the ledger")
	}
}
