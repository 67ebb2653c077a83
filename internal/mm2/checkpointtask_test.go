package mm2_test

import (
	"errors"
	"fmt"
	"maps"
	"strconv"
	"strings"
	"testing"

	"apograph/internal/mm2"
)

// What MirrorMaker 2's checkpoint task and its clients do, to compare with:
// apograph's checkpoints are exact, and its rules are its own.

// emits says whether a task writes a checkpoint, by the last one of the group and
// partition (MirrorCheckpointTask.checkpointIsMoreRecent).
func emits(last, candidate *[2]int64) bool {
	return candidate != nil && (last == nil || candidate[0] < last[0] || candidate[1] > last[1])
}

// downstreamTopic is the name that a checkpoint bears for a source topic
// (MirrorCheckpointTask.renameTopicPartition).
func downstreamTopic(p mm2.Policy, source, target, topic string) string {
	if from, remote := p.Source(topic); remote && from == target {
		return p.Original(topic)
	}
	return p.Remote(source, topic)
}

// syncedOffsets says what a task commits for a group at the target. had is what
// the group had when it was last seen to be empty; nil if it was not seen so.
func syncedOffsets(had map[string]*int64, checkpoints map[string]int64) map[string]int64 {
	commits := map[string]int64{}
	for partition, offset := range checkpoints {
		if had := had[partition]; had == nil || *had < offset {
			commits[partition] = offset
		}
	}
	return commits
}

// remoteOffsets is MirrorClient.remoteConsumerOffsets: the last checkpoint of each
// partition, records that cannot be read left out.
func remoteOffsets(t *testing.T, records [][2][]byte, group string) map[string]mm2.Checkpoint {
	t.Helper()
	read := map[string]mm2.Checkpoint{}
	for _, r := range records {
		c, err := mm2.ParseCheckpoint(r[0], r[1])
		switch {
		case errors.Is(err, mm2.ErrSchema):
		case err != nil:
			t.Fatal(err)
		case c.Group == group:
			read[fmt.Sprintf("%s-%d", c.Topic, c.Partition)] = c
		}
	}
	return read
}

func TestVectorsOfEmission(t *testing.T) {
	type given struct {
		Last      *[2]int64 `json:"last"`
		Candidate *[2]int64 `json:"candidate"`
	}
	for _, v := range vectors[given, bool](t, "checkpoint/emission.json") {
		wantSame(t, v.ID, v.Given, emits(v.Given.Last, v.Given.Candidate), v.Expect)
	}
}

func TestVectorsOfDownstreamNames(t *testing.T) {
	type given struct {
		policyOf
		Source, Target, Topic string
	}
	for _, v := range vectors[given, string](t, "checkpoint/downstream-name.json") {
		got := downstreamTopic(v.Given.parse(t), v.Given.Source, v.Given.Target, v.Given.Topic)
		wantSame(t, v.ID, v.Given, got, v.Expect)
	}
}

func TestVectorsOfGroupSync(t *testing.T) {
	type given struct {
		Had         map[string]*int64 `json:"target_when_empty"`
		Checkpoints map[string]int64  `json:"checkpoints"`
	}
	for _, v := range vectors[given, map[string]int64](t, "checkpoint/group-sync.json") {
		wantSame(t, v.ID, v.Given, syncedOffsets(v.Given.Had, v.Given.Checkpoints), v.Expect)
	}
}

