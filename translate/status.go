package translate

import "fmt"

// A Status says how much an answer is worth.
type Status uint8

const (
	// Unknown: there is no book, its generation is closed, or the offset lies below
	// it where an earlier generation ends before it, or on the target behind it.
	// There is no answer.
	Unknown Status = iota

	// Exact: the answer is the first copied record at or after the offset.
	Exact

	// End: no record at or after the offset is copied, and the books account
	// for everything up to the offset. The answer is the end of the other book.
	// It is as good as Exact.
	End

	// BeyondCopied: the books do not reach the offset. The answer is the end of
	// the other book, and Distance is how many offsets are not accounted for.
	BeyondCopied

	// BeforeStart: the offset is below the start of the book's scope. The
	// answer is the first copied record, and Distance is how far the offset is
	// below the start.
	BeforeStart

	// Lost: the offset lies in a lost or unexplained range. The answer is the
	// first copied record after it, or the end of the other book; Distance is
	// how many lost or unexplained offsets it skips.
	Lost

	// BelowTargetStart: the target's retention has removed the record that was
	// the answer. Only [CheckTarget] gives it. The answer is the target's log
	// start offset, and Distance is how far that is above the removed one.
	BelowTargetStart
)

var statusNames = [...]string{
	Unknown:      "unknown",
	Exact:        "exact",
	End:          "end",
	BeyondCopied: "beyond_copied",
	BeforeStart:  "before_start",
	Lost:         "lost",

	BelowTargetStart: "below_target_start",
}

// String returns the status's name in reports.
func (s Status) String() string {
	if int(s) < len(statusNames) {
		return statusNames[s]
	}
	return fmt.Sprintf("status(%d)", uint8(s))
}

// IsExact reports whether a consumer can go on at the answer without missing
// or repeating anything: whether s is Exact or End.
func (s Status) IsExact() bool { return s == Exact || s == End }
