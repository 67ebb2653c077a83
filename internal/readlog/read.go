package readlog

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"apograph/internal/connect"
	"apograph/internal/pace"
)

// ErrNoTopic: the cluster has no topic of the name, or does not show it.
var ErrNoTopic = errors.New("there is no such topic")

const (
	patience   = 15 * time.Second       // for how long a broker that has no answer is asked again
	interval   = 200 * time.Millisecond // between two tries
	fetchBytes = 8 << 20
	fetchWait  = 500 * time.Millisecond

	// emptyAnswers in a row of a leader whose high watermark has reached the end mean
	// that a cleaner has emptied the end of the log: LocalLog.read returns nothing
	// only where no batch follows below the high watermark, and that of a new leader
	// may be lower for a while. What lies in remote storage may come late, but no
	// compacted topic does (KIP-405).
	emptyAnswers = 3
)

// A Record is one of a partition, control records left out. Its bytes are the
// receiver's.
type Record struct {
	Offset     int64
	Time       time.Time
	Key, Value []byte // nil: null

	// Err is not nil if a batch that begins at Offset cannot be decoded: then
	// there is nothing else.
	Err error
}

// A Log is what was read.
type Log struct {
	ClusterID  string
	Partitions int   // of the topic
	Start, End int64 // log start and high watermark of the partition when the reading began
}

// Read hands the records of partition 0 of a topic to each, in order. The error is
// one of [connect.Cluster.Open], or wraps [ErrNoTopic], or says what was not
// answered.
func Read(ctx context.Context, cluster connect.Cluster, topic string, each func(Record)) (Log, error) {
	client, id, err := cluster.Open(ctx, kgo.RetryTimeout(patience), kgo.MetadataMinAge(interval), kgo.DisableClientMetrics())
	if err != nil {
		return Log{}, err
	}
	defer client.Close()
	r := &reader{client: client, topic: topic, each: each, decompressor: kgo.DefaultDecompressor()}
	r.log.ClusterID = id
	if err := r.read(ctx); err != nil {
		if ctx.Err() != nil {
			return r.log, context.Cause(ctx)
		}
		return r.log, fmt.Errorf("read %s on %s: %w", topic, cluster.Alias, err)
	}
	return r.log, nil
}

type reader struct {
	client       *kgo.Client
	topic        string
	each         func(Record)
	decompressor kgo.Decompressor

	log      Log
	id       [16]byte
	leader   int32
	position int64
}

func (r *reader) read(ctx context.Context) error {
	if err := r.again(ctx, r.find); err != nil {
		return err
	}
	if err := r.bounds(ctx); err != nil {
		return err
	}
	r.position = r.log.Start
	for empty := 0; r.position < r.log.End && empty < emptyAnswers; {
		before := r.position
		if err := r.again(ctx, r.fetch); err != nil {
			return fmt.Errorf("at offset %d: %w", r.position, err)
		}
		if empty++; r.position > before {
			empty = 0
		}
	}
	return nil
}

// again repeats a step as long as its error may pass. Where the partition's leader
// is, is asked anew each time.
func (r *reader) again(ctx context.Context, step func(context.Context) error) error {
	deadline := time.Now().Add(patience)
	for {
		err := step(ctx)
		if err == nil || !passes(err) || ctx.Err() != nil || time.Now().After(deadline) {
			return err
		}
		if err := pace.Pause(ctx, interval); err != nil {
			return err
		}
		if found := r.find(ctx); found != nil && !passes(found) {
			return found
		}
	}
}

// passes reports whether an error may be gone when it is asked again: all that is
// no broker's refusal, and what Kafka says of those that are. That there is no
// such topic is not asked twice, since it is the usual answer.
func passes(err error) bool {
	var refused *kerr.Error
	return !errors.Is(err, ErrNoTopic) && (!errors.As(err, &refused) || refused.Retriable)
}

// find asks where the partition is.
func (r *reader) find(ctx context.Context) error {
	request := kmsg.NewPtrMetadataRequest()
	request.AllowAutoTopicCreation = false
	topic := kmsg.NewMetadataRequestTopic()
	topic.Topic = kmsg.StringPtr(r.topic)
	request.Topics = append(request.Topics, topic)
	response, err := request.RequestWith(ctx, r.client)
	if err != nil {
		return err
	}
	if len(response.Topics) != 1 {
		return ErrNoTopic
	}
	found := response.Topics[0]
	err = kerr.ErrorForCode(found.ErrorCode)
	if errors.Is(err, kerr.UnknownTopicOrPartition) {
		return ErrNoTopic
	}
	if err != nil {
		return err
	}
	r.log.Partitions, r.id = len(found.Partitions), found.TopicID
	for _, p := range found.Partitions {
		if p.Partition != 0 {
			continue
		}
		if r.leader = p.Leader; p.Leader < 0 {
			return kerr.LeaderNotAvailable
		}
		return nil
	}
	return kerr.LeaderNotAvailable
}

