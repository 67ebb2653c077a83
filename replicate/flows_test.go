package replicate_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

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

	errs := replicate.CheckFlows(t.Context(), []replicate.Config{full, none, fine, away}, nil)
	if len(errs) != 4 || !errors.Is(errs[1], replicate.ErrNoTopics) {
		t.Fatalf("errors %v", errs)
	}
	for i, why := range []string{"flow source->target: cluster target holds records that this ledger does not know", "flow source->target: cluster source has no topic to copy", "", "cannot be reached"} {
		if why == "" && errs[i] != nil || why != "" && (errs[i] == nil || !strings.Contains(errs[i].Error(), why)) {
			t.Errorf("flow %d: error %v, want %q", i, errs[i], why)
		}
	}
	wantTopics(t, pair.Target, "t")
	if err := checkFlows(t, fine); err != nil {
		t.Error(err)
	}
	mustRun(t, fine)
	fine.Source.Alias = "other"
	if err := checkFlows(t, fine); err == nil || !strings.Contains(err.Error(), "flow other->target: ledger "+fine.LedgerPath+" belongs to another flow") {
		t.Errorf("error %v", err)
	}
}

func checkFlows(t *testing.T, configs ...replicate.Config) error {
	t.Helper()
	return errors.Join(replicate.CheckFlows(t.Context(), configs, nil)...)
}

// activeActive returns the flows between two clusters, one each way, and what they
// share. Topics keep their names.
func activeActive(t *testing.T, pair *kafkatest.Pair, topics ...string) (there, back replicate.Config) {
	t.Helper()
	there = configFor(t, pair, topics...)
	back = configFor(t, &kafkatest.Pair{Source: pair.Target, Target: pair.Source}, topics...)
	back.Source.Alias, back.Target.Alias = "target", "source"
	there.Routes = &replicate.Routes{}
	back.Routes = there.Routes
	return there, back
}

// TestBooksComeFirst: which of two flows copies a topic is what their books say,
// whatever their order; the other one stops that topic, says so truly, and copies
// what else it has.
func TestBooksComeFirst(t *testing.T) {
	t.Parallel()
	const stopped = "flow target->source would copy topic t back to topic t of cluster source, whose copy it is, made by flow source->target"
	for _, order := range []string{"as they began", "the other way round"} {
		t.Run(order, func(t *testing.T) {
			t.Parallel()
			pair := stored(t)
			mustTopic(t, pair.Source, "t", nil)
			mustAppend(t, pair.Source.Bootstrap, on("t", 0, 0, 5)...)
			there, back := activeActive(t, pair, "t", "u")
			mustRun(t, there)
			mustTopic(t, pair.Target, "u", nil)
			mustAppend(t, pair.Target.Bootstrap, on("u", 0, 0, 7)...)
			mustAppend(t, pair.Source.Bootstrap, on("t", 0, 5, 2)...)
			for range 2 { // also once both have books
				configs := []replicate.Config{there, back}
				if order != "as they began" {
					configs = []replicate.Config{back, there}
				}
				if err := errors.Join(replicate.CheckFlows(t.Context(), configs, nil)...); err != nil {
					t.Fatal(err)
				}
				for _, config := range configs {
					s, err := replicate.Run(t.Context(), config)
					if err != nil {
						t.Fatal(err)
					}
					topic, why := "t", stopped
					if s.SourceAlias == "source" {
						topic, why = "u", "flow source->target would copy topic u back to topic u of cluster target, whose copy it is, made by flow target->source"
						if len(s.Stopped) == 0 && order == "as they began" { // u is not there yet
							continue
						}
					}
					if len(s.Stopped) != 1 || s.Stopped[0].Topic != topic || s.Stopped[0].Detail != why {
						t.Errorf("%s: stopped %+v, want %s: %s", s.SourceAlias, s.Stopped, topic, why)
					}
				}
			}
			prove(t, pair.Source.Bootstrap, pair.Target.Bootstrap, there.LedgerPath, "t")
			prove(t, pair.Target.Bootstrap, pair.Source.Bootstrap, back.LedgerPath, "u")
		})
	}
}

