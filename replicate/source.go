package replicate

import (
	"context"
	"encoding/binary"
	"errors"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"apograph/internal/recordbatch"
	"apograph/ledger"
)

// queueBytes is how much of a partition may be fetched and not yet assembled;
// beyond it the partition is not fetched.
const queueBytes = 2 << 20

// A pace says how a loop fetches.
type pace struct {
	wait       time.Duration // at the broker, while there is nothing
	partitions int           // in one request
	bytes      int64         // of one partition
	reserve    int64         // of the budget, before the request
	limit      int64         // of the whole answer
}

var (
	// tailPace waits for partitions that are caught up: many, with little each.
	tailPace = pace{wait: 500 * time.Millisecond, partitions: 1 << 20, bytes: 64 << 10, reserve: 1 << 20, limit: 4 << 20}

	// bulkPace drains partitions that are behind. Its limit lies above what
	// the partitions may bring together, so that each gets its share.
	bulkPace = pace{wait: 50 * time.Millisecond, partitions: 8, bytes: 1 << 20, reserve: 8 << 20, limit: 16 << 20}
)

const (

	// emptyAnswers is how often in a row a partition asked alone must answer
	// with nothing, although its log goes on, before the rest is held to be
	// empty: LocalLog.read returns nothing only when no batch follows.
	emptyAnswers = 3
)

// A source reads the flow's partitions raw: whole record batches, committed
// data only, in order. Per leader there are two loops, each with a connection
// of its own: bulk fetches partitions known to be behind and is answered at
// once, tail waits at the broker for those that are caught up.
//
// A partition is fetched only while its queue and the memory budget have room.
type source struct {
	tail, bulk *cluster // the same cluster through two clients
	budget     *budget
	needLeader chan struct{} // asks refreshLoop for metadata; capacity 1
	now        func() time.Time

	mu    sync.Mutex
	parts []*partition
	loops map[loopKey]chan struct{} // to wake an idle loop; capacity 1
	group sync.WaitGroup
}

type loopKey struct {
	node int32
	bulk bool
}

// fetchState is a partition as its source sees it. Guarded by source.mu.
type fetchState struct {
	active  bool
	era     int   // counts resets: answers to older fetches are dropped
	next    int64 // offset to fetch
	epoch   int32 // leader epoch of the batch before next, -1 unknown
	flying  bool
	queued  int  // bytes handed over and not yet assembled
	behind  bool // the log is known to hold more
	empties int  // empty answers in a row while behind
	stale   int  // generation of leader knowledge that proved wrong; 0 none
	lastOK  time.Time
}

// hungry reports whether p wants to be fetched by the loop.
func (s *source) hungry(p *partition, key loopKey) bool {
	f := &p.fetch
	if !f.active || f.flying || f.queued >= queueBytes || f.behind != key.bulk {
		return false
	}
	l, generation := s.tail.leader(p.source)
	return l.node == key.node && generation > f.stale
}

// start makes p fetch from offset next on. epoch is the leader epoch of what
// stands before next, -1 if unknown: with it the broker notices that the log
// has been cut below next (KIP-595 diverging epoch).
// It returns the era that the chunks of this start carry.
func (s *source) start(p *partition, next int64, epoch int32, behind bool) int {
	s.mu.Lock()
	f := &p.fetch
	*f = fetchState{active: true, era: f.era + 1, next: next, epoch: epoch, behind: behind, lastOK: s.now()}
	era := f.era
	s.mu.Unlock()
	s.wake()
	return era
}

// stop makes p fetch no more; answers on their way are dropped.
func (s *source) stop(p *partition) {
	s.mu.Lock()
	defer s.mu.Unlock()
	p.fetch.active = false
	p.fetch.era++
}

// taken says that a chunk of p has been dealt with.
func (s *source) taken(p *partition, c *chunk) {
	s.mu.Lock()
	if p.fetch.era == c.era {
		p.fetch.queued -= len(c.data)
	}
	s.mu.Unlock()
	s.wake()
}

// wake makes idle loops look for work.
func (s *source) wake() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range s.loops {
		select {
		case c <- struct{}{}:
		default:
		}
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
	s.group.Go(func() { s.refreshLoop(ctx, changed) })
	s.askLeaders()
	<-ctx.Done()
	s.group.Wait()
}

// refreshLoop learns leaders when asked to and starts loops for new ones.
func (s *source) refreshLoop(ctx context.Context, changed func()) {
	for wait := 100 * time.Millisecond; ; {
		select {
		case <-s.needLeader:
		case <-ctx.Done():
			return
		}
		_, generation := s.tail.leader(topicPartition{})
		if _, err := s.tail.refresh(ctx, generation); err != nil {
			s.askLeaders()
			wait = min(2*wait, 2*time.Second)
		} else {
			wait = 100 * time.Millisecond
			changed()
			s.ensureLoops(ctx)
			s.wake()
		}
		if s.leaderless() {
			s.askLeaders()
		}
		if pause(ctx, wait) != nil {
			return
		}
	}
}

