package kafkatest_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"apograph/internal/kafkatest"
)

// A raw producer sends single requests and retries nothing.
type rawProducer struct {
	client *kgo.Client
	topic  kmsg.MetadataResponseTopic
	leader int32
}

func newRawProducer(t *testing.T, ctx context.Context, c *kafkatest.Cluster, topic string) *rawProducer {
	t.Helper()
	client := c.NewClient(t, kgo.RequestRetries(0))
	request := kmsg.NewPtrMetadataRequest()
	asked := kmsg.NewMetadataRequestTopic()
	asked.Topic = kmsg.StringPtr(topic)
	request.Topics = append(request.Topics, asked)
	response, err := request.RequestWith(ctx, client)
	must(t, err)
	return &rawProducer{client: client, topic: response.Topics[0], leader: response.Topics[0].Partitions[0].Leader}
}

// send produces one batch of producer 4711 and returns the answer.
func (p *rawProducer) send(ctx context.Context, sequence int32, values ...string) (kmsg.ProduceResponseTopicPartition, error) {
	var records []kafkatest.BatchRecord
	for i, v := range values {
		records = append(records, record(v, 1000+int64(i)))
	}
	b := kafkatest.NewBatch(0, records...)
	b.ProducerID, b.ProducerEpoch, b.BaseSequence, b.LeaderEpoch = 4711, 0, sequence, -1
	raw, err := b.Encode()
	if err != nil {
		return kmsg.ProduceResponseTopicPartition{}, err
	}
	return p.sendRaw(ctx, 2000, raw)
}

func (p *rawProducer) sendRaw(ctx context.Context, timeoutMillis int32, raw []byte) (kmsg.ProduceResponseTopicPartition, error) {
	request := kmsg.NewPtrProduceRequest()
	request.Acks, request.TimeoutMillis = -1, timeoutMillis
	t := kmsg.NewProduceRequestTopic()
	t.Topic, t.TopicID = *p.topic.Topic, p.topic.TopicID
	partition := kmsg.NewProduceRequestTopicPartition()
	partition.Records = raw
	t.Partitions = append(t.Partitions, partition)
	request.Topics = append(request.Topics, t)
	answer, err := p.client.Broker(int(p.leader)).Request(ctx, request)
	if err != nil {
		return kmsg.ProduceResponseTopicPartition{}, err
	}
	return answer.(*kmsg.ProduceResponse).Topics[0].Partitions[0], nil
}

func faultCluster(t *testing.T, topic string) (context.Context, *kafkatest.Cluster) {
	t.Helper()
	ctx := testContext(t)
	c := kafkatest.NewCluster(t, kafkatest.ClusterOptions{Brokers: 3, DataDir: t.TempDir()})
	must(t, c.CreateTopic(ctx, topic, 1, nil))
	return ctx, c
}

