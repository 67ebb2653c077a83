package replicate_test

import (
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"apograph/internal/kafkatest"
	"apograph/ledger"
	"apograph/replicate"
)

// TestOneOfThreeBrokersIsDown: with one replica of everything, what the broker
// led cannot be known. The others are copied; that one is not called complete.
func TestOneOfThreeBrokersIsDown(t *testing.T) {
	pair := kafkatest.NewPair(t, kafkatest.Options{SourceBrokers: 3})
	if err := pair.Source.CreateTopic(t.Context(), "t", 3, nil); err != nil {
		t.Fatal(err)
	}
	leaders, err := admin(t, pair.Source.Bootstrap).ListTopics(t.Context(), "t")
	if err != nil {
		t.Fatal(err)
	}
	for p := range int32(3) {
		mustAppend(t, pair.Source.Bootstrap, on("t", p, 0, 10)...)
	}
	const lost = 1 // partition
	var down []*kafkatest.FaultHandle
	for _, key := range []kmsg.Key{kmsg.Fetch, kmsg.ListOffsets, kmsg.OffsetForLeaderEpoch} {
		down = append(down, pair.Source.MustFault(t, kafkatest.Fault{Kind: kafkatest.CutBefore, Key: key, Count: -1, Nodes: []int32{leaders["t"].Partitions[lost].Leader}}))
	}
	config := configFor(t, pair, "t")
	config.UnavailableAfter = 2 * time.Second
	s := mustRun(t, config)
	if s.Complete || len(s.Stopped) != 1 || s.Stopped[0].Partition != lost || s.Stopped[0].Reason != replicate.StopUnavailable || s.BadTiles != 0 {
		t.Errorf("summary %+v, want partition %d stopped alone", s, lost)
	}
	wantTiles(t, s, map[ledger.Tile]int64{ledger.Copied: 20})
	for _, fault := range down {
		fault.Remove()
	}
	wantTiles(t, mustComplete(t, pair, config), map[ledger.Tile]int64{ledger.Copied: 10})
}

// TestOneOfThreeTargetBrokersIsDown: partitions that have a book go on where
// their leaders answer, also while the topic has a new one whose leader does
// not.
func TestOneOfThreeTargetBrokersIsDown(t *testing.T) {
	pair := kafkatest.NewPair(t, kafkatest.Options{})
	for _, c := range []*kafkatest.Cluster{pair.Source, pair.Target} {
		if err := c.CreateTopic(t.Context(), "t", 3, nil); err != nil {
			t.Fatal(err)
		}
	}
	config := configFor(t, pair, "t")
	config.UnavailableAfter = 2 * time.Second
	mustRun(t, config)
	for _, c := range []*kafkatest.Cluster{pair.Source, pair.Target} {
		mustGrow(t, c, "t", 6)
	}
	for p := range int32(6) {
		mustAppend(t, pair.Source.Bootstrap, on("t", p, 0, 10)...)
	}
	topics, err := admin(t, pair.Target.Bootstrap).ListTopics(t.Context(), "t")
	if err != nil {
		t.Fatal(err)
	}
	node, want := topics["t"].Partitions[4].Leader, int64(0)
	for p := range int32(3) {
		if topics["t"].Partitions[p].Leader != node {
			want += 10
		}
	}
	var down []*kafkatest.FaultHandle
	for _, key := range []kmsg.Key{kmsg.Fetch, kmsg.ListOffsets, kmsg.Produce} {
		down = append(down, pair.Target.MustFault(t, kafkatest.Fault{Kind: kafkatest.CutBefore, Key: key, Count: -1, Nodes: []int32{node}}))
	}
	s := mustRun(t, config)
	if s.Complete || s.Tiles[ledger.Copied] != want || s.BadTiles != 0 {
		t.Errorf("summary %+v, want %d copied", s, want)
	}
	for _, stop := range s.Stopped {
		if stop.Reason != replicate.StopUnavailable {
			t.Errorf("stopped %+v", stop)
		}
	}
	for _, fault := range down {
		fault.Remove()
	}
	wantTiles(t, mustComplete(t, pair, config), map[ledger.Tile]int64{ledger.Copied: 60 - want})
}

// TestTargetTopicThatDoesNotAppear: a topic that was made, and has no leader for
// as long as the run waits, stops; what else there is is copied.
func TestTargetTopicThatDoesNotAppear(t *testing.T) {
	pair := stored(t)
	for _, topic := range []string{"a", "t"} {
		mustTopic(t, pair.Source, topic, nil)
		mustAppend(t, pair.Source.Bootstrap, on(topic, 0, 0, 10)...)
	}
	mustTopic(t, pair.Target, "a", nil)
	hideTopicOnceMade(t, pair.Target)
	config := configFor(t, pair, "a", "t")
	config.UnavailableAfter = time.Second
	began := time.Now()
	s := mustRun(t, config)
	if took := time.Since(began); took > 20*time.Second {
		t.Errorf("the run waited %v", took)
	}
	if s.Complete || len(s.Stopped) != 1 || s.Stopped[0].Topic != "t" || s.Stopped[0].Reason != replicate.StopUnavailable {
		t.Errorf("summary %+v, want topic t stopped alone", s)
	}
	wantTiles(t, s, map[ledger.Tile]int64{ledger.Copied: 10})
	kafkatest.CheckLedgerAtEnd(t, config.LedgerPath)
}

// hideTopicOnceMade makes a cluster say of topic t, as soon as somebody makes
// it, that it has no leader yet.
func hideTopicOnceMade(t *testing.T, c *kafkatest.Cluster) {
	t.Helper()
	fake, brokers := c.Fake(), brokersOf(t, c)
	info := fake.TopicInfo("a")
	made := false
	fake.ControlKey(int16(kmsg.CreateTopics), func(kmsg.Request) (kmsg.Response, error, bool) {
		fake.KeepControl()
		made = true
		return nil, nil, false
	})
	fake.ControlKey(int16(kmsg.Metadata), func(r kmsg.Request) (kmsg.Response, error, bool) {
		fake.KeepControl()
		request := r.(*kmsg.MetadataRequest)
		if !made || len(request.Topics) == 0 {
			return nil, nil, false
		}
		response := request.ResponseKind().(*kmsg.MetadataResponse)
		response.Brokers, response.ClusterID = brokers, kmsg.StringPtr(c.ID())
		for _, asked := range request.Topics {
			topic := kmsg.NewMetadataResponseTopic()
			topic.Topic = asked.Topic
			if asked.Topic == nil || *asked.Topic != "a" {
				topic.ErrorCode = kerr.LeaderNotAvailable.Code
			} else {
				topic.TopicID = info.TopicID
				p := kmsg.NewMetadataResponseTopicPartition()
				p.LeaderEpoch = 1
				p.Leader, p.Replicas, p.ISR = 0, []int32{0}, []int32{0}
				topic.Partitions = append(topic.Partitions, p)
			}
			response.Topics = append(response.Topics, topic)
		}
		return response, nil, true
	})
}
