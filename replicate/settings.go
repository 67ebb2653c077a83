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

	"github.com/twmb/franz-go/pkg/kadm"
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

// protective are the settings of a target topic that an exact copy depends on.
// They are set when we make a topic and not touched again, but for
// max.message.bytes, which is raised where it is too small.
var protective = []string{
	"compression.type", "message.timestamp.type", "max.message.bytes",
	"message.timestamp.before.max.ms", "message.timestamp.after.max.ms",
}

const unlimited = "9223372036854775807"

// settings are a topic's, by name. A nil map knows nothing.
type settings map[string]kadm.Config

// get returns a setting's value, or the given default where it is unknown.
func (s settings) get(key, unknown string) string {
	if c, ok := s[key]; ok && c.Value != nil {
		return *c.Value
	}
	return unknown
}

// integer does the same for a number.
func (s settings) integer(key string, unknown int64) int64 {
	n, err := strconv.ParseInt(s.get(key, ""), 10, 64)
	if err != nil {
		return unknown
	}
	return n
}

// lists reports whether a setting that is a list separated by commas has value.
func (s settings) lists(key, unknown, value string) bool {
	for v := range strings.SplitSeq(s.get(key, unknown), ",") {
		if strings.TrimSpace(v) == value {
			return true
		}
	}
	return false
}

func (s settings) compacts() bool { return s.lists("cleanup.policy", "delete", "compact") }

// deletes reports whether records are deleted by time or size.
func (s settings) deletes() bool {
	return s.lists("cleanup.policy", "delete", "delete") &&
		(s.integer("retention.ms", 0) >= 0 || s.integer("retention.bytes", -1) >= 0)
}

// stampsTimes reports whether the broker replaces the times of records.
func (s settings) stampsTimes() bool {
	return s.get("message.timestamp.type", "CreateTime") == "LogAppendTime"
}

// maxBatchBytes is the largest batch that the topic takes.
func (s settings) maxBatchBytes() int {
	return int(min(s.integer("max.message.bytes", math.MaxInt32), math.MaxInt32))
}

// overrides returns the source's own settings of a topic that a copy takes
// over.
func (s settings) overrides() map[string]string {
	out := map[string]string{}
	for key, c := range s {
		if c.Source == kmsg.ConfigSourceDynamicTopicConfig && c.Value != nil && !c.Sensitive && !notCopied.MatchString(key) {
			out[key] = *c.Value
		}
	}
	return out
}

// forTarget returns the settings of a new target topic: the source's
// overrides, less those that stay behind, and what an exact copy needs.
// compression.type=producer keeps batches as they are; CreateTime with open
// limits keeps times; batches grow a little when they are encoded anew.
func (s settings) forTarget() map[string]string {
	out := s.overrides()
	out["compression.type"] = "producer"
	out["message.timestamp.type"] = "CreateTime"
	out["message.timestamp.before.max.ms"] = unlimited
	out["message.timestamp.after.max.ms"] = unlimited
	out["max.message.bytes"] = strconv.FormatInt(s.wantBatchBytes(), 10)
	return out
}

// wantBatchBytes is max.message.bytes and ten percent.
func (s settings) wantBatchBytes() int64 {
	const kafkaDefault = 1<<20 + 12 // LogConfig.DEFAULT_MAX_MESSAGE_BYTES
	n := s.integer("max.message.bytes", kafkaDefault)
	return min(n+(n+9)/10, math.MaxInt32)
}

// describeChunk is how many topics one request asks about.
const describeChunk = 500

// describe reads the settings of topics. Those that it may not read are left
// out, and named once.
func (f *Flow) describe(c *cluster, names []string) map[string]settings {
	found := make(map[string]settings, len(names))
	for chunk := range slices.Chunk(names, describeChunk) {
		resources, err := c.admin.DescribeTopicConfigs(f.ctx, chunk...)
		if err != nil {
			f.warnOnce("settings "+c.alias, "topic settings cannot be read", "cluster", c.alias, "error", err)
		}
		for _, r := range resources {
			if r.Err != nil {
				f.warnOnce("settings "+c.alias+" "+r.Name, "topic settings cannot be read", "cluster", c.alias, "topic", r.Name, "error", r.Err)
				continue
			}
			s := settings{}
			for _, config := range r.Configs {
				s[config.Key] = config
			}
			found[r.Name] = s
		}
	}
	return found
}

// warnOnce logs a warning if that of the same key was another, or none.
func (f *Flow) warnOnce(key, message string, args ...any) {
	text := fmt.Sprint(append([]any{message}, args...)...)
	f.mu.Lock()
	said := f.warned[key] == text
	f.warned[key] = text
	f.mu.Unlock()
	if !said {
		f.config.Logger.Warn(message, args...)
	}
}

