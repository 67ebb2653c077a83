package kafkatest

import (
	"context"
	"encoding/binary"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// A Record is one record as a consumer gets it. Nil keys, values and header
// values are null; empty ones are not nil.
type Record struct {
	Offset     int64
	Timestamp  int64 // milliseconds
	Key, Value []byte
	Headers    []Header
}

// A logRecord is what the oracle knows of one offset.
type logRecord struct {
	Record
	control       bool
	commit        bool // of a control record: a commit marker
	transactional bool
	producerID    int64
}

// Bounds are the offsets that a partition has.
type Bounds struct {
	LogStart      int64
	LastStable    int64 // offsets from here on are not decided yet
	HighWatermark int64
}

// ReadBounds asks the leader of a partition for its bounds.
func (b Bootstrap) ReadBounds(ctx context.Context, topic string, partition int32) (Bounds, error) {
	client, err := b.Client()
	if err != nil {
		return Bounds{}, err
	}
	defer client.Close()
	return readBounds(ctx, client, topic, partition)
}

func readBounds(ctx context.Context, client *kgo.Client, topic string, partition int32) (Bounds, error) {
	admin := kadm.NewClient(client)
	var bounds Bounds
	for _, ask := range []struct {
		list func(context.Context, ...string) (kadm.ListedOffsets, error)
		into *int64
	}{
		{admin.ListStartOffsets, &bounds.LogStart},
		{admin.ListCommittedOffsets, &bounds.LastStable},
		{admin.ListEndOffsets, &bounds.HighWatermark},
	} {
		listed, err := ask.list(ctx, topic)
		if err != nil {
			return Bounds{}, fmt.Errorf("bounds of %s:%d: %w", topic, partition, err)
		}
		found, ok := listed.Lookup(topic, partition)
		if !ok {
			return Bounds{}, fmt.Errorf("bounds of %s:%d: no such partition", topic, partition)
		}
		if found.Err != nil {
			return Bounds{}, fmt.Errorf("bounds of %s:%d: %w", topic, partition, found.Err)
		}
		*ask.into = found.Offset
	}
	return bounds, nil
}

// WaitDecided returns when no partition of a topic has an open transaction:
// last stable offset and high watermark are the same. Real brokers write the
// markers a little after a transaction has ended.
func (b Bootstrap) WaitDecided(ctx context.Context, topic string) error {
	n, err := b.partitions(ctx, topic)
	if err != nil {
		return err
	}
	return poll(ctx, 20*time.Millisecond, func() error {
		for p := range int32(n) {
			bounds, err := b.ReadBounds(ctx, topic, p)
			if err != nil {
				return err
			}
			if bounds.LastStable != bounds.HighWatermark {
				return fmt.Errorf("%s:%d has an open transaction at %d", topic, p, bounds.LastStable)
			}
		}
		return nil
	})
}

// ReadCommitted returns the records of a partition from its log start to its
// last stable offset as a read_committed consumer gets them: without markers
// and without records of aborted transactions.
func (b Bootstrap) ReadCommitted(ctx context.Context, topic string, partition int32) ([]Record, error) {
	return b.readRecords(ctx, topic, partition, kgo.ReadCommitted())
}

// ReadUncommitted is the same up to the high watermark, with aborted records
// and those of open transactions.
func (b Bootstrap) ReadUncommitted(ctx context.Context, topic string, partition int32) ([]Record, error) {
	return b.readRecords(ctx, topic, partition, kgo.ReadUncommitted())
}

func (b Bootstrap) readRecords(ctx context.Context, topic string, partition int32, level kgo.IsolationLevel) ([]Record, error) {
	client, err := b.Client()
	if err != nil {
		return nil, err
	}
	defer client.Close()
	all, _, err := readLog(ctx, client, topic, partition, level)
	if err != nil {
		return nil, err
	}
	var records []Record
	for _, r := range all {
		if !r.control {
			records = append(records, r.Record)
		}
	}
	return records, nil
}

// readLog reads a partition from its log start to the end that the isolation
// level has now. It fetches one partition a request and lets kgo's consumer code
// decode the answer, so it sees what a kgo consumer sees, but knows where it
// stands: a consumer never says that it has reached an end that lies behind
// removed records.
func readLog(ctx context.Context, client *kgo.Client, topic string, partition int32, level kgo.IsolationLevel) ([]logRecord, Bounds, error) {
	bounds, err := readBounds(ctx, client, topic, partition)
	if err != nil {
		return nil, Bounds{}, err
	}
	end := bounds.HighWatermark
	if level == kgo.ReadCommitted() {
		end = bounds.LastStable
	}
	found, err := topicMetadata(ctx, client, topic)
	if err != nil {
		return nil, Bounds{}, err
	}
	var records []logRecord
	for position := bounds.LogStart; position < end; {
		more, next, err := fetchOnce(ctx, client, found, partition, position, level)
		if err != nil {
			return nil, Bounds{}, fmt.Errorf("read %s:%d at %d: %w", topic, partition, position, err)
		}
		if next <= position { // the leader has nothing yet, or has moved
			if found, err = afterPause(ctx, client, topic); err != nil {
				return nil, Bounds{}, fmt.Errorf("read %s:%d at %d of %d: %w", topic, partition, position, end, err)
			}
			continue
		}
		for _, r := range more {
			if r.Offset < end {
				records = append(records, r)
			}
		}
		position = next
	}
	return records, bounds, nil
}

func afterPause(ctx context.Context, client *kgo.Client, topic string) (kmsg.MetadataResponseTopic, error) {
	timer := time.NewTimer(20 * time.Millisecond)
	defer timer.Stop()
	select {
	case <-timer.C:
		return topicMetadata(ctx, client, topic)
	case <-ctx.Done():
		return kmsg.MetadataResponseTopic{}, context.Cause(ctx)
	}
}

// fetchOnce returns the records of one fetch, markers included, and the next
// position. A partition that has no data or another leader gives none and the
// same position.
func fetchOnce(ctx context.Context, client *kgo.Client, topic kmsg.MetadataResponseTopic, partition int32, position int64, level kgo.IsolationLevel) ([]logRecord, int64, error) {
	leader := int32(-1)
	for _, p := range topic.Partitions {
		if p.Partition == partition {
			leader = p.Leader
		}
	}
	if leader < 0 {
		return nil, position, nil
	}
	answer, err := client.Broker(int(leader)).RetriableRequest(ctx, fetchRequest(topic, partition, position, level))
	if err != nil {
		return nil, position, err
	}
	response, ok := answer.(*kmsg.FetchResponse)
	if !ok {
		return nil, position, fmt.Errorf("unexpected answer %T", answer)
	}
	if err := kerr.ErrorForCode(response.ErrorCode); err != nil {
		return nil, position, err
	}
	if len(response.Topics) != 1 || len(response.Topics[0].Partitions) != 1 {
		return nil, position, fmt.Errorf("answer holds %d topics", len(response.Topics))
	}
	return processFetched(*topic.Topic, &response.Topics[0].Partitions[0], position, level)
}

// fetchRequest asks for one partition outside any session.
func fetchRequest(topic kmsg.MetadataResponseTopic, partition int32, position int64, level kgo.IsolationLevel) *kmsg.FetchRequest {
	request := kmsg.NewPtrFetchRequest()
	request.ReplicaID, request.SessionEpoch = -1, -1
	request.MaxWaitMillis, request.MinBytes, request.MaxBytes = 500, 1, 1<<30
	if level == kgo.ReadCommitted() {
		request.IsolationLevel = 1
	}
	t := kmsg.NewFetchRequestTopic()
	t.Topic, t.TopicID = *topic.Topic, topic.TopicID
	p := kmsg.NewFetchRequestTopicPartition()
	p.Partition, p.FetchOffset, p.PartitionMaxBytes = partition, position, 8<<20
	t.Partitions = append(t.Partitions, p)
	request.Topics = append(request.Topics, t)
	return request
}

func processFetched(topic string, p *kmsg.FetchResponseTopicPartition, position int64, level kgo.IsolationLevel) ([]logRecord, int64, error) {
	if p.ErrorCode == kerr.NotLeaderForPartition.Code {
		return nil, position, nil
	}
	fetched, next := kgo.ProcessFetchPartition(kgo.ProcessFetchPartitionOpts{
		KeepControlRecords: true,
		Offset:             position,
		IsolationLevel:     level,
		Topic:              topic,
		Partition:          p.Partition,
	}, p, NewDecompressor(), nil)
	if fetched.Err != nil {
		return nil, position, fetched.Err
	}
	records := make([]logRecord, 0, len(fetched.Records))
	for _, r := range fetched.Records {
		record, err := logRecordOf(r)
		if err != nil {
			return nil, position, err
		}
		records = append(records, record)
	}
	return records, next, nil
}

// logRecordOf reads the type of a marker from its key: version, then type, two
// bytes each (ControlRecordType).
func logRecordOf(r *kgo.Record) (logRecord, error) {
	l := logRecord{
		Record:        recordOf(r),
		control:       r.Attrs.IsControl(),
		transactional: r.Attrs.IsTransactional(),
		producerID:    r.ProducerID,
	}
	if !l.control {
		return l, nil
	}
	if len(r.Key) < 4 {
		return l, fmt.Errorf("control record at %d has key %x", r.Offset, r.Key)
	}
	switch kind := binary.BigEndian.Uint16(r.Key[2:]); kind {
	case 0:
	case 1:
		l.commit = true
	default:
		return l, fmt.Errorf("control record at %d has type %d", r.Offset, kind)
	}
	return l, nil
}

func recordOf(r *kgo.Record) Record {
	record := Record{Offset: r.Offset, Timestamp: r.Timestamp.UnixMilli(), Key: r.Key, Value: r.Value}
	for _, h := range r.Headers {
		record.Headers = append(record.Headers, Header{Key: h.Key, Value: h.Value})
	}
	return record
}
