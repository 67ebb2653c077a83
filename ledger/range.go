package ledger

import "fmt"

// A Range is a run of offsets [Start, End): Start is inside, End is not.
type Range struct{ Start, End int64 }

// Len returns the number of offsets in r.
func (r Range) Len() int64 { return r.End - r.Start }

// Empty reports whether r holds no offset.
func (r Range) Empty() bool { return r.End <= r.Start }

// Contains reports whether offset lies in r.
func (r Range) Contains(offset int64) bool { return r.Start <= offset && offset < r.End }

// String returns r as "[Start, End)".
func (r Range) String() string { return fmt.Sprintf("[%d, %d)", r.Start, r.End) }

// valid reports whether r is a range of offsets, which may be empty.
func (r Range) valid() bool { return 0 <= r.Start && r.Start <= r.End }
