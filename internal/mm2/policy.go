package mm2

import (
	"errors"
	"fmt"
	"strings"
)

// A PolicyKind says how a policy names the topics that it copies.
type PolicyKind string

const (
	PolicyKeep     PolicyKind = ""         // every topic keeps its name, whatever it is
	PolicyDefault  PolicyKind = "default"  // DefaultReplicationPolicy: the source's alias and a separator in front
	PolicyIdentity PolicyKind = "identity" // IdentityReplicationPolicy: all keep their names but heartbeats topics
	PolicyMap      PolicyKind = "map"      // names are changed by rules, see [PolicyMapKey]
)

// Keys of the settings that make a policy.
const (
	PolicyClassKey             = "replication.policy.class"
	PolicySeparatorKey         = "replication.policy.separator"
	PolicyInternalSeparatorKey = "replication.policy.internal.topic.separator.enabled"
	PolicySourceAliasKey       = "source.cluster.alias"
	PolicyKey                  = "apograph.policy"     // a PolicyKind; wins over the class
	PolicyMapKey               = "apograph.policy.map" // rules separated by commas: old=new, or expression=replacement
)

const (
	policyPackage    = "org.apache.kafka.connect.mirror."
	defaultSeparator = "."
	heartbeats       = "heartbeats" // never follows a separator (ReplicationPolicy.heartbeatsTopic)
)

// A Policy names topics on the target, and tells from a topic's name where it
// came from, as the classes of Kafka 4.3.1 do (ReplicationPolicy,
// DefaultReplicationPolicy, IdentityReplicationPolicy). The zero value keeps
// every name, and knows no origin. It is read-only and safe for concurrent use.
type Policy struct {
	kind      PolicyKind
	separator string // "" in the zero value alone
	internal  string // the separator in names of internal topics; "" stands for the default one
	alias     string // of the source, where the identity policy knows it
	aliased   bool
	renames   []rename
}

// A PolicyError reports a setting that makes no policy.
type PolicyError struct {
	Key string
	At  int // bytes of the value in front of what is wrong
	Err error
}

func (e *PolicyError) Error() string { return e.Key + ": " + e.Err.Error() }
func (e *PolicyError) Unwrap() error { return e.Err }

// ParsePolicy returns the policy that the settings of a connector make, by the
// keys above; others are not looked at. Without any of them it is the default
// policy with a dot. The error is a [*PolicyError].
//
// An empty separator is refused: MirrorMaker 2 takes it, and then every topic of
// at least two characters looks as if it had come from elsewhere.
func ParsePolicy(settings map[string]string) (Policy, error) {
	p := Policy{separator: defaultSeparator, internal: defaultSeparator}
	var err error
	if p.kind, err = policyKind(settings); err != nil {
		return Policy{}, err
	}
	if separator, ok := settings[PolicySeparatorKey]; ok {
		if separator == "" {
			return Policy{}, &PolicyError{Key: PolicySeparatorKey, Err: errors.New("the separator is empty")}
		}
		p.separator, p.internal = separator, separator
	}
	if enabled, ok := settings[PolicyInternalSeparatorKey]; ok && !strings.EqualFold(strings.TrimSpace(enabled), "true") {
		p.internal = defaultSeparator // KIP-949
	}
	if p.kind == PolicyIdentity {
		p.alias, p.aliased = settings[PolicySourceAliasKey]
	}
	rules, ruled := settings[PolicyMapKey]
	switch {
	case p.kind == PolicyMap:
		var at int
		if p.renames, at, err = parseRenames(rules); err != nil {
			return Policy{}, &PolicyError{PolicyMapKey, at, err}
		}
	case ruled:
		return Policy{}, &PolicyError{Key: PolicyMapKey, Err: fmt.Errorf("rules for names need %s=%s", PolicyKey, PolicyMap)}
	}
	return p, nil
}

// policyKind returns the kind that settings ask for.
func policyKind(settings map[string]string) (PolicyKind, error) {
	if kind, ok := settings[PolicyKey]; ok {
		switch k := PolicyKind(kind); k {
		case PolicyDefault, PolicyIdentity, PolicyMap:
			return k, nil
		}
		return "", &PolicyError{Key: PolicyKey, Err: fmt.Errorf("%q is none of %s, %s, %s", kind, PolicyDefault, PolicyIdentity, PolicyMap)}
	}
	class, ok := settings[PolicyClassKey]
	switch strings.TrimSpace(class) {
	case policyPackage + "DefaultReplicationPolicy":
		return PolicyDefault, nil
	case policyPackage + "IdentityReplicationPolicy":
		return PolicyIdentity, nil
	}
	if !ok {
		return PolicyDefault, nil
	}
	return "", &PolicyError{Key: PolicyClassKey, Err: fmt.Errorf("%s is a class that cannot be run here; use one of Kafka's two, or %s=%s", class, PolicyKey, PolicyMap)}
}

