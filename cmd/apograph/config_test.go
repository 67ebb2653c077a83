package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"apograph/internal/kafkatest"
)

// A configCase is two clusters, a and b, and an mm2.properties file about them.
type configCase struct {
	t    *testing.T
	a, b *kafkatest.Cluster
	dir  string
	file string   // given as --config, unless it is empty
	env  []string // added to the environment
}

// newConfigCase writes a file with the clusters and, behind them, lines.
func newConfigCase(t *testing.T, lines ...string) *configCase {
	t.Helper()
	pair := kafkatest.NewPair(t, kafkatest.Options{DataDir: t.TempDir()})
	c := &configCase{t: t, a: pair.Source, b: pair.Target, dir: t.TempDir()}
	c.file = filepath.Join(c.dir, "mm2.properties")
	c.write(append([]string{
		"clusters = a, b", "a.bootstrap.servers = " + c.a.Server(), "b.bootstrap.servers = " + c.b.Server(),
		"apograph.ledger.dir = " + c.dir,
	}, lines...)...)
	return c
}

func (c *configCase) write(lines ...string) {
	c.t.Helper()
	if err := os.WriteFile(c.file, []byte(strings.Join(lines, "\n")+"\n"), 0o600); err != nil {
		c.t.Fatal(err)
	}
}

// topic makes a topic with records.
func (c *configCase) topic(at *kafkatest.Cluster, name string, records int) {
	c.t.Helper()
	if err := at.CreateTopic(c.t.Context(), name, 1, nil); err != nil {
		c.t.Fatal(err)
	}
	c.more(at, name, records)
}

// more appends records to a topic.
func (c *configCase) more(at *kafkatest.Cluster, name string, records int) {
	c.t.Helper()
	for i := range records {
		r := &kgo.Record{Topic: name, Value: fmt.Appendf(nil, "%s %d", name, i), Timestamp: time.UnixMilli(1000)}
		if err := at.Append(c.t.Context(), kafkatest.None, r); err != nil {
			c.t.Fatal(err)
		}
	}
}

// run runs a command with the case's file, and expects an exit code.
func (c *configCase) run(code int, args ...string) (stdout, stderr string) {
	c.t.Helper()
	if c.file != "" {
		args = append(args, "--config", c.file)
	}
	cmd := exec.CommandContext(c.t.Context(), "apograph", args...)
	cmd.Dir, cmd.Env = c.dir, append(os.Environ(), c.env...)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	_ = cmd.Run()
	if got := cmd.ProcessState.ExitCode(); got != code {
		c.t.Fatalf("%v: exit code %d, want %d\n%s%s", args, got, code, out.String(), errs.String())
	}
	for _, text := range []string{out.String(), errs.String()} {
		if strings.Contains(text, canary) {
			c.t.Errorf("%v: a secret is in the output:\n%s", args, text)
		}
	}
	return out.String(), errs.String()
}

// with returns the case for a subtest.
func (c *configCase) with(t *testing.T) *configCase {
	sub := *c
	sub.t = t
	return &sub
}

// answer is run with JSON.
func (c *configCase) answer(into any, code int, args ...string) {
	c.t.Helper()
	stdout, _ := c.run(code, append(args, "-o", "json")...)
	if err := json.Unmarshal([]byte(stdout), into); err != nil || strings.Count(stdout, "\n") != 1 {
		c.t.Fatalf("%v: standard output %q: %v", args, stdout, err)
	}
}

// records returns how many records a topic of a cluster holds.
func (c *configCase) records(at *kafkatest.Cluster, topic string) int {
	c.t.Helper()
	records, err := at.ReadCommitted(c.t.Context(), topic, 0)
	if err != nil {
		c.t.Fatal(err)
	}
	return len(records)
}

