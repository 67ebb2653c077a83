package mirror_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"apograph/internal/kafkatest"
)

// consume makes a consumer of orders a member of a group and returns when it has
// partitions. It commits nothing.
func consume(t *testing.T, on kafkatest.Bootstrap, group string, options ...kgo.Opt) *kgo.Client {
	t.Helper()
	assigned := make(chan struct{}, 1)
	client := on.NewClient(t, append([]kgo.Opt{
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
	case <-t.Context().Done():
		t.Fatalf("group %s: no partitions", group)
	}
	return client
}

// join makes a member with a protocol type of its own, as Connect workers have.
func join(t *testing.T, on kafkatest.Bootstrap, group, protocolType string) {
	t.Helper()
	client := on.NewClient(t)
	request := kmsg.NewPtrJoinGroupRequest()
	request.Group, request.ProtocolType = group, protocolType
	request.SessionTimeoutMillis, request.RebalanceTimeoutMillis = 30_000, 30_000
	protocol := kmsg.NewJoinGroupRequestProtocol()
	protocol.Name = "p"
	request.Protocols = append(request.Protocols, protocol)
	for range 2 {
		answer, err := request.RequestWith(t.Context(), client)
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
func share(t *testing.T, on kafkatest.Bootstrap, group string) {
	t.Helper()
	request := kmsg.NewPtrShareGroupHeartbeatRequest()
	request.GroupID, request.MemberID, request.MemberEpoch = group, "AAAAAAAAAAAAAAAAAAAAAA", 0
	request.SubscribedTopicNames = []string{"orders"}
	answer, err := request.RequestWith(t.Context(), on.NewClient(t))
	if err == nil {
		err = kerr.ErrorForCode(answer.ErrorCode)
	}
	if err != nil {
		t.Fatalf("share group: %v", err)
	}
}

// elsewhere returns a group that another broker of the source coordinates.
func (w *groupWorld) elsewhere(group string) string {
	w.t.Helper()
	admin := kadm.NewClient(w.pair.Source.NewClient(w.t))
	ids := []string{group}
	for i := range 20 {
		ids = append(ids, fmt.Sprintf("%s%d", group, i))
	}
	found := admin.FindGroupCoordinators(w.t.Context(), ids...)
	for _, id := range ids {
		if found[id].NodeID != found[group].NodeID {
			return id
		}
	}
	w.t.Fatalf("all groups have one coordinator: %+v", found)
	return ""
}
