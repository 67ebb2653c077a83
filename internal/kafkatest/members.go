package kafkatest

import (
	"context"
	"errors"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// memberTimeout is for how long a member that is heard of no more stays one, in
// milliseconds: longer than a test takes.
const memberTimeout = 60_000

// Consume makes a consumer of topic orders a member of a group and returns when it
// has partitions. It commits nothing. The client is closed with the test.
func (b Bootstrap) Consume(ctx context.Context, t TB, group string, options ...kgo.Opt) *kgo.Client {
	t.Helper()
	assigned := make(chan struct{}, 1)
	client := b.NewClient(t, append([]kgo.Opt{
		kgo.ConsumerGroup(group), kgo.ConsumeTopics("orders"), kgo.DisableAutoCommit(),
		kgo.OnPartitionsAssigned(func(_ context.Context, _ *kgo.Client, got map[string][]int32) {
			if len(got) > 0 {
				select {
				case assigned <- struct{}{}:
				default:
				}
			}
		}),
	}, options...)...)
	select {
	case <-assigned:
	case <-ctx.Done():
		t.Fatalf("group %s: no partitions: %v", group, ctx.Err())
	}
	return client
}

// Join makes a member with a protocol type of its own, as Connect workers have.
func (b Bootstrap) Join(ctx context.Context, t TB, group, protocolType string) {
	t.Helper()
	client := b.NewClient(t)
	request := kmsg.NewPtrJoinGroupRequest()
	request.Group, request.ProtocolType = group, protocolType
	request.SessionTimeoutMillis, request.RebalanceTimeoutMillis = memberTimeout, memberTimeout
	protocol := kmsg.NewJoinGroupRequestProtocol()
	protocol.Name = "p"
	request.Protocols = append(request.Protocols, protocol)
	for range 2 {
		answer, err := request.RequestWith(ctx, client)
		if err != nil {
			t.Fatalf("group %s: join: %v", group, err)
		}
		request.MemberID = answer.MemberID
		if err := kerr.ErrorForCode(answer.ErrorCode); err == nil {
			return
		} else if !errors.Is(err, kerr.MemberIDRequired) {
			t.Fatalf("group %s: join: %v", group, err)
		}
	}
	t.Fatalf("group %s: not joined", group)
}

// Share makes a share group of topic orders with one member.
func (b Bootstrap) Share(ctx context.Context, t TB, group string) {
	t.Helper()
	request := kmsg.NewPtrShareGroupHeartbeatRequest()
	request.GroupID, request.MemberID, request.MemberEpoch = group, "AAAAAAAAAAAAAAAAAAAAAA", 0
	request.SubscribedTopicNames = []string{"orders"}
	answer, err := request.RequestWith(ctx, b.NewClient(t))
	if err == nil {
		err = kerr.ErrorForCode(answer.ErrorCode)
	}
	if err != nil {
		t.Fatalf("share group %s: %v", group, err)
	}
}
