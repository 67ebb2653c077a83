package replicate_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"apograph/internal/kafkatest"
	"apograph/internal/mirror"
	"apograph/internal/mm2"
	"apograph/replicate"
)

const ownSyncs = "mm2-offset-syncs.target.internal"

// allDuties are those that this package runs by itself.
func allDuties(interval time.Duration) mirror.Settings {
	return mirror.Settings{
		OffsetSyncs: mirror.OffsetSyncs{Enabled: true},
		Heartbeats:  []mirror.Heartbeats{{Source: "source", Target: "target", Interval: interval}, {Source: "target", Target: "source", OnSource: true, Interval: interval}},
	}
}

// syncsIn returns the syncs that a cluster holds, as the oracle reads them.
func syncsIn(t *testing.T, b kafkatest.Bootstrap) (all []mm2.OffsetSync) {
	t.Helper()
	records, err := b.ReadCommitted(t.Context(), ownSyncs, 0)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range records {
		sync, err := mm2.ParseOffsetSync(r.Key, r.Value)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, sync)
	}
	return all
}

// TestSyncsOfACopy: of transactions and gaps, each sync is of the same record on
// both sides, and the last is the newest.
func TestSyncsOfACopy(t *testing.T) {
	pair := kafkatest.NewPair(t, kafkatest.Options{})
	mustTopic(t, pair.Source, "t", nil)
	for i := range 20 {
		mustTransaction(t, pair.Source.Bootstrap, i%3 > 0, numbered(10*i, 10)...)
	}
	config := configFor(t, pair, "t")
	config.Policy, config.Mirror = mustPolicy(t, nil), allDuties(time.Second)
	if got := mustRun(t, config); !got.Complete || len(got.Duties) > 0 {
		t.Errorf("summary %+v", got)
	}
	kafkatest.Compare(t, pair.Source.Bootstrap, pair.Target.Bootstrap, map[string]string{"t": "source.t"})
	values := map[int64]string{}
	source, err := pair.Source.ReadCommitted(t.Context(), "t", 0)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range source {
		values[r.Offset] = string(r.Value)
	}
	target, err := pair.Target.ReadCommitted(t.Context(), "source.t", 0)
	if err != nil {
		t.Fatal(err)
	}
	syncs := syncsIn(t, pair.Source.Bootstrap)
	for _, s := range syncs {
		if want := string(target[s.Downstream].Value); s.Topic != "t" || values[s.Upstream] != want || want == "" {
			t.Errorf("%+v: %q there, %q here", s, values[s.Upstream], want)
		}
	}
	if last := syncs[len(syncs)-1]; last.Upstream != source[len(source)-1].Offset || len(syncs) < 3 {
		t.Errorf("syncs %+v", syncs)
	}
	wantTopics(t, pair.Source, "t", ownSyncs)
	wantTopics(t, pair.Target, "source.t", "heartbeats")
}

// TestCopyAloneWritesNothingElse: without duties nothing else is on any cluster.
func TestCopyAloneWritesNothingElse(t *testing.T) {
	pair := kafkatest.NewPair(t, kafkatest.Options{})
	mustTopic(t, pair.Source, "t", nil)
	mustAppend(t, pair.Source.Bootstrap, numbered(0, 10)...)
	mustComplete(t, pair, configFor(t, pair, "t"))
	wantTopics(t, pair.Source, "t")
	wantTopics(t, pair.Target, "t")
}

// TestFailedDutyStopsNoCopy: it is told of, by its name.
func TestFailedDutyStopsNoCopy(t *testing.T) {
	pair := kafkatest.NewPair(t, kafkatest.Options{})
	mustTopic(t, pair.Source, "t", nil)
	mustAppend(t, pair.Source.Bootstrap, numbered(0, 10)...)
	pair.Source.MustFault(t, kafkatest.Fault{Kind: kafkatest.ErrorBefore, Key: kmsg.CreateTopics, Err: kerr.InvalidReplicationFactor, Count: -1})
	config := configFor(t, pair, "t")
	config.Mirror = allDuties(time.Second)
	got := mustComplete(t, pair, config)
	if len(got.Duties) != 1 || got.Duties[0].Duty != "offset_syncs" || !strings.Contains(got.Duties[0].Error, "INVALID_REPLICATION_FACTOR") {
		t.Errorf("duties %+v", got.Duties)
	}
}

// TestHeartbeatsTravel: those of the way back arrive under the source's alias, so
// that clients of the target see where records come from.
func TestHeartbeatsTravel(t *testing.T) {
	pair := kafkatest.NewPair(t, kafkatest.Options{})
	mustTopic(t, pair.Source, "t", nil)
	config := livingConfig(t, pair, "t")
	config.Policy, config.Heartbeats, config.Mirror = mustPolicy(t, nil), true, allDuties(20*time.Millisecond)
	l := live(t, pair, config)
	l.until("heartbeats", 0, "copied", func(s replicate.PartitionStatus) bool { return s.Position >= 3 })
	l.end()
	records, err := pair.Target.ReadCommitted(t.Context(), "source.heartbeats", 0)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range records {
		if h, err := mm2.ParseHeartbeat(r.Key, r.Value); err != nil || h.Source != "target" || h.Target != "source" {
			t.Errorf("%+v %v", h, err)
		}
	}
	policy := config.Policy
	if got := policy.UpstreamClusters(topicsOf(t, pair.Target)); fmt.Sprint(got) != "[source]" {
		t.Errorf("upstream clusters of the target: %v", got)
	}
	wantTopics(t, pair.Target, "heartbeats", "source.heartbeats", "source.t")
}

// TestSyncsOfALivingFlow come while it copies, and after a restart go on.
func TestSyncsOfALivingFlow(t *testing.T) {
	pair := kafkatest.NewPair(t, kafkatest.Options{})
	mustTopic(t, pair.Source, "t", nil)
	config := livingConfig(t, pair, "t")
	config.Mirror = mirror.Settings{OffsetSyncs: mirror.OffsetSyncs{Enabled: true}}
	mustTopic(t, pair.Source, ownSyncs, map[string]string{"cleanup.policy": "compact"})
	produced := pair.Source.MustFault(t, kafkatest.Fault{Kind: kafkatest.DelayBefore, Key: kmsg.Produce, Topic: ownSyncs, Count: -1, Delay: time.Microsecond})
	for run := range 3 {
		l := live(t, pair, config)
		mustAppend(t, pair.Source.Bootstrap, numbered(10*run, 10)...)
		l.at("t", 0, int64(10*run+10))
		for hits := produced.Hits(); ; hits++ {
			if syncs := syncsIfAny(t, pair.Source, ownSyncs); len(syncs) > 0 && syncs[len(syncs)-1].Upstream == int64(10*run+9) {
				break
			}
			if err := produced.Wait(t.Context(), hits+1); err != nil {
				t.Fatal(err)
			}
			<-time.After(20 * time.Millisecond)
		}
		l.end()
	}
	last := int64(-1)
	for _, s := range syncsIn(t, pair.Source.Bootstrap) {
		if s.Upstream <= last || s.Upstream != s.Downstream {
			t.Errorf("%+v behind %d", s, last)
		}
		last = s.Upstream
	}
}

// syncsIfAny is syncsIn of a topic that may not be there yet.
func syncsIfAny(t *testing.T, c *kafkatest.Cluster, topic string) []mm2.OffsetSync {
	t.Helper()
	if c.Fake().TopicInfo(topic) == nil {
		return nil
	}
	return syncsIn(t, c.Bootstrap)
}
