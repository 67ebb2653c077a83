package replicate

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"apograph/ledger"
)

// notCopied are the settings of a source topic that stay behind: MirrorMaker
// 2's default config.properties.exclude of 4.3. Its names match as regular
// expressions on the whole name.
var notCopied = regexp.MustCompile("^(?:" + strings.Join([]string{
	"follower.replication.throttled.replicas",
	"leader.replication.throttled.replicas",
	"message.timestamp.difference.max.ms",
	"message.timestamp.type",
	"unclean.leader.election.enable",
	"min.insync.replicas",
	"log.message.timestamp.before.max.ms",
	"log.message.timestamp.after.max.ms",
}, "|") + ")$")

const unlimited = "9223372036854775807"

// createTopics makes the target topics that do not exist, and adds partitions
// where the target has fewer than the source. A topic that the ledger has a
// book about and that is gone is not made again.
func (f *flow) createTopics() error {
	var changed []*topic
	for _, t := range f.sortedTopics() {
		switch {
		case t.stop != nil || t.source.err != nil:
		case t.destination.gone() && !f.hasBook(t.name):
			changed = append(changed, t)
			f.createTopic(t)
		case t.destination.err == nil && len(t.destination.leaders) < len(t.source.leaders):
			changed = append(changed, t)
			f.growTopic(t)
		case t.destination.err != nil && !t.destination.gone():
			t.stop = &stopped{reason: f.reasonOf(t.destination.err), detail: fmt.Sprintf("target topic %s: %v", t.target, t.destination.err)}
		default:
			f.warnSettings(t)
		}
	}
	changed = slices.DeleteFunc(changed, func(t *topic) bool { return t.stop != nil })
	return f.awaitTopics(changed)
}

func (f *flow) hasBook(topic string) bool {
	return slices.ContainsFunc(f.openBooks(), func(p ledger.Pair) bool { return p.SourceTopic == topic })
}

// createTopic makes one target topic. Settings that the target refuses are
// left out and named.
func (f *flow) createTopic(t *topic) {
	partitions := int32(len(t.source.leaders))
	replicas := int16(max(min(t.source.replicas, f.target.brokers), 1))
	settings := targetSettings(t.sourceSettings)
	create := func(validate bool, settings map[string]*string) error {
		call := f.target.admin.CreateTopics
		if validate {
			call = f.target.admin.ValidateCreateTopics
		}
		responses, err := call(f.ctx, partitions, replicas, settings, t.target)
		if err != nil {
			return err
		}
		r, err := responses.On(t.target, nil)
		if err == nil && r.Err != nil {
			err = fmt.Errorf("%w: %s", r.Err, r.ErrMessage)
		}
		return err
	}
	err := create(false, settings)
	if code := codeOf(err); code == kerr.InvalidConfig || code == kerr.PolicyViolation || code == kerr.InvalidRequest {
		for key, value := range maps.Clone(settings) {
			if refusal := create(true, map[string]*string{key: value}); refusal != nil {
				delete(settings, key)
				f.config.Logger.Warn("the target refuses a topic setting; it is left out", "topic", t.target, "setting", key, "value", *value, "error", refusal)
			}
		}
		if settings["message.timestamp.before.max.ms"] == nil { // brokers before 3.6
			settings["message.timestamp.difference.max.ms"] = kadm.StringPtr(unlimited)
		}
		err = create(false, settings)
	}
	if err != nil {
		t.stop = &stopped{reason: f.reasonOf(err), detail: fmt.Sprintf("create target topic %s: %v", t.target, err)}
		return
	}
	f.config.Logger.Info("topic created", "cluster", f.target.alias, "topic", t.target, "partitions", partitions, "replication_factor", replicas)
}

// targetSettings returns the settings of a new target topic: the source's
// overrides, less those that stay behind, and what an exact copy needs.
// compression.type=producer keeps batches as they are; CreateTime with open
// limits keeps times; batches grow a little when they are encoded anew.
func targetSettings(source map[string]kadm.Config) map[string]*string {
	settings := map[string]*string{}
	for key, s := range source {
		if s.Source == kmsg.ConfigSourceDynamicTopicConfig && s.Value != nil && !s.Sensitive && !notCopied.MatchString(key) {
			settings[key] = s.Value
		}
	}
	settings["compression.type"] = kadm.StringPtr("producer")
	settings["message.timestamp.type"] = kadm.StringPtr("CreateTime")
	settings["message.timestamp.before.max.ms"] = kadm.StringPtr(unlimited)
	settings["message.timestamp.after.max.ms"] = kadm.StringPtr(unlimited)
	settings["max.message.bytes"] = kadm.StringPtr(strconv.FormatInt(wantBatchBytes(source), 10))
	return settings
}