// Kind returns how the policy names topics.
func (p Policy) Kind() PolicyKind { return p.kind }

// Separator returns what stands between an alias and a topic.
func (p Policy) Separator() string {
	if p.separator == "" {
		return defaultSeparator
	}
	return p.separator
}

// internalSeparator returns what stands between the parts of an internal topic's
// name.
func (p Policy) internalSeparator() string {
	if p.internal == "" {
		return defaultSeparator
	}
	return p.internal
}

// Remote returns the name that a topic of the cluster with the given alias has on
// the target (formatRemoteTopic).
func (p Policy) Remote(alias, topic string) string {
	switch p.kind {
	case PolicyKeep:
		return topic
	case PolicyMap:
		if name, ok := p.renamed(topic); ok {
			return name
		}
	}
	if p.kind != PolicyDefault && !p.prefixesHeartbeats(topic) {
		return topic
	}
	return alias + p.Separator() + topic
}

// prefixesHeartbeats reports whether a policy that keeps names puts an alias in
// front of this one. The identity policy does so to every name that ends with the
// word; the map policy only to names of heartbeats topics.
func (p Policy) prefixesHeartbeats(topic string) bool {
	if p.kind == PolicyMap {
		for name, ok := topic, true; ok; name, ok = p.split(name) {
			if name == heartbeats {
				return true
			}
		}
		return false
	}
	return p.kind == PolicyIdentity && strings.HasSuffix(topic, heartbeats)
}

// split returns what follows the first separator; ok is false for a name that
// the default policy holds to be local.
func (p Policy) split(topic string) (upstream string, ok bool) {
	source, ok := p.prefix(topic)
	if !ok {
		return "", false
	}
	return topic[len(source)+len(p.Separator()):], true
}

// prefix returns what stands in front of the first separator. As String.split of
// Java drops empty parts at the end, and only those, "a." has none and ".a" an
// empty one.
func (p Policy) prefix(topic string) (source string, ok bool) {
	parts := strings.Split(topic, p.Separator())
	for len(parts) > 0 && parts[len(parts)-1] == "" {
		parts = parts[:len(parts)-1]
	}
	if len(parts) < 2 {
		return "", false
	}
	return parts[0], true
}

// byPrefix reports whether it is the name that tells where a topic came from.
func (p Policy) byPrefix(topic string) bool {
	return p.kind == PolicyDefault || p.prefixesHeartbeats(topic)
}

// Source returns the alias of the cluster that a topic was copied from, as far as
// its name tells (topicSource); ok is false for a local topic. The alias may be
// empty.
func (p Policy) Source(topic string) (alias string, ok bool) {
	if p.byPrefix(topic) {
		return p.prefix(topic)
	}
	return p.alias, p.aliased
}

// Upstream returns the name that a topic has on the cluster that it was copied
// from (upstreamTopic); ok is false for a local topic.
func (p Policy) Upstream(topic string) (name string, ok bool) {
	if p.byPrefix(topic) {
		return p.split(topic)
	}
	return topic, p.kind == PolicyIdentity
}

// Original returns the name that a topic had where it was first
// (originalTopic).
func (p Policy) Original(topic string) string {
	for {
		upstream, ok := p.Upstream(topic)
		if !ok || upstream == topic {
			return topic
		}
		topic = upstream
	}
}

// cycle says why copying a topic from source to target would bring records back
// to where they came from; "" if it would not.
//
// The first rule is that of 4.3.1 (MirrorSourceConnector.isCycle): the target's
// alias among the origins. Of the one that came after (KAFKA-9914: the source's
// own alias) only half is taken over, as names like eu.orders are often given
// by hand on a cluster eu: such a topic is copied, to eu.eu.orders, as 4.3.1
// does. That name, found on eu, can only be a copy that came back.
func (p Policy) cycle(source, target, topic string) string {
	own := 0
	for name := topic; ; {
		from, ok := p.Source(name)
		if !ok {
			return ""
		}
		if from == target {
			return fmt.Sprintf("cycle: by its name it came from %s", target)
		}
		upstream, ok := p.Upstream(name)
		if !ok || upstream == name {
			return ""
		}
		if own++; from != source {
			own = 0
		}
		if own == 2 {
			return fmt.Sprintf("cycle: by its name it is a copy of a topic of %s that came back", source)
		}
		name = upstream
	}
}

// Cycle reports whether copying a topic from source to target would bring
// records back to where they came from, by the topic's name.
func (p Policy) Cycle(source, target, topic string) bool { return p.cycle(source, target, topic) != "" }