// TestFaultMatrix sends three batches, of which the second meets the fault, and
// looks at what the client got and what is in the log.
func TestFaultMatrix(t *testing.T) {
	cut := errors.New("any network error")
	for _, tt := range []struct {
		name    string
		fault   kafkatest.Fault
		err     error // of the second produce; cut stands for one without an answer
		code    *kerr.Error
		base    int64 // in the second answer
		inLog   int   // records after the second produce
		takesAs time.Duration
	}{
		{name: "cut before", fault: kafkatest.Fault{Kind: kafkatest.CutBefore}, err: cut, inLog: 1},
		{name: "cut after", fault: kafkatest.Fault{Kind: kafkatest.CutAfter}, err: cut, inLog: 2},
		{name: "not leader before", fault: kafkatest.Fault{Kind: kafkatest.ErrorBefore, Err: kerr.NotLeaderForPartition}, code: kerr.NotLeaderForPartition, base: -1, inLog: 1},
		{name: "not leader after", fault: kafkatest.Fault{Kind: kafkatest.ErrorAfter, Err: kerr.NotLeaderForPartition}, code: kerr.NotLeaderForPartition, base: 1, inLog: 2},
		{name: "not enough replicas", fault: kafkatest.Fault{Kind: kafkatest.ErrorBefore, Err: kerr.NotEnoughReplicas}, code: kerr.NotEnoughReplicas, base: -1, inLog: 1},
		{name: "not enough replicas after append", fault: kafkatest.Fault{Kind: kafkatest.ErrorAfter, Err: kerr.NotEnoughReplicasAfterAppend}, code: kerr.NotEnoughReplicasAfterAppend, base: 1, inLog: 2},
		{name: "timed out", fault: kafkatest.Fault{Kind: kafkatest.ErrorAfter, Err: kerr.RequestTimedOut}, code: kerr.RequestTimedOut, base: 1, inLog: 2},
		{name: "storage error after", fault: kafkatest.Fault{Kind: kafkatest.ErrorAfter, Err: kerr.KafkaStorageError}, code: kerr.KafkaStorageError, base: 1, inLog: 2},
		{name: "delay before", fault: kafkatest.Fault{Kind: kafkatest.DelayBefore, Delay: 30 * time.Millisecond}, base: 1, inLog: 2, takesAs: 30 * time.Millisecond},
		{name: "delay after", fault: kafkatest.Fault{Kind: kafkatest.DelayAfter, Delay: 30 * time.Millisecond}, base: 1, inLog: 2, takesAs: 30 * time.Millisecond},
	} {
		t.Run(tt.name, func(t *testing.T) {
			ctx, c := faultCluster(t, "a")
			tt.fault.Key, tt.fault.Skip, tt.fault.Topic = kmsg.Produce, 1, "a"
			h := c.MustFault(t, tt.fault)
			p := newRawProducer(t, ctx, c, "a")
			_, err := p.send(ctx, 0, "0")
			must(t, err)
			began := time.Now()
			answer, err := p.send(ctx, 1, "1")
			if (err != nil) != (tt.err != nil) {
				t.Fatalf("error %v, want %v", err, tt.err)
			}
			if took := time.Since(began); took < tt.takesAs || took > 9*time.Second {
				t.Errorf("took %v, want at least %v, and no timeout", took, tt.takesAs)
			}
			wantCode := int16(0)
			if tt.code != nil {
				wantCode = tt.code.Code
			}
			if err == nil && (answer.ErrorCode != wantCode || answer.BaseOffset != tt.base) {
				t.Errorf("answer: code %d, base offset %d; want %d, %d", answer.ErrorCode, answer.BaseOffset, wantCode, tt.base)
			}
			records, err := c.ReadUncommitted(ctx, "a", 0)
			must(t, err)
			if len(records) != tt.inLog {
				t.Errorf("the log holds %v, want %d records", values(records), tt.inLog)
			}
			if h.Hits() != 1 {
				t.Errorf("%d hits, want 1", h.Hits())
			}
			must(t, h.Wait(ctx, 1))
			finish(t, ctx, c, p)
		})
	}
}

// finish sends the second batch again, and the third: whatever has happened,
// all three are then in the log, once.
func finish(t *testing.T, ctx context.Context, c *kafkatest.Cluster, p *rawProducer) {
	t.Helper()
	for sequence := range int32(2) {
		answer, err := p.send(ctx, 1+sequence, fmt.Sprint(1+sequence))
		must(t, err)
		if answer.ErrorCode != 0 || answer.BaseOffset != int64(1+sequence) {
			t.Errorf("batch %d again: code %d, base offset %d", 1+sequence, answer.ErrorCode, answer.BaseOffset)
		}
	}
	records, err := c.ReadCommitted(ctx, "a", 0)
	must(t, err)
	equal(t, "in the end", values(records), []string{"0=0", "1=1", "2=2"})
}

// TestDuplicateIsTold: nothing but LogAppendTime tells a duplicate from a first
// append, on a CreateTime topic as well.
func TestDuplicateIsTold(t *testing.T) {
	ctx, c := faultCluster(t, "a")
	p := newRawProducer(t, ctx, c, "a")
	first, err := p.send(ctx, 0, "x", "y")
	must(t, err)
	again, err := p.send(ctx, 0, "x", "y")
	must(t, err)
	if first.LogAppendTime != -1 || again.LogAppendTime != 1001 || again.BaseOffset != 0 || again.ErrorCode != 0 {
		t.Errorf("first %+v, again %+v", first, again)
	}
}

