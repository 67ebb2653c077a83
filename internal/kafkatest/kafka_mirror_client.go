//go:build kafka

package kafkatest

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// A MirrorQuestion is a client of MirrorMaker 2's library, and what it is asked
// besides what needs no argument. Nothing in it may hold a tab.
type MirrorQuestion struct {
	Properties map[string]string // bootstrap.servers, replication.policy.*, ...
	Aliases    []string          // of upstream clusters
	Groups     []string          // to be translated, from each of them
}

// A MirrorAnswer is what MirrorClient and RemoteClusterUtils both say. Names are
// sorted.
type MirrorAnswer struct {
	HeartbeatTopics  []string                  `json:"heartbeat_topics"`
	CheckpointTopics []string                  `json:"checkpoint_topics"`
	UpstreamClusters []string                  `json:"upstream_clusters"`
	RemoteTopics     []string                  `json:"remote_topics"`
	Upstream         map[string]MirrorUpstream `json:"upstream"` // by alias
}

// A MirrorUpstream is what the library says of one upstream cluster.
type MirrorUpstream struct {
	Hops         int                       `json:"hops"` // -1: out of reach
	RemoteTopics []string                  `json:"remote_topics"`
	Offsets      map[string][]MirrorOffset `json:"offsets"` // by group; nothing where there is no topic of checkpoints
}

// A MirrorOffset is a translated offset of a group, of a topic of the cluster
// that was asked.
type MirrorOffset struct {
	Topic     string `json:"topic"`
	Partition int32  `json:"partition"`
	Offset    int64  `json:"offset"`
	Metadata  string `json:"metadata"`
}

// Offset returns the translated offset of a group, -1 if there is none.
func (u MirrorUpstream) Offset(group, topic string, partition int32) int64 {
	for _, o := range u.Offsets[group] {
		if o.Topic == topic && o.Partition == partition {
			return o.Offset
		}
	}
	return -1
}

// MirrorAnswers asks MirrorMaker 2's client library, all in one process. The
// answers stand in the order of the questions.
func (j *Java) MirrorAnswers(ctx context.Context, questions ...MirrorQuestion) ([]MirrorAnswer, error) {
	var in strings.Builder
	for _, q := range questions {
		var fields []string
		for _, name := range slices.Sorted(maps.Keys(q.Properties)) {
			fields = append(fields, "property="+name+"="+q.Properties[name])
		}
		for _, alias := range q.Aliases {
			fields = append(fields, "alias="+alias)
		}
		for _, group := range q.Groups {
			fields = append(fields, "group="+group)
		}
		in.WriteString(strings.Join(fields, "\t") + "\n")
	}
	out, err := j.java(ctx, strings.NewReader(in.String()), "MirrorView")
	if err != nil {
		return nil, err
	}
	var answers []MirrorAnswer
	for line := range bytes.Lines(out) {
		var a MirrorAnswer
		if err := json.Unmarshal(line, &a); err != nil {
			return nil, fmt.Errorf("answer %q: %w", line, err)
		}
		answers = append(answers, a)
	}
	if len(answers) != len(questions) {
		return nil, fmt.Errorf("%d answers to %d questions", len(answers), len(questions))
	}
	return answers, nil
}
