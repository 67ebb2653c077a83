//go:build unix

package main

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"apograph/internal/kafkatest"
)

// TestDryRunOfDuties: the dry run says of each duty whether it is done, and where;
// one that lacks a right is refused.
func TestDryRunOfDuties(t *testing.T) {
	c := newConfigCase(t, "a->b.enabled = true", "topics = orders", "a->b.emit.checkpoints.enabled = false", "sync.group.offsets.enabled = true")
	c.topic(c.a, "orders", 3)
	commitAt(t, c.a, "billing", 2)
	var plan struct{ Duties []map[string]any }
	c.answer(&plan, 0, "replicate", "--dry-run")
	row := func(duty, pair string, on bool, cluster, topic string, create bool, replication, groups any) map[string]any {
		return map[string]any{
			"duty": duty, "pair": pair, "on": on, "cluster": cluster, "topic": topic, "create": create,
			"topic_only": false, "replication_factor": replication, "groups": groups, "missing_permissions": []any{},
		}
	}
	if diff := cmp.Diff([]map[string]any{
		row("offset_syncs", "", true, "a", "mm2-offset-syncs.b.internal", true, 1.0, nil),
		row("checkpoints", "", false, "", "", false, nil, nil),
		row("group_sync", "", true, "b", "", false, nil, 1.0),
		row("heartbeats", "a->b", true, "b", "heartbeats", true, 3.0, nil),
		row("heartbeats", "b->a", true, "a", "heartbeats", true, 1.0, nil), // as MirrorMaker 2 does
	}, plan.Duties); diff != "" {
		t.Error(diff)
	}
	for _, topics := range []map[string]bool{c.topics(c.a), c.topics(c.b)} {
		for name := range topics {
			if name != "orders" {
				t.Errorf("a dry run made topic %s", name)
			}
		}
	}
	c.run(0, "replicate", "--once")
	c.a.MustFault(t, kafkatest.Fault{Kind: kafkatest.ErrorBefore, Key: kmsg.Metadata, Topic: "mm2-offset-syncs.b.internal", Count: -1, Err: kerr.TopicAuthorizationFailed})
	table, stderr := c.run(5, "replicate", "--dry-run", "-o", "wide")
	lacking := "source topic mm2-offset-syncs.b.internal: "
	want := strings.Join([]string{
		"\n\nDUTY             DONE            CLUSTER  TOPIC                        REPLICAS  NOTES",
		"offset_syncs     yes             a        mm2-offset-syncs.b.internal            missing permission: " + lacking +
			"WRITE; missing permission: " + lacking + "DESCRIBE; missing permission: " + lacking + "READ",
		"checkpoints      no",
		"group_sync       yes             b                                               1 group",
		"heartbeats a->b  yes             b        heartbeats                          3",
		"heartbeats b->a  yes, new topic  a        heartbeats                          1",
		"",
	}, "\n")
	if !strings.HasSuffix(table, want) {
		t.Errorf("%s\nwant at its end%s", table, want)
	}
	if !strings.Contains(stderr, "duty offset_syncs: missing permission: "+lacking+"WRITE") {
		t.Error(stderr)
	}
}

// TestDryRunOfSilentHeart: where heartbeats are off their topic is made all the
// same, as MirrorMaker 2 does, and the dry run says that it is no more than that.
func TestDryRunOfSilentHeart(t *testing.T) {
	c := newConfigCase(t, "a->b.enabled = true", "topics = orders", "emit.heartbeats.enabled = false", "emit.checkpoints.enabled = false", "emit.offset-syncs.enabled = false")
	c.topic(c.a, "orders", 3)
	var plan struct{ Duties []map[string]any }
	c.answer(&plan, 0, "replicate", "--dry-run")
	beats := plan.Duties[len(plan.Duties)-1]
	if beats["pair"] != "a->b" || beats["topic"] != "heartbeats" || beats["create"] != true || beats["topic_only"] != true {
		t.Errorf("%v", beats)
	}
	table, _ := c.run(0, "replicate", "--dry-run", "-o", "wide")
	if want := "heartbeats a->b new topic only b heartbeats 3 nothing is written to it; MirrorMaker 2 makes it as well\n"; !strings.HasSuffix(evenBlanks(table), want) {
		t.Errorf("%s\nwant at its end %s", table, want)
	}
}
