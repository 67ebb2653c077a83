package ledger

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"
)

const (
	// foldShare is the part of all pairs that one commit folds: each pair's
	// turn comes at the latest after so many commits, and no more journal
	// values than that are ever needed.
	foldShare = 64

	// foldMinimum is how many pairs one commit folds in any case. With no more
	// than that at work the journal stays empty.
	foldMinimum = 16
)

// A writer is what committing needs to remember between commits.
type writer struct {
	journal  []uint64 // numbers of the values in the bucket journal, ascending
	unfolded []*pair  // pairs of which the journal has news, longest waiting first

	// minimum overrides foldMinimum where it is not 0, for tests that want a
	// journal of few pairs.
	minimum int
}

// A task is what a commit does beside writing what is queued.
type task struct {
	open    []*pair
	close   *pair
	closing Closing
	cutBad  int64 // of the closing, if it has a cut: see pairRecord
	scope   *Scope
	see     []SeenTopic // that are not in the file
	order   *Order
	made    *madeChange
	accept  *acceptChange
	groups  groupsChange
	settled *partition // whose stop ends
}

// A commit is the plan of one transaction. Building it changes nothing that
// others see.
type commit struct {
	commitRecord
	task
	changes []*change // in order of pair ids
	spare   []change  // memory for changes
	stops   []stopChange
	ended   *Stop      // by the task; nil: none
	format  int        // of the file, before
	counts  flowCounts // afterwards
	marks   markCounts // afterwards

	groupCount int // values in the bucket groups, afterwards

	unfolded []*pair  // writer.unfolded, afterwards
	journal  []uint64 // writer.journal, afterwards
	needless []uint64 // journal values to delete
	queued   int      // Ledger.queued, before
}

// A change is what a commit does to one pair.
type change struct {
	pair    *pair
	start   place   // of the first entry
	entries []Entry // taken from the queue
	state   *State  // nil: not worth writing
	record  *pairRecord
	opened  bool

	doubts   []Doubt // afterwards, if doubting
	doubting bool

	pages []*page // afterwards
	fold  bool
}

// news reports whether the journal has to have the change, if it is not folded.
func (c *change) news() bool { return len(c.entries) > 0 || c.state != nil }

// Commit writes everything that is queued in one transaction. When it returns
// without an error all of that is on the disk, in the file and visible to
// readers: this is the commit point. Where nothing is queued it does nothing.
//
// After an error nothing is committed and everything is still queued. A full
// disk leaves the file as it was, and a later Commit may succeed. Where the
// file may be bad, or may hold the transaction in spite of the error, the error
// stays: Append and Commit return it until the ledger is opened again.
func (l *Ledger) Commit() error {
	l.commitMu.Lock()
	defer l.commitMu.Unlock()
	return l.commit(task{})
}

// CommitLoop commits whenever something has been queued for 100 ms, or 4 MiB
// are, until ctx ends: then it commits what is queued and returns. It returns
// the first error. One goroutine runs it, beside those that append.
//
// Every two seconds it looks whether the file is still there. One that was
// deleted, replaced or cut is a [*CorruptError] of the law file_in_place, here
// and in each commit from then on.
func (l *Ledger) CommitLoop(ctx context.Context) error {
	look := time.NewTicker(lookDelay)
	defer look.Stop()
	for {
		select {
		case <-ctx.Done():
			return l.Commit()
		case <-look.C:
			if err := l.look(); err != nil {
				return err
			}
		case <-l.due:
		case <-l.full:
		}
		if err := l.Commit(); err != nil {
			return err
		}
	}
}

// commit writes what is queued, and does the task. The caller holds l.commitMu.
func (l *Ledger) commit(t task) error {
	c, err := l.take(t)
	if err != nil || len(c.changes) == 0 && c.scope == nil && len(c.groups) == 0 && !c.flowNews() && !c.markNews() {
		return err
	}
	defer c.forget()
	l.plan(c)
	if err := l.transact(c); err != nil {
		l.untake(c)
		return fmt.Errorf("ledger %s: commit: %w", l.path, err)
	}
	l.publish(c)
	return nil
}

// take starts a commit with everything that is queued.
func (l *Ledger) take(t task) (*commit, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.usable(); err != nil {
		return nil, err
	}
	size := len(l.queue) + len(t.open) + l.writer.share(len(l.pairs)) + 1
	c := &commit{task: t, changes: make([]*change, 0, size), spare: make([]change, size), queued: l.queued}
	c.format = l.identity.Format
	c.commitRecord = commitRecord{
		number: l.last.number + 1,
		time:   l.now().UnixMilli(),
		pairs:  len(l.pairs) + len(t.open),
	}
	for _, p := range l.queue {
		c.take(p)
	}
	l.queue, l.queued = nil, 0
	l.stopTimer()
	c.settleStop(&l.flow)
	c.takeStops(&l.flow)
	c.countFlow(&l.flow)
	for _, p := range t.open {
		p.OpenedMillis = c.time
		ch := c.take(p)
		ch.opened, ch.record = true, &p.pairRecord
	}
	if t.close != nil {
		c.change(t.close).close(&t, c.time)
	}
	if a := t.accept; a != nil && a.cutBad != a.pair.cutBad {
		record := a.pair.pairRecord
		record.cutBad = a.cutBad
		c.change(a.pair).record = &record
	}
	c.countMarks(l.marks)
	c.groupCount = c.countGroups(l.groups)
	return c, nil
}

