package replicate

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"

	"apograph/internal/mm2"
	"apograph/ledger"
)

// Routes keeps the flows of one process apart: no two write to one topic, and
// none brings records back to where they came from, over however many clusters.
// What other processes do it cannot know. The zero value is ready for use. It is
// safe for concurrent use.
type Routes struct {
	mu   sync.Mutex      // guards into
	into map[place]route // by where it ends
}

// A place is one topic of a cluster, by the cluster's id.
type place struct{ cluster, topic string }

type route struct {
	from place
	flow *Flow
}

// take claims a route for a flow, or says why it must not be.
func (r *Routes) take(from, to place, flow *Flow) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if from == to {
		return fmt.Errorf("topic %s would be copied onto itself", from.topic)
	}
	if held, ok := r.into[to]; ok && (held.from != from || held.flow != flow) {
		return fmt.Errorf("topic %s is already the copy of %s that flow %s makes", to.topic, held.from.topic, held.flow.name())
	}
	for at, ok := r.into[from]; ok; at, ok = r.into[at.from] {
		if at.from == to {
			return fmt.Errorf("it is a copy of topic %s of cluster %s, made by flow %s, and would be copied back to it", to.topic, flow.target.alias, r.into[from].flow.name())
		}
	}
	if r.into == nil {
		r.into = map[place]route{}
	}
	r.into[to] = route{from, flow}
	return nil
}

// give gives back a flow's route to a place.
func (r *Routes) give(to place, flow *Flow) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.into[to].flow == flow {
		delete(r.into, to)
	}
}

// release gives back all routes of a flow.
func (r *Routes) release(flow *Flow) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for to, held := range r.into {
		if held.flow == flow {
			delete(r.into, to)
		}
	}
}

func (f *Flow) name() string { return f.config.Source.Alias + "->" + f.config.Target.Alias }

const routesHint = "name fewer topics, or give the copies other names by a policy; books that were begun under other names need the policy that they were begun with, or a new ledger"

// refuseRoutes stops topics that cannot be copied to where the policy has them:
// no topic can have the name, the books are about another one, or it is somebody
// else's copy. It returns why.
func (f *Flow) refuseRoutes(topics []*topic, books map[topicPartition]ledger.Pair) (refused []string) {
	booked := map[string]string{} // targets, by source
	owners := map[string]string{} // sources, by target
	for tp, pair := range books {
		booked[tp.topic], owners[pair.TargetTopic] = pair.TargetTopic, tp.topic
	}
	for _, t := range topics {
		stop := f.refuseRoute(t, booked[t.name], owners[t.target])
		if stop != nil {
			t.stop = stop
			refused = append(refused, fmt.Sprintf("topic %s cannot be copied to %s: %s", t.name, t.target, stop.detail))
		}
	}
	return refused
}

// refuseAnyRoute is refuseRoutes for a run that must not begin then.
func (f *Flow) refuseAnyRoute(topics []*topic, books map[topicPartition]ledger.Pair) error {
	refused := f.refuseRoutes(topics, books)
	if len(refused) == 0 {
		return nil
	}
	err := usageErrorf("flow %s: %s", f.name(), strings.Join(refused, "; "))
	err.hint = routesHint
	return err
}

// refuseRoute does so for one topic. The books know its copy as booked, and its
// target as the copy of owner; "" if they do not.
func (f *Flow) refuseRoute(t *topic, booked, owner string) *stopped {
	if err := mm2.CheckTopicName(t.target); err != nil {
		return &stopped{reason: StopUnavailable, detail: err.Error()}
	}
	switch {
	case f.config.Policy.IsInternal(t.target):
		return &stopped{reason: StopUnavailable, detail: "topics of that name are Kafka's own or MirrorMaker 2's"}
	case booked != "" && booked != t.target:
		return &stopped{reason: StopTargetNotEmpty, detail: fmt.Sprintf("its books are about the copy %s", booked)}
	case owner != "" && owner != t.name:
		return &stopped{reason: StopTargetNotEmpty, detail: fmt.Sprintf("the books know that as the copy of %s", owner)}
	}
	if err := f.config.Routes.take(place{f.source.id, t.name}, place{f.target.id, t.target}, f); err != nil {
		return &stopped{reason: StopTargetNotEmpty, detail: err.Error()}
	}
	return nil
}

// leaveOwnCopies leaves out what the flow itself makes of other topics, where
// source and target are one cluster: else each look would find more to copy.
func (f *Flow) leaveOwnCopies(found map[string]*topic) {
	f.looped = map[string]string{}
	if f.source.id != f.target.id {
		return
	}
	for name, t := range found {
		if t.target != name && found[t.target] != nil {
			f.looped[t.target] = name
		}
	}
	for name := range f.looped {
		delete(found, name)
	}
}

// explain says by which rule a topic is copied, or is not.
func (f *Flow) explain(name string) (rule string, in bool) {
	if of, looped := f.looped[name]; looped {
		return "it is the copy that this flow makes of " + of, false
	}
	return f.rules.Explain(name)
}

// CheckFlows finds out whether flows can begin beside one another, and writes
// nothing. The error joins one of each flow at most, which is what [Start] with
// [Config.Routes] would say when the flows before it are at work already; and it
// says which two aliases are one cluster.
func CheckFlows(ctx context.Context, configs []Config) error {
	routes := &Routes{}
	ids := map[string]string{} // aliases by cluster id
	var errs []error
	for _, config := range configs {
		config.Routes, config.Logger = routes, nil
		f, err := newFlow(ctx, config)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		errs = append(errs, f.check(ids))
		f.cancel(nil)
		f.disconnect()
	}
	return errors.Join(errs...)
}

// check does what prepare does before it writes.
func (f *Flow) check(ids map[string]string) error {
	if err := f.openLedgerIfExists(); err != nil {
		return err
	}
	if err := f.connect(); err != nil {
		return err
	}
	for _, c := range []*cluster{f.source, f.target} {
		if alias, ok := ids[c.id]; ok && alias != c.alias && !f.config.AllowSameCluster {
			return usageErrorf("%s and %s are the same cluster (id %s)", alias, c.alias, c.id)
		}
		ids[c.id] = cmp.Or(ids[c.id], c.alias)
	}
	if err := f.checkIdentity(); err != nil {
		return err
	}
	f.loadOrders()
	_, _, err := f.firstLook()
	return err
}
