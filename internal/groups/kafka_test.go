//go:build kafka

package groups_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"apograph/internal/connect"
	"apograph/internal/groups"
	"apograph/internal/kafkatest"
)

// TestKafkaGroups does on real brokers what the fake may get wrong: kinds and
// states of groups, the answers to commits for groups with members, for share
// groups, for topics with another id, and the time that many groups take.
func TestKafkaGroups(t *testing.T) {
	k := kafkatest.StartKafka(t, kafkatest.KafkaOptions{Name: "groups"})
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	under, err := groups.Open(ctx, connect.Cluster{Alias: "b", Bootstrap: k.Addresses}, groups.DefaultPatience)
	if err != nil {
		t.Fatal(err)
	}
	defer under.Close()
	if err := k.CreateTopic(ctx, "orders", 3, nil); err != nil {
		t.Fatal(err)
	}
	topics, err := under.Topics(ctx, []string{"orders", "none"})
	if err != nil || topics["orders"].Err != nil || topics["none"].Err != groups.ErrNoTopic {
		t.Fatalf("%+v, %v", topics, err)
	}
	r := &realGroups{Bootstrap: k.Bootstrap, t: t, ctx: ctx, under: under, id: topics["orders"].ID}
	r.kinds()
	r.commits()
	r.many()
}

// TestKafkaGroupsOfADeadCoordinator kills a broker. Where each holds a part of
// the offsets topic alone, its groups are said to be unknown, and the others are
// read, and committed for; where another can take over, all are.
func TestKafkaGroupsOfADeadCoordinator(t *testing.T) {
	for _, nodes := range []int{2, 3} {
		t.Run(fmt.Sprintf("%d nodes", nodes), func(t *testing.T) {
			o := kafkatest.KafkaOptions{Name: "dead", Nodes: nodes, Config: map[string]string{}}
			if nodes == 2 {
				o.Config["offsets.topic.replication.factor"] = "1"
			}
			deadCoordinator(t, kafkatest.StartKafka(t, o), nodes == 3)
		})
	}
}

func deadCoordinator(t *testing.T, k *kafkatest.Kafka, survives bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	under, err := groups.Open(ctx, connect.Cluster{Alias: "b", Bootstrap: k.Addresses}, groups.DefaultPatience)
	if err != nil {
		t.Fatal(err)
	}
	defer under.Close()
	if err := k.CreateTopic(ctx, "orders", 1, nil); err != nil {
		t.Fatal(err)
	}
	topics, err := under.Topics(ctx, []string{"orders"})
	if err != nil {
		t.Fatal(err)
	}
	ids := groupNames(20)
	var commits []groups.Commit
	for i, id := range ids {
		commits = append(commits, wish(topics["orders"].ID, id, int64(i)))
	}
	mustAll(t, commits, under.Commit(ctx, commits))
	coordinators := kadm.NewClient(k.NewClient(t)).FindGroupCoordinators(ctx, ids...)
	if err := errors.Join(coordinators.Error(), k.Kill(2)); err != nil {
		t.Fatal(err)
	}
	start := time.Now()
	found, offsets := under.Groups(ctx, ids), under.Offsets(ctx, ids)
	t.Logf("answered after %v", time.Since(start))
	killed := 0
	for i, id := range ids {
		lost := coordinators[id].NodeID == 2 && !survives
		if coordinators[id].NodeID == 2 {
			killed++
		}
		at := offsets[id]
		if lost != (found[id].Err != nil) || lost != (at.Err != nil) {
			t.Errorf("%s: %+v, %+v, lost: %t", id, found[id], at, lost)
		}
		if p := (groups.Partition{Topic: "orders"}); !lost && at.Committed(p) != int64(i) {
			t.Errorf("%s: %+v, want %d", id, at, i)
		}
		commits[i].Seen, commits[i].Offset = int64(i), int64(i)+100
	}
	if killed == 0 || killed == len(ids) {
		t.Fatalf("the coordinator of %d of %d groups was killed", killed, len(ids))
	}
	for i, outcome := range under.Commit(ctx, commits) {
		lost := coordinators[ids[i]].NodeID == 2 && !survives
		if lost != (outcome.Err != nil) || !lost && outcome.Committed != int64(i)+100 {
			t.Errorf("%s: %+v, lost: %t", ids[i], outcome, lost)
		}
	}
	t.Logf("and committed after %v", time.Since(start))
}

