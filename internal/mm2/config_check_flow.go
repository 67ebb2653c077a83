package mm2

import (
	"fmt"
	"slices"
	"strings"

	"apograph/internal/spelling"
)

// checkFlowKey checks a key with an arrow in it.
func (c *Config) checkFlowKey(s Setting) {
	pair, rest, ok := c.splitFlow(s.Key)
	if !ok {
		c.strangeFlow(s)
		return
	}
	if !c.enabled(pair) && rest != "enabled" {
		if _, said := c.top(pair.String() + ".enabled"); !said && rest != "emit.heartbeats.enabled" {
			c.report(Problem{Kind: FlowNotEnabled, Level: LevelWarning, At: s.Origin.At, Key: s.Key, Message: fmt.Sprintf("the flow %v is not enabled", pair),
				Suggestion: pair.String() + ".enabled=true"})
		}
	}
	c.checkRestOfFlow(s.as(rest), pair, rest)
}

// splitFlow splits the key of a flow whose clusters are known.
func (c *Config) splitFlow(key string) (pair Pair, rest string, ok bool) {
	for _, p := range c.pairs() {
		if after, found := strings.CutPrefix(key, p.String()+"."); found && after != "" && (!ok || len(p.String()) > len(pair.String())) {
			pair, rest, ok = p, after, true
		}
	}
	return pair, rest, ok
}

// strangeFlow reports a key with an arrow that belongs to no pair of clusters.
func (c *Config) strangeFlow(s Setting) {
	source, after, _ := strings.Cut(s.Key, "->")
	target, rest, _ := strings.Cut(after, ".")
	for _, alias := range c.clusters { // an alias may have dots
		if found, ok := strings.CutPrefix(trim(after), alias+"."); ok {
			target, rest = alias, found
		}
	}
	p := Problem{Kind: UnknownAlias, Level: LevelWarning, At: s.Origin.At, Key: s.Key, MM2: "drops it as well"}
	trimmed := trim(source) + "->" + trim(target)
	switch {
	case trim(source) == trim(target):
		p.Kind, p.Message = FlowSelf, fmt.Sprintf("%s cannot be copied to itself", trim(source))
	case (source != trim(source) || strings.HasPrefix(after, " ")) && c.knows(trim(source)) && c.knows(trim(target)):
		p.Kind, p.Message, p.Suggestion = FlowBlank, "a flow's key has no blanks in it", "write "+trimmed+"."+rest
	case c.knows(source) && c.knows(target):
		p.Kind, p.Message = UnknownKey, s.Key+" says nothing about the flow"
	default:
		unknown, other := source, target
		if c.knows(source) {
			unknown, other = target, source
		}
		p.Message = fmt.Sprintf("clusters does not name %q", unknown)
		if near := nearestAlias(unknown, c.clusters, other); near != "" {
			p.Suggestion = "write " + near
		}
	}
	c.report(p)
}

// nearestAlias returns the alias that a misspelt one is most like, of those that
// are not to be taken: the other side of its flow. One with no letter in common is
// none, unless it is the same in small and capital letters; "" if there is none.
func nearestAlias(alias string, aliases []string, but ...string) string {
	for _, a := range aliases {
		if strings.EqualFold(a, alias) && !slices.Contains(but, a) {
			return a
		}
	}
	return Nearest(alias, slices.DeleteFunc(slices.Clone(aliases), func(a string) bool {
		return slices.Contains(but, a) || spelling.Distance([]byte(alias), []byte(a)) >= max(len(alias), len(a))
	}))
}

func (c *Config) knows(alias string) bool { return slices.Contains(c.clusters, alias) }

// checkRestOfFlow checks what stands behind the name of a flow.
func (c *Config) checkRestOfFlow(s Setting, pair Pair, rest string) {
	k, known := c.keys.key(rest)
	switch {
	case rest == "enabled":
		c.checkEnabled(s)
	case c.checkOld(s, rest):
	case strings.HasPrefix(rest, ourPrefix):
		c.checkOurs(s, rest)
	case known && k.On == Driver:
		c.wrongLevel(s, rest, "it is for the whole file")
	case known:
		c.checkTable(s, k, k.On&(AllConnectors|Filter|Framework) != 0, "gives it to the connectors, which do not know it")
	case slices.Contains(c.keys.security, rest):
		c.wrongLevel(s, fmt.Sprintf("%s.%s or %s.%s", pair.Source, rest, pair.Target, rest), "it is for the clients of a cluster")
	case strings.HasPrefix(rest, "producer.override."):
	case strings.HasPrefix(rest, "consumer.override."), strings.HasPrefix(rest, "admin.override."):
		c.wrongLevel(s, pair.Source+"."+strings.Replace(rest, ".override", "", 1), "the connector makes these clients itself")
	case clientRole(rest) == "producer" && slices.Contains(c.keys.security, rest[len("producer."):]): // see checkClients
	case clientRole(rest) == "producer":
		name := strings.TrimPrefix(rest, "producer.")
		c.wrongLevel(s, fmt.Sprintf("%v.producer.override.%s or %s.producer.%s", pair, name, pair.Target, name), "it is for the producer of offset syncs, not for that of the data")
	case clientRole(rest) != "" || ofSide(rest):
	case inFamily(rest):
		c.ignoredFamily(s, "")
	default:
		near := Nearest(rest, c.keys.names)
		if near != "" {
			near = pair.String() + "." + near
		}
		c.unknown(s, near)
	}
}

