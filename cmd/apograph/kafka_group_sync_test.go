//go:build kafka

package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"apograph/internal/kafkatest"
)

// TestKafkaGroupSync lets a running flow keep groups of all kinds in step, and
// plays with their twins on the target what owners do there: join, commit, reset,
// go back. D14 and D17 of what must never happen to a group.
func TestKafkaGroupSync(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	k := kafkatest.StartKafkas(t, kafkatest.KafkaOptions{Name: "source"}, kafkatest.KafkaOptions{Name: "target"})
	s := &groupSync{t: t, ctx: ctx, source: k[0], target: k[1]}
	s.fill()
	s.kinds()
	s.members()
	s.flow = newFileFlow(t, []namedCluster{{"A", s.source}, {"B", s.target}}, []string{"A->B"},
		"topics=orders", "replication.policy.class=org.apache.kafka.connect.mirror.IdentityReplicationPolicy",
		"groups.exclude=console-consumer-.*, __.*") // connect-... are chosen
	s.flow.start()
	s.ofAllKinds()
	s.active()
	s.joining()
	s.takenOver()
	s.backwards()
	s.deleted()
	s.flow.stop()
}

// A groupSync is a flow of orders: on the source, partition 0 begins with an
// aborted transaction, which with its marker takes four offsets, so that source
// offset n is target offset n-4; partition 1 is the same on both sides.
type groupSync struct {
	t              *testing.T
	ctx            context.Context
	source, target *kafkatest.Kafka
	flow           *fileFlow
	leavers        []*kgo.Client // members on the target that leave when they are told to
	witness        int           // groups made by rounds
}

func (s *groupSync) must(errs ...error) {
	s.t.Helper()
	if err := errors.Join(errs...); err != nil {
		s.t.Fatal(err)
	}
}

func (s *groupSync) fill() {
	s.t.Helper()
	var aborted, records []*kgo.Record
	for i := range 3 {
		aborted = append(aborted, &kgo.Record{Topic: "orders", Value: fmt.Appendf(nil, "aborted %d", i)})
	}
	for i := range 20 {
		records = append(records, &kgo.Record{Topic: "orders", Partition: int32(i % 2), Value: fmt.Appendf(nil, "v%d", i)})
	}
	// Identity keeps the name, so the twin groups read the same topic; it is made
	// here for members that join before the copier begins.
	s.must(
		s.source.CreateTopic(s.ctx, "orders", 2, kafkatest.LoadConfigs()),
		s.target.CreateTopic(s.ctx, "orders", 2, kafkatest.LoadConfigs()),
		s.source.AppendTransaction(s.ctx, "aborts", false, aborted...),
		s.source.WaitDecided(s.ctx, "orders"),
		s.source.Append(s.ctx, kafkatest.None, records...),
	)
}

// at commits offsets on a cluster, by groups, in partition 0.
func (s *groupSync) at(on *kafkatest.Kafka, offsets map[string]int64) {
	s.t.Helper()
	places := map[groupPlace]int64{}
	for group, offset := range offsets {
		places[groupPlace{group, "orders", 0}] = offset
	}
	commitAll(s.t, on, places)
}

// stand waits until groups are at offsets of the target's partition 0.
func (s *groupSync) stand(want map[string]int64) {
	s.t.Helper()
	places := map[groupPlace]int64{}
	for group, offset := range want {
		places[groupPlace{group, "orders", 0}] = offset
	}
	committedSoon(s.t, s.target, places)
}

// kinds makes groups of all kinds on the source.
func (s *groupSync) kinds() {
	s.t.Helper()
	mustConsume(s.t, s.source.Bootstrap, "classic").Close()
	mustConsume(s.t, s.source.Bootstrap, "modern", kgo.ServerSideBalancer()).Close()
	s.streams("streams")
	s.at(s.source, map[string]int64{
		"classic": 5, "modern": 6, "streams": 7, "simple": 4, "connect-sink": 8, "console-consumer-1": 5, "null": -1, "dead": 5, "end": 14, "aborted": 2,
	})
	commitAll(s.t, s.source, map[groupPlace]int64{{"null", "orders", 1}: 7})
	mustConsume(s.t, s.source.Bootstrap, "busy") // with a member, to the end of the test
	commitAsMember(s.ctx, s.t, s.source, "busy on the source", 9)
	mustShare(s.t, s.source.Bootstrap, "share")
	s.source.Join(s.t.Context(), s.t, "worker", "connect")
	_, err := kadm.NewClient(s.source.NewClient(s.t)).DeleteGroup(s.ctx, "dead")
	s.must(err)
}

