package replicate

import (
	"fmt"
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"

	"apograph/ledger"
)

// BenchmarkSessionAmongIdle is one answer about one busy partition, and the
// request behind it, in a session with others that have no news.
func BenchmarkSessionAmongIdle(b *testing.B) {
	for _, idle := range []int{0, 100, 10_000} {
		b.Run(fmt.Sprintf("%d idle", idle), func(b *testing.B) {
			s, l, parts := sessionOf(idle + 1)
			s.tailBudget = newBudget(1 << 30)
			state := topicState{}
			for i, p := range parts {
				p.source.partition = int32(i)
				p.flow = &Flow{}
				state.leaders = append(state.leaders, leader{1, 0})
			}
			s.tail.topics["t"] = state
			s.add(parts)
			for _, p := range parts {
				s.start(p, 10, -1, false)
			}
			answer := kmsg.NewPtrFetchResponse()
			answer.SessionID = 7
			topic := kmsg.NewFetchResponseTopic()
			topic.TopicID = ledger.TopicID{1}
			part := kmsg.NewFetchResponseTopicPartition()
			part.Partition, part.LastStableOffset, part.HighWatermark = int32(idle), 10, 10
			topic.Partitions = append(topic.Partitions, part)
			answer.Topics = append(answer.Topics, topic)
			busy := parts[idle]
			busy.running = true // nobody handles what it is told
			for b.Loop() {
				s.sessionRequest(l)
				s.sessionAnswer(l.session, answer)
				busy.inbox = busy.inbox[:0]
			}
		})
	}
}
