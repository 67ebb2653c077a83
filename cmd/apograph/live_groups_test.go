//go:build unix

package main

import (
	"errors"
	"strings"
	"syscall"
	"testing"

	"github.com/twmb/franz-go/pkg/kadm"

	"apograph/internal/kafkatest"
)

// TestLivingGroups: a running copier commits for groups at the interval, and says
// of each where it is; a group that its owner has moved is left alone, which
// the table shows too.
func TestLivingGroups(t *testing.T) {
	c := startLive(t, "-X", "sync.group.offsets.enabled=true", "-X", "sync.group.offsets.interval.seconds=1",
		"-X", "emit.checkpoints.enabled=true", "-X", "emit.checkpoints.interval.seconds=1", "-X", "refresh.groups.interval.seconds=1")
	c.caughtUp("orders:0", 5)
	commitAt(t, c.pair.Source, "billing", 3)
	eventually(t, "the group is committed for", func() bool { return committedAt(c.pair.Target, "billing") == 3 })
	row := c.group("billing", func(r groupAnswerRow) bool { return r.Committed != nil })
	if row.Topic != "orders" || *row.Partition != 0 || row.TargetTopic != "orders" || *row.SourceOffset != 3 || *row.TargetOffset != 3 ||
		*row.Committed != 3 || row.Reason != "" || row.Action == "skip" {
		t.Errorf("%+v", row)
	}
	if out := c.must(0, "status"); strings.Contains(out, "GROUP") {
		t.Errorf("nothing is left alone: %s", out)
	}
	if checkpoint := lastCheckpoints(t, c.pair.Target.Bootstrap)["billing"]; checkpoint.Upstream != 3 || checkpoint.Downstream != 3 {
		t.Errorf("%+v", checkpoint)
	}
	commitAt(t, c.pair.Source, "connect-sink", 2)
	if row := c.group("connect-sink", func(groupAnswerRow) bool { return true }); row.Partition != nil || row.Action != "skip" || row.Reason != "excluded" {
		t.Errorf("%+v", row)
	}
	commitAt(t, c.pair.Target, "billing", 1)
	commitAt(t, c.pair.Source, "billing", 4)
	row = c.group("billing", func(r groupAnswerRow) bool { return r.Reason != "" })
	if row.Action != "skip" || row.Reason != "taken_over" || *row.Committed != 1 {
		t.Errorf("%+v", row)
	}
	if out := c.must(0, "status"); !strings.Contains(out, "billing       taken_over           1  orders\nconnect-sink  excluded             -  -\n") {
		t.Errorf("%s", out)
	}
	eventually(t, "it is known how long groups wait", func() bool {
		_, out, errs := c.ask("status", "-o", "json")
		lag := decodeStatus(t, out, errs).SyncLag
		return lag != nil && *lag >= 1
	})
	c.stop(syscall.SIGTERM)
	if got := committedAt(c.pair.Target, "billing"); got != 1 {
		t.Errorf("the group that was moved has %d", got)
	}
}

// group waits for the row of a group, in its one partition.
func (c *liveCase) group(id string, holds func(groupAnswerRow) bool) (row groupAnswerRow) {
	c.t.Helper()
	eventually(c.t, "the status says where the group is", func() bool {
		_, out, errs := c.ask("status", "-o", "json")
		for _, r := range decodeStatus(c.t, out, errs).Groups {
			if r.Group == id && holds(r) {
				row = r
				return true
			}
		}
		return false
	})
	return row
}

// commitAt commits for a group in orders-0, as any administrator would.
func commitAt(t *testing.T, on *kafkatest.Cluster, group string, offset int64) {
	t.Helper()
	answer, err := kadm.NewClient(on.NewClient(t)).CommitOffsets(t.Context(), group, kadm.Offsets{"orders": {0: {Topic: "orders", At: offset, LeaderEpoch: -1}}})
	if err := errors.Join(err, answer.Error()); err != nil {
		t.Fatal(err)
	}
}

// committedAt returns what a group has in orders-0; -1 for nothing.
func committedAt(on *kafkatest.Cluster, group string) int64 {
	if info := on.Fake().GroupInfo(group); info != nil {
		if commit, ok := info.Commits["orders"][0]; ok {
			return commit.Offset
		}
	}
	return -1
}
