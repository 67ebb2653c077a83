package replicate

import (
	"context"
	"math"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"apograph/internal/pace"
	"apograph/ledger"
)

// A session is a tail loop's fetch session with its broker (KIP-227): the
// broker remembers the partitions, requests name only those of which something
// has changed, and answers only those of which there is news. So a thousand
// idle partitions cost what one does. Guarded by source.mu.
type session struct {
	loop    *fetchLoop
	id      int32 // as the broker gave it last; 0: it gave none
	epoch   int32 // of the next request; 0 begins a session
	members map[*partition]asked
	index   map[memberName]*partition // members by both of their names
	unnamed int                       // members whose topic has no id
	changed []*partition              // members to look at before the next request
	lastOK  time.Time
}

// A memberName is what an answer calls a member: by its topic's id, or, in
// versions that know no ids, by its topic's name. The other one is zero.
type memberName struct {
	id        ledger.TopicID
	topic     string
	partition int32
}

func newSession(l *fetchLoop) *session {
	return &session{loop: l, members: map[*partition]asked{}, index: map[memberName]*partition{}}
}

// namesOf returns p's names. A partition whose topic has no id is never called
// by the first.
func namesOf(p *partition) [2]memberName {
	return [2]memberName{
		{id: p.pair.SourceTopicID, partition: p.source.partition},
		{topic: p.source.topic, partition: p.source.partition},
	}
}

// join makes p a member, asked for with a.
func (x *session) join(p *partition, a asked) {
	if _, ok := x.members[p]; !ok && p.pair.SourceTopicID == (ledger.TopicID{}) {
		x.unnamed++
	}
	x.members[p] = a
	for _, name := range namesOf(p) {
		x.index[name] = p
	}
}

// part ends a membership. The partition's names may be another member's by now.
func (x *session) part(p *partition) {
	if _, ok := x.members[p]; ok && p.pair.SourceTopicID == (ledger.TopicID{}) {
		x.unnamed--
	}
	delete(x.members, p)
	for _, name := range namesOf(p) {
		if x.index[name] == p {
			delete(x.index, name)
		}
	}
}

// nameIn returns what an answer calls a partition.
func nameIn(t *kmsg.FetchResponseTopic, number int32) memberName {
	if t.Topic != "" {
		return memberName{topic: t.Topic, partition: number}
	}
	return memberName{id: ledger.TopicID(t.TopicID), partition: number}
}

// touch says that a member may have to be asked for something else.
func (x *session) touch(p *partition) { x.changed = append(x.changed, p) }

// listen is a tail loop.
func (s *source) listen(ctx context.Context, l *fetchLoop) {
	for ctx.Err() == nil {
		if s.tailBudget.reserve(ctx, tailReserve) != nil {
			return
		}
		s.mu.Lock()
		request, any := s.sessionRequest(l)
		s.mu.Unlock()
		if !any {
			s.tailBudget.adjust(-tailReserve)
			l.idle(ctx)
			continue
		}
		response, err := s.tail.client.Broker(int(l.key.node)).Request(ctx, request)
		if err != nil {
			s.tailBudget.adjust(-tailReserve)
			s.breakSession(l.session, err)
			_ = pace.Pause(ctx, 100*time.Millisecond)
			continue
		}
		answer := response.(*kmsg.FetchResponse)
		if err := kerr.ErrorForCode(answer.ErrorCode); err != nil {
			s.tailBudget.adjust(-tailReserve)
			s.refusedSession(l.session, err)
			_ = pace.Pause(ctx, 100*time.Millisecond)
			continue
		}
		_ = s.limit.Wait(ctx, s.sessionAnswer(l.session, answer))
	}
}

// sessionRequest brings the session up to date and returns the request that
// tells the broker, and whether there is anybody to ask for. s.mu is held.
func (s *source) sessionRequest(l *fetchLoop) (*fetchRequest, bool) {
	x := l.session
	request := newFetch(tailWait, tailLimit)
	news, left := s.changedMembers(x)
	news = append(news, s.joiners(l)...)
	if len(x.members) == 0 {
		x.epoch = 0 // the broker need not be told who has left
		return nil, false
	}
	if anotherTopic(left, news) {
		x.epoch = 0
	}
	request.SessionID, request.SessionEpoch = x.id, x.epoch
	if x.epoch == 0 { // a new session, in place of the old one, names all
		news, left = news[:0], nil
		for p := range x.members {
			news = append(news, x.members[p])
		}
	}
	request.add(news, tailShare)
	request.byID = x.unnamed == 0
	request.forget(left, news)
	return request, true
}

