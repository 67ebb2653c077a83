//go:build unix

package ledger

import (
	"errors"
	"fmt"
	"runtime"
	"testing"
	"testing/synctest"
	"time"
)

// childHold holds a ledger until somebody kills it.
func childHold(path string) error {
	l, err := Open(path, Options{})
	if err != nil {
		return err
	}
	fmt.Println("holding")
	<-time.After(time.Hour)
	return l.Close()
}

// TestLockedByAnotherProcess: nobody else opens a ledger that is open for
// writing, and the error names the process.
func TestLockedByAnotherProcess(t *testing.T) {
	l := mustCreate(t)
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	c, out := startChild(t, "hold", l.path)
	if !out.Scan() {
		t.Fatal("the child did not open the ledger")
	}
	for name, open := range map[string]func() (*Ledger, error){
		"for writing": func() (*Ledger, error) { return Open(l.path, Options{LockTimeout: -1}) },
		"for reading": func() (*Ledger, error) {
			return Open(l.path, Options{LockTimeout: 60 * time.Millisecond, ReadOnly: true})
		},
		"a copy": func() (*Ledger, error) { return OpenCopy(l.path, Options{LockTimeout: -1}) },
	} {
		_, err := open()
		var locked *LockedError
		if !errors.As(err, &locked) || locked.Path != l.path {
			t.Errorf("%s: %v, want a LockedError", name, err)
			continue
		}
		if runtime.GOOS == "linux" && locked.PID != c.Process.Pid {
			t.Errorf("%s: held by process %d, want %d", name, locked.PID, c.Process.Pid)
		}
	}
	if _, err := Create(l.path, testIdentity(), Options{}); !errors.Is(err, ErrExist) {
		t.Errorf("Create of a ledger in use: %v", err)
	}
	if err := c.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = c.Wait()
	again := mustOpen(t, l.path) // a lock dies with its process
	if err := again.Close(); err != nil {
		t.Error(err)
	}
}

// TestLockWaits: a lock that is given back in time is no error. The time is not
// real.
func TestLockWaits(t *testing.T) {
	l := mustCreate(t)
	synctest.Test(t, func(t *testing.T) {
		opened := make(chan error)
		go func() {
			again, err := Open(l.path, Options{LockTimeout: time.Minute, ReadOnly: true})
			if err == nil {
				err = again.Close()
			}
			opened <- err
		}()
		start := time.Now()
		select {
		case err := <-opened:
			t.Errorf("the ledger is opened while it is in use: %v", err)
			return
		case <-time.After(59 * time.Second):
		}
		if err := l.Close(); err != nil {
			t.Error(err)
		}
		if err := <-opened; err != nil || time.Since(start) > time.Minute {
			t.Errorf("after %v: %v", time.Since(start), err)
		}
	})
}
