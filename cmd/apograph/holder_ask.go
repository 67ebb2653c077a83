package main

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"apograph/ledger"
	"apograph/replicate"
	"apograph/translate"
	"apograph/verify"
)

// A query is a question about a ledger in both of its forms: to the process
// that holds it, and to the file.
type query[T any] struct {
	holder func(*holder) (T, error)
	file   func() (T, error) // [*ledger.LockedError]: a process holds it after all
}

// askRounds is how often a question is asked again because the ledger changed
// hands meanwhile.
const askRounds = 3

// askFirst asks the process that holds the ledger at path, and the file where
// there is none. The error is a [*ledger.LockedError], or wraps one, if a
// process holds the ledger and does not answer.
func askFirst[T any](ctx context.Context, path string, q query[T]) (answer T, err error) {
	if _, err := os.Stat(path); err != nil {
		return answer, ledgerError(path, err)
	}
	for range askRounds {
		h, silence := findHolder(ctx, path)
		if h != nil {
			answer, err = q.holder(h)
			h.close()
			if !errors.Is(err, errHolderGone) {
				return answer, err
			}
		}
		var mismatch *protocolError
		if errors.As(silence, &mismatch) {
			return answer, mismatch
		}
		answer, err = q.file()
		var locked *ledger.LockedError
		switch {
		case !errors.As(err, &locked):
			return answer, err // a socket without the lock means nothing
		case silence != nil:
			return answer, &silentError{path: path, pid: locked.PID, why: silence.Error()}
		case !isHolderThere(ctx, path):
			return answer, locked
		}
	}
	return answer, err
}

// isHolderThere reports whether a process answers for a ledger by now, as it
// does some time after it has taken the lock.
func isHolderThere(ctx context.Context, path string) bool {
	h, err := findHolder(ctx, path)
	if h != nil {
		h.close()
	}
	return h != nil || err != nil
}

// readLedgerInfo returns what there is to say about the ledger at path.
func readLedgerInfo(ctx context.Context, path string) (ledgerInfo, error) {
	return askFirst(ctx, path, query[ledgerInfo]{
		holder: func(h *holder) (info ledgerInfo, err error) {
			err = h.get(ctx, pathLedger, &info)
			info.Path = path
			return info, err
		},
		file: func() (ledgerInfo, error) {
			l, err := openLedger(path)
			if err != nil {
				return ledgerInfo{}, err
			}
			info, err := ledgerInfoOf(path, l)
			return info, errors.Join(ledgerError(path, err), l.Close())
		},
	})
}

// readStatus returns where the partitions of a flow are.
func readStatus(ctx context.Context, path string) (flowStatus, error) {
	return askFirst(ctx, path, query[flowStatus]{
		holder: func(h *holder) (status flowStatus, err error) {
			err = h.get(ctx, pathStatus, &status)
			status.Report.Ledger.Path = path
			return status, err
		},
		file: func() (status flowStatus, err error) {
			l, err := openLedger(path)
			if err != nil {
				return status, err
			}
			info, err := ledgerInfoOf(path, l)
			all, failed := statusInFile(l)
			if err = errors.Join(ledgerError(path, err), failed); err == nil {
				status = newFlowStatus(stateStopped, info, l, all)
			}
			return status, errors.Join(err, l.Close())
		},
	})
}

// maxAskedOffsets is how many offsets a running copier is asked for at once;
// for more, a copy of the books is the better source.
const maxAskedOffsets = 20_000

// translateSheet answers the rows of a sheet by the ledger at path.
func translateSheet(ctx context.Context, path string, sheet *translate.Sheet, reverse bool) (ledgerRef, error) {
	return askFirst(ctx, path, query[ledgerRef]{
		holder: func(h *holder) (ledgerRef, error) {
			if sheet.Len() <= maxAskedOffsets {
				return askHolder(ctx, path, h, sheet, reverse)
			}
			return translateIn(ctx, path, func() (*ledger.Ledger, error) { return copyFromHolder(ctx, h) }, sheet, reverse)
		},
		file: func() (ledgerRef, error) {
			return translateIn(ctx, path, func() (*ledger.Ledger, error) { return openLedger(path) }, sheet, reverse)
		},
	})
}

// askHolder has the process that holds a ledger answer the rows of a sheet.
func askHolder(ctx context.Context, path string, h *holder, sheet *translate.Sheet, reverse bool) (ledgerRef, error) {
	queries := make([]translate.Query, sheet.Len())
	for i := range queries {
		queries[i] = sheet.Row(i).Query
	}
	var answer translateResponse
	if err := h.post(ctx, pathTranslate, translateRequest{queries, reverse}, &answer); err != nil {
		return ledgerRef{}, err
	}
	if len(answer.Answers) != len(queries) {
		return ledgerRef{}, h.known(fmt.Errorf("its answer has %d rows, not %d", len(answer.Answers), len(queries)))
	}
	for i := range answer.Answers {
		sheet.SetAnswer(i, &answer.Answers[i], reverse)
	}
	answer.Ledger.Path = path
	return answer.Ledger, nil
}

func translateIn(ctx context.Context, path string, open func() (*ledger.Ledger, error), sheet *translate.Sheet, reverse bool) (ledgerRef, error) {
	l, err := open()
	if err != nil {
		return ledgerRef{}, err
	}
	err = sheet.Translate(ctx, translate.NewIndex(l), reverse)
	return ledgerRefOf(path, l), errors.Join(err, l.Close())
}