func (r *reader) bounds(ctx context.Context) error {
	admin := kadm.NewClient(r.client)
	for _, ask := range []struct {
		list func(context.Context, ...string) (kadm.ListedOffsets, error)
		into *int64
	}{{admin.ListStartOffsets, &r.log.Start}, {admin.ListEndOffsets, &r.log.End}} {
		listed, err := ask.list(ctx, r.topic)
		if err != nil {
			return err
		}
		offset, ok := listed.Lookup(r.topic, 0)
		if !ok {
			return ErrNoTopic
		}
		if offset.Err != nil {
			return offset.Err
		}
		*ask.into = offset.Offset
	}
	return nil
}

// fetch takes one answer of the leader, and goes on behind what was in it.
func (r *reader) fetch(ctx context.Context) error {
	answer, err := r.request(ctx)
	if err != nil {
		return err
	}
	err = kerr.ErrorForCode(answer.ErrorCode)
	switch {
	case errors.Is(err, kerr.OffsetOutOfRange) && answer.LogStartOffset > r.position:
		r.position = answer.LogStartOffset // deleted meanwhile
		return nil
	case err != nil:
		return err
	case len(answer.RecordBatches) == 0 && answer.HighWatermark < r.log.End:
		return fmt.Errorf("the leader has nothing to give, as its high watermark is %d, and the log was known to go on to %d", answer.HighWatermark, r.log.End)
	}
	return r.take(answer)
}

// take takes an answer batch by batch: kgo would pass over one that it cannot
// decode without a word as long as there is another behind it.
func (r *reader) take(answer *kmsg.FetchResponseTopicPartition) error {
	raw := answer.RecordBatches
	for begun := false; len(raw) > 0 && r.position < r.log.End; begun = true {
		batch := firstBatch(raw)
		if batch == nil && begun {
			return nil // the end of the answer, cut off by the broker
		}
		if batch == nil {
			return errors.New("the broker sends less than a batch")
		}
		raw, answer.RecordBatches = raw[len(batch):], batch
		r.takeBatch(answer)
	}
	return nil
}

func (r *reader) takeBatch(answer *kmsg.FetchResponseTopicPartition) {
	fetched, next := kgo.ProcessFetchPartition(kgo.ProcessFetchPartitionOpts{
		Offset: r.position, IsolationLevel: kgo.ReadUncommitted(), Topic: r.topic,
	}, answer, r.decompressor, nil)
	if fetched.Err == nil && next <= r.position {
		fetched.Err = errors.New("its records are not what its header says")
	}
	if fetched.Err != nil {
		r.each(Record{Offset: r.position, Err: fetched.Err})
		r.position = max(r.position, min(lastOffset(answer.RecordBatches), r.log.End)) + 1
		return
	}
	for _, record := range fetched.Records {
		if record.Offset < r.log.End {
			r.each(Record{Offset: record.Offset, Time: record.Timestamp, Key: record.Key, Value: record.Value})
		}
	}
	r.position = next
}

func (r *reader) request(ctx context.Context) (*kmsg.FetchResponseTopicPartition, error) {
	request := kmsg.NewPtrFetchRequest()
	request.ReplicaID, request.SessionEpoch = -1, -1
	request.MaxWaitMillis, request.MinBytes, request.MaxBytes = int32(fetchWait.Milliseconds()), 1, fetchBytes
	topic, partition := kmsg.NewFetchRequestTopic(), kmsg.NewFetchRequestTopicPartition()
	topic.Topic, topic.TopicID = r.topic, r.id
	partition.FetchOffset, partition.PartitionMaxBytes = r.position, fetchBytes
	topic.Partitions = append(topic.Partitions, partition)
	request.Topics = append(request.Topics, topic)
	answer, err := r.client.Broker(int(r.leader)).Request(ctx, request)
	if err != nil {
		return nil, err
	}
	response, ok := answer.(*kmsg.FetchResponse)
	if !ok {
		return nil, fmt.Errorf("unexpected answer %T", answer)
	}
	if err := kerr.ErrorForCode(response.ErrorCode); err != nil {
		return nil, err
	}
	if len(response.Topics) != 1 || len(response.Topics[0].Partitions) != 1 {
		return nil, kerr.NotLeaderForPartition // it has the topic no more
	}
	return &response.Topics[0].Partitions[0], nil
}
