package groups

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
)

// An Outcome is what became of a commit.
type Outcome struct {
	// Decision is DoCommit if the group has got the offset from us, None if it
	// had it, and DoNothing if it was refused or there was a reason against it.
	Decision

	// Committed is what the group has afterwards, read back; NoOffset if that is
	// nothing or could not be read.
	Committed int64

	// Sent says that the commit was sent, and not just to be refused because of a
	// member or of the group's kind: it may have had an effect, or, where an answer
	// never came, may yet have one.
	Sent bool

	// Err says that the commit has failed, that its outcome is not known, or
	// that it does not read back. Action is then DoCommit if it was acknowledged.
	Err error
}

const (
	// commitChunk is how many groups are looked at, and then committed for, at a
	// time: few, so that the look is young.
	commitChunk = 100

	// commitsAtOnce is how many commits are under way. There is one request for
	// each group (OffsetCommit has no batches), and a coordinator answers them
	// one by one for each connection.
	commitsAtOnce = 16
)

// Commit makes commits and returns their outcomes, in the same order. Each
// group is looked at again first. What has failed without being refused is
// tried again only where the group still has what it had: so a commit that took
// effect unseen is found, and not repeated.
//
// When ctx ends, what is under way is finished and read back, and what is not
// begun is left.
func (c *Cluster) Commit(ctx context.Context, commits []Commit) []Outcome {
	b := &batch{
		cluster:  c,
		commits:  commits,
		outcomes: make([]Outcome, len(commits)),
		sent:     make([]bool, len(commits)),
		settled:  make([]bool, len(commits)),
		byGroup:  make(map[string][]int),
		patience: c.patience,
	}
	var order []string
	for i, commit := range commits {
		if _, ok := b.byGroup[commit.Group]; !ok {
			order = append(order, commit.Group)
		}
		b.byGroup[commit.Group] = append(b.byGroup[commit.Group], i)
		b.outcomes[i] = Outcome{Decision: skip(NotAttempted, "the run ended before"), Committed: NoOffset}
	}
	for chunk := range slices.Chunk(order, commitChunk) {
		if ctx.Err() != nil {
			break
		}
		b.settle(ctx, chunk)
	}
	b.readBack(context.WithoutCancel(ctx), order)
	return b.outcomes
}

// A batch is commits under way. The commits of one group are worked at by one
// goroutine at a time.
type batch struct {
	cluster  *Cluster
	commits  []Commit
	outcomes []Outcome
	sent     []bool           // see Outcome.Sent
	settled  []bool           // nothing more is to be done about it
	byGroup  map[string][]int // indexes

	// patience is for the coordinators together: when it has been spent on one
	// that is gone, the groups behind are not to wait for it again.
	patience time.Duration
}

// settle makes the commits of some groups.
func (b *batch) settle(ctx context.Context, ids []string) {
	patiently(ctx, b.patience, ids, func(ids []string) { b.try(ctx, ids) }, func(id string) error {
		if b.groupSettled(id) {
			return nil
		}
		return errUnsettled
	})
}

// errUnsettled makes [patiently] try again; nobody sees it.
var errUnsettled = errors.New("unsettled")

func (b *batch) groupSettled(id string) bool {
	return !slices.ContainsFunc(b.byGroup[id], func(i int) bool { return !b.settled[i] })
}

// try looks at groups, and makes those of their commits that are still to be
// made. After the look a commit is not given up: its outcome would be unknown.
func (b *batch) try(ctx context.Context, ids []string) {
	offsets := b.cluster.offsets(ctx, ids, b.patience)
	var ready []string
	for _, id := range ids {
		if b.look(id, offsets[id]) {
			ready = append(ready, id)
		}
	}
	if ready = b.refuseOthers(ctx, ready); ctx.Err() != nil || len(ready) == 0 {
		return
	}
	ctx = context.WithoutCancel(ctx)
	coordinators := b.cluster.admin.FindGroupCoordinators(ctx, ready...)
	inParallel(len(ready), commitsAtOnce, func(i int) {
		found, ok := coordinators[ready[i]]
		if !ok {
			found.Err = errors.New("no answer")
		}
		b.send(ctx, ready[i], found.NodeID, found.Err)
	})
}

