package replicate

import (
	"slices"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"apograph/ledger"
)

// sessionOf returns a source whose broker 1 leads partition t-0 and has a tail
// loop, and n partitions in a row that are about it.
func sessionOf(n int) (*source, *fetchLoop, []*partition) {
	now := time.Unix(1, 0)
	s := &source{
		now: func() time.Time { return now }, needLeader: make(chan struct{}, 1),
		tail:  &cluster{generation: 1, topics: map[string]topicState{"t": {leaders: []leader{{1, 0}}}}},
		parts: map[*partition]struct{}{}, loops: map[loopKey]*fetchLoop{},
	}
	l := &fetchLoop{key: loopKey{1, false}, woken: make(chan struct{}, 1)}
	l.session = newSession(l)
	s.loops[l.key] = l
	parts := make([]*partition, n)
	for i := range parts {
		parts[i] = &partition{source: topicPartition{"t", 0}, pair: ledger.Pair{SourceTopicID: ledger.TopicID{1}}}
	}
	return s, l, parts
}

// TestNextGenerationStaysInTheSession: a request that names a partition does
// not forget it, for brokers add first and forget then (FetchSession.update).
func TestNextGenerationStaysInTheSession(t *testing.T) {
	s, l, parts := sessionOf(2)
	s.add(parts[:1])
	s.start(parts[0], 10, -1, false)
	s.sessionRequest(l)
	l.session.id, l.session.epoch = 7, 1 // as the broker answers

	s.remove(parts[0])
	s.add(parts[1:])
	s.start(parts[1], 5, -1, false)
	r, ok := s.sessionRequest(l)
	if !ok || len(r.Topics) != 1 || r.Topics[0].Partitions[0].FetchOffset != 5 {
		t.Fatalf("request %+v, %v: want t-0 from offset 5", r, ok)
	}
	if len(r.ForgottenTopics) > 0 {
		t.Errorf("the request that adds t-0 also forgets it: %+v", r.ForgottenTopics)
	}
}

// TestTopicThatTakesANameBeginsTheSessionAnew: to a broker that knows topics by
// name alone, who leaves is who comes.
func TestTopicThatTakesANameBeginsTheSessionAnew(t *testing.T) {
	s, l, parts := sessionOf(2)
	parts[1].pair.SourceTopicID = ledger.TopicID{2}
	s.add(parts[:1])
	s.start(parts[0], 10, -1, false)
	s.sessionRequest(l)
	l.session.id, l.session.epoch = 7, 1

	s.remove(parts[0])
	s.add(parts[1:])
	s.start(parts[1], 5, -1, false)
	r, ok := s.sessionRequest(l)
	if !ok || r.SessionEpoch != 0 || len(r.ForgottenTopics) > 0 || len(r.Topics) != 1 || r.Topics[0].TopicID != parts[1].pair.SourceTopicID {
		t.Errorf("request %+v, %v: want a new session with t-0 of the new topic alone", r, ok)
	}
}

// TestSessionWithoutMembersBeginsAnew: a broker that was not told who left is
// not asked to go on with its session.
func TestSessionWithoutMembersBeginsAnew(t *testing.T) {
	s, l, parts := sessionOf(1)
	s.add(parts)
	s.start(parts[0], 10, -1, false)
	s.sessionRequest(l)
	l.session.id, l.session.epoch = 7, 1

	s.stop(parts[0])
	if r, ok := s.sessionRequest(l); ok {
		t.Fatalf("request %+v of a session without members", r)
	}
	s.start(parts[0], 20, -1, false)
	r, ok := s.sessionRequest(l)
	if !ok || r.SessionEpoch != 0 || len(r.Topics) != 1 || r.Topics[0].Partitions[0].FetchOffset != 20 {
		t.Errorf("request %+v, %v: want a new session with t-0 from offset 20", r, ok)
	}
}

// TestRequestInFlightOutlastsARestart: a partition that begins again while it
// is part of a request is in no other before that one has landed.
func TestRequestInFlightOutlastsARestart(t *testing.T) {
	s, first, parts := lineOf(time.Unix(1, 0), -1)
	p := parts[0]
	moveTo := func(node int32) *fetchLoop {
		s.tail.topics = map[string]topicState{"t": {leaders: []leader{{node, 0}}}}
		s.tail.generation++
		return s.loop(loopKey{node, true})
	}
	if taken, _ := s.takeFrom(first, 8); !slices.Equal(taken, parts) {
		t.Fatalf("took %v", numbers(taken))
	}
	second := moveTo(2)
	s.start(p, 10, -1, true)
	if taken, _ := s.takeFrom(second, 8); len(taken) > 0 {
		t.Error("fetched twice at once")
	}
	third := moveTo(3)
	s.landed(p)
	if taken, _ := s.takeFrom(third, 8); !slices.Equal(taken, parts) {
		t.Errorf("took %v after it landed", numbers(taken))
	}
	s.settle(p)
	if len(second.line)+len(third.line) > 0 {
		t.Error("in line while in flight")
	}
}

