package replicate

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"apograph/internal/pace"
	"apograph/internal/recordbatch"
	"apograph/ledger"
)

const (
	bulkWait       = 50 * time.Millisecond // at the broker, while there is nothing
	bulkPartitions = 8                     // in one request
	bulkShare      = 1 << 20               // bytes of one partition
	bulkReserve    = bulkPartitions * bulkShare
	bulkMost       = 4 << 20 // bytes of one partition, where few are asked for
	bulkFar        = 3       // as many partitions and bytes, where a round trip is what limits

	tailWait    = 100 * time.Millisecond // at the broker; a partition that has just caught up waits for it
	tailShare   = 64 << 10
	tailReserve = 1 << 20
	tailLimit   = 4 << 20

	// emptyAnswers is how often in a row a partition asked alone must answer
	// with nothing, although its log goes on, before the rest is held to be
	// empty; see [source.hollow].
	emptyAnswers = 3

	// maxSleep is the longest pause before a partition is asked again that
	// gave nothing.
	maxSleep = 10 * time.Second
)

// An asked is what a request says of one partition.
type asked struct {
	p           *partition
	era         int
	next        int64
	epoch       int32
	leaderEpoch int32
	solo        bool // the only one in its request
}

func (s *source) ask(p *partition, solo bool) asked {
	l, _ := s.tail.leader(p.source)
	return asked{p: p, era: p.fetch.era, next: p.fetch.next, epoch: p.fetch.epoch, leaderEpoch: l.epoch, solo: solo}
}

// drain is a bulk loop.
func (s *source) drain(ctx context.Context, l *fetchLoop) {
	for ctx.Err() == nil {
		s.mu.Lock()
		waiting := len(l.line)
		s.mu.Unlock()
		if waiting == 0 {
			l.idle(ctx)
			continue
		}
		most, reserved := s.helping(waiting)
		if s.budget.reserve(ctx, reserved) != nil {
			return
		}
		s.mu.Lock()
		taken, solo := s.takeFrom(l, most)
		all := make([]asked, len(taken))
		for i, p := range taken {
			all[i] = s.ask(p, solo)
		}
		s.mu.Unlock()
		if len(all) == 0 {
			s.budget.adjust(-reserved)
			continue
		}
		// The limit is above what the partitions may bring together, so that
		// each gets its share.
		request := newFetch(bulkWait, int32(2*reserved))
		request.add(all, s.share(reserved, len(all)))
		response, err := s.bulk.client.Broker(int(l.key.node)).Request(ctx, request)
		if err != nil {
			s.budget.adjust(-reserved)
			s.failed(all, err)
			_ = pace.Pause(ctx, 100*time.Millisecond)
			continue
		}
		answer := response.(*kmsg.FetchResponse)
		if err := kerr.ErrorForCode(answer.ErrorCode); err != nil {
			s.budget.adjust(-reserved)
			s.failed(all, err)
			_ = pace.Pause(ctx, 100*time.Millisecond)
			continue
		}
		_ = s.limit.Wait(ctx, s.deliver(all, answer, reserved))
	}
}

// helping is how many partitions a bulk request may ask for where n wait, and
// how many bytes it reserves for their answer. A broker has one such request at
// a time, so that where it is far away a small one would bound the rate: 8 MiB a
// round trip of 100 ms are 80 MB/s of all its partitions together.
func (s *source) helping(n int) (partitions int, reserved int64) {
	if s.bulk == nil || !s.bulk.distance.far() || s.rate != 0 {
		return bulkPartitions, bulkReserve
	}
	partitions = bulkFar * bulkPartitions
	reserved = min(int64(min(n, partitions))*bulkMost, bulkFar*bulkReserve, s.budget.limit/2)
	return partitions, max(reserved, bulkReserve)
}

// share is how many bytes of each of n partitions a bulk request asks for that
// has reserved so many: less where a rate is set, so that it is kept evenly.
func (s *source) share(reserved int64, n int) int32 {
	if s.rate == 0 {
		return int32(min(reserved/int64(n), bulkMost))
	}
	return int32(min(max(s.rate/20/bulkPartitions, 16<<10), bulkShare))
}

func newFetch(wait time.Duration, limit int32) *fetchRequest {
	request := kmsg.NewPtrFetchRequest()
	request.ReplicaID = -1
	request.MaxWaitMillis = int32(wait.Milliseconds())
	request.MinBytes = 1
	request.MaxBytes = limit
	request.IsolationLevel = 1 // read_committed
	return &fetchRequest{FetchRequest: request, byID: true}
}

// add asks for partitions, up to share bytes of each. While a topic that was
// created again is being accepted, there can be partitions of both.
func (r *fetchRequest) add(all []asked, share int32) {
	topics := map[memberName]int{}
	for _, a := range all {
		name := memberName{id: a.p.pair.SourceTopicID, topic: a.p.source.topic}
		i, ok := topics[name]
		if !ok {
			i = len(r.Topics)
			topics[name] = i
			t := kmsg.NewFetchRequestTopic()
			t.Topic, t.TopicID = a.p.source.topic, a.p.pair.SourceTopicID
			r.Topics = append(r.Topics, t)
			r.byID = r.byID && t.TopicID != ledger.TopicID{}
		}
		fp := kmsg.NewFetchRequestTopicPartition()
		fp.Partition = a.p.source.partition
		fp.CurrentLeaderEpoch = a.leaderEpoch
		fp.FetchOffset = a.next
		fp.LastFetchedEpoch = a.epoch
		fp.PartitionMaxBytes = share
		r.Topics[i].Partitions = append(r.Topics[i].Partitions, fp)
	}
}

