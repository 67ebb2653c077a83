package ledger

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"time"

	"go.etcd.io/bbolt"
	berrors "go.etcd.io/bbolt/errors"
)

// DefaultLockTimeout is how long Open waits for the file lock by default.
const DefaultLockTimeout = 5 * time.Second

// Options says how a ledger is opened. The zero value opens it for writing.
type Options struct {
	// ReadOnly takes a shared lock and writes nothing. Nobody can open the file
	// for writing meanwhile: hold it for as short as possible, or use
	// [OpenCopy].
	ReadOnly bool

	// LockTimeout is how long to wait for the file lock. 0 means
	// [DefaultLockTimeout], a negative value not to wait.
	LockTimeout time.Duration

	// Now is the clock for the times that are stored. Nil means time.Now.
	Now func() time.Time
}

func (o Options) withDefaults() Options {
	if o.LockTimeout == 0 {
		o.LockTimeout = DefaultLockTimeout
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	return o
}

// initialMap is how much of the address space the file is mapped into when it
// is opened for writing. Mapping it anew, when it outgrows the map, would have
// to wait for every reader, and let no new one in: so the map is larger than
// any ledger should be. It takes no memory.
const initialMap int64 = 16 << 30

// allocStep is by how many bytes the file grows at a time.
const allocStep = 1 << 20

func mapSize(o Options) int {
	// bbolt makes the file itself as large as the map on Windows.
	if o.ReadOnly || runtime.GOOS == "windows" || strconv.IntSize < 64 {
		return 0
	}
	size := initialMap
	return int(size)
}

// Open opens a ledger file. It does not make one: see [Create].
//
// For writing, all pages of the file are visited first, so that bbolt never
// writes into a file whose pages are in disorder; this takes about as long as
// reading the file. For reading, only what the ledger keeps in memory is read.
//
// The error is fs.ErrNotExist if there is no file, a [*NotAFileError] for a
// directory, a named pipe or a device, which it does not open, a [*LockedError]
// if another instance holds the file, a [*FormatError] or a [*CorruptError], or
// that of a failed read. The file is unchanged after an error.
func Open(path string, o Options) (*Ledger, error) {
	o = o.withDefaults()
	l := newLedger(path, o)
	if err := l.openFile(o); err != nil {
		return nil, fmt.Errorf("open ledger: %w", l.located(err))
	}
	if err := l.view(l.load); err != nil {
		return nil, errors.Join(fmt.Errorf("open ledger: %w", err), l.Close())
	}
	return l, nil
}

func newLedger(path string, o Options) *Ledger {
	return &Ledger{
		path:     path,
		readOnly: o.ReadOnly,
		now:      o.Now,
		due:      make(chan struct{}, 1),
		full:     make(chan struct{}, 1),
		pairs:    make(map[PairID]*pair),
		flow:     newFlowBooks(),
		groups:   make(map[string][]byte),
	}
}

// openFile locks and inspects the file and then lets bbolt have it.
func (l *Ledger) openFile(o Options) error {
	options := &bbolt.Options{
		Timeout:         max(o.LockTimeout, time.Millisecond),
		FreelistType:    bbolt.FreelistMapType,
		ReadOnly:        o.ReadOnly,
		InitialMmapSize: mapSize(o),
		// Without O_CREATE, which bbolt asks for: a file that went away is not
		// made again, and empty.
		OpenFile: func(path string, flag int, mode os.FileMode) (*os.File, error) {
			var err error
			l.file, err = openLocked(path, flag&^os.O_CREATE, mode, o)
			if err == nil {
				err = l.inspect()
			}
			return l.file, err
		},
	}
	err := guard(func() (err error) {
		l.db, err = bbolt.Open(l.path, 0, options)
		return err
	})
	if err == nil {
		l.db.AllocSize = allocStep
		return nil
	}
	if l.file != nil {
		_ = l.file.Close() // bbolt has done so, unless the hook failed or bbolt panicked
	}
	if errors.Is(err, berrors.ErrTimeout) {
		return &LockedError{Path: l.path, PID: lockHolder(l.path)}
	}
	return err
}

// openLocked opens a file and locks it. A file that was replaced while waiting
// for the lock is opened again.
func openLocked(path string, flag int, mode os.FileMode, o Options) (*os.File, error) {
	const tries = 10
	for range tries {
		f, err := openRegular(path, flag, mode)
		if err != nil {
			return nil, err
		}
		same, err := lockAndCompare(f, path, o)
		if err == nil && same {
			return f, nil
		}
		if err := errors.Join(err, f.Close()); err != nil {
			return nil, err
		}
	}
	return nil, fmt.Errorf("ledger %s: was replaced by another file %d times while it was opened", path, tries)
}

// openRegular opens a file, and nothing else. It looks at the path first, since
// opening alone can wait for ever, and at what it has opened, which may be
// another one by then.
func openRegular(path string, flag int, mode os.FileMode) (*os.File, error) {
	if err := refuseNonFile(path); err != nil {
		return nil, err
	}
	f, err := os.OpenFile(path, flag, mode)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = &NotAFileError{Path: path, Mode: info.Mode()}
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// refuseNonFile returns a [*NotAFileError] if there is something else than a
// regular file at a path. What else is wrong with it, opening it will tell.
func refuseNonFile(path string) error {
	if info, err := os.Stat(path); err == nil && !info.Mode().IsRegular() {
		return &NotAFileError{Path: path, Mode: info.Mode()}
	}
	return nil
}

// refuseTaken returns an error if there is something at a path: ErrExist, or a
// [*NotAFileError].
func refuseTaken(path string) error {
	if _, err := os.Lstat(path); err != nil {
		return nil // what is wrong with the path, creating the file will tell
	}
	if err := refuseNonFile(path); err != nil {
		return err
	}
	return ErrExist
}

// lockAndCompare locks f, and reports whether path still names it.
func lockAndCompare(f *os.File, path string, o Options) (same bool, err error) {
	locked, err := lockFile(f, !o.ReadOnly, o.LockTimeout)
	if err != nil {
		return false, err
	}
	if !locked {
		return false, &LockedError{Path: path, PID: lockHolder(path)}
	}
	opened, err := f.Stat()
	if err != nil {
		return false, err
	}
	named, err := os.Stat(path)
	return err == nil && os.SameFile(opened, named), err
}

// inspect looks at the file before bbolt does.
func (l *Ledger) inspect() error {
	info, err := l.file.Stat()
	if err != nil {
		return err
	}
	metas, err := readMetas(l.file, info.Size())
	if err != nil {
		return err
	}
	m := newest(metas)
	l.pageSize, l.size, l.txid = m.pageSize, info.Size(), m.txid
	if l.readOnly {
		return nil
	}
	t, err := openTree(l.file, m.pageSize, m.pages, m.root)
	if err != nil {
		return err
	}
	// Another format may keep its pages as it likes.
	var unknown *FormatError
	if _, err := t.format(l.path); errors.As(err, &unknown) {
		return err
	}
	var first *CorruptError
	err = checkStructure(t, m.freelist, func(c *CorruptError) {
		if first == nil {
			first = c
		}
	})
	if first != nil {
		return first
	}
	return err
}
