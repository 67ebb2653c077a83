//go:build windows || plan9 || solaris || aix || android

package ledger

import (
	"os"
	"time"
)

// lockFile leaves the lock to bbolt, which takes it after the file was
// inspected. A writer that is at work meanwhile may then look like damage,
// which is reported and touches nothing.
func lockFile(*os.File, bool, time.Duration) (bool, error) { return true, nil }
