package mm2

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
