package kafkatest_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"apograph/internal/kafkatest"
)

// numbered makes n records r0, r1, ... for a topic's partition 0.
func numbered(topic string, n int) []*kgo.Record {
	records := make([]*kgo.Record, n)
	for i := range records {
		records[i] = &kgo.Record{
			Topic: topic, Key: fmt.Appendf(nil, "k%d", i), Value: fmt.Appendf(nil, "r%d", i),
			Timestamp: time.UnixMilli(1_700_000_000_000 + int64(i)),
		}
	}
	return records
}

// values returns the records' values as text.
func values(records []kafkatest.Record) []string {
	var all []string
	for _, r := range records {
		all = append(all, fmt.Sprintf("%d=%s", r.Offset, r.Value))
	}
	return all
}

func equal[T comparable](t *testing.T, what string, got, want []T) {
	t.Helper()
	if len(got) != len(want) {
		t.Errorf("%s: got %v, want %v", what, got, want)
		return
	}
	for i := range got {
		if got[i] != want[i] {
			t.Errorf("%s: got %v, want %v", what, got, want)
			return
		}
	}
}

func TestPairHasTwoClusters(t *testing.T) {
	pair := kafkatest.NewPair(t, kafkatest.Options{})
	ctx := testContext(t)
	must(t, pair.Source.CreateTopic(ctx, "a", 3, nil))
	must(t, pair.Target.CreateTopic(ctx, "a", 3, nil))
	must(t, pair.Source.Append(ctx, kafkatest.None, numbered("a", 3)...))
	if pair.Source.ID() == pair.Target.ID() {
		t.Errorf("both clusters are %s", pair.Source.ID())
	}
	if len(pair.Source.Addresses) != 1 || len(pair.Target.Addresses) != 3 {
		t.Errorf("addresses %v and %v", pair.Source.Addresses, pair.Target.Addresses)
	}
	for p := range int32(3) {
		if leader := pair.Target.Fake().LeaderFor("a", p); leader != p {
			t.Errorf("leader of partition %d is %d", p, leader)
		}
	}
	records, err := pair.Target.ReadCommitted(ctx, "a", 0)
	must(t, err)
	if len(records) != 0 {
		t.Errorf("the target has %v", values(records))
	}
	differences, err := kafkatest.Differences(ctx, pair.Source.Bootstrap, pair.Target.Bootstrap, kafkatest.Same("a"))
	must(t, err)
	if len(differences) != 3 {
		t.Errorf("differences %v, want the three records", differences)
	}
}

// TestStoppedBrokerRefuses checks that a stopped broker's port refuses
// connections and is still there for the restart, with everything kept.
func TestStoppedBrokerRefuses(t *testing.T) {
	pair := diskPair(t)
	ctx := testContext(t)
	c := pair.Target
	must(t, c.CreateTopic(ctx, "a", 1, nil))
	must(t, c.Append(ctx, kafkatest.Zstd, numbered("a", 5)...))
	id := c.Fake().TopicInfo("a").TopicID
	c.Stop()
	for _, address := range c.Addresses {
		conn, err := net.DialTimeout("tcp", address, time.Second)
		if err == nil {
			_ = conn.Close()
			t.Errorf("%s accepts connections while stopped", address)
		}
	}
	if err := c.CreateTopic(ctx, "b", 1, nil); !errors.Is(err, kafkatest.ErrStopped) {
		t.Errorf("CreateTopic on a stopped cluster = %v", err)
	}
	must(t, c.Start())
	if err := c.Start(); !errors.Is(err, kafkatest.ErrRunning) {
		t.Errorf("Start of a running cluster = %v", err)
	}
	records, err := c.ReadCommitted(ctx, "a", 0)
	must(t, err)
	equal(t, "after restart", values(records), []string{"0=r0", "1=r1", "2=r2", "3=r3", "4=r4"})
	if c.Fake().TopicInfo("a").TopicID != id {
		t.Error("the topic has another id after the restart")
	}
}

