package lint

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"apograph/internal/connect"
	"apograph/internal/javaprops"
	"apograph/internal/mm2"
)

// Facts are what was learned of the clusters of a file. Package probe asks for
// them.
type Facts struct {
	Clusters map[string]*ClusterFacts // by alias
	Schemas  map[string]*SchemaFacts  // by flow, as "A->B"; a flow whose records were not read has none
}

// ClusterFacts are what one cluster says of itself.
type ClusterFacts struct {
	Err     error // why nothing is known; the rest is then empty
	ID      string
	Brokers int
	Topics  []TopicFacts // those that its user may see, and those that were asked for by name
	Rights  Rights       // on the cluster

	Unmakable []string // of the topics that would have to be made: those that its user may not make
}

// TopicFacts are what a cluster says of a topic.
type TopicFacts struct {
	Name   string
	Rights Rights
	Hidden bool // it was asked for by name, and the user may not see it
}

// Rights are the operations that a user may do, as bits whose numbers are those
// of Kafka's AclOperation; [RightsUnknown] if the broker does not say.
type Rights int32

// RightsUnknown is what a broker answers that does not tell rights (KIP-430).
const RightsUnknown Rights = -1 << 31

// An operation is one of Kafka's AclOperation.
type operation int

// Operations on topics and on the cluster.
const (
	read            operation = 3
	write           operation = 4
	create          operation = 5
	alter           operation = 7
	describe        operation = 8
	describeConfigs operation = 10
	alterConfigs    operation = 11
)

var operationNames = map[operation]string{
	read: "READ", write: "WRITE", create: "CREATE", alter: "ALTER", describe: "DESCRIBE",
	describeConfigs: "DESCRIBE_CONFIGS", alterConfigs: "ALTER_CONFIGS",
}

// MayMakeAll reports whether the cluster says that its user may make any topic.
func (k *ClusterFacts) MayMakeAll() bool {
	return k.Rights != RightsUnknown && !k.Rights.lack(create)
}

// lack reports whether an operation is not among them.
func (r Rights) lack(o operation) bool { return r != RightsUnknown && r&(1<<o) == 0 }

// SchemaFacts are what records of a flow's topics look like.
type SchemaFacts struct {
	Registry string           // the URL that was asked, without a password; empty if none is named
	Err      error            // why the registry could not be asked
	Topics   map[string][]int // ids that records carry, by topic
	Unknown  map[string][]int // of those, what the registry does not know
}

// CheckClusters adds what the clusters say to the findings.
func (r *Report) CheckClusters(facts Facts) {
	c := r.checker
	if c == nil {
		return
	}
	c.findings = r.Findings
	c.sameClusters(facts)
	for _, alias := range slices.Sorted(maps.Keys(facts.Clusters)) {
		c.cluster(alias, facts.Clusters[alias])
	}
	for _, f := range c.running {
		source, target := facts.Clusters[f.Source], facts.Clusters[f.Target]
		if source == nil || source.Err != nil {
			continue
		}
		c.scope(f, source)
		c.sourceRights(f, source)
		c.internalRights(f, facts.Clusters)
		if target != nil && target.Err == nil {
			c.factor(f, target)
			c.targetRights(f, source, target)
		}
		if schemas := facts.Schemas[f.String()]; schemas != nil {
			c.schemas(f, schemas)
		}
	}
	c.collisions(facts)
	r.Findings = sorted(c.findings)
}

// cluster reports a cluster of which nothing is known.
func (c *checker) cluster(alias string, facts *ClusterFacts) {
	var store *connect.StoreError
	told := errors.As(facts.Err, &store) && slices.ContainsFunc(c.findings, func(f Finding) bool { return f.Code == "AP0601" && strings.HasSuffix(f.Key, store.Key) })
	if facts.Err != nil && !told {
		at, key := c.addresses(alias)
		c.add("AP0701", at, key, facts.Err.Error(), "")
	}
}

// addresses returns where the addresses of a cluster stand.
func (c *checker) addresses(alias string) (javaprops.Position, string) {
	const key = "bootstrap.servers"
	if at := c.place(alias + "." + key); !at.IsZero() {
		return at, alias + "." + key
	}
	return c.place(key), key
}

