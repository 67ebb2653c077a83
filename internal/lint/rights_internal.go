package lint

import (
	"fmt"
	"slices"
	"strings"

	"apograph/internal/mm2"
)

// An internalTopic is one of MirrorMaker 2's to which a flow writes.
type internalTopic struct {
	alias, name string
	key         string // the switch of the duty that does
	needed      []operation
}

// internalTopics returns those of a flow.
func (c *checker) internalTopics(f mm2.FlowConfig) []internalTopic {
	policy, err := f.Policy()
	if err != nil {
		return nil
	}
	var all []internalTopic
	if key := "emit.offset-syncs.enabled"; isOn(f, key) {
		onTarget := f.Text("offset-syncs.topic.location") == "target"
		alias := map[bool]string{true: f.Target, false: f.Source}[onTarget]
		all = append(all, internalTopic{alias, policy.OffsetSyncsOf(f.Source, f.Target, onTarget), key, []operation{write, read}})
	}
	if every, err := f.Every("emit.checkpoints"); err == nil && every > 0 {
		all = append(all, internalTopic{f.Target, policy.CheckpointsTopic(f.Source), "emit.checkpoints.enabled", []operation{write, read}})
	}
	for _, beat := range c.config.Beats(f) {
		if every, err := beat.Every("emit.heartbeats"); err == nil && every > 0 {
			all = append(all, internalTopic{beat.Target, policy.HeartbeatsTopic(), "emit.heartbeats.enabled", []operation{write}})
		}
	}
	return all
}

// Absent returns the topics, by alias, to which flows write and that their clusters do
// not show: they have to be made, or may not be seen.
func (r *Report) Absent(facts Facts) map[string][]string {
	absent, known := map[string][]string{}, map[string]map[string]bool{}
	for alias, about := range facts.Clusters {
		known[alias] = map[string]bool{}
		for _, t := range about.Topics {
			known[alias][t.Name] = true
		}
	}
	add := func(alias, name string) {
		if about := facts.Clusters[alias]; about != nil && about.Err == nil && !known[alias][name] {
			known[alias][name] = true
			absent[alias] = append(absent[alias], name)
		}
	}
	for _, f := range r.checker.running {
		if source := facts.Clusters[f.Source]; source != nil {
			for _, name := range source.visible() {
				if remote, ok := copiedBy(r.checker.rules(f), name); ok {
					add(f.Target, remote)
				}
			}
		}
		for _, t := range r.checker.internalTopics(f) {
			add(t.alias, t.name)
		}
	}
	return absent
}

// topic returns what the cluster says of a topic, if it says something.
func (k *ClusterFacts) topic(name string) (TopicFacts, bool) {
	for _, t := range k.Topics {
		if t.Name == name {
			return t, true
		}
	}
	return TopicFacts{}, false
}

// internalRights reports what the users of a flow may not do with the internal topics
// that it writes. The copy does without.
func (c *checker) internalRights(f mm2.FlowConfig, clusters map[string]*ClusterFacts) {
	for _, t := range c.internalTopics(f) {
		about := clusters[t.alias]
		if about == nil || about.Err != nil {
			continue
		}
		var lacks []string
		topic, there := about.topic(t.name)
		switch {
		case topic.Hidden:
			lacks = []string{operationNames[describe]}
		case there:
			for _, o := range t.needed {
				if topic.Rights.lack(o) {
					lacks = append(lacks, operationNames[o])
				}
			}
		}
		if slices.Contains(about.Unmakable, t.name) {
			lacks = append(lacks, operationNames[create])
		}
		if len(lacks) > 0 {
			at, key := c.addresses(t.alias)
			c.single("AP0714", at, key, fmt.Sprintf("the user of %s lacks %s on %s, which %s writes", t.alias, strings.Join(lacks, " and "), t.name, t.key), grant)
		}
	}
}
