package kafkatest_test

import (
	"context"
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"

	"apograph/internal/kafkatest"
)

// fetchFrom fetches from a place of a partition, naming the epoch of what stands
// before it, and returns the partition's answer; nil if there is none.
func fetchFrom(t *testing.T, ctx context.Context, c *kafkatest.Cluster, offset int64, epoch int32, session *kmsg.FetchRequest) (answer *kmsg.FetchResponseTopicPartition, sessionID int32) {
	t.Helper()
	request := session
	if request == nil {
		request = kmsg.NewPtrFetchRequest()
		request.MaxBytes, request.SessionEpoch = 1<<20, 0
		asked := kmsg.NewFetchRequestTopic()
		asked.Topic, asked.TopicID = "a", c.Fake().TopicInfo("a").TopicID
		p := kmsg.NewFetchRequestTopicPartition()
		p.PartitionMaxBytes, p.FetchOffset, p.LastFetchedEpoch = 1<<20, offset, epoch
		asked.Partitions = append(asked.Partitions, p)
		request.Topics = append(request.Topics, asked)
	}
	got, err := c.NewClient(t).Broker(0).Request(ctx, request)
	must(t, err)
	response := got.(*kmsg.FetchResponse)
	if len(response.Topics) == 0 {
		return nil, response.SessionID
	}
	return &response.Topics[0].Partitions[0], response.SessionID
}

// TestDivergingEpoch: a client that has fetched what the leader has lost is told
// where the epoch ends that it names, also if the log is long enough again, and
// also in a session that names nothing. (D24 of the worked cases.)
func TestDivergingEpoch(t *testing.T) {
	c := kafkatest.NewCluster(t, kafkatest.ClusterOptions{DataDir: t.TempDir()})
	ctx := testContext(t)
	must(t, c.CreateTopic(ctx, "a", 1, nil)) // epoch 1
	must(t, c.Append(ctx, kafkatest.None, numbered("a", 3)...))
	must(t, c.Append(ctx, kafkatest.None, numbered("a", 2)...))
	must(t, c.LoseTail("a", 0, 3))
	for _, regrown := range []bool{false, true} {
		if regrown {
			must(t, c.Append(ctx, kafkatest.None, numbered("a", 7)...))
		}
		got, _ := fetchFrom(t, ctx, c, 5, 1, nil)
		if d := got.DivergingEpoch; got.ErrorCode != 0 || d.Epoch != 1 || d.EndOffset != 3 || len(got.RecordBatches) > 0 {
			t.Errorf("regrown %t: error %d, diverging %+v, %d bytes; want epoch 1 to end at 3", regrown, got.ErrorCode, d, len(got.RecordBatches))
		}
	}
	for _, whole := range []struct {
		offset int64
		epoch  int32
	}{{3, 1}, {2, 1}, {5, 2}, {5, -1}} {
		if got, _ := fetchFrom(t, ctx, c, whole.offset, whole.epoch, nil); got.DivergingEpoch.EndOffset >= 0 || len(got.RecordBatches) == 0 {
			t.Errorf("from %+v: diverging %+v, %d bytes", whole, got.DivergingEpoch, len(got.RecordBatches))
		}
	}
}

// TestDivergingEpochInSession: the answer comes although the request names no
// partition and the log has nothing new.
func TestDivergingEpochInSession(t *testing.T) {
	c := kafkatest.NewCluster(t, kafkatest.ClusterOptions{DataDir: t.TempDir()})
	ctx := testContext(t)
	must(t, c.CreateTopic(ctx, "a", 1, nil))
	must(t, c.Append(ctx, kafkatest.None, numbered("a", 3)...))
	_, id := fetchFrom(t, ctx, c, 3, 1, nil)
	if _, err := c.MoveLeader("a", 0); err != nil { // epoch 2, which begins at 3
		t.Fatal(err)
	}
	next := kmsg.NewPtrFetchRequest()
	next.MaxBytes, next.SessionID, next.SessionEpoch = 1<<20, id, 1
	if got, _ := fetchFrom(t, ctx, c, 0, 0, next); got != nil && got.DivergingEpoch.EndOffset >= 0 {
		t.Errorf("a new leader with everything diverges: %+v", got.DivergingEpoch)
	}
	// What the session says it has fetched is more than there is.
	beyond := kmsg.NewPtrFetchRequest()
	beyond.MaxBytes, beyond.SessionID, beyond.SessionEpoch = 1<<20, id, 2
	asked := kmsg.NewFetchRequestTopic()
	asked.Topic, asked.TopicID = "a", c.Fake().TopicInfo("a").TopicID
	p := kmsg.NewFetchRequestTopicPartition()
	p.PartitionMaxBytes, p.FetchOffset, p.LastFetchedEpoch = 1<<20, 5, 1
	asked.Partitions = append(asked.Partitions, p)
	beyond.Topics = append(beyond.Topics, asked)
	if got, _ := fetchFrom(t, ctx, c, 0, 0, beyond); got == nil || got.DivergingEpoch.EndOffset != 3 {
		t.Errorf("named in a session: %+v", got)
	}
	silent := kmsg.NewPtrFetchRequest()
	silent.MaxBytes, silent.SessionID, silent.SessionEpoch = 1<<20, id, 3
	if got, _ := fetchFrom(t, ctx, c, 0, 0, silent); got == nil || got.DivergingEpoch.EndOffset != 3 {
		t.Errorf("known from the session: %+v", got)
	}
}

// TestStrayRequests: what was cut off arrives when it is let, also after a
// restart. The broker takes it for what it is: new, doubled, or, once the producer
// is forgotten, new again.
func TestStrayRequests(t *testing.T) {
	c := kafkatest.NewCluster(t, kafkatest.ClusterOptions{DataDir: t.TempDir()})
	ctx := testContext(t)
	must(t, c.CreateTopic(ctx, "a", 1, nil))
	p := newRawProducer(t, ctx, c, "a")
	deliver := func(h *kafkatest.FaultHandle, want ...string) {
		t.Helper()
		if n, err := h.Deliver(ctx); n != 1 || err != nil {
			t.Errorf("delivered %d: %v", n, err)
		}
		if n, err := h.Deliver(ctx); n != 0 || err != nil {
			t.Errorf("delivered %d twice: %v", n, err)
		}
		records, err := c.ReadUncommitted(ctx, "a", 0)
		must(t, err)
		equal(t, "records", values(records), want)
	}
	h := c.MustFault(t, kafkatest.Fault{Kind: kafkatest.Stray})
	if _, err := p.send(ctx, 0, "x"); err == nil {
		t.Fatal("the request was answered")
	}
	must(t, c.Restart())
	deliver(h, "0=x")
	h = c.MustFault(t, kafkatest.Fault{Kind: kafkatest.Stray})
	if _, err := p.send(ctx, 1, "y"); err == nil {
		t.Fatal("the request was answered")
	}
	h.Remove()
	if _, err := p.send(ctx, 1, "y"); err != nil {
		t.Fatal(err)
	}
	deliver(h, "0=x", "1=y") // a duplicate
	h = c.MustFault(t, kafkatest.Fault{Kind: kafkatest.Stray})
	if _, err := p.send(ctx, 1, "y"); err == nil {
		t.Fatal("the request was answered")
	}
	must(t, c.ForgetProducers("a", 0))
	deliver(h, "0=x", "1=y", "2=y")
}
