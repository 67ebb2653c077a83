//go:build unix

package main

import (
	"errors"
	"strings"
	"syscall"
	"testing"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

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

// TestLivingDuties: status says how what is done beside the copy fares: when it was
// last done, and why, since when and until when it is not.
func TestLivingDuties(t *testing.T) {
	c := startLive(t, "-X", "emit.offset-syncs.enabled=true",
		"-X", "emit.checkpoints.enabled=true", "-X", "emit.checkpoints.interval.seconds=1", "-X", "refresh.groups.interval.seconds=1")
	commitAt(t, c.pair.Source, "billing", 3)
	row := c.duty("checkpoints", func(r dutyAnswerRow) bool { return r.LastDone != nil })
	if row.Pair != "" || row.State != "running" || row.Seconds == nil || row.Error != "" || row.Since != nil || row.NextRetry != nil {
		t.Errorf("%+v", row)
	}
	c.group("billing", func(groupAnswerRow) bool { return true })
	deny := c.pair.Source.MustFault(t, kafkatest.Fault{Kind: kafkatest.ErrorBefore, Key: kmsg.OffsetFetch, Err: kerr.GroupAuthorizationFailed, Count: -1})
	row = c.duty("checkpoints", func(r dutyAnswerRow) bool { return r.State == "failing" && r.NextRetry != nil })
	if row.LastDone == nil || row.Since == nil || *row.Since < *row.LastDone || *row.NextRetry <= *row.Since || !strings.Contains(row.Error, "GROUP_AUTHORIZATION_FAILED") {
		t.Errorf("%+v", row)
	}
	out := c.must(0, "status", "-o", "wide")
	if !strings.Contains(out, ", failing: 1 duty\n") || !strings.Contains(out, "\ncheckpoints   failing  ") || !strings.Contains(out, "\noffset_syncs  running  ") {
		t.Errorf("%s", out)
	}
	deny.Remove()
	c.duty("checkpoints", func(r dutyAnswerRow) bool { return r.State == "running" && r.Since == nil })
	c.stop(syscall.SIGTERM)
	code, out, errs := c.ask("status", "-o", "json")
	if answer := decodeStatus(t, out, errs); answer.Duties != nil || code != 0 {
		t.Errorf("a flow that does not run: %+v", answer.Duties)
	}
}

// duty waits for the row of a duty.
func (c *liveCase) duty(name string, holds func(dutyAnswerRow) bool) (row dutyAnswerRow) {
	c.t.Helper()
	eventually(c.t, "the status says how the duty fares", func() bool {
		_, out, errs := c.ask("status", "-o", "json")
		for _, r := range decodeStatus(c.t, out, errs).Duties {
			if r.Duty == name && holds(r) {
				row = r
				return true
			}
		}
		return false
	})
	return row
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
