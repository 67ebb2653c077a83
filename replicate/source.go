package replicate

import (
	"context"
	"slices"
	"sync"
	"time"

	"apograph/internal/connect"
	"apograph/internal/pace"
)

// queueBytes is how much of a partition may be fetched and not yet assembled;
// beyond it the partition is not fetched. Over a distance it is more than one
// answer brings, so that the next one is on its way meanwhile.
const (
	queueBytes    = 2 << 20
	farQueueBytes = bulkMost + queueBytes
)

// A source reads the flow's partitions raw: whole record batches, committed
// data only, in order. Per leader there are two loops, each with a connection
// of its own: bulk fetches partitions known to be behind and is answered at
// once, tail waits at the broker for those that are caught up.
//
// A partition is fetched only while its queue and the memory budget have room.
// It stands in the line of one loop, is part of one request, or belongs to the
// session of one tail loop; or it waits for room, or for a leader.
type source struct {
	tail, bulk *cluster // the same cluster through two clients
	budget     *budget  // of bulk fetches
	tailBudget *budget
	limit      *pace.Limiter // nil: none
	rate       int64         // of limit, bytes a second
	needLeader chan struct{} // asks refreshLoop for metadata; capacity 1
	now        func() time.Time

	mu    sync.Mutex
	ctx   context.Context // of run; nil before
	parts map[*partition]struct{}
	loops map[loopKey]*fetchLoop
	group sync.WaitGroup
}

type loopKey struct {
	node int32
	bulk bool
}

// A fetchLoop sends one fetch after the other to one broker. Guarded by
// source.mu, but for the channel.
type fetchLoop struct {
	key     loopKey
	woken   chan struct{} // that there is something to do; capacity 1
	line    []*partition  // to be fetched, in order
	session *session      // of a tail loop
}

// fetchState is a partition as its source sees it. Guarded by source.mu.
type fetchState struct {
	active  bool
	era     int   // counts resets: answers to older fetches are dropped
	next    int64 // offset to fetch
	epoch   int32 // leader epoch of the batch before next, -1 unknown
	leader  int32 // epoch of the leader that was asked last, or was to be; -1 unknown
	flying  bool  // part of a bulk request
	inLine  bool
	session *session // that it belongs to
	queued  int      // bytes handed over and not yet assembled
	behind  bool     // the log is known to hold more
	empties int      // empty answers in a row while behind
	stale   int      // generation of leader knowledge that proved wrong; 0 none

	asleep  time.Time // not to be asked before; zero: at any time
	lastOK  time.Time // of the last answer without an error
	failing time.Time // since when there has been none, though it was asked; zero: it goes well
	trouble string    // what the last answer was
}

func newSource(f *Flow) *source {
	return &source{
		tail: f.source, bulk: f.bulk, now: f.config.Now,
		budget: newBudget(f.config.MemoryBytes * 7 / 8), tailBudget: newBudget(f.config.MemoryBytes / 8),
		limit: f.config.Pace, rate: f.config.RateLimit,
		needLeader: make(chan struct{}, 1), parts: map[*partition]struct{}{}, loops: map[loopKey]*fetchLoop{},
	}
}

// add makes partitions known. They are fetched once started.
func (s *source) add(parts []*partition) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, p := range parts {
		s.parts[p] = struct{}{}
	}
}

// remove forgets a partition.
func (s *source) remove(p *partition) {
	s.stop(p)
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.parts, p)
}

// start makes p fetch from offset next on. epoch is the leader epoch of what
// stands before next, -1 if unknown: with it the broker notices that the log
// has been cut below next (KIP-595 diverging epoch).
// It returns the era that the chunks of this start carry.
func (s *source) start(p *partition, next int64, epoch int32, behind bool) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	f := &p.fetch
	l, _ := s.tail.leader(p.source)
	*f = fetchState{
		active: true, era: f.era + 1, next: next, epoch: epoch, leader: l.epoch, behind: behind, lastOK: s.now(),
		inLine: f.inLine, flying: f.flying, session: f.session,
	}
	s.settle(p)
	return f.era
}

// stop makes p fetch no more; answers on their way are dropped.
func (s *source) stop(p *partition) {
	s.mu.Lock()
	defer s.mu.Unlock()
	p.fetch.active = false
	p.fetch.era++
	s.settle(p)
}

// taken says that a chunk of p has been dealt with.
func (s *source) taken(p *partition, c *chunk) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if p.fetch.era == c.era {
		p.fetch.queued -= len(c.data)
		s.settle(p)
	}
}

// settle puts p where its state belongs after a change: its session is told,
// or it gets in line. s.mu is held.
func (s *source) settle(p *partition) {
	f := &p.fetch
	if f.session != nil {
		f.session.touch(p)
		s.wake(f.session.loop)
		return
	}
	if f.inLine || f.flying || !s.hungry(p) || s.now().Before(f.asleep) {
		return
	}
	l, generation := s.tail.leader(p.source)
	if l.node < 0 || generation <= f.stale {
		s.trouble(p, "it has no leader")
		s.askLeaders()
		return
	}
	f.inLine = true
	loop := s.loop(loopKey{l.node, f.behind})
	loop.line = append(loop.line, p)
	s.wake(loop)
}

// trouble notes that p, though asked, gives no data. s.mu is held.
func (s *source) trouble(p *partition, what string) {
	f := &p.fetch
	if f.failing.IsZero() {
		f.failing, f.trouble = s.now(), what
	}
}