// streams makes a Streams group (KIP-1071) whose member leaves again.
func (s *groupSync) streams(group string) {
	s.t.Helper()
	client := s.source.NewClient(s.t)
	request := kmsg.NewPtrStreamsGroupHeartbeatRequest()
	request.Group, request.MemberID = group, "AAAAAAAAAAAAAAAAAAAAAA"
	request.RebalanceTimeoutMillis = 60_000
	request.ProcessID = kmsg.StringPtr("process")
	request.ActiveTasks, request.StandbyTasks, request.WarmupTasks = []kmsg.TaskIDs{}, []kmsg.TaskIDs{}, []kmsg.TaskIDs{}
	topology := kmsg.NewStreamsGroupHeartbeatRequestTopology()
	sub := kmsg.NewStreamsGroupHeartbeatRequestTopologySubtopology()
	sub.SubtopologyID, sub.SourceTopics = "0", []string{"orders"}
	topology.Subtopologies = append(topology.Subtopologies, sub)
	request.Topology = &topology
	beat := func() {
		s.t.Helper()
		answer, err := request.RequestWith(s.ctx, client.Broker(1)) // kgo does not know where it belongs
		if err == nil {
			err = kerr.ErrorForCode(answer.ErrorCode)
		}
		s.must(err)
	}
	beat()
	request.MemberEpoch, request.Topology = -1, nil
	request.ActiveTasks, request.StandbyTasks, request.WarmupTasks = nil, nil, nil
	beat()
}

// commitAsMember has a consumer with a membership of its own commit an offset of
// partition 0, and returns while it is a member still.
func commitAsMember(ctx context.Context, t *testing.T, on *kafkatest.Kafka, group string, offset int64, options ...kgo.Opt) *kgo.Client {
	t.Helper()
	client := mustConsume(t, on.Bootstrap, group, options...)
	var failed error
	client.CommitOffsetsSync(ctx, map[string]map[int32]kgo.EpochOffset{"orders": {0: {Epoch: -1, Offset: offset}}},
		func(_ *kgo.Client, _ *kmsg.OffsetCommitRequest, answer *kmsg.OffsetCommitResponse, err error) {
			failed = err
			if err == nil {
				failed = kerr.ErrorForCode(answer.Topics[0].Partitions[0].ErrorCode)
			}
		})
	if failed != nil {
		t.Fatalf("group %s: commit %d: %v", group, offset, failed)
	}
	return client
}

// members makes twins on the target that have members when the flow begins.
func (s *groupSync) members() {
	s.t.Helper()
	s.at(s.source, map[string]int64{"active classic": 6, "active modern": 7})
	for group, options := range map[string][]kgo.Opt{"active classic": nil, "active modern": {kgo.ServerSideBalancer()}} {
		client := mustConsume(s.t, s.target.Bootstrap, group, options...)
		s.leavers = append(s.leavers, client)
	}
}

// ofAllKinds expects the groups of all kinds on the target, and nothing of those
// that have no committed offsets.
func (s *groupSync) ofAllKinds() {
	s.t.Helper()
	s.stand(map[string]int64{
		"classic": 1, "modern": 2, "streams": 3, "simple": 0, "connect-sink": 4, "end": 10, "aborted": 0, "busy on the source": 5,
	})
	committedSoon(s.t, s.target, map[groupPlace]int64{{"null", "orders", 1}: 7})
	none := []string{"console-consumer-1", "dead", "busy", "share", "worker"}
	if found := committedOn(s.t, s.target, none...); len(found) > 0 {
		s.t.Errorf("groups without offsets have %v on the target", found)
	}
	if _, there := committedOn(s.t, s.target, "null")[groupPlace{"null", "orders", 0}]; there {
		s.t.Error("an offset of -1 was committed")
	}
	kafkatest.Compare(s.t, s.source.Bootstrap, s.target.Bootstrap, kafkatest.Same("orders"))
	s.says(map[string]string{"share": "share_group", "console-consumer-1": "excluded", "active classic": "active", "active modern": "active"})
}

// says waits until status gives reasons for groups that are left alone.
func (s *groupSync) says(want map[string]string) {
	s.t.Helper()
	var found map[string]string
	said := within(s.t, time.Minute, func() bool {
		found = map[string]string{}
		for place, row := range s.flow.groupRows("A->B") {
			if _, asked := want[place.group]; asked && row.Reason != "" {
				found[place.group] = row.Reason
			}
		}
		return maps.Equal(found, want)
	})
	if !said {
		s.t.Errorf("status says of groups %v, want %v", found, want)
	}
}