// topics returns the names of a cluster's topics.
func (c *configCase) topics(at *kafkatest.Cluster) map[string]bool {
	c.t.Helper()
	client, err := at.Client()
	if err != nil {
		c.t.Fatal(err)
	}
	defer client.Close()
	all, err := kadm.NewClient(client).ListTopics(c.t.Context())
	if err != nil {
		c.t.Fatal(err)
	}
	names := map[string]bool{}
	for _, name := range all.Names() {
		names[name] = true
	}
	return names
}

// summariesAnswer is the answer about several flows.
type summariesAnswer struct {
	Kind, Schema string
	Flows        []replicateAnswer
	Failed       []struct {
		Flow  struct{ Source, Target string }
		Error string
	}
}

func TestReplicateRunsAllFlowsOfAFile(t *testing.T) {
	c := newConfigCase(t, "a->b.enabled = true", "a->b.topics = orders.*", "b->a.enabled = true", "b->a.topics = pay.*", "emit.heartbeats.enabled = false")
	c.topic(c.a, "orders-1", 5)
	c.topic(c.a, "other", 1)
	c.topic(c.b, "payments", 7)

	var got summariesAnswer
	c.answer(&got, 0, "replicate", "--once")
	if got.Kind != "ReplicateSummaries" || got.Schema != "apograph/replicate-summaries/v1" || len(got.Flows) != 2 || len(got.Failed) != 0 {
		t.Fatalf("answer %+v", got)
	}
	for i, want := range []struct {
		source, target string
		copied         int64
	}{{"a", "b", 5}, {"b", "a", 7}} {
		f := got.Flows[i]
		if f.Flow.Source != want.source || f.Flow.Target != want.target || f.Copied != want.copied || !f.Complete || f.Kind != "ReplicateSummary" {
			t.Errorf("flow %d: %+v", i, f)
		}
	}
	if n := c.records(c.b, "a.orders-1"); n != 5 {
		t.Errorf("a.orders-1 on b has %d records, want 5", n)
	}
	if n := c.records(c.a, "b.payments"); n != 7 {
		t.Errorf("b.payments on a has %d records, want 7", n)
	}
	if topics := c.topics(c.b); topics["a.other"] || topics["other"] {
		t.Errorf("topics on b: %v", topics)
	}
	for _, name := range []string{"a-to-b.ledger", "b-to-a.ledger"} {
		mustCheck(t, filepath.Join(c.dir, name))
	}

	t.Run("one of them", func(t *testing.T) {
		c.topic(c.a, "orders-2", 2)
		var got replicateAnswer
		c.answer(&got, 0, "replicate", "--once", "--flow", "a->b")
		if got.Kind != "ReplicateSummary" || got.Copied != 2 {
			t.Errorf("answer %+v", got)
		}
	})
	t.Run("from where the file says", func(t *testing.T) {
		c.topic(c.a, "orders-3", 4)
		c.run(0, "replicate", "--once", "--flow", "a->b", "--topics", "orders-3", "-X", "apograph.start.orders-3=latest", "--ledger", filepath.Join(c.dir, "late.ledger"))
		if n := c.records(c.b, "a.orders-3"); n != 0 {
			t.Errorf("%d records of a topic that begins at its end", n)
		}
	})
	t.Run("with what the command line says better", func(t *testing.T) {
		var got replicateAnswer
		c.answer(&got, 0, "replicate", "--once", "--flow", "a->b", "--topics", "other", "--policy", "identity", "--ledger", filepath.Join(c.dir, "own.ledger"))
		if got.Copied != 1 || c.records(c.b, "other") != 1 {
			t.Errorf("answer %+v", got)
		}
	})
}

