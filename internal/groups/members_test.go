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

// consume makes a kgo consumer of orders a member of a group and returns when
// it has partitions.
func consume(ctx context.Context, t *testing.T, on kafkatest.Bootstrap, group string, options ...kgo.Opt) *kgo.Client {
	t.Helper()
	assigned := make(chan struct{}, 1)
	options = append([]kgo.Opt{
		kgo.ConsumerGroup(group), kgo.ConsumeTopics("orders"), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
		kgo.DisableAutoCommit(),
		kgo.OnPartitionsAssigned(func(_ context.Context, _ *kgo.Client, got map[string][]int32) {
			if len(got) > 0 {
				select {
				case assigned <- struct{}{}:
				default:
				}
			}
		}),
	}, options...)
	client := on.NewClient(t, options...)
	select {
	case <-assigned:
	case <-ctx.Done():
		t.Fatalf("group %s: no partitions: %v", group, ctx.Err())
	}
	return client
}

// join makes a member with a protocol type of its own, as Connect workers have.
func join(ctx context.Context, t *testing.T, on kafkatest.Bootstrap, group, protocolType string) {
	t.Helper()
	client := on.NewClient(t)
	request := kmsg.NewPtrJoinGroupRequest()
	request.Group, request.ProtocolType = group, protocolType
	request.SessionTimeoutMillis, request.RebalanceTimeoutMillis = 30_000, 30_000
	protocol := kmsg.NewJoinGroupRequestProtocol()
	protocol.Name = "p"
	request.Protocols = append(request.Protocols, protocol)
	for range 2 {
		answer, err := request.RequestWith(ctx, client)
		if err != nil {
			t.Fatal(err)
		}
		request.MemberID = answer.MemberID
		if err := kerr.ErrorForCode(answer.ErrorCode); err == nil {
			return
		} else if !errors.Is(err, kerr.MemberIDRequired) {
			t.Fatal(err)
		}
	}
	t.Fatalf("group %s: not joined", group)
}

// share makes a share group with one member.
func share(ctx context.Context, t *testing.T, on kafkatest.Bootstrap, group string) {
	t.Helper()
	request := kmsg.NewPtrShareGroupHeartbeatRequest()
	request.GroupID, request.MemberID, request.MemberEpoch = group, "AAAAAAAAAAAAAAAAAAAAAA", 0
	request.SubscribedTopicNames = []string{"orders"}
	answer, err := request.RequestWith(ctx, on.NewClient(t))
	if err == nil {
		err = kerr.ErrorForCode(answer.ErrorCode)
	}
	if err != nil {
		t.Fatalf("share group: %v", err)
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