// joiners takes the line into the session.
func (s *source) joiners(l *fetchLoop) []asked {
	line := l.line
	l.line = nil
	var news []asked
	for _, p := range line {
		p.fetch.inLine = false
		if !s.belongs(p, l.key) {
			s.settle(p)
			continue
		}
		p.fetch.session = l.session
		a := s.ask(p, false)
		l.session.join(p, a)
		news = append(news, a)
	}
	return news
}

// changedMembers returns the members that are to be asked for something else,
// and those that have left.
func (s *source) changedMembers(x *session) (news []asked, left []*partition) {
	changed := x.changed
	x.changed = nil
	for _, p := range changed {
		have, ok := x.members[p]
		if !ok {
			continue
		}
		if !s.belongs(p, x.loop.key) {
			s.leave(x, p)
			left = append(left, p)
			continue
		}
		if now := s.ask(p, false); now != have {
			x.members[p] = now
			news = append(news, now)
		}
	}
	return news, left
}

// leave ends p's membership and puts it where it belongs now.
func (s *source) leave(x *session, p *partition) {
	x.part(p)
	p.fetch.session = nil
	s.settle(p)
}

// anotherTopic reports whether a partition takes the place of one of another topic
// of the same name. Where topics are asked for by name the broker would forget
// the one that it has just added.
func anotherTopic(left []*partition, news []asked) bool {
	return slices.ContainsFunc(left, func(p *partition) bool {
		return slices.ContainsFunc(news, func(a asked) bool { return a.p.source == p.source && a.p.pair.SourceTopicID != p.pair.SourceTopicID })
	})
}

// forget tells the broker which partitions are no longer members. One that has
// become a member anew, as the next generation of the same partition does, is
// not named: the broker adds first and forgets then (FetchSession.update).
func (r *fetchRequest) forget(left []*partition, news []asked) {
	for _, p := range left {
		if slices.ContainsFunc(news, func(a asked) bool { return a.p.source == p.source && a.p.pair.SourceTopicID == p.pair.SourceTopicID }) {
			continue
		}
		t := kmsg.NewFetchRequestForgottenTopic()
		t.Topic, t.TopicID = p.source.topic, p.pair.SourceTopicID
		t.Partitions = []int32{p.source.partition}
		r.ForgottenTopics = append(r.ForgottenTopics, t)
	}
}

// refusedSession begins a session anew that the broker does not know, and ends
// one of which it only says that something went wrong.
func (s *source) refusedSession(x *session, err error) {
	switch codeOf(err) {
	case kerr.FetchSessionIDNotFound, kerr.InvalidFetchSessionEpoch, kerr.FetchSessionTopicIDError, kerr.InconsistentTopicID:
		s.mu.Lock()
		defer s.mu.Unlock()
		x.epoch = 0
	default:
		s.breakSession(x, err)
	}
}

// sessionAnswer takes an answer, and returns how many bytes of batches came.
func (s *source) sessionAnswer(x *session, response *kmsg.FetchResponse) int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	if x.epoch == 0 {
		x.id = response.SessionID
	}
	x.epoch = nextEpoch(x.epoch)
	if x.id == 0 {
		x.epoch = 0
	}
	bytes := batchBytes(response)
	s.tailBudget.adjust(bytes - tailReserve)
	pin := newPin(s.tailBudget, bytes)
	defer pin.release()
	x.lastOK = s.now()
	for i := range response.Topics {
		t := &response.Topics[i]
		for j := range t.Partitions {
			p := x.index[nameIn(t, t.Partitions[j].Partition)]
			if p == nil { // the broker has not forgotten it, and answers without waiting as long as it has not
				x.epoch = 0
				continue
			}
			if a := x.members[p]; p.fetch.era == a.era {
				s.deliverTo(a, &t.Partitions[j], response.Version, pin)
			}
			x.touch(p)
		}
	}
	return bytes
}

// batchBytes returns how many bytes of batches an answer holds.
func batchBytes(response *kmsg.FetchResponse) (n int64) {
	for i := range response.Topics {
		for j := range response.Topics[i].Partitions {
			n += int64(len(response.Topics[i].Partitions[j].RecordBatches))
		}
	}
	return n
}

// nextEpoch returns the epoch of a session's next request: after the largest
// comes 1 (FetchMetadata.nextEpoch).
func nextEpoch(epoch int32) int32 {
	if epoch == math.MaxInt32 {
		return 1
	}
	return epoch + 1
}

// breakSession ends a session whose broker did not answer.
func (s *source) breakSession(x *session, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	x.epoch = 0
	for p, a := range x.members {
		if p.fetch.era == a.era {
			p.fetch.stale = s.tail.seen()
			s.trouble(p, err.Error())
		}
		s.leave(x, p)
	}
	s.askLeaders()
}