func TestFaultSelection(t *testing.T) {
	ctx, c := faultCluster(t, "a")
	must(t, c.CreateTopic(ctx, "b", 1, nil))
	other := c.MustFault(t, kafkatest.Fault{Kind: kafkatest.CutBefore, Key: kmsg.Produce, Topic: "b", Count: -1})
	node := c.MustFault(t, kafkatest.Fault{Kind: kafkatest.CutBefore, Key: kmsg.Produce, Nodes: []int32{1, 2}, Count: -1})
	key := c.MustFault(t, kafkatest.Fault{Kind: kafkatest.CutBefore, Key: kmsg.CreateTopics})
	third := c.MustFault(t, kafkatest.Fault{Kind: kafkatest.ErrorAfter, Key: kmsg.Produce, Err: kerr.RequestTimedOut, Skip: 2, Count: 2})
	when := c.MustFault(t, kafkatest.Fault{Kind: kafkatest.DelayBefore, Key: kmsg.Produce, Delay: time.Millisecond, Count: -1,
		When: func(r kmsg.Request) bool { return len(r.(*kmsg.ProduceRequest).Topics[0].Partitions[0].Records) > 90 }})
	p := newRawProducer(t, ctx, c, "a")
	var codes []int16
	for sequence := range int32(6) {
		value := "v"
		if sequence == 5 {
			value = "a longer value that makes the batch longer"
		}
		answer, err := p.send(ctx, sequence, value)
		must(t, err)
		codes = append(codes, answer.ErrorCode)
	}
	timedOut := kerr.RequestTimedOut.Code
	equal(t, "codes", codes, []int16{0, 0, timedOut, timedOut, 0, 0})
	for h, want := range map[*kafkatest.FaultHandle]int{other: 0, node: 0, key: 0, third: 2, when: 1} {
		if h.Hits() != want {
			t.Errorf("%d hits, want %d", h.Hits(), want)
		}
	}
	if _, err := newRawProducer(t, ctx, c, "b").send(ctx, 0, "v"); err == nil || other.Hits() != 1 {
		t.Errorf("produce to b: %v, %d hits", err, other.Hits())
	}
}

// TestSeededFaults hits a share of requests, the same one for the same seed.
func TestSeededFaults(t *testing.T) {
	run := func(seed uint64) []int16 {
		ctx, c := faultCluster(t, "a")
		c.MustFault(t, kafkatest.Fault{Kind: kafkatest.ErrorAfter, Key: kmsg.Produce, Err: kerr.RequestTimedOut, Count: -1, Share: 0.3, Seed: seed})
		p := newRawProducer(t, ctx, c, "a")
		var codes []int16
		for sequence := range int32(50) {
			answer, err := p.send(ctx, sequence, "v")
			must(t, err)
			codes = append(codes, answer.ErrorCode)
		}
		return codes
	}
	a, again, b := run(1), run(1), run(2)
	equal(t, "same seed", again, a)
	hits, differ := 0, false
	for i := range a {
		if a[i] != 0 {
			hits++
		}
		differ = differ || a[i] != b[i]
	}
	if hits < 5 || hits > 25 || !differ {
		t.Errorf("%d of 50 hit, another seed differs: %t", hits, differ)
	}
}

func TestGate(t *testing.T) {
	ctx, c := faultCluster(t, "a")
	gate := make(chan struct{})
	h := c.MustFault(t, kafkatest.Fault{Kind: kafkatest.DelayBefore, Key: kmsg.Produce, Gate: gate})
	p := newRawProducer(t, ctx, c, "a")
	done := make(chan error, 1)
	go func() {
		_, err := p.send(ctx, 0, "v")
		done <- err
	}()
	must(t, h.Wait(ctx, 1))
	records, err := c.ReadCommitted(ctx, "a", 0)
	must(t, err)
	if len(records) != 0 {
		t.Errorf("behind a closed gate the log holds %v", values(records))
	}
	select {
	case err := <-done:
		t.Fatalf("produce returned behind a closed gate: %v", err)
	default:
	}
	close(gate)
	must(t, <-done)
}

// TestFaultsOutliveRestart: error faults live in kfake, the others on the wire.
func TestFaultsOutliveRestart(t *testing.T) {
	ctx, c := faultCluster(t, "a")
	refuse := c.MustFault(t, kafkatest.Fault{Kind: kafkatest.ErrorBefore, Key: kmsg.Produce, Topic: "a", Err: kerr.NotEnoughReplicas, Count: -1})
	must(t, c.Restart())
	p := newRawProducer(t, ctx, c, "a")
	answer, err := p.send(ctx, 0, "v")
	must(t, err)
	if answer.ErrorCode != kerr.NotEnoughReplicas.Code {
		t.Errorf("code %d after the restart", answer.ErrorCode)
	}
	refuse.Remove()
	answer, err = p.send(ctx, 0, "v")
	must(t, err)
	if answer.ErrorCode != 0 || refuse.Hits() != 1 {
		t.Errorf("code %d after Remove, %d hits", answer.ErrorCode, refuse.Hits())
	}
}

