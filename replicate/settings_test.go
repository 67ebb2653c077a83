package replicate_test

import (
	"bytes"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kadm"

	"apograph/internal/kafkatest"
	"apograph/ledger"
	"apograph/replicate"
)

func setTopic(t *testing.T, c *kafkatest.Cluster, topic, key, value string) {
	t.Helper()
	config := kadm.AlterConfig{Op: kadm.SetConfig, Name: key, Value: &value}
	if value == "" {
		config = kadm.AlterConfig{Op: kadm.DeleteConfig, Name: key}
	}
	responses, err := admin(t, c.Bootstrap).AlterTopicConfigs(t.Context(), []kadm.AlterConfig{config}, topic)
	if err != nil || responses[0].Err != nil {
		t.Fatalf("%s: %s=%s: %v %+v", topic, key, value, err, responses)
	}
}

// wantSettings compares settings given as key, value, key, value.
func wantSettings(t *testing.T, c *kafkatest.Cluster, topic string, want ...string) {
	t.Helper()
	client := admin(t, c.Bootstrap)
	for pair := range slices.Chunk(want, 2) {
		if got := settingOf(t, client, topic, pair[0]); got != pair[1] {
			t.Errorf("topic %s: %s is %s, want %s", topic, pair[0], got, pair[1])
		}
	}
}

// driftOf returns what differs for a topic, as "setting source target state".
func driftOf(f *replicate.Flow, topic string) (all []string) {
	for _, d := range f.Drift() {
		if d.Topic == topic {
			all = append(all, fmt.Sprintf("%s %s %s %s", d.Setting, d.SourceValue, d.TargetValue, d.State))
		}
	}
	return all
}

// TestSettingsOfAllTopics: those that somebody else made follow the source as
// well. What an exact copy depends on stays, and what is set on the target alone,
// and the flow says so.
func TestSettingsOfAllTopics(t *testing.T) {
	t.Parallel()
	pair := stored(t)
	mustTopic(t, pair.Source, "t", map[string]string{
		"retention.ms": "1000000", "min.insync.replicas": "2", "compression.type": "gzip", "max.message.bytes": "900000",
		"unclean.leader.election.enable": "false",
	})
	mustTopic(t, pair.Target, "t", map[string]string{"segment.ms": "900000", "unclean.leader.election.enable": "true", "message.timestamp.after.max.ms": "9223372036854775807", "max.message.bytes": "2000000"})
	config := configFor(t, pair, "t")
	config.Settings.Mode = replicate.SettingsOfAll
	plan, err := replicate.MakePlan(t.Context(), config, nil)
	if err != nil {
		t.Fatal(err)
	}
	if got := fmt.Sprint(planTopic(t, plan, "t").Settings); got != "map[retention.ms:1000000]" {
		t.Errorf("a dry run would set %s", got)
	}
	mustComplete(t, pair, config)
	wantSettings(t, pair.Target, "t", "retention.ms", "1000000", "segment.ms", "900000", "min.insync.replicas", "1", "compression.type", "producer", "max.message.bytes", "2000000")

	setTopic(t, pair.Source, "t", "max.message.bytes", "2000000")
	var log bytes.Buffer
	logged := config
	logged.Logger = slog.New(slog.NewTextHandler(&log, nil))
	mustComplete(t, pair, logged)
	if !strings.Contains(log.String(), "raised to a tenth above the source's, as batches that are encoded anew may grow\" cluster=target topic=t setting=max.message.bytes value=2200000") {
		t.Errorf("log %q", log.String())
	}
	setTopic(t, pair.Target, "t", "max.message.bytes", "2000000")
	setTopic(t, pair.Source, "t", "max.message.bytes", "900000")

	setTopic(t, pair.Source, "t", "retention.ms", "") // set by the flow: it takes it back
	mustComplete(t, pair, config)
	wantSettings(t, pair.Target, "t", "retention.ms", "604800000", "segment.ms", "900000")

	config.Once = false
	l := live(t, pair, config)
	l.at("t", 0, 0)
	wantSame(t, "drift", driftOf(l.Flow, "t"), []string{
		"compression.type gzip producer protective",
		"max.message.bytes 900000 2000000 protective",
		"message.timestamp.after.max.ms  9223372036854775807 protective", // the fake source does not say what it has
		"min.insync.replicas 2 1 excluded",
		"segment.ms 604800000 900000 target_only",
		"unclean.leader.election.enable false true excluded",
	})
	l.end()
	prove(t, pair.Source.Bootstrap, pair.Target.Bootstrap, config.LedgerPath, "t")
}