// expire stops partitions that had no answer for longer than limit.
func (s *source) expire(limit time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, p := range s.parts {
		if f := &p.fetch; f.active && f.queued == 0 && s.now().Sub(f.lastOK) > limit {
			f.lastOK = s.now()
			p.post(event{stop: &stopped{reason: StopUnavailable, detail: "no answer from the source's leader"}})
		}
	}
}

// leaderless reports whether an active partition has no leader to ask.
func (s *source) leaderless() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, p := range s.parts {
		if l, generation := s.tail.leader(p.source); p.fetch.active && (l.node < 0 || generation <= p.fetch.stale) {
			return true
		}
	}
	return false
}

func (s *source) ensureLoops(ctx context.Context) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, p := range s.parts {
		l, _ := s.tail.leader(p.source)
		for _, bulk := range []bool{false, true} {
			key := loopKey{l.node, bulk}
			if l.node < 0 || s.loops[key] != nil {
				continue
			}
			woken := make(chan struct{}, 1)
			s.loops[key] = woken
			s.group.Go(func() { s.loop(ctx, key, woken) })
		}
	}
}

// loop sends one fetch after the other to one broker.
func (s *source) loop(ctx context.Context, key loopKey, woken <-chan struct{}) {
	cluster, pace := s.tail, tailPace
	if key.bulk {
		cluster, pace = s.bulk, bulkPace
	}
	for first := 0; ctx.Err() == nil; first++ {
		if s.budget.reserve(ctx, pace.reserve) != nil {
			return
		}
		request, asked := s.collect(key, first, pace)
		if len(asked) == 0 {
			s.budget.adjust(-pace.reserve)
			select {
			case <-woken:
			case <-ctx.Done():
				return
			}
			continue
		}
		response, err := cluster.client.Broker(int(key.node)).Request(ctx, request)
		if err != nil {
			s.budget.adjust(-pace.reserve)
			s.failed(asked)
			if pause(ctx, 100*time.Millisecond) != nil {
				return
			}
			continue
		}
		s.deliver(asked, response.(*kmsg.FetchResponse), pace.reserve)
	}
}

// An ask is one partition of a fetch request.
type ask struct {
	p    *partition
	era  int
	next int64
	solo bool // the only one in its request
}

// collect builds a fetch of all hungry partitions, starting with another one
// each time: a broker fills its answer in order. A partition that gave an
// empty answer although it is behind is asked alone.
func (s *source) collect(key loopKey, first int, pace pace) (*fetchRequest, []ask) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var asked []ask
	for i := range s.parts {
		p := s.parts[(i+first)%len(s.parts)]
		if !s.hungry(p, key) {
			continue
		}
		a := ask{p: p, era: p.fetch.era, next: p.fetch.next}
		if p.fetch.empties > 0 {
			a.solo = true
			asked = []ask{a}
			break
		}
		if asked = append(asked, a); len(asked) == pace.partitions {
			break
		}
	}
	request := kmsg.NewPtrFetchRequest()
	request.ReplicaID = -1
	request.MaxWaitMillis = int32(pace.wait.Milliseconds())
	request.MinBytes = 1
	request.MaxBytes = int32(pace.limit)
	request.IsolationLevel = 1 // read_committed
	byID := true
	topics := map[string]int{}
	for _, a := range asked {
		a.p.fetch.flying = true
		byID = byID && a.p.pair.SourceTopicID != ledger.TopicID{}
		i, ok := topics[a.p.source.topic]
		if !ok {
			i = len(request.Topics)
			topics[a.p.source.topic] = i
			t := kmsg.NewFetchRequestTopic()
			t.Topic, t.TopicID = a.p.source.topic, a.p.pair.SourceTopicID
			request.Topics = append(request.Topics, t)
		}
		request.Topics[i].Partitions = append(request.Topics[i].Partitions, s.fetchPartition(a, pace))
	}
	return &fetchRequest{request, byID}, asked
}

func (s *source) fetchPartition(a ask, pace pace) kmsg.FetchRequestTopicPartition {
	l, _ := s.tail.leader(a.p.source)
	fp := kmsg.NewFetchRequestTopicPartition()
	fp.Partition = a.p.source.partition
	fp.CurrentLeaderEpoch = l.epoch
	fp.FetchOffset = a.next
	fp.LastFetchedEpoch = a.p.fetch.epoch
	fp.PartitionMaxBytes = int32(pace.bytes)
	return fp
}

