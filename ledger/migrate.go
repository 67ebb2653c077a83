package ledger

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"go.etcd.io/bbolt"
)

// A Migration says what [Migrate] did.
type Migration struct {
	From, To int // formats; they may be the same
	Values   int // in the new file
	Bytes    int64
}

// migrateBytes is how much one transaction of a migration writes, about.
const migrateBytes = 4 << 20

// Migrate writes what a ledger file holds into a new file in the current
// format: the same ledger, by its id, its books, its journal and its last
// commit. The file that it is made from is not changed. It is checked first, and
// the new one at the end, so that this takes about as long as checking it twice.
// A file in the current format is copied all the same: without its free pages.
//
// The file from is locked for others that would write to it while it is read.
// The new one is made beside to and linked there when it is whole; a file that
// is there is never replaced: that is ErrExist, or a [*NotAFileError] for what is
// no file. Memory is bounded by the size of a commit. Other errors are those of [Open], a [*CorruptError] for the first
// law that is broken, and that of a context that has ended.
func Migrate(ctx context.Context, from, to string, o Options) (m Migration, err error) {
	o.ReadOnly = true
	if err := refuseTaken(to); err != nil {
		return m, fmt.Errorf("migrate ledger %s to %s: %w", from, to, err)
	}
	temporary, err := temporaryName(to, "new")
	if err != nil {
		return m, err
	}
	m, err = migrateTo(ctx, from, temporary, o)
	if err == nil {
		err = moveNew(temporary, to)
	}
	if gone := os.Remove(temporary); gone != nil && !errors.Is(gone, fs.ErrNotExist) {
		err = errors.Join(err, gone)
	}
	if err != nil {
		return Migration{}, fmt.Errorf("migrate ledger %s to %s: %w", from, to, err)
	}
	return m, nil
}

// migrateTo makes the file to, and checks it.
func migrateTo(ctx context.Context, from, to string, o Options) (m Migration, err error) {
	l, err := Open(from, o)
	if err != nil {
		return m, err
	}
	m = Migration{From: l.Identity().Format, To: format}
	err = l.mustBeSound(ctx)
	if err == nil {
		m.Values, err = l.rewrite(ctx, to)
	}
	if err := errors.Join(err, l.Close()); err != nil {
		return m, err
	}
	made, err := Open(to, Options{ReadOnly: true})
	if err != nil {
		return m, err
	}
	_, m.Bytes, err = made.Usage()
	return m, errors.Join(err, made.mustBeSound(ctx), made.Close())
}

// mustBeSound returns the first violation of a law as a [*CorruptError].
func (l *Ledger) mustBeSound(ctx context.Context) error {
	var first *CorruptError
	err := l.Check(ctx, func(v Violation) {
		if first == nil {
			first = &CorruptError{Path: l.path, Bucket: v.Bucket, Key: v.Key, Law: v.Law, Detail: v.Detail}
		}
	})
	if err == nil && first != nil {
		return first
	}
	return err
}

// rewrite copies all values into a new file, whose format is the current one.
func (l *Ledger) rewrite(ctx context.Context, to string) (values int, err error) {
	err = guard(func() error {
		db, err := bbolt.Open(to, 0o644, &bbolt.Options{PageSize: fileBlock, FreelistType: bbolt.FreelistMapType})
		if err != nil {
			return err
		}
		db.AllocSize = allocStep
		r := &rewriter{ctx: ctx, db: db}
		err = l.view(r.rewrite)
		if r.tx != nil {
			err = errors.Join(err, r.tx.Rollback())
		}
		values = r.values
		return errors.Join(err, db.Close())
	})
	return values, err
}

// A rewriter puts values into a new file, in transactions of a bounded size.
type rewriter struct {
	ctx    context.Context
	db     *bbolt.DB
	tx     *bbolt.Tx // nil: none is under way
	size   int       // bytes in it
	values int
}

// rewrite copies the values of t. None is changed, but the format: they mean
// the same in each format that this version knows.
func (r *rewriter) rewrite(t *tree) error {
	got, err := t.format("")
	if err != nil {
		return err
	}
	err = r.db.Update(func(tx *bbolt.Tx) error { return createBuckets(tx, bucketNames(format)) })
	if err != nil {
		return err
	}
	for _, bucket := range bucketNames(got) {
		if err := r.bucket(t, bucket); err != nil {
			return err
		}
	}
	if got < formatFlow {
		if err := r.put(bucketMeta, []byte(metaBooks), flowCountsValue(flowCounts{})); err != nil {
			return err
		}
	}
	if got < formatMarks {
		if err := r.put(bucketMeta, []byte(metaMarks), markCountsValue(markCounts{})); err != nil {
			return err
		}
	}
	if got < formatGroups {
		if err := r.put(bucketMeta, []byte(metaGroups), groupsCountValue(0)); err != nil {
			return err
		}
	}
	return r.commit()
}

func (r *rewriter) bucket(t *tree, bucket string) error {
	return t.walk(t.buckets[bucket], nil, func(e elem) (bool, error) {
		_, err := payloadOf(bucket, e)
		value := e.value
		if bucket == bucketMeta && string(e.key) == metaFormat {
			value = formatValue()
		}
		if err == nil {
			err = r.put(bucket, e.key, value)
		}
		return err == nil, err
	})
}

func (r *rewriter) put(bucket string, key, value []byte) (err error) {
	if r.tx == nil {
		if r.tx, err = r.db.Begin(true); err != nil {
			return err
		}
	}
	if err := put(r.tx, bucket, key, value); err != nil {
		return err
	}
	r.values++
	if r.size += len(key) + len(value); r.size < migrateBytes {
		return nil
	}
	return r.commit()
}

// commit ends the transaction that is under way, and the work where the context
// has ended.
func (r *rewriter) commit() error {
	if r.ctx.Err() != nil {
		return context.Cause(r.ctx)
	}
	tx := r.tx
	r.tx, r.size = nil, 0
	if tx == nil {
		return nil
	}
	return tx.Commit()
}
