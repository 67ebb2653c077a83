package kafkatest_test

import (
	"context"
	"hash/crc32"
	"testing"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"apograph/internal/kafkatest"
)

// bareKfake starts kfake without this package's corrections.
func bareKfake(t *testing.T, opts ...kfake.Opt) *kfake.Cluster {
	t.Helper()
	c, err := kfake.NewCluster(append([]kfake.Opt{kfake.NumBrokers(1)}, opts...)...)
	must(t, err)
	t.Cleanup(c.Close)
	return c
}

func bareClient(t *testing.T, c *kfake.Cluster) *kgo.Client {
	t.Helper()
	client, err := kgo.NewClient(kgo.SeedBrokers(c.ListenAddrs()...), kgo.RequestRetries(0))
	must(t, err)
	t.Cleanup(client.Close)
	return client
}

func bareProducer(t *testing.T, c *kfake.Cluster, topic string) *rawProducer {
	t.Helper()
	must(t, c.CreateTopic(topic, 1, nil))
	id := c.TopicInfo(topic).TopicID
	return &rawProducer{client: bareClient(t, c), topic: kmsg.MetadataResponseTopic{Topic: &topic, TopicID: id}, leader: 0}
}

// TestKfakeStillDiffers holds the points of the package comment. When one of
// them fails, kfake has changed: correct the comment, and drop the correction if
// there is one.
func TestKfakeStillDiffers(t *testing.T) {
	for name, differs := range map[string]func(*testing.T, context.Context) bool{
		"base offset of a refusal":        refusalHasBaseOffset,
		"duplicate without a time":        duplicateHasNoTime,
		"corrupt instead of invalid":      sparseIsCorrupt,
		"payloads unchecked":              gapsAreStored,
		"aborted list of a cut fetch":     cutFetchLosesAborted,
		"emptied partition restarts at 0": emptiedRestartsAtZero,
		"sequence wrap":                   sequenceWrapsEarly,
		"epoch of the whole cluster":      epochFencesElsewhere,
		"never written partition":         neverWrittenRefuses,
		"end of an epoch":                 epochEndIsUnknown,
		"unknown setting":                 unknownSettingIsTaken,
		"append time with wrong checksum": appendTimeBreaksChecksum,
		"compaction moves the log start":  compactionMovesStart,
		"five duplicates after restart":   fiveDuplicatesAfterRestart,
		"marker of an old epoch":          oldMarkerIsWritten,
		"producers without transaction":   idempotentProducerIsNotListed,
		"session of a deleted topic":      sessionDoesNotForget,
	} {
		t.Run(name, func(t *testing.T) {
			if !differs(t, testContext(t)) {
				t.Errorf("kfake no longer differs: %s", name)
			}
		})
	}
}

func refusalHasBaseOffset(t *testing.T, ctx context.Context) bool {
	p := bareProducer(t, bareKfake(t), "a")
	_, err := p.send(ctx, 0, "x")
	must(t, err)
	answer, err := p.send(ctx, 7, "x")
	must(t, err)
	return answer.ErrorCode == kerr.OutOfOrderSequenceNumber.Code && answer.BaseOffset == 0
}

func duplicateHasNoTime(t *testing.T, ctx context.Context) bool {
	p := bareProducer(t, bareKfake(t), "a")
	_, err := p.send(ctx, 0, "x")
	must(t, err)
	answer, err := p.send(ctx, 0, "x")
	must(t, err)
	return answer.ErrorCode == 0 && answer.LogAppendTime == -1 && answer.LogStartOffset == -1
}

func sparseIsCorrupt(t *testing.T, ctx context.Context) bool {
	b := kafkatest.NewBatch(0, record("x", 1))
	b.LastOffsetDelta = 5
	answer, err := bareProducer(t, bareKfake(t), "a").sendRaw(ctx, 1000, encode(t, b)[0])
	must(t, err)
	return answer.ErrorCode == kerr.CorruptMessage.Code
}

func gapsAreStored(t *testing.T, ctx context.Context) bool {
	b := kafkatest.NewBatch(0, record("x", 1), record("y", 2))
	b.Codec, b.Payload, b.Count = kafkatest.LZ4, []byte("no lz4 frame"), 2
	answer, err := bareProducer(t, bareKfake(t), "a").sendRaw(ctx, 1000, encode(t, b)[0])
	must(t, err)
	return answer.ErrorCode == 0
}

