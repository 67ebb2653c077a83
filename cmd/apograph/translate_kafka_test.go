//go:build kafka

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"apograph/internal/kafkatest"
)

// A realGroupCase is a copy between two real clusters: orders-0 has its log
// start at 50 and its end at 100, orders-1 has ten records.
type realGroupCase struct {
	t              *testing.T
	ctx            context.Context
	source, target *kafkatest.Kafka
	ledger         string
}

func newRealGroupCase(t *testing.T) *realGroupCase {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	t.Cleanup(cancel)
	clusters := kafkatest.StartKafkas(t, kafkatest.KafkaOptions{Name: "source"}, kafkatest.KafkaOptions{Name: "target"})
	c := &realGroupCase{t: t, ctx: ctx, source: clusters[0], target: clusters[1], ledger: filepath.Join(t.TempDir(), "flow.ledger")}
	if err := c.source.CreateTopic(ctx, "orders", 2, kafkatest.LoadConfigs()); err != nil {
		t.Fatal(err)
	}
	for partition, n := range []int{100, 10} {
		for i := range n {
			r := &kgo.Record{Topic: "orders", Partition: int32(partition), Value: fmt.Appendf(nil, "v%d", i)}
			if err := c.source.Append(ctx, kafkatest.None, r); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := c.source.DeleteRecords(ctx, "orders", 0, 50); err != nil {
		t.Fatal(err)
	}
	if code, stdout, stderr := c.apograph("replicate", "--once", "--topics", "orders"); code != 0 {
		t.Fatalf("replicate: exit code %d\n%s%s", code, stdout, stderr)
	}
	return c
}

func (c *realGroupCase) apograph(args ...string) (code int, stdout, stderr string) {
	c.t.Helper()
	return mustRun(c.t, append(args, "--ledger", c.ledger,
		"--source-bootstrap-server", c.source.Server(), "--target-bootstrap-server", c.target.Server())...)
}

// translate expects an exit code and rows.
func (c *realGroupCase) translate(wantCode int, args []string, want ...string) translateAnswer {
	c.t.Helper()
	code, stdout, stderr := c.apograph(append([]string{"translate", "-o", "json"}, args...)...)
	answer := translateAnswer{stderr: stderr}
	if err := json.Unmarshal([]byte(stdout), &answer); err != nil || code != wantCode {
		c.t.Errorf("%v: exit code %d, want %d\n%s%s", args, code, wantCode, stdout, stderr)
	}
	answer.rows(c.t, want...)
	return answer
}

func (c *realGroupCase) commit(on *kafkatest.Kafka, group string, partition int32, offset int64) {
	c.t.Helper()
	answer, err := kadm.NewClient(on.NewClient(c.t)).CommitOffsets(c.ctx, group, kadm.Offsets{"orders": {partition: {
		Topic: "orders", Partition: partition, At: offset, LeaderEpoch: 0, Metadata: "by " + group,
	}}})
	if err := errors.Join(err, answer.Error()); err != nil {
		c.t.Fatal(err)
	}
}

func (c *realGroupCase) tool(on *kafkatest.Kafka, args ...string) string {
	c.t.Helper()
	out, err := on.Tool(c.ctx, kafkatest.ConsumerGroupCommand, append([]string{"--bootstrap-server", on.Server()}, args...), nil)
	if err != nil {
		c.t.Fatalf("%v: %v\n%s", args, err, out)
	}
	return string(out)
}

// described returns what Kafka's tool says groups have committed on the target,
// as "group partition offset".
func (c *realGroupCase) described(groups ...string) map[string]bool {
	c.t.Helper()
	args := []string{"--describe", "--offsets"}
	for _, group := range groups {
		args = append(args, "--group", group)
	}
	found := make(map[string]bool)
	for line := range strings.Lines(c.tool(c.target, args...)) {
		// GROUP TOPIC PARTITION CURRENT-OFFSET ...
		if fields := strings.Fields(line); len(fields) > 4 && fields[1] == "orders" {
			found[fmt.Sprintf("%s %s %s", fields[0], fields[2], fields[3])] = true
		}
	}
	return found
}

// makeGroups makes groups of all kinds on the source, as different clients do.
func (c *realGroupCase) makeGroups() {
	c.t.Helper()
	for _, offset := range []int64{30, 50, 75, 100, 120} {
		c.commit(c.source, fmt.Sprintf("at-%03d", offset), 0, offset)
	}
	c.commit(c.source, "simple", 1, 0)
	c.commit(c.source, "null", 0, -1)
	c.commit(c.source, "null", 1, 7)
	mustConsume(c.t, c.source.Bootstrap, "classic").Close()
	c.commit(c.source, "classic", 1, 4)
	mustConsume(c.t, c.source.Bootstrap, "modern", kgo.ServerSideBalancer()).Close()
	c.commit(c.source, "modern", 1, 5)
	mustShare(c.t, c.source.Bootstrap, "share")
	c.source.Join(c.t.Context(), c.t, "connect-x", "connect")
	// The Java consumer commits what it has read when it ends.
	if _, err := c.source.Tool(c.ctx, kafkatest.ConsoleConsumer, []string{"--bootstrap-server", c.source.Server(),
		"--topic", "orders", "--from-beginning", "--max-messages", "60", "--timeout-ms", "30000", "--group", "java"}, nil); err != nil {
		c.t.Fatal(err)
	}
}

// TestKafkaTranslateGroups commits what groups of all kinds have, and reads it
// back with Kafka's own tool: D04, D05 and D17.
func TestKafkaTranslateGroups(t *testing.T) {
	c := newRealGroupCase(t)
	c.makeGroups()
	var args []string
	for _, group := range []string{"at-030", "at-050", "at-075", "at-100", "at-120", "simple", "null", "classic", "modern", "share", "connect-x", "java"} {
		args = append(args, "--group", group)
	}
	c.translate(4, args,
		"at-030 orders-0 30->0 before_start skip -",
		"at-050 orders-0 50->0 exact commit -",
		"at-075 orders-0 75->25 exact commit -",
		"at-100 orders-0 100->50 end commit -",
		"at-120 orders-0 120->50 beyond_copied skip -",
		"classic orders-1 4->4 exact commit -",
		"java orders-0 100->50 end commit -",
		"java orders-1 10->10 end commit -",
		"modern orders-1 5->5 exact commit -",
		"null orders-1 7->7 exact commit -",
		"simple orders-1 0->0 exact commit -",
	)
	answer := c.translate(4, append(args, "--execute"),
		"at-030 orders-0 30->0 before_start skip -",
		"at-050 orders-0 50->0 exact commit 0",
		"at-075 orders-0 75->25 exact commit 25",
		"at-100 orders-0 100->50 end commit 50",
		"at-120 orders-0 120->50 beyond_copied skip -",
		"classic orders-1 4->4 exact commit 4",
		"java orders-0 100->50 end commit 50",
		"java orders-1 10->10 end commit 10",
		"modern orders-1 5->5 exact commit 5",
		"null orders-1 7->7 exact commit 7",
		"simple orders-1 0->0 exact commit 0",
	)
	kinds := make(map[string]string)
	for _, g := range answer.Groups {
		kinds[g.Group] = g.Kind
	}
	for group, kind := range map[string]string{"simple": "simple", "classic": "classic", "modern": "consumer", "share": "share", "connect-x": "connect"} {
		if kinds[group] != kind {
			t.Errorf("%s is %s, want %s", group, kinds[group], kind)
		}
	}
	committed := c.described("at-050", "at-075", "at-100", "classic", "java", "modern", "null", "simple")
	for _, want := range []string{"at-050 0 0", "at-075 0 25", "at-100 0 50", "classic 1 4", "java 0 50", "java 1 10", "modern 1 5", "null 1 7", "simple 1 0"} {
		if !committed[want] {
			t.Errorf("Kafka's tool does not say %q: %v", want, committed)
		}
	}
	if len(committed) != 9 {
		t.Errorf("Kafka's tool says %v", committed)
	}
	fetched, err := kadm.NewClient(c.target.NewClient(t)).FetchOffsets(c.ctx, "modern")
	if err != nil || fetched["orders"][1].LeaderEpoch != -1 || fetched["orders"][1].Metadata != "by modern" {
		t.Errorf("%+v, %v", fetched, err)
	}
	c.goOn()
}

// goOn lets members take over at the committed offsets, of both protocols: a
// group that was committed for from outside is open to any.
func (c *realGroupCase) goOn() {
	c.t.Helper()
	for group, options := range map[string][]kgo.Opt{"classic": nil, "modern": {kgo.ServerSideBalancer()}} {
		client := mustConsume(c.t, c.target.Bootstrap, group, options...)
		first := int64(-1)
		for range 20 {
			fetches := client.PollFetches(c.ctx)
			fetches.EachRecord(func(r *kgo.Record) {
				if r.Partition == 1 && first < 0 {
					first = r.Offset
				}
			})
			if first >= 0 {
				break
			}
		}
		client.Close()
		if want := map[string]int64{"classic": 4, "modern": 5}[group]; first != want {
			c.t.Errorf("group %s goes on at %d, want %d", group, first, want)
		}
	}
}

// TestKafkaTranslateGroupActive: groups with members on the target, of both
// protocols, stand against all commits.
func TestKafkaTranslateGroupActive(t *testing.T) {
	c := newRealGroupCase(t)
	for _, group := range []string{"classic", "idle", "modern"} {
		c.commit(c.source, group, 1, 6)
	}
	members := []*kgo.Client{
		mustConsume(t, c.target.Bootstrap, "classic"),
		mustConsume(t, c.target.Bootstrap, "modern", kgo.ServerSideBalancer()),
	}
	args := []string{"--group", "classic", "--group", "idle", "--group", "modern", "--execute"}
	c.translate(5, args,
		"classic orders-1 6->6 exact skip -", "idle orders-1 6->6 exact skip -", "modern orders-1 6->6 exact skip -")
	listed := c.tool(c.target, "--list")
	if strings.Contains(listed, "idle") {
		t.Errorf("groups on the target: %s", listed)
	}
	c.translate(4, append(args, "--skip-active"),
		"classic orders-1 6->6 exact skip -", "idle orders-1 6->6 exact commit 6", "modern orders-1 6->6 exact skip -")
	for _, member := range members {
		member.Close()
	}
	c.commit(c.target, "modern", 1, 9)
	c.translate(4, args,
		"classic orders-1 6->6 exact commit 6", "idle orders-1 6->6 exact none 6", "modern orders-1 6->6 exact skip 9")
	c.translate(0, []string{"--group", "modern", "--execute", "--allow-rewind"}, "modern orders-1 6->6 exact commit 6")
	c.translate(0, []string{"--group", "modern", "--execute", "--target-group", "renamed"}, "modern orders-1 6->6 exact commit 6")
	committed := c.described("classic", "idle", "modern", "renamed")
	for _, want := range []string{"classic 1 6", "idle 1 6", "modern 1 6", "renamed 1 6"} {
		if !committed[want] {
			t.Errorf("Kafka's tool does not say %q: %v", want, committed)
		}
	}
}

// TestKafkaTranslateThroughKafkasTool goes the other way: Kafka's tool exports
// the offsets of groups, and resets the target's groups from what apograph
// makes of them.
func TestKafkaTranslateThroughKafkasTool(t *testing.T) {
	c := newRealGroupCase(t)
	c.commit(c.source, "a", 0, 75)
	c.commit(c.source, "a", 1, 3)
	c.commit(c.source, `b, "quoted"`, 0, 60)
	for _, groups := range [][]string{{"a"}, {"a", `b, "quoted"`}} {
		args := []string{"--reset-offsets", "--to-current", "--export", "--dry-run", "--all-topics"}
		for _, group := range groups {
			args = append(args, "--group", group)
		}
		exported := filepath.Join(t.TempDir(), "source.csv")
		mustWrite(t, exported, []byte(c.tool(c.source, args...)))
		translate := []string{"translate", "--format", "kafka-csv", "--from-file", exported}
		code, stdout, stderr := mustRun(t, append(translate, "--ledger", c.ledger)...)
		if code != 0 {
			t.Fatalf("exit code %d\n%s%s", code, stdout, stderr)
		}
		translated := filepath.Join(t.TempDir(), "target.csv")
		if err := os.WriteFile(translated, []byte(stdout), 0o600); err != nil {
			t.Fatal(err)
		}
		args = []string{"--reset-offsets", "--from-file", translated, "--execute"}
		for _, group := range groups {
			args = append(args, "--group", group)
		}
		c.tool(c.target, args...)
		for _, group := range groups {
			fetched, err := kadm.NewClient(c.target.NewClient(t)).FetchOffsets(c.ctx, group)
			want := map[string][2]int64{"a": {25, 3}, `b, "quoted"`: {10, 0}}[group]
			if err != nil || fetched["orders"][0].At != want[0] || fetched["orders"][1].At != want[1] {
				t.Errorf("%s: %+v, %v, want %v", group, fetched, err, want)
			}
		}
	}
}
