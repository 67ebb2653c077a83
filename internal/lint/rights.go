package lint

import (
	"fmt"
	"maps"
	"slices"

	"apograph/internal/mm2"
)

// visible returns the names of the topics that may be seen.
func (k *ClusterFacts) visible() []string {
	var names []string
	for _, t := range k.Topics {
		if !t.Hidden {
			names = append(names, t.Name)
		}
	}
	slices.Sort(names)
	return names
}

// Scope returns which of the topics of its source a flow copies.
func (r *Report) Scope(flow Flow, topics []string) []string {
	f, ok := r.checker.config.Flow(flow.Source, flow.Target)
	if !ok {
		return nil
	}
	rules := r.checker.rules(f)
	return slices.DeleteFunc(slices.Clone(topics), func(topic string) bool {
		_, ok := rules.Match(topic)
		return !ok
	})
}

// OfHeartbeats reports whether a topic of a flow's source holds MirrorMaker 2's
// heartbeats: they begin with a byte of 0 and a small number, and are no user's.
func (r *Report) OfHeartbeats(flow Flow, topic string) bool {
	f, ok := r.checker.config.Flow(flow.Source, flow.Target)
	return ok && r.checker.rules(f).Policy.IsHeartbeats(topic)
}

// Named returns the topics that the flows from a cluster name in full.
func (r *Report) Named(alias string) []string {
	var names []string
	for _, f := range r.checker.running {
		if f.Source == alias {
			names = append(names, r.checker.inFull(f)...)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// inFull returns the topics that a flow names in full.
func (c *checker) inFull(f mm2.FlowConfig) []string {
	var names []string
	for _, text := range f.List("topics") {
		if name, whole := leading(text); whole {
			names = append(names, name)
		}
	}
	return names
}

// sourceRights reports what the user of a flow's source may not do there.
func (c *checker) sourceRights(f mm2.FlowConfig, source *ClusterFacts) {
	rules := c.rules(f)
	missing := map[operation][]string{}
	for _, t := range source.Topics {
		if _, ok := rules.Match(t.Name); !ok {
			continue
		}
		switch {
		case t.Hidden && !slices.Contains(c.inFull(f), t.Name): // it was asked for by another flow
			continue
		case t.Hidden:
			missing[describe] = append(missing[describe], t.Name)
			continue
		case t.Rights.lack(read):
			missing[read] = append(missing[read], t.Name)
		}
		if t.Rights.lack(describeConfigs) {
			missing[describeConfigs] = append(missing[describeConfigs], t.Name)
		}
	}
	c.missing(f.Source, missing)
	if isOn(f, "sync.topic.acls.enabled") && source.Rights.lack(describe) {
		c.missingOnCluster("AP0713", f.Source, describe, "to read the ACLs that are synced (sync.topic.acls.enabled)")
	}
}

// targetRights reports what the user of a flow's target may not do there.
func (c *checker) targetRights(f mm2.FlowConfig, source, target *ClusterFacts) {
	there := map[string]TopicFacts{}
	for _, t := range target.Topics {
		there[t.Name] = t
	}
	rules := c.rules(f)
	needed := []operation{write, describeConfigs}
	if isOn(f, "sync.topic.configs.enabled") {
		needed = append(needed, alterConfigs)
	}
	missing, unmakable := map[operation][]string{}, map[string]bool{}
	for _, name := range target.Unmakable {
		unmakable[name] = true
	}
	for _, name := range source.visible() {
		remote, ok := copiedBy(rules, name)
		if !ok {
			continue
		}
		if t := there[remote]; t.Hidden {
			missing[describe] = append(missing[describe], remote)
		} else {
			for _, o := range needed {
				if t.Name != "" && t.Rights.lack(o) {
					missing[o] = append(missing[o], remote)
				}
			}
		}
		if unmakable[remote] {
			missing[create] = append(missing[create], remote)
		}
	}
	c.missing(f.Target, missing)
	if isOn(f, "sync.topic.acls.enabled") && target.Rights.lack(alter) {
		c.missingOnCluster("AP0713", f.Target, alter, "to make the ACLs that are synced (sync.topic.acls.enabled)")
	}
}

const grant = "grant it with kafka-acls, or by what the cluster's provider has for that"

// missing reports rights on topics, those on all topics of one kind in one
// finding.
func (c *checker) missing(alias string, topics map[operation][]string) {
	at, key := c.addresses(alias)
	for _, o := range slices.Sorted(maps.Keys(topics)) {
		message := fmt.Sprintf("the user of %s lacks %s on %s: %s", alias, operationNames[o], counted(len(topics[o]), "topic"), listed(topics[o]))
		switch o {
		case describe:
			message += "; whether they are there cannot be told"
		case create:
			message += "; CREATE on the cluster does as well"
		}
		c.single("AP0702", at, key, message, grant)
	}
}

func (c *checker) missingOnCluster(code, alias string, o operation, why string) {
	at, key := c.addresses(alias)
	c.single(code, at, key, fmt.Sprintf("the user of %s lacks %s on the cluster, %s", alias, operationNames[o], why), grant)
}