func cutFetchLosesAborted(t *testing.T, ctx context.Context) bool {
	c := bareKfake(t)
	must(t, c.CreateTopic("a", 1, nil))
	b := kafkatest.Bootstrap{Addresses: c.ListenAddrs()}
	p, err := b.TransactionalProducer("x", kafkatest.None)
	must(t, err)
	defer p.Close()
	must(t, p.Begin())
	for range 3 {
		must(t, p.Append(ctx, numbered("a", 10)...))
	}
	must(t, p.End(ctx, false))
	request := kmsg.NewPtrFetchRequest()
	request.IsolationLevel, request.MaxBytes, request.SessionEpoch = 1, 250, -1
	topic := kmsg.NewFetchRequestTopic()
	topic.Topic, topic.TopicID = "a", c.TopicInfo("a").TopicID
	partition := kmsg.NewFetchRequestTopicPartition()
	partition.PartitionMaxBytes = 1 << 20
	topic.Partitions = append(topic.Partitions, partition)
	request.Topics = append(request.Topics, topic)
	answer, err := bareClient(t, c).Broker(0).Request(ctx, request)
	must(t, err)
	got := answer.(*kmsg.FetchResponse).Topics[0].Partitions[0]
	return len(got.RecordBatches) > 0 && len(got.AbortedTransactions) == 0
}

func emptiedRestartsAtZero(t *testing.T, ctx context.Context) bool {
	dir := t.TempDir()
	c := bareKfake(t, kfake.DataDir(dir))
	_, err := bareProducer(t, c, "a").send(ctx, 0, "x", "y")
	must(t, err)
	must(t, c.DeleteRecords("a", 0, -1))
	c.Close()
	return bareKfake(t, kfake.DataDir(dir)).PartitionInfo("a", 0).HighWatermark == 0
}

// sequenceWrapsEarly: two records from 2^31-2 on end at 2^31-1, and 0 is next;
// kfake expects 1.
func sequenceWrapsEarly(t *testing.T, ctx context.Context) bool {
	p := bareProducer(t, bareKfake(t), "a")
	other := kafkatest.NewBatch(0, record("first", 1))
	other.LeaderEpoch = -1
	_, err := p.sendRaw(ctx, 1000, encode(t, other)[0]) // so that it was written
	must(t, err)
	_, err = p.send(ctx, 1<<31-2, "x", "y")
	must(t, err)
	answer, err := p.send(ctx, 0, "z")
	must(t, err)
	return answer.ErrorCode == kerr.OutOfOrderSequenceNumber.Code
}

func epochFencesElsewhere(t *testing.T, ctx context.Context) bool {
	c := bareKfake(t)
	p, q := bareProducer(t, c, "a"), bareProducer(t, c, "b")
	_, err := p.send(ctx, 0, "x")
	must(t, err)
	b := kafkatest.NewBatch(0, record("x", 1))
	b.ProducerID, b.ProducerEpoch, b.BaseSequence = 4711, 1, 0
	_, err = q.sendRaw(ctx, 1000, encode(t, b)[0])
	must(t, err)
	answer, err := p.send(ctx, 1, "y")
	must(t, err)
	return answer.ErrorCode == kerr.InvalidProducerEpoch.Code
}

func neverWrittenRefuses(t *testing.T, ctx context.Context) bool {
	answer, err := bareProducer(t, bareKfake(t), "a").send(ctx, 77, "x")
	must(t, err)
	return answer.ErrorCode == kerr.OutOfOrderSequenceNumber.Code
}

func epochEndIsUnknown(t *testing.T, ctx context.Context) bool {
	c := bareKfake(t)
	_, err := bareProducer(t, c, "a").send(ctx, 0, "x")
	must(t, err)
	must(t, c.MoveTopicPartition("a", 0, 0))
	epoch, end := epochEnd(t, ctx, bareClient(t, c), "a", 0)
	return epoch == -1 && end == -1
}

// epochEnd asks node 0 where a leader epoch of a partition ends.
func epochEnd(t *testing.T, ctx context.Context, client *kgo.Client, topic string, epoch int32) (int32, int64) {
	t.Helper()
	request := kmsg.NewPtrOffsetForLeaderEpochRequest()
	request.ReplicaID = -1
	asked := kmsg.NewOffsetForLeaderEpochRequestTopic()
	asked.Topic = topic
	partition := kmsg.NewOffsetForLeaderEpochRequestTopicPartition()
	partition.CurrentLeaderEpoch, partition.LeaderEpoch = -1, epoch
	asked.Partitions = append(asked.Partitions, partition)
	request.Topics = append(request.Topics, asked)
	answer, err := client.SeedBrokers()[0].Request(ctx, request)
	must(t, err)
	got := answer.(*kmsg.OffsetForLeaderEpochResponse).Topics[0].Partitions[0]
	must(t, kerr.ErrorForCode(got.ErrorCode))
	return got.LeaderEpoch, got.EndOffset
}

