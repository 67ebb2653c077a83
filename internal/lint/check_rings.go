package lint

import (
	"fmt"
	"slices"
	"strings"

	"apograph/internal/mm2"
)

// rings reports flows that lead back to where they began, and topics that two
// flows bring together. Both are looked for among flows that have no aliases in
// the names of topics, and told only with a topic for which it holds.
func (c *checker) rings() {
	for i := 0; i < len(c.running) && c.looks > 0; i++ {
		if found := c.ring(i); found != nil {
			c.ringFound(found)
		}
		for _, g := range c.running[:i] {
			c.fanIn(g, c.running[i])
		}
	}
}

// Rings returns of flows which of them lead records back to where they began, whatever
// topics there are: why, by the first flow of each ring.
func Rings(config *mm2.Config, flows []mm2.FlowConfig) map[mm2.Pair]string {
	c := newChecker(config.File(), nil)
	c.config, c.aliases, c.running = config, config.Clusters(), flows
	c.hidden = newHidden(config.Entries(), nil)
	why := map[mm2.Pair]string{}
	for i := 0; i < len(flows) && c.looks > 0; i++ {
		if found := c.ring(i); found != nil && found.back {
			why[flows[i].Pair()] = c.hidden.from(found.text())
		}
	}
	return why
}

// A way is some flows, each from where the one before it ends.
type way struct {
	flows []mm2.FlowConfig
	first *branch
	names language // on the target of the last one
	tries language // of those on the target of the first one, what the second copies
	exact bool     // the names are those that they began with
}

// maxWays bounds the search for rings.
const maxWays = 100

// ring returns a ring that begins with the i-th flow, and has none in front of it:
// each is found once. nil if there is none.
func (c *checker) ring(i int) *loop {
	f := c.running[i]
	var ways []way
	for _, b := range c.branches(f) {
		ways = append(ways, way{flows: []mm2.FlowConfig{f}, first: &b, names: b.to, exact: b.by == nil})
	}
	var growing *loop
	for n := 0; n < len(ways) && n < maxWays && c.looks > 0; n++ {
		w := ways[n]
		if w.flows[len(w.flows)-1].Target == f.Source {
			found := c.closed(w)
			if found != nil && found.back {
				return found
			}
			if growing == nil {
				growing = found
			}
			continue
		}
		for _, g := range c.running[i+1:] {
			ways = append(ways, c.onwards(w, g)...)
		}
	}
	return growing
}

// onwards returns the ways that go on with a flow.
func (c *checker) onwards(w way, g mm2.FlowConfig) []way {
	last := w.flows[len(w.flows)-1]
	been := slices.ContainsFunc(w.flows, func(f mm2.FlowConfig) bool { return f.Target == g.Target })
	if g.Source != last.Target || been {
		return nil
	}
	var ways []way
	for _, b := range c.branches(g) {
		there := w.names.and(b.from)
		if names, sure := c.namesOf(there, 1); sure && names == nil {
			continue
		}
		next := way{append(slices.Clone(w.flows), g), w.first, b.to, w.tries, false}
		if len(w.flows) == 1 {
			next.tries = there
		}
		if b.by == nil {
			next.names, next.exact = there, w.exact
		}
		ways = append(ways, next)
	}
	return ways
}

// A loop is a way that leads back, with a topic that goes it.
type loop struct {
	flows []mm2.FlowConfig
	topic string
	exact bool
	back  bool // the topic would be copied back to itself; else copies get ever new names
}

// closed returns what becomes of topics on a way that ends where it began; nil if
// none is known to go round.
func (c *checker) closed(w way) *loop {
	again := w.names.and(w.first.from)
	names, sure := c.namesOf(again, candidates)
	if sure && names == nil {
		return nil
	}
	if w.exact && len(names) > 0 {
		return &loop{w.flows, names[0], true, true}
	}
	tries, _ := c.namesOf(w.first.from, candidates)
	there, _ := c.namesOf(w.tries, candidates)
	for _, name := range there {
		tries = append(tries, c.before(w.first, name)...)
	}
	var growing *loop
	for _, topic := range tries {
		switch back, on := c.walk(w.flows, topic); {
		case back:
			return &loop{w.flows, topic, false, true}
		case on && growing == nil:
			growing = &loop{w.flows, topic, false, false}
		}
	}
	return growing
}

