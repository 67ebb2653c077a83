package groups_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"apograph/internal/groups"
	"apograph/internal/kafkatest"
)

// TestCommit commits for many groups on several coordinators: new ones, simple
// ones, and ones that consumers have left; also zero.
func TestCommit(t *testing.T) {
	f := newFake(t, kafkatest.ClusterOptions{Brokers: 3})
	f.topic("payments", 2)
	f.consume("group-1").Close()
	f.consume("group-2", kgo.ServerSideBalancer()).Close()
	f.commit("group-3", "orders", 0, 1)
	var commits []groups.Commit
	for i, id := range groupNames(250) { // more than two looks
		commits = append(commits, f.wish(id, int64(i)))
		second := f.wish(id, int64(1000+i))
		second.Partition, second.TopicID, second.Metadata = groups.Partition{Topic: "payments", Number: 1}, f.topicID("payments"), ""
		commits = append(commits, second)
	}
	commits[6].Seen = 1
	mustAll(t, commits, f.under.Commit(f.ctx, commits))
	for _, c := range commits {
		offset, metadata, epoch := f.committed(c.Group, c.Partition.Topic, c.Partition.Number)
		if offset != c.Offset || metadata != c.Metadata || epoch != -1 {
			t.Errorf("%+v: has %d, %q, epoch %d", c, offset, metadata, epoch)
		}
	}
}

func TestCommitNothing(t *testing.T) {
	f := newFake(t, kafkatest.ClusterOptions{})
	if got := f.under.Commit(f.ctx, nil); len(got) != 0 {
		t.Errorf("%+v", got)
	}
}

// counter counts the requests of a kind that reach the cluster's brokers.
func (f *fake) counter(key kmsg.Key) *kafkatest.FaultHandle {
	never := make(chan struct{})
	close(never)
	return f.MustFault(f.t, kafkatest.Fault{Kind: kafkatest.DelayBefore, Key: key, Gate: never, Count: -1})
}

// TestCommitFaults fails the commit and the reads around it before and after
// they took effect. What took effect is not sent again.
func TestCommitFaults(t *testing.T) {
	tests := []struct {
		name  string
		fault kafkatest.Fault
		sent  int
	}{
		{"commit cut before", kafkatest.Fault{Kind: kafkatest.CutBefore, Key: kmsg.OffsetCommit}, 2},
		{"commit cut after", kafkatest.Fault{Kind: kafkatest.CutAfter, Key: kmsg.OffsetCommit}, 1},
		{"commit cut before three times", kafkatest.Fault{Kind: kafkatest.CutBefore, Key: kmsg.OffsetCommit, Count: 3}, 4},
		{"commit timed out after", kafkatest.Fault{Kind: kafkatest.ErrorAfter, Key: kmsg.OffsetCommit, Err: kerr.RequestTimedOut}, 1},
		{"coordinator moved", kafkatest.Fault{Kind: kafkatest.ErrorBefore, Key: kmsg.OffsetCommit, Err: kerr.NotCoordinator}, 2},
		{"coordinator loads", kafkatest.Fault{Kind: kafkatest.ErrorBefore, Key: kmsg.OffsetCommit, Err: kerr.CoordinatorLoadInProgress, Count: 2}, 3},
		{"coordinator not available", kafkatest.Fault{Kind: kafkatest.ErrorBefore, Key: kmsg.OffsetCommit, Err: kerr.CoordinatorNotAvailable}, 2},
		{"look cut before", kafkatest.Fault{Kind: kafkatest.CutBefore, Key: kmsg.OffsetFetch}, 1},
		{"look cut after", kafkatest.Fault{Kind: kafkatest.CutAfter, Key: kmsg.OffsetFetch}, 1},
		{"reading back cut", kafkatest.Fault{Kind: kafkatest.CutBefore, Key: kmsg.OffsetFetch, Skip: 1}, 1},
		{"finding the coordinator cut", kafkatest.Fault{Kind: kafkatest.CutBefore, Key: kmsg.FindCoordinator, Count: 2}, 1},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			f := newFake(t, kafkatest.ClusterOptions{})
			sent := f.counter(kmsg.OffsetCommit)
			fault := f.MustFault(t, tt.fault)
			commits := []groups.Commit{f.wish("g", 5)}
			mustAll(t, commits, f.under.Commit(f.ctx, commits))
			if offset, metadata, _ := f.committed("g", "orders", 0); offset != 5 || metadata != "kept g" {
				t.Errorf("has %d, %q", offset, metadata)
			}
			if sent.Hits() != tt.sent || fault.Hits() == 0 {
				t.Errorf("%d commits were sent, want %d; %d faults", sent.Hits(), tt.sent, fault.Hits())
			}
		})
	}
}

