package replicate

import (
	"maps"
	"slices"
	"strconv"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kmsg"

	"apograph/internal/mm2"
)

// settingRules say which settings of the source a target topic gets.
type settingRules struct {
	mm2.SettingRules
	mode SettingsMode
}

func newSettingRules(c SettingsSync) (settingRules, error) {
	exclude, err := mm2.ParsePatterns(c.Exclude)
	return settingRules{mm2.SettingRules{Exclude: exclude, SourceDefaults: c.FromSource}, c.Mode}, err
}

// origins of settings, as Kafka gives them. An answer does not say that one can
// only be read; of topics' settings none is.
var origins = map[kmsg.ConfigSource]mm2.SettingOrigin{
	kmsg.ConfigSourceDynamicTopicConfig:         mm2.OriginTopic,
	kmsg.ConfigSourceDynamicBrokerConfig:        mm2.OriginBroker,
	kmsg.ConfigSourceDynamicDefaultBrokerConfig: mm2.OriginBroker,
	kmsg.ConfigSourceStaticBrokerConfig:         mm2.OriginStaticBroker,
	kmsg.ConfigSourceDefaultConfig:              mm2.OriginKafkaDefault,
}

// wanted returns the settings of a source topic that a copy takes over.
func (r settingRules) wanted(source settings) map[string]string {
	out := map[string]string{}
	for key, c := range source {
		origin, known := origins[c.Source]
		if !known || c.Value == nil || r.mode == SettingsOfMade && origin != mm2.OriginTopic {
			continue
		}
		if r.AtCreation(mm2.TopicSetting{Name: key, Origin: origin, Sensitive: c.Sensitive}) {
			out[key] = *c.Value
		}
	}
	return out
}

// forTarget returns the settings of a new target topic: those of the source that
// go over, and what an exact copy needs. compression.type=producer keeps batches
// as they are; CreateTime with open limits keeps times; batches grow a little when
// they are encoded anew.
func (r settingRules) forTarget(source settings) map[string]string {
	out := r.wanted(source)
	out["compression.type"] = "producer"
	out["message.timestamp.type"] = "CreateTime"
	out[timestampBefore] = unlimited
	out[timestampAfter] = unlimited
	out["max.message.bytes"] = strconv.FormatInt(source.wantBatchBytes(), 10)
	return out
}

// keptSettings returns what the flow set last of a target topic's settings; ok is
// false if they are not its to keep in step.
func (f *Flow) keptSettings(t *topic) (before map[string]string, ok bool) {
	if f.keeps.mode == SettingsOff || t.destination.err != nil || t.otherTarget {
		return nil, false
	}
	made := false
	if f.ledger != nil {
		before, made = f.ledger.MadeTopic(t.target, t.destination.id)
	}
	return before, made || f.keeps.mode == SettingsOfAll
}

// keepSettings brings the settings of target topics that are the flow's to keep
// in step with the source's: what the source sets is set, what it has ceased to
// set goes back to the default. A setting that somebody else made on the target
// and that the source does not make stays, as does what an exact copy depends
// on. MirrorMaker 2 would take away the former, and with a longer retention.ms the
// records that it keeps; and it writes all settings, changed or not (KAFKA-14082).
func (f *Flow) keepSettings(topics []*topic) {
	for _, t := range topics {
		before, ok := f.keptSettings(t)
		if !ok || t.stop != nil || t.recreated || t.source.err != nil {
			continue
		}
		if changes := f.keeps.changes(before, t.facts.Load()); len(changes) > 0 && f.stands(t) {
			f.alterSettings(t, before, changes)
		}
	}
}

// stands reports whether a topic's copy on the target is still the topic that it was
// when it was looked at. What changes one names it, and would change another that has
// taken its name since; Kafka leaves no way to say which is meant.
func (f *Flow) stands(t *topic) bool {
	now, err := f.target.lookAt(f.ctx, []string{t.target})
	return err == nil && now[t.target].is(t.destination.id)
}

// changes says what has to be set on the target, and, with a nil value,
// what has to go back to its default. before is what we set last.
func (r settingRules) changes(before map[string]string, facts *topicFacts) map[string]*string {
	if facts.source == nil || facts.target == nil {
		return nil
	}
	changes := map[string]*string{}
	wanted := r.wanted(facts.source)
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
	if after == nil {
		after = map[string]string{}
	}
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
		changed := "topic setting changed as on the source"
		if key == "max.message.bytes" { // see forTarget
			changed = "topic setting raised to a tenth above the source's, as batches that are encoded anew may grow"
		}
		f.config.Logger.Info(changed, "cluster", f.target.alias, "topic", t.target, "setting", key, "value", shown)
	}
	if maps.Equal(before, after) {
		return
	}
	if f.setMade(t, after) != nil {
		return
	}
	f.learnSettings([]*topic{t})
}
