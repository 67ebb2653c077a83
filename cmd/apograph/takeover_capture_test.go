package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"apograph/internal/kafkatest"
)

// A crashCapture is what a real MirrorMaker 2 did that was killed, and where its
// groups stood, beside where they should have.
type crashCapture struct {
	Partitions []struct {
		Source    string     `json:"source"`
		SourceEnd int64      `json:"source_end"`
		TargetEnd int64      `json:"target_end"`
		Map       [][3]int64 `json:"map"` // source, target, count
	} `json:"partitions"`
	Groups []struct {
		Group   string `json:"group"`
		Offsets []struct {
			Source          string `json:"source"`
			Upstream        int64  `json:"upstream"`
			TargetCommitted int64  `json:"target_committed"`
			Exact           int64  `json:"exact"`
		} `json:"offsets"`
	} `json:"groups"`
}

// TestTakeoverOfCapture makes the copy again of the capture whose MirrorMaker 2 was
// killed and copied everything twice, and takes it over: each of its groups goes to
// the last copy of what it has not read, from where MirrorMaker 2 had left it.
func TestTakeoverOfCapture(t *testing.T) {
	data, err := os.ReadFile("../../internal/mm2/testdata/captures/crash-4.3.1.json")
	if err != nil {
		t.Fatal(err)
	}
	var capture crashCapture
	if err := json.Unmarshal(data, &capture); err != nil {
		t.Fatal(err)
	}
	c := newConfigCase(t, "a->b.enabled = true", "topics = orders, quiet")
	for _, p := range capture.Partitions {
		c.topic(c.a, p.Source, 0)
		c.topic(c.b, "a."+p.Source, 0)
		var records []*kgo.Record
		for i := range p.SourceEnd {
			records = append(records, &kgo.Record{Topic: p.Source, Value: fmt.Append(nil, i), Timestamp: time.UnixMilli(1000)})
		}
		if err := c.a.Append(t.Context(), kafkatest.None, records...); err != nil {
			t.Fatal(err)
		}
		mirror := kafkatest.Mirror{Source: c.a.Bootstrap, Target: c.b.Bootstrap, Topic: p.Source, TargetTopic: "a." + p.Source}
		for _, run := range p.Map {
			if _, err := mirror.Copy(t.Context(), run[0], run[0]+run[2]); err != nil {
				t.Fatal(err)
			}
		}
		if n := c.records(c.b, "a."+p.Source); int64(n) != p.TargetEnd {
			t.Fatalf("%s: %d records on the target, the capture has %d", p.Source, n, p.TargetEnd)
		}
	}
	c.run(0, "attach")
	groups := &groupCase{t: t, pair: &kafkatest.Pair{Source: c.a, Target: c.b}}
	args, moved := []string{"translate", "--execute"}, 0
	for _, g := range capture.Groups {
		for _, o := range g.Offsets {
			groups.commit(c.a, g.Group, o.Source, 0, o.Upstream)
			groups.commit(c.b, g.Group, "a."+o.Source, 0, o.TargetCommitted)
			args = append(args, "--group", g.Group)
		}
	}
	c.run(0, args...)
	for _, g := range capture.Groups {
		for _, o := range g.Offsets {
			moved++
			info := c.b.Fake().GroupInfo(g.Group)
			if got := info.Commits["a."+o.Source][0].Offset; got != o.Exact {
				t.Errorf("%s at %d of %s: goes to %d, want %d", g.Group, o.Upstream, o.Source, got, o.Exact)
			}
		}
	}
	if moved < 8 {
		t.Errorf("only %d groups", moved)
	}
	c.run(0, "replicate", "--once")
	c.run(0, "verify", "--mode", "full")
	mustCheck(t, filepath.Join(c.dir, "a-to-b.ledger"))
}
