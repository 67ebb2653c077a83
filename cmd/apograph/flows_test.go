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
	c := newConfigCase(t, "a->b.enabled = true", "topics = orders", "emit.heartbeats.enabled = false")
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
			"flow b->a: flow b->a would copy topic orders back to topic orders of cluster a, whose copy it would be, made by flow a->b; neither has a book"},
		{"names that would go round", "replication.policy.class=org.apache.kafka.connect.mirror.IdentityReplicationPolicy", nil,
			"flow a->b: a->b and b->a keep names: each would copy what the one before it wrote, such as orders"},
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
			if topics := c.topics(c.b); len(ledgers) > 0 || topics["a.orders"] || topics["orders"] && tt.prepare == nil {
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

// identityBothWays are the lines of two flows between which topics keep their names.
// That which begins at the first cluster is the first.
func identityBothWays(clusters string) []string {
	return []string{
		"clusters = " + clusters, "a->b.enabled = true", "b->a.enabled = true", "topics = orders, payments",
		"emit.heartbeats.enabled = false", "heartbeats.replication.enabled = false", "emit.checkpoints.enabled = false", "emit.offset-syncs.enabled = false",
		"replication.policy.class = org.apache.kafka.connect.mirror.IdentityReplicationPolicy",
	}
}

type plansAnswer struct {
	Flows []struct {
		Flow   struct{ Source, Target string }
		Topics []struct {
			Topic, Refused string
			TargetTopic    string `json:"target_topic"`
			In             bool
		}
		Refusals []string
	}
}

// TestFlowsBothWaysGoOn: once the books say which flow copies a topic, the other one
// stops that topic alone, in whatever order they stand, and a dry run says so.
func TestFlowsBothWaysGoOn(t *testing.T) {
	for _, clusters := range []string{"a, b", "b, a"} {
		t.Run(clusters, func(t *testing.T) {
			c := newConfigCase(t, identityBothWays(clusters)...)
			c.topic(c.a, "orders", 5)
			c.topic(c.b, "payments", 7)
			c.run(0, "replicate", "--once", "--flow", "a->b", "--topics", "orders")
			c.run(0, "replicate", "--once", "--flow", "b->a", "--topics", "payments")
			wants := map[string][2]string{
				"a": {"payments", "flow a->b would copy topic payments back to topic payments of cluster b, whose copy it is, made by flow b->a"},
				"b": {"orders", "flow b->a would copy topic orders back to topic orders of cluster a, whose copy it is, made by flow a->b"},
			}
			c.more(c.a, "orders", 3)
			c.more(c.b, "payments", 2)

			var plans plansAnswer
			c.answer(&plans, 5, "replicate", "--dry-run")
			if first := plans.Flows[0].Flow.Source; first != clusters[:1] {
				t.Errorf("the first flow begins at %s", first)
			}
			for _, f := range plans.Flows {
				for _, p := range f.Topics {
					want := wants[f.Flow.Source]
					if refused := p.Topic == want[0]; p.In == refused || p.TargetTopic != p.Topic || refused != (p.Refused == "target_not_empty: "+want[1]) {
						t.Errorf("%v: %+v", f.Flow, p)
					}
				}
			}
			table, stderr := c.run(5, "replicate", "--dry-run", "-o", "wide")
			for _, want := range wants {
				if !strings.Contains(table, want[1]) || !strings.Contains(stderr, "topic "+want[0]+": target_not_empty: "+want[1]) {
					t.Errorf("the plan lacks %q:\n%s%s", want[1], table, stderr)
				}
			}
			if !strings.Contains(table, "TARGET") || !strings.Contains(table, "refused") {
				t.Error(table)
			}

			var got summariesAnswer
			c.answer(&got, 1, "replicate", "--once")
			for _, f := range got.Flows {
				want, copied := wants[f.Flow.Source], map[string]int64{"a": 3, "b": 2}[f.Flow.Source]
				if f.Copied != copied || len(f.Stopped) != 1 || f.Stopped[0].Topic != want[0] || f.Stopped[0].Detail != want[1] {
					t.Errorf("%+v", f)
				}
			}
			kafkatest.Compare(t, c.a.Bootstrap, c.b.Bootstrap, kafkatest.Same("orders", "payments"))
			for _, name := range []string{"a-to-b.ledger", "b-to-a.ledger"} {
				mustCheck(t, filepath.Join(c.dir, name))
			}
		})
	}
}

// TestPlanOfFlowsThatMustNotBegin: what keeps all flows from beginning is in the plan
// of each that it is about.
func TestPlanOfFlowsThatMustNotBegin(t *testing.T) {
	c := newConfigCase(t, identityBothWays("a, b")...)
	c.topic(c.a, "orders", 1)
	var plans plansAnswer
	c.answer(&plans, 5, "replicate", "--dry-run")
	if got := plans.Flows[0].Refusals; len(got) != 1 || !strings.Contains(got[0], "a->b and b->a keep names") {
		t.Errorf("refusals %q", got)
	}
	c.topic(c.b, "orders", 1)
	c.answer(&plans, 5, "replicate", "--dry-run")
	for i, f := range plans.Flows {
		want := []string{
			"flow a->b would copy topic orders back to topic orders of cluster b, whose copy it would be, made by flow b->a; neither has a book",
			"flow b->a would copy topic orders back to topic orders of cluster a, whose copy it would be, made by flow a->b; neither has a book",
		}[i]
		if len(f.Topics) != 1 || f.Topics[0].In || f.Topics[0].Refused != "target_not_empty: "+want || len(f.Refusals) != 1 || !strings.HasSuffix(f.Refusals[0], want) {
			t.Errorf("%+v", f)
		}
	}
	c.answer(&plans, 5, "replicate", "--dry-run", "-X", "b->a.topics=nothing", "-X", "clusters=a, b, c", "-X", "c.bootstrap.servers="+c.a.Server(),
		"-X", "a->c.enabled=true", "-X", "a->b.topics=payments", "-X", "c->b.enabled=true")
	for _, f := range plans.Flows {
		if same := f.Flow.Source == "c" || f.Flow.Target == "c"; same != (len(f.Refusals) > 0) {
			t.Errorf("%+v", f)
		}
	}
}

// TestWhatKeepsAllFromBeginningNamesItsFlow.
func TestWhatKeepsAllFromBeginningNamesItsFlow(t *testing.T) {
	c := newConfigCase(t, "a->b.enabled = true", "b->a.enabled = true", "topics = orders")
	c.topic(c.a, "orders", 1)
	c.topic(c.b, "orders", 1)
	c.topic(c.b, "a.orders", 1)
	if _, stderr := c.run(2, "replicate", "--once"); !strings.Contains(stderr, "flow a->b: cluster b holds records") || strings.Contains(stderr, "flow b->a") {
		t.Error(stderr)
	}
	var plans plansAnswer
	c.answer(&plans, 5, "replicate", "--dry-run")
	if f := plans.Flows[0]; len(f.Refusals) != 1 || !strings.Contains(f.Refusals[0], "a.orders-0 has offsets [0, 1)") {
		t.Errorf("%+v", f)
	}
	if _, stderr := c.run(5, "replicate", "--dry-run"); strings.Count(stderr, "flow a->b: cluster b holds records") != 1 {
		t.Error(stderr)
	}
}

// TestFlowThatIsNotEnabledForLackOfTheWord is left out, as MirrorMaker 2 does it; on
// the command line it is a typing error.
func TestFlowThatIsNotEnabledForLackOfTheWord(t *testing.T) {
	c := newConfigCase(t, "a->b.enabled = true", "b->a.enabled = yes", "topics = orders")
	c.topic(c.a, "orders", 5)
	c.topic(c.b, "orders", 5)
	var got replicateAnswer
	c.answer(&got, 0, "replicate", "--once")
	if got.Flow.Source != "a" || got.Copied != 5 || c.topics(c.a)["b.orders"] {
		t.Errorf("%+v", got)
	}
	file := c.file
	c.file = ""
	if stdout, _ := c.run(3, "lint", file); !strings.Contains(stdout, "AP0407") {
		t.Error(stdout)
	}
	c.file = file
	c.run(2, "replicate", "--once", "-X", "b->a.enabled=ja")
}

// TestPlanBesideRunningFlows knows their books, though they hold their ledgers.
func TestPlanBesideRunningFlows(t *testing.T) {
	c := newConfigCase(t, identityBothWays("b, a")...)
	c.topic(c.a, "orders", 2)
	c.run(0, "replicate", "--once", "--flow", "a->b")
	c.more(c.a, "orders", 3)
	p := mustStart(t, "apograph", "replicate", "--config", c.file)
	eventually(t, "orders is copied", func() bool { return c.topics(c.b)["orders"] && c.records(c.b, "orders") == 5 })
	var plans plansAnswer
	c.answer(&plans, 5, "replicate", "--dry-run")
	for _, f := range plans.Flows {
		orders := f.Topics[len(f.Topics)-1] // behind heartbeats, which are made and not copied
		if orders.Topic != "orders" || orders.In != (f.Flow.Source == "a") || !orders.In && !strings.Contains(orders.Refused, "whose copy it is, made by flow a->b") {
			t.Errorf("%+v", f)
		}
	}
	p.mustSignal(t, syscall.SIGINT)
	if code := p.exitCode(); code != 130 {
		t.Errorf("exit code %d\n%s", code, p.stderr.String())
	}
	kafkatest.Compare(t, c.a.Bootstrap, c.b.Bootstrap, kafkatest.Same("orders"))
	for _, name := range []string{"a-to-b.ledger", "b-to-a.ledger"} {
		mustCheck(t, filepath.Join(c.dir, name))
	}
}
