package mm2

import (
	"fmt"
	"slices"
	"strings"
)

// checkClients reports what the file says of a cluster's clients and apograph's does
// not get: it has one for a cluster, where MirrorMaker 2 has one for each purpose. A
// login or TLS that would not be used is refused.
func (c *Config) checkClients() {
	used := map[string]bool{} // keys as they stand in the file
	var clients []flowClients
	for _, f := range c.flows {
		one := flowClients{f.Pair(), f.SourceClient(), f.TargetClient()}
		for _, props := range []settings{one.source, one.target} {
			for _, s := range props {
				used[s.Origin.Key] = true
			}
		}
		clients = append(clients, one)
	}
	told := map[string]bool{}
	for _, p := range c.problems {
		told[p.Key] = told[p.Key] || p.Kind == WrongLevel
	}
	for _, s := range c.entries {
		if used[s.Key] || told[s.Key] {
			continue
		}
		if name, these := c.clientsFor(s.Key, clients); len(these) > 0 {
			c.checkUnused(s, name, these)
		}
	}
}

// flowClients are the two clients of a flow.
type flowClients struct {
	Pair
	source, target settings
}

// clientsFor returns which property of which clients the key of an entry is about; none
// if it is about none.
func (c *Config) clientsFor(key string, all []flowClients) (name string, clients []settings) {
	pair, rest, ofFlow := c.splitFlow(key)
	alias := ""
	if !ofFlow {
		if alias = c.aliasOf(key); alias == "" {
			return "", nil
		}
		rest = key[len(alias)+1:]
	}
	side, name := "", rest
	if i := strings.IndexByte(rest, '.'); ofFlow && ofSide(rest) {
		side, name = rest[:i], rest[i+1:]
	}
	if role := clientRole(name); role != "" {
		name = strings.TrimPrefix(name, role+".")
	} else if name = strings.TrimPrefix(name, "cluster."); side == "" {
		return "", nil
	}
	for _, f := range all {
		if ofFlow && f.Pair == pair && side != "target" || !ofFlow && f.Source == alias {
			clients = append(clients, f.source)
		}
		if ofFlow && f.Pair == pair && side != "source" || !ofFlow && f.Target == alias {
			clients = append(clients, f.target)
		}
	}
	return name, clients
}

// checkUnused reports a setting of clients that none has, unless they have the same
// from elsewhere.
func (c *Config) checkUnused(s Setting, name string, clients []settings) {
	why := "apograph has no client that it is for"
	for _, props := range clients {
		switch other, ok := props[name]; {
		case ok && trim(other.Value) == trim(s.Value):
			return
		case ok && other.Origin.Key != "":
			why = fmt.Sprintf("apograph has one client for a cluster, and %s in line %d counts", other.Origin.Key, other.Origin.At.Line)
		}
	}
	p := Problem{Kind: UnusedOfClient, Level: LevelNotice, At: s.Origin.At, Key: s.Origin.Key, Message: fmt.Sprintf("%s is not used: %s", s.Origin.Key, why)}
	if slices.Contains(c.keys.security, name) {
		p.Kind, p.Level, p.Suggestion = SecurityOfClient, LevelError, "give all clients of a cluster the same login, addresses and TLS, as ALIAS."+name
	}
	c.report(p)
}
