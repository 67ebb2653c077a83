package mirror

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"apograph/internal/connect"
)

// usualReplication is the replication factor of MirrorMaker 2's internal topics.
const usualReplication = 3

// An internalTopic is a topic of MirrorMaker 2's, of one partition, and compacted.
type internalTopic struct {
	cluster     connect.Cluster
	name        string
	replication int // see [Checkpoints.TopicReplication]
	logger      *slog.Logger

	made bool            // or found
	told map[string]bool // what has been said of it
}

// ensure makes the topic unless it is there, as MirrorMaker 2 does
// (MirrorUtils.createSinglePartitionCompactedTopic): one that is there stays as it
// is, and one that may not be made is taken to be there. It asks once.
func (t *internalTopic) ensure(ctx context.Context, client *kgo.Client) error {
	if t.made {
		return nil
	}
	admin := kadm.NewClient(client)
	replication, err := t.factor(ctx, admin)
	if err != nil {
		return err
	}
	policy := "compact"
	response, err := admin.CreateTopic(ctx, 1, replication, map[string]*string{"cleanup.policy": &policy}, t.name)
	if err == nil {
		err = response.Err
	}
	switch {
	case err == nil:
		t.logger.Info("topic created", "cluster", t.cluster.Alias, "topic", t.name)
	case errors.Is(err, kerr.TopicAlreadyExists):
		t.lookAt(ctx, admin)
	case errors.Is(err, kerr.TopicAuthorizationFailed), errors.Is(err, kerr.ClusterAuthorizationFailed), errors.Is(err, kerr.UnsupportedVersion):
		t.tell("the topic cannot be made here, and is taken to be there; to make it takes CREATE on it or on the cluster", "error", err)
	case response.ErrMessage != "":
		return fmt.Errorf("create topic %s on %s: %w: %s", t.name, t.cluster.Alias, err, response.ErrMessage)
	default:
		return fmt.Errorf("create topic %s on %s: %w", t.name, t.cluster.Alias, err)
	}
	t.made = true
	return nil
}

// lacking says which right it takes that was refused in writing to the topic. A
// producer is given an id that may write to any topic, and else is refused on behalf
// of the cluster.
func (t *internalTopic) lacking(err error) string {
	switch {
	case errors.Is(err, kerr.TopicAuthorizationFailed):
		return fmt.Sprintf(" (missing permission: WRITE and DESCRIBE on topic %s of %s)", t.name, t.cluster.Alias)
	case errors.Is(err, kerr.ClusterAuthorizationFailed):
		return fmt.Sprintf(" (missing permission: WRITE on topic %s of %s, and IDEMPOTENT_WRITE on the cluster where brokers are older than 2.8; a DENY of WRITE wins over what allows it)",
			t.name, t.cluster.Alias)
	}
	return ""
}

// factor returns the replication factor to ask for.
func (t *internalTopic) factor(ctx context.Context, admin *kadm.Client) (int16, error) {
	if t.replication != 0 {
		return int16(t.replication), nil
	}
	brokers, err := admin.ListBrokers(ctx)
	if err != nil {
		return 0, fmt.Errorf("ask %s for its brokers: %w", t.cluster.Alias, err)
	}
	return int16(ReplicationOf(0, len(brokers))), nil
}

// lookAt says what is wrong with a topic that somebody else made. Where that is
// not to be known, nothing is.
func (t *internalTopic) lookAt(ctx context.Context, admin *kadm.Client) {
	configs, err := admin.DescribeTopicConfigs(ctx, t.name)
	if err != nil || len(configs) == 0 || configs[0].Err != nil {
		return
	}
	for _, c := range configs[0].Configs {
		if c.Key == "cleanup.policy" && c.MaybeValue() != "compact" {
			t.tell("the topic is not compacted alone: what is written to it goes with time", "cleanup.policy", c.MaybeValue())
		}
	}
}

// tell says something about the topic once.
func (t *internalTopic) tell(message string, args ...any) {
	if t.told[message] {
		return
	}
	if t.told == nil {
		t.told = map[string]bool{}
	}
	t.told[message] = true
	t.logger.Warn(message, append([]any{"cluster", t.cluster.Alias, "topic", t.name}, args...)...)
}
