package main

import (
	"context"
	"encoding/json"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"apograph/internal/connect"
	"apograph/internal/kafkatest"
	"apograph/replicate"
)

// TestFlowThatCannotBeginKeepsNoOtherFromRunning: exit code and answer say which.
func TestFlowThatCannotBeginKeepsNoOtherFromRunning(t *testing.T) {
	c := newConfigCase(t, "a->b.enabled = true", "topics = orders")
	c.topic(c.a, "orders", 5)
	with := []string{"-X", "clusters=a, b, c", "-X", "c.bootstrap.servers=127.0.0.1:1", "-X", "a->c.enabled=true"}
	var got summariesAnswer
	c.answer(&got, 1, append([]string{"replicate", "--once"}, with...)...)
	if len(got.Flows) != 1 || got.Flows[0].Copied != 5 || len(got.Failed) != 1 || got.Failed[0].Flow.Target != "c" || !strings.Contains(got.Failed[0].Error, "cluster c") {
		t.Errorf("answer %+v", got)
	}
	var verified struct{ Flows, Failed []any }
	c.answer(&verified, 1, append([]string{"verify"}, with...)...)
	if len(verified.Flows) != 1 || len(verified.Failed) != 1 {
		t.Errorf("verify: %+v", verified)
	}
	t.Run("nor does one with nothing to copy", func(t *testing.T) {
		var got summariesAnswer
		c.with(t).answer(&got, 0, "replicate", "--once", "-X", "b->a.enabled=true")
		if len(got.Flows) != 2 || got.Flows[1].Flow.Source != "b" || got.Flows[1].Partitions != 0 || !got.Flows[1].Complete {
			t.Errorf("answer %+v", got)
		}
	})
	t.Run("all of them have nothing to copy", func(t *testing.T) {
		c.with(t).run(2, "replicate", "--once", "-X", "b->a.enabled=true", "-X", "topics=nothing")
	})
}

// TestWrongUseOfOneFlowKeepsAllFromBeginning: no topic, no ledger, nothing.
func TestWrongUseOfOneFlowKeepsAllFromBeginning(t *testing.T) {
	tests := []struct {
		name, set string
		prepare   func(c *configCase)
		says      string
	}{
		{"a target that holds other records", "b->a.topics=payments", func(c *configCase) {
			c.topic(c.b, "payments", 1)
			c.topic(c.a, "b.payments", 1)
		}, "b.payments"},
		{"a group that has committed nothing", "b->a.apograph.start=group:nobody", func(c *configCase) { c.topic(c.b, "orders", 1) }, "nobody"},
		{"names that go round", "replication.policy.class=org.apache.kafka.connect.mirror.IdentityReplicationPolicy", func(c *configCase) { c.topic(c.b, "orders", 1) },
			"would be copied back"},
		{"an address without a port", "b.bootstrap.servers=127.0.0.1", nil, "bootstrap.servers"},
		{"a transform", "b->a.transforms=x", nil, "transforms"},
		{"a converter", "value.converter=org.apache.kafka.connect.json.JsonConverter", nil, "value.converter"},
		{"an interceptor", "a.consumer.interceptor.classes=x.Y", nil, "interceptor"},
		{"a policy of one's own", "replication.policy.class=x.Y", nil, "replication.policy.class"},
		{"a key that is none", "topic=orders", nil, "topics"},
		{"a key of a cluster that is none", "d.bootstrap.servers=h:1", nil, "d.bootstrap.servers"},
		{"a pattern that is none", "topics=*", nil, "topics"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c := newConfigCase(t, "a->b.enabled = true", "b->a.enabled = true", "topics = orders")
			c.topic(c.a, "orders", 1)
			if tt.prepare != nil {
				tt.prepare(c)
			}
			stdout, stderr := c.run(2, "replicate", "--once", "-X", tt.set)
			if stdout != "" || !strings.Contains(stderr, tt.says) {
				t.Errorf("standard error lacks %q, or standard output is not empty:\n%s%s", tt.says, stdout, stderr)
			}
			ledgers, _ := filepath.Glob(filepath.Join(c.dir, "*.ledger*"))
			if topics := c.topics(c.b); len(ledgers) > 0 || topics["a.orders"] {
				t.Errorf("ledgers %v, topics %v", ledgers, topics)
			}
		})
	}
}