// wantBatchBytes is the source's max.message.bytes and ten percent.
func wantBatchBytes(source map[string]kadm.Config) int64 {
	const kafkaDefault = 1<<20 + 12 // LogConfig.DEFAULT_MAX_MESSAGE_BYTES
	n := integerSetting(source, "max.message.bytes", kafkaDefault)
	return min(n+(n+9)/10, math.MaxInt32)
}

// warnSettings says what in an existing topic's settings can keep records out
// or change them.
func (f *flow) warnSettings(t *topic) {
	for _, key := range []string{"message.timestamp.before.max.ms", "message.timestamp.after.max.ms"} {
		if v := setting(t.targetSettings, key, unlimited); v != unlimited {
			f.config.Logger.Warn("the target topic refuses some record times", "topic", t.target, "setting", key, "value", v)
		}
	}
	if v := setting(t.targetSettings, "compression.type", "producer"); v != "producer" {
		f.config.Logger.Warn("the target topic compresses anew", "topic", t.target, "compression.type", v)
	}
	if v := setting(t.targetSettings, "message.timestamp.type", "CreateTime"); v != "CreateTime" {
		f.config.Logger.Warn("the target topic stamps its own times; records are compared without theirs", "topic", t.target)
	}
	if have, want := int64(maxBytesOf(t)), integerSetting(t.sourceSettings, "max.message.bytes", 0); have < want {
		f.config.Logger.Warn("the target topic takes smaller batches than the source", "topic", t.target, "max.message.bytes", have, "source", want)
	}
	if have, want := len(t.destination.leaders), len(t.source.leaders); have > want {
		f.config.Logger.Warn("the target topic has more partitions than the source; the others stay as they are", "topic", t.target, "target", have, "source", want)
	}
}

func (f *flow) growTopic(t *topic) {
	want := len(t.source.leaders)
	responses, err := f.target.admin.UpdatePartitions(f.ctx, want, t.target)
	if err == nil {
		r, ok := responses[t.target]
		if !ok {
			err = errors.New("the answer leaves the topic out")
		} else if r.Err != nil {
			err = fmt.Errorf("%w: %s", r.Err, r.ErrMessage)
		}
	}
	if err != nil {
		t.stop = &stopped{reason: f.reasonOf(err), detail: fmt.Sprintf("grow target topic %s to %d partitions: %v", t.target, want, err)}
		return
	}
	f.config.Logger.Info("partitions added", "cluster", f.target.alias, "topic", t.target, "partitions", want)
}

// awaitTopics waits until every partition of the topics has a leader, and
// learns ids and settings as they came to be.
func (f *flow) awaitTopics(topics []*topic) error {
	if len(topics) == 0 {
		return nil
	}
	var names []string
	for _, t := range topics {
		names = append(names, t.target)
	}
	_, generation := f.target.leader(topicPartition{})
	err := f.target.retry(f.ctx, 60*time.Second, func(ctx context.Context) (err error) {
		if generation, err = f.target.refresh(ctx, generation); err != nil {
			return err
		}
		for _, t := range topics {
			t.destination, _ = f.target.topic(t.target)
			if !t.destination.led(len(t.source.leaders)) {
				return fmt.Errorf("topic %s: %w", t.target, kerr.LeaderNotAvailable)
			}
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("cluster %s: wait for new topics: %w", f.target.alias, err)
	}
	f.describeSettings(f.target, names, func(t *topic, s map[string]kadm.Config) {
		if s != nil {
			t.targetSettings = s
		}
	})
	return nil
}

// led reports whether the first n partitions all have a leader.
func (t topicState) led(n int) bool {
	if t.err != nil || len(t.leaders) < n {
		return false
	}
	return !slices.ContainsFunc(t.leaders[:n], func(l leader) bool { return l.node < 0 })
}

// contains reports whether a comma-separated setting has a value.
func contains(list, value string) bool {
	return slices.ContainsFunc(strings.Split(list, ","), func(s string) bool { return strings.TrimSpace(s) == value })
}

// deletes reports whether a topic's settings let it delete records by time or
// size.
func deletes(settings map[string]kadm.Config) bool {
	return contains(setting(settings, "cleanup.policy", "delete"), "delete") &&
		(integerSetting(settings, "retention.ms", 0) >= 0 || integerSetting(settings, "retention.bytes", -1) >= 0)
}
