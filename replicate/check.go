package replicate

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"apograph/internal/mm2"
	"apograph/ledger"
)

// CheckFlows finds out whether flows can begin beside one another, and writes
// nothing. It returns one error for each, nil where nothing is to be said: what
// [Start] with the same [Config.Routes] would say, and which two aliases are one
// cluster.
//
// The routes of all topics that have a book come first, then all others together.
// What clashes stops alone where the flows have begun already; as long as none has
// a book, nothing of any is to be begun, and neither is what [Routes.Foresee] was told
// of. All share the Routes of the first, or get
// new ones; what these knew is forgotten, so that none may be at work yet. What the
// flows hold and want then stays there for Start and [MakePlan].
//
// books are the flows' ledgers, nil for one that has none yet; they are only read.
// Without books each flow opens its own.
func CheckFlows(ctx context.Context, configs []Config, books []*ledger.Ledger) []error {
	flows, errs := make([]*Flow, len(configs)), make([]error, len(configs))
	routes := &Routes{}
	if len(configs) > 0 && configs[0].Routes != nil {
		routes = configs[0].Routes
		routes.forget()
	}
	for i, config := range configs {
		config.Routes, config.Logger = routes, nil
		if flows[i], errs[i] = newFlow(ctx, config); errs[i] != nil {
			continue
		}
		defer flows[i].Close()
		defer flows[i].cancel(nil)
		if books == nil {
			errs[i] = flows[i].openLedgerIfExists()
		} else {
			flows[i].ledger = books[i]
			defer func() { flows[i].ledger = nil }() // the caller's
		}
		flows[i].holdBooks() // whether its clusters can be reached or not
	}
	looks := make([]look, len(configs))
	for i, f := range flows {
		if errs[i] == nil {
			looks[i], errs[i] = f.firstLook()
		}
	}
	routes.settle()
	for i, f := range flows {
		if errs[i] == nil {
			errs[i] = f.mayBegin(looks[i])
		}
	}
	for i, f := range flows {
		if f != nil {
			if err := routes.foresight(f.name()); err != nil && (!refusal(errs[i]) || errors.Is(errs[i], ErrNoTopics)) {
				errs[i] = err
			}
			errs[i] = f.naming(errs[i])
		}
	}
	return errs
}

func (f *Flow) name() string { return flowName(f.config) }

func flowName(c Config) string { return c.Source.Alias + "->" + c.Target.Alias }

// naming says of a refusal which flow it is about.
func (f *Flow) naming(err error) error { return named(f.config, err) }

func named(c Config, err error) error {
	switch e := err.(type) {
	case *UsageError:
		return &UsageError{Err: fmt.Errorf("flow %s: %w", flowName(c), e.Err), hint: e.hint}
	case *RefusedError:
		return &RefusedError{fmt.Errorf("flow %s: %w", flowName(c), e.Err)}
	}
	return err
}

// A look is what a flow finds when it first looks at its clusters.
type look struct {
	topics []*topic
	books  map[topicPartition]ledger.Pair
	wrong  []string // why topics cannot be copied whatever other flows do
}

// firstLook dials both clusters and finds out what there is to do. It writes
// nothing anywhere, and asks for the routes of the topics.
func (f *Flow) firstLook() (look, error) {
	if err := f.connect(); err != nil {
		return look{}, err
	}
	if err := f.checkIdentity(); err != nil {
		return look{}, err
	}
	f.loadOrders()
	l := look{books: f.openBooks()}
	if err := f.matchFirst(l.books); err != nil {
		return look{}, err
	}
	l.topics = sortedTopics(f.topics)
	if err := f.inspect(l.topics); err != nil {
		return look{}, err
	}
	l.wrong = f.askRoutes(l.topics, l.books)
	return l, nil
}

// mayBegin says why a flow must not begin, once it is settled which routes it has.
func (f *Flow) mayBegin(l look) error {
	if err := f.mayHaveRoutes(l); err != nil {
		return err
	}
	if err := f.refuseStrangers(l.topics, l.books); err != nil {
		return err
	}
	return f.checkStarts(l.topics)
}