// TestFlowTriesAgainToReachItsClusters as long as another runs.
func TestFlowTriesAgainToReachItsClusters(t *testing.T) {
	pair := kafkatest.NewPair(t, kafkatest.Options{DataDir: t.TempDir()})
	if err := pair.Source.CreateTopic(t.Context(), "orders", 1, nil); err != nil {
		t.Fatal(err)
	}
	pair.Target.Stop()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	failed := make(chan struct{}, 100)
	copied := make(chan struct{}, 100)
	run := &flowRun{
		flow: flowNames{"source", "target"}, retry: time.Millisecond,
		config: replicate.Config{
			Source: connect.Cluster{Alias: "source", Bootstrap: pair.Source.Addresses}, Target: connect.Cluster{Alias: "target", Bootstrap: pair.Target.Addresses},
			LedgerPath: filepath.Join(t.TempDir(), "f.ledger"), Topics: []string{"orders"},
			Logger:   slog.New(slog.NewTextHandler(teller(failed), nil)),
			Progress: func(p replicate.Progress) { copied <- struct{}{} },
		},
	}
	others := &crew{live: 2, idle: make(chan struct{})}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		run.run(ctx, others)
	}()
	<-failed
	if err := pair.Target.Start(); err != nil {
		t.Fatal(err)
	}
	<-copied
	cancel()
	<-ended
	if run.err == nil || run.summary.Partitions != 1 {
		t.Errorf("%v, %+v", run.err, run.summary)
	}

	t.Run("but not by itself", func(t *testing.T) {
		pair.Target.Stop()
		alone := &crew{live: 1, idle: make(chan struct{})}
		run.retry = time.Hour
		run.run(t.Context(), alone) // returns
		if run.err == nil {
			t.Error("no error")
		}
	})
}

// teller is a writer that tells of each write.
type teller chan struct{}

func (c teller) Write(p []byte) (int, error) {
	c <- struct{}{}
	return len(p), nil
}

// TestLivingFlowsAnswerBySockets: while a process runs several flows, status and
// the orders find each by its ledger; a signal ends all, and each is in the answer.
func TestLivingFlowsAnswerBySockets(t *testing.T) {
	c := newConfigCase(t, "a->b.enabled = true", "b->a.enabled = true", "topics = orders, payments")
	c.topic(c.a, "orders", 5)
	c.topic(c.b, "payments", 7)
	p := mustStart(t, "apograph", "replicate", "-o", "json", "--config", c.file)
	for _, topic := range []struct {
		at   *kafkatest.Cluster
		name string
		n    int
	}{{c.b, "a.orders", 5}, {c.a, "b.payments", 7}} {
		eventually(t, topic.name+" is copied", func() bool { return c.topics(topic.at)[topic.name] && c.records(topic.at, topic.name) == topic.n })
	}
	var status struct {
		Flows []struct {
			State     string
			HolderPID int `json:"holder_pid"`
		}
	}
	c.answer(&status, 0, "status")
	if len(status.Flows) != 2 || status.Flows[0].State != "running" || status.Flows[1].HolderPID != p.cmd.Process.Pid {
		t.Errorf("status %+v", status)
	}
	c.run(0, "pause", "--flow", "b->a", "payments")
	c.run(11, "replicate", "--once")
	p.mustSignal(t, syscall.SIGINT)
	p.stdout.Scan()
	var got summariesAnswer
	if err := json.Unmarshal(p.stdout.Bytes(), &got); err != nil {
		t.Errorf("standard output %q: %v", p.stdout.Text(), err)
	}
	if code := p.exitCode(); code != 130 {
		t.Errorf("exit code %d\n%s", code, p.stderr.String())
	}
	if len(got.Flows) != 2 || got.Flows[0].Copied != 5 || got.Flows[1].Copied != 7 {
		t.Errorf("answer %+v", got)
	}
	for _, name := range []string{"a-to-b.ledger", "b-to-a.ledger"} {
		mustCheck(t, filepath.Join(c.dir, name))
	}
}

// TestEnvironmentAndConfig: what is typed wins over the environment.
func TestEnvironmentAndConfig(t *testing.T) {
	c := newConfigCase(t, "a->b.enabled = true", "topics = orders")
	c.topic(c.a, "orders", 2)
	file := c.file
	c.file = ""
	c.env = []string{"APOGRAPH_CONFIG=" + file}
	c.run(0, "replicate", "--once")
	c.run(0, "status")
	c.env = append(c.env, "APOGRAPH_SOURCE_BOOTSTRAP_SERVER=127.0.0.1:1")
	c.run(2, "replicate", "--once") // two descriptions, neither typed
	c.run(0, "replicate", "--once", "--config", file)
	if _, stderr := c.run(2, "replicate", "--once", "--config", file, "--source-bootstrap-server", c.a.Server()); !strings.Contains(stderr, "--source-bootstrap-server") {
		t.Error(stderr)
	}
	ad := []string{"replicate", "--once", "--source-bootstrap-server", c.a.Server(), "--target-bootstrap-server", c.b.Server(), "--ledger", filepath.Join(c.dir, "own.ledger")}
	c.run(0, append(ad, "--topics", "orders")...)
	if _, err := os.Stat(filepath.Join(c.dir, "own.ledger")); err != nil {
		t.Error(err)
	}
	c.run(2, "status", "--flow", "a->b", "--ledger", filepath.Join(c.dir, "own.ledger"))
	c.run(0, "status", "--ledger", filepath.Join(c.dir, "own.ledger"))
}