// TestEmptiedLogKeepsItsOffsets: kfake alone begins again at 0.
func TestEmptiedLogKeepsItsOffsets(t *testing.T) {
	pair := diskPair(t)
	ctx := testContext(t)
	must(t, pair.Source.CreateTopic(ctx, "a", 1, nil))
	must(t, pair.Source.Append(ctx, kafkatest.None, numbered("a", 4)...))
	must(t, pair.Source.DeleteRecords("a", 0, -1))
	for range 3 {
		must(t, pair.Source.Restart())
	}
	must(t, pair.Source.Append(ctx, kafkatest.None, numbered("a", 2)...))
	bounds, err := pair.Source.ReadBounds(ctx, "a", 0)
	must(t, err)
	if want := (kafkatest.Bounds{LogStart: 4, LastStable: 6, HighWatermark: 6}); bounds != want {
		t.Errorf("bounds %+v, want %+v", bounds, want)
	}
	records, err := pair.Source.ReadCommitted(ctx, "a", 0)
	must(t, err)
	equal(t, "records", values(records), []string{"4=r0", "5=r1"})
}

// TestEpochsOutliveAnEmptyLog: kfake alone begins again at leader epoch 0 where
// a log has been cut to nothing.
func TestEpochsOutliveAnEmptyLog(t *testing.T) {
	pair := diskPair(t)
	ctx := testContext(t)
	must(t, pair.Source.CreateTopic(ctx, "a", 1, nil))
	must(t, pair.Source.Append(ctx, kafkatest.None, numbered("a", 4)...))
	must(t, pair.Source.LoseTail("a", 0, 0))
	for range 3 {
		must(t, pair.Source.Restart())
		if epoch := pair.Source.Fake().PartitionInfo("a", 0).Epoch; epoch != 2 {
			t.Errorf("leader epoch %d, want 2", epoch)
		}
	}
}

// TestEpochOfEmptiedLogEndsWhereItDid: kfake alone says that it ends at 0.
func TestEpochOfEmptiedLogEndsWhereItDid(t *testing.T) {
	pair := kafkatest.NewPair(t, kafkatest.Options{})
	ctx := testContext(t)
	must(t, pair.Source.CreateTopic(ctx, "a", 1, nil))
	must(t, pair.Source.Append(ctx, kafkatest.None, numbered("a", 4)...))
	must(t, pair.Source.DeleteRecords("a", 0, -1))
	if _, err := pair.Source.MoveLeader("a", 0); err != nil {
		t.Fatal(err)
	}
	var request kadm.OffsetForLeaderEpochRequest
	request.Add("a", 0, 1)
	answers, err := kadm.NewClient(pair.Source.NewClient(t)).OffsetForLeaderEpoch(ctx, request)
	must(t, err)
	if got := answers["a"][0]; got.Err != nil || got.LeaderEpoch != 1 || got.EndOffset != 4 {
		t.Errorf("epoch 1: %+v, want it to end at 4", got)
	}
}

// TestRestartForgetsFetchSessions: kfake alone goes on with them.
func TestRestartForgetsFetchSessions(t *testing.T) {
	pair := diskPair(t)
	ctx := testContext(t)
	must(t, pair.Source.CreateTopic(ctx, "a", 1, nil))
	fetch := func(id, epoch int32) *kmsg.FetchResponse {
		request := kmsg.NewPtrFetchRequest()
		request.ReplicaID, request.MaxBytes, request.SessionID, request.SessionEpoch = -1, 1<<20, id, epoch
		if epoch == 0 {
			topic := kmsg.NewFetchRequestTopic()
			topic.Topic, topic.TopicID = "a", pair.Source.Fake().TopicInfo("a").TopicID
			topic.Partitions = []kmsg.FetchRequestTopicPartition{kmsg.NewFetchRequestTopicPartition()}
			topic.Partitions[0].PartitionMaxBytes = 1 << 20
			request.Topics = []kmsg.FetchRequestTopic{topic}
		}
		answer, err := pair.Source.NewClient(t).Broker(0).Request(ctx, request)
		must(t, err)
		return answer.(*kmsg.FetchResponse)
	}
	first, second := fetch(0, 0).SessionID, fetch(0, 0).SessionID
	if code := fetch(first, 1).ErrorCode; first == 0 || second <= first || code != 0 {
		t.Fatalf("sessions %d and %d, code %d", first, second, code)
	}
	must(t, pair.Source.Restart())
	for id, epoch := range map[int32]int32{first: 2, second: 1} {
		if code := fetch(id, epoch).ErrorCode; code == 0 {
			t.Errorf("session %d goes on after the restart", id)
		}
	}
	if third := fetch(0, 0).SessionID; third <= second {
		t.Errorf("session %d after %d", third, second)
	}
}

