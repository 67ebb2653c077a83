package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"apograph/internal/kafkatest"
)

// A groupCase is a copy of two topics, whose groups are to be translated.
// orders-0 has its log start at 50 and its end at 100, orders-1 ten records,
// payments five.
type groupCase struct {
	t      *testing.T
	pair   *kafkatest.Pair
	ledger string
}

func newGroupCase(t *testing.T) *groupCase {
	t.Helper()
	c := &groupCase{
		t:      t,
		pair:   kafkatest.NewPair(t, kafkatest.Options{SourceBrokers: 3, DataDir: t.TempDir()}),
		ledger: filepath.Join(t.TempDir(), "flow.ledger"),
	}
	for _, topic := range []string{"orders", "payments", "left-out"} {
		if err := c.pair.Source.CreateTopic(t.Context(), topic, 2, nil); err != nil {
			t.Fatal(err)
		}
	}
	c.produce(c.pair.Source, "orders", 0, 100)
	c.produce(c.pair.Source, "orders", 1, 10)
	c.produce(c.pair.Source, "payments", 0, 5)
	if err := c.pair.Source.DeleteRecords("orders", 0, 50); err != nil {
		t.Fatal(err)
	}
	c.replicate()
	return c
}

func (c *groupCase) produce(to *kafkatest.Cluster, topic string, partition int32, n int) {
	c.t.Helper()
	for i := range n {
		r := &kgo.Record{Topic: topic, Partition: partition, Value: fmt.Appendf(nil, "v%d", i), Timestamp: time.UnixMilli(1000)}
		if err := to.Append(c.t.Context(), kafkatest.None, r); err != nil {
			c.t.Fatal(err)
		}
	}
}

func (c *groupCase) replicate() {
	c.t.Helper()
	code, stdout, stderr := mustRun(c.t, "replicate", "--once", "--topics", "orders,payments", "--ledger", c.ledger,
		"--source-bootstrap-server", c.pair.Source.Server(), "--target-bootstrap-server", c.pair.Target.Server())
	if code != 0 {
		c.t.Fatalf("replicate: exit code %d\n%s%s", code, stdout, stderr)
	}
}

// commit commits like a consumer that belongs to no group, with the partition
// as the metadata.
func (c *groupCase) commit(on *kafkatest.Cluster, group, topic string, partition int32, offset int64) {
	c.t.Helper()
	admin := kadm.NewClient(on.NewClient(c.t))
	answer, err := admin.CommitOffsets(c.t.Context(), group, kadm.Offsets{topic: {partition: {
		Topic: topic, Partition: partition, At: offset, LeaderEpoch: 3, Metadata: fmt.Sprintf("%s-%d", topic, partition),
	}}})
	if err := errors.Join(err, answer.Error()); err != nil {
		c.t.Fatal(err)
	}
}

// consume makes a consumer a member of a group and returns when it has
// partitions.
func (c *groupCase) consume(on kafkatest.Bootstrap, group string, options ...kgo.Opt) *kgo.Client {
	c.t.Helper()
	return mustConsume(c.t, on, group, options...)
}

// has expects that a group has committed an offset on the target, for 0 nothing
// else than 0. None is -1.
func (c *groupCase) has(group, topic string, partition int32, want int64) {
	c.t.Helper()
	got := int64(-1)
	if info := c.pair.Target.Fake().GroupInfo(group); info != nil {
		if commit, ok := info.Commits[topic][partition]; ok {
			got = commit.Offset
			if commit.LeaderEpoch != -1 {
				c.t.Errorf("group %s, %s-%d: leader epoch %d", group, topic, partition, commit.LeaderEpoch)
			}
		}
	}
	if got != want {
		c.t.Errorf("group %s, %s-%d: has %d on the target, want %d", group, topic, partition, got, want)
	}
}

// A translateAnswer has exactly the fields of the contract, and the groups.
type translateAnswer struct {
	Kind, Schema string
	Ledger       json.RawMessage
	Groups       []translatedGroup
	Rows         []translatedRow

	stderr string
}

type translatedGroup struct {
	Group, Kind, State string
	TargetGroup        string `json:"target_group"`
	TargetKind         string `json:"target_kind"`
	TargetState        string `json:"target_state"`
	Offsets            int
	WithoutOffset      []groupPartition `json:"without_offset"`
	WithoutBook        []string         `json:"without_book"`
	Detail             string
}

type translatedRow struct {
	Group           string
	Topic           string
	TopicID         string `json:"topic_id"`
	Partition       int32
	SourceOffset    *int64 `json:"source_offset"`
	TargetTopic     string `json:"target_topic"`
	TargetOffset    *int64 `json:"target_offset"`
	Status          string
	Distance        int64
	CopiedTo        *int64 `json:"copied_to"`
	TargetCommitted *int64 `json:"target_committed"`
	Action, Detail  string
}

// short returns the row as "group topic-partition source->target status action committed".
func (r translatedRow) short() string {
	offset := func(n *int64) string {
		if n == nil {
			return "-"
		}
		return fmt.Sprint(*n)
	}
	return fmt.Sprintf("%s %s-%d %s->%s %s %s %s", r.Group, r.Topic, r.Partition, offset(r.SourceOffset), offset(r.TargetOffset),
		r.Status, r.Action, offset(r.TargetCommitted))
}

// run runs apograph translate with both clusters, or those that are given.
func (c *groupCase) run(args ...string) (code int, stdout, stderr string) {
	c.t.Helper()
	all := append([]string{"translate", "--ledger", c.ledger}, args...)
	if !slices.ContainsFunc(args, func(arg string) bool { return strings.HasSuffix(arg, "-bootstrap-server") }) {
		all = append(all, "--source-bootstrap-server", c.pair.Source.Server(), "--target-bootstrap-server", c.pair.Target.Server())
	}
	return mustRun(c.t, all...)
}

// translate expects an exit code and returns the answer.
func (c *groupCase) translate(wantCode int, args ...string) translateAnswer {
	c.t.Helper()
	code, stdout, stderr := c.run(append(args, "-o", "json")...)
	if code != wantCode {
		c.t.Fatalf("%v: exit code %d, want %d\n%s%s", args, code, wantCode, stdout, stderr)
	}
	answer := translateAnswer{stderr: stderr}
	decoder := json.NewDecoder(strings.NewReader(stdout))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&answer); err != nil || strings.Count(stdout, "\n") != 1 {
		c.t.Fatalf("standard output %q: %v", stdout, err)
	}
	return answer
}

// rows compares rows in short form.
func (a *translateAnswer) rows(t *testing.T, want ...string) {
	t.Helper()
	var got []string
	for _, row := range a.Rows {
		got = append(got, row.short())
		if (row.Action == "skip") && row.Detail == "" {
			t.Errorf("%s: skipped without a reason", row.short())
		}
	}
	if !slices.Equal(got, want) {
		t.Errorf("rows\n%s\nwant\n%s\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"), a.stderr)
	}
}
