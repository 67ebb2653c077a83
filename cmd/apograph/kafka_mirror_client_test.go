//go:build kafka

package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"apograph/internal/kafkatest"
)

// TestKafkaMirrorClient asks MirrorMaker 2's own client library, of two versions,
// about clusters that apograph copies between: a chain of three, and beside it a
// flow under the identity policy. It must see what it would see of MirrorMaker 2,
// and translate exactly.
func TestKafkaMirrorClient(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	k := kafkatest.StartKafkas(t,
		kafkatest.KafkaOptions{Name: "a", HeapMB: 384}, kafkatest.KafkaOptions{Name: "b", HeapMB: 384}, kafkatest.KafkaOptions{Name: "c", HeapMB: 384})
	c := &chain{t: t, ctx: ctx, a: k[0], b: k[1], c: k[2]}
	c.fill()
	c.copies()
	c.groups()
	for _, version := range []string{kafkatest.KafkaVersion, kafkatest.OlderKafkaVersion} {
		t.Run(version, func(t *testing.T) { c.ask(t, version) })
	}
	c.flow.stop()
	c.identity.stop()
}

// A chain is clusters a, b and c, with flows A->B and B->C, and from a to c
// another, east->west, under the identity policy.
type chain struct {
	t              *testing.T
	ctx            context.Context
	a, b, c        *kafkatest.Kafka
	flow, identity *fileFlow

	committed map[groupPlace]int64 // on a
	onB, onC  map[groupPlace]int64 // where the groups are to go on, by topics there
}

func (c *chain) must(errs ...error) {
	c.t.Helper()
	if err := errors.Join(errs...); err != nil {
		c.t.Fatal(err)
	}
}

// fill fills topics of a and b before anybody copies.
func (c *chain) fill() {
	c.t.Helper()
	c.must(
		c.a.CreateTopic(c.ctx, "orders", 2, kafkatest.LoadConfigs()),
		c.a.CreateTopic(c.ctx, "payments", 1, kafkatest.LoadConfigs()),
		c.b.CreateTopic(c.ctx, "local", 1, kafkatest.LoadConfigs()),
		uniqueLoad{seed: 1, topic: "orders", partition: 0, name: "first", records: 600, batch: 20}.run(c.ctx, c.a),
		uniqueLoad{seed: 2, topic: "orders", partition: 1, name: "first", records: 300, batch: 5}.run(c.ctx, c.a),
		uniqueLoad{seed: 3, topic: "payments", name: "first", records: 400, batch: 10}.run(c.ctx, c.a),
		uniqueLoad{seed: 4, topic: "local", name: "first", records: 50, batch: 10}.run(c.ctx, c.b),
		c.a.WaitDecided(c.ctx, "orders"), c.a.WaitDecided(c.ctx, "payments"), c.b.WaitDecided(c.ctx, "local"),
	)
}

// copies starts the flows, and waits until all is copied.
func (c *chain) copies() {
	c.t.Helper()
	c.flow = newFileFlow(c.t, []namedCluster{{"A", c.a}, {"B", c.b}, {"C", c.c}}, []string{"A->B", "B->C"},
		"A->B.topics=orders", `B->C.topics=A\.orders, local`)
	c.identity = newFileFlow(c.t, []namedCluster{{"east", c.a}, {"west", c.c}}, []string{"east->west"},
		"east->west.topics=payments", "replication.policy.class=org.apache.kafka.connect.mirror.IdentityReplicationPolicy")
	c.flow.start()
	c.identity.start()
	c.copied(c.a, "orders", c.b, "A.orders")
	c.copied(c.a, "orders", c.c, "B.A.orders")
	c.copied(c.b, "local", c.c, "B.local")
	c.copied(c.a, "payments", c.c, "payments")
	beats := within(c.t, time.Minute, func() bool {
		topics, err := c.c.TopicStates(c.ctx)
		return err == nil && topics["B.A.heartbeats"].Records > 0 && topics["east.heartbeats"].Records > 0
	})
	if !beats {
		c.t.Fatal("heartbeats never came to the end of the chain")
	}
}

