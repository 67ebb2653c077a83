package lint

import "strings"

// A keyLevel is where in the file a key is valid.
type keyLevel int

const (
	topLevel     keyLevel = iota // for everything, as far as MirrorMaker 2 passes it on
	clusterLevel                 // ALIAS.key
	flowLevel                    // SOURCE->TARGET.key
)

// A scoped key is a key taken apart.
type scoped struct {
	level          keyLevel
	source, target string // of a flow; target alone: the alias of a cluster
	key            string // what is left of it
}

// takeApart splits a key by the aliases of the file. A key that begins with an
// alias that is not there is at the top level, unless an arrow makes it one of a
// flow.
func takeApart(key string, aliases []string) scoped {
	if source, rest, ok := strings.Cut(key, "->"); ok {
		if target, key, ok := cutAlias(rest, aliases); ok {
			return scoped{flowLevel, source, target, key}
		}
		target, key, _ := strings.Cut(rest, ".")
		return scoped{flowLevel, source, target, key}
	}
	if alias, rest, ok := cutAlias(key, aliases); ok {
		return scoped{clusterLevel, "", alias, rest}
	}
	return scoped{key: key}
}

// cutAlias returns the longest alias that key begins with, and what is behind
// it.
func cutAlias(key string, aliases []string) (alias, rest string, ok bool) {
	for _, a := range aliases {
		if after, found := strings.CutPrefix(key, a+"."); found && len(a) >= len(alias) {
			alias, rest, ok = a, after, true
		}
	}
	return alias, rest, ok
}