func TestErrorOfOtherRequests(t *testing.T) {
	ctx, c := faultCluster(t, "a")
	before := c.MustFault(t, kafkatest.Fault{Kind: kafkatest.ErrorBefore, Key: kmsg.CreateTopics, Err: kerr.PolicyViolation})
	if err := c.Bootstrap.CreateTopic(ctx, "b", 1, nil); !errors.Is(err, kerr.PolicyViolation) {
		t.Errorf("create topic: %v", err)
	}
	after := c.MustFault(t, kafkatest.Fault{Kind: kafkatest.ErrorAfter, Key: kmsg.CreateTopics, Err: kerr.RequestTimedOut})
	_, err := kadm.NewClient(c.NewClient(t)).CreateTopic(ctx, 1, -1, nil, "b")
	if !errors.Is(err, kerr.RequestTimedOut) {
		t.Errorf("create topic: %v", err)
	}
	if c.Fake().TopicInfo("b") == nil {
		t.Error("the topic was not created")
	}
	if before.Hits() != 1 || after.Hits() != 1 {
		t.Errorf("%d and %d hits", before.Hits(), after.Hits())
	}
}

func TestFaultRefusesNonsense(t *testing.T) {
	_, c := faultCluster(t, "a")
	for name, f := range map[string]kafkatest.Fault{
		"no kind":               {},
		"error without a code":  {Kind: kafkatest.ErrorBefore},
		"cut with a code":       {Kind: kafkatest.CutBefore, Err: kerr.NotEnoughReplicas},
		"delay without a time":  {Kind: kafkatest.DelayAfter},
		"unknown topic":         {Kind: kafkatest.CutBefore, Topic: "nowhere"},
		"partition, no topic":   {Kind: kafkatest.CutBefore, Partitions: []int32{0}},
		"error after a request": {Kind: kafkatest.ErrorAfter, Key: kmsg.CreateTopics, Err: kerr.PolicyViolation},
		"share":                 {Kind: kafkatest.CutBefore, Share: 2},
	} {
		if _, err := c.Fault(f); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

// TestHeldHighWatermark is the case of raw-produce recovery: the leader has a
// batch that its followers do not have yet.
func TestHeldHighWatermark(t *testing.T) {
	ctx, c := faultCluster(t, "a")
	p := newRawProducer(t, ctx, c, "a")
	_, err := p.send(ctx, 0, "0")
	must(t, err)
	release, err := c.HoldHighWatermark("a", 0, 1)
	must(t, err)
	defer release()
	answer, err := p.sendRaw(ctx, 50, encode(t, heldBatch())[0])
	must(t, err)
	if answer.ErrorCode != kerr.RequestTimedOut.Code || answer.BaseOffset != 1 {
		t.Errorf("code %d, base offset %d", answer.ErrorCode, answer.BaseOffset)
	}
	records, err := c.ReadCommitted(ctx, "a", 0)
	must(t, err)
	equal(t, "below the high watermark", values(records), []string{"0=0"})
	heldFetch(t, ctx, c)
	client := c.NewClient(t)
	if got := listLatest(t, ctx, client, p, -1); got != 1 {
		t.Errorf("latest offset of replica -1 is %d, want 1", got)
	}
	if got := listLatest(t, ctx, client, p, -2); got != 2 {
		t.Errorf("latest offset of replica -2 is %d, want 2", got)
	}
	release()
	records, err = c.ReadCommitted(ctx, "a", 0)
	must(t, err)
	equal(t, "after release", values(records), []string{"0=0", "1=1"})
	if got := listLatest(t, ctx, client, p, -1); got != 2 {
		t.Errorf("latest offset of replica -1 is %d after release", got)
	}
}

// heldFetch checks that even a consumer that asks for everything sees nothing
// above the high watermark.
func heldFetch(t *testing.T, ctx context.Context, c *kafkatest.Cluster) {
	t.Helper()
	consumer := c.NewClient(t, kgo.FetchIsolationLevel(kgo.ReadUncommitted()),
		kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{"a": {0: kgo.NewOffset().AtStart()}}))
	fetches := consumer.PollFetches(ctx)
	must(t, fetches.Err())
	fetches.EachPartition(func(p kgo.FetchTopicPartition) {
		if len(p.Records) != 1 || p.HighWatermark != 1 || p.LastStableOffset != 1 {
			t.Errorf("a consumer gets %d records, high watermark %d, last stable offset %d", len(p.Records), p.HighWatermark, p.LastStableOffset)
		}
	})
}

func heldBatch() kafkatest.Batch {
	b := kafkatest.NewBatch(0, record("1", 1))
	b.ProducerID, b.ProducerEpoch, b.BaseSequence, b.LeaderEpoch = 4711, 0, 1, -1
	return b
}

func listLatest(t *testing.T, ctx context.Context, client *kgo.Client, p *rawProducer, replica int32) int64 {
	t.Helper()
	request := kmsg.NewPtrListOffsetsRequest()
	request.ReplicaID = replica
	topic := kmsg.NewListOffsetsRequestTopic()
	topic.Topic = *p.topic.Topic
	partition := kmsg.NewListOffsetsRequestTopicPartition()
	partition.Timestamp = -1
	topic.Partitions = append(topic.Partitions, partition)
	request.Topics = append(request.Topics, topic)
	answer, err := client.Broker(int(p.leader)).Request(ctx, request)
	must(t, err)
	return answer.(*kmsg.ListOffsetsResponse).Topics[0].Partitions[0].Offset
}

// TestBadBatches produces what brokers refuse or should refuse.
func TestBadBatches(t *testing.T) {
	c := kafkatest.NewCluster(t, kafkatest.ClusterOptions{})
	ctx := testContext(t)
	must(t, c.CreateTopic(ctx, "a", 1, nil))
	p := newRawProducer(t, ctx, c, "a")
	good := func() kafkatest.Batch { return kafkatest.NewBatch(0, record("x", 1), record("y", 2)) }
	gap := good()
	gap.Records[1].OffsetDelta = 5
	compressedGap := good()
	compressedGap.Records[1].OffsetDelta, compressedGap.Codec = 5, kafkatest.LZ4
	late := good()
	late.MaxTimestamp = 99
	based := good()
	based.BaseOffset = 500
	sparse := good()
	sparse.LastOffsetDelta = 9
	count := good()
	count.Payload, count.Count, count.LastOffsetDelta = []byte{}, 3, 2
	broken := good()
	broken.Codec, broken.Payload, broken.Count = kafkatest.Zstd, []byte("this is no zstd frame"), 2
	twice := append(encode(t, good())[0], encode(t, good())[0]...)
	damaged := encode(t, good())[0]
	damaged[len(damaged)-1] ^= 1
	for _, tt := range []struct {
		name string
		raw  []byte
		code *kerr.Error
		bad  int
	}{
		{"good", encode(t, good())[0], nil, 0},
		{"inner gap", encode(t, gap)[0], nil, 1},
		{"inner gap, compressed", encode(t, compressedGap)[0], kerr.InvalidRecord, 1},
		{"wrong largest timestamp", encode(t, late)[0], nil, 1},
		{"base offset", encode(t, based)[0], kerr.InvalidRecord, 1},
		{"sparse", encode(t, sparse)[0], kerr.InvalidRecord, 1},
		{"count above the records", encode(t, count)[0], kerr.InvalidRecord, 1},
		{"undecodable", encode(t, broken)[0], kerr.InvalidRecord, 1},
		{"two batches", twice, kerr.InvalidRecord, 1},
		{"nothing", []byte{}, kerr.InvalidRecord, 1},
		{"damaged", damaged, kerr.CorruptMessage, 0},
	} {
		answer, err := p.sendRaw(ctx, 1000, tt.raw)
		must(t, err)
		want := int16(0)
		if tt.code != nil {
			want = tt.code.Code
		}
		if answer.ErrorCode != want {
			t.Errorf("%s: code %d, want %d", tt.name, answer.ErrorCode, want)
		}
		if bad := c.BadBatches(); len(bad) != tt.bad || (len(bad) == 1 && (bad[0].Refused != (want != 0) || bad[0].Topic != "a")) {
			t.Errorf("%s: bad batches %v", tt.name, bad)
		}
		c.ForgetBadBatches()
	}
}
