package groups

import (
	"context"
	"errors"
	"fmt"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// outsider is the generation in the commits of somebody who is not a member.
// With it and without a member id, a coordinator accepts offsets only for a
// group without members (ClassicGroup.validateOffsetCommit,
// ConsumerGroup.validateOffsetCommit); a group that does not exist becomes a
// simple one (OffsetMetadataManager.validateOffsetCommit).
const outsider = -1

// commitGroup sends the commits of one group to its coordinator, once: the
// client's own retries would repeat a commit whose answer was lost, when
// somebody else may have committed in between. It returns an error for each
// partition, or one for all of them.
//
// Leader epochs are those of the other cluster and would mislead consumers
// here, so none is sent.
func (c *Cluster) commitGroup(ctx context.Context, node int32, id string, commits []Commit) (map[Partition]error, error) {
	request := kmsg.NewPtrOffsetCommitRequest()
	request.Group = id
	request.Generation = outsider
	topics := make(map[string]int)
	names := make(map[[16]byte]string)
	for _, commit := range commits {
		name := commit.Partition.Topic
		at, ok := topics[name]
		if !ok {
			at = len(request.Topics)
			topics[name], names[commit.TopicID] = at, name
			t := kmsg.NewOffsetCommitRequestTopic()
			// Version 10 sends the id, older ones the name (KIP-848).
			t.Topic, t.TopicID = name, commit.TopicID
			request.Topics = append(request.Topics, t)
		}
		p := kmsg.NewOffsetCommitRequestTopicPartition()
		p.Partition, p.Offset, p.LeaderEpoch, p.Metadata = commit.Partition.Number, commit.Offset, -1, &commit.Metadata
		request.Topics[at].Partitions = append(request.Topics[at].Partitions, p)
	}
	response, err := c.client.Broker(int(node)).Request(ctx, request)
	if err != nil {
		return nil, err
	}
	answers := make(map[Partition]error, len(commits))
	for _, commit := range commits {
		answers[commit.Partition] = errNoAnswer
	}
	for _, t := range response.(*kmsg.OffsetCommitResponse).Topics {
		name := t.Topic
		if name == "" {
			name = names[t.TopicID]
		}
		for _, p := range t.Partitions {
			answers[Partition{name, p.Partition}] = kerr.ErrorForCode(p.ErrorCode)
		}
	}
	return answers, nil
}

var errNoAnswer = errors.New("the coordinator answered, but not for this partition")

// judge says what an answer to a commit means, and whether that is final. What
// is not final has had no effect, or may have had it.
func judge(answer error) (d Decision, final bool, err error) {
	is := func(errs ...*kerr.Error) bool {
		for _, e := range errs {
			if errors.Is(answer, e) {
				return true
			}
		}
		return false
	}
	var code *kerr.Error
	switch {
	case answer == nil:
		return Decision{Action: DoCommit}, true, nil
	case is(kerr.UnknownMemberID, kerr.RebalanceInProgress, kerr.IllegalGeneration, kerr.StaleMemberEpoch, kerr.FencedMemberEpoch):
		return skip(Joined, "a member joined the group before the commit, which its coordinator refused (%v)", answer), true, nil
	case is(kerr.GroupIDNotFound):
		// Of commits from outside only those for a share group are answered so
		// (ShareGroup.validateOffsetCommit).
		return skip(NoCommits, "it is not a consumer group"), true, nil
	case is(kerr.NotCoordinator, kerr.CoordinatorLoadInProgress, kerr.CoordinatorNotAvailable, kerr.RequestTimedOut), !errors.As(answer, &code):
		// NOT_COORDINATOR and COORDINATOR_NOT_AVAILABLE also stand for an append
		// that was made and not replicated before the leader changed or the time
		// was up (CoordinatorOperationExceptionHelper).
		return skip(Failed, "it is not known to be committed"), false, fmt.Errorf("commit: %w", answer)
	default:
		return skip(Failed, "the commit was refused"), true, fmt.Errorf("commit: %w", answer)
	}
}
