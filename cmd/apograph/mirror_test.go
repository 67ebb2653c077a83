package main

import (
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"apograph/internal/kafkatest"
)

// A dutiesAnswer is what `replicate` says of the duties beside copying.
type dutiesAnswer struct {
	Complete bool
	Duties   []struct{ Duty, Error string }
}

// TestFlowOfAFileWritesForMirrorMakersClients as MirrorMaker 2 does by default;
// what the file turns off is not written.
func TestFlowOfAFileWritesForMirrorMakersClients(t *testing.T) {
	tests := []struct {
		name  string
		lines []string
		here  map[string]bool // topics, with their cluster in front
	}{
		{"by default", nil, map[string]bool{"a/mm2-offset-syncs.b.internal": true, "b/heartbeats": true, "b/a.checkpoints.internal": true, "a/heartbeats": false, "b/mm2-offset-syncs.a.internal": false}},
		{"syncs on the target", []string{"offset-syncs.topic.location = target"},
			map[string]bool{"a/mm2-offset-syncs.b.internal": false, "b/mm2-offset-syncs.a.internal": true}},
		{"no syncs", []string{"emit.offset-syncs.enabled = false"}, map[string]bool{"a/mm2-offset-syncs.b.internal": false, "b/heartbeats": true}},
		{"no checkpoints", []string{"emit.checkpoints.enabled = false"}, map[string]bool{"b/a.checkpoints.internal": false, "b/heartbeats": true}},
		{"no heartbeats", []string{"a->b.emit.heartbeats.enabled = false"}, map[string]bool{"b/heartbeats": false}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c := newConfigCase(t, append([]string{"a->b.enabled = true", "topics = orders"}, tt.lines...)...)
			c.topic(c.a, "orders", 5)
			stdout, _ := c.run(0, "replicate", "--once", "-o", "json")
			if strings.Contains(stdout, `"duties"`) {
				t.Errorf("answer %s", stdout)
			}
			on := map[string]map[string]bool{"a": c.topics(c.a), "b": c.topics(c.b)}
			for name, want := range tt.here {
				alias, topic, _ := strings.Cut(name, "/")
				if on[alias][topic] != want {
					t.Errorf("%s: %v, want %v", name, !want, want)
				}
			}
			c.run(0, "verify") // what is written after the copy leaves it complete
		})
	}
}

// TestFlowOfFlagsWritesWhatItIsToldTo, and else to its topics alone.
func TestFlowOfFlagsWritesWhatItIsToldTo(t *testing.T) {
	c := newConfigCase(t)
	c.file = ""
	c.topic(c.a, "orders", 5)
	adHoc := []string{"replicate", "--once", "--source-bootstrap-server", c.a.Server(), "--target-bootstrap-server", c.b.Server(), "--topics", "orders", "--ledger", c.dir + "/f.ledger"}
	c.run(0, adHoc...)
	if on, at := c.topics(c.a), c.topics(c.b); len(on) != 1 || len(at) != 1 {
		t.Errorf("topics %v, %v", on, at)
	}
	c.run(0, append(adHoc, "-X", "emit.offset-syncs.enabled=true", "-X", "offset-syncs.topic.location=target", "-X", "emit.heartbeats.enabled=true", "-X", "offset.lag.max=4")...)
	if on, at := c.topics(c.a), c.topics(c.b); len(on) != 1 || !at["mm2-offset-syncs.source.internal"] || !at["heartbeats"] || len(at) != 3 {
		t.Errorf("topics %v, %v", on, at)
	}
	if n := c.records(c.b, "mm2-offset-syncs.source.internal"); n != 5 { // at distances of 1, 2 and 3 from the newest, and the first
		t.Errorf("%d syncs", n)
	}
	_, stderr := c.run(2, append(adHoc, "-X", "emit.heartbeats.interval.seconds=0")...)
	if !strings.Contains(stderr, "emit.heartbeats.interval.seconds=0") {
		t.Error(stderr)
	}
	_, stderr = c.run(2, append(adHoc, "--topics", "heart.*", "-X", "emit.heartbeats.enabled=true")...)
	if !strings.Contains(stderr, "emit.heartbeats.enabled") {
		t.Error(stderr)
	}
}

// TestDutyThatIsNotDone: the copy is complete, and the run has not done all that
// it was to do.
func TestDutyThatIsNotDone(t *testing.T) {
	c := newConfigCase(t, "a->b.enabled = true", "topics = orders")
	c.topic(c.a, "orders", 5)
	c.a.MustFault(t, kafkatest.Fault{Kind: kafkatest.ErrorBefore, Key: kmsg.CreateTopics, Err: kerr.InvalidReplicationFactor, Count: -1})
	var got dutiesAnswer
	c.answer(&got, 1, "replicate", "--once")
	if !got.Complete || len(got.Duties) != 1 || got.Duties[0].Duty != "offset_syncs" || !strings.Contains(got.Duties[0].Error, "INVALID_REPLICATION_FACTOR") {
		t.Errorf("answer %+v", got)
	}
	stdout, _ := c.run(1, "replicate", "--once")
	if !strings.Contains(stdout, "not done") || !strings.Contains(stdout, "offset_syncs: create topic mm2-offset-syncs.b.internal on a") {
		t.Error(stdout)
	}
}