// TestVectorsOfCheckpointRuns plays the store and the rule of emission together.
func TestVectorsOfCheckpointRuns(t *testing.T) {
	type given struct {
		syncScenario
		Memory *[2]int64 `json:"memory"`
		Steps  []struct {
			After     int    `json:"after"`
			Committed *int64 `json:"committed"`
		} `json:"steps"`
		Topic string `json:"topic"`
	}
	type step struct {
		Candidate *int64 `json:"candidate"`
		Emitted   bool   `json:"emitted"`
		Topic     string `json:"topic,omitempty"`
	}
	policy, err := mm2.ParsePolicy(nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range vectors[given, []step](t, "checkpoint/runs.json") {
		topic := v.Given.Topic
		if topic == "" {
			topic = "topic1"
		}
		var got []step
		last := v.Given.Memory
		for _, s := range v.Given.Steps {
			var one step
			var candidate *[2]int64
			if s.Committed != nil {
				one.Candidate = translated(v.Given.storeAfter(s.After), *s.Committed)
				if one.Candidate != nil && *one.Candidate >= 0 {
					candidate = &[2]int64{*s.Committed, *one.Candidate}
				}
			}
			if one.Emitted = emits(last, candidate); one.Emitted {
				one.Topic = downstreamTopic(policy, "source1", "target2", topic)
				last = candidate
			}
			got = append(got, one)
		}
		wantSame(t, v.ID, v.Given, got, v.Expect)
	}
}

// A checkpointText is a checkpoint as vectors have it.
type checkpointText struct {
	Group      string `json:"group"`
	Partition  string `json:"partition"`
	Upstream   int64  `json:"upstream"`
	Downstream int64  `json:"downstream"`
	Metadata   string `json:"metadata"`
}

func (c checkpointText) encode(t *testing.T) [2][]byte {
	t.Helper()
	i := strings.LastIndex(c.Partition, "-")
	partition, err := strconv.Atoi(c.Partition[i+1:])
	if err != nil {
		t.Fatal(err)
	}
	key, value, err := mm2.Checkpoint{Group: c.Group, Topic: c.Partition[:i], Partition: int32(partition),
		Upstream: c.Upstream, Downstream: c.Downstream, Metadata: c.Metadata}.Encode()
	if err != nil {
		t.Fatal(err)
	}
	return [2][]byte{key, value}
}

// TestVectorsOfCheckpointStore: what a task remembers of the topic when it starts.
// A tombstone ends its reading, other damage is skipped.
func TestVectorsOfCheckpointStore(t *testing.T) {
	type given struct {
		Groups  []string `json:"groups"`
		Records []any    `json:"records"`
	}
	type expect struct {
		Start       bool                           `json:"start"`
		Initialized bool                           `json:"initialized"`
		Memory      map[string]map[string][2]int64 `json:"memory"`
	}
	for _, v := range vectors[given, expect](t, "checkpoint/store.json") {
		got := expect{Start: true, Initialized: true, Memory: map[string]map[string][2]int64{}}
		for _, r := range v.Given.Records {
			c, err := mm2.ParseCheckpoint(storedRecord(t, r))
			if errors.Is(err, mm2.ErrNull) {
				got.Start = false
				break
			}
			if err != nil || !strings.Contains(strings.Join(v.Given.Groups, " "), c.Group) {
				continue
			}
			if got.Memory[c.Group] == nil {
				got.Memory[c.Group] = map[string][2]int64{}
			}
			got.Memory[c.Group][fmt.Sprintf("%s-%d", c.Topic, c.Partition)] = [2]int64{c.Upstream, c.Downstream}
		}
		wantSame(t, v.ID, v.Given, got, v.Expect)
	}
}

// storedRecord makes the bytes of a record of checkpoint/store.json.
func storedRecord(t *testing.T, r any) (key, value []byte) {
	t.Helper()
	switch r := r.(type) {
	case string:
		if r == "empty key and value" {
			return []byte{}, []byte{}
		}
		return checkpointText{Group: "group1", Partition: "t1-0"}.encode(t)[0], nil
	case map[string]any:
		c := checkpointText{Group: r["group"].(string), Partition: r["partition"].(string),
			Upstream: int64(r["upstream"].(float64)), Downstream: int64(r["downstream"].(float64))}
		b := c.encode(t)
		return b[0], b[1]
	}
	t.Fatalf("record %v", r)
	return nil, nil
}

func TestVectorsOfRemoteOffsets(t *testing.T) {
	type given struct {
		Group   string           `json:"group"`
		Records []checkpointText `json:"records"`
		Timeout int              `json:"timeout_ms"`
		PerPoll int              `json:"records_per_poll"`
		Takes   int              `json:"poll_takes_ms"`
	}
	for _, v := range vectors[given, map[string][2]any](t, "client/remote-offsets.json") {
		var records [][2][]byte
		for i, r := range v.Given.Records {
			// A poll that begins before the time is up is read to its end.
			if v.Given.PerPoll > 0 && i/v.Given.PerPoll*v.Given.Takes >= v.Given.Timeout {
				break
			}
			records = append(records, r.encode(t))
		}
		got := map[string][2]any{}
		for partition, c := range maps.All(remoteOffsets(t, records, v.Given.Group)) {
			got[partition] = [2]any{c.Downstream, c.Metadata}
		}
		wantSame(t, v.ID, v.Given, got, v.Expect)
	}
}