// active expects groups with members to be left alone, and to be synced when they
// have left.
func (s *groupSync) active() {
	s.t.Helper()
	groups := []string{"active classic", "active modern"}
	if found := committedOn(s.t, s.target, groups...); len(found) > 0 {
		s.t.Errorf("groups with members were committed for: %v", found)
	}
	for _, client := range s.leavers {
		client.Close()
	}
	s.stand(map[string]int64{"active classic": 2, "active modern": 3})
}

// joining has members of both protocols join, commit and leave again and again
// while the source moves: no commit of theirs is ever undone.
func (s *groupSync) joining() {
	s.t.Helper()
	for round := range int64(4) {
		s.at(s.source, map[string]int64{"joins classic": 4 + round, "joins modern": 4 + round})
		for group, options := range map[string][]kgo.Opt{"joins classic": nil, "joins modern": {kgo.ServerSideBalancer()}} {
			client := commitAsMember(s.ctx, s.t, s.target, group, 6+round, options...)
			s.hasStill(group, 6+round)
			client.Close()
			s.hasStill(group, 6+round)
		}
	}
	s.rounds()
	s.hasStill("joins classic", 9)
	s.hasStill("joins modern", 9)
}

func (s *groupSync) hasStill(group string, want int64) {
	s.t.Helper()
	if got := committedOn(s.t, s.target, group)[groupPlace{group, "orders", 0}]; got != want {
		s.t.Errorf("group %s is at %d on the target, where its member committed %d", group, got, want)
	}
}

// rounds waits until two rounds of the sync have passed: one may have begun before
// this.
func (s *groupSync) rounds() {
	s.t.Helper()
	for range 2 {
		s.witness++
		group := fmt.Sprintf("witness %d", s.witness)
		s.at(s.source, map[string]int64{group: 5})
		s.stand(map[string]int64{group: 1})
	}
}

// takenOver has owners move groups on the target that the flow has committed for,
// forwards and back: it leaves them alone until they are where it left them.
func (s *groupSync) takenOver() {
	s.t.Helper()
	s.at(s.source, map[string]int64{"forwards": 5, "back": 8})
	s.stand(map[string]int64{"forwards": 1, "back": 4})
	s.at(s.target, map[string]int64{"forwards": 3, "back": 2})
	s.at(s.source, map[string]int64{"forwards": 9, "back": 9})
	s.says(map[string]string{"forwards": "taken_over", "back": "taken_over"})
	s.rounds()
	s.stand(map[string]int64{"forwards": 3, "back": 2})
	s.at(s.target, map[string]int64{"back": 4}) // as the flow left it
	s.stand(map[string]int64{"back": 5})
}

// backwards has a group be further on the target before the flow knows it, and
// another go back on the source: none is ever moved back.
func (s *groupSync) backwards() {
	s.t.Helper()
	s.at(s.target, map[string]int64{"ahead": 8})
	s.at(s.source, map[string]int64{"ahead": 6, "rewound": 11})
	s.stand(map[string]int64{"rewound": 7})
	s.at(s.source, map[string]int64{"rewound": 6})
	s.says(map[string]string{"ahead": "ahead", "rewound": "ahead"})
	s.rounds()
	s.stand(map[string]int64{"ahead": 8, "rewound": 7})
	s.at(s.source, map[string]int64{"ahead": 13, "rewound": 12})
	s.stand(map[string]int64{"ahead": 9, "rewound": 8})
}

// deleted has a group die on the source: its twin stays as it is.
func (s *groupSync) deleted() {
	s.t.Helper()
	s.at(s.source, map[string]int64{"dies": 7})
	s.stand(map[string]int64{"dies": 3})
	_, err := kadm.NewClient(s.source.NewClient(s.t)).DeleteGroup(s.ctx, "dies")
	s.must(err)
	s.rounds()
	s.stand(map[string]int64{"dies": 3})
	listed, err := kadm.NewClient(s.target.NewClient(s.t)).ListGroups(s.ctx)
	s.must(err)
	kinds := map[string]string{}
	for _, g := range listed {
		kinds[g.Group] = g.State
	}
	s.t.Logf("groups on the target: %v", slices.Sorted(maps.Keys(kinds)))
	for _, group := range []string{"share", "worker", "dead", "console-consumer-1"} {
		if _, there := kinds[group]; there {
			s.t.Errorf("the target has a group %s", group)
		}
	}
}
