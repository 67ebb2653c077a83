package main

import (
	"context"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"apograph/internal/kafkatest"
)

// mustConsume makes a consumer of orders a member of a group and returns when
// it has partitions. It commits nothing.
func mustConsume(t *testing.T, on kafkatest.Bootstrap, group string, options ...kgo.Opt) *kgo.Client {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	assigned := make(chan struct{}, 1)
	client := on.NewClient(t, append([]kgo.Opt{
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
	}, options...)...)
	select {
	case <-assigned:
	case <-ctx.Done():
		t.Fatalf("group %s: no partitions: %v", group, ctx.Err())
	}
	return client
}

// mustShare makes a share group with a member.
func mustShare(t *testing.T, on kafkatest.Bootstrap, group string) {
	t.Helper()
	request := kmsg.NewPtrShareGroupHeartbeatRequest()
	request.GroupID, request.MemberID = group, "AAAAAAAAAAAAAAAAAAAAAA"
	request.SubscribedTopicNames = []string{"orders"}
	answer, err := request.RequestWith(t.Context(), on.NewClient(t))
	if err == nil {
		err = kerr.ErrorForCode(answer.ErrorCode)
	}
	if err != nil {
		t.Fatalf("share group %s: %v", group, err)
	}
}