// hungry reports whether p is to be fetched.
func (s *source) hungry(p *partition) bool {
	room := queueBytes
	if s.bulk != nil && s.bulk.distance.far() {
		room = farQueueBytes
	}
	return p.fetch.active && p.fetch.queued < room
}

// belongs reports whether p is to be fetched by the loop.
func (s *source) belongs(p *partition, key loopKey) bool {
	l, generation := s.tail.leader(p.source)
	return s.hungry(p) && p.fetch.behind == key.bulk && l.node == key.node && generation > p.fetch.stale
}

// loop returns a broker's loop, which is started if there is none.
func (s *source) loop(key loopKey) *fetchLoop {
	l := s.loops[key]
	if l == nil {
		l = &fetchLoop{key: key, woken: make(chan struct{}, 1)}
		s.loops[key] = l
		if s.ctx != nil {
			s.launch(l)
		}
	}
	return l
}

func (s *source) launch(l *fetchLoop) {
	ctx := s.ctx
	if l.key.bulk {
		s.group.Go(func() { s.drain(ctx, l) })
		return
	}
	l.session = newSession(l)
	s.group.Go(func() { s.listen(ctx, l) })
}

func (s *source) wake(l *fetchLoop) {
	select {
	case l.woken <- struct{}{}:
	default:
	}
}

// idle waits until the loop is woken. It reports false when ctx ends.
func (l *fetchLoop) idle(ctx context.Context) bool {
	select {
	case <-l.woken:
		return true
	case <-ctx.Done():
		return false
	}
}

// askLeaders asks for metadata soon.
func (s *source) askLeaders() {
	select {
	case s.needLeader <- struct{}{}:
	default:
	}
}

// run fetches until ctx ends and all its goroutines have.
func (s *source) run(ctx context.Context, changed func()) {
	s.mu.Lock()
	s.ctx = ctx
	for _, l := range s.loops {
		s.launch(l)
	}
	s.mu.Unlock()
	s.group.Go(func() { s.refreshLoop(ctx, changed) })
	s.askLeaders()
	<-ctx.Done()
	s.mu.Lock()
	s.ctx = nil // no loop is started any more
	s.mu.Unlock()
	s.group.Wait()
}

// refreshLoop learns leaders when asked to and puts partitions where they now
// belong.
func (s *source) refreshLoop(ctx context.Context, changed func()) {
	for wait := 100 * time.Millisecond; ; {
		select {
		case <-s.needLeader:
		case <-ctx.Done():
			return
		}
		_, err := s.tail.refresh(ctx, s.tail.seen())
		if err == nil {
			changed()
			s.settleAll()
		}
		if len(s.needLeader) > 0 || err != nil {
			s.askLeaders()
			wait = min(2*wait, leaderPause(err))
		} else {
			wait = 100 * time.Millisecond
		}
		if pace.Pause(ctx, wait) != nil {
			return
		}
	}
}

// leaderPause is the longest pause before leaders are asked for again. Whom a cluster
// does not let in does not press it: logins that fail may lock an account.
func leaderPause(err error) time.Duration {
	if connect.Permanent(err) {
		return 30 * time.Second
	}
	return 2 * time.Second
}

// settleAll puts every partition where it belongs: leaders may have changed.
func (s *source) settleAll() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for p := range s.parts {
		s.settle(p)
	}
}

// expire stops partitions that were asked for longer than limit and gave
// nothing.
func (s *source) expire(limit time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for p := range s.parts {
		f := &p.fetch
		if f.active && !f.failing.IsZero() && s.now().Sub(f.failing) > limit {
			f.failing = time.Time{}
			p.post(event{stop: &stopped{reason: StopUnavailable, detail: "the source's leader gives nothing: " + f.trouble}})
		}
	}
}

// wakeSleepers settles partitions whose pause is over.
func (s *source) wakeSleepers() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for p := range s.parts {
		if f := &p.fetch; !f.asleep.IsZero() && !s.now().Before(f.asleep) {
			f.asleep = time.Time{}
			s.settle(p)
		}
	}
}

// confirm tells partitions that wait at the broker and have no news that what
// was last seen of them held not longer than age ago.
func (s *source) confirm(age time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for p := range s.parts {
		if f := &p.fetch; f.session != nil && f.active && s.now().Sub(f.session.lastOK) < age && s.now().Sub(f.lastOK) >= age {
			f.lastOK = f.session.lastOK
			p.post(event{unchanged: true})
		}
	}
}

// urgentWithin is how near the next record's deletion must be for its partition
// to go before others.
const urgentWithin = time.Hour

// takeFrom removes up to n partitions from a bulk loop's line: those nearest to
// losing data to retention first, then those that have waited longest. One
// that gave an empty answer although it is behind goes alone. s.mu is held.
func (s *source) takeFrom(l *fetchLoop, n int) (taken []*partition, solo bool) {
	line := l.line
	l.line = nil
	line = slices.DeleteFunc(line, func(p *partition) bool {
		if s.belongs(p, l.key) {
			return false
		}
		p.fetch.inLine = false
		s.settle(p)
		return true
	})
	soon := s.now().Add(urgentWithin).UnixMilli()
	slices.SortStableFunc(line, func(a, b *partition) int {
		return int(min(a.deadline.Load(), soon) - min(b.deadline.Load(), soon))
	})
	for i, p := range line {
		if p.fetch.empties > 0 && i > 0 || i == n {
			break
		}
		taken = append(taken, p)
		if p.fetch.empties > 0 {
			solo = true
			break
		}
	}
	l.line = append(l.line, line[len(taken):]...)
	for _, p := range taken {
		p.fetch.inLine, p.fetch.flying = false, true
	}
	return taken, solo
}
