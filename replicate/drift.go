package replicate

import (
	"maps"
	"slices"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// A SettingDrift is one setting in which a target topic is not as its source.
type SettingDrift struct {
	Topic, Target string // names of the topic
	Setting       string
	SourceValue   string // "" where it is not known
	TargetValue   string
	State         DriftState
}

// A DriftState says why a setting differs.
type DriftState string

const (
	// DriftProtective: an exact copy depends on it (compression.type,
	// message.timestamp.type and its limits, max.message.bytes). It is set when
	// the flow makes the topic, and not overwritten.
	DriftProtective DriftState = "protective"
	DriftExcluded   DriftState = "excluded"    // it is left out by a pattern
	DriftTargetOnly DriftState = "target_only" // somebody set it on the target, and the source does not
	DriftBehind     DriftState = "behind"      // it is not in step: not yet, or not to be, or the target refused it
)

// Drift returns in which settings the target's topics are not as the source's,
// as the flow last saw them, by topic and setting. Safe for concurrent use.
func (f *Flow) Drift() []SettingDrift {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.drift)
}

// lookForDrift notes in which settings topics differ.
func (f *Flow) lookForDrift(topics []*topic) {
	var all []SettingDrift
	for _, t := range topics {
		facts := t.facts.Load()
		if t.source.err != nil || t.destination.err != nil || facts.source == nil || facts.target == nil {
			continue
		}
		for _, d := range f.keeps.drift(facts) {
			d.Topic, d.Target = t.name, t.target
			all = append(all, d)
		}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.drift = all
}

// drift returns what differs between the settings of two topics, by name. What
// both clusters leave to their defaults is no drift.
func (r settingRules) drift(facts *topicFacts) []SettingDrift {
	var found []SettingDrift
	wanted := r.wanted(facts.source)
	for _, key := range slices.Sorted(maps.Keys(facts.target)) {
		source, target := facts.source.get(key, ""), facts.target.get(key, "")
		if source == target {
			continue
		}
		_, copied := wanted[key]
		own := facts.source[key].Source == kmsg.ConfigSourceDynamicTopicConfig
		state := DriftState("")
		switch {
		case slices.Contains(protective, key):
			state = DriftProtective
		case copied:
			state = DriftBehind
		case facts.target[key].Source == kmsg.ConfigSourceDynamicTopicConfig && !own:
			state = DriftTargetOnly
		case own:
			state = DriftExcluded
		}
		if state != "" {
			found = append(found, SettingDrift{Setting: key, SourceValue: source, TargetValue: target, State: state})
		}
	}
	return found
}
