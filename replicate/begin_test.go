package replicate_test

import (
	"net"
	"strconv"
	"sync/atomic"
	"testing"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"apograph/internal/kafkatest"
	"apograph/ledger"
	"apograph/replicate"
)

// TestLostAnswerToTheCreationOfATopic: a topic that the flow made is known as
// its own, though nobody told it that it was made.
func TestLostAnswerToTheCreationOfATopic(t *testing.T) {
	t.Parallel()
	pair := stored(t)
	mustTopic(t, pair.Source, "t", map[string]string{"retention.ms": "-1"})
	cut := pair.Target.MustFault(t, kafkatest.Fault{Kind: kafkatest.CutAfter, Key: kmsg.CreateTopics, Count: 1})
	l := live(t, pair, livingConfig(t, pair, "t"))
	l.at("t", 0, 0)
	topics, err := admin(t, pair.Target.Bootstrap).ListTopics(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, ok := l.Ledger().MadeTopic("t", ledger.TopicID(topics["t"].ID)); !ok {
		t.Error("the topic is not known as made by the flow: its settings would not be kept in step")
	}
	l.end()
	if cut.Hits() != 1 {
		t.Errorf("%d answers were cut", cut.Hits())
	}
}

// TestLostAnswerToTheCreationOfATopicOnce: such a topic is no obstacle to a run
// that has an end.
func TestLostAnswerToTheCreationOfATopicOnce(t *testing.T) {
	t.Parallel()
	pair := stored(t)
	mustTopic(t, pair.Source, "t", nil)
	mustAppend(t, pair.Source.Bootstrap, numbered(0, 5)...)
	cut := pair.Target.MustFault(t, kafkatest.Fault{Kind: kafkatest.CutAfter, Key: kmsg.CreateTopics, Count: 1})
	wantTiles(t, mustComplete(t, pair, configFor(t, pair, "t")), map[ledger.Tile]int64{ledger.Copied: 5})
	if cut.Hits() != 1 {
		t.Errorf("%d answers were cut", cut.Hits())
	}
}

func mustGrow(t *testing.T, c *kafkatest.Cluster, topic string, partitions int) {
	t.Helper()
	if _, err := admin(t, c.Bootstrap).UpdatePartitions(t.Context(), partitions, topic); err != nil {
		t.Fatal(err)
	}
}

// TestRefusedGrowthStopsOnlyWhatIsNew: partitions that have a book go on though
// the target takes no more of them.
func TestRefusedGrowthStopsOnlyWhatIsNew(t *testing.T) {
	t.Parallel()
	pair := stored(t)
	mustTopic(t, pair.Source, "t", nil)
	config := configFor(t, pair, "t")
	mustRun(t, config)
	mustGrow(t, pair.Source, "t", 2)
	mustAppend(t, pair.Source.Bootstrap, numbered(0, 5)...)
	pair.Target.MustFault(t, kafkatest.Fault{Kind: kafkatest.ErrorBefore, Key: kmsg.CreatePartitions, Count: -1, Err: kerr.TopicAuthorizationFailed})
	s := mustRun(t, config)
	wantTiles(t, s, map[ledger.Tile]int64{ledger.Copied: 5})
	if s.Complete || len(s.Stopped) != 1 || s.Stopped[0].Partition != 1 || s.Stopped[0].Reason != replicate.StopNotAuthorized {
		t.Errorf("summary %+v, want partition 1 stopped alone", s)
	}
	kafkatest.CheckLedgerAtEnd(t, config.LedgerPath)
}

// TestPartitionWithoutPairStandsInTheLedger: what could not begin is told by
// the ledger too.
func TestPartitionWithoutPairStandsInTheLedger(t *testing.T) {
	t.Parallel()
	pair := stored(t)
	mustTopic(t, pair.Source, "t", nil)
	pair.Target.MustFault(t, kafkatest.Fault{Kind: kafkatest.ErrorBefore, Key: kmsg.CreateTopics, Count: -1, Err: kerr.TopicAuthorizationFailed})
	config := configFor(t, pair, "t")
	if s := mustRun(t, config); s.Complete || len(s.Stopped) != 1 {
		t.Errorf("summary %+v", s)
	}
	book := kafkatest.OpenLedger(t, config.LedgerPath, ledger.Options{ReadOnly: true})
	stops := book.Stops()
	if len(stops) != 1 || stops[0].SourceTopic != "t" || stops[0].Reason != string(replicate.StopNotAuthorized) {
		t.Errorf("stops in the ledger %+v", stops)
	}
}

// TestCompleteRunEndsTheStopBeforeIt: the ledger does not go on to say why the
// run before stopped.
func TestCompleteRunEndsTheStopBeforeIt(t *testing.T) {
	t.Parallel()
	pair := stored(t)
	mustTopic(t, pair.Source, "t", nil)
	mustTopic(t, pair.Target, "t", nil)
	mustAppend(t, pair.Source.Bootstrap, numbered(0, 5)...)
	pair.Target.MustFault(t, kafkatest.Fault{Kind: kafkatest.ErrorBefore, Key: kmsg.Produce, Topic: "t", Count: 1, Err: kerr.TopicAuthorizationFailed})
	config := configFor(t, pair, "t")
	if s := mustRun(t, config); s.Complete || len(s.Stopped) != 1 {
		t.Errorf("first run %+v", s)
	}
	mustComplete(t, pair, config)
	book := kafkatest.OpenLedger(t, config.LedgerPath, ledger.Options{ReadOnly: true})
	if stops := book.Stops(); len(stops) > 0 {
		t.Errorf("complete, and the ledger says that it stopped: %+v", stops)
	}
}

// TestTopicMissingFromTheFirstMetadata: a run that has an end ends, with all of
// a topic that the source's first answer left out.
func TestTopicMissingFromTheFirstMetadata(t *testing.T) {
	t.Parallel()
	pair := stored(t)
	mustTopic(t, pair.Source, "t", nil)
	mustAppend(t, pair.Source.Bootstrap, numbered(0, 5)...)
	config := configFor(t, pair, "t")
	mustRun(t, config)
	mustAppend(t, pair.Source.Bootstrap, numbered(5, 5)...)
	var left atomic.Int64
	fake := pair.Source.Fake()
	brokers := brokersOf(t, pair.Source)
	fake.ControlKey(int16(kmsg.Metadata), func(r kmsg.Request) (kmsg.Response, error, bool) {
		fake.KeepControl()
		req := r.(*kmsg.MetadataRequest)
		if req.Topics != nil || left.Add(1) > 1 {
			return nil, nil, false
		}
		response := req.ResponseKind().(*kmsg.MetadataResponse)
		response.Brokers, response.ClusterID = brokers, kmsg.StringPtr(pair.Source.ID())
		return response, nil, true
	})
	wantTiles(t, mustComplete(t, pair, config), map[ledger.Tile]int64{ledger.Copied: 5})
	if left.Load() == 0 {
		t.Error("all topics were never asked for")
	}
}

// brokersOf returns a fake cluster's brokers as metadata names them.
func brokersOf(t *testing.T, c *kafkatest.Cluster) []kmsg.MetadataResponseBroker {
	t.Helper()
	var brokers []kmsg.MetadataResponseBroker
	for i, addr := range c.Addresses {
		host, text, err := net.SplitHostPort(addr)
		if err != nil {
			t.Fatal(err)
		}
		port, err := strconv.ParseInt(text, 10, 32)
		if err != nil {
			t.Fatal(err)
		}
		brokers = append(brokers, kmsg.MetadataResponseBroker{NodeID: int32(i), Host: host, Port: int32(port)})
	}
	return brokers
}
