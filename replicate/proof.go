//go:build !unproven

package replicate

// The product proves what it copies: batches are decompressed, their records
// hashed, and what was appended is booked. Builds that do not, for benchmarks that
// show what it costs, have other values: see unproven.go.
const (
	decompressed = true
	proven       = true
)
