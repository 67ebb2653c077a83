//go:build unproven && !decompressed

package replicate

// A benchmark's build, which proves nothing and must not be used to copy: a batch
// that passes as it is is sent unread, and the ledger keeps no books.
const (
	decompressed = false
	proven       = false
)
