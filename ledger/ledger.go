package ledger

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"os"
	"runtime/debug"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"go.etcd.io/bbolt"
	berrors "go.etcd.io/bbolt/errors"
)

// A Ledger is one open ledger file.
//
// All methods may be called by many goroutines at once. Appending and reading
// wait for no disk write: a commit takes what is queued, writes it, and only
// then shows it to readers.
type Ledger struct {
	path     string
	readOnly bool
	now      func() time.Time
	cleanup  func() error // after closing; removes a private copy

	db       *bbolt.DB
	file     *os.File // the one that bbolt reads and writes, and closes
	pageSize int
	trees    atomic.Pointer[treeOf] // of the last transaction that was looked at

	// views is held while a file that is open for reading only is read: Close
	// waits for that.
	views sync.RWMutex

	due  chan struct{} // something has been queued for long enough; for CommitLoop
	full chan struct{} // so much is queued that it should not wait

	// commitMu is held by whoever writes to the file, from looking at what is
	// queued to showing what was committed. It is taken before mu, never after.
	commitMu sync.Mutex
	size     int64  // of the file when it was looked at last; guarded by commitMu
	txid     uint64 // bbolt's number of the last transaction in it; guarded by commitMu

	// beginMu is held while a transaction of bbolt begins, or one that reads
	// ends: bbolt takes locks there that it does not give back when it panics.
	beginMu sync.Mutex
	writer  writer // guarded by commitMu

	mu        sync.RWMutex
	identity  Identity // only its format changes
	flow      flowBooks
	marks     markCounts        // of values in the file
	groups    map[string][]byte // payloads in the file, by group; never changed
	pairs     map[PairID]*pair
	last      commitRecord
	scope     Scope
	followers []*Follower
	queue     []*pair     // pairs with something to commit
	queued    int         // bytes of memory that the queues take, about
	timer     *time.Timer // makes the queue due; nil while it is empty
	broken    error       // sticky: the file may be bad
	closed    bool
	abandoned bool // bbolt may hold its locks for ever after a panic
}

// A pair is everything that a Ledger holds about one pair. All of it is
// guarded by Ledger.mu, but what the writer owns.
type pair struct {
	pairRecord

	// pages are the committed pages from the last one in the file on: at least
	// one, which may be empty. Slice and pages are replaced, never changed.
	pages []*page
	state State

	previous PairID // the generation before, of the same source partition; 0: none

	doubts      []Doubt      // committed or not; replaced, never changed
	accepted    []acceptance // committed; replaced, never changed
	acceptedBad int64        // offsets of them in bad tiles

	queue    []Entry // joined, to be committed
	end      place   // behind the queue
	appended int64   // records of ours up to end
	scopeEnd int64   // end of the before_start tiles up to end
	listed   bool    // in Ledger.queue
	changed  bool    // the record has to be written
	doubted  bool    // the doubts have to be written
	closing  bool    // ClosePair is at work: nothing more is appended

	// Written with Ledger.commitMu and Ledger.mu held, so that either is enough
	// to read them. The same holds for pages and accepted.
	unfolded  uint64 // first commit that is only in the journal; 0: none
	folded    uint64 // last commit that folded the pair
	foldedEnd place  // end of its pages in the file
	stored    State  // state in the file

	storedDoubts []Doubt // in the file

	planned *change // by the commit under way; guarded by Ledger.commitMu
}

// Identity returns what the ledger says about itself. The format is that of the
// file, which becomes the current one when something is written that an earlier
// one has no room for.
func (l *Ledger) Identity() Identity {
	l.mu.RLock()
	defer l.mu.RUnlock()
	return l.identity
}

// Path returns the path that the ledger was opened by. For a private copy this
// is the path of the original.
func (l *Ledger) Path() string { return l.path }

// Scope returns what the flow was last started with, by [Ledger.SetScope].
func (l *Ledger) Scope() Scope {
	l.mu.RLock()
	defer l.mu.RUnlock()
	return l.scope.clone()
}

func (s Scope) clone() Scope {
	return Scope{Topics: slices.Clone(s.Topics), TopicsExclude: slices.Clone(s.TopicsExclude)}
}

func (s Scope) equal(t Scope) bool {
	return slices.Equal(s.Topics, t.Topics) && slices.Equal(s.TopicsExclude, t.TopicsExclude)
}

// CommitTime returns when the last commit that the file holds was made, by the
// clock of the process that made it. The creation of the ledger is one.
func (l *Ledger) CommitTime() time.Time {
	l.mu.RLock()
	defer l.mu.RUnlock()
	return time.UnixMilli(l.last.time)
}

// Pairs returns all pairs, in order of source topic, partition and generation.
func (l *Ledger) Pairs() []Pair {
	l.mu.RLock()
	defer l.mu.RUnlock()
	pairs := make([]Pair, 0, len(l.pairs))
	for p := range maps.Values(l.pairs) {
		pairs = append(pairs, p.copy())
	}
	slices.SortFunc(pairs, func(a, b Pair) int {
		return cmp.Or(cmp.Compare(a.SourceTopic, b.SourceTopic), cmp.Compare(a.Partition, b.Partition),
			cmp.Compare(a.Generation, b.Generation), cmp.Compare(a.ID, b.ID))
	})
	return pairs
}