// TestCommitNeverAnswered: when no attempt is answered it is said that nothing
// is known, unless reading back shows the offset; the other groups are done.
func TestCommitNeverAnswered(t *testing.T) {
	bad := func(r kmsg.Request) bool { return r.(*kmsg.OffsetCommitRequest).Group == "bad" }
	for _, fault := range []kafkatest.Fault{
		{Kind: kafkatest.ErrorBefore, Err: kerr.CoordinatorNotAvailable},
		{Kind: kafkatest.ErrorAfter, Err: kerr.RequestTimedOut},
		{Kind: kafkatest.CutAfter},
	} {
		t.Run(fault.Kind.String(), func(t *testing.T) {
			f := newFake(t, kafkatest.ClusterOptions{})
			fault.Key, fault.Count, fault.When = kmsg.OffsetCommit, -1, bad
			f.MustFault(t, fault)
			commits := []groups.Commit{f.wish("good", 5), f.wish("bad", 6)}
			got := f.under.Commit(f.ctx, commits)
			if fault.Kind != kafkatest.ErrorBefore {
				mustAll(t, commits, got)
				return
			}
			mustAll(t, commits[:1], got[:1])
			if got[1].Err == nil || got[1].Reason != groups.Failed || got[1].Committed != groups.NoOffset {
				t.Errorf("%+v", got[1])
			}
		})
	}
}

// TestCommitFoundByReadingBack: the answer is missing, nor can the group be
// looked at again before the end. Only reading back tells.
func TestCommitFoundByReadingBack(t *testing.T) {
	f := newFake(t, kafkatest.ClusterOptions{})
	sent := f.counter(kmsg.OffsetCommit)
	f.MustFault(t, kafkatest.Fault{Kind: kafkatest.CutAfter, Key: kmsg.OffsetCommit})
	f.MustFault(t, kafkatest.Fault{Kind: kafkatest.ErrorBefore, Key: kmsg.OffsetFetch, Err: kerr.GroupAuthorizationFailed, Skip: 1})
	commits := []groups.Commit{f.wish("g", 5)}
	mustAll(t, commits, f.under.Commit(f.ctx, commits))
	if sent.Hits() != 1 {
		t.Errorf("%d commits were sent, want 1", sent.Hits())
	}
}

// TestCommitRefused: errors that will not go away are final, for their
// partition alone.
func TestCommitRefused(t *testing.T) {
	f := newFake(t, kafkatest.ClusterOptions{})
	sent := f.counter(kmsg.OffsetCommit)
	recreated := f.wish("g", 7)
	recreated.Partition, recreated.TopicID = groups.Partition{Topic: "old"}, [16]byte{1, 2, 3}
	missing := f.wish("g", 8)
	missing.Partition.Number = 99
	f.Share(f.ctx, t, "share")
	commits := []groups.Commit{f.wish("g", 6), recreated, missing, f.wish("share", 9)}
	got := f.under.Commit(f.ctx, commits)
	mustAll(t, commits[:1], got[:1])
	for i, want := range map[int]error{1: kerr.UnknownTopicID, 2: kerr.UnknownTopicOrPartition} {
		if !errors.Is(got[i].Err, want) || got[i].Reason != groups.Failed || got[i].Committed != groups.NoOffset {
			t.Errorf("%+v, want %v", got[i], want)
		}
	}
	if got[3].Reason != groups.NoCommits {
		t.Errorf("share group: %+v", got[3])
	}
	if sent.Hits() != 2 {
		t.Errorf("%d commits were sent, want one a group", sent.Hits())
	}
}