// learnSettings reads the settings of the topics on both sides.
func (f *Flow) learnSettings(topics []*topic) {
	var sources, targets []string
	for _, t := range topics {
		sources = append(sources, t.name)
		if t.destination.err == nil && t.destination.leaders != nil {
			targets = append(targets, t.target)
		}
	}
	source, target := f.describe(f.source, sources), f.describe(f.target, targets)
	for _, t := range topics {
		facts := *t.facts.Load()
		if s, ok := source[t.name]; ok {
			facts.source = s
		}
		if s, ok := target[t.target]; ok {
			facts.target = s
		}
		t.facts.Store(&facts)
	}
}

// keepSettings brings the settings of target topics that this flow made in
// step with the source's: what the source sets is set, what it has ceased to
// set goes back to the default. A setting that somebody else made on the target
// and that the source does not make stays, as does what an exact copy depends
// on.
func (f *Flow) keepSettings(topics []*topic) {
	for _, t := range topics {
		before, ok := f.ledger.MadeTopic(t.target, t.destination.id)
		if !ok || t.stop != nil || t.recreated || t.source.err != nil {
			continue
		}
		if now, ok := f.source.topic(t.name); !ok || now.id != t.source.id {
			continue // the settings may be those of another topic of the name
		}
		if changes := settingChanges(before, t.facts.Load()); len(changes) > 0 {
			f.alterSettings(t, before, changes)
		}
	}
}

// settingChanges says what has to be set on the target, and, with a nil value,
// what has to go back to its default. before is what we set last.
func settingChanges(before map[string]string, facts *topicFacts) map[string]*string {
	if facts.source == nil || facts.target == nil {
		return nil
	}
	changes := map[string]*string{}
	wanted := facts.source.overrides()
	for key, value := range wanted {
		if !slices.Contains(protective, key) && facts.target.get(key, "") != value {
			changes[key] = &value
		}
	}
	for key, value := range before {
		if _, ok := wanted[key]; !ok && !slices.Contains(protective, key) && facts.target.get(key, "") == value {
			changes[key] = nil
		}
	}
	if want := facts.source.wantBatchBytes(); int64(facts.target.maxBatchBytes()) < want {
		changes["max.message.bytes"] = kadm.StringPtr(strconv.FormatInt(want, 10))
	}
	return changes
}

// alterSettings makes changes on the target one by one, so that one which the
// target refuses leaves the others alone.
func (f *Flow) alterSettings(t *topic, before map[string]string, changes map[string]*string) {
	after := maps.Clone(before)
	for _, key := range slices.Sorted(maps.Keys(changes)) {
		value := changes[key]
		config := kadm.AlterConfig{Op: kadm.SetConfig, Name: key, Value: value}
		if value == nil {
			config.Op = kadm.DeleteConfig
		}
		if err := f.alter(f.ctx, t.target, config); err != nil {
			f.warnOnce("alter "+t.target+" "+key, "a topic setting cannot be kept in step", "cluster", f.target.alias, "topic", t.target, "setting", key, "error", err)
			continue
		}
		delete(after, key)
		shown := "default"
		if value != nil {
			after[key], shown = *value, *value
		}
		f.config.Logger.Info("topic setting changed as on the source", "cluster", f.target.alias, "topic", t.target, "setting", key, "value", shown)
	}
	if maps.Equal(before, after) {
		return
	}
	if f.setMade(t, after) != nil {
		return
	}
	f.learnSettings([]*topic{t})
}

// setMade remembers which settings of a topic are the flow's. Settings that no
// ledger can hold are not kept in step; that is no reason to end.
func (f *Flow) setMade(t *topic, settings map[string]string) error {
	err := f.ledger.SetMade(t.target, t.destination.id, settings)
	var law *ledger.LawError
	switch {
	case errors.As(err, &law):
		f.warnOnce("made "+t.target, "the settings of a topic will not be kept in step", "topic", t.target, "error", err)
		return nil
	case err != nil:
		return f.fail(fmt.Errorf("remember topic %s: %w", t.target, err))
	}
	return nil
}

func (f *Flow) alter(ctx context.Context, topic string, config kadm.AlterConfig) error {
	responses, err := f.target.admin.AlterTopicConfigs(ctx, []kadm.AlterConfig{config}, topic)
	if err != nil {
		return err
	}
	r, err := responses.On(topic, nil)
	if err != nil {
		return err
	}
	return r.Err
}