// TestLostTail is D24 of the worked cases in small: a leader with less takes
// over, and later writes something else.
func TestLostTail(t *testing.T) {
	c := kafkatest.NewCluster(t, kafkatest.ClusterOptions{DataDir: t.TempDir()})
	ctx := testContext(t)
	must(t, c.CreateTopic(ctx, "a", 1, nil)) // epoch 1
	must(t, c.Append(ctx, kafkatest.None, numbered("a", 3)...))
	must(t, c.Append(ctx, kafkatest.None, numbered("a", 2)...))
	if err := c.LoseTail("a", 0, 4); err == nil {
		t.Error("a batch can be cut in two")
	}
	must(t, c.LoseTail("a", 0, 3))
	client := c.NewClient(t)
	if epoch, end := epochEnd(t, ctx, client, "a", 1); epoch != 1 || end != 3 {
		t.Errorf("epoch 1 ends as %d at %d, want at 3", epoch, end)
	}
	if epoch, end := epochEnd(t, ctx, client, "a", 2); epoch != 2 || end != 3 {
		t.Errorf("the current epoch ends as %d at %d, want 2 at 3", epoch, end)
	}
	must(t, c.Append(ctx, kafkatest.None, numbered("a", 1)...))
	if epoch, end := epochEnd(t, ctx, client, "a", 1); epoch != 1 || end != 3 {
		t.Errorf("epoch 1 ends as %d at %d after an append, want at 3", epoch, end)
	}
	records, err := c.ReadCommitted(ctx, "a", 0)
	must(t, err)
	equal(t, "records", values(records), []string{"0=r0", "1=r1", "2=r2", "3=r0"})
}

func unknownSettingIsTaken(t *testing.T, ctx context.Context) bool {
	b := kafkatest.Bootstrap{Addresses: bareKfake(t).ListenAddrs()}
	return b.CreateTopic(ctx, "a", 1, map[string]string{"no.such.setting": "1"}) == nil
}

func appendTimeBreaksChecksum(t *testing.T, ctx context.Context) bool {
	c := bareKfake(t)
	b := kafkatest.NewBatch(0, record("x", 1))
	b.Attributes |= kafkatest.AttrLogAppendTime
	_, err := bareProducer(t, c, "a").sendRaw(ctx, 1000, encode(t, b)[0])
	must(t, err)
	raw := fetchRaw(t, ctx, c, "a")
	stored := uint32(raw[17])<<24 | uint32(raw[18])<<16 | uint32(raw[19])<<8 | uint32(raw[20])
	return stored != crc32.Checksum(raw[21:], crc32.MakeTable(crc32.Castagnoli))
}

// fetchRaw returns what a partition holds from its log start on.
func fetchRaw(t *testing.T, ctx context.Context, c *kfake.Cluster, topic string) []byte {
	t.Helper()
	request := kmsg.NewPtrFetchRequest()
	request.MaxBytes, request.SessionEpoch = 1<<20, -1
	asked := kmsg.NewFetchRequestTopic()
	asked.Topic, asked.TopicID = topic, c.TopicInfo(topic).TopicID
	partition := kmsg.NewFetchRequestTopicPartition()
	partition.PartitionMaxBytes, partition.FetchOffset = 1<<20, c.PartitionInfo(topic, 0).LogStartOffset
	asked.Partitions = append(asked.Partitions, partition)
	request.Topics = append(request.Topics, asked)
	answer, err := bareClient(t, c).Broker(0).Request(ctx, request)
	must(t, err)
	return answer.(*kmsg.FetchResponse).Topics[0].Partitions[0].RecordBatches
}

func compactionMovesStart(t *testing.T, ctx context.Context) bool {
	c := bareKfake(t)
	must(t, c.CreateTopic("c", 1, map[string]string{"cleanup.policy": "compact"}))
	b := kafkatest.Bootstrap{Addresses: c.ListenAddrs()}
	for range 3 {
		must(t, b.Append(ctx, kafkatest.None, numbered("c", 1)...))
	}
	c.Compact()
	return c.PartitionInfo("c", 0).LogStartOffset > 0
}

func fiveDuplicatesAfterRestart(t *testing.T, ctx context.Context) bool {
	dir := t.TempDir()
	c := bareKfake(t, kfake.DataDir(dir))
	p := bareProducer(t, c, "a")
	for sequence := range int32(5) {
		_, err := p.send(ctx, sequence, "x")
		must(t, err)
	}
	c.Close()
	again := bareKfake(t, kfake.DataDir(dir))
	p.client = bareClient(t, again)
	answer, err := p.send(ctx, 0, "x")
	must(t, err)
	return answer.ErrorCode == 0 && answer.BaseOffset == 0
}