// TestCommitIntoAnotherTopic: a topic that has taken the name of the one that a
// commit was decided for gets nothing, also of a coordinator that is told no ids.
func TestCommitIntoAnotherTopic(t *testing.T) {
	f := newFake(t, kafkatest.ClusterOptions{})
	sent := f.counter(kmsg.OffsetCommit)
	other := f.wish("g", 5)
	other.TopicID = [16]byte{1, 2, 3}
	got := f.under.Commit(f.ctx, []groups.Commit{other})[0]
	if !errors.Is(got.Err, kerr.UnknownTopicID) || got.Reason != groups.Failed || got.Sent || got.Committed != groups.NoOffset {
		t.Errorf("%+v, want it to be refused and not sent", got)
	}
	if sent.Hits() != 0 {
		t.Errorf("%d commits were sent", sent.Hits())
	}
}

// hold keeps one request back, behind skip others, from when it has arrived
// until it is released.
func (f *fake) hold(key kmsg.Key, skip int) (arrived func(), release func()) {
	gate := make(chan struct{})
	fault := f.MustFault(f.t, kafkatest.Fault{Kind: kafkatest.DelayBefore, Key: key, Gate: gate, Skip: skip, Count: 1})
	arrived = func() {
		f.t.Helper()
		if err := fault.Wait(f.ctx, 1); err != nil {
			f.t.Fatal(err)
		}
	}
	return arrived, func() { close(gate) }
}

// start commits while the test does something else.
func (f *fake) start(commits ...groups.Commit) <-chan []groups.Outcome {
	done := make(chan []groups.Outcome, 1)
	go func() { done <- f.under.Commit(f.ctx, commits) }()
	return done
}

// TestCommitJoined: a member joins after the look and before the commit, which
// is refused, and not tried again.
func TestCommitJoined(t *testing.T) {
	for _, protocol := range []string{"classic", "consumer"} {
		t.Run(protocol, func(t *testing.T) {
			f := newFake(t, kafkatest.ClusterOptions{})
			var options []kgo.Opt
			if protocol == "consumer" {
				options = append(options, kgo.ServerSideBalancer())
			}
			f.consume("g", options...).Close()
			sent := f.counter(kmsg.OffsetCommit)
			arrived, release := f.hold(kmsg.OffsetCommit, 0)
			done := f.start(f.wish("g", 5))
			arrived()
			f.consume("g", options...)
			release()
			got := (<-done)[0]
			if got.Action != groups.DoNothing || got.Reason != groups.Joined || got.Err != nil || got.Committed != groups.NoOffset {
				t.Errorf("%+v", got)
			}
			if offset, _, _ := f.committed("g", "orders", 0); offset != groups.NoOffset || sent.Hits() != 1 {
				t.Errorf("has %d after %d commits", offset, sent.Hits())
			}
		})
	}
}

// TestCommitMoved: somebody else commits for the group after it was decided.
func TestCommitMoved(t *testing.T) {
	f := newFake(t, kafkatest.ClusterOptions{})
	f.commit("forwards", "orders", 0, 50)
	f.commit("backwards", "orders", 0, 3)
	f.commit("there", "orders", 0, 5)
	sent := f.counter(kmsg.OffsetCommit)
	commits := []groups.Commit{f.wish("forwards", 5), f.wish("backwards", 5), f.wish("there", 5), f.wish("gone", 5)}
	commits[0].Seen, commits[1].Seen, commits[3].Seen = 4, 4, 4
	got := f.under.Commit(f.ctx, commits)
	for i, committed := range map[int]int64{0: 50, 1: 3, 3: groups.NoOffset} {
		if got[i].Action != groups.DoNothing || got[i].Reason != groups.Moved || got[i].Err != nil || got[i].Committed != committed {
			t.Errorf("%+v: %+v", commits[i], got[i])
		}
	}
	if want := (groups.Outcome{Decision: groups.Decision{Action: groups.None}, Committed: 5}); got[2] != want {
		t.Errorf("%+v, want %+v", got[2], want)
	}
	if sent.Hits() != 0 {
		t.Errorf("%d commits were sent", sent.Hits())
	}
}