// copy returns the pair as callers may have it.
func (p *pair) copy() Pair {
	c := p.Pair
	c.ScopeStart = max(c.ScopeStart, p.tail().after.Tiles[BeforeStart])
	if c.Closed != nil {
		closed := c.Closed.clone()
		c.Closed = &closed
	}
	return c
}

// Pair returns the pair with the given id, and false if there is none.
func (l *Ledger) Pair(id PairID) (Pair, bool) {
	l.mu.RLock()
	defer l.mu.RUnlock()
	p, ok := l.pairs[id]
	if !ok {
		return Pair{}, false
	}
	return p.copy(), true
}

// Previous returns the generation before that of a pair, of the same source
// partition; false if there is none. It costs no more than a look at memory.
func (l *Ledger) Previous(id PairID) (Pair, bool) {
	l.mu.RLock()
	defer l.mu.RUnlock()
	p, ok := l.pairs[id]
	if !ok {
		return Pair{}, false
	}
	before, ok := l.pairs[p.previous]
	if !ok {
		return Pair{}, false
	}
	return before.copy(), true
}

// Producers returns all producers of a pair in the order of their use, the
// first from its opening; nil for an unknown pair.
func (l *Ledger) Producers(id PairID) []Producer {
	l.mu.RLock()
	defer l.mu.RUnlock()
	if p, ok := l.pairs[id]; ok {
		return slices.Clone(p.producers)
	}
	return nil
}

// End returns the ends of both books of a pair with everything that is queued:
// where the next entry must start. It is zero for an unknown pair.
func (l *Ledger) End(id PairID) Position {
	l.mu.RLock()
	defer l.mu.RUnlock()
	p, ok := l.pairs[id]
	if !ok {
		return Position{}
	}
	return Position{Source: p.end.source, Target: p.end.target, Appended: p.appended}
}

// Committed returns the ends of both books of a pair as they are in the file:
// what no crash can take away. It is zero for an unknown pair.
func (l *Ledger) Committed(id PairID) Position {
	l.mu.RLock()
	defer l.mu.RUnlock()
	p, ok := l.pairs[id]
	if !ok {
		return Position{}
	}
	tail := p.tail()
	return Position{Source: tail.end.source, Target: tail.end.target, Appended: tail.after.appended()}
}

// Totals returns what the committed entries of a pair sum up to; zero for an
// unknown pair. It costs no more than a look at memory.
func (l *Ledger) Totals(id PairID) Totals {
	l.mu.RLock()
	defer l.mu.RUnlock()
	p, ok := l.pairs[id]
	if !ok {
		return Totals{}
	}
	return p.tail().after
}

// State returns the latest state of a pair, committed or not. Everything in it
// is unknown for an unknown pair.
func (l *Ledger) State(id PairID) State {
	l.mu.RLock()
	defer l.mu.RUnlock()
	p, ok := l.pairs[id]
	if !ok {
		return unknownState()
	}
	return p.state
}

// Usage returns the size of the file, and how much of it is in use: all but
// the pages that are free, and those that were never used. It waits for a commit
// that is under way.
//
// The error is a [*CorruptError] where the list of free pages is damaged, ErrClosed,
// or that of a failed read.
func (l *Ledger) Usage() (fileBytes, inUseBytes int64, err error) {
	err = l.viewLast(func(_ *bbolt.Tx, m metaPage) error {
		info, err := l.file.Stat()
		if err != nil {
			return err
		}
		t := &tree{file: l.file, pageSize: l.pageSize, pages: m.pages}
		free, _, err := t.freePages(m.freelist)
		fileBytes, inUseBytes = info.Size(), int64(t.pages-uint64(len(free)))*int64(t.pageSize)
		return err
	})
	if err != nil {
		return 0, 0, err
	}
	return fileBytes, inUseBytes, nil
}

// tail returns the last committed page.
func (p *pair) tail() *page { return p.pages[len(p.pages)-1] }

// appended returns how many records of ours are on the target.
func (t *Totals) appended() int64 { return t.Tiles[Copied] + t.Tiles[Orphan] }

// Close gives the file back. What is queued and not committed is dropped, as in
// a crash: the target holds it, and the next start finds it there. Close waits
// for a commit or a read that is under way.
func (l *Ledger) Close() error {
	l.commitMu.Lock()
	defer l.commitMu.Unlock()
	l.mu.Lock()
	closed := l.closed
	l.closed = true
	l.stopTimer()
	l.mu.Unlock()
	if closed {
		return nil
	}
	l.views.Lock()
	defer l.views.Unlock()
	var err error
	if l.isAbandoned() {
		// bbolt's Close would wait for locks that nobody gives back. Closing
		// the file gives back the one that others see.
		err = l.file.Close()
	} else {
		err = guard(l.db.Close)
	}
	if l.cleanup != nil {
		err = errors.Join(err, l.cleanup())
	}
	return l.located(err)
}

