package verify_test

import (
	"fmt"
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"

	"apograph/internal/kafkatest"
	"apograph/verify"
)

// TestLateRemoteStorage: a broker with tiered storage answers a fetch whose
// remote read is late with nothing and no error. Nothing may be concluded from
// that, however often: neither that the source has lost what was copied nor that
// the target lacks it.
func TestLateRemoteStorage(t *testing.T) {
	t.Parallel() // it waits more than it works
	for _, settings := range []map[string]string{
		{"cleanup.policy": "delete"},
		{"cleanup.policy": "delete", "remote.storage.enable": "true"},
		{"cleanup.policy": "compact", "remote.storage.enable": "true"},
	} {
		for _, side := range []string{"source", "target"} {
			t.Run(fmt.Sprint(settings, " on the ", side), func(t *testing.T) {
				t.Parallel()
				f := newFlow(t, 1)
				f.created("t", 1, settings)
				f.plain(f.pair.Source, "t", 0, 50)
				f.copy(settings, "t")
				c := f.pair.Source
				if side == "target" {
					c = f.pair.Target
				}
				answerNothing(c, 6, 50)
				expect(t, f.verify(verify.ModeFull), verify.Complete, "")

				answerNothing(c, -1, 50)
				report := f.verify(verify.ModeFull, quick)
				if report.Verdict != verify.Inconclusive || report.Summary.NotVerified != 50 || len(report.Findings) == 0 {
					t.Errorf("verdict %s, %+v, findings\n%s", report.Verdict, report.Summary, findings(report))
				}
				for _, found := range report.Findings {
					if found.Kind != verify.NotVerified || found.Reason != verify.Unreadable {
						t.Errorf("finding %+v", found)
					}
				}
			})
		}
	}
}

// TestHollowEnd: on a topic that compacts, all of it on disk, the same answers say
// that the cleaner has been there.
func TestHollowEnd(t *testing.T) {
	f := newFlow(t, 1)
	f.compacts["t"] = true
	f.created("t", 1, map[string]string{"cleanup.policy": "compact"})
	f.plain(f.pair.Source, "t", 0, 50)
	f.copy(nil, "t")
	answerNothing(f.pair.Source, -1, 50)
	expect(t, f.verify(verify.ModeFull), verify.Inconclusive, `not_verified(compaction) no fault t-0 source [0, 50) target [0, 50)`)
}

// TestGapWithoutAnswer: a consumer has passed over an offset, and the log gives no
// answer to why. What cannot be looked at is no loss.
func TestGapWithoutAnswer(t *testing.T) {
	for _, side := range []string{"source", "target"} {
		f := newFlow(t, 1)
		f.created("t", 1, nil)
		f.plain(f.pair.Source, "t", 0, 20)
		f.copy(nil, "t")
		c := f.pair.Source
		if side == "target" {
			c = f.pair.Target
		}
		_, err := c.Sabotage(kafkatest.Sabotage{Damage: kafkatest.Drop, Topic: "t", Offset: 7})
		f.must(err)
		if report := f.verify(verify.ModeFull); report.Verdict != verify.Faults {
			t.Errorf("%s: verdict %s, findings\n%s", side, report.Verdict, findings(report))
		}
		answerSome(c, -1, 20, func(r *kmsg.FetchRequest) bool { return r.SessionEpoch == -1 }) // a consumer's are in sessions
		report := f.verify(verify.ModeFull, quick)
		expect(t, report, verify.Inconclusive, `not_verified(unreadable) no fault t-0 source 7 target 7`)
		if d := report.Findings[0].Detail; d != "1 copied record could not be compared: the "+side+" could not be read there" {
			t.Errorf("detail is %q", d)
		}
	}
}

// answerNothing is answerSome of all fetches.
func answerNothing(c *kafkatest.Cluster, n int, end int64) {
	answerSome(c, n, end, func(*kmsg.FetchRequest) bool { return true })
}

// answerSome answers the first n of some fetches with nothing, of a log that ends
// at end; a negative n is all of them.
func answerSome(c *kafkatest.Cluster, n int, end int64, which func(*kmsg.FetchRequest) bool) {
	fake := c.Fake()
	fake.ControlKey(int16(kmsg.Fetch), func(r kmsg.Request) (kmsg.Response, error, bool) {
		fake.KeepControl()
		request := r.(*kmsg.FetchRequest)
		if n == 0 || len(request.Topics) == 0 || !which(request) {
			return nil, nil, false
		}
		n--
		response := request.ResponseKind().(*kmsg.FetchResponse)
		for _, asked := range request.Topics {
			topic := kmsg.NewFetchResponseTopic()
			topic.Topic, topic.TopicID = asked.Topic, asked.TopicID
			for _, p := range asked.Partitions {
				answer := kmsg.NewFetchResponseTopicPartition()
				answer.Partition, answer.HighWatermark, answer.LastStableOffset, answer.LogStartOffset = p.Partition, end, end, 0
				topic.Partitions = append(topic.Partitions, answer)
			}
			response.Topics = append(response.Topics, topic)
		}
		return response, nil, true
	})
}
