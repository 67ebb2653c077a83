package ledger

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"

	"go.etcd.io/bbolt"
)

// Check reads the whole file as the last commit left it, and calls report with
// everything that breaks a law, of those that FORMAT.md lists: nil and no call
// means that the file keeps them all. Below a broken page structure values are
// not looked at, as anything might be found there.
//
// The error is that of the reading itself: ctx has ended, the ledger is closed,
// or the disk does not answer. Commits go on meanwhile; Close waits, so report
// must not call it.
func (l *Ledger) Check(ctx context.Context, report func(Violation)) error {
	sound := false
	err := l.viewLast(func(_ *bbolt.Tx, m metaPage) error {
		t, err := openTree(l.file, l.pageSize, m.pages, m.root)
		if err != nil {
			return err
		}
		damaged := false
		err = checkStructure(t, m.freelist, func(c *CorruptError) {
			damaged = true
			report(c.violation())
		})
		if err != nil || damaged {
			return err
		}
		sound = true
		c := &checker{ctx: ctx, path: l.path, tree: t, report: report, pairs: make(map[PairID]*checkedPair)}
		return c.run()
	})
	if err := reportDamage(err, report); err != nil {
		return err
	}
	if !sound || !l.readOnly {
		return nil
	}
	return l.checkBbolt(report)
}

// CheckFile is [Ledger.Check] of a file that nobody holds for writing. It finds
// more than the first fault also where [Open] refuses the file. Other errors are
// those of Open, but a [*CorruptError] is always reported instead.
func CheckFile(ctx context.Context, path string, o Options, report func(Violation)) error {
	o.ReadOnly = true
	l := newLedger(path, o.withDefaults())
	if err := l.openFile(o.withDefaults()); err != nil {
		return reportDamage(fmt.Errorf("check ledger: %w", l.located(err)), report)
	}
	return errors.Join(l.Check(ctx, report), l.Close())
}

// reportDamage reports a [*CorruptError] and returns nil, and returns any other
// error.
func reportDamage(err error, report func(Violation)) error {
	var damage *CorruptError
	if errors.As(err, &damage) {
		report(damage.violation())
		return nil
	}
	return err
}

func (e *CorruptError) violation() Violation {
	return Violation{Bucket: e.Bucket, Key: e.Key, Law: e.Law, Detail: e.Detail}
}

// checkBbolt lets bbolt check its own pages, as a second opinion. It looks into
// the list of free pages in memory, which a writer changes: so it is for
// ledgers that are open for reading. It is never called on a file whose
// structure is broken, in which it could fault outside of any guard.
func (l *Ledger) checkBbolt(report func(Violation)) error {
	return l.viewTx(func(tx *bbolt.Tx) error {
		for err := range tx.Check() {
			report(Violation{Key: "pages", Law: lawBbolt, Detail: err.Error()})
		}
		return nil
	})
}

// A checker goes through the buckets of a file and knows what it has seen.
type checker struct {
	ctx    context.Context
	path   string
	tree   *tree
	report func(Violation)

	format int // of the file
	commit commitRecord
	books  flowCounts
	marks  markCounts
	groups int // values that the last commit left
	pairs  map[PairID]*checkedPair
}

// A checkedPair is a pair as far as it has been checked.
type checkedPair struct {
	pairRecord
	marked
	state    stateRecord
	hasState bool

	end    place
	totals Totals

	// unread: a value before could not be read, and the next one starts who
	// knows where. That is one fault, not two.
	unread bool
}

// inOrder returns the pairs in order of their ids, so that findings are in the
// same order each time.
func (c *checker) inOrder() iter.Seq2[PairID, *checkedPair] {
	return func(yield func(PairID, *checkedPair) bool) {
		for _, id := range slices.Sorted(maps.Keys(c.pairs)) {
			if !yield(id, c.pairs[id]) {
				return
			}
		}
	}
}

func (c *checker) violation(bucket, key, law, format string, args ...any) {
	c.report(Violation{Bucket: bucket, Key: key, Law: law, Detail: fmt.Sprintf(format, args...)})
}

// run goes through the buckets in an order in which each needs only those
// before it. Nothing is known of a file of another format, or without all
// buckets.
func (c *checker) run() error {
	var err error
	if c.format, err = c.tree.format(c.path); err != nil {
		return err
	}
	if err := c.tree.checkBuckets(c.format); err != nil {
		return err
	}
	steps := []func() error{c.buckets, c.meta, c.openings, c.states, c.readMarks, c.pages, c.folded, c.targets, c.journal, c.ends, c.flow, c.checkGroups}
	for _, step := range steps {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

// values calls visit with every value of a bucket that is what was written
// there. Damage is reported, and the walk goes on.
func (c *checker) values(bucket string, visit func(key, payload []byte) error) (count int, err error) {
	err = c.tree.walk(c.tree.buckets[bucket], nil, func(e elem) (bool, error) {
		count++
		payload, err := payloadOf(bucket, e)
		if err == nil {
			err = visit(e.key, payload)
		}
		err = c.reported(bucket, e.key, err)
		return err == nil, err
	})
	return count, c.reported(bucket, nil, err)
}

// reported reports damage and returns nil, and returns any other error. It also
// ends the check when its context has ended.
func (c *checker) reported(bucket string, key []byte, err error) error {
	if c.ctx.Err() != nil {
		return context.Cause(c.ctx)
	}
	var damage *CorruptError
	if errors.As(damageIn(bucket, key, err), &damage) {
		if id, _, _, ok := parsePlaceKey(key); ok && bucket == bucketPages && c.pairs[id] != nil {
			c.pairs[id].unread = true
		}
		c.violation(cmp.Or(damage.Bucket, bucket), damage.Key, damage.Law, "%s", damage.Detail)
		return nil
	}
	return err
}

func (c *checker) buckets() error {
	for _, name := range slices.Sorted(maps.Keys(c.tree.buckets)) {
		if !slices.Contains(bucketNames(c.format), name) {
			c.violation(name, "bucket", lawBuckets, "is not one of a ledger")
		}
	}
	return nil
}

func (c *checker) meta() error {
	seen := 0
	_, err := c.values(bucketMeta, func(key, payload []byte) (err error) {
		if !slices.Contains(metaKeys(c.format), string(key)) {
			return unknownKey(bucketMeta, key)
		}
		seen++
		switch string(key) {
		case metaFormat: // checked first of all
		case metaIdentity:
			_, err = decodeIdentity(payload)
		case metaScope:
			_, err = decodeScope(payload)
		case metaCommit:
			c.commit, err = decodeCommit(payload)
		case metaBooks:
			c.books, err = decodeFlowCounts(payload)
		case metaMarks:
			c.marks, err = decodeMarkCounts(payload)
		case metaGroups:
			c.groups, err = decodeGroupsCount(payload)
		}
		return err
	})
	if keys := metaKeys(c.format); seen < len(keys) && err == nil {
		c.violation(bucketMeta, "bucket", lawKeys, "%d of the keys %q can be read", seen, keys)
	}
	return err
}