// stopTimer is called, with l.mu held, when the queue is empty or given up.
func (l *Ledger) stopTimer() {
	if l.timer != nil {
		l.timer.Stop()
		l.timer = nil
	}
}

// guard calls fn, which uses bbolt, and turns a panic of bbolt, or a fault in
// the memory that it maps the file into, into a [*CorruptError].
func guard(fn func() error) (err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if r := recover(); r != nil {
			err = &CorruptError{Key: "pages", Law: lawBbolt, Detail: fmt.Sprint(r)}
		}
	}()
	return fn()
}

// located names the file in errors that speak of damage.
func (l *Ledger) located(err error) error {
	if err == nil {
		return nil
	}
	var damage *CorruptError
	if errors.As(err, &damage) && damage.Path == "" {
		damage.Path = l.path
	}
	return err
}

// view calls fn with the buckets as the last commit left them. Fn must not wait
// for anything but reads: while it runs, pages that commits free are not used
// again.
func (l *Ledger) view(fn func(*tree) error) error {
	if t := l.trees.Load(); l.readOnly && t != nil {
		return l.viewFixed(t.tree, fn)
	}
	return l.viewTx(func(tx *bbolt.Tx) error {
		t, err := l.treeOf(tx)
		if err != nil {
			return err
		}
		return fn(t)
	})
}

// viewFixed is view of a file that nobody writes, as this instance has it locked
// for reading: there what one transaction sees is all that there ever is.
func (l *Ledger) viewFixed(t *tree, fn func(*tree) error) error {
	l.views.RLock()
	defer l.views.RUnlock()
	l.mu.RLock()
	closed := l.closed
	l.mu.RUnlock()
	if closed {
		return fmt.Errorf("ledger %s: %w", l.path, ErrClosed)
	}
	return l.located(fn(t))
}

// A treeOf is the tree that a transaction sees. It can be used again for as
// long as transactions see no later commit: until then no page of it changes.
type treeOf struct {
	txid int
	tree *tree
}

func (l *Ledger) treeOf(tx *bbolt.Tx) (*tree, error) {
	if t := l.trees.Load(); t != nil && t.txid == tx.ID() {
		return t.tree, nil
	}
	root := uint64(tx.Cursor().Bucket().Root())
	t, err := openTree(l.file, l.pageSize, uint64(tx.Size())/uint64(l.pageSize), root)
	if err != nil {
		return nil, err
	}
	l.trees.Store(&treeOf{tx.ID(), t})
	return t, nil
}

// viewTx calls fn with a read transaction.
func (l *Ledger) viewTx(fn func(*bbolt.Tx) error) error {
	tx, err := l.begin(false)
	if err != nil {
		return l.located(err)
	}
	defer l.end(tx)
	return l.located(fn(tx))
}

// begin starts a transaction. Where bbolt panics in it, the ledger is abandoned:
// who comes later is told so, and does not wait for locks that nobody gives
// back.
func (l *Ledger) begin(writable bool) (tx *bbolt.Tx, err error) {
	l.beginMu.Lock()
	defer l.beginMu.Unlock()
	if l.isAbandoned() {
		l.mu.RLock()
		defer l.mu.RUnlock()
		return nil, l.broken
	}
	err = guard(func() (err error) {
		tx, err = l.db.Begin(writable)
		return err
	})
	var damage *CorruptError
	if errors.As(err, &damage) {
		return nil, l.breakFor(l.located(err), true)
	}
	if errors.Is(err, berrors.ErrDatabaseNotOpen) {
		err = fmt.Errorf("ledger %s: %w", l.path, ErrClosed)
	}
	return tx, err
}

// end ends a transaction that reads.
func (l *Ledger) end(tx *bbolt.Tx) {
	l.beginMu.Lock()
	defer l.beginMu.Unlock()
	if !l.isAbandoned() {
		_ = guard(tx.Rollback)
	}
}

func (l *Ledger) isAbandoned() bool {
	l.mu.RLock()
	defer l.mu.RUnlock()
	return l.abandoned
}

// viewLast calls fn with a transaction that sees what readers see, and its meta
// page. A transaction that begins while a commit is on its way to the disk
// already sees that commit, which a crash may still undo: this one waits for it.
func (l *Ledger) viewLast(fn func(*bbolt.Tx, metaPage) error) error {
	l.commitMu.Lock()
	tx, err := l.begin(false)
	var m metaPage
	if err == nil {
		defer l.end(tx)
		m, err = l.metaOf(uint64(tx.ID()))
	}
	l.commitMu.Unlock()
	if err == nil {
		err = fn(tx, m)
	}
	return l.located(err)
}

// metaOf returns the meta page of a transaction, which is the last one.
func (l *Ledger) metaOf(txid uint64) (metaPage, error) {
	info, err := l.file.Stat()
	if err != nil {
		return metaPage{}, err
	}
	metas, err := readMetas(l.file, info.Size())
	if err != nil {
		return metaPage{}, err
	}
	m := newest(metas)
	if m.txid != txid {
		return m, metaError(m.txid%2, "is of transaction %d, bbolt sees %d", m.txid, txid)
	}
	return m, nil
}
