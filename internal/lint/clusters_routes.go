package lint

import (
	"fmt"
	"slices"

	"apograph/internal/mm2"
)

// sameClusters reports aliases of one cluster, of one flow or of several: topics
// that two flows bring there are topics of one cluster.
func (c *checker) sameClusters(facts Facts) {
	first := map[string]string{} // aliases, by cluster id
	for _, alias := range c.aliases {
		about := facts.Clusters[alias]
		if about == nil || about.ID == "" {
			continue
		}
		other, seen := first[about.ID]
		if !seen {
			first[about.ID] = alias
			continue
		}
		at, key := c.addresses(alias)
		for _, f := range c.running {
			if f.Source == alias && f.Target == other || f.Source == other && f.Target == alias {
				origin := f.Get("enabled").Origin
				at, key = origin.At, origin.Key
			}
		}
		c.single("AP0706", at, key, fmt.Sprintf("%s and %s are one cluster, with the id %s", other, alias, about.ID), "correct the addresses of one of them")
	}
}

// A route is how a topic comes to its place.
type route struct {
	from place
	flow mm2.FlowConfig
	hops int // from where records are written by others
}

// routes follows the topics of all clusters through all flows, copies of copies
// among them, as far as the clusters are known.
type routes struct {
	c     *checker
	key   map[string]string // of an alias: the id of its cluster, as far as it is known
	flows []mm2.FlowConfig
	into  map[place]route
	queue []place
	clash map[[2]mm2.Pair]*clash // by the flows that bring topics together
	order [][2]mm2.Pair
}

// A clash is the first topic that two flows bring together, and how many more.
type clash struct {
	flow    mm2.FlowConfig
	message string
	more    int
}

// maxRoutes bounds what is followed.
const maxRoutes = 100_000

// collisions reports topics that would have the same name on a target, or would be
// copied back to where they came from.
func (c *checker) collisions(facts Facts) {
	if slices.ContainsFunc(c.findings, func(f Finding) bool { return f.Code == "AP0706" }) {
		return // which topics come together shows when the addresses are right
	}
	r := &routes{c: c, key: map[string]string{}, into: map[place]route{}, clash: map[[2]mm2.Pair]*clash{}}
	seen := map[place]bool{}
	for _, f := range c.running {
		for _, alias := range []string{f.Source, f.Target} {
			r.key[alias] = alias
			if about := facts.Clusters[alias]; about != nil && about.ID != "" {
				r.key[alias] = about.ID
			}
		}
		if about := facts.Clusters[f.Source]; about != nil && r.key[f.Source] != r.key[f.Target] {
			r.flows = append(r.flows, f)
			for _, name := range about.visible() {
				if p := (place{r.key[f.Source], name}); !seen[p] {
					seen[p] = true
					r.queue = append(r.queue, p)
				}
			}
		}
	}
	for n := 0; n < len(r.queue) && n < maxRoutes; n++ {
		r.follow(r.queue[n], seen)
	}
	for _, pair := range r.order {
		r.report(r.clash[pair])
	}
}

// follow takes the routes of one topic.
func (r *routes) follow(from place, seen map[place]bool) {
	for _, f := range r.flows {
		if r.key[f.Source] != from.cluster {
			continue
		}
		name, ok := copiedBy(r.c.rules(f), from.topic)
		hops := r.into[from].hops + 1
		if !ok || hops > 2*len(r.flows) {
			continue // rules that give ever new names have a code of their own
		}
		to := place{r.key[f.Target], name}
		if r.refuses(f, from, to) {
			continue
		}
		r.into[to] = route{from, f, hops}
		if !seen[to] {
			seen[to] = true
			r.queue = append(r.queue, to)
		}
	}
}

// refuses reports whether a topic cannot be copied there, and keeps why.
func (r *routes) refuses(f mm2.FlowConfig, from, to place) bool {
	held, taken := r.into[to]
	if taken && held.from != from {
		text := fmt.Sprintf("%s of %s and %s of %s would both be %s on %s", held.from.topic, held.flow.Source, from.topic, f.Source, to.topic, f.Target)
		if held.flow.Pair() == f.Pair() {
			text = fmt.Sprintf("%s and %s of %s would both be %s on %s", held.from.topic, from.topic, f.Source, to.topic, f.Target)
		}
		r.found(held.flow, f, text)
		return true
	}
	for at, ok := r.into[from]; ok; at, ok = r.into[at.from] {
		if at.from == to {
			if !slices.ContainsFunc(r.c.findings, func(x Finding) bool { return x.Code == "AP0502" }) {
				r.found(r.into[from].flow, f, fmt.Sprintf("%s of %s is a copy of %s of %s, and would be copied back to it", from.topic, f.Source, to.topic, f.Target))
			}
			return true
		}
	}
	return false
}

func (r *routes) found(f, g mm2.FlowConfig, text string) {
	pair := [2]mm2.Pair{f.Pair(), g.Pair()}
	if known := r.clash[pair]; known != nil {
		known.more++
		return
	}
	r.clash[pair] = &clash{flow: g, message: text}
	r.order = append(r.order, pair)
}

// report adds a finding; what the patterns alone say of the same it stands for.
func (r *routes) report(x *clash) {
	at := policyOf(x.flow).Origin
	if at.At.IsZero() {
		at = x.flow.Get("enabled").Origin
	}
	if x.more > 0 {
		x.message += fmt.Sprintf("; so it is with %s", counted(x.more, "more topic"))
	}
	r.c.findings = slices.DeleteFunc(r.c.findings, func(f Finding) bool {
		return f.Line == at.At.Line && f.Column == at.At.Column && f.Code == "AP0503"
	})
	r.c.add("AP0709", at.At, at.Key, x.message, "exclude one of them")
}
