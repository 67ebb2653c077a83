package groups_test

import (
	"errors"
	"maps"
	"slices"
	"testing"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
	"github.com/twmb/franz-go/pkg/kversion"

	"apograph/internal/groups"
	"apograph/internal/kafkatest"
)

// TestGroups tells groups of all kinds apart, with members and without.
func TestGroups(t *testing.T) {
	f := newFake(t, kafkatest.ClusterOptions{Brokers: 3})
	f.commit("simple", "orders", 0, 5)
	f.consume("classic")
	f.consume("classic left").Close()
	f.consume("consumer", kgo.ServerSideBalancer())
	f.consume("consumer left", kgo.ServerSideBalancer()).Close()
	f.Join(f.ctx, t, "connect-x", "connect")
	f.Join(f.ctx, t, "registry", "sr")
	f.Share(f.ctx, t, "share")

	type kind struct {
		kind    groups.Kind
		members bool
	}
	want := map[string]kind{
		"simple":        {groups.Simple, false},
		"classic":       {groups.Classic, true},
		"classic left":  {groups.Classic, false},
		"consumer":      {groups.Consumer, true},
		"consumer left": {groups.Consumer, false},
		"connect-x":     {groups.Connect, true},
		"registry":      {groups.Other, true},
		"share":         {groups.Share, true},
		"nobody":        {groups.Absent, false},
	}
	ids := slices.Collect(maps.Keys(want))
	got := f.under.Groups(f.ctx, append(ids, "nobody", "share"))
	if len(got) != len(want) {
		t.Errorf("%d groups, want %d", len(got), len(want))
	}
	for id, g := range got {
		if (kind{g.Kind, g.HasMembers()}) != want[id] || g.Err != nil || g.ID != id || (g.State == "") != (g.Kind == groups.Absent) {
			t.Errorf("%s: %+v, want %+v", id, g, want[id])
		}
	}
}

// TestList: groups of all kinds are listed, those of all brokers, or as many as
// answer.
func TestList(t *testing.T) {
	f := newFake(t, kafkatest.ClusterOptions{Brokers: 3})
	want := map[string]groups.Kind{"share": groups.Share, "consumer": groups.Consumer, "connect-x": groups.Connect}
	for i, id := range groupNames(30) {
		f.commit(id, "orders", 0, int64(i))
		want[id] = groups.Simple
	}
	f.consume("consumer", kgo.ServerSideBalancer())
	f.Join(f.ctx, t, "connect-x", "connect")
	f.Share(f.ctx, t, "share")
	got, err := f.under.List(f.ctx)
	if err != nil || len(got) != len(want) {
		t.Errorf("%d groups, want %d; %v", len(got), len(want), err)
	}
	for id, kind := range want {
		if got[id].Kind != kind || got[id].ID != id {
			t.Errorf("%s: %+v, want %s", id, got[id], kind)
		}
	}
	f.MustFault(t, kafkatest.Fault{Kind: kafkatest.ErrorBefore, Key: kmsg.ListGroups, Nodes: []int32{1}, Err: kerr.CoordinatorNotAvailable, Count: -1})
	part, err := f.under.List(f.ctx)
	if !errors.Is(err, kerr.CoordinatorNotAvailable) || len(part) == 0 || len(part) >= len(want) {
		t.Errorf("%d groups of two brokers, %v", len(part), err)
	}
}

// TestGroupsOfOldBrokers: brokers before 2.6 do not say in which state a group
// is that they list.
func TestGroupsOfOldBrokers(t *testing.T) {
	f := newFake(t, kafkatest.ClusterOptions{Kfake: []kfake.Opt{kfake.MaxVersions(kversion.V2_5_0())}})
	f.commit("simple", "orders", 0, 5)
	f.consume("classic")
	got := f.under.Groups(f.ctx, []string{"simple", "classic", "nobody"})
	if g := got["simple"]; g.Err != nil || g.Kind != groups.Simple || g.HasMembers() {
		t.Errorf("simple: %+v", g)
	}
	if g := got["classic"]; g.Err != nil || g.Kind != groups.Classic || !g.HasMembers() {
		t.Errorf("classic: %+v", g)
	}
	if g := got["nobody"]; g.Err != nil || g.Kind != groups.Absent {
		t.Errorf("nobody: %+v", g)
	}
	if at := f.under.Offsets(f.ctx, []string{"simple"})["simple"]; at.Err != nil || at.Committed(groups.Partition{Topic: "orders"}) != 5 {
		t.Errorf("offsets: %+v", at)
	}
	commits := []groups.Commit{f.wish("simple", 9)}
	commits[0].Seen = 5
	mustAll(t, commits, f.under.Commit(f.ctx, commits))
}

