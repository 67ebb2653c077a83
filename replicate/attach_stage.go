package replicate

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"

	"apograph/ledger"
)

// A stage collects books under other names and puts them in place when they are
// whole. A process that dies leaves files named FILE.new-*, which nobody reads.
type stage struct {
	path     string
	identity ledger.Identity
	options  ledger.Options
	base     *ledger.Ledger // to which the books are added; nil: a new ledger is made
	draft    *ledger.Ledger // may hold pairs that came to nothing
	cancel   context.CancelFunc
	commits  chan error // of the draft's commit loop
}

func newStage(path string, identity ledger.Identity, o ledger.Options, base *ledger.Ledger) (*stage, error) {
	if base != nil { // a link to the ledger stays one
		if real, err := filepath.EvalSymlinks(path); err == nil {
			path = real
		}
	}
	s := &stage{path: path, identity: identity, options: o, base: base, commits: make(chan error, 1)}
	draft, err := s.create()
	if err != nil {
		return nil, err
	}
	s.draft = draft
	ctx, cancel := context.WithCancel(context.Background())
	s.cancel = cancel
	go func() { s.commits <- draft.CommitLoop(ctx) }()
	return s, nil
}

// temporary returns a name that nobody has.
func (s *stage) temporary() (string, error) {
	digits := make([]byte, 8)
	_, err := rand.Read(digits)
	return s.path + ".new-" + hex.EncodeToString(digits), err
}

// create makes a ledger under a name that nobody has.
func (s *stage) create() (*ledger.Ledger, error) {
	path, err := s.temporary()
	if err != nil {
		return nil, err
	}
	l, err := ledger.Create(path, s.identity, s.options)
	return l, s.named(err)
}

// begin makes the ledger that is to be put in place: a copy of the one to which
// the books are added, so that this one gets all of them or none.
func (s *stage) begin() (*ledger.Ledger, error) {
	if s.base == nil {
		return s.create()
	}
	path, err := s.temporary()
	if err != nil {
		return nil, err
	}
	if _, err := s.base.Snapshot(context.Background(), path); err != nil {
		return nil, err
	}
	l, err := ledger.Open(path, s.options)
	if err != nil {
		return nil, errors.Join(err, removeIfThere(path))
	}
	return l, nil
}

// named returns an error of a file's with the name that the file is to have.
func (s *stage) named(err error) error {
	var at *fs.PathError
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("create ledger %s: there is no directory %s: %w", s.path, filepath.Dir(s.path), fs.ErrNotExist)
	case errors.As(err, &at):
		return fmt.Errorf("create ledger %s: %w", s.path, at.Err)
	}
	return err
}

// settle ends the draft's commits; all that was appended is in its file.
func (s *stage) settle() error {
	if s.cancel == nil {
		return nil
	}
	s.cancel()
	s.cancel = nil
	return <-s.commits
}

// drop gives up what is not in place.
func (s *stage) drop() {
	_ = s.settle()
	discardLedger(s.draft)
}

func discardLedger(l *ledger.Ledger) {
	_ = l.Close()
	_ = os.Remove(l.Path())
}

// finish writes the pairs that are kept into the ledger, with what prepare adds
// first and complete last, and puts it in place.
func (s *stage) finish(kept []ledger.PairID, prepare func(l *ledger.Ledger) error, complete func(l *ledger.Ledger, from, to []ledger.PairID) error) error {
	if err := s.settle(); err != nil {
		return err
	}
	l, err := s.begin()
	if err != nil {
		return err
	}
	defer func() {
		if l != nil {
			discardLedger(l)
		}
	}()
	if err := prepare(l); err != nil {
		return err
	}
	ids, err := s.copyPairs(l, kept)
	if err != nil {
		return err
	}
	if err := errors.Join(complete(l, kept, ids), l.Commit()); err != nil {
		return err
	}
	path := l.Path()
	err = l.Close()
	l = nil
	switch {
	case err != nil:
	case s.base == nil:
		err = putInPlace(path, s.path)
	default:
		err = s.replace(path)
	}
	return errors.Join(err, removeIfThere(path))
}

// replace puts a file in the place of the ledger that it is a copy of, whose lock is
// held meanwhile: who waits for it opens the new file (see [ledger.Open]).
func (s *stage) replace(from string) error {
	info, err := os.Stat(s.path)
	if err == nil {
		err = os.Chmod(from, info.Mode().Perm())
	}
	if err != nil {
		return fmt.Errorf("put the ledger in place: %w", err)
	}
	if runtime.GOOS == "windows" { // where a file in use cannot be replaced
		if err := s.base.Close(); err != nil {
			return err
		}
	}
	if err := os.Rename(from, s.path); err != nil {
		return fmt.Errorf("put the ledger in place: %w", err)
	}
	return syncDirectoryOf(s.path)
}

// copyPairs opens the pairs in another ledger, with all their entries.
func (s *stage) copyPairs(l *ledger.Ledger, kept []ledger.PairID) ([]ledger.PairID, error) {
	pairs := make([]ledger.Pair, len(kept))
	for i, id := range kept {
		p, _ := s.draft.Pair(id)
		p.Producer = s.draft.Producers(id)[0]
		p.ID, p.Generation, p.OpenedMillis, p.Closed = 0, 0, 0, nil
		pairs[i] = p
	}
	ids, err := l.OpenPairs(pairs)
	for i := 0; i < len(kept) && err == nil; i++ {
		err = s.copyPair(l, kept[i], ids[i])
	}
	return ids, err
}

// copyEntries is how many entries are written in one commit.
const copyEntries = 4096

func (s *stage) copyPair(l *ledger.Ledger, from, to ledger.PairID) error {
	producers := s.draft.Producers(from)[1:]
	queued := 0
	for e, err := range s.draft.Entries(from, 0) {
		if err != nil {
			return err
		}
		if e.Tile == ledger.BeforeStart {
			continue // written with the opening
		}
		for len(producers) > 0 && producers[0].Appended <= l.End(to).Appended {
			if err := l.SetProducer(to, producers[0]); err != nil {
				return err
			}
			producers = producers[1:]
		}
		if err := l.Append(to, e); err != nil {
			return err
		}
		if queued++; queued%copyEntries == 0 {
			if err := l.Commit(); err != nil {
				return err
			}
		}
	}
	for _, p := range producers {
		if err := l.SetProducer(to, p); err != nil {
			return err
		}
	}
	return l.Commit()
}

// putInPlace gives a whole file its final name, unless that is taken, durably.
func putInPlace(from, to string) error {
	err := os.Link(from, to)
	if err != nil && !errors.Is(err, fs.ErrExist) { // a file system without hard links
		if _, statErr := os.Lstat(to); statErr == nil {
			return fmt.Errorf("put the ledger in place: %w", ledger.ErrExist)
		}
		err = os.Rename(from, to)
	}
	if err != nil {
		return fmt.Errorf("put the ledger in place: %w", err)
	}
	return syncDirectoryOf(to)
}

// syncDirectoryOf makes a new name durable. Windows has no such call.
func syncDirectoryOf(path string) error {
	if runtime.GOOS == "windows" {
		return nil
	}
	d, err := os.Open(filepath.Dir(path))
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

func removeIfThere(path string) error {
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}