// scope reports what the patterns of a flow come to among the topics that there
// are.
func (c *checker) scope(f mm2.FlowConfig, source *ClusterFacts) {
	rules, in := c.rules(f), f.Get("topics")
	var copied, dotted, tools []string
	for _, topic := range source.visible() {
		if _, ok := rules.Match(topic); !ok {
			continue
		}
		copied = append(copied, topic)
		if rules.Include.ThroughDot(topic) {
			dotted = append(dotted, topic)
		}
		if toolOf(topic) != "" {
			tools = append(tools, topic)
		}
	}
	c.unmatched(in, f, source)
	if len(copied) == 0 {
		c.once("AP0712", f.Get("enabled"), f, fmt.Sprintf("%v copies none of the topics that the user of %s is allowed to see", f, f.Source), "")
	}
	if len(dotted) > 0 {
		c.once("AP0704", in, f, fmt.Sprintf("copied because a dot means any character: %s", listed(dotted)), `write \\. where a dot is meant`)
	}
	if len(tools) > 0 {
		c.once("AP0705", in, f, fmt.Sprintf("copied, and state of other tools: %s", listed(tools)), "add to topics.exclude what is not to be copied")
	}
}

// unmatched reports elements of a list that match no topic, each at its place. A
// topic that is named and may not be seen is another matter.
func (c *checker) unmatched(in mm2.Setting, f mm2.FlowConfig, source *ClusterFacts) {
	if in.Origin.At.IsZero() {
		return
	}
	var topics []string
	for _, t := range source.Topics {
		topics = append(topics, t.Name)
	}
	for _, el := range in.Elements() {
		if p := parsablePattern(el.Text); len(p.Unmatched(topics)) == 0 || c.comesToNothing(in, el) {
			continue
		}
		suggestion := ""
		if name, whole := leading(el.Text); whole {
			if near := mm2.Nearest(name, topics); near != "" {
				suggestion = near
			}
		}
		c.single("AP0703", el.At, in.Origin.Key, fmt.Sprintf("%s matches none of the topics that the user of %s is allowed to see", brief(el.Text), f.Source), suggestion)
	}
}

// comesToNothing reports whether there is a finding about an element of a list
// already, so that it is not told again that no topic matches it.
func (c *checker) comesToNothing(in mm2.Setting, el mm2.Element) bool {
	end := in.ValueAt(el.Index + len(el.Text))
	return slices.ContainsFunc(c.findings, func(f Finding) bool {
		return f.Line == el.At.Line && f.Column >= el.At.Column && f.Column <= end.Column && slices.Contains([]string{"AP0310", "AP0312", "AP0316", "AP0317", "AP0318", "AP0506", "AP0509"}, f.Code)
	})
}

// toolOf returns the kind of tool topic that a topic is; "" if it is none.
func toolOf(topic string) string {
	switch {
	case topic == "_schemas":
		return "schema registry"
	case strings.HasPrefix(topic, "_confluent"):
		return "Confluent"
	case strings.HasPrefix(topic, "connect-"):
		return "Kafka Connect"
	case strings.HasSuffix(topic, "-changelog"), strings.HasSuffix(topic, "-repartition"):
		return "Kafka Streams"
	}
	return ""
}

// factor reports topics that the target of a flow cannot make.
func (c *checker) factor(f mm2.FlowConfig, target *ClusterFacts) {
	const key = "replication.factor"
	if factor, err := f.Int(key); err == nil && f.IsSet(key) && target.Brokers > 0 && factor > target.Brokers {
		c.once("AP0710", f.Get(key), f, fmt.Sprintf("%s has %s: topics with %d replicas cannot be made", f.Target, counted(target.Brokers, "broker"), factor), fmt.Sprintf("set %d or less, or -1", target.Brokers))
	}
}

// schemas reports what the records of a flow need of a schema registry.
func (c *checker) schemas(f mm2.FlowConfig, facts *SchemaFacts) {
	registry := f.Get(registryKey)
	switch topics := slices.Sorted(maps.Keys(facts.Topics)); {
	case len(topics) == 0:
	case facts.Registry == "":
		c.once("AP0708", registry, f, fmt.Sprintf("records look as if they carried the ids of schemas: %s", listed(topics)), registryKey+" = URL of the target's registry")
	case facts.Err != nil:
		c.once("AP0711", registry, f, fmt.Sprintf("the registry %s cannot be asked: %v", facts.Registry, facts.Err), "")
	}
	at := registry.Origin
	if at.At.IsZero() {
		at = f.Get("enabled").Origin
	}
	for _, topic := range slices.Sorted(maps.Keys(facts.Unknown)) {
		var ids []string
		for _, id := range facts.Unknown[topic] {
			ids = append(ids, fmt.Sprint(id))
		}
		c.single("AP0707", at.At, at.Key, fmt.Sprintf("%s does not know schema %s, which records of %s carry", facts.Registry, listed(ids), topic), "copy the schemas with their ids to the target's registry")
	}
}

// registryKey names the registry that consumers on the target ask.
const registryKey = "apograph.schema.registry.url"
