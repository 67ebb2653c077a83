package mm2

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// checkAll reports what of the file does not do what its author will think, and
// what of it is refused.
func (c *Config) checkAll() {
	if c.clusters == nil {
		return // without aliases no key can be told from another
	}
	c.checkAliases()
	c.checkLedgers()
	for _, s := range c.entries {
		c.checkKey(s)
	}
	for _, f := range c.flows {
		c.checkFlow(f)
	}
	c.checkClients()
	c.checkValues()
	if len(c.flows) == 0 {
		s, _ := c.top("clusters")
		c.report(Problem{Kind: NoFlow, Level: LevelError, At: s.Origin.At, Key: "clusters", Message: "no flow is enabled",
			Suggestion: c.exampleFlow() + ".enabled=true", MM2: "starts if heartbeats are on, and copies nothing"})
	}
}

// checkValues reports the values that cannot be what their keys want and hold for
// no enabled flow: those that do are errors already.
func (c *Config) checkValues() {
	seen := map[string]bool{}
	for _, p := range c.problems {
		if p.Kind == BadValue {
			seen[p.Key] = true
		}
	}
	for _, s := range c.entries {
		name := s.Key
		if _, rest, ok := c.splitFlow(s.Key); ok {
			name = rest
		}
		k, known := c.keys.key(name)
		if !known || seen[s.Key] || k.Treatment == Ignored || k.Treatment == Refused {
			continue
		}
		var bad *ValueError
		if errors.As(k.check(s), &bad) {
			c.report(Problem{Kind: BadValue, Level: LevelWarning, At: bad.At, Key: bad.Key, Message: fmt.Sprintf("%s=%s: %s; it holds for no enabled flow", bad.Key, bad.Value, bad.Reason)})
		}
	}
}

func (c *Config) exampleFlow() string {
	if pairs := c.pairs(); pairs != nil {
		return pairs[0].String()
	}
	return "A->B"
}

func (c *Config) checkAliases() {
	s, _ := c.top("clusters")
	for _, e := range s.Elements() {
		switch {
		case strings.Contains(e.Text, "->"):
			c.report(Problem{Kind: BadAlias, Level: LevelError, At: e.At, Key: "clusters", Message: fmt.Sprintf("an alias cannot have -> in it: %q", e.Text)})
		case strings.ContainsAny(e.Text, "/\x00"):
			c.report(Problem{Kind: BadAlias, Level: LevelError, At: e.At, Key: "clusters", Message: fmt.Sprintf("an alias names files, and cannot have / in it: %q", e.Text)})
		}
	}
}

// checkLedgers reports flows whose aliases, put together, give one name for their
// ledgers.
func (c *Config) checkLedgers() {
	owners := map[string]FlowConfig{}
	for _, f := range c.flows {
		if other, taken := owners[f.LedgerName()]; taken {
			at := f.Get("enabled").Origin
			c.report(Problem{Kind: SharedLedger, Level: LevelError, At: at.At, Key: at.Key, Message: fmt.Sprintf("flows %s and %s would have one ledger, %s", other, f, f.LedgerName()),
				Suggestion: "choose other aliases for the clusters"})
			continue
		}
		owners[f.LedgerName()] = f
	}
}

// checkKey reports what is wrong with the key of an entry, wherever it stands.
func (c *Config) checkKey(s Setting) {
	if strings.Contains(s.Key, "->") {
		c.checkFlowKey(s)
		return
	}
	if _, ok := c.keys.key(s.Key); !ok {
		if alias := c.aliasOf(s.Key); alias != "" {
			c.checkClusterKey(s, alias, s.Key[len(alias)+1:])
			return
		}
	}
	c.checkTopKey(s)
}

// aliasOf returns the longest alias that a key begins with; "" if there is none.
func (c *Config) aliasOf(key string) string {
	alias := ""
	for _, a := range c.clusters {
		if strings.HasPrefix(key, a+".") && len(a) > len(alias) {
			alias = a
		}
	}
	return alias
}

// checkTable reports what the table says of a key, and whether its value can be
// one. It is told whether MirrorMaker 2 passes the key on from where it stands.
func (c *Config) checkTable(s Setting, k Key, reaches bool, dropped string) {
	p := Problem{Level: LevelNotice, At: s.Origin.At, Key: s.Origin.Key}
	if !reaches {
		p.MM2 = dropped
	}
	c.checkElements(s, k)
	switch k.Treatment {
	case Ignored:
		p.Kind, p.Message = IgnoredKey, fmt.Sprintf("%s is ignored: %s", k.Name, k.Reason)
	case Better:
		p.Kind, p.Message = BetterKey, fmt.Sprintf("%s is not needed: %s", k.Name, k.Reason)
	default:
		return // Honoured says nothing; Refused is a matter of values in flows
	}
	c.report(p)
}