// walk follows a topic round flows: back, if a copy of it would be where it, or a
// copy before, is already; on, if it goes on under ever new names.
func (c *checker) walk(flows []mm2.FlowConfig, topic string) (back, on bool) {
	const rounds = 3
	at := place{flows[0].Source, topic}
	been := map[place]bool{at: true}
	for i := range rounds * len(flows) {
		f := flows[i%len(flows)]
		name, ok := copiedBy(c.rules(f), at.topic)
		if !ok {
			return false, false
		}
		if at = (place{f.Target, name}); been[at] {
			return true, false
		}
		been[at] = true
	}
	return false, true
}

// A place is a topic of a cluster.
type place struct{ cluster, topic string }

// text says what becomes of the topic.
func (l *loop) text() string {
	var names []string
	for _, g := range l.flows {
		names = append(names, g.String())
	}
	text := strings.Join(names, " and ")
	switch f := l.flows[0]; {
	case l.exact:
		return text + " keep names: each would copy what the one before it wrote" + such(l.topic)
	case l.back:
		return text + fmt.Sprintf(" lead back: %s of %s would be copied back to where it came from", l.topic, f.Source)
	default:
		return text + fmt.Sprintf(" lead back: copies of %s of %s would be copied again and again, under ever new names", l.topic, f.Source)
	}
}

func (c *checker) ringFound(l *loop) {
	code := map[bool]string{true: "AP0502", false: "AP0512"}[l.back]
	c.once(code, policyOf(l.flows[0]), l.flows[0], l.text(), "use DefaultReplicationPolicy, or give each flow topics of its own")
}

// such names an example, unless it is one that nobody would choose: where all
// names are meant it is a letter.
func such(topic string) string {
	if len(topic) < 2 {
		return ""
	}
	return ", such as " + topic
}

// policyOf returns the setting that decides about the names of a flow's topics.
func policyOf(f mm2.FlowConfig) mm2.Setting {
	if f.IsSet(mm2.PolicyKey) {
		return f.Get(mm2.PolicyKey)
	}
	return f.Get(mm2.PolicyClassKey)
}

// fanIn reports two flows onto one cluster that do not tell their topics apart.
func (c *checker) fanIn(f, g mm2.FlowConfig) {
	if f.Target != g.Target {
		return
	}
	for _, b := range c.branches(f) {
		for _, d := range c.branches(g) {
			if one, other, name, ok := c.meet(&b, &d); ok {
				text := fmt.Sprintf("%v and %v both keep names: of topics of the same name%s, %s can have one only", f, g, such(name), f.Target)
				if b.by != nil || d.by != nil {
					text = fmt.Sprintf("%s of %s and %s of %s would both be %s on %s, which can have one only", one, f.Source, other, g.Source, name, f.Target)
				}
				c.once("AP0503", policyOf(g), g, text, "use DefaultReplicationPolicy, or give each flow topics of its own")
				return
			}
		}
	}
}

// meet returns topics of the sources of two branches that would have one name.
func (c *checker) meet(b, d *branch) (one, other, name string, ok bool) {
	names, _ := c.namesOf(b.to.and(d.to), candidates)
	for _, name := range names {
		if b.by == nil && d.by == nil {
			return name, name, name, true
		}
		before, behind := c.before(b, name), c.before(d, name)
		if len(before) > 0 && len(behind) > 0 {
			return before[0], behind[0], name, true
		}
	}
	return "", "", "", false
}

// maxLooks bounds what searches for names may cost in one file: with hundreds of flows
// and rules for names not all that could meet is looked at.
const maxLooks = 10_000

// What it costs to look for names: what has been found is cheap, a search that was
// given up dear.
const (
	costOfKnown    = 1
	costOfSearch   = 10
	costOfGivingUp = 1000
)

// namesOf is [language.names]. What was asked before is not searched for again:
// many flows have the same topics.
func (c *checker) namesOf(l language, n int) ([]string, bool) {
	if !l.known() || c.looks <= 0 {
		return nil, false
	}
	c.looks -= costOfKnown
	key := fmt.Sprint(n)
	for _, side := range [][]*automaton{l.in, l.out} {
		var texts []string
		for _, a := range side {
			texts = append(texts, a.text)
		}
		slices.Sort(texts)
		key += "\n" + strings.Join(slices.Compact(texts), "\x00")
	}
	if found, ok := c.searched[key]; ok {
		return found.names, found.sure
	}
	c.looks -= costOfSearch
	names, sure := l.names(n)
	if !sure {
		c.looks -= costOfGivingUp
	}
	c.searched[key] = searched{names, sure}
	return names, sure
}

// searched is the answer of a search.
type searched struct {
	names []string
	sure  bool
}
