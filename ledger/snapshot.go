package ledger

import (
	"bufio"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"go.etcd.io/bbolt"
)

// Snapshot writes a copy of the ledger as the last commit left it to path, and
// returns its SHA-256. Commits go on meanwhile. The copy is made beside path
// and renamed: path names a complete ledger or what it named before.
//
// The file grows while a snapshot is made, as nothing that is replaced
// meanwhile can be used again: write to a local file, and stream from there. A
// snapshot over the ledger itself is refused: later commits would go into a file
// without a name. So is one over what is no file, with a [*NotAFileError].
func (l *Ledger) Snapshot(ctx context.Context, path string) (sum [32]byte, err error) {
	if err := l.refuseTarget(path); err != nil {
		return sum, err
	}
	temporary, err := temporaryName(path, "copy")
	if err != nil {
		return sum, err
	}
	sum, err = l.copyTo(ctx, temporary, 0o644)
	if err == nil {
		err = os.Rename(temporary, path)
	}
	if err == nil {
		err = syncDirectory(filepath.Dir(path))
	}
	if err != nil {
		if gone := os.Remove(temporary); gone != nil && !errors.Is(gone, fs.ErrNotExist) {
			err = errors.Join(err, gone)
		}
		return [32]byte{}, fmt.Errorf("snapshot of ledger %s to %s: %w", l.path, path, err)
	}
	return sum, nil
}

// refuseTarget returns why nothing may be renamed to a path.
func (l *Ledger) refuseTarget(path string) error {
	there, err := os.Stat(path)
	if err != nil {
		return nil // what is wrong with the path, creating the file will tell
	}
	if err := refuseNonFile(path); err != nil {
		return fmt.Errorf("snapshot of ledger %s to %s: %w", l.path, path, err)
	}
	if own, err := l.file.Stat(); err == nil && os.SameFile(own, there) {
		return fmt.Errorf("snapshot of ledger %s to %s: is the ledger itself", l.path, path)
	}
	return nil
}

// copyTo writes a copy to a file that must not be there yet.
func (l *Ledger) copyTo(ctx context.Context, path string, mode os.FileMode) (sum [32]byte, err error) {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return sum, err
	}
	hash := sha256.New()
	buffer := bufio.NewWriterSize(io.MultiWriter(f, hash), 1<<20)
	err = l.viewLast(func(tx *bbolt.Tx, _ metaPage) error {
		return guard(func() error {
			_, err := tx.WriteTo(&interruptible{ctx, buffer})
			return err
		})
	})
	switch {
	case ctx.Err() != nil:
		err = context.Cause(ctx) // bbolt keeps no more than its text
	case errors.Is(err, io.EOF):
		err = metaError(0, "speaks of pages that lie behind the end of the file")
	}
	if err == nil {
		err = buffer.Flush()
	}
	if err == nil {
		err = f.Sync()
	}
	hash.Sum(sum[:0])
	return sum, errors.Join(l.located(err), f.Close())
}

// An interruptible writer fails when its context has ended.
type interruptible struct {
	ctx context.Context
	w   io.Writer
}

func (w *interruptible) Write(b []byte) (int, error) {
	if w.ctx.Err() != nil {
		return 0, w.ctx.Err()
	}
	return w.w.Write(b)
}

// SnapshotFile is [Ledger.Snapshot] of a file that nobody holds for writing;
// else the error is a [*LockedError]. It holds the shared lock meanwhile.
func SnapshotFile(ctx context.Context, from, to string) (sum [32]byte, err error) {
	l, err := Open(from, Options{ReadOnly: true})
	if err != nil {
		return sum, err
	}
	sum, err = l.Snapshot(ctx, to)
	return sum, errors.Join(err, l.Close())
}

// OpenCopy opens a private copy of a ledger file for reading. The file itself
// is locked only while it is copied. The copy is in the directory for temporary
// files, without a name, and cannot be the origin of a [Ledger.Snapshot]; after
// Close it is gone. Errors are those of [Open], or say that there
// is no room for the copy; these are never fs.ErrNotExist.
func OpenCopy(path string, o Options) (*Ledger, error) {
	o.ReadOnly = true
	original, err := Open(path, o)
	if err != nil {
		return nil, err
	}
	directory, err := os.MkdirTemp("", "apograph-ledger-")
	if err != nil {
		// The text alone: a missing directory is not a missing ledger.
		return nil, errors.Join(fmt.Errorf("copy ledger %s to the directory for temporary files: %v", path, err), original.Close())
	}
	private := filepath.Join(directory, filepath.Base(path))
	_, err = original.copyTo(context.Background(), private, 0o600)
	if err := errors.Join(err, original.Close()); err != nil {
		return nil, errors.Join(fmt.Errorf("copy ledger %s: %w", path, err), os.RemoveAll(directory))
	}
	l, err := Open(private, o)
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(directory))
	}
	l.path = path
	// Without a name nothing is left behind, however this process ends. Where
	// open files must keep theirs, Close removes it.
	if os.RemoveAll(directory) != nil {
		l.cleanup = func() error { return os.RemoveAll(directory) }
	}
	return l, nil
}
