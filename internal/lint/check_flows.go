package lint

import (
	"fmt"
	"slices"
	"strings"

	"apograph/internal/javaprops"
	"apograph/internal/mm2"
)

// flows reports what is odd about aliases and flows, beside what keeps them from
// running.
func (c *checker) flows() {
	for i := range c.file.Entries {
		c.otherArrow(&c.file.Entries[i])
	}
	if c.place("clusters").IsZero() {
		return
	}
	addresses := map[string]string{} // sorted -> alias
	for _, alias := range c.aliases {
		used := slices.ContainsFunc(c.running, func(f mm2.FlowConfig) bool { return f.Source == alias || f.Target == alias })
		if !used && len(c.running) > 0 {
			c.add("AP0411", c.aliasAt(alias), "clusters", fmt.Sprintf("no enabled flow uses the cluster %s", alias), "")
		}
		c.separatorIn(alias)
		c.sameAddresses(alias, addresses)
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
			c.add("AP0404", e.At, e.Key, "this is no flow: between the aliases stands ->", source+"->"+target+"."+key)
			return
		}
	}
	// Of A=>B.enabled Java makes the key A: it ends at the first =.
	if value, ok := strings.CutPrefix(e.Value, ">"); ok && slices.Contains(c.aliases, e.Key) {
		if _, _, ok := cutAlias(strings.TrimSpace(value), c.aliases); ok {
			c.add("AP0404", e.At, e.Key, "this is no flow: between the aliases stands ->", e.Key+"->"+strings.TrimSpace(value))
		}
	}
}

// separatorIn reports an alias that holds the separator of one of its flows.
func (c *checker) separatorIn(alias string) {
	for _, f := range c.running {
		policy, err := f.Policy()
		if err != nil || f.Source != alias && f.Target != alias || !strings.Contains(alias, policy.Separator()) {
			continue
		}
		c.add("AP0408", c.aliasAt(alias), "clusters", fmt.Sprintf("the alias %s holds the separator %s: where topics came from cannot be told", alias, brief(policy.Separator())), "choose an alias without it")
		return
	}
}

// sameAddresses reports two aliases that are reached at the same place.
func (c *checker) sameAddresses(alias string, seen map[string]string) {
	for _, s := range c.config.Entries() {
		if s.Key != alias+".bootstrap.servers" {
			continue
		}
		addresses := s.List()
		slices.Sort(addresses)
		set := strings.ToLower(strings.Join(addresses, ","))
		if other, ok := seen[set]; ok && set != "" {
			c.add("AP0412", s.ValueAt(0), s.Key, fmt.Sprintf("%s and %s have the same addresses", other, alias), "correct one of them")
		}
		seen[set] = alias
	}
}