func (c *Config) checkElements(s Setting, k Key) {
	if k.Type != ListKey {
		return
	}
	mm2 := "4.3.1 refuses the whole connector; 3.9.2 does not"
	if k.Name == "clusters" {
		mm2 = "4.3.1 does not start"
	}
	seen, told := map[string]bool{}, map[ProblemKind]bool{}
	for _, e := range s.Elements() {
		p := Problem{Kind: DoubleElement, Level: LevelWarning, At: e.At, Key: s.Origin.Key, MM2: mm2, Message: fmt.Sprintf("an element of %s stands there twice: it is left out", k.Name)}
		if e.Text == "" {
			p.Kind, p.Message = EmptyElement, fmt.Sprintf("an element of %s is empty: it is left out", k.Name)
		}
		if (e.Text == "" || seen[e.Text]) && !told[p.Kind] {
			told[p.Kind] = true // what is done to one of them is done to all
			c.report(p)
		}
		seen[e.Text] = true
	}
}

// checkTopKey checks a key without an alias in front.
func (c *Config) checkTopKey(s Setting) {
	k, known := c.keys.key(s.Key)
	switch {
	case c.checkOld(s, s.Key):
	case known && k.Removed():
		c.checkTable(s, k, false, "4.0 and later drop it")
	case s.Key == "enabled":
		c.checkEnabledForAll(s)
	case known && k.On&(Filter|Framework) != 0:
		c.wrongLevel(s, c.exampleFlow()+"."+s.Key, "the connectors do not get it from the top level")
	case known:
		reaches := k.ReachesFlows() || k.On&Driver != 0 || slices.ContainsFunc(workerPrefixes, func(p string) bool { return strings.HasPrefix(s.Key, p) })
		c.checkTable(s, k, reaches, "drops it at the top level")
	case slices.Contains(c.keys.security, s.Key), strings.HasPrefix(s.Key, "config.providers."):
	case strings.HasPrefix(s.Key, ourPrefix):
		c.checkOurs(s, s.Key)
	case clientRole(s.Key) != "":
		c.wrongLevel(s, c.clientSuggestion(s.Key), "no client gets it from the top level")
	case inFamily(s.Key):
		c.ignoredFamily(s, "drops it at the top level")
	default:
		c.unknownTop(s)
	}
}

// checkEnabledForAll reports a bare enabled: MirrorMaker 2 gives it to the
// connectors of all workers that it starts.
func (c *Config) checkEnabledForAll(s Setting) {
	if on, err := s.Bool(); err == nil && on {
		c.report(Problem{Kind: EnabledForAll, Level: LevelWarning, At: s.Origin.At, Key: s.Key, Suggestion: "write " + c.exampleFlow() + ".enabled=true for each that is meant",
			Message: "enabled=true without a flow enables every flow that does not say enabled=false, in both directions", MM2: "does the same for all flows with heartbeats"})
	}
}

// workerPrefixes are how the keys begin that MirrorMaker 2 gives to its workers
// from the top level.
var workerPrefixes = []string{"offset.storage", "config.storage", "status.storage", "key.converter", "value.converter", "header.converter", "task", "worker", "replication.policy"}

// clientRole returns "producer", "consumer" or "admin" if a key is one of such a
// client.
func clientRole(key string) string {
	for _, role := range roles {
		if rest, ok := strings.CutPrefix(key, role); ok && rest != "" {
			return strings.TrimSuffix(role, ".")
		}
	}
	return ""
}

// clientSuggestion returns where a setting of a client would reach the client
// that matters: what reads the source, what writes the target.
func (c *Config) clientSuggestion(key string) string {
	if pairs := c.pairs(); pairs != nil {
		if clientRole(key) == "producer" {
			return pairs[0].Target + "." + key
		}
		return pairs[0].Source + "." + key
	}
	return "ALIAS." + key
}

// inFamily reports whether a key is a setting of what another key names, such as
// transforms.x.type.
func inFamily(key string) bool {
	for _, family := range []string{"transforms.", "predicates.", "key.converter.", "value.converter.", "header.converter.", "topic.creation.", "metrics.context.", "admin.listeners."} {
		if strings.HasPrefix(key, family) {
			return true
		}
	}
	return false
}

func (c *Config) ignoredFamily(s Setting, mm2 string) {
	c.report(Problem{Kind: IgnoredKey, Level: LevelNotice, At: s.Origin.At, Key: s.Origin.Key, Message: s.Origin.Key + " is ignored: it belongs to what is not run here", MM2: mm2})
}

func (c *Config) wrongLevel(s Setting, where, why string) {
	c.report(Problem{Kind: WrongLevel, Level: LevelWarning, At: s.Origin.At, Key: s.Origin.Key, Message: s.Origin.Key + " has no effect here: " + why,
		Suggestion: "write " + where, MM2: "drops it as well"})
}