type realGroups struct {
	kafkatest.Bootstrap
	t     *testing.T
	ctx   context.Context
	under *groups.Cluster
	id    [16]byte
}

// kinds makes groups of all kinds, with members and left by them.
func (r *realGroups) kinds() {
	commit(r.ctx, r.t, r.Bootstrap, "simple", "orders", 0, 5)
	r.Consume(r.ctx, r.t, "classic")
	r.Consume(r.ctx, r.t, "classic left").Close()
	r.Consume(r.ctx, r.t, "consumer", kgo.ServerSideBalancer())
	r.Consume(r.ctx, r.t, "consumer left", kgo.ServerSideBalancer()).Close()
	r.Join(r.ctx, r.t, "connect-x", "connect")
	r.Share(r.ctx, r.t, "share")
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
		"share":         {groups.Share, true},
		"nobody":        {groups.Absent, false},
	}
	var ids []string
	for id := range want {
		ids = append(ids, id)
	}
	for id, g := range r.under.Groups(r.ctx, ids) {
		if (kind{g.Kind, g.HasMembers()}) != want[id] || g.Err != nil {
			r.t.Errorf("%s: %+v, want %+v", id, g, want[id])
		}
	}
	commit(r.ctx, r.t, r.Bootstrap, "simple", "orders", 1, -1)
	at := r.under.Offsets(r.ctx, []string{"simple", "nobody", "share"})
	null := groups.Partition{Topic: "orders", Number: 1}
	if o := at["simple"]; o.Err != nil || o.Committed(groups.Partition{Topic: "orders"}) != 5 || o.At[null].At != -1 {
		r.t.Errorf("simple: %+v", o)
	}
	for _, id := range []string{"nobody", "share"} {
		if o := at[id]; o.Err != nil || len(o.At) != 0 {
			r.t.Errorf("%s: %+v", id, o)
		}
	}
}

// commits commits for each of them: the brokers refuse the groups with members.
func (r *realGroups) commits() {
	want := map[string]groups.Reason{
		"classic": groups.Joined, "consumer": groups.Joined, "connect-x": groups.Joined, "share": groups.NoCommits,
		"classic left": "", "consumer left": "", "nobody": "", "simple": groups.Moved,
	}
	var commits []groups.Commit
	for group := range want {
		commits = append(commits, wish(r.id, group, 0))
	}
	other := wish([16]byte{1, 2, 3, 4, 5, 6, 7, 8, 9}, "other topic", 4)
	for i, outcome := range r.under.Commit(r.ctx, append(commits, other)) {
		if i == len(commits) {
			if outcome.Err == nil || outcome.Reason != groups.Failed {
				r.t.Errorf("another topic of the name: %+v", outcome)
			}
			continue
		}
		reason := want[commits[i].Group]
		if outcome.Reason != reason || outcome.Err != nil || (reason == "") != (outcome.Committed == 0) {
			r.t.Errorf("%s: %+v, want %q", commits[i].Group, outcome, reason)
		}
		r.t.Logf("%s: %s", commits[i].Group, outcome.Detail)
	}
	after := r.under.Groups(r.ctx, []string{"nobody", "consumer left"})
	if after["nobody"].Kind != groups.Simple || after["consumer left"].Kind != groups.Consumer {
		r.t.Errorf("%+v", after)
	}
}

// many commits for 1000 new groups.
func (r *realGroups) many() {
	var commits []groups.Commit
	for i, group := range groupNames(1000) {
		commits = append(commits, wish(r.id, group, int64(i)))
	}
	start := time.Now()
	mustAll(r.t, commits, r.under.Commit(r.ctx, commits))
	r.t.Logf("%d groups in %v", len(commits), time.Since(start))
}