// look settles the commits of a group that need not or must not be made, as the
// group has other offsets than it had. It reports whether any are left.
func (b *batch) look(id string, offsets Offsets) (left bool) {
	for _, i := range b.byGroup[id] {
		if b.settled[i] {
			continue
		}
		if offsets.Err != nil {
			b.finish(i, skip(Unreadable, "what the group has committed could not be read"), offsets.Err)
			if isTransient(offsets.Err) {
				b.patience = 0
			}
			continue
		}
		commit := b.commits[i]
		switch has := offsets.Committed(commit.Partition); has {
		case commit.Seen:
			left = true
		case commit.Offset:
			b.finish(i, b.found(i), nil)
		default:
			b.finish(i, skip(Moved, "the group has committed %s meanwhile, where it had %s", orNothing(has), orNothing(commit.Seen)), nil)
		}
	}
	return left && offsets.Err == nil
}

// refuseOthers settles commits into topics that others have taken the names of since
// they were decided, and returns the groups that have any left. Before version 10 of
// OffsetCommit (Kafka 4.2) the coordinator is told no ids, and could not refuse them.
func (b *batch) refuseOthers(ctx context.Context, ids []string) []string {
	names := make(map[string]bool)
	for _, id := range ids {
		for _, i := range b.byGroup[id] {
			if !b.settled[i] {
				names[b.commits[i].Partition.Topic] = true
			}
		}
	}
	topics, err := b.cluster.Topics(ctx, slices.Collect(maps.Keys(names)))
	var left []string
	for _, id := range ids {
		for _, i := range b.byGroup[id] {
			commit := &b.commits[i]
			switch {
			case b.settled[i]:
			case err != nil:
				b.outcomes[i].Decision, b.outcomes[i].Err = skip(Failed, "its topic could not be looked at"), err
			case topics[commit.Partition.Topic].IsOther(commit.TopicID):
				d, _, err := judge(kerr.UnknownTopicID)
				b.finish(i, d, err)
			}
		}
		if err == nil && !b.groupSettled(id) {
			left = append(left, id)
		}
	}
	return left
}

// found returns the decision about a commit whose offset the group has.
func (b *batch) found(i int) Decision {
	if b.sent[i] {
		return Decision{Action: DoCommit} // it took effect, and only its answer is missing
	}
	return Decision{Action: None}
}

func orNothing(offset int64) string {
	if offset == NoOffset {
		return "nothing"
	}
	return fmt.Sprint(offset)
}

func (b *batch) finish(i int, d Decision, err error) {
	b.outcomes[i].Decision, b.outcomes[i].Err, b.settled[i] = d, err, true
}

// send makes the commits of one group that are not settled, in one request.
func (b *batch) send(ctx context.Context, id string, node int32, err error) {
	var open []int
	var commits []Commit
	for _, i := range b.byGroup[id] {
		if !b.settled[i] {
			open = append(open, i)
			commits = append(commits, b.commits[i])
		}
	}
	var answers map[Partition]error
	if err != nil {
		err = fmt.Errorf("find the coordinator: %w", err)
	} else {
		answers, err = b.cluster.commitGroup(ctx, node, id, commits)
	}
	for _, i := range open {
		answer := err
		if err == nil {
			answer = answers[b.commits[i].Partition]
		}
		decision, final, err := judge(answer)
		if decision.Reason != Joined && decision.Reason != NoCommits {
			b.sent[i] = true
		}
		b.outcomes[i].Decision, b.outcomes[i].Err, b.settled[i] = decision, err, final
	}
}

// readBack fills in what the groups have in the end.
func (b *batch) readBack(ctx context.Context, ids []string) {
	offsets := b.cluster.offsets(ctx, ids, b.patience)
	for i := range b.outcomes {
		outcome, commit := &b.outcomes[i], &b.commits[i]
		has := offsets[commit.Group]
		outcome.Committed, outcome.Sent = has.Committed(commit.Partition), b.sent[i]
		if outcome.Err != nil && outcome.Committed == commit.Offset {
			outcome.Decision, outcome.Err = b.found(i), nil
		}
		if outcome.Action != DoCommit || outcome.Err != nil {
			continue
		}
		switch {
		case has.Err != nil:
			outcome.Err = fmt.Errorf("%d was committed, but could not be read back: %w", commit.Offset, has.Err)
		case outcome.Committed < commit.Offset:
			outcome.Err = fmt.Errorf("%d was committed, but the group has %s", commit.Offset, orNothing(outcome.Committed))
		case outcome.Committed > commit.Offset:
			// A member has joined since, begun there, and gone on.
			outcome.Detail = fmt.Sprintf("committed, and by now at %d", outcome.Committed)
		}
	}
}
