package lint

import (
	"fmt"
	"slices"
	"strings"

	"apograph/internal/javaprops"
	"apograph/internal/mm2"
)

// arrows reports keys that are meant as those of flows, and are none.
func (c *checker) arrows() {
	for i := range c.file.Entries {
		c.otherArrow(&c.file.Entries[i])
	}
}

// flows reports what is odd about aliases and flows, beside what keeps them from
// running.
func (c *checker) flows() {
	if c.place("clusters").IsZero() {
		return
	}
	c.sameAddresses()
	for _, alias := range c.aliases {
		used := slices.ContainsFunc(c.running, func(f mm2.FlowConfig) bool { return f.Source == alias || f.Target == alias })
		if !used && len(c.running) > 0 {
			c.add("AP0411", c.aliasAt(alias), "clusters", fmt.Sprintf("no enabled flow uses the cluster %s", alias), "")
		}
		c.separatorIn(alias)
	}
}

// aliasAt returns where an alias stands in clusters.
func (c *checker) aliasAt(alias string) javaprops.Position {
	for _, s := range c.config.Entries() {
		if s.Key != "clusters" {
			continue
		}
		for _, el := range s.Elements() {
			if el.Text == alias {
				return el.At
			}
		}
	}
	return javaprops.Position{}
}

// otherArrow reports a key whose aliases have something else than -> between
// them.
func (c *checker) otherArrow(e *javaprops.Entry) {
	if strings.Contains(e.Key, "->") {
		return
	}
	for _, arrow := range []string{"=>", "-->", "→", "\u00e2\u0086\u0092", "-", ">", "_to_", "-to-"} {
		source, rest, ok := strings.Cut(e.Key, arrow)
		if !ok || !slices.Contains(c.aliases, source) {
			continue
		}
		if target, key, ok := cutAlias(rest, c.aliases); ok {
			c.noFlow(e, source, target, key)
			return
		}
	}
	// Of A=>B.enabled Java makes the key A: it ends at the first =.
	if value, ok := strings.CutPrefix(e.Value, ">"); ok && slices.Contains(c.aliases, e.Key) {
		if target, key, ok := cutAlias(strings.TrimSpace(value), c.aliases); ok {
			c.noFlow(e, e.Key, target, key)
		}
	}
}

// noFlow reports an entry that was meant as that of a flow.
func (c *checker) noFlow(e *javaprops.Entry, source, target, key string) {
	if source == target {
		c.add("AP0409", e.At, e.Key, source+" cannot be copied to itself", "")
		return
	}
	c.add("AP0404", e.At, e.Key, "this is no flow: between the aliases stands ->", source+"->"+target+"."+key)
}

// separatorIn reports an alias that holds the separator of one of its flows.
func (c *checker) separatorIn(alias string) {
	for _, f := range c.running {
		policy, err := f.Policy()
		if err != nil || strings.ContainsAny(alias, "/\x00") || f.Source != alias && f.Target != alias || !strings.Contains(alias, policy.Separator()) {
			continue
		}
		c.add("AP0408", c.aliasAt(alias), "clusters", fmt.Sprintf("the alias %s holds the separator %s: where topics came from cannot be told", alias, brief(policy.Separator())), "choose an alias without it")
		return
	}
}

// sameAddresses reports aliases of flows that are reached at the same place.
func (c *checker) sameAddresses() {
	first := map[string]string{} // aliases, by addresses
	known := map[string]bool{}
	look := func(alias string, s mm2.Setting) {
		addresses := s.List()
		slices.Sort(addresses)
		set := strings.ToLower(strings.Join(addresses, ","))
		other, seen := first[set]
		switch {
		case known[alias] || set == "":
		case seen:
			c.once("AP0412", s, mm2.FlowConfig{}, fmt.Sprintf("%s and %s have the same addresses", other, alias), "correct one of them")
		default:
			first[set] = alias
		}
		known[alias] = true
	}
	const key = "bootstrap.servers"
	for _, f := range c.running {
		look(f.Source, f.SourceClient()[key])
		look(f.Target, f.TargetClient()[key])
	}
}