// copied waits until a topic is copied, and compares it with its original.
func (c *chain) copied(source *kafkatest.Kafka, topic string, target *kafkatest.Kafka, copied string) {
	c.t.Helper()
	want, err := source.ReadTopic(c.ctx, topic)
	c.must(err)
	var last string
	complete := within(c.t, time.Minute, func() bool {
		differences, err := target.Compare(c.ctx, topic, copied, want)
		last = fmt.Sprint(differences, err)
		return err == nil && len(differences) == 0
	})
	if !complete {
		c.t.Fatalf("%s is not %s: %s", copied, topic, last)
	}
}

// groups commits for groups on a, and waits until they stand on c where they are
// to go on.
func (c *chain) groups() {
	c.t.Helper()
	end := int64(0)
	c.committed = map[groupPlace]int64{
		{"start", "orders", 0}: 0, {"grüppe", "orders", 0}: 100, {"both", "orders", 1}: 151, {"payer", "payments", 0}: 123,
	}
	for _, tile := range c.a.MustSourceTiles(c.t, "orders", 0) {
		end = tile.End
		switch tile.Fate {
		case kafkatest.CommitMarker:
			c.committed[groupPlace{"marker", "orders", 0}] = tile.Start
		case kafkatest.Aborted:
			c.committed[groupPlace{"aborted", "orders", 0}] = tile.Start
		}
	}
	c.committed[groupPlace{"middle", "orders", 0}] = end / 2
	c.committed[groupPlace{"both", "orders", 0}] = end - 7
	c.committed[groupPlace{"end", "orders", 0}] = end
	commitAll(c.t, c.a, c.committed)
	c.onB, c.onC = map[groupPlace]int64{}, map[groupPlace]int64{}
	for p, at := range c.committed {
		if p.topic == "payments" {
			c.onC[p] = newCopyOracle(c.ctx, c.t, c.a, "payments", c.c, "payments", p.partition).exact(at)
			continue
		}
		c.onB[groupPlace{p.group, "A.orders", p.partition}] = newCopyOracle(c.ctx, c.t, c.a, "orders", c.b, "A.orders", p.partition).exact(at)
		c.onC[groupPlace{p.group, "B.A.orders", p.partition}] = newCopyOracle(c.ctx, c.t, c.a, "orders", c.c, "B.A.orders", p.partition).exact(at)
	}
	committedSoon(c.t, c.b, c.onB)
	committedSoon(c.t, c.c, c.onC)
}

// ask asks one version of the library about all clusters.
func (c *chain) ask(t *testing.T, version string) {
	java, err := kafkatest.JavaOf(c.ctx, version)
	if err != nil {
		t.Fatal(err)
	}
	groups := groupsOf(c.committed)
	question := func(of *kafkatest.Kafka, identity bool, aliases ...string) kafkatest.MirrorQuestion {
		q := kafkatest.MirrorQuestion{Properties: map[string]string{"bootstrap.servers": of.Server()}, Aliases: aliases, Groups: groups}
		if identity {
			q.Properties["replication.policy.class"] = "org.apache.kafka.connect.mirror.IdentityReplicationPolicy"
			q.Properties["source.cluster.alias"] = "east"
			q.Groups = []string{"end", "payer"} // not all again
		}
		return q
	}
	answers, err := java.MirrorAnswers(c.ctx,
		question(c.a, false, "B"), question(c.b, false, "A", "C"), question(c.c, false, "A", "B", "east"), question(c.c, true, "A", "B", "east"))
	if err != nil {
		t.Fatal(err)
	}
	c.translations(t, answers)
	for i, want := range chainAnswers() {
		for alias, u := range answers[i].Upstream {
			u.Offsets = nil
			answers[i].Upstream[alias] = u
		}
		if d := cmp.Diff(want, answers[i], cmpopts.EquateEmpty()); d != "" {
			t.Errorf("question %d (-want +got):\n%s", i, d)
		}
	}
}