// TestGroupsOfALostCoordinator: groups of the brokers that answer are known,
// and those of the one that does not are said to be unknown, not absent.
func TestGroupsOfALostCoordinator(t *testing.T) {
	f := newFake(t, kafkatest.ClusterOptions{Brokers: 3})
	ids := groupNames(30)
	lost := make(map[string]bool)
	for _, id := range ids {
		f.commit(id, "orders", 0, 5)
		lost[id] = f.Fake().CoordinatorFor(id) == 1
	}
	ids = append(ids, "nobody")
	for _, key := range []kmsg.Key{kmsg.ListGroups, kmsg.DescribeGroups, kmsg.OffsetFetch} {
		f.MustFault(t, kafkatest.Fault{Kind: kafkatest.CutBefore, Key: key, Nodes: []int32{1}, Count: -1})
	}
	found, offsets := f.under.Groups(f.ctx, ids), f.under.Offsets(f.ctx, ids)
	count := 0
	for _, id := range ids[:30] {
		at := offsets[id]
		switch g := found[id]; {
		case lost[id]:
			count++
			if g.Err == nil || g.Kind != "" || !g.HasMembers() || at.Err == nil {
				t.Errorf("%s: %+v, %+v, and its coordinator is gone", id, g, at)
			}
		case g.Err != nil || g.Kind != groups.Simple || at.Err != nil || at.Committed(groups.Partition{Topic: "orders"}) != 5:
			t.Errorf("%s: %+v, %+v", id, g, at)
		}
	}
	if count == 0 || count == 30 {
		t.Errorf("%d of 30 groups have lost their coordinator", count)
	}
	if g := found["nobody"]; g.Err == nil {
		t.Errorf("nobody: %+v, but a part of the list is missing", g)
	}
}

// TestGroupsOfAFreshCluster: a cluster that has had no group yet makes its
// offsets topic when it is first asked for a coordinator, and says "not now"
// meanwhile.
func TestGroupsOfAFreshCluster(t *testing.T) {
	f := newFake(t, kafkatest.ClusterOptions{})
	for _, ask := range []func() error{
		func() error { return f.under.Groups(f.ctx, []string{"nobody"})["nobody"].Err },
		func() error { return f.under.Offsets(f.ctx, []string{"somebody"})["somebody"].Err },
	} {
		fault := f.MustFault(t, kafkatest.Fault{Kind: kafkatest.ErrorBefore, Key: kmsg.FindCoordinator, Err: kerr.CoordinatorNotAvailable, Count: 3})
		if err := ask(); err != nil || fault.Hits() != 3 {
			t.Errorf("%v after %d refusals", err, fault.Hits())
		}
	}
	commits := []groups.Commit{f.wish("g", 5)}
	f.MustFault(t, kafkatest.Fault{Kind: kafkatest.ErrorBefore, Key: kmsg.FindCoordinator, Err: kerr.CoordinatorNotAvailable, Count: 4})
	mustAll(t, commits, f.under.Commit(f.ctx, commits))
	f.MustFault(t, kafkatest.Fault{Kind: kafkatest.ErrorBefore, Key: kmsg.FindCoordinator, Err: kerr.CoordinatorNotAvailable, Count: -1})
	if err := f.under.Offsets(f.ctx, []string{"other"})["other"].Err; !errors.Is(err, kerr.CoordinatorNotAvailable) {
		t.Errorf("%v, want that the coordinator is not available", err)
	}
}

// TestGroupsListedInPart: what a coordinator leaves out of its list while it
// takes over is still found where it can be described.
func TestGroupsListedInPart(t *testing.T) {
	f := newFake(t, kafkatest.ClusterOptions{})
	f.consume("classic")
	f.MustFault(t, kafkatest.Fault{Kind: kafkatest.ErrorBefore, Key: kmsg.ListGroups, Err: kerr.CoordinatorLoadInProgress, Count: -1})
	if g := f.under.Groups(f.ctx, []string{"classic"})["classic"]; g.Err != nil || g.Kind != groups.Classic || !g.HasMembers() {
		t.Errorf("classic: %+v", g)
	}
	if g := f.under.Groups(f.ctx, []string{"nobody"})["nobody"]; !errors.Is(g.Err, kerr.CoordinatorLoadInProgress) {
		t.Errorf("nobody: %+v, want the error of the list", g)
	}
}