func TestLeaderMove(t *testing.T) {
	pair := kafkatest.NewPair(t, kafkatest.Options{})
	ctx := testContext(t)
	must(t, pair.Target.CreateTopic(ctx, "a", 1, nil))
	p, err := pair.Target.Producer(kafkatest.None)
	must(t, err)
	defer p.Close()
	var want []string
	for i, r := range numbered("a", 4) {
		must(t, p.Append(ctx, r))
		want = append(want, fmt.Sprintf("%d=r%d", i, i))
		leader, err := pair.Target.MoveLeader("a", 0)
		must(t, err)
		if int(leader) != (i+1)%3 {
			t.Errorf("leader after move %d is %d", i, leader)
		}
	}
	records, err := pair.Target.ReadCommitted(ctx, "a", 0)
	must(t, err)
	equal(t, "records", values(records), want)
}

// TestAppendMakesBatches: one batch for each partition, unless it would be too
// large.
func TestAppendMakesBatches(t *testing.T) {
	pair := diskPair(t)
	ctx := testContext(t)
	c := pair.Source
	must(t, c.CreateTopic(ctx, "a", 1, nil))
	large := numbered("a", 4)
	for _, r := range large {
		r.Value = make([]byte, 400_000)
	}
	must(t, c.Append(ctx, kafkatest.None, append(numbered("a", 100), large...)...))
	var counts []int
	edit(t, c, "a", func(l *kafkatest.Log) {
		for _, raw := range l.Batches {
			b, err := kafkatest.DecodeBatch(raw)
			must(t, err)
			counts = append(counts, len(b.Records))
		}
	})
	equal(t, "records in each batch", counts, []int{102, 2})
	if large[3].Offset != 103 {
		t.Errorf("the last record is at %d", large[3].Offset)
	}
}

// TestVirtualNetwork runs a pair in a bubble of fake time, with a fault that
// waits for a minute.
func TestVirtualNetwork(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pair, err := kafkatest.StartPair(kafkatest.Options{Network: new(kfake.VirtualNetwork)})
		must(t, err)
		defer pair.Close()
		ctx := context.Background()
		for _, c := range []*kafkatest.Cluster{pair.Source, pair.Target} {
			must(t, kafkatest.Load{Seed: 3, Topics: []string{"a"}, Partitions: 2, Records: 200}.Run(ctx, c.Bootstrap))
		}
		kafkatest.Compare(t, pair.Source.Bootstrap, pair.Target.Bootstrap, nil)
		must(t, pair.Target.CreateTopic(ctx, "slow", 1, nil))
		h, err := pair.Target.Fault(kafkatest.Fault{Kind: kafkatest.DelayAfter, Key: 0, Delay: 5 * time.Second})
		must(t, err)
		began := time.Now()
		must(t, pair.Target.Append(ctx, kafkatest.None, numbered("slow", 1)...))
		if waited := time.Since(began); h.Hits() != 1 || waited < 5*time.Second || waited > 10*time.Second {
			t.Errorf("%d hits, waited %v of fake time", h.Hits(), waited)
		}
		pair.Source.Stop()
		if err := pair.Source.Start(); err != nil {
			t.Errorf("restart: %v", err)
		}
	})
}
