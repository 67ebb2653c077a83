package kafkatest

import (
	"context"
	"fmt"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// Append appends records as one producer would: one batch for each partition,
// in the order given.
func (b Bootstrap) Append(ctx context.Context, codec Codec, records ...*kgo.Record) error {
	p, err := b.Producer(codec)
	if err != nil {
		return err
	}
	defer p.Close()
	return p.Append(ctx, records...)
}

// AppendTransaction appends records in one transaction and ends it.
func (b Bootstrap) AppendTransaction(ctx context.Context, id string, commit bool, records ...*kgo.Record) error {
	p, err := b.TransactionalProducer(id, None)
	if err != nil {
		return err
	}
	defer p.Close()
	if err := p.Begin(); err != nil {
		return err
	}
	if err := p.Append(ctx, records...); err != nil {
		return err
	}
	return p.End(ctx, commit)
}

// AppendBatch produces the bytes of one batch as they are and returns the base
// offset of the answer. An error code in the answer is the error. For batches
// with fields of one's own choice; what a broker would not take goes into a fake
// log with EditLog.
func (b Bootstrap) AppendBatch(ctx context.Context, topic string, partition int32, batch []byte) (int64, error) {
	client, err := b.Client()
	if err != nil {
		return -1, err
	}
	defer client.Close()
	found, err := topicMetadata(ctx, client, topic)
	if err != nil {
		return -1, err
	}
	leaders, err := partitionLeaders(ctx, client, topic)
	if err != nil {
		return -1, err
	}
	if partition < 0 || int(partition) >= len(leaders) || leaders[partition] < 0 {
		return -1, fmt.Errorf("append batch to %s:%d: no leader", topic, partition)
	}
	answer, err := produceBatch(ctx, client.Broker(int(leaders[partition])), found, partition, nil, batch)
	if err != nil {
		return -1, fmt.Errorf("append batch to %s:%d: %w", topic, partition, err)
	}
	return answer.BaseOffset, nil
}

// produceBatch sends one produce request. The answer is returned beside an
// error code's error.
func produceBatch(ctx context.Context, broker *kgo.Broker, topic kmsg.MetadataResponseTopic, partition int32, txnID *string, batch []byte) (kmsg.ProduceResponseTopicPartition, error) {
	request := kmsg.NewPtrProduceRequest()
	request.TransactionID, request.Acks, request.TimeoutMillis = txnID, -1, 10_000
	t := kmsg.NewProduceRequestTopic()
	t.Topic, t.TopicID = *topic.Topic, topic.TopicID
	p := kmsg.NewProduceRequestTopicPartition()
	p.Partition, p.Records = partition, batch
	t.Partitions = append(t.Partitions, p)
	request.Topics = append(request.Topics, t)

	var none kmsg.ProduceResponseTopicPartition
	answer, err := broker.Request(ctx, request)
	if err != nil {
		return none, err
	}
	response, ok := answer.(*kmsg.ProduceResponse)
	if !ok || len(response.Topics) != 1 || len(response.Topics[0].Partitions) != 1 {
		return none, fmt.Errorf("unexpected answer %T", answer)
	}
	return response.Topics[0].Partitions[0], kerr.ErrorForCode(response.Topics[0].Partitions[0].ErrorCode)
}
