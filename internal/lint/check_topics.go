package lint

import (
	"errors"
	"fmt"
	"strings"

	"apograph/internal/mm2"
)

// topics reports what the flows would copy and should hardly.
func (c *checker) topics() {
	for i, f := range c.running {
		c.policy(f)
		c.otherTools(f)
		c.named(f)
		c.covered(f)
		c.renames(f)
		for _, g := range c.running[:i] {
			c.bothWays(g, f)
		}
	}
}

// policy reports settings that make no policy, beside the separator and the
// class, which have codes of their own.
func (c *checker) policy(f mm2.FlowConfig) {
	_, err := f.Policy()
	var bad *mm2.ValueError
	if !errors.As(err, &bad) {
		return
	}
	if key := takeApart(bad.Key, c.aliases).key; key == mm2.PolicyKey || key == mm2.PolicyMapKey {
		c.single("AP0505", bad.At, bad.Key, bad.Reason, "")
	}
}

// toolTopics are names that tools give to the topics of their own, each with the
// pattern that leaves all of its kind out.
var toolTopics = []struct{ name, kind, exclude string }{
	{"_schemas", "_schemas", "_schemas"},
	{"_confluent-metrics", "_confluent*", "_confluent.*"},
	{"connect-offsets", "connect-*", "connect-.*"},
	{"app-store-changelog", "*-changelog", ".*-changelog"},
	{"app-store-repartition", "*-repartition", ".*-repartition"},
}

// otherTools reports patterns that admit topics in which tools keep their state.
func (c *checker) otherTools(f mm2.FlowConfig) {
	rules := c.rules(f)
	var kinds, excludes []string
	for _, t := range toolTopics {
		if _, ok := rules.Match(t.name); ok {
			kinds, excludes = append(kinds, t.kind), append(excludes, t.exclude)
		}
	}
	if len(kinds) == 0 {
		return
	}
	topics, message := f.Get("topics"), "the patterns admit topics of other tools: "+strings.Join(kinds, ", ")
	if topics.Origin.At.IsZero() { // flows that say nothing of topics have one cause in common, the default
		silent := Finding{Code: "AP0504", Message: message}
		if c.singles[silent] {
			return
		}
		c.singles[silent] = true
	}
	c.once("AP0504", topics, f, message, "add to topics.exclude what is not to be copied: "+strings.Join(excludes, ", "))
}

// named reports topics that are named and get another name than one would think.
func (c *checker) named(f mm2.FlowConfig) {
	topics := f.Get("topics")
	policy, _ := f.Policy()
	for _, text := range topics.List() {
		if name, _ := leading(text); strings.HasSuffix(text, "heartbeats") && name != "heartbeats" && policy.Kind() == mm2.PolicyIdentity {
			c.once("AP0507", topics, f, fmt.Sprintf("what ends with heartbeats gets a prefix, also under IdentityReplicationPolicy: %s", brief(text)), "")
		}
	}
}

// bothWays reports two flows in opposite directions that work against each
// other.
func (c *checker) bothWays(f, g mm2.FlowConfig) {
	if f.Source != g.Target || f.Target != g.Source {
		return
	}
	const key = "sync.group.offsets.enabled"
	if isOn(f, key) && isOn(g, key) {
		c.once("AP0501", g.Get(key), g, fmt.Sprintf("%v and %v both commit offsets of the same groups", f, g), "sync groups in one direction only: from where they run")
	}
}
