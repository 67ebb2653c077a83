package replicate_test

import (
	"testing"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kmsg"

	"apograph/internal/kafkatest"
	"apograph/ledger"
	"apograph/replicate"
)

// Kafka asks for settings, and changes topics, by name. What is done on the strength
// of a look must not reach another topic that has taken the name since.

// setRetention sets retention.ms of a topic.
func setRetention(t *testing.T, c *kafkatest.Cluster, topic, value string) {
	t.Helper()
	change := []kadm.AlterConfig{{Op: kadm.SetConfig, Name: "retention.ms", Value: &value}}
	if _, err := admin(t, c.Bootstrap).AlterTopicConfigs(t.Context(), change, topic); err != nil {
		t.Fatal(err)
	}
}

// describes accepts requests for the settings of a topic.
func describes(topic string) func(kmsg.Request) bool {
	return func(r kmsg.Request) bool {
		for _, resource := range r.(*kmsg.DescribeConfigsRequest).Resources {
			if resource.ResourceName == topic {
				return true
			}
		}
		return false
	}
}

// TestTopicRecreatedWhileSettingsAreRead has a topic created again, on either side,
// when metadata has been looked at and settings are being asked for.
func TestTopicRecreatedWhileSettingsAreRead(t *testing.T) {
	for _, side := range []string{"source", "target"} {
		t.Run(side, func(t *testing.T) {
			t.Parallel()
			recreatedWhileRead(t, side == "source")
		})
	}
}

func recreatedWhileRead(t *testing.T, onSource bool) {
	pair := stored(t)
	for _, topic := range []string{"t", "u"} {
		mustTopic(t, pair.Source, topic, map[string]string{"retention.ms": "1000000"})
	}
	mustAppend(t, pair.Source.Bootstrap, numbered(0, 5)...)
	l := live(t, pair, livingConfig(t, pair, "t", "u"))
	l.at("t", 0, 5)
	c, reason := pair.Target, replicate.StopTargetRecreated
	if onSource {
		c, reason = pair.Source, replicate.StopTopicRecreated
	}
	gate := make(chan struct{})
	asked := c.MustFault(t, kafkatest.Fault{Kind: kafkatest.DelayBefore, Key: kmsg.DescribeConfigs, Gate: gate, When: describes("t")})
	if err := asked.Wait(t.Context(), 1); err != nil {
		t.Fatal(err)
	}
	mustDeleteTopic(t, c, "t")
	mustTopic(t, c, "t", map[string]string{"retention.ms": "5"})
	close(gate)
	l.stopped("t", 0, reason)
	target := admin(t, pair.Target.Bootstrap)
	for _, value := range []string{"2000000", "3000000"} { // a look at all settings lies between
		setRetention(t, pair.Source, "u", value)
		l.untilSetting(target, "u", "retention.ms", value)
	}
	want := "5" // of a target topic that is not ours
	if onSource {
		want = "1000000"
	}
	if got := settingOf(t, target, "t", "retention.ms"); got != want {
		t.Errorf("retention.ms on the target is %s, want %s", got, want)
	}
	l.end()
}

// TestTargetRecreatedBeforeASettingIsMade: the topic that took the name of the copy
// after its settings had been read keeps its own.
func TestTargetRecreatedBeforeASettingIsMade(t *testing.T) {
	t.Parallel()
	pair := stored(t)
	for _, topic := range []string{"t", "u"} {
		mustTopic(t, pair.Source, topic, map[string]string{"retention.ms": "1000000"})
	}
	mustAppend(t, pair.Source.Bootstrap, numbered(0, 5)...)
	l := live(t, pair, livingConfig(t, pair, "t", "u"))
	l.at("t", 0, 5)
	first, gate := make(chan struct{}), make(chan struct{})
	for i, f := range []kafkatest.Fault{{Kind: kafkatest.DelayBefore, Gate: first}, {Kind: kafkatest.DelayAfter, Gate: gate}} {
		f.Key, f.When = kmsg.DescribeConfigs, describes("t")
		asked := pair.Target.MustFault(t, f)
		if err := asked.Wait(t.Context(), 1); err != nil {
			t.Fatal(err)
		}
		if i == 0 { // the source is asked again before the target is
			setRetention(t, pair.Source, "t", "2000000")
			close(first)
		}
	}
	mustDeleteTopic(t, pair.Target, "t")
	mustTopic(t, pair.Target, "t", map[string]string{"retention.ms": "5"})
	close(gate)
	l.stopped("t", 0, replicate.StopTargetRecreated)
	setRetention(t, pair.Source, "u", "3000000")
	l.untilSetting(admin(t, pair.Target.Bootstrap), "u", "retention.ms", "3000000")
	if got := settingOf(t, admin(t, pair.Target.Bootstrap), "t", "retention.ms"); got != "5" {
		t.Errorf("retention.ms of a topic that is not ours is %s, want 5", got)
	}
	l.end()
}

