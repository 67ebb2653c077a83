package mm2

import "regexp"

// Default lists of what is left out, of 4.3.1.
const (
	DefaultTopicsExclude = `mm2.*\.internal, .*\.replica, __.*`
	DefaultGroupsExclude = `console-consumer-.*, connect-.*, __.*`
)

// TopicRules say which topics of a flow's source are copied, as
// MirrorSourceConnector.shouldReplicateTopic does, and under which name. It is
// a value, safe for concurrent use.
type TopicRules struct {
	Selection
	Policy         Policy
	Source, Target string // aliases of the clusters

	// Heartbeats adds the heartbeats topics of the source, and the copies of such
	// that it holds, whatever the selection says
	// (heartbeats.replication.enabled, KIP-1089).
	Heartbeats bool
}

// Remote returns the name of a source topic on the target.
func (r TopicRules) Remote(topic string) string { return r.Policy.Remote(r.Source, topic) }

// Match reports whether a topic is copied, and by which expression; that of a
// heartbeats topic that none matches is its name.
func (r TopicRules) Match(topic string) (by string, ok bool) {
	if by, ok = r.Selection.Match(topic); !ok {
		by, ok = topic, r.Heartbeats && r.Policy.IsHeartbeats(topic)
	}
	if !ok || r.Policy.IsInternal(topic) || r.Policy.Cycle(r.Source, r.Target, topic) {
		return "", false
	}
	return by, true
}

// Explain reports whether a topic is copied, and says in one line by which rule
// it is, or is not.
func (r TopicRules) Explain(topic string) (rule string, ok bool) {
	if rule := r.Policy.internalRule(topic); rule != "" {
		return "internal: " + rule, false
	}
	rule, ok = r.Selection.explain(topic)
	if !ok && r.Heartbeats && r.Policy.IsHeartbeats(topic) {
		rule, ok = "heartbeats topic", true
	}
	if cycle := r.Policy.cycle(r.Source, r.Target, topic); ok && cycle != "" {
		return cycle, false
	}
	return rule, ok
}

// Lists returns expressions that say of legal names what the policy adds to the
// selection, for whoever has nothing but lists: what else is copied, and what
// else is not. A heartbeats topic that the selection excludes is the one thing
// that they cannot say; a separator of several characters they follow as far as
// it does not overlap itself.
func (r TopicRules) Lists() (include, exclude []string) {
	p := r.Policy
	separator := regexp.QuoteMeta(p.Separator())
	behind := "(?:.*" + separator + ")?"
	if r.Heartbeats && p.kind == PolicyKeep {
		include = []string{heartbeats}
	} else if r.Heartbeats {
		include = []string{behind + heartbeats}
	}
	if i := regexp.QuoteMeta(p.internalSeparator()); i != regexp.QuoteMeta(defaultSeparator) {
		exclude = []string{"mm2.*" + i + "internal", ".*" + i + "checkpoints" + i + "internal"}
	}
	rest := ""
	switch p.kind {
	case PolicyKeep:
		return include, exclude
	case PolicyIdentity:
		rest = ".*" + heartbeats
	case PolicyMap:
		rest = behind + heartbeats
	case PolicyDefault:
		if rest = ".+"; len(p.Separator()) == 1 {
			rest = ".*[^" + separator + "].*"
		}
	}
	source, target := regexp.QuoteMeta(r.Source)+separator, regexp.QuoteMeta(r.Target)+separator
	return include, append(exclude, behind+target+rest, behind+source+source+rest)
}