// take moves what is queued of p into the commit.
func (c *commit) take(p *pair) *change {
	ch := c.change(p)
	ch.start, ch.entries = p.tail().end, p.queue
	p.queue, p.listed = nil, false
	for i := range ch.entries {
		ch.entries[i].TimeMillis = c.time
	}
	if p.stateWorth() {
		state := p.state
		ch.state = &state
	}
	if p.changed {
		record := p.pairRecord
		ch.record, p.changed = &record, false
	}
	if p.doubted {
		ch.doubts, ch.doubting, p.doubted = p.doubts, true, false
	}
	return ch
}

// change returns the commit's change of p.
func (c *commit) change(p *pair) *change {
	if p.planned == nil {
		p.planned = &change{}
		if len(c.spare) > 0 {
			p.planned, c.spare = &c.spare[0], c.spare[1:]
		}
		p.planned.pair, p.planned.start = p, p.tail().end
		c.changes = append(c.changes, p.planned)
	}
	return p.planned
}

// forget ends the commit for the pairs.
func (c *commit) forget() {
	for _, ch := range c.changes {
		ch.pair.planned = nil
	}
}

// close makes the closing part of the change. The pair refuses entries from
// here on, so that the books end where the closing says.
func (ch *change) close(t *task, now int64) {
	closing := t.closing
	if closing.AtMillis == 0 {
		closing.AtMillis = now
	}
	record := ch.pair.pairRecord
	record.Closed, record.closedAt = &closing, ch.pair.end
	if closing.Cut != nil {
		record.cutBad = t.cutBad + unacceptedOf(ch.pair.accepted, badOf(ch.entries, closing.Cut))
	}
	ch.record = &record
	ch.pair.closing = true
}

// plan decides what the transaction writes: which pairs are folded, what goes
// into the journal, and which journal values are needless afterwards.
func (l *Ledger) plan(c *commit) {
	w := &l.writer
	waiting := slices.Clone(w.unfolded)
	slices.SortFunc(c.changes, func(a, b *change) int { return cmp.Compare(a.pair.ID, b.pair.ID) })
	for _, ch := range c.changes {
		ch.pages = appendPages(ch.pair.pages, ch.entries)
		if ch.news() && ch.pair.unfolded == 0 {
			waiting = append(waiting, ch.pair)
		}
	}
	n := min(w.share(c.pairs), len(waiting))
	for _, p := range waiting[:n] {
		ch := c.change(p)
		ch.fold = true
		if ch.pages == nil {
			ch.pages = p.pages
		}
	}
	c.unfolded = waiting[n:]
	c.planJournal(w)
}

// share returns how many of the pairs one commit folds.
func (w *writer) share(pairs int) int {
	minimum := foldMinimum
	if w.minimum > 0 {
		minimum = w.minimum
	}
	return max(minimum, (pairs+foldShare-1)/foldShare)
}

// planJournal keeps the journal values from the first one on that a pair waits
// for. As every pair waits behind those that have waited longer, that is what
// the first one waits for.
func (c *commit) planJournal(w *writer) {
	oldest := c.number
	if len(c.unfolded) > 0 && c.unfolded[0].unfolded > 0 {
		oldest = c.unfolded[0].unfolded
	}
	keep, _ := slices.BinarySearch(w.journal, oldest)
	c.needless, c.journal = w.journal[:keep], slices.Clone(w.journal[keep:])
	if slices.ContainsFunc(c.changes, (*change).journaled) {
		c.journal = append(c.journal, c.number)
	}
	c.commitRecord.journal = len(c.journal)
}

// journaled reports whether the change goes into the journal.
func (ch *change) journaled() bool { return ch.news() && !ch.fold }

// publish shows readers what was committed.
func (l *Ledger) publish(c *commit) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, ch := range c.changes {
		l.publishChange(ch, c.number)
	}
	l.writer.unfolded, l.writer.journal = c.unfolded, c.journal
	l.last = c.commitRecord
	if c.scope != nil {
		l.scope = *c.scope
	}
	l.publishFlow(c)
	l.publishMarks(c)
	l.publishGroups(c)
	c.tell(l.followers)
}

func (l *Ledger) publishChange(ch *change, number uint64) {
	p := ch.pair
	if ch.opened {
		l.pairs[p.ID] = p
	} else if ch.record != nil && ch.record.Closed != nil {
		p.Closed, p.closedAt, p.cutBad = ch.record.Closed, ch.record.closedAt, ch.record.cutBad
	}
	p.pages = ch.pages
	if ch.state != nil {
		p.stored = *ch.state
	}
	switch {
	case ch.fold:
		saved := *p.tail()
		saved.saved = saved.count
		p.pages = []*page{&saved}
		p.unfolded, p.folded, p.foldedEnd = 0, number, saved.end
	case ch.news() && p.unfolded == 0:
		p.unfolded = number
	}
}

// untake puts everything back in front of what was queued meanwhile.
func (l *Ledger) untake(c *commit) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if c.close != nil {
		c.close.closing = false
	}
	l.queued += c.queued
	l.untakeStops(c)
	for _, ch := range c.changes {
		if ch.opened || !ch.news() && ch.record == nil && !ch.doubting {
			continue // never seen, or only folded
		}
		p := ch.pair
		p.queue = append(ch.entries, p.queue...)
		p.changed = p.changed || ch.record != nil
		p.doubted = p.doubted || ch.doubting
		l.list(p)
	}
}