// TestAnotherTargetTopicDoesNotGrow: partitions that the source has got are not added
// to a topic that took the name of the copy, nor is a setting made there, before a
// person has accepted it.
func TestAnotherTargetTopicDoesNotGrow(t *testing.T) {
	t.Parallel()
	pair := stored(t)
	mustTopic(t, pair.Source, "t", nil)
	mustAppend(t, pair.Source.Bootstrap, numbered(0, 5)...)
	config := livingConfig(t, pair, "t")
	config.Settings.Mode = replicate.SettingsOfAll
	l := live(t, pair, config)
	l.at("t", 0, 5)
	mustDeleteTopic(t, pair.Target, "t")
	mustTopic(t, pair.Target, "t", map[string]string{"retention.ms": "5"})
	l.stopped("t", 0, replicate.StopTargetRecreated)
	if _, err := admin(t, pair.Source.Bootstrap).CreatePartitions(t.Context(), 1, "t"); err != nil {
		t.Fatal(err)
	}
	l.stopped("t", 1, replicate.StopTargetRecreated)
	target := admin(t, pair.Target.Bootstrap)
	topics, err := target.ListTopics(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if n := len(topics["t"].Partitions); n != 1 {
		t.Errorf("the other topic has %d partitions, want 1", n)
	}
	if got := settingOf(t, target, "t", "retention.ms"); got != "5" {
		t.Errorf("retention.ms of the other topic is %s, want 5", got)
	}
	l.end()
}

// TestCutOfAStoppedPartitionIsNoticed: the log of a paused partition is cut below the
// books, and its start then moves beyond the cut, so that the source forgets it.
func TestCutOfAStoppedPartitionIsNoticed(t *testing.T) {
	t.Parallel()
	pair := stored(t)
	mustTopic(t, pair.Source, "t", nil)
	tens(t, pair, 0, 30)
	l := live(t, pair, livingConfig(t, pair, "t"))
	l.at("t", 0, 30)
	mustOrder(t, l.Order, ledger.Order{SourceTopic: "t", Partition: -1, Paused: true})
	l.stopped("t", 0, replicate.StopPaused)
	mustLoseTail(t, pair.Source, 20)
	tens(t, pair, 100, 140)
	l.until("t", 0, "known to be cut", func(s replicate.PartitionStatus) bool {
		stops := l.Ledger().Stops()
		return s.Reason == replicate.StopPaused && len(stops) == 1 && stops[0].Reason == string(replicate.StopPaused) && stops[0].Holds(ledger.SourceTruncated)
	})
	mustDelete(t, pair.Source, "t", 0, 50)
	l.end()
	offline(t, l.config, func(book *ledger.Ledger) {
		mustOrder(t, func(o ledger.Order) error { return replicate.OrderOffline(book, o) }, ledger.Order{SourceTopic: "t", Partition: -1})
	})
	l = live(t, pair, l.config)
	l.until("t", 0, "stopped where the logs part", func(s replicate.PartitionStatus) bool {
		return s.Reason == replicate.StopSourceTruncated && s.Position == 30
	})
	if s := l.Ledger().Stops()[0]; s.Offset != 20 {
		t.Errorf("stopped at %d, want 20", s.Offset)
	}
	l.end()
}
