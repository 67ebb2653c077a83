package lint

import (
	"regexp"
	"slices"
	"strings"

	"apograph/internal/mm2"
)

// candidates is how many names of a language are tried where it cannot be told for
// all of them what becomes of them.
const candidates = 8

// A branch is what a flow that keeps names, or changes them by rules, does to some
// of the topics of its source.
type branch struct {
	flow  mm2.FlowConfig
	rules mm2.TopicRules
	from  language    // names on the source, but for heartbeats
	to    language    // those that they have on the target; with a rule, and perhaps more
	by    *mm2.Rename // nil: they keep their names
	none  bool        // no topic at all comes to the rule
}

// automaton returns the one for expressions; nil if one of them is none.
func (c *checker) automaton(expressions ...string) *automaton {
	key := strings.Join(expressions, "\x00")
	a, ok := c.automata[key]
	if !ok {
		a = newAutomaton(expressions...)
		c.automata[key] = a
	}
	return a
}

// only returns the names that one of some expressions matches.
func (c *checker) only(expressions ...string) language {
	return language{in: []*automaton{c.automaton(expressions...)}}
}

// without returns the names that none of some expressions matches.
func (c *checker) without(expressions ...string) language {
	return language{out: []*automaton{c.automaton(expressions...)}}
}

// chosen returns the names of the topics that a flow copies.
func (c *checker) chosen(rules mm2.TopicRules) language {
	include, exclude := rules.Expressions()
	return c.only(include...).and(c.without(exclude...))
}

// branches returns those of a flow, rules first; none of one whose policy puts
// aliases in front of names.
func (c *checker) branches(f mm2.FlowConfig) []branch {
	if all, ok := c.branched[f.Pair()]; ok {
		return all
	}
	var all []branch
	rules := c.rules(f)
	if keepsNames(f) {
		rest, beats := c.chosen(rules), c.without(rules.Policy.HeartbeatsExpression())
		for _, r := range rules.Policy.Renames() {
			from := rest.and(c.only(r.From))
			all = append(all, branch{f, rules, from.and(beats), c.only(r.To), &r, c.empty(from)})
			rest = rest.and(c.without(r.From))
		}
		rest = rest.and(beats)
		all = append(all, branch{f, rules, rest, rest, nil, false})
	}
	for i := range all {
		c.narrow(&all[i])
	}
	c.branched[f.Pair()] = all
	return all
}

// narrow finds out which names the rule of a branch makes, where that are few, or
// where the rule changes nothing but what stands around a name.
func (c *checker) narrow(b *branch) {
	if b.by == nil {
		return
	}
	const few = 64
	if names, sure := c.namesOf(b.from, few); sure && len(names) < few {
		var made []string
		for _, name := range names {
			made = append(made, regexp.QuoteMeta(b.rules.Remote(name)))
		}
		b.to = c.only(made...)
		return
	}
	if whole := wholeGroup.FindStringSubmatch(b.by.From); whole != nil {
		include, _ := b.rules.Expressions()
		to := strings.Replace(b.by.To, "(?:"+whole[1]+")?", "(?:"+c.automaton(include...).text+")", 1)
		b.to = c.only(to)
	}
}

// wholeGroup is an expression that is one group with all of the name in it.
var wholeGroup = regexp.MustCompile(`^\((\.\*|\.\+)\)$`)

// before returns names of the source of which the branch makes this one of the
// target.
func (c *checker) before(b *branch, name string) []string {
	if b.by == nil {
		names, _ := c.namesOf(b.from.and(c.only(regexp.QuoteMeta(name))), 1)
		return names
	}
	expression, ok := b.by.Before(name)
	if !ok {
		return nil
	}
	names, _ := c.namesOf(b.from.and(c.only(expression)), candidates)
	return slices.DeleteFunc(names, func(n string) bool { return b.rules.Remote(n) != name })
}

// copiedBy returns the name that a topic of the source has on the target; false if
// it is not copied.
func copiedBy(rules mm2.TopicRules, topic string) (name string, ok bool) {
	if _, ok := rules.Match(topic); !ok {
		return "", false
	}
	name = rules.Remote(topic)
	return name, mm2.CheckTopicName(name) == nil && !rules.Policy.IsInternal(name)
}
