package ledger

import (
	"errors"
	"fmt"
	"io/fs"
)

// Errors to branch on with errors.Is.
var (
	// ErrNotFound: an offset outside the committed book, or an unknown pair.
	ErrNotFound = errors.New("not in the ledger")

	// ErrExist: Create found a file at the path. errors.Is(err, fs.ErrExist)
	// holds as well.
	ErrExist = fmt.Errorf("ledger already exists: %w", fs.ErrExist)

	// ErrPairClosed: the pair's generation has ended.
	ErrPairClosed = errors.New("pair is closed")

	// ErrPairOpen: the source or target partition has an open pair already.
	ErrPairOpen = errors.New("partition has an open pair")

	// ErrReadOnly: the ledger is open for reading only.
	ErrReadOnly = errors.New("ledger is open for reading only")

	// ErrClosed: the ledger has been closed.
	ErrClosed = errors.New("ledger is closed")
)

// A LockedError says that another instance holds the file.
type LockedError struct {
	Path string
	PID  int // process that holds the lock; 0 unknown
}

func (e *LockedError) Error() string {
	if e.PID == 0 {
		return fmt.Sprintf("ledger %s is in use by another instance", e.Path)
	}
	return fmt.Sprintf("ledger %s is in use by process %d", e.Path, e.PID)
}

// A NotAFileError says that a path names something that is there and can be no
// ledger, as it is no regular file. It was neither opened nor changed: opening a
// named pipe would wait until somebody writes into it.
type NotAFileError struct {
	Path string
	Mode fs.FileMode // type and permissions, links followed
}

func (e *NotAFileError) Error() string {
	kind := "something else"
	for _, k := range []struct {
		bit  fs.FileMode
		name string
	}{
		{fs.ModeDir, "a directory"}, {fs.ModeNamedPipe, "a named pipe"}, {fs.ModeSocket, "a socket"}, {fs.ModeDevice, "a device"},
	} {
		if e.Mode&k.bit != 0 {
			kind = k.name
		}
	}
	return fmt.Sprintf("ledger %s is %s, not a file", e.Path, kind)
}

// A CorruptError says that the file fails an integrity check. Nothing was
// written to it.
type CorruptError struct {
	Path   string
	Bucket string // "" where the fault is below the buckets
	Key    string // as FORMAT.md writes keys, or the page or place
	Law    string // name of the law that is broken, as FORMAT.md lists them
	Detail string
}

func (e *CorruptError) Error() string {
	return fmt.Sprintf("ledger %s is damaged: %s", e.Path, violationText(e.Bucket, e.Key, e.Law, e.Detail))
}

// A FormatError says that the file was written in a format that this version
// does not know.
type FormatError struct {
	Path  string
	Got   int
	Known int // the newest one that it knows
}

func (e *FormatError) Error() string {
	return fmt.Sprintf("ledger %s has format %d; this version knows formats up to %d", e.Path, e.Got, e.Known)
}

// A DiscontinuityError reports an entry that does not start where both books of
// the pair end. It is never transient: the caller's idea of its position is
// wrong, and booking the entry would make the ledger lie.
type DiscontinuityError struct {
	Pair                   PairID
	SourceTopic            string
	Partition              int32
	WantSource, WantTarget int64 // where both books end, with what is queued
	GotSource, GotTarget   int64 // where the refused entry starts
}

func (e *DiscontinuityError) Error() string {
	return fmt.Sprintf("ledger: %s-%d: entry starts at source offset %d and target offset %d, the books end at %d and %d",
		e.SourceTopic, e.Partition, e.GotSource, e.GotTarget, e.WantSource, e.WantTarget)
}

// A LawError says that what a caller wants to write breaks a law of the books,
// or that what was read from a file does. FORMAT.md lists the laws.
type LawError struct {
	Law    string
	Detail string
}

func (e *LawError) Error() string {
	return fmt.Sprintf("ledger: law %s: %s", e.Law, e.Detail)
}

// A Violation is one finding of [Ledger.Check].
type Violation struct {
	Bucket string
	Key    string
	Law    string
	Detail string
}

// String returns the violation in one line.
func (v Violation) String() string { return violationText(v.Bucket, v.Key, v.Law, v.Detail) }

func violationText(bucket, key, law, detail string) string {
	if bucket == "" {
		bucket = "file"
	}
	return fmt.Sprintf("%s %s: law %s: %s", bucket, key, law, detail)
}