// ofSide reports whether a key of a flow is one of its clients, in the words of
// the connectors.
func ofSide(key string) bool {
	for _, side := range []string{"source.", "target."} {
		if rest, ok := strings.CutPrefix(key, side); ok {
			return clientRole(rest) != "" || strings.HasPrefix(rest, "cluster.")
		}
	}
	return false
}

// checkEnabled checks the switch of a flow: MirrorMaker 2 reads it twice, once
// with blanks and once without.
func (c *Config) checkEnabled(s Setting) {
	if _, err := s.Bool(); err != nil {
		c.report(Problem{Kind: BadValue, Level: LevelWarning, At: s.ValueAt(0), Key: s.Origin.Key, Message: fmt.Sprintf("%s=%s is neither true nor false: the flow is not enabled", s.Origin.Key, s.Shown()),
			Suggestion: "write true or false", MM2: "does the same"})
		return
	}
	if on, _ := s.Bool(); on && !parseBoolean(s.Value) {
		c.report(Problem{Kind: FlowEnabledBlank, Level: LevelWarning, At: s.ValueAt(0), Key: s.Origin.Key, Message: "there are blanks around true; the flow is enabled all the same",
			Suggestion: "take out the blanks", MM2: "starts the flow only if heartbeats are on"})
	}
}

// checkClusterKey checks a key behind an alias.
func (c *Config) checkClusterKey(s Setting, alias, rest string) {
	k, known := c.keys.key(rest)
	role := clientRole(rest)
	s = s.as(rest)
	switch {
	case rest == "":
		c.unknown(s, "")
	case slices.Contains(c.keys.security, rest):
	case strings.HasPrefix(rest, ourPrefix):
		c.report(Problem{Kind: OwnUnknownKey, Level: LevelError, At: s.Origin.At, Key: s.Origin.Key, Message: rest + " is no key of a cluster", Suggestion: "write " + rest + " or " + c.exampleFlow() + "." + rest})
	case role != "":
		c.checkRole(s, alias, rest)
	case known && k.On == Worker && isOfClients(rest):
		c.wrongLevel(s, fmt.Sprintf("%s.consumer.%s, %s.producer.%s, %s.admin.%s", alias, rest, alias, rest, alias, rest), "the clients of a cluster get it with their role in front alone")
	case known && k.On&Worker != 0:
		c.checkTable(s, k, true, "")
	case known, c.isOld(rest):
		c.wrongLevel(s, rest+" or "+c.exampleFlow()+"."+rest, "it is for flows, not for clusters")
	case inFamily(rest):
		c.ignoredFamily(s, "")
	default:
		near := Nearest(rest, c.keys.names)
		if near != "" {
			near = alias + "." + near
		}
		c.unknown(s, near)
	}
}

func (c *Config) isOld(name string) bool {
	return slices.ContainsFunc(RenamedKeys(), func(r Renamed) bool { return r.Old == name })
}

// checkRole checks a key of a cluster's client: one that no flow has is of no use.
func (c *Config) checkRole(s Setting, alias, rest string) {
	role := clientRole(rest)
	if strings.HasPrefix(rest, role+".override.") {
		c.wrongLevel(s, alias+"."+strings.Replace(rest, ".override", "", 1), "override is for flows")
	}
}

// isOfClients reports whether a key of Connect's worker is one that clients have
// as well, so that its author will have meant them.
func isOfClients(name string) bool {
	for _, start := range []string{"client.", "connections.", "metadata.", "receive.", "reconnect.", "request.", "retry.", "send.", "socket.", "session.", "heartbeat."} {
		if strings.HasPrefix(name, start) {
			return true
		}
	}
	return name == "group.id"
}

