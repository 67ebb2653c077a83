package lint

import (
	"strings"

	"apograph/internal/connect"
	"apograph/internal/mm2"
)

// A keyTable answers which keys there are, made once for a file.
type keyTable struct {
	mirrorMaker map[string]mm2.Key
	client      map[string]connect.Key
}

func newKeyTable() *keyTable {
	t := &keyTable{mirrorMaker: map[string]mm2.Key{}, client: map[string]connect.Key{}}
	for _, k := range mm2.Keys() {
		t.mirrorMaker[k.Name] = k
	}
	for k := range connect.Keys() {
		t.client[k.Name] = k
	}
	return t
}

// ofClient reports whether a Kafka client knows a key.
func (t *keyTable) ofClient(key string) bool {
	_, ok := t.client[key]
	return ok
}

// ofMirrorMaker reports whether MirrorMaker 2 or apograph knows a key that no
// client does.
func (t *keyTable) ofMirrorMaker(key string) bool {
	_, ok := t.mirrorMaker[key]
	return ok && !t.ofClient(key)
}

// isPatternKey reports whether a key of a connector is a list of patterns.
func isPatternKey(key string) bool {
	switch key {
	case "topics", "topics.exclude", "groups", "groups.exclude", "config.properties.exclude",
		"topics.blacklist", "groups.blacklist", "config.properties.blacklist",
		"topics.whitelist", "groups.whitelist", "whitelist", "blacklist":
		return true
	}
	return false
}

// keepsBlanks reports whether Kafka takes the blanks at the end of a key's value
// as part of it: it parses whether heartbeats are on, and what concerns a policy,
// by itself (MirrorMakerConfig.clusterPairs, DefaultReplicationPolicy.configure),
// and leaves keys that it does not know to others.
func (c *checker) keepsBlanks(key string) bool {
	s := takeApart(key, c.aliases)
	switch {
	case s.key == "emit.heartbeats.enabled",
		strings.HasPrefix(s.key, mm2.PolicySeparatorKey), strings.HasPrefix(s.key, mm2.PolicyInternalSeparatorKey):
		return true
	case c.keys.ofMirrorMaker(s.key):
		return false
	}
	_, name := clientRole(s.key)
	return !c.keys.ofClient(name)
}

// clientRole splits producer.KEY and its like.
func clientRole(key string) (role, name string) {
	for _, role := range []string{"producer", "consumer", "admin"} {
		if name, ok := strings.CutPrefix(key, role+"."); ok {
			return role, strings.TrimPrefix(name, "override.")
		}
	}
	return "", key
}

// looksLikeKey reports whether a text is most likely a key of a file.
func (c *checker) looksLikeKey(text string) bool {
	s := takeApart(text, c.aliases)
	_, name := clientRole(s.key)
	return s.level == flowLevel || c.keys.ofMirrorMaker(name) || c.keys.ofClient(name) || strings.HasPrefix(name, "apograph.")
}