// TestBusyPartitionIsNotToldAgain: attempts to begin do not queue up behind the
// one that is under way.
func TestBusyPartitionIsNotToldAgain(t *testing.T) {
	now := time.Unix(1000, 0)
	f := &Flow{config: Config{Now: func() time.Time { return now }}, partitions: map[topicPartition]*partition{}}
	p := &partition{flow: f, running: true} // it asks a broker that does not answer
	p.view = view{phase: phaseStopped, stop: stopped{reason: StopUnavailable}, retry: retry{tries: 3, at: now}}
	f.partitions[p.source] = p
	for range 30 {
		f.retryStopped()
		now = now.Add(time.Second)
	}
	if len(p.inbox) > 1 {
		t.Errorf("%d attempts wait behind the one under way", len(p.inbox))
	}
}

// answerOf returns an answer that brings one batch of a topic's partition 0.
func answerOf(id ledger.TopicID, topic string) *kmsg.FetchResponse {
	answer := kmsg.NewPtrFetchResponse()
	answer.SessionID = 7
	t := kmsg.NewFetchResponseTopic()
	t.Topic, t.TopicID = topic, id
	part := kmsg.NewFetchResponseTopicPartition()
	part.LastStableOffset, part.HighWatermark, part.RecordBatches = 15, 15, batchOf(10, 5)
	t.Partitions = append(t.Partitions, part)
	answer.Topics = append(answer.Topics, t)
	return answer
}

// TestAnswerAboutAnotherTopicOfTheNameIsDropped: what a broker says of a topic
// with another id never reaches a partition, whatever loop asked.
func TestAnswerAboutAnotherTopicOfTheNameIsDropped(t *testing.T) {
	for _, tt := range []struct {
		name   string
		answer *kmsg.FetchResponse
		want   int
	}{
		{"its own id", answerOf(ledger.TopicID{1}, ""), 1},
		{"another id", answerOf(ledger.TopicID{2}, ""), 0},
		{"no id and no name", answerOf(ledger.TopicID{}, ""), 0},
		{"a version without ids", answerOf(ledger.TopicID{}, "t"), 1},
	} {
		for _, bulk := range []bool{false, true} {
			s, l, parts := sessionOf(1)
			s.budget, s.tailBudget = newBudget(1<<30), newBudget(1<<30)
			p := parts[0]
			p.flow, p.running = &Flow{}, true // nobody handles what it is told
			s.add(parts)
			s.start(p, 10, -1, bulk)
			if bulk {
				s.deliver([]asked{s.ask(p, false)}, tt.answer, bulkReserve)
			} else {
				s.sessionRequest(l)
				s.sessionAnswer(l.session, tt.answer)
			}
			if len(p.inbox) != tt.want {
				t.Errorf("%s, bulk %v: %d events, want %d", tt.name, bulk, len(p.inbox), tt.want)
			}
		}
	}
}

// TestSessionThatRemembersWhoHasLeftBeginsAnew: a broker that goes on to answer
// about a partition that is no member, with an error and so at once, is asked
// for a new session.
func TestSessionThatRemembersWhoHasLeftBeginsAnew(t *testing.T) {
	for _, tt := range []struct {
		id    ledger.TopicID
		epoch int32
	}{{ledger.TopicID{1}, 2}, {ledger.TopicID{2}, 0}} {
		s, l, parts := sessionOf(1)
		s.tailBudget = newBudget(1 << 30)
		parts[0].flow, parts[0].running = &Flow{}, true // nobody handles what it is told
		s.add(parts)
		s.start(parts[0], 10, -1, false)
		s.sessionRequest(l)
		s.sessionAnswer(l.session, answerOf(ledger.TopicID{1}, ""))
		s.sessionAnswer(l.session, answerOf(tt.id, ""))
		r, ok := s.sessionRequest(l)
		if !ok || r.SessionEpoch != tt.epoch || len(r.Topics) != 1 {
			t.Errorf("after an answer about topic %v: request %+v, %v, want t-0 and session epoch %d", tt.id, r, ok, tt.epoch)
		}
	}
}

// TestBothTopicsOfANameAreAskedForApart: a partition of the topic that is gone
// is not asked for under the id of the one that took its name.
func TestBothTopicsOfANameAreAskedForApart(t *testing.T) {
	s, _, parts := sessionOf(2)
	parts[1].source.partition, parts[1].pair.SourceTopicID = 1, ledger.TopicID{2}
	r := newFetch(tailWait, tailLimit)
	r.add([]asked{s.ask(parts[0], false), s.ask(parts[1], false)}, tailShare)
	if len(r.Topics) != 2 || r.Topics[0].TopicID == r.Topics[1].TopicID {
		t.Errorf("topics %+v, want one of each id", r.Topics)
	}
}