// failed ends a fetch that had no answer.
func (s *source) failed(asked []ask) {
	s.mu.Lock()
	for _, a := range asked {
		if a.p.fetch.era == a.era {
			a.p.fetch.flying = false
			_, a.p.fetch.stale = s.tail.leader(a.p.source)
		}
	}
	s.mu.Unlock()
	s.askLeaders()
}

// deliver hands the parts of an answer to their partitions. Its bytes stay in
// the budget until the last of them has been dealt with.
func (s *source) deliver(asked []ask, response *kmsg.FetchResponse, reserved int64) {
	var bytes int64
	answers := map[topicPartition]*kmsg.FetchResponseTopicPartition{}
	names := map[ledger.TopicID]string{}
	for _, a := range asked {
		names[a.p.pair.SourceTopicID] = a.p.source.topic
	}
	for i := range response.Topics {
		t := &response.Topics[i]
		name := t.Topic
		if name == "" {
			name = names[ledger.TopicID(t.TopicID)]
		}
		for j := range t.Partitions {
			fp := &t.Partitions[j]
			bytes += int64(len(fp.RecordBatches))
			answers[topicPartition{name, fp.Partition}] = fp
		}
	}
	s.budget.adjust(bytes - reserved)
	pin := newPin(s.budget, bytes)
	defer pin.release()
	for _, a := range asked {
		s.deliverTo(a, answers[a.p.source], pin)
	}
}

func (s *source) deliverTo(a ask, answer *kmsg.FetchResponseTopicPartition, pin *pin) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f := &a.p.fetch
	if f.era != a.era {
		return
	}
	f.flying = false
	if answer == nil {
		return // a throttled broker leaves partitions out
	}
	if answer.ErrorCode != 0 {
		s.refused(a, answer)
		return
	}
	f.lastOK = s.now()
	if d := answer.DivergingEpoch; d.EndOffset >= 0 {
		a.p.post(event{diverged: &divergence{epoch: d.Epoch, end: d.EndOffset}})
		f.active = false
		return
	}
	bounds := bounds{answer.LogStartOffset, answer.LastStableOffset, answer.HighWatermark}
	c := &chunk{logStart: answer.LogStartOffset, aborted: abortedOf(answer), era: a.era}
	next, epoch := s.whole(c, answer.RecordBatches, f)
	switch {
	case len(c.data) > 0:
		f.empties = 0
		f.next, f.epoch = next, epoch
		f.queued += len(c.data)
		c.pin = pin.retain()
	case f.next >= answer.LastStableOffset:
		f.empties = 0
	case a.solo && f.empties >= emptyAnswers:
		f.empties = 0
		c.until = answer.LastStableOffset
		f.next = c.until
	default:
		f.empties++
	}
	f.behind = f.next < answer.LastStableOffset
	a.p.post(event{bounds: &bounds, chunk: c})
}

// whole sets c.data to the whole batches of data and returns the offset behind
// them and the leader epoch of the last. Damage is left for the assembler,
// which can say where it is.
func (s *source) whole(c *chunk, data []byte, f *fetchState) (next int64, epoch int32) {
	next, epoch = f.next, f.epoch
	for at := 0; at < len(data); {
		size, magic, err := recordbatch.Peek(data[at:])
		if errors.Is(err, recordbatch.ErrTruncated) {
			break
		}
		if err != nil {
			c.data = data
			return next, epoch
		}
		last, e := lastOf(data[at:at+size], magic)
		next, epoch = max(next, last+1), e
		at += size
		c.data = data[:at]
	}
	return next, epoch
}

// lastOf returns the last offset of a whole batch, or of a message set entry,
// whose only offset is its last, and its leader epoch.
func lastOf(batch []byte, magic int8) (offset int64, epoch int32) {
	if magic == 2 {
		if h, err := recordbatch.Parse(batch); err == nil {
			return h.LastOffset(), h.LeaderEpoch
		}
	}
	return int64(binary.BigEndian.Uint64(batch)), -1
}

func abortedOf(answer *kmsg.FetchResponseTopicPartition) abortedTransactions {
	starts := make([]abortedStart, 0, len(answer.AbortedTransactions))
	for _, t := range answer.AbortedTransactions {
		starts = append(starts, abortedStart{t.ProducerID, t.FirstOffset})
	}
	return newAborted(starts)
}

// refused deals with an error in place of data.
func (s *source) refused(a ask, answer *kmsg.FetchResponseTopicPartition) {
	f := &a.p.fetch
	switch code := kerr.TypedErrorForCode(answer.ErrorCode); code {
	case kerr.OffsetOutOfRange:
		f.active = false
		a.p.post(event{outOfRange: &a.next})
	case kerr.TopicAuthorizationFailed:
		f.active = false
		a.p.post(event{stop: &stopped{reason: StopNotAuthorized, detail: "READ on the source topic is needed"}})
	default:
		_, f.stale = s.tail.leader(a.p.source)
		s.askLeaders()
	}
}