// freshLedger opens a private copy of the ledger at path as its last commit
// left it. live says that a copier holds the ledger and its books go on.
// Closing the ledger removes the copy.
func freshLedger(ctx context.Context, path string) (l *ledger.Ledger, live bool, err error) {
	l, err = askFirst(ctx, path, query[*ledger.Ledger]{
		holder: func(h *holder) (*ledger.Ledger, error) {
			live = true
			return copyFromHolder(ctx, h)
		},
		file: func() (*ledger.Ledger, error) {
			live = false
			l, err := ledger.OpenCopy(path, ledger.Options{LockTimeout: lockWait})
			return l, ledgerError(path, err)
		},
	})
	return l, live, err
}

// standing returns what the process that holds the ledger at path has stopped, or
// what is paused; nothing where none answers.
func standing(ctx context.Context, path string) (all []verify.Standing) {
	h, err := findHolder(ctx, path)
	if h == nil || err != nil {
		return nil
	}
	defer h.close()
	var status flowStatus
	if h.get(ctx, pathStatus, &status) != nil {
		return nil
	}
	for i, p := range status.Report.Partitions {
		if p.State != replicate.StateStopped && p.State != replicate.StatePaused {
			continue
		}
		mark, err := json.Marshal([]any{p.State, p.Reason, p.Since, p.NextRetry, p.Position, p.TargetEnd})
		if err != nil {
			return nil
		}
		why := p.State + ", " + inWords(p.Reason)
		if p.State == replicate.StatePaused {
			why = p.State
		}
		if i < len(status.Details) && status.Details[i] != "" {
			why += ": " + status.Details[i]
		}
		all = append(all, verify.Standing{Topic: p.Topic, Partition: p.Partition, Why: why, Retry: p.NextRetry.Time, Mark: string(mark)})
	}
	return all
}

// copyFromHolder opens a snapshot that the holder of a ledger makes. Its file
// has no name any more, so that nothing is left behind however this process
// ends.
func copyFromHolder(ctx context.Context, h *holder) (l *ledger.Ledger, err error) {
	directory, err := os.MkdirTemp("", "apograph-ledger-")
	if err != nil {
		return nil, err
	}
	path := filepath.Join(directory, filepath.Base(h.path))
	if _, err = h.snapshot(ctx, path); err == nil {
		l, err = ledger.Open(path, ledger.Options{ReadOnly: true})
	}
	if gone := os.RemoveAll(directory); gone != nil && err == nil {
		err = errors.Join(gone, l.Close())
	}
	return l, ledgerError(h.path, err)
}

// snapshot writes a copy of the holder's ledger to a file that is not there yet,
// and returns its SHA-256.
func (h *holder) snapshot(ctx context.Context, path string) (sum [32]byte, err error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	stalled := time.AfterFunc(snapshotPatience, func() { cancel(context.DeadlineExceeded) })
	defer stalled.Stop()
	response, err := h.request(ctx, http.MethodGet, pathSnapshot, nil)
	if err != nil {
		return sum, h.known(err)
	}
	defer response.Body.Close()
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return sum, err
	}
	hash := sha256.New()
	own := &faithful{w: file}
	into := io.MultiWriter(own, hash, watchdog{stalled})
	_, err = io.Copy(into, response.Body)
	switch {
	case own.err != nil: // it is not the holder that fails
		err = own.err
	case err != nil:
		err = h.known(callError(ctx, err))
	default:
		err = file.Sync()
	}
	hash.Sum(sum[:0])
	if err = errors.Join(err, file.Close()); err != nil {
		return sum, err
	}
	if want := response.Header.Get(headerSHA256); fmt.Sprintf("%x", sum) != want {
		return sum, fmt.Errorf("the snapshot was damaged on its way: its SHA-256 is %x and not %s", sum, want)
	}
	return sum, nil
}

// A faithful writer keeps the error that it met.
type faithful struct {
	w   io.Writer
	err error
}

func (f *faithful) Write(p []byte) (n int, err error) {
	n, err = f.w.Write(p)
	f.err = err
	return n, err
}

// A watchdog gives time anew with every piece that is written to it.
type watchdog struct{ timer *time.Timer }

func (w watchdog) Write(p []byte) (int, error) {
	w.timer.Reset(snapshotPatience)
	return len(p), nil
}

// snapshotTo writes a copy of the ledger from to the path to, in place of what
// is there, and returns its SHA-256.
func snapshotTo(ctx context.Context, from, to string) (sum [32]byte, err error) {
	return askFirst(ctx, from, query[[32]byte]{
		holder: func(h *holder) ([32]byte, error) { return h.snapshotInPlace(ctx, to) },
		file:   func() ([32]byte, error) { return snapshotFile(ctx, from, to) },
	})
}

// snapshotInPlace writes a snapshot under another name first: to names a
// complete ledger or what it named before.
func (h *holder) snapshotInPlace(ctx context.Context, to string) (sum [32]byte, err error) {
	directory, err := os.MkdirTemp(filepath.Dir(to), filepath.Base(to)+".copy-")
	if err != nil {
		return sum, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(directory)) }()
	temporary := filepath.Join(directory, "snapshot")
	if sum, err = h.snapshot(ctx, temporary); err != nil {
		return sum, err
	}
	if err = os.Rename(temporary, to); err != nil {
		return sum, err
	}
	return sum, syncDirectory(filepath.Dir(to))
}

func syncDirectory(path string) error {
	directory, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(directory.Sync(), directory.Close())
}

// refuseHeld returns a [*ledger.LockedError] if a process answers for the ledger
// at path. Others find out by the lock.
func refuseHeld(ctx context.Context, path string) error {
	asking, cancel := context.WithTimeout(ctx, refusePatience)
	defer cancel()
	h, err := findHolder(asking, path)
	if h == nil {
		var mismatch *protocolError
		if errors.As(err, &mismatch) {
			return mismatch
		}
		return nil
	}
	h.close()
	return &ledger.LockedError{Path: path, PID: h.self.PID}
}
