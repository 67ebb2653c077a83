//go:build !windows && !plan9 && !solaris && !aix && !android

package ledger

import (
	"errors"
	"os"
	"syscall"
	"time"
)

// lockRetry is how long to wait between attempts: flock has no time limit of
// its own.
const lockRetry = 50 * time.Millisecond

// lockFile takes the lock that bbolt takes as well (flock, on the same open
// file), shared or exclusive, so that the file can be inspected before bbolt
// touches it. It tries for the given time, once at least, and reports false if
// another instance kept the lock.
func lockFile(f *os.File, exclusive bool, timeout time.Duration) (bool, error) {
	how := syscall.LOCK_SH | syscall.LOCK_NB
	if exclusive {
		how = syscall.LOCK_EX | syscall.LOCK_NB
	}
	deadline := time.NewTimer(timeout)
	defer deadline.Stop()
	retry := time.NewTicker(lockRetry)
	defer retry.Stop()
	for {
		err := syscall.Flock(int(f.Fd()), how)
		if err == nil {
			return true, nil
		}
		if !errors.Is(err, syscall.EWOULDBLOCK) && !errors.Is(err, syscall.EINTR) {
			return false, &os.PathError{Op: "lock", Path: f.Name(), Err: err}
		}
		select {
		case <-retry.C:
		case <-deadline.C:
			return false, nil
		}
	}
}
