//go:build unix

package ledger

import (
	"fmt"
	"os"
	"slices"
	"syscall"
	"testing"
)

// childLimit lets a commit fail because the file may not grow, and then
// succeed when it may.
func childLimit(path string) error {
	l, err := Open(path, Options{})
	if err != nil {
		return err
	}
	id := l.Pairs()[0].ID
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	if err := limitFiles(uint64(info.Size())); err != nil {
		return err
	}
	for range 100_000 {
		if err := l.Append(id, sourceEntry(Lost, l.End(id), 1)); err != nil {
			return err
		}
	}
	before, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	if err := l.Commit(); err == nil {
		return fmt.Errorf("a commit of %d entries fits into a file of %d bytes", 100_000, info.Size())
	}
	after, err := os.ReadFile(path)
	if err != nil || !slices.Equal(before, after) {
		return fmt.Errorf("a commit that failed changed the file (%v)", err)
	}
	if err := limitFiles(1 << 40); err != nil {
		return err
	}
	if err := l.Commit(); err != nil {
		return fmt.Errorf("with room again: %w", err)
	}
	return l.Close()
}

func limitFiles(size uint64) error {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_FSIZE, &limit); err != nil {
		return err
	}
	limit.Cur = min(size, limit.Max)
	return syscall.Setrlimit(syscall.RLIMIT_FSIZE, &limit)
}

// TestFileLimit is TestFullDisk with errors of the operating system.
func TestFileLimit(t *testing.T) {
	l := mustCreate(t)
	id := mustOpenPair(t, l, 0, 0)
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	c, out := startChild(t, "limit", l.path)
	for out.Scan() {
		t.Log(out.Text())
	}
	if err := c.Wait(); err != nil {
		t.Fatal(err)
	}
	again := mustOpen(t, l.path)
	if got := again.Committed(id).Source; got != 100_000 {
		t.Errorf("the books end at %d, want 100000", got)
	}
}