// TestOneLedgerForTwoFlows: aliases that put together give one name are refused.
func TestOneLedgerForTwoFlows(t *testing.T) {
	c := newConfigCase(t)
	c.write("clusters = a, b-to-c, a-to-b, c", "bootstrap.servers = "+c.a.Server(), "a->b-to-c.enabled = true", "a-to-b->c.enabled = true", "apograph.ledger.dir = "+c.dir)
	if _, stderr := c.run(2, "replicate", "--once"); !strings.Contains(stderr, "would have one ledger, a-to-b-to-c.ledger") {
		t.Error(stderr)
	}
	if _, stderr := c.run(2, "replicate", "--flow", "a->b-to-c", "-X", "apograph.ledger.dir="+filepath.Join(c.dir, "none")); !strings.Contains(stderr, "would have one ledger") {
		t.Error(stderr)
	}
	c.write("clusters = a, c", "bootstrap.servers = "+c.a.Server(), "a->c.enabled = true", "apograph.ledger.dir = "+filepath.Join(c.dir, "none"))
	if _, stderr := c.run(2, "replicate", "--once"); !strings.Contains(stderr, "the directory of ledgers, ") {
		t.Error(stderr)
	}
}

// TestCommandsTakeFlowsOfAFile: each command finds the ledger and the clusters of
// a flow, and those that are about one flow refuse to guess which.
func TestCommandsTakeFlowsOfAFile(t *testing.T) {
	c := newConfigCase(t, "a->b.enabled = true", "b->a.enabled = true", "topics = orders, payments", "emit.heartbeats.enabled = false")
	c.topic(c.a, "orders", 5)
	c.topic(c.b, "payments", 7)
	c.run(0, "replicate", "--once")

	t.Run("all flows", func(t *testing.T) {
		var verified struct {
			Kind, Schema string
			Flows        []struct {
				Mode, Verdict string
				Flow          struct{ Source, Target struct{ Alias string } }
				Summary       struct{ Equal int }
			}
		}
		c.answer(&verified, 0, "verify")
		if verified.Kind != "VerifyReports" || len(verified.Flows) != 2 || verified.Flows[0].Mode != "full" || verified.Flows[0].Verdict != "complete" ||
			verified.Flows[0].Summary.Equal != 5 || verified.Flows[1].Summary.Equal != 7 || verified.Flows[1].Flow.Source.Alias != "b" {
			t.Errorf("verify: %+v", verified)
		}
		var status struct {
			Kind  string
			Flows []struct {
				Kind string
				Flow struct{ Source, Target struct{ Alias string } }
			}
		}
		c.answer(&status, 0, "status")
		if status.Kind != "StatusReports" || len(status.Flows) != 2 || status.Flows[0].Kind != "StatusReport" || status.Flows[0].Flow.Target.Alias != "b" {
			t.Errorf("status: %+v", status)
		}
		var plans struct {
			Kind  string
			Flows []struct {
				Kind   string
				Topics []struct {
					Topic, Rule string
					TargetTopic string `json:"target_topic"`
					In          bool
				}
			}
		}
		c.answer(&plans, 0, "replicate", "--dry-run")
		if plans.Kind != "ReplicatePlans" || len(plans.Flows) != 2 {
			t.Fatalf("plans: %+v", plans)
		}
		for _, topic := range plans.Flows[0].Topics {
			if topic.In != (topic.Topic == "orders") || topic.In && topic.TargetTopic != "a.orders" {
				t.Errorf("plan of a->b: %+v", topic)
			}
		}
	})
	t.Run("one flow", func(t *testing.T) {
		for _, args := range [][]string{
			{"ledger", "inspect"}, {"ledger", "check"}, {"ledger", "export", "--book", "source"}, {"ledger", "snapshot", "-o", "x.snapshot"},
			{"translate", "orders:0:3"}, {"pause", "orders"}, {"resume", "orders"},
		} {
			_, stderr := c.run(2, args...)
			if !strings.Contains(stderr, "'a->b', 'b->a'") {
				t.Errorf("%v: %s", args, stderr)
			}
			c.run(0, append(args, "--flow", "a->b")...)
		}
		var translated struct {
			Rows []struct {
				TargetTopic  string `json:"target_topic"`
				TargetOffset int64  `json:"target_offset"`
				Status       string
			}
		}
		c.answer(&translated, 0, "translate", "orders:0:3", "--flow", "a->b")
		if r := translated.Rows; len(r) != 1 || r[0].TargetTopic != "a.orders" || r[0].TargetOffset != 3 || r[0].Status != "exact" {
			t.Errorf("translate: %+v", r)
		}
		var verified struct{ Kind, Mode string }
		c.answer(&verified, 0, "verify", "--flow", "b->a", "--mode", "target")
		if verified.Kind != "VerifyReport" || verified.Mode != "target" {
			t.Errorf("verify: %+v", verified)
		}
		if err := os.Rename(filepath.Join(c.dir, "a-to-b.ledger"), filepath.Join(c.dir, "away.ledger")); err != nil {
			t.Fatal(err)
		}
		c.run(10, "status", "--flow", "a->b")
		others, err := os.ReadFile(filepath.Join(c.dir, "b-to-a.ledger"))
		if err != nil {
			t.Fatal(err)
		}
		mustWrite(t, filepath.Join(c.dir, "a-to-b.ledger"), others)
		for _, args := range [][]string{{"status"}, {"translate", "orders:0:1"}, {"pause", "orders"}, {"verify", "--mode", "books"}, {"ledger", "check"}} {
			if _, stderr := c.run(2, append(args, "--flow", "a->b")...); !strings.Contains(stderr, "of the flow") {
				t.Errorf("%v with the ledger of another flow: %s", args, stderr)
			}
		}
		if err := os.Remove(filepath.Join(c.dir, "a-to-b.ledger")); err != nil {
			t.Fatal(err)
		}
		if stdout, _ := c.run(1, "status", "-o", "json"); !strings.Contains(stdout, `"failed":[{"ledger":`) {
			t.Errorf("status: %s", stdout)
		}
		c.run(0, "attach", "--flow", "a->b")
		c.run(0, "verify")
	})
}

