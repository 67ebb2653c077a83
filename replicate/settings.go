package replicate

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/twmb/franz-go/pkg/kadm"

	"apograph/ledger"
)

// protective are the settings of a target topic that an exact copy depends on.
// They are set when we make a topic and not touched again, but for
// max.message.bytes, which is raised where it is too small.
var protective = []string{
	"compression.type", "message.timestamp.type", "max.message.bytes",
	timestampBefore, timestampAfter,
}

const (
	timestampBefore = "message.timestamp.before.max.ms"
	timestampAfter  = "message.timestamp.after.max.ms"
)

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

// equal reports whether two know the same.
func (s settings) equal(other settings) bool {
	return (s == nil) == (other == nil) && maps.EqualFunc(s, other, func(a, b kadm.Config) bool {
		return a.Source == b.Source && a.Sensitive == b.Sensitive && (a.Value == nil) == (b.Value == nil) && a.MaybeValue() == b.MaybeValue()
	})
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

// wantBatchBytes is max.message.bytes and ten percent.
func (s settings) wantBatchBytes() int64 {
	const kafkaDefault = 1<<20 + 12 // LogConfig.DEFAULT_MAX_MESSAGE_BYTES
	n := s.integer("max.message.bytes", kafkaDefault)
	return min(n+(n+9)/10, math.MaxInt32)
}

// describeChunk is how many topics one request asks about.
const describeChunk = 500

// describe reads the settings of topics of the given ids. As they are asked for by
// name, they are another topic's where that has taken the name meanwhile: what is
// not as it was known is taken only if the name is the topic's still. What may not be
// read is left out, and named once.
func (f *Flow) describe(c *cluster, ids map[string]ledger.TopicID, known map[string]settings) map[string]settings {
	found := f.describeNames(c, slices.Sorted(maps.Keys(ids)))
	news := slices.Sorted(maps.Keys(found))
	news = slices.DeleteFunc(news, func(name string) bool { return found[name].equal(known[name]) })
	if len(news) == 0 {
		return found
	}
	now, err := c.lookAt(f.ctx, news)
	if err != nil {
		f.warnOnce("settings "+c.alias, "topic settings cannot be read", "cluster", c.alias, "error", err)
	}
	for _, name := range news {
		if !now[name].is(ids[name]) {
			delete(found, name)
		}
	}
	return found
}

// describeNames does so for whatever topics bear the names.
func (f *Flow) describeNames(c *cluster, names []string) map[string]settings {
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
	f.sayOnce(slog.LevelWarn, key, message, args...)
}

func (f *Flow) sayOnce(level slog.Level, key, message string, args ...any) {
	text := fmt.Sprint(append([]any{message}, args...)...)
	f.mu.Lock()
	said := f.warned[key] == text
	f.warned[key] = text
	f.mu.Unlock()
	if !said {
		f.config.Logger.Log(f.ctx, level, message, args...)
	}
}

// learnSettings reads the settings of the topics on both sides.
func (f *Flow) learnSettings(topics []*topic) {
	sources, targets := map[string]ledger.TopicID{}, map[string]ledger.TopicID{}
	knownSource, knownTarget := map[string]settings{}, map[string]settings{}
	for _, t := range topics {
		facts := t.facts.Load()
		sources[t.name], knownSource[t.name] = t.source.id, facts.source
		if t.destination.err == nil && t.destination.leaders != nil {
			targets[t.target], knownTarget[t.target] = t.destination.id, facts.target
		}
	}
	source, target := f.describe(f.source, sources, knownSource), f.describe(f.target, targets, knownTarget)
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