// chainAnswers are what the rules of MirrorMaker 2 say about a, b, c, and c under
// the identity policy, in this order. The heartbeats of C->B, which is no flow,
// are on b, so that c has b's; those of B->A and west->east are on a.
func chainAnswers() []kafkatest.MirrorAnswer {
	type upstream = map[string]kafkatest.MirrorUpstream
	beats := []string{"B.A.heartbeats", "B.heartbeats", "east.heartbeats", "heartbeats"}
	fromB := []string{"B.A.heartbeats", "B.A.orders", "B.heartbeats", "B.local"}
	checkpoints := []string{"B.checkpoints.internal", "east.checkpoints.internal"}
	return []kafkatest.MirrorAnswer{
		{HeartbeatTopics: []string{"heartbeats"}, Upstream: upstream{"B": {Hops: -1}}},
		{
			HeartbeatTopics: []string{"A.heartbeats", "heartbeats"}, CheckpointTopics: []string{"A.checkpoints.internal"},
			UpstreamClusters: []string{"A"}, RemoteTopics: []string{"A.heartbeats", "A.orders"},
			Upstream: upstream{"A": {Hops: 1, RemoteTopics: []string{"A.heartbeats", "A.orders"}}, "C": {Hops: -1}},
		},
		{
			HeartbeatTopics: beats, CheckpointTopics: checkpoints, UpstreamClusters: []string{"A", "B", "east"},
			RemoteTopics: []string{"B.A.heartbeats", "B.A.orders", "B.heartbeats", "B.local", "east.heartbeats"},
			Upstream: upstream{
				"A": {Hops: 2}, "B": {Hops: 1, RemoteTopics: fromB}, "east": {Hops: 1, RemoteTopics: []string{"east.heartbeats"}},
			},
		},
		{
			// Under this policy all topics are the source's but heartbeats.
			HeartbeatTopics: beats, CheckpointTopics: checkpoints, UpstreamClusters: []string{"A", "B", "east"},
			RemoteTopics: []string{"B.A.heartbeats", "B.A.orders", "B.heartbeats", "B.local", "east.heartbeats", "payments"},
			Upstream: upstream{
				"A": {Hops: 2}, "B": {Hops: 1, RemoteTopics: []string{"B.A.heartbeats", "B.heartbeats"}},
				"east": {Hops: 1, RemoteTopics: []string{"B.A.orders", "B.local", "east.heartbeats", "payments"}},
			},
		},
	}
}

// translations expects the exact offset and the metadata for each group, along
// both links of the chain, and no others.
func (c *chain) translations(t *testing.T, answers []kafkatest.MirrorAnswer) {
	t.Helper()
	found := func(in ...kafkatest.MirrorUpstream) map[groupPlace]int64 {
		all := map[groupPlace]int64{}
		for _, u := range in {
			for group, offsets := range u.Offsets {
				for _, o := range offsets {
					all[groupPlace{group, o.Topic, o.Partition}] = o.Offset
					if o.Metadata != "by "+group {
						t.Errorf("group %s on %s has metadata %q", group, o.Topic, o.Metadata)
					}
				}
			}
		}
		return all
	}
	if got := found(answers[2].Upstream["B"], answers[2].Upstream["east"]); !maps.Equal(got, c.onC) {
		t.Errorf("on c groups are translated to %v, want %v", got, c.onC)
	}
	some := maps.Clone(c.onC)
	maps.DeleteFunc(some, func(p groupPlace, _ int64) bool { return p.group != "end" && p.group != "payer" })
	if got := found(answers[3].Upstream["B"], answers[3].Upstream["east"]); !maps.Equal(got, some) {
		t.Errorf("on c, under the identity policy, groups are translated to %v, want %v", got, some)
	}
	if got := found(answers[1].Upstream["A"]); !maps.Equal(got, c.onB) {
		t.Errorf("on b groups are translated to %v, want %v", got, c.onB)
	}
}