// TestCommitMovedAfterLostAnswer: the commit takes effect and its answer is
// lost; before the second look somebody goes on from there. A repetition would
// take the group back.
func TestCommitMovedAfterLostAnswer(t *testing.T) {
	f := newFake(t, kafkatest.ClusterOptions{})
	f.MustFault(t, kafkatest.Fault{Kind: kafkatest.CutAfter, Key: kmsg.OffsetCommit})
	arrived, release := f.hold(kmsg.OffsetFetch, 1)
	done := f.start(f.wish("g", 5))
	arrived()
	if offset, _, _ := f.committed("g", "orders", 0); offset != 5 {
		t.Errorf("has %d, want 5: the commit was to take effect", offset)
	}
	f.commit("g", "orders", 0, 8)
	release()
	got := (<-done)[0]
	if got.Action != groups.DoNothing || got.Reason != groups.Moved || got.Committed != 8 {
		t.Errorf("%+v", got)
	}
	if offset, _, _ := f.committed("g", "orders", 0); offset != 8 {
		t.Errorf("has %d, want 8", offset)
	}
}

// TestCommitReadBack: what is there afterwards is looked at, and not believed.
func TestCommitReadBack(t *testing.T) {
	tests := []struct {
		meanwhile int64
		isError   bool
	}{{4, true}, {groups.NoOffset, true}, {7, false}}
	for _, tt := range tests {
		t.Run(fmt.Sprint(tt.meanwhile), func(t *testing.T) {
			f := newFake(t, kafkatest.ClusterOptions{})
			arrived, release := f.hold(kmsg.OffsetFetch, 1)
			done := f.start(f.wish("g", 5))
			arrived()
			f.commit("g", "orders", 0, tt.meanwhile)
			release()
			got := (<-done)[0]
			if got.Action != groups.DoCommit || got.Committed != tt.meanwhile || (got.Err != nil) != tt.isError {
				t.Errorf("%+v", got)
			}
		})
	}
}

// TestCommitNotReadBack: a commit is not called done if it cannot be read back.
func TestCommitNotReadBack(t *testing.T) {
	f := newFake(t, kafkatest.ClusterOptions{})
	f.MustFault(t, kafkatest.Fault{Kind: kafkatest.ErrorBefore, Key: kmsg.OffsetFetch, Err: kerr.GroupAuthorizationFailed, Skip: 1, Count: -1})
	got := f.under.Commit(f.ctx, []groups.Commit{f.wish("g", 5)})[0]
	if got.Action != groups.DoCommit || got.Committed != groups.NoOffset || !errors.Is(got.Err, kerr.GroupAuthorizationFailed) {
		t.Errorf("%+v", got)
	}
}

// TestCommitInterrupted: when the context ends, a commit that is under way is
// finished, and those behind it are not begun.
func TestCommitInterrupted(t *testing.T) {
	f := newFake(t, kafkatest.ClusterOptions{})
	var commits []groups.Commit
	for _, id := range groupNames(150) {
		commits = append(commits, f.wish(id, 5))
	}
	ctx, cancel := context.WithCancel(f.ctx)
	defer cancel()
	arrived, release := f.hold(kmsg.OffsetCommit, 0)
	done := make(chan []groups.Outcome, 1)
	go func() { done <- f.under.Commit(ctx, commits) }()
	arrived()
	cancel()
	release()
	got := <-done
	mustAll(t, commits[:100], got[:100])
	for i, outcome := range got[100:] {
		if outcome.Reason != groups.NotAttempted || outcome.Err != nil || outcome.Committed != groups.NoOffset {
			t.Errorf("%+v: %+v", commits[100+i], outcome)
		}
	}
}

// TestCommitManyGroups commits for 4000 groups in bounded time.
func TestCommitManyGroups(t *testing.T) {
	f := newFake(t, kafkatest.ClusterOptions{Brokers: 3})
	var commits []groups.Commit
	for i, id := range groupNames(4000) {
		commits = append(commits, f.wish(id, int64(i%1000)))
	}
	start := time.Now()
	mustAll(t, commits, f.under.Commit(f.ctx, commits))
	t.Logf("%d groups in %v", len(commits), time.Since(start))
}
