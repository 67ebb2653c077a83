package lint

import (
	"fmt"
	"slices"
	"strings"

	"apograph/internal/mm2"
)

// covered reports elements of topics that come to nothing, because of the list of
// what is excluded, or because internal topics are never copied.
func (c *checker) covered(f mm2.FlowConfig) {
	rules, topics, exclude := c.rules(f), f.Get("topics"), f.Get("topics.exclude")
	notInternal := c.without(rules.Policy.InternalExpressions()...)
	left := notInternal.and(c.without(rules.Exclude.Expressions()...))
	expressions := rules.Include.Expressions()
	var gone []mm2.Element
	copied := 0
	for i, text := range rules.Include.Texts() {
		all := c.only(expressions[i])
		at := slices.IndexFunc(topics.Elements(), func(el mm2.Element) bool { return el.Text == text })
		switch el := topics.Elements()[at]; {
		case c.empty(all): // AP0317 and others tell of it
		case c.empty(all.and(notInternal)):
			c.internal(topics, el)
		case c.empty(all.and(left)):
			gone = append(gone, el)
		default:
			copied++
		}
	}
	if len(gone) > 0 && copied == 0 && !exclude.Origin.At.IsZero() {
		c.once("AP0508", exclude, f, fmt.Sprintf("%s leaves out all that topics lets in: %v copies nothing but heartbeats", exclude.Origin.Key, f), "leave out less")
		return
	}
	for _, el := range gone {
		c.single("AP0318", el.At, topics.Origin.Key, fmt.Sprintf("%s comes to nothing: topics.exclude, which is %s, leaves out all that it matches", brief(el.Text), brief(c.shown(exclude))), "leave out less, or delete it")
	}
}

// empty reports whether it is certain that no legal name is in a language.
func (c *checker) empty(l language) bool {
	names, sure := c.namesOf(l, 1)
	return sure && names == nil
}

// shown returns a value as another key's message may show it.
func (c *checker) shown(s mm2.Setting) string {
	if c.hidden.keys[s.Origin.Key] {
		return hiddenText
	}
	return s.Value
}

// internal reports an element that matches nothing but internal topics.
func (c *checker) internal(topics mm2.Setting, el mm2.Element) {
	if name, whole := leading(el.Text); whole && name == "__consumer_offsets" {
		c.single("AP0506", el.At, topics.Origin.Key, "__consumer_offsets is never copied: offsets are numbers of the source", "sync.group.offsets.enabled = true")
		return
	}
	c.single("AP0509", el.At, topics.Origin.Key, fmt.Sprintf("%s matches internal topics alone, which are never copied", brief(el.Text)), "delete it")
}

// renames reports rules for names that change none, or make one name of several.
func (c *checker) renames(f mm2.FlowConfig) {
	setting := f.Get(mm2.PolicyMapKey)
	made := map[string]*branch{} // by the one name
	for _, b := range c.branches(f) {
		if b.by == nil {
			continue
		}
		at := setting.ValueAt(b.by.At)
		if b.none {
			c.single("AP0510", at, setting.Origin.Key, fmt.Sprintf("%s renames no topic: %s", brief(b.by.Rule), c.whyNot(&b)), "delete the rule, or correct it")
			continue
		}
		if !b.by.One {
			continue
		}
		names, _ := c.namesOf(b.from, 2)
		if other := made[b.by.To]; other != nil && len(names) > 0 {
			others, _ := c.namesOf(other.from, 1)
			names = append(others, names...)
		}
		if len(names) > 1 {
			c.single("AP0511", at, setting.Origin.Key, fmt.Sprintf("%s and %s would both be %s", names[0], names[1], b.rules.Remote(names[1])), "give each a name of its own, or exclude one of them")
		}
		made[b.by.To] = &b
	}
}

// whyNot says why a rule changes no name.
func (c *checker) whyNot(b *branch) string {
	from := c.only(b.by.From)
	switch {
	case c.empty(from):
		return "no topic can have a name that it is for"
	case c.empty(c.chosen(b.rules).and(from)):
		return fmt.Sprintf("%v copies none that it is for", b.flow)
	}
	return "the rules in front of it are for all that it is for"
}

// defaults says once what is done where the file is silent, if that is another
// thing than MirrorMaker 2 does.
func (c *checker) defaults() {
	var said []string
	told := map[string]bool{}
	for _, f := range c.running {
		for _, k := range f.Silent() {
			if !told[k.Name] {
				told[k.Name] = true
				said = append(said, fmt.Sprintf("%s (%s: %s)", k.Ours, k.Name, k.Default))
			}
		}
	}
	if len(said) > 0 {
		f := c.running[0]
		c.once("AP0211", f.Get("enabled"), f, "where the file is silent, "+strings.Join(said, ", ")+"; in brackets, what MirrorMaker 2 has", "")
	}
}
