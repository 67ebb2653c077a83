package replicate_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"

	"apograph/internal/kafkatest"
	"apograph/internal/pace"
	"apograph/ledger"
	"apograph/replicate"
)

// TestStartOfEachTopic: topics begin where it is said of each, also of a group;
// what a group has not committed is refused before anything is made.
func TestStartOfEachTopic(t *testing.T) {
	pair := stored(t)
	for _, name := range []string{"all", "none", "read"} {
		mustTopic(t, pair.Source, name, nil)
		mustAppend(t, pair.Source.Bootstrap, on(name, 0, 0, 10)...)
	}
	offsets := kadm.Offsets{}
	offsets.AddOffset("read", 0, 4, -1)
	if err := admin(t, pair.Source.Bootstrap).CommitAllOffsets(t.Context(), "g", offsets); err != nil {
		t.Fatal(err)
	}
	config := configFor(t, pair, ".*")
	starts := map[string]replicate.StartPoint{"none": replicate.StartLatest(), "read": replicate.StartOfGroup("nobody")}
	config.StartOf = func(topic string) replicate.StartPoint { return starts[topic] }
	config.Start = replicate.StartLatest() // does not count
	wantRefused(t, pair, config, "group nobody has committed nothing")
	starts["read"] = replicate.StartOfGroup("g")
	if s := mustRun(t, config); !s.Complete {
		t.Errorf("summary %+v", s)
	}
	book := kafkatest.OpenLedger(t, config.LedgerPath, ledger.Options{ReadOnly: true})
	want := map[string]int64{"all": 0, "none": 10, "read": 4}
	for _, p := range book.Pairs() {
		if p.ScopeStart != want[p.SourceTopic] {
			t.Errorf("%s begins at %d, want %d", p.SourceTopic, p.ScopeStart, want[p.SourceTopic])
		}
	}
}

// TestKnownTopics: what is new on the source is left alone until the next start,
// but for partitions of topics that are copied.
func TestKnownTopics(t *testing.T) {
	pair := stored(t)
	mustTopic(t, pair.Source, "a", nil)
	mustAppend(t, pair.Source.Bootstrap, on("a", 0, 0, 10)...)
	config := livingConfig(t, pair, ".*")
	config.KnownTopics = true
	l := live(t, pair, config)
	l.at("a", 0, 10)
	mustTopic(t, pair.Source, "b", nil)
	mustAppend(t, pair.Source.Bootstrap, on("b", 0, 0, 7)...)
	if _, err := admin(t, pair.Source.Bootstrap).UpdatePartitions(t.Context(), 2, "a"); err != nil {
		t.Fatal(err)
	}
	mustAppend(t, pair.Source.Bootstrap, on("a", 1, 0, 5)...)
	l.at("a", 1, 5) // found by a look that has seen b as well
	if s := l.end(); s.Topics != 1 || s.Partitions != 2 {
		t.Errorf("summary %+v", s)
	}
	l = live(t, pair, config)
	l.at("b", 0, 7)
	l.end()
	prove(t, pair.Source.Bootstrap, pair.Target.Bootstrap, config.LedgerPath, "a", "b")
}

// TestCheckFlowsFindsWhatWouldBeRefused, of each flow by itself, and says
// something of each; nothing is written.
func TestCheckFlowsFindsWhatWouldBeRefused(t *testing.T) {
	pair := stored(t)
	mustTopic(t, pair.Source, "t", nil)
	mustTopic(t, pair.Target, "t", nil)
	mustAppend(t, pair.Source.Bootstrap, on("t", 0, 0, 5)...)
	mustAppend(t, pair.Target.Bootstrap, on("t", 0, 0, 1)...)
	full := configFor(t, pair, "t")
	none := configFor(t, pair, "nothing")
	fine := configFor(t, pair, "t")
	fine.Policy = mustPolicy(t, nil)
	away := configFor(t, pair, "t")
	away.Target.Bootstrap = []string{"127.0.0.1:1"}

	err := replicate.CheckFlows(t.Context(), []replicate.Config{full, none, fine, away})
	if err == nil || !errors.Is(err, replicate.ErrNoTopics) {
		t.Errorf("error %v", err)
	}
	for _, why := range []string{"holds records that this ledger does not know", "no topic to copy", "cannot be reached"} {
		if strings.Count(err.Error(), why) != 1 {
			t.Errorf("%q is not there once: %v", why, err)
		}
	}
	wantTopics(t, pair.Target, "t")
	if err := replicate.CheckFlows(t.Context(), []replicate.Config{fine}); err != nil {
		t.Error(err)
	}
	mustRun(t, fine)
	fine.Source.Alias = "other"
	if err := replicate.CheckFlows(t.Context(), []replicate.Config{fine}); err == nil || !strings.Contains(err.Error(), "belongs to another flow") {
		t.Errorf("error %v", err)
	}
}

// TestFlowsShareAPace: the limit counts what all of them fetch.
func TestFlowsShareAPace(t *testing.T) {
	pair := stored(t)
	mustTopic(t, pair.Source, "t", nil)
	mustAppend(t, pair.Source.Bootstrap, on("t", 0, 0, 5)...)
	config := configFor(t, pair, "t")
	config.RateLimit, config.Pace = 1<<30, pace.New(1)
	s := mustRun(t, config)
	if wait := config.Pace.Reserve(time.Now(), 1); wait < time.Minute || !s.Complete {
		t.Errorf("others wait for %v behind %d bytes; summary %+v", wait, s.Bytes, s)
	}
}
