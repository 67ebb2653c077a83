package replicate

import (
	"cmp"
	"fmt"
	"slices"
	"sync"
)

// Routes keeps the flows of one process apart: no two write to one topic, and
// none brings records back to where they came from, over however many clusters.
// What other processes do it cannot know. The zero value is ready for use. It is
// safe for concurrent use.
//
// A topic that has a book holds its route, in whatever order flows ask. Another
// one gets its route if that clashes with none that is held, and with none that is
// wanted at the same time; of those that clash with one another none gets it, as
// nothing tells which was meant. So which one it is never depends on the order of
// flows. Routes are a flow's by its name, and outlive its runs: what keeps its topic
// does so until the topic is gone.
type Routes struct {
	mu      sync.Mutex        // guards what follows
	held    map[place]route   // by where they end; there is no cycle in them
	wanted  map[place][]route // by where they end; none of them is held
	aliases map[string]string // of clusters, by id: the first that was told
	begun   bool              // a flow has a book, or is at work

	foreseen map[string]string // see Foresee, by flow
}

// Foresee tells why a flow, as source->target, must not begin beside the others
// whatever topics there are: [CheckFlows] refuses it as long as no flow has a book.
func (r *Routes) Foresee(flow, why string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.foreseen == nil {
		r.foreseen = map[string]string{}
	}
	r.foreseen[flow] = why
}

// foresight returns what [Routes.Foresee] was told of a flow, if that still counts.
func (r *Routes) foresight(flow string) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if why := r.foreseen[flow]; why != "" && !r.begun {
		err := usageErrorf("%s", why)
		err.hint = "give each flow topics of its own, or the copies other names by a policy; or begin each flow by itself, and each topic keeps the way that it went first"
		return err
	}
	return nil
}

// A place is one topic of a cluster, by the cluster's id.
type place struct{ cluster, topic string }

// A route is the way of one topic's records.
type route struct {
	from, to place
	flow     string // the name of the flow that makes the copy
}

// alias tells how a flow calls a cluster, and returns what another one calls it,
// if that was told before; else the same.
func (r *Routes) alias(id, alias string) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.aliases == nil {
		r.aliases = map[string]string{}
	}
	r.aliases[id] = cmp.Or(r.aliases[id], alias)
	return r.aliases[id]
}

// begin says that a flow is at work.
func (r *Routes) begin() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.begun = true
}

func (r *Routes) hasBegun() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.begun
}

// hold claims the route of a topic that has a book. Where it clashes with one that
// is held, it is not held; see refusal.
func (r *Routes) hold(w route) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.begun = true
	if r.clash(w) == "" {
		r.keep(w)
	}
}

// keep makes a route one that is held. r.mu is held.
func (r *Routes) keep(w route) {
	if r.held == nil {
		r.held = map[place]route{}
	}
	r.held[w.to] = w
	r.drop(w.to, func(other route) bool { return other == w })
}

// want asks for the route of a topic without a book; settle decides.
func (r *Routes) want(w route) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.held[w.to] == w || slices.Contains(r.wanted[w.to], w) {
		return
	}
	if r.wanted == nil {
		r.wanted = map[place][]route{}
	}
	r.wanted[w.to] = append(r.wanted[w.to], w)
}

// settle gives the routes that are wanted and clash with nothing.
func (r *Routes) settle() {
	r.mu.Lock()
	defer r.mu.Unlock()
	single := map[place]route{}
	for to, all := range r.wanted {
		if _, taken := r.held[to]; !taken && len(all) == 1 {
			single[to] = all[0]
		}
	}
	for _, w := range single {
		if !r.returns(w, single) { // of all, so that it does not matter which comes first
			r.keep(w)
		}
	}
}

// returns reports whether records that a route brings to its end have come from
// there, by routes that are held and by more. r.mu is held.
func (r *Routes) returns(w route, more map[place]route) bool {
	at := w.from
	for range len(r.held) + len(more) + 1 { // a cycle that leads past w is not its own
		if at == w.to {
			return true
		}
		before, ok := r.held[at]
		if !ok {
			before, ok = more[at]
		}
		if !ok {
			return false
		}
		at = before.from
	}
	return false
}

// clash says what of that which is held a route clashes with; "" if nothing. r.mu
// is held.
func (r *Routes) clash(w route) string {
	other, taken := r.held[w.to]
	switch {
	case w.from == w.to:
		return fmt.Sprintf("flow %s would copy topic %s onto itself", w.flow, w.from.topic)
	case taken && other != w:
		return fmt.Sprintf("flow %s would copy topic %s to %s, to which flow %s copies topic %s", w.flow, w.from.topic, r.name(w.to), other.flow, other.from.topic)
	case r.returns(w, nil):
		return fmt.Sprintf("flow %s would copy topic %s back to %s, whose copy it is, made by flow %s", w.flow, w.from.topic, r.name(w.to), r.held[w.from].flow)
	}
	return ""
}

// refusal says why a route that was asked for is not held; "" if it is.
func (r *Routes) refusal(w route) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.held[w.to] == w {
		return ""
	}
	if why := r.clash(w); why != "" {
		return why
	}
	for _, other := range r.wanted[w.to] {
		if other != w {
			return fmt.Sprintf("flow %s would copy topic %s to %s, and flow %s topic %s as well; neither has a book", w.flow, w.from.topic, r.name(w.to), other.flow, other.from.topic)
		}
	}
	before := r.held[w.from]
	if all := r.wanted[w.from]; before.flow == "" && len(all) > 0 {
		before = all[0]
	}
	return fmt.Sprintf("flow %s would copy topic %s back to %s, whose copy it would be, made by flow %s; neither has a book", w.flow, w.from.topic, r.name(w.to), before.flow)
}

// name names a place to a person. r.mu is held.
func (r *Routes) name(p place) string {
	return fmt.Sprintf("topic %s of cluster %s", p.topic, cmp.Or(r.aliases[p.cluster], p.cluster))
}

// give gives back a flow's route to a place.
func (r *Routes) give(to place, flow string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.held[to].flow == flow {
		delete(r.held, to)
	}
	r.drop(to, func(w route) bool { return w.flow == flow })
}

// drop forgets routes that are wanted to one place. r.mu is held.
func (r *Routes) drop(to place, which func(route) bool) {
	left := slices.DeleteFunc(r.wanted[to], which)
	if delete(r.wanted, to); len(left) > 0 {
		r.wanted[to] = left
	}
}

// forget gives back all routes of all flows. None of them is at work.
func (r *Routes) forget() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.held, r.wanted, r.aliases, r.begun = nil, nil, nil, false
}