// TestSettingsThatAreNotKept: those of a topic that somebody else made, unless
// asked for; none at all while the sync is off, but at the making of a topic.
func TestSettingsThatAreNotKept(t *testing.T) {
	t.Parallel()
	for _, mode := range []replicate.SettingsMode{replicate.SettingsOfMade, replicate.SettingsOff} {
		pair := stored(t)
		for _, topic := range []string{"t", "u"} {
			mustTopic(t, pair.Source, topic, map[string]string{"retention.ms": "1000000"})
		}
		mustTopic(t, pair.Target, "u", nil)
		config := configFor(t, pair, ".*")
		config.Settings.Mode = mode
		mustComplete(t, pair, config)
		setTopic(t, pair.Source, "t", "retention.ms", "2000000")
		mustComplete(t, pair, config)
		followed := map[replicate.SettingsMode]string{replicate.SettingsOfMade: "2000000", replicate.SettingsOff: "1000000"}[mode]
		wantSettings(t, pair.Target, "t", "retention.ms", followed)
		wantSettings(t, pair.Target, "u", "retention.ms", "604800000")
	}
}

// TestSettingsByDefaultAndByPattern: what is left out is what the configuration
// says, and defaults of the source go over if it says so.
func TestSettingsByDefaultAndByPattern(t *testing.T) {
	t.Parallel()
	pair := stored(t)
	mustTopic(t, pair.Source, "t", map[string]string{"retention.ms": "1000000", "min.insync.replicas": "2"})
	config := configFor(t, pair, "t")
	config.Settings = replicate.SettingsSync{Mode: replicate.SettingsOfAll, Exclude: []string{`retention\..*`}, FromSource: true}
	mustComplete(t, pair, config)
	wantSettings(t, pair.Target, "t", "retention.ms", "604800000", "min.insync.replicas", "2", "message.timestamp.type", "CreateTime")
	l := kafkatest.OpenLedger(t, config.LedgerPath, ledger.Options{ReadOnly: true})
	topics, err := admin(t, pair.Target.Bootstrap).ListTopics(t.Context(), "t")
	if err != nil {
		t.Fatal(err)
	}
	made, ok := l.MadeTopic("t", ledger.TopicID(topics["t"].ID))
	if !ok || made["cleanup.policy"] != "delete" || made["segment.ms"] != "604800000" || made["retention.bytes"] != "" {
		t.Errorf("the topic was made with %v", made)
	}
}

// TestLimitsOfTimes: what brokers have by themselves is told once, and is no
// warning; of another limit it is said what to do.
func TestLimitsOfTimes(t *testing.T) {
	t.Parallel()
	pair := stored(t)
	for topic, settings := range map[string]map[string]string{
		"t": {"message.timestamp.after.max.ms": "3600000"}, "u": {"message.timestamp.after.max.ms": "3600000"}, "v": {"message.timestamp.after.max.ms": "60000"},
	} {
		mustTopic(t, pair.Source, topic, nil)
		mustTopic(t, pair.Target, topic, settings)
	}
	var log bytes.Buffer
	config := configFor(t, pair, ".*")
	config.Logger = slog.New(slog.NewTextHandler(&log, nil))
	mustComplete(t, pair, config)
	for _, want := range []string{"level=INFO msg=\"target topics refuse records that are dated more than an hour ahead", "level=WARN msg=\"the target topic refuses some record times: message.timestamp.after.max.ms=60000; "} {
		if n := strings.Count(log.String(), want); n != 1 {
			t.Errorf("%q is logged %d times:\n%s", want, n, log.String())
		}
	}
	if n := strings.Count(log.String(), "(record_refused)"); n != 2 {
		t.Errorf("of limits it says\n%s", log.String())
	}
}
