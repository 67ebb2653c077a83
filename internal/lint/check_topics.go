package lint

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"apograph/internal/mm2"
)

// topics reports what the flows would copy and should hardly.
func (c *checker) topics() {
	for i, f := range c.running {
		c.policy(f)
		c.otherTools(f)
		c.named(f)
		c.ring(f)
		for _, g := range c.running[:i] {
			c.bothWays(g, f)
			c.fanIn(g, f)
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
	rules := rules(f)
	var kinds, excludes []string
	for _, t := range toolTopics {
		if _, ok := rules.Match(t.name); ok {
			kinds, excludes = append(kinds, t.kind), append(excludes, t.exclude)
		}
	}
	if len(kinds) > 0 {
		c.once("AP0504", f.Get("topics"), f, "the patterns admit topics of other tools: "+strings.Join(kinds, ", "),
			"add to topics.exclude what is not to be copied: "+strings.Join(excludes, ", "))
	}
}

// named reports topics that are named and cannot be copied as such.
func (c *checker) named(f mm2.FlowConfig) {
	topics := f.Get("topics")
	policy, _ := f.Policy()
	for _, text := range topics.List() {
		name, whole := leading(text)
		switch {
		case whole && name == "__consumer_offsets":
			c.once("AP0506", topics, f, "__consumer_offsets is never copied: offsets are numbers of the source", "sync.group.offsets.enabled = true")
		case strings.HasSuffix(text, "heartbeats") && name != "heartbeats" && policy.Kind() == mm2.PolicyIdentity:
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

// ring reports flows that keep names and lead back to where they began.
func (c *checker) ring(f mm2.FlowConfig) {
	if !keepsNames(f) {
		return
	}
	back := c.wayBack(f)
	if back == nil {
		return
	}
	var names []string
	for _, g := range back {
		names = append(names, g.String())
	}
	c.once("AP0502", policyOf(f), f, strings.Join(names, " and ")+" keep names: each would copy what the one before it wrote", "use DefaultReplicationPolicy, or give each flow topics of its own")
}

// wayBack returns flows, f first, that lead back to the source of f by the
// shortest way, each of which keeps names and may copy what f and the one before
// it do; nil if there are none.
func (c *checker) wayBack(f mm2.FlowConfig) []mm2.FlowConfig {
	ways := [][]mm2.FlowConfig{{f}}
	been := map[string]bool{f.String(): true}
	for len(ways) > 0 {
		way := ways[0]
		last := way[len(way)-1]
		if last.Target == f.Source {
			return way
		}
		ways = ways[1:]
		for _, g := range c.running {
			if g.Source == last.Target && !been[g.String()] && keepsNames(g) && !apart(f, g) && !apart(last, g) {
				been[g.String()] = true
				ways = append(ways, append(slices.Clone(way), g))
			}
		}
	}
	return nil
}

// policyOf returns the setting that decides about the names of a flow's topics.
func policyOf(f mm2.FlowConfig) mm2.Setting {
	if f.IsSet(mm2.PolicyKey) {
		return f.Get(mm2.PolicyKey)
	}
	return f.Get(mm2.PolicyClassKey)
}

// fanIn reports two flows onto one cluster that do not tell their topics apart.
func (c *checker) fanIn(f, g mm2.FlowConfig) {
	if f.Target != g.Target || !keepsNames(f) || !keepsNames(g) || apart(f, g) {
		return
	}
	c.once("AP0503", policyOf(g), g, fmt.Sprintf("%v and %v both keep names: topics of the same name become one on %s", f, g, f.Target), "use DefaultReplicationPolicy, or give each flow topics of its own")
}