// TestOffsets reads offsets of groups on several coordinators: zero, negative
// ones, none, of several topics.
func TestOffsets(t *testing.T) {
	f := newFake(t, kafkatest.ClusterOptions{Brokers: 3})
	f.topic("payments", 1)
	ids := groupNames(450) // more than two requests
	for i, id := range ids {
		f.commit(id, "orders", int32(i%3), int64(i))
	}
	f.commit("group-0", "payments", 0, 0)
	f.commit("group-0", "orders", 2, -1)
	got := f.under.Offsets(f.ctx, append(ids, "nobody"))
	for i, id := range ids {
		p := groups.Partition{Topic: "orders", Number: int32(i % 3)}
		if at := got[id]; at.Err != nil || at.At[p] != (groups.Offset{At: int64(i), Epoch: 7, Metadata: "by hand"}) || at.Committed(p) != int64(i) {
			t.Errorf("%s: %+v", id, at)
		}
	}
	first := got["group-0"]
	if len(first.At) != 3 || first.Committed(groups.Partition{Topic: "payments"}) != 0 {
		t.Errorf("group-0: %+v", first)
	}
	null := groups.Partition{Topic: "orders", Number: 2}
	if at, ok := first.At[null]; !ok || at.At != -1 || first.Committed(null) != groups.NoOffset {
		t.Errorf("group-0: %+v, want an offset -1 that counts as none", first)
	}
	if first.Committed(groups.Partition{Topic: "orders", Number: 1}) != groups.NoOffset {
		t.Errorf("group-0: %+v, want none for orders-1", first)
	}
	if at := got["nobody"]; at.Err != nil || len(at.At) != 0 {
		t.Errorf("nobody: %+v", at)
	}
}

// TestOffsetsInATransaction: while a transaction may commit an offset of a group,
// it is not known what the group has, and nothing is committed for it. What it
// had before can be read.
func TestOffsetsInATransaction(t *testing.T) {
	f := newFake(t, kafkatest.ClusterOptions{})
	f.commit("g", "orders", 0, 3)
	f.commit("other", "orders", 0, 4)
	client := f.NewClient(t, kgo.TransactionalID("t"))
	if err := client.BeginTransaction(); err != nil {
		t.Fatal(err)
	}
	if err := client.ProduceSync(f.ctx, &kgo.Record{Topic: "orders", Value: []byte("v")}).FirstErr(); err != nil {
		t.Fatal(err)
	}
	pending(f.ctx, t, client, "t", f.topicID("orders"), "g", 9)
	got := f.under.Offsets(f.ctx, []string{"g", "other"})
	p := groups.Partition{Topic: "orders"}
	if !errors.Is(got["g"].Err, kerr.UnstableOffsetCommit) || got["other"].Err != nil || got["other"].Committed(p) != 4 {
		t.Errorf("%+v", got)
	}
	decided := f.under.DecidedOffsets(f.ctx, []string{"g", "other"})
	if decided["g"].Err != nil || decided["g"].Committed(p) != 3 || decided["other"].Committed(p) != 4 {
		t.Errorf("%+v", decided)
	}
	wish := f.wish("g", 7)
	wish.Seen = 3
	if outcome := f.under.Commit(f.ctx, []groups.Commit{wish})[0]; !errors.Is(outcome.Err, kerr.UnstableOffsetCommit) || outcome.Reason != groups.Unreadable {
		t.Errorf("%+v", outcome)
	}
	if offset, _, _ := f.committed("g", "orders", 0); offset != 3 {
		t.Errorf("has %d, want 3", offset)
	}
}

func TestTopics(t *testing.T) {
	f := newFake(t, kafkatest.ClusterOptions{Brokers: 2})
	for i := range 10 {
		if err := f.Append(f.ctx, kafkatest.None, &kgo.Record{Topic: "orders", Partition: 1, Value: []byte{byte(i)}}); err != nil {
			t.Fatal(err)
		}
	}
	if err := f.DeleteRecords("orders", 1, 4); err != nil {
		t.Fatal(err)
	}
	topics, err := f.under.Topics(f.ctx, []string{"orders", "none"})
	if err != nil || topics["orders"] != (groups.Topic{ID: f.topicID("orders")}) || !errors.Is(topics["none"].Err, groups.ErrNoTopic) {
		t.Errorf("%+v, %v", topics, err)
	}
	bounds, err := f.under.Bounds(f.ctx, []string{"orders"})
	if err != nil || len(bounds) != 3 || bounds[groups.Partition{Topic: "orders", Number: 1}] != (groups.Bounds{Start: 4, End: 10}) ||
		bounds[groups.Partition{Topic: "orders"}] != (groups.Bounds{}) {
		t.Errorf("%+v, %v", bounds, err)
	}
}
