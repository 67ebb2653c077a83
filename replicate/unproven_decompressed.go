//go:build unproven && decompressed

package replicate

// As in unproven.go, but batches are decompressed all the same: to tell what of a
// proof's price that is.
const (
	decompressed = true
	proven       = false
)