// checkFlow checks what holds for an enabled flow.
func (c *Config) checkFlow(f FlowConfig) {
	for _, s := range f.Settings() {
		k, ok := c.keys.key(s.Key)
		if !ok || s.Origin.Key == "" {
			continue
		}
		if k.Treatment == Refused {
			c.checkRefused(s, k)
			continue
		}
		if err := k.check(s); err != nil && k.Treatment != Ignored {
			c.asError(err)
		}
	}
	c.checkPolicy(f)
	c.checkInterceptors(f)
	c.checkIntervals(f)
	c.checkSyncs(f)
	c.checkStarts(f)
	c.checkBootstrap(f)
	if s := f.Get("use.defaults.from"); s.Origin.Key != "" && trim(s.Value) != "source" && trim(s.Value) != "target" {
		c.reportOnce(Problem{Kind: BadValue, Level: LevelWarning, At: s.ValueAt(0), Key: s.Origin.Key, Message: fmt.Sprintf("%s=%s is taken as target", s.Origin.Key, s.Shown()),
			Suggestion: "source or target", MM2: "does the same"})
	}
}

// reportOnce reports a problem unless another flow had it.
func (c *Config) reportOnce(p Problem) {
	if !slices.Contains(c.problems, p) {
		c.report(p)
	}
}

// checkRefused refuses a key that would change records, or that is code, if its
// value is not what happens anyway.
func (c *Config) checkRefused(s Setting, k Key) {
	value := trim(s.Value)
	switch {
	case value == k.Default, k.Name == PolicyClassKey: // a policy has a check of its own
		return
	case strings.HasSuffix(k.Name, ".converter") && value == byteArrayConverter:
		return
	}
	c.reportOnce(Problem{Kind: RefusedKey, Level: LevelError, At: s.ValueAt(0), Key: s.Origin.Key, Message: fmt.Sprintf("%s=%s cannot be taken over: %s", s.Origin.Key, s.Shown(), k.Reason),
		Suggestion: "take it out"})
}

func (c *Config) checkPolicy(f FlowConfig) {
	if _, err := f.Topics(); err != nil {
		c.asError(err)
	}
	for _, key := range []string{"groups", "groups.exclude", "config.properties.exclude"} {
		if _, err := f.Patterns(key); err != nil {
			c.asError(err)
		}
	}
}

func (c *Config) checkInterceptors(f FlowConfig) {
	for _, props := range []map[string]Setting{f.SourceClient(), f.TargetClient()} {
		if s := props["interceptor.classes"]; trim(s.Value) != "" {
			c.reportOnce(Problem{Kind: RefusedKey, Level: LevelError, At: s.ValueAt(0), Key: s.Origin.Key, Message: s.Origin.Key + " cannot be taken over: interceptors are code of one's own, which cannot run here",
				Suggestion: "take it out"})
		}
	}
}

// checkIntervals checks how often duties are due.
func (c *Config) checkIntervals(f FlowConfig) {
	for _, duty := range []string{"refresh.topics", "sync.topic.configs", "sync.topic.acls", "refresh.groups", "sync.group.offsets", "emit.checkpoints", "emit.heartbeats"} {
		if _, err := f.Every(duty); err != nil {
			c.asError(err)
			continue
		}
		s := f.Get(duty + ".interval.seconds")
		if interval, _ := s.Duration(1); interval < 0 {
			c.reportOnce(Problem{Kind: IntervalTrap, Level: LevelNotice, At: s.ValueAt(0), Key: s.Origin.Key, Message: fmt.Sprintf("a negative interval turns %s off", duty),
				Suggestion: duty + ".enabled=false says so", MM2: "does the same"})
		}
	}
}

// checkSyncs refuses what the connectors refuse together
// (MirrorSourceConnector.validate, KIP-1031).
func (c *Config) checkSyncs(f FlowConfig) {
	s := f.Get("emit.offset-syncs.enabled")
	if on, err := s.Bool(); err != nil || on {
		return
	}
	for _, key := range []string{"offset-syncs.topic.location", "offset-syncs.topic.replication.factor"} {
		if f.IsSet(key) {
			other := f.Get(key)
			c.reportOnce(Problem{Kind: Conflict, Level: LevelError, At: other.Origin.At, Key: other.Origin.Key, Message: fmt.Sprintf("%s with %s=false", other.Origin.Key, s.named()),
				Suggestion: "take one of them out", MM2: "refuses both together"})
		}
	}
}

func (c *Config) checkBootstrap(f FlowConfig) {
	for _, side := range []struct {
		alias string
		props map[string]Setting
	}{{f.Source, f.SourceClient()}, {f.Target, f.TargetClient()}} {
		if s := side.props["bootstrap.servers"]; trim(s.Value) == "" {
			at, _ := c.top("clusters")
			c.reportOnce(Problem{Kind: NoBootstrap, Level: LevelError, At: at.Origin.At, Key: side.alias + ".bootstrap.servers", Message: "there is no " + side.alias + ".bootstrap.servers",
				Suggestion: side.alias + ".bootstrap.servers=HOST:PORT"})
		}
	}
}
