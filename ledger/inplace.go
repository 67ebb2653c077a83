package ledger

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"
)

// lookDelay is how long nobody may look whether the file is still the one at its
// path, while [Ledger.CommitLoop] runs.
const lookDelay = 2 * time.Second

// inPlace returns a [*CorruptError] unless the file that is open for writing is
// still the one at the ledger's path, no shorter than it was, and of the last
// transaction: what is written into any other nobody finds again. The caller holds l.commitMu.
func (l *Ledger) inPlace() error {
	opened, err := l.file.Stat()
	if err != nil {
		return err
	}
	if opened.Size() < l.size {
		return outOfPlace(l.path, "the file was cut while it was in use")
	}
	l.size = opened.Size()
	metas, err := readMetas(l.file, l.size)
	if err != nil {
		return l.located(err)
	}
	if m := newest(metas); m.txid != l.txid {
		return outOfPlace(l.path, fmt.Sprintf("the file is of transaction %d now, the last one was %d", m.txid, l.txid))
	}
	// A path that cannot be looked at says nothing about the file that is open.
	named, err := os.Stat(l.path)
	if errors.Is(err, fs.ErrNotExist) || err == nil && !os.SameFile(opened, named) {
		return outOfPlace(l.path, "the file was deleted or replaced while it was in use")
	}
	return nil
}

func outOfPlace(path, detail string) error {
	return &CorruptError{Path: path, Key: "path", Law: lawInPlace, Detail: detail}
}

// look is what [Ledger.CommitLoop] does from time to time: it breaks the ledger,
// as a commit would, where the file is no more in place.
func (l *Ledger) look() error {
	l.commitMu.Lock()
	defer l.commitMu.Unlock()
	l.mu.RLock()
	err := l.usable()
	l.mu.RUnlock()
	if err != nil {
		return err
	}
	if err = l.inPlace(); err != nil {
		return l.breakFor(err, false)
	}
	return nil
}

// breakFor makes an error stay, and returns it: the ledger must be opened again.
func (l *Ledger) breakFor(err error, abandoned bool) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.broken, l.abandoned = mustReopen(l.path, err), abandoned
	return l.broken
}