// checkOld reports a key that is another's old name, and whether it is.
func (c *Config) checkOld(s Setting, name string) bool {
	for _, r := range RenamedKeys() {
		if r.Old != name {
			continue
		}
		prefix := strings.TrimSuffix(s.Origin.Key, name)
		c.checkElements(s, Key{Name: name, Type: ListKey})
		p := Problem{Kind: OldKey, Level: LevelWarning, At: s.Origin.At, Key: s.Origin.Key, Message: fmt.Sprintf("%s is an old name of %s, and taken as that", name, r.New),
			Suggestion: "write " + prefix + r.New, MM2: "4.0 and later ignore it: what it says is not done"}
		if other, ok := c.top(prefix + r.New); ok {
			p.Kind, p.Message = OldKeyShadowed, fmt.Sprintf("%s does not count: %s stands in line %d", s.Origin.Key, other.Origin.Key, other.Origin.At.Line)
			p.Suggestion, p.MM2 = "take it out", "4.0 and later ignore it, earlier ones too where both are there"
		}
		c.report(p)
		return true
	}
	return false
}

// checkOurs checks a key of apograph's own.
func (c *Config) checkOurs(s Setting, name string) {
	k, known := c.keys.key(name)
	switch {
	case strings.HasPrefix(name, startPrefix) && name != startPrefix:
	case known && k.On&Driver != 0 && name != s.Origin.Key:
		c.report(Problem{Kind: OwnUnknownKey, Level: LevelError, At: s.Origin.At, Key: s.Origin.Key, Message: name + " is for all flows", Suggestion: "write " + name})
	case known:
		c.checkTable(s, k, true, "")
	default:
		p := Problem{Kind: OwnUnknownKey, Level: LevelError, At: s.Origin.At, Key: s.Origin.Key, Message: s.Origin.Key + " is no key of apograph"}
		if near := c.keys.nearestOurs(name); near != "" {
			p.Suggestion = "write " + strings.TrimSuffix(s.Origin.Key, name) + near
		}
		c.report(p)
	}
}

// unknownTop reports a key that is none at all: misspelt, or with an alias that
// clusters does not name.
func (c *Config) unknownTop(s Setting) {
	for _, alias := range append(c.clusters, c.pairNames()...) {
		if s.Key == alias || s.Key == strings.Fields(alias)[0] {
			c.brokenFlow(s)
			return
		}
	}
	alias, rest, _ := strings.Cut(s.Key, ".")
	near := Nearest(s.Key, c.keys.names)
	_, ofKey := c.keys.key(rest)
	if ofKey && near == "" || slices.Contains(c.keys.security, rest) || clientRole(rest) != "" {
		p := Problem{Kind: UnknownAlias, Level: LevelWarning, At: s.Origin.At, Key: s.Key, Message: fmt.Sprintf("clusters does not name %q", alias), MM2: "drops the key"}
		if near := nearestAlias(alias, c.clusters); near != "" {
			p.Suggestion = "write " + near + "." + rest
		}
		c.report(p)
		return
	}
	c.unknown(s, near)
}

func (c *Config) pairNames() []string {
	var names []string
	for _, pair := range c.pairs() {
		names = append(names, pair.String())
	}
	return names
}

func (c *Config) unknown(s Setting, near string) {
	key := shownKey(s.Origin.Key)
	p := Problem{Kind: UnknownKey, Level: LevelWarning, At: s.Origin.At, Key: key, Message: key + " is no key that has an effect", MM2: "drops it as well"}
	if near != "" {
		p.Suggestion = "write " + near
	}
	c.report(p)
}

// brokenFlow reports a key like A in front of "-> B.enabled = true": the blank
// ended the key.
func (c *Config) brokenFlow(s Setting) {
	if !strings.HasPrefix(trim(s.Value), "->") && !strings.HasPrefix(trim(s.Value), ".") {
		c.unknown(s, "")
		return
	}
	c.report(Problem{Kind: FlowBlank, Level: LevelWarning, At: s.Origin.At, Key: s.Key, Message: fmt.Sprintf("the blank ends the key, which is only %q", s.Key),
		Suggestion: "write A->B.KEY without blanks", MM2: "drops it as well"})
}

// asError turns a value's error into a problem.
func (c *Config) asError(err error) {
	var bad *ValueError
	if !errors.As(err, &bad) {
		return
	}
	p := Problem{Kind: BadValue, Level: LevelError, At: bad.At, Key: bad.Key, Message: fmt.Sprintf("%s=%s: %s", bad.Key, bad.Value, bad.Reason)}
	if !slices.Contains(c.problems, p) {
		c.report(p)
	}
}