// failed ends a request that had no answer.
func (s *source) failed(all []asked, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, a := range all {
		if f := &a.p.fetch; a.p.fetch.era == a.era {
			f.stale = s.tail.seen()
			s.trouble(a.p, err.Error())
		}
		s.landed(a.p)
	}
	s.askLeaders()
}

// landed says that a bulk request with p is over. s.mu is held.
func (s *source) landed(p *partition) {
	p.fetch.flying = false
	s.settle(p)
}

// deliver hands the parts of an answer to their partitions. Its bytes stay in
// the budget until the last of them has been dealt with. It returns how many
// there are.
func (s *source) deliver(all []asked, response *kmsg.FetchResponse, reserved int64) int64 {
	answers, bytes := answersOf(response)
	s.budget.adjust(bytes - reserved)
	pin := newPin(s.budget, bytes)
	defer pin.release()
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, a := range all {
		for _, name := range namesOf(a.p) {
			if a.p.fetch.era == a.era {
				s.deliverTo(a, answers[name], response.Version, pin)
			}
		}
		s.landed(a.p)
	}
	return bytes
}

// answersOf returns the parts of a response by what the response calls them, and
// how many bytes of batches it holds.
func answersOf(response *kmsg.FetchResponse) (answers map[memberName]*kmsg.FetchResponseTopicPartition, bytes int64) {
	answers = map[memberName]*kmsg.FetchResponseTopicPartition{}
	for i := range response.Topics {
		t := &response.Topics[i]
		for j := range t.Partitions {
			fp := &t.Partitions[j]
			answers[nameIn(t, fp.Partition)] = fp
		}
	}
	return answers, batchBytes(response)
}

// fetchWithEpoch is the first version of Fetch in which brokers are told what
// epoch stands before the position, and so can say that the log was cut
// (KIP-595).
const fetchWithEpoch = 12

// deliverTo hands one partition its part of an answer; nil where a throttled
// broker left it out. s.mu is held.
func (s *source) deliverTo(a asked, answer *kmsg.FetchResponseTopicPartition, version int16, pin *pin) {
	f := &a.p.fetch
	switch {
	case answer == nil:
		return
	case answer.ErrorCode != 0:
		s.refused(a, answer)
		return
	case answer.DivergingEpoch.EndOffset >= 0:
		d := answer.DivergingEpoch
		a.p.post(event{diverged: &divergence{epoch: d.Epoch, end: d.EndOffset}})
		f.active = false
		return
	}
	c := &chunk{from: a.next, logStart: answer.LogStartOffset, aborted: abortedOf(answer), era: a.era}
	next, epoch := wholeBatches(c, answer.RecordBatches, f)
	switch {
	case len(c.data) > 0:
		f.next, f.epoch = next, epoch
		f.queued += len(c.data)
		c.pin = pin.retain()
		f.empties = 0
	case f.next >= answer.LastStableOffset:
		f.empties = 0
	case len(answer.RecordBatches) == 0 && a.solo && f.empties >= emptyAnswers && s.hollow(a.p):
		f.empties = 0
		c.until = answer.LastStableOffset
		f.next = c.until
	default:
		s.nothing(a, answer)
	}
	c.next = f.next
	c.unsure = a.leaderEpoch != f.leader && (a.epoch < 0 || version < fetchWithEpoch)
	f.leader = a.leaderEpoch
	f.lastOK = s.now()
	if f.empties == 0 {
		f.failing = time.Time{}
	}
	f.behind = f.next < answer.LastStableOffset && f.left(len(c.data))
	a.p.post(event{bounds: &bounds{answer.LogStartOffset, answer.LastStableOffset, answer.HighWatermark}, chunk: c})
}

// left reports whether a partition whose log goes on behind an answer of n bytes
// is one for the bulk loop. In a session it is so only where the answer was cut
// short, as nobody waits for its next one: a partition that comes back from the
// bulk loop has to wait until the session's request is over.
func (f *fetchState) left(n int) bool { return f.session == nil || n == 0 || n >= tailShare/2 }

// hollow reports whether the end of p's log may hold nothing: the cleaner has
// been there, and no part of it lies in remote storage, where a read that is
// late is answered with nothing as well (DelayedRemoteFetch.onComplete). Where
// that is not known nothing is concluded from an empty answer.
func (s *source) hollow(p *partition) bool { return p.mayBeHollow.Load() }

// nothing notes an empty answer of a partition whose log goes on.
func (s *source) nothing(a asked, answer *kmsg.FetchResponseTopicPartition) {
	f := &a.p.fetch
	f.empties++
	s.trouble(a.p, fmt.Sprintf("it answers with nothing at offset %d, though its log goes on to %d", f.next, answer.LastStableOffset))
	if f.empties > emptyAnswers {
		f.asleep = s.now().Add(min(100*time.Millisecond<<min(f.empties-emptyAnswers, 8), maxSleep))
	}
}

// wholeBatches sets c.data to the whole batches of data and returns the offset
// behind them and the leader epoch of the last. Damage is left for the
// assembler, which can say where it is.
func wholeBatches(c *chunk, data []byte, f *fetchState) (next int64, epoch int32) {
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

// refused deals with an error in place of data. s.mu is held.
func (s *source) refused(a asked, answer *kmsg.FetchResponseTopicPartition) {
	f := &a.p.fetch
	switch code := kerr.TypedErrorForCode(answer.ErrorCode); code {
	case kerr.OffsetOutOfRange:
		f.active = false
		a.p.post(event{outOfRange: &outside{a.next, a.epoch}})
	case kerr.TopicAuthorizationFailed:
		f.active = false
		a.p.post(event{stop: &stopped{reason: StopNotAuthorized, detail: "READ on the source topic is needed"}})
	default:
		s.trouble(a.p, code.Message)
		f.stale = s.tail.seen()
		s.askLeaders()
	}
}