// mayHaveRoutes says why a flow must not begin with the names that its topics get.
func (f *Flow) mayHaveRoutes(l look) error {
	clashes, all := f.refuseClashes(l.topics, l.books)
	if all {
		l.wrong = append(l.wrong, clashes...)
	}
	if len(l.wrong) == 0 {
		return nil
	}
	err := usageErrorf("%s", someOf(l.wrong))
	err.hint = routesHint
	return err
}

const routesHint = "name fewer topics, leave a topic out of one of the flows that are named, or give the copies other names by a policy; books that were begun under other names need the policy that they were begun with, or a new ledger"

// someOf joins the first of many reasons.
func someOf(reasons []string) string {
	const most = 10
	if n := len(reasons); n > most {
		reasons = append(reasons[:most:most], fmt.Sprintf("and %d more", n-most))
	}
	return strings.Join(reasons, "; ")
}

// holdBooks holds the routes of the topics that the ledger has a book about and the
// flow still is to copy, by what the ledger says: no cluster is asked.
func (f *Flow) holdBooks() {
	if f.ledger == nil {
		return
	}
	id := f.ledger.Identity()
	for _, p := range f.openBooks() {
		if _, ok := f.rules.Match(p.SourceTopic); ok {
			f.config.Routes.hold(route{place{id.SourceClusterID, p.SourceTopic}, place{id.TargetClusterID, p.TargetTopic}, f.name()})
		}
	}
}

func (f *Flow) routeOf(t *topic) route {
	return route{place{f.source.id, t.name}, place{f.target.id, t.target}, f.name()}
}

// bookedTargets returns the names of the copies of topics with a book, by source,
// and the other way round.
func bookedTargets(books map[topicPartition]ledger.Pair) (booked, owners map[string]string) {
	booked, owners = map[string]string{}, map[string]string{}
	for tp, pair := range books {
		booked[tp.topic], owners[pair.TargetTopic] = pair.TargetTopic, tp.topic
	}
	return booked, owners
}

// askRoutes asks for the routes of topics, and stops those that can have none: no
// topic can have the name, or the books are about another one. It returns why.
func (f *Flow) askRoutes(topics []*topic, books map[topicPartition]ledger.Pair) (wrong []string) {
	booked, owners := bookedTargets(books)
	for _, t := range topics {
		if t.stop = f.refuseName(t, booked[t.name], owners[t.target]); t.stop != nil {
			wrong = append(wrong, fmt.Sprintf("topic %s cannot be copied to %s: %s", t.name, t.target, t.stop.detail))
			continue
		}
		f.config.Routes.want(f.routeOf(t)) // that of a book is held, if it may be
	}
	return wrong
}

// refuseName says why a topic cannot be copied under the name that the policy gives
// it. The books know its copy as booked, and its target as the copy of owner; "" if
// they do not.
func (f *Flow) refuseName(t *topic, booked, owner string) *stopped {
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
	return nil
}

// refuseClashes stops topics that did not get their routes. It returns why, and
// whether nothing may be begun because of them: as long as no flow has a book, or
// where two topics that have one clash.
func (f *Flow) refuseClashes(topics []*topic, books map[topicPartition]ledger.Pair) (clashes []string, all bool) {
	booked, _ := bookedTargets(books)
	all = !f.config.Routes.hasBegun()
	for _, t := range topics {
		if t.stop != nil {
			continue
		}
		if why := f.config.Routes.refusal(f.routeOf(t)); why != "" {
			t.stop = &stopped{reason: StopTargetNotEmpty, detail: why}
			clashes, all = append(clashes, why), all || booked[t.name] != ""
		}
	}
	return clashes, all
}

// refuseRoutes stops, while the flow runs, topics that cannot be copied to where the
// policy has them.
func (f *Flow) refuseRoutes(topics []*topic, books map[topicPartition]ledger.Pair) {
	f.askRoutes(topics, books)
	f.config.Routes.settle()
	f.refuseClashes(topics, books)
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

// refusal reports whether an error is one because of which a flow must not begin.
func refusal(err error) bool {
	var usage *UsageError
	var refused *RefusedError
	return errors.As(err, &usage) || errors.As(err, &refused)
}
