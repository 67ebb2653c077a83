package ledger

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"time"
	"unicode/utf8"

	"go.etcd.io/bbolt"
)

// Create makes a ledger file without pairs, of the current format, and opens it
// for writing.
//
// The file is made whole under another name in the same directory and then
// linked to path: whenever the process dies, path names a complete ledger or
// nothing. What it may leave behind are files named path with ".new-" and
// random digits, which nobody reads. A file that is there already is never
// replaced: that is ErrExist, or a
// [*NotAFileError] for what is no file.
func Create(path string, id Identity, o Options) (*Ledger, error) {
	o = o.withDefaults()
	if o.ReadOnly {
		return nil, fmt.Errorf("create ledger %s: %w", path, ErrReadOnly)
	}
	if err := completeIdentity(&id, o.Now()); err != nil {
		return nil, fmt.Errorf("create ledger %s: %w", path, err)
	}
	// Looked up first, for the common case; the link below is what decides.
	if err := refuseTaken(path); err != nil {
		return nil, fmt.Errorf("create ledger %s: %w", path, err)
	}
	if err := createFile(path, &id, o.Now()); err != nil {
		return nil, fmt.Errorf("create ledger %s: %w", path, err)
	}
	return Open(path, o)
}

// completeIdentity fills in what the caller left out.
func completeIdentity(id *Identity, now time.Time) error {
	for _, s := range []string{id.LedgerID, id.SourceAlias, id.TargetAlias, id.SourceClusterID, id.TargetClusterID} {
		if len(s) > maxText || !utf8.ValidString(s) {
			return fmt.Errorf("identity: %.40q has more than %d bytes or is not UTF-8", s, maxText)
		}
	}
	if id.CreatedMillis == 0 {
		id.CreatedMillis = now.UnixMilli()
	}
	if id.LedgerID != "" {
		return nil
	}
	var err error
	id.LedgerID, err = randomHex(16)
	return err
}

func randomHex(n int) (string, error) {
	b := make([]byte, n)
	_, err := rand.Read(b)
	return hex.EncodeToString(b), err
}

func createFile(path string, id *Identity, now time.Time) error {
	temporary, err := temporaryName(path, "new")
	if err != nil {
		return err
	}
	err = writeEmpty(temporary, id, now)
	if err == nil {
		err = moveNew(temporary, path)
	}
	if err := os.Remove(temporary); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return err
}

// temporaryName returns a name beside path that nobody has.
func temporaryName(path, purpose string) (string, error) {
	digits, err := randomHex(8)
	return path + "." + purpose + "-" + digits, err
}

// writeEmpty makes a ledger file without pairs, on the disk when it returns.
func writeEmpty(path string, id *Identity, now time.Time) error {
	return guard(func() error {
		// Pages of one size everywhere: it decides how pages of the ledger
		// fill them.
		db, err := bbolt.Open(path, 0o644, &bbolt.Options{PageSize: fileBlock, FreelistType: bbolt.FreelistMapType})
		if err != nil {
			return err
		}
		db.AllocSize = allocStep
		err = db.Update(func(tx *bbolt.Tx) error { return writeBuckets(tx, id, now) })
		return errors.Join(err, db.Close())
	})
}

func writeBuckets(tx *bbolt.Tx, id *Identity, now time.Time) error {
	if err := createBuckets(tx, bucketNames(format)); err != nil {
		return err
	}
	values := map[string][]byte{
		metaFormat:   formatValue(),
		metaIdentity: identityValue(id),
		metaScope:    scopeValue(&Scope{}),
		metaCommit:   commitValue(commitRecord{time: now.UnixMilli()}),
		metaBooks:    flowCountsValue(flowCounts{}),
		metaMarks:    markCountsValue(markCounts{}),
		metaGroups:   groupsCountValue(0),
	}
	for key, value := range values {
		if err := put(tx, bucketMeta, []byte(key), value); err != nil {
			return err
		}
	}
	return nil
}

func createBuckets(tx *bbolt.Tx, names []string) error {
	for _, name := range names {
		if _, err := tx.CreateBucket([]byte(name)); err != nil {
			return err
		}
	}
	return nil
}

// moveNew gives a file its final name unless that is taken, durably.
func moveNew(from, to string) error {
	err := os.Link(from, to)
	if errors.Is(err, fs.ErrExist) {
		return ErrExist
	}
	if err != nil {
		err = moveWithoutLink(from, to, err)
	}
	if err != nil {
		return err
	}
	return syncDirectory(filepath.Dir(to))
}

// moveWithoutLink is for file systems that have no hard links. Between looking
// and renaming somebody else may make the file: that one is then replaced,
// before anything was written to it that matters, as both are new.
func moveWithoutLink(from, to string, linkErr error) error {
	if _, err := os.Lstat(to); err == nil {
		return ErrExist
	} else if !errors.Is(err, fs.ErrNotExist) {
		return errors.Join(linkErr, err)
	}
	return os.Rename(from, to)
}

// syncDirectory makes a new name in a directory durable. Windows has no such
// call, and needs none.
func syncDirectory(path string) error {
	if runtime.GOOS == "windows" {
		return nil
	}
	d, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
