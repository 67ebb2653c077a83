package replicate_test

import (
	"errors"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"apograph/internal/kafkatest"
	"apograph/internal/mm2"
	"apograph/ledger"
	"apograph/replicate"
)

func mustPolicy(t *testing.T, settings map[string]string) mm2.Policy {
	t.Helper()
	p, err := mm2.ParsePolicy(settings)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// topicsOf returns the names of the topics of a cluster, sorted.
func topicsOf(t *testing.T, c *kafkatest.Cluster) []string {
	t.Helper()
	topics, err := admin(t, c.Bootstrap).ListTopics(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return topics.Names()
}

func wantTopics(t *testing.T, c *kafkatest.Cluster, want ...string) {
	t.Helper()
	if got := topicsOf(t, c); !slices.Equal(got, slices.Sorted(slices.Values(want))) {
		t.Errorf("topics %q, want %q", got, want)
	}
}

// wantRefused runs a flow that must not begin: it says why, and nothing is
// written to the target or a ledger.
func wantRefused(t *testing.T, pair *kafkatest.Pair, config replicate.Config, why string) {
	t.Helper()
	before := topicsOf(t, pair.Target)
	_, statErr := os.Stat(config.LedgerPath)
	_, err := replicate.Run(t.Context(), config)
	var usage *replicate.UsageError
	if !errors.As(err, &usage) || !strings.Contains(err.Error(), why) {
		t.Fatalf("error %v, want a usage error with %q", err, why)
	}
	wantTopics(t, pair.Target, before...)
	if _, err := os.Stat(config.LedgerPath); errors.Is(err, fs.ErrNotExist) != errors.Is(statErr, fs.ErrNotExist) {
		t.Errorf("the ledger: %v, before %v", err, statErr)
	}
}

// TestNamesOfTheDefaultPolicy: what is copied, and under which names, in a first
// run, in one that goes on, and in one that adopts what its ledger does not know.
func TestNamesOfTheDefaultPolicy(t *testing.T) {
	t.Parallel()
	pair := stored(t)
	for _, topic := range []string{"t", "target.back", "far.target.back", "heartbeats", "far.heartbeats", "mm2-x.internal", "far.orders"} {
		mustTopic(t, pair.Source, topic, nil)
		mustAppend(t, pair.Source.Bootstrap, on(topic, 0, 0, 5)...)
	}
	config := configFor(t, pair, "t", ".*back", "mm2.*", "far.orders")
	config.Policy = mustPolicy(t, nil)
	config.Heartbeats = true
	names := map[string]string{"t": "source.t", "heartbeats": "source.heartbeats", "far.heartbeats": "source.far.heartbeats", "far.orders": "source.far.orders"}
	if s := mustRun(t, config); !s.Complete || s.Tiles[ledger.Copied] != 20 {
		t.Errorf("summary %+v", s)
	}
	wantTopics(t, pair.Target, slices.Collect(maps.Values(names))...)
	proveAs(t, pair.Source.Bootstrap, pair.Target.Bootstrap, config.LedgerPath, names)

	earlier := copyFile(t, config.LedgerPath)
	mustAppend(t, pair.Source.Bootstrap, on("t", 0, 5, 7)...)
	if s := mustRun(t, config); !s.Complete || s.Tiles[ledger.Copied] != 7 {
		t.Errorf("summary %+v", s)
	}
	config.LedgerPath = earlier
	mustAppend(t, pair.Source.Bootstrap, on("t", 0, 12, 2)...)
	if s := mustRun(t, config); !s.Complete || s.Tiles[ledger.Copied] != 9 {
		t.Errorf("summary %+v", s)
	}
	proveAs(t, pair.Source.Bootstrap, pair.Target.Bootstrap, earlier, names)

	l := kafkatest.OpenLedger(t, earlier, ledger.Options{ReadOnly: true})
	selection, err := mm2.ParseSelection(l.Scope().Topics, l.Scope().TopicsExclude)
	if err != nil {
		t.Fatal(err)
	}
	for _, topic := range topicsOf(t, pair.Source) {
		if _, in := selection.Match(topic); in != (names[topic] != "") && !mm2.IsInternal(topic) {
			t.Errorf("the ledger's scope has %s: %t", topic, in)
		}
	}
}

func copyOf(t *testing.T, topic, name string, extra ...string) map[string]string {
	t.Helper()
	settings := map[string]string{mm2.PolicyKey: "map", mm2.PolicyMapKey: topic + "=" + name}
	for i := 0; i < len(extra); i += 2 {
		settings[mm2.PolicyMapKey] += "," + extra[i] + "=" + extra[i+1]
	}
	return settings
}

// TestNamesOfTheMapPolicy: rules give names, and what none is about keeps its
// own.
func TestNamesOfTheMapPolicy(t *testing.T) {
	t.Parallel()
	pair := stored(t)
	for _, topic := range []string{"t", "eu.orders", "other"} {
		mustTopic(t, pair.Source, topic, nil)
		mustAppend(t, pair.Source.Bootstrap, on(topic, 0, 0, 5)...)
	}
	config := configFor(t, pair, ".*")
	config.Policy = mustPolicy(t, copyOf(t, "t", "new-t", `(\w+)\.(.*)`, "$2-$1"))
	if s := mustRun(t, config); !s.Complete || s.Tiles[ledger.Copied] != 15 {
		t.Errorf("summary %+v", s)
	}
	proveAs(t, pair.Source.Bootstrap, pair.Target.Bootstrap, config.LedgerPath, map[string]string{"t": "new-t", "eu.orders": "orders-eu", "other": "other"})
}

// TestCollisionsAreRefused: of two topics that would become one nothing is
// written, whether both are new, or one has a book; and a name that no topic can
// have is none.
func TestCollisionsAreRefused(t *testing.T) {
	t.Parallel()
	pair := stored(t)
	for _, topic := range []string{"a", "b"} {
		mustTopic(t, pair.Source, topic, nil)
		mustAppend(t, pair.Source.Bootstrap, on(topic, 0, 0, 5)...)
	}
	config := configFor(t, pair, ".*")
	config.Policy = mustPolicy(t, copyOf(t, "[ab]", "c"))
	wantRefused(t, pair, config, "flow source->target would copy topic b to topic c of cluster target, and flow source->target topic a as well; neither has a book")
	config.Policy = mustPolicy(t, copyOf(t, "(.*)", strings.Repeat("$1.", 130)))
	wantRefused(t, pair, config, "has 260 characters")

	config.Topics = []string{"a"}
	config.Policy = mustPolicy(t, copyOf(t, "a", "c"))
	mustRun(t, config)
	config.Topics = []string{"b"}
	config.Policy = mustPolicy(t, copyOf(t, "b", "c"))
	wantRefused(t, pair, config, "the books know that as the copy of a")
	config.Topics = []string{"a"}
	config.Policy = mm2.Policy{}
	wantRefused(t, pair, config, "its books are about the copy c")
	plan, err := replicate.MakePlan(t.Context(), config, kafkatest.OpenLedger(t, config.LedgerPath, ledger.Options{ReadOnly: true}))
	if err != nil || len(plan.Refusals) != 1 || !strings.Contains(plan.Refusals[0], "its books are about the copy c") {
		t.Errorf("%v, refusals %q", err, plan.Refusals)
	}
	proveAs(t, pair.Source.Bootstrap, pair.Target.Bootstrap, config.LedgerPath, map[string]string{"a": "c"})
}

// TestCollisionWhileRunning: a topic that comes later and would become the copy
// of another stops alone.
func TestCollisionWhileRunning(t *testing.T) {
	t.Parallel()
	pair := stored(t)
	mustTopic(t, pair.Source, "a", nil)
	config := livingConfig(t, pair, ".*")
	config.Policy = mustPolicy(t, copyOf(t, "(a|b)", "c"))
	l := live(t, pair, config)
	l.at("a", 0, 0)
	mustTopic(t, pair.Source, "b", nil)
	mustAppend(t, pair.Source.Bootstrap, append(on("a", 0, 0, 5), on("b", 0, 0, 3)...)...)
	if s := l.stopped("b", 0, replicate.StopTargetNotEmpty); !strings.Contains(s.Detail, "the copy of a") {
		t.Errorf("detail %q", s.Detail)
	}
	l.at("a", 0, 5)
	l.end()
	proveAs(t, pair.Source.Bootstrap, pair.Target.Bootstrap, config.LedgerPath, map[string]string{"a": "c"})
}

// TestNothingBecomesAnInternalTopic: records of a topic never go into one of Kafka's
// own or of MirrorMaker 2's.
func TestNothingBecomesAnInternalTopic(t *testing.T) {
	t.Parallel()
	pair := stored(t)
	mustTopic(t, pair.Source, "a", nil)
	for _, name := range []string{"__consumer_offsets", "__x", "source.checkpoints.internal", "mm2-offset-syncs.target.internal"} {
		config := configFor(t, pair, "a")
		config.Policy = mustPolicy(t, copyOf(t, "a", name))
		wantRefused(t, pair, config, "Kafka's own or MirrorMaker 2's")
	}
}

// TestNoSettingsForWhatIsRefused: a topic that comes later and is not copied, since
// the target's is somebody else's, does not get its settings onto that either.
func TestNoSettingsForWhatIsRefused(t *testing.T) {
	t.Parallel()
	pair := stored(t)
	mustTopic(t, pair.Source, "a", nil)
	mustTopic(t, pair.Target, "b", map[string]string{"retention.ms": "5000000"})
	mustAppend(t, pair.Target.Bootstrap, on("b", 0, 0, 3)...)
	config := livingConfig(t, pair, ".*")
	config.Settings.Mode = replicate.SettingsOfAll
	l := live(t, pair, config)
	l.at("a", 0, 0)
	mustTopic(t, pair.Source, "b", map[string]string{"retention.ms": "9000000"})
	l.stopped("b", 0, replicate.StopTargetNotEmpty)
	l.end()
	wantSettings(t, pair.Target, "b", "retention.ms", "5000000")
}

// TestRouteOfATopicThatIsGone is free again, where nothing was ever copied.
func TestRouteOfATopicThatIsGone(t *testing.T) {
	t.Parallel()
	pair := stored(t)
	mustTopic(t, pair.Source, "a", nil)
	refusal := pair.Target.MustFault(t, kafkatest.Fault{Kind: kafkatest.ErrorBefore, Key: kmsg.CreateTopics, Count: -1, Err: kerr.TopicAuthorizationFailed})
	config := livingConfig(t, pair, ".*")
	config.Policy = mustPolicy(t, copyOf(t, "(a|b)", "c"))
	l := live(t, pair, config)
	l.stopped("a", 0, replicate.StopNotAuthorized)
	if _, err := admin(t, pair.Source.Bootstrap).DeleteTopics(t.Context(), "a"); err != nil {
		t.Fatal(err)
	}
	mustTopic(t, pair.Source, "b", nil)
	mustAppend(t, pair.Source.Bootstrap, on("b", 0, 0, 3)...)
	l.until("b", 0, "stopped", func(s replicate.PartitionStatus) bool { return s.State == replicate.StateStopped })
	refusal.Remove()
	l.at("b", 0, 3)
	l.end()
	proveAs(t, pair.Source.Bootstrap, pair.Target.Bootstrap, config.LedgerPath, map[string]string{"b": "c"})
}

// TestOneClusterOfTwoNames: a cluster is not copied to itself unless somebody
// says so; then what the flow makes is not copied again.
func TestOneClusterOfTwoNames(t *testing.T) {
	t.Parallel()
	pair := stored(t)
	mustTopic(t, pair.Source, "t", nil)
	mustAppend(t, pair.Source.Bootstrap, numbered(0, 5)...)
	pair.Target = pair.Source
	config := configFor(t, pair, ".*")
	config.Policy = mustPolicy(t, nil)
	wantRefused(t, pair, config, "are the same cluster")
	if err := checkFlows(t, config); err == nil || !strings.Contains(err.Error(), "source and target are the same cluster") {
		t.Errorf("error %v", err)
	}
	config.AllowSameCluster = true
	for range 2 {
		if s := mustRun(t, config); !s.Complete {
			t.Errorf("summary %+v", s)
		}
		wantTopics(t, pair.Source, "t", "source.t")
	}
	plan, err := replicate.MakePlan(t.Context(), config, kafkatest.OpenLedger(t, config.LedgerPath, ledger.Options{ReadOnly: true}))
	if p := planTopic(t, plan, "source.t"); err != nil || p.In || p.Rule != "it is the copy that this flow makes of t" {
		t.Errorf("%v, %+v", err, p)
	}
	proveAs(t, pair.Source.Bootstrap, pair.Source.Bootstrap, config.LedgerPath, map[string]string{"t": "source.t"})
	config.LedgerPath += "2"
	config.Policy = mm2.Policy{}
	wantRefused(t, pair, config, "would copy topic t onto itself")
}

// TestFlowsOfOneProcess: two flows that would bring records back, or write to
// one topic, are refused before either writes; once one is at work the other one
// stops, also when that has ended.
func TestFlowsOfOneProcess(t *testing.T) {
	t.Parallel()
	pair := stored(t)
	for _, c := range []*kafkatest.Cluster{pair.Source, pair.Target} {
		mustTopic(t, c, "t", nil)
	}
	there := livingConfig(t, pair, "t")
	there.Routes = &replicate.Routes{}
	back := livingConfig(t, &kafkatest.Pair{Source: pair.Target, Target: pair.Source}, "t")
	back.Source.Alias, back.Target.Alias, back.Routes = "target", "source", there.Routes
	again := livingConfig(t, pair, "t")
	again.Source.Alias, again.Routes = "other", there.Routes

	var usage *replicate.UsageError
	check := func(err error, why string) {
		t.Helper()
		if !errors.As(err, &usage) || !strings.Contains(err.Error(), why) {
			t.Errorf("error %v, want a usage error with %q", err, why)
		}
	}
	const loop = "flow target->source would copy topic t back to topic t of cluster source, whose copy it would be, made by flow source->target; neither has a book"
	check(checkFlows(t, there, back), loop)
	check(checkFlows(t, there, again), "source and other are the same cluster")
	again.AllowSameCluster = true
	check(checkFlows(t, there, again), "flow other->target would copy topic t to topic t of cluster target, and flow source->target topic t as well; neither has a book")
	prefixed := back
	prefixed.Policy = mustPolicy(t, nil)
	if err := checkFlows(t, there, prefixed); err != nil {
		t.Error(err)
	}

	l := live(t, pair, there)
	l.at("t", 0, 0)
	back.RetryAfter = 5 * time.Millisecond
	second := live(t, &kafkatest.Pair{Source: pair.Target, Target: pair.Source}, back)
	const late = "flow target->source would copy topic t back to topic t of cluster source, whose copy it is, made by flow source->target"
	if s := second.stopped("t", 0, replicate.StopTargetNotEmpty); s.Detail != late {
		t.Errorf("detail %q", s.Detail)
	}
	l.end()
	tried := time.Now().Add(64 * back.RetryAfter) // whatever was to be tried by then was tried before
	second.until("t", 0, "stopped again, though the first flow has ended", func(s replicate.PartitionStatus) bool { return s.Detail == late && s.NextRetry.After(tried) })
	second.end()
	prove(t, pair.Source.Bootstrap, pair.Target.Bootstrap, there.LedgerPath, "t")
}

// TestReplicationFactor of the topics that are made.
func TestReplicationFactor(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ config, want int }{{0, 1}, {2, 2}, {3, 3}, {-1, 3}} {
		pair := kafkatest.NewPair(t, kafkatest.Options{})
		mustTopic(t, pair.Source, "t", nil)
		config := configFor(t, pair, "t")
		config.ReplicationFactor = tt.config
		mustComplete(t, pair, config)
		topics, err := admin(t, pair.Target.Bootstrap).ListTopics(t.Context(), "t")
		if err != nil {
			t.Fatal(err)
		}
		if got := len(topics["t"].Partitions[0].Replicas); got != tt.want {
			t.Errorf("replication factor %d makes %d replicas, want %d", tt.config, got, tt.want)
		}
	}
}
