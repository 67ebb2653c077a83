package ledger

import (
	"errors"
	"fmt"

	"go.etcd.io/bbolt"
	berrors "go.etcd.io/bbolt/errors"
)

// transact writes the commit, and decides after an error whether the file can
// be used any more.
func (l *Ledger) transact(c *commit) error {
	var tx *bbolt.Tx
	var txid uint64
	err := guard(func() (err error) {
		if err := l.inPlace(); err != nil {
			return err
		}
		if tx, err = l.begin(true); err != nil {
			return err
		}
		txid = uint64(tx.ID())
		if err := c.write(tx); err != nil {
			return err
		}
		return tx.Commit()
	})
	if err == nil {
		l.txid = txid
		return nil
	}
	err = l.located(err)
	abandoned := tx != nil && !rollback(tx) || l.isAbandoned()
	if abandoned || l.uncertain(err, txid) {
		_ = l.breakFor(err, abandoned)
	}
	return err
}

func mustReopen(path string, err error) error {
	return fmt.Errorf("ledger %s: must be opened again after: %w", path, err)
}

// rollback ends a transaction that may have ended already. It reports false if
// bbolt panics in it, and so may never give back its locks.
func rollback(tx *bbolt.Tx) bool {
	err := guard(tx.Rollback)
	return err == nil || errors.Is(err, berrors.ErrTxClosed)
}

// uncertain reports whether the transaction may be in the file in spite of its
// error, or the file may be bad. It is neither as long as both meta pages are
// whole and of earlier transactions: then nothing in the file points to what
// the transaction wrote, and another one writes all of its pages anew.
func (l *Ledger) uncertain(err error, txid uint64) bool {
	var damage *CorruptError
	if errors.As(err, &damage) {
		return true
	}
	info, err := l.file.Stat()
	if err != nil {
		return true
	}
	metas, err := readMetas(l.file, info.Size())
	return err != nil || newest(metas).txid >= txid
}

// write puts the commit into the transaction.
func (c *commit) write(tx *bbolt.Tx) error {
	if err := c.lift(tx); err != nil {
		return err
	}
	for _, ch := range c.changes {
		if err := ch.write(tx, c.number); err != nil {
			return err
		}
	}
	if err := c.writeJournal(tx); err != nil {
		return err
	}
	if c.scope != nil {
		if err := put(tx, bucketMeta, []byte(metaScope), scopeValue(c.scope)); err != nil {
			return err
		}
	}
	if err := c.writeFlow(tx); err != nil {
		return err
	}
	if err := c.writeMarks(tx); err != nil {
		return err
	}
	if err := c.writeGroups(tx); err != nil {
		return err
	}
	return put(tx, bucketMeta, []byte(metaCommit), commitValue(c.commitRecord))
}

// put stores a sealed value. Buckets grow at the ends of the pairs' keys, so
// that a page that splits leaves a full one behind.
func put(tx *bbolt.Tx, bucket string, key, value []byte) error {
	b := tx.Bucket([]byte(bucket))
	b.FillPercent = 1
	return b.Put(key, value)
}

func (ch *change) write(tx *bbolt.Tx, number uint64) error {
	key := pairKey(ch.pair.ID)
	if ch.record != nil {
		if err := put(tx, bucketPairs, key, pairValue(key, ch.record)); err != nil {
			return err
		}
	}
	if !ch.fold && !ch.opened {
		return nil
	}
	s := stateRecord{end: ch.start, State: ch.pair.stored}
	if ch.fold {
		if err := ch.writePages(tx); err != nil {
			return err
		}
		s.folded, s.end = number, ch.pages[len(ch.pages)-1].end
		if ch.state != nil {
			s.State = *ch.state
		}
	}
	return put(tx, bucketState, key, stateValue(key, &s))
}

// writePages writes the pages that have entries which the file's do not.
func (ch *change) writePages(tx *bbolt.Tx) error {
	for _, p := range ch.pages {
		if p.saved == p.count {
			continue
		}
		key := pageKey(ch.pair.ID, p.start)
		if err := put(tx, bucketPages, key, p.value(key)); err != nil {
			return err
		}
		if p.saved > 0 {
			continue
		}
		key = targetKey(ch.pair.ID, p.start)
		if err := put(tx, bucketTargets, key, seal(bucketTargets, key, newValue(0))); err != nil {
			return err
		}
	}
	return nil
}

func (c *commit) writeJournal(tx *bbolt.Tx) error {
	b := tx.Bucket([]byte(bucketJournal))
	for _, number := range c.needless {
		if err := b.Delete(journalKey(number)); err != nil {
			return err
		}
	}
	var sections []section
	for _, ch := range c.changes {
		if ch.journaled() {
			sections = append(sections, section{id: ch.pair.ID, start: ch.start, entries: ch.entries, state: ch.state})
		}
	}
	if len(sections) == 0 {
		return nil
	}
	key := journalKey(c.number)
	value := appendJournal(newValue(64*len(sections)), c.time, sections)
	return put(tx, bucketJournal, key, seal(bucketJournal, key, value))
}