func oldMarkerIsWritten(t *testing.T, ctx context.Context) bool {
	c := bareKfake(t)
	must(t, c.CreateTopic("a", 1, nil))
	client := bareClient(t, c)
	for _, epoch := range []int16{5, 4} {
		request := kmsg.NewPtrWriteTxnMarkersRequest()
		marker := kmsg.NewWriteTxnMarkersRequestMarker()
		marker.ProducerID, marker.ProducerEpoch = 4711, epoch
		topic := kmsg.NewWriteTxnMarkersRequestMarkerTopic()
		topic.Topic, topic.Partitions = "a", []int32{0}
		marker.Topics = append(marker.Topics, topic)
		request.Markers = append(request.Markers, marker)
		_, err := client.Broker(0).Request(ctx, request)
		must(t, err)
	}
	return c.PartitionInfo("a", 0).HighWatermark == 2
}

func idempotentProducerIsNotListed(t *testing.T, ctx context.Context) bool {
	c := bareKfake(t)
	p := bareProducer(t, c, "a")
	_, err := p.send(ctx, 0, "x")
	must(t, err)
	request := kmsg.NewPtrDescribeProducersRequest()
	topic := kmsg.NewDescribeProducersRequestTopic()
	topic.Topic, topic.Partitions = "a", []int32{0}
	request.Topics = append(request.Topics, topic)
	answer, err := p.client.Broker(0).Request(ctx, request)
	must(t, err)
	return len(answer.(*kmsg.DescribeProducersResponse).Topics[0].Partitions[0].ActiveProducers) == 0
}

func sessionDoesNotForget(t *testing.T, ctx context.Context) bool {
	c := bareKfake(t)
	must(t, c.CreateTopic("a", 1, nil))
	client, id := bareClient(t, c), c.TopicInfo("a").TopicID
	fetch := func(change func(*kmsg.FetchRequest)) *kmsg.FetchResponse {
		request := kmsg.NewPtrFetchRequest()
		request.ReplicaID, request.MaxBytes = -1, 1000
		change(request)
		answer, err := client.Broker(0).Request(ctx, request)
		must(t, err)
		return answer.(*kmsg.FetchResponse)
	}
	first := fetch(func(r *kmsg.FetchRequest) {
		topic, p := kmsg.NewFetchRequestTopic(), kmsg.NewFetchRequestTopicPartition()
		topic.TopicID, p.CurrentLeaderEpoch, p.PartitionMaxBytes = id, -1, 1000
		topic.Partitions = append(topic.Partitions, p)
		r.SessionEpoch, r.Topics = 0, append(r.Topics, topic)
	})
	_, err := kadm.NewClient(client).DeleteTopics(ctx, "a")
	must(t, err)
	fetch(func(r *kmsg.FetchRequest) {
		forgotten := kmsg.NewFetchRequestForgottenTopic()
		forgotten.TopicID, forgotten.Partitions = id, []int32{0}
		r.SessionID, r.SessionEpoch, r.ForgottenTopics = first.SessionID, 1, append(r.ForgottenTopics, forgotten)
	})
	last := fetch(func(r *kmsg.FetchRequest) { r.SessionID, r.SessionEpoch = first.SessionID, 2 })
	return first.SessionID != 0 && last.ErrorCode == 0 && len(last.Topics) == 1
}

// TestAbortedListSurvivesSmallFetches reads a partition whose aborted
// transaction is larger than a whole fetch may be.
func TestAbortedListSurvivesSmallFetches(t *testing.T) {
	c := kafkatest.NewCluster(t, kafkatest.ClusterOptions{})
	ctx := testContext(t)
	must(t, c.CreateTopic(ctx, "a", 1, nil))
	p, err := c.TransactionalProducer("x", kafkatest.None)
	must(t, err)
	defer p.Close()
	must(t, p.Begin())
	for range 3 {
		must(t, p.Append(ctx, numbered("a", 10)...))
	}
	must(t, p.End(ctx, false))
	must(t, c.Append(ctx, kafkatest.None, numbered("a", 1)...))
	consumer := c.NewClient(t, kgo.FetchMaxBytes(250), kgo.FetchMaxPartitionBytes(250),
		kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{"a": {0: kgo.NewOffset().AtStart()}}))
	fetches := consumer.PollFetches(ctx)
	must(t, fetches.Err())
	if got := fetches.Records(); len(got) != 1 || got[0].Offset != 31 {
		t.Errorf("a read_committed consumer gets %d records, the first at %d", len(got), got[0].Offset)
	}
}