// TestFlowFindsWhatAnotherHasJustMade: between the making of a topic and its book
// another flow may look; it stops the topic, and runs.
func TestFlowFindsWhatAnotherHasJustMade(t *testing.T) {
	t.Parallel()
	pair := stored(t)
	mustTopic(t, pair.Source, "t", nil)
	mustAppend(t, pair.Source.Bootstrap, on("t", 0, 0, 5)...)
	there, back := activeActive(t, pair, "t")
	back.Once = false
	if err := checkFlows(t, back); err != nil { // there is nothing to say of it alone
		t.Fatal(err)
	}
	noBook := pair.Target.MustFault(t, kafkatest.Fault{Kind: kafkatest.ErrorBefore, Key: kmsg.InitProducerID, Count: -1, Err: kerr.CoordinatorLoadInProgress})
	ended := make(chan error, 1)
	go func() {
		s, err := replicate.Run(t.Context(), there)
		if err == nil && !s.Complete {
			err = fmt.Errorf("summary %+v", s)
		}
		ended <- err
	}()
	deadline := time.After(20 * time.Second)
	for made := false; !made; made = slices.Contains(topicsOf(t, pair.Target), "t") {
		select {
		case <-deadline:
			t.Fatal("the topic is not made")
		default:
		}
	}
	second := live(t, &kafkatest.Pair{Source: pair.Target, Target: pair.Source}, back)
	second.stopped("t", 0, replicate.StopTargetNotEmpty)
	noBook.Remove()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	second.end()
	prove(t, pair.Source.Bootstrap, pair.Target.Bootstrap, there.LedgerPath, "t")
}

// TestBooksOfAFlowThatIsAway hold their routes: what a cluster that cannot be reached
// is the source of is no other's to write.
func TestBooksOfAFlowThatIsAway(t *testing.T) {
	t.Parallel()
	pair := stored(t)
	third := stored(t)
	for _, c := range []*kafkatest.Cluster{pair.Source, third.Source} {
		mustTopic(t, c, "t", nil)
	}
	first := configFor(t, pair, "t")
	mustRun(t, first)
	mustAppend(t, third.Source.Bootstrap, on("t", 0, 0, 5)...)
	second := configFor(t, &kafkatest.Pair{Source: third.Source, Target: pair.Target}, "t")
	second.Source.Alias = "third"
	first.Routes = &replicate.Routes{}
	second.Routes = first.Routes
	first.Source.Bootstrap = []string{"127.0.0.1:1"}
	for _, configs := range [][]replicate.Config{{first, second}, {second, first}} {
		if err := errors.Join(replicate.CheckFlows(t.Context(), configs, nil)...); err == nil || strings.Contains(err.Error(), "third") {
			t.Errorf("error %v", err)
		}
		s, err := replicate.Run(t.Context(), second)
		if err != nil || len(s.Stopped) != 1 || !strings.Contains(s.Stopped[0].Detail, "to which flow source->target copies topic t") {
			t.Errorf("%v, %+v", err, s.Stopped)
		}
	}
	prove(t, pair.Source.Bootstrap, pair.Target.Bootstrap, first.LedgerPath, "t")
}

// TestClashWithoutBooks: as long as no flow has a book nothing is begun; once one
// has, of topics that clash with one another none is copied, and all others are.
func TestClashWithoutBooks(t *testing.T) {
	t.Parallel()
	pair := stored(t)
	for _, c := range []*kafkatest.Cluster{pair.Source, pair.Target} {
		mustTopic(t, c, "t", nil)
	}
	mustTopic(t, pair.Source, "other", nil)
	mustAppend(t, pair.Source.Bootstrap, on("other", 0, 0, 3)...)
	there, back := activeActive(t, pair, "t", "other")
	back.Topics = []string{"t"}
	err := checkFlows(t, there, back)
	for _, why := range []string{
		"flow source->target: flow source->target would copy topic t back to topic t of cluster target, whose copy it would be, made by flow target->source; neither has a book",
		"flow target->source: flow target->source would copy topic t back to topic t of cluster source, whose copy it would be, made by flow source->target; neither has a book",
	} {
		if err == nil || !strings.Contains(err.Error(), why) {
			t.Errorf("error %v, want one with %q", err, why)
		}
	}
	alone := there
	alone.Topics, alone.Routes = []string{"other"}, nil
	mustRun(t, alone)
	mustAppend(t, pair.Source.Bootstrap, append(on("other", 0, 3, 2), on("t", 0, 0, 1)...)...)
	if err := checkFlows(t, back, there); err != nil {
		t.Fatal(err)
	}
	s := mustRun(t, there)
	b := mustRun(t, back)
	if s.Tiles[ledger.Copied] != 2 || len(s.Stopped) != 1 || len(b.Stopped) != 1 || !strings.Contains(b.Stopped[0].Detail, "neither has a book") {
		t.Errorf("there %+v\nback %+v", s, b)
	}
	prove(t, pair.Source.Bootstrap, pair.Target.Bootstrap, there.LedgerPath, "other")
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