// TestVariablesThatNobodyNeeds: who only asks how a flow stands need not know the
// passwords of its clusters; whoever needs a client is told which variable has no
// value.
func TestVariablesThatNobodyNeeds(t *testing.T) {
	c := newConfigCase(t, "a->b.enabled = true", "topics = orders", "emit.heartbeats.enabled = false")
	c.topic(c.a, "orders", 5)
	c.run(0, "replicate", "--once")
	file, err := os.ReadFile(c.file)
	if err != nil {
		t.Fatal(err)
	}
	c.write(string(file)+"config.providers = env", "config.providers.env.class = org.apache.kafka.common.config.provider.EnvVarConfigProvider",
		"a.consumer.ssl.key.password = ${env:APOGRAPH_TEST_A}", "b.ssl.key.password = ${env:APOGRAPH_TEST_B}")

	for _, args := range [][]string{{"status"}, {"translate", "orders:0:3"}, {"verify", "--mode", "books"}, {"ledger", "check"}, {"config", "show"}} {
		c.run(0, args...)
	}
	for _, args := range [][]string{{"replicate", "--once"}, {"replicate", "--dry-run"}, {"verify"}, {"translate", "--group", "g"}} {
		if _, stderr := c.run(2, args...); !strings.Contains(stderr, "the environment has no APOGRAPH_TEST_B") {
			t.Errorf("%v: %s", args, stderr)
		}
	}
	c.env = []string{"APOGRAPH_TEST_B=x"}
	if _, stderr := c.run(2, "replicate", "--once"); !strings.Contains(stderr, "the environment has no APOGRAPH_TEST_A") {
		t.Error(stderr)
	}
	c.run(0, "verify", "--mode", "target")

	// Of what is no matter of clients, every command needs all.
	c.env = nil
	c.write(string(file)+"config.providers = env", "config.providers.env.class = org.apache.kafka.common.config.provider.EnvVarConfigProvider",
		"topics.exclude = ${env:APOGRAPH_TEST_B}")
	c.run(2, "status")
}
