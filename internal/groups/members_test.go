package groups_test

import (
	"context"
	"errors"
	"testing"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"apograph/internal/groups"
	"apograph/internal/kafkatest"
)

// commit commits as any administrator would, not through the code under test.
func commit(ctx context.Context, t *testing.T, on kafkatest.Bootstrap, group, topic string, partition int32, offset int64) {
	t.Helper()
	admin := kadm.NewClient(on.NewClient(t))
	answer, err := admin.CommitOffsets(ctx, group, kadm.Offsets{topic: {partition: {
		Topic: topic, Partition: partition, At: offset, LeaderEpoch: 7, Metadata: "by hand",
	}}})
	if err := errors.Join(err, answer.Error()); err != nil {
		t.Fatal(err)
	}
}

// pending adds an offset of a group for orders-0 to the open transaction of a
// client, as sendOffsetsToTransaction does.
func pending(ctx context.Context, t *testing.T, client *kgo.Client, transactionalID string, topicID [16]byte, group string, offset int64) {
	t.Helper()
	id, epoch, err := client.ProducerID(ctx)
	if err != nil {
		t.Fatal(err)
	}
	add := kmsg.NewPtrAddOffsetsToTxnRequest()
	add.TransactionalID, add.ProducerID, add.ProducerEpoch, add.Group = transactionalID, id, epoch, group
	added, err := add.RequestWith(ctx, client)
	if err == nil {
		err = kerr.ErrorForCode(added.ErrorCode)
	}
	if err != nil {
		t.Fatal(err)
	}
	commit := kmsg.NewPtrTxnOffsetCommitRequest()
	commit.TransactionalID, commit.ProducerID, commit.ProducerEpoch, commit.Group = transactionalID, id, epoch, group
	commit.Generation = -1
	topic := kmsg.NewTxnOffsetCommitRequestTopic()
	topic.Topic, topic.TopicID = "orders", topicID
	partition := kmsg.NewTxnOffsetCommitRequestTopicPartition()
	partition.Offset = offset
	topic.Partitions = append(topic.Partitions, partition)
	commit.Topics = append(commit.Topics, topic)
	committed, err := commit.RequestWith(ctx, client)
	if err == nil {
		err = kerr.ErrorForCode(committed.Topics[0].Partitions[0].ErrorCode)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// wish returns a commit for orders-0 of a group that has committed nothing.
func wish(topicID [16]byte, group string, offset int64) groups.Commit {
	return groups.Commit{
		Group: group, Partition: groups.Partition{Topic: "orders"}, TopicID: topicID,
		Offset: offset, Metadata: "kept " + group, Seen: groups.NoOffset,
	}
}
