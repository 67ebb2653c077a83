package replicate

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"

	"apograph/internal/mm2"
	"apograph/ledger"
)

// lockTimeout is how long to wait for the ledger: whoever only reads it is gone
// by then, another copier is not.
const lockTimeout = 2 * time.Second

// openLedgerIfExists opens the flow's ledger first: if another instance holds
// it, or it is damaged, nothing else is worth doing.
func (f *Flow) openLedgerIfExists() error {
	l, err := ledger.Open(f.config.LedgerPath, ledger.Options{Now: f.config.Now, LockTimeout: lockTimeout})
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	f.ledger = l
	return err
}

// checkIdentity refuses a ledger of another flow, and a flow from a cluster to
// itself.
func (f *Flow) checkIdentity() error {
	for _, c := range []*cluster{f.source, f.target} {
		if alias := f.config.Routes.alias(c.id, c.alias); alias != c.alias && !f.config.AllowSameCluster {
			return usageErrorf("%s and %s are the same cluster (id %s)", alias, c.alias, c.id)
		}
	}
	if f.source.id == f.target.id && !f.config.AllowSameCluster {
		return usageErrorf("source and target are the same cluster (id %s)", f.source.id)
	}
	if f.ledger == nil {
		return nil
	}
	if scope := f.ledger.Scope(); len(scope.Topics) > 0 {
		if former, err := mm2.ParseSelection(scope.Topics, scope.TopicsExclude); err == nil {
			f.former = &former
		}
	}
	id := f.ledger.Identity()
	for _, x := range []struct{ what, ledger, flow string }{
		{"source alias", id.SourceAlias, f.source.alias},
		{"target alias", id.TargetAlias, f.target.alias},
		{"source cluster id", id.SourceClusterID, f.source.id},
		{"target cluster id", id.TargetClusterID, f.target.id},
	} {
		if x.ledger != x.flow {
			return usageErrorf("ledger %s belongs to another flow: its %s is %s, this flow's is %s", f.config.LedgerPath, x.what, x.ledger, x.flow)
		}
	}
	return nil
}

// wasInScope reports whether the run before was to copy a topic.
func (f *Flow) wasInScope(name string) bool {
	if f.former == nil {
		return false
	}
	_, in := f.former.Match(name)
	return in
}

// createLedger makes a new ledger, now that the flow is known to be able to run.
func (f *Flow) createLedger() error {
	if f.ledger == nil {
		l, err := ledger.Create(f.config.LedgerPath, ledger.Identity{
			SourceAlias: f.source.alias, TargetAlias: f.target.alias,
			SourceClusterID: f.source.id, TargetClusterID: f.target.id,
		}, ledger.Options{Now: f.config.Now})
		if err != nil {
			return err
		}
		f.ledger = l
	}
	return f.ledger.SetScope(f.scope())
}

// scope says which topics the flow is started with, in lists alone: who reads the
// ledger knows no policy.
func (f *Flow) scope() ledger.Scope {
	include, exclude := f.rules.Lists()
	return ledger.Scope{
		Topics: slices.Concat(f.config.Topics, include), TopicsExclude: slices.Concat(f.config.TopicsExclude, exclude),
	}
}

// A candidate is a source partition of the flow that is not at work yet.
type candidate struct {
	topic  *topic
	number int32
	pair   ledger.Pair // ID 0: it has none

	bounds       *bounds  // of the source; nil unknown
	logEnd       *int64   // of the target; nil unknown
	firstSight   bool     // below the log start is out of scope
	opened       bool     // its pair is new
	caughtTarget bool     // see partition.caughtTarget
	counts       counts   // of the generation before, in this run
	stop         *stopped // it cannot begin
}

func (c *candidate) source() topicPartition { return topicPartition{c.topic.name, c.number} }
func (c *candidate) target() topicPartition { return topicPartition{c.topic.target, c.number} }

func (c *candidate) fail(where string, tp topicPartition, err error) {
	c.stop = &stopped{reason: reasonOf(err), detail: fmt.Sprintf("%s %v: %v", where, tp, err)}
}

// candidates returns the partitions of topics, from what the source has and
// what the ledger knows, that are not at work.
func (f *Flow) candidates(topics []*topic, books map[topicPartition]ledger.Pair) []*candidate {
	numbers := map[string]map[int32]bool{}
	for tp := range books {
		if numbers[tp.topic] == nil {
			numbers[tp.topic] = map[int32]bool{}
		}
		numbers[tp.topic][tp.partition] = true
	}
	var all []*candidate
	for _, t := range topics {
		if numbers[t.name] == nil {
			numbers[t.name] = map[int32]bool{}
		}
		if !t.recreated {
			for i := range t.source.leaders {
				numbers[t.name][int32(i)] = true
			}
		}
		if len(numbers[t.name]) == 0 && t.source.err != nil {
			f.blockTopic(t) // metadata has nothing but an error
		}
		for number := range numbers[t.name] {
			c := &candidate{topic: t, number: number, pair: books[topicPartition{t.name, number}]}
			if c.stop = t.stop; c.stop == nil && c.pair.ID == 0 {
				c.stop = t.growth
			}
			if !f.atWork(c.source()) {
				all = append(all, c)
			}
		}
	}
	slices.SortFunc(all, func(a, b *candidate) int {
		return cmp.Or(cmp.Compare(a.topic.name, b.topic.name), cmp.Compare(a.number, b.number))
	})
	return all
}

// blockTopic notes that the source does not tell of a topic's partitions.
func (f *Flow) blockTopic(t *topic) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.block(topicPartition{t.name, 0}, &stopped{reason: reasonOf(t.source.err), detail: fmt.Sprintf("source topic %s: %v", t.name, t.source.err)})
}

// openPairs gives a pair to those candidates that have none, durably and before
// anything is produced: what is found on the target later can then be told from
// what others wrote.
func (f *Flow) openPairs(all []*candidate) error {
	f.learnBounds(all)
	f.learnTargetEnds(all)
	fresh := slices.DeleteFunc(slices.Clone(all), func(c *candidate) bool {
		return c.pair.ID != 0 || c.stop != nil || c.bounds == nil || c.logEnd == nil
	})
	past, closed := f.pastBooks(), f.closedEnds()
	for _, c := range fresh {
		if c.topic.justMade && *c.logEnd > 0 { // it was there a moment earlier than we thought
			c.stop = &stopped{reason: StopTargetNotEmpty, detail: fmt.Sprintf("%v has just been made, and holds offsets up to %d", c.target(), *c.logEnd)}
		}
		if end := closed[closedTarget{c.target(), c.topic.destination.id}]; *c.logEnd < end {
			f.config.Logger.Warn("the target has lost records of a partition that left the flow and is back; verify names them",
				"partition", c.target().String(), "log_end", *c.logEnd, "books_end", end)
		}
		c.firstSight = past.firstSight(c)
		c.pair = ledger.Pair{
			SourceTopic: c.topic.name, SourceTopicID: c.topic.source.id,
			TargetTopic: c.topic.target, TargetTopicID: c.topic.destination.id, Partition: c.number,
			TargetBase: *c.logEnd,
		}
	}
	if err := f.resolveStarts(fresh); err != nil {
		return err
	}
	fresh = slices.DeleteFunc(fresh, func(c *candidate) bool { return c.stop != nil })
	if len(fresh) == 0 {
		return nil
	}
	id, epoch, err := f.target.initProducer(f.ctx)
	if code := codeOf(err); code == kerr.ClusterAuthorizationFailed || code == kerr.TopicAuthorizationFailed {
		for _, c := range fresh {
			c.stop = &stopped{reason: StopNotAuthorized, detail: "WRITE on the target topic is needed"}
		}
		return nil
	}
	if err != nil {
		return err
	}
	return f.openFresh(fresh, ledger.Producer{ID: id, Epoch: epoch})
}

// pastBooks are the partitions that have a book, open or closed.
type pastBooks map[topicPartition]bool

func (f *Flow) pastBooks() pastBooks {
	past := pastBooks{}
	if f.ledger != nil {
		for _, p := range f.ledger.Pairs() {
			past[topicPartition{p.SourceTopic, p.Partition}] = true
		}
	}
	return past
}

// firstSight reports whether a partition without an open book existed before the
// flow was to copy its topic. One that has a book that is closed left the flow, and
// is back: it was added since.
func (past pastBooks) firstSight(c *candidate) bool {
	return c.number < c.topic.existed && !past[c.source()]
}

// openFresh opens pairs. All share one producer id that nobody used before:
// sequence numbers count per partition.
func (f *Flow) openFresh(fresh []*candidate, producer ledger.Producer) error {
	pairs := make([]ledger.Pair, len(fresh))
	for i, c := range fresh {
		c.pair.Producer = producer
		pairs[i] = c.pair
	}
	ids, err := f.ledger.OpenPairs(pairs)
	if err != nil {
		return f.fail(fmt.Errorf("open pairs: %w", err))
	}
	for i, c := range fresh {
		c.pair, _ = f.ledger.Pair(ids[i])
		c.opened = true
	}
	return nil
}

// patience bounds how long all partitions wait for the answers about one. A run
// without an end asks again about those later.
func (f *Flow) patience() (context.Context, context.CancelFunc) {
	limit := min(f.config.UnavailableAfter, 30*time.Second)
	if !f.config.Once {
		limit = min(limit, 5*time.Second)
	}
	return context.WithTimeout(f.ctx, limit)
}

// learnBounds asks the source for the bounds of every candidate. With an end to
// the run that is the high watermark that a partition has now.
func (f *Flow) learnBounds(all []*candidate) {
	var asked []*candidate
	var tps []topicPartition
	for _, c := range all {
		if c.stop == nil && c.topic.source.err == nil && !c.topic.recreated && int(c.number) < len(c.topic.source.leaders) {
			asked, tps = append(asked, c), append(tps, c.source())
		}
	}
	found := f.sourceBounds(tps)
	for _, c := range asked {
		switch b := found[c.source()]; {
		case b.err != nil:
			c.fail("source", c.source(), b.err)
		default:
			c.bounds = &b.bounds
		}
	}
}

// seenBounds are the bounds of a source partition, or why they are not known.
type seenBounds struct {
	bounds
	err error
}

// sourceBounds asks the source for the bounds of partitions.
func (f *Flow) sourceBounds(tps []topicPartition) map[topicPartition]seenBounds {
	ctx, cancel := f.patience()
	defer cancel()
	all := f.source.listAll(ctx, tps,
		offsetQuery{replica: -1, timestamp: earliestOffset},
		offsetQuery{replica: -1, timestamp: latestOffset, isolation: 1},
		offsetQuery{replica: -1, timestamp: latestOffset})
	starts, stables, highs := all[0], all[1], all[2]
	found := make(map[topicPartition]seenBounds, len(tps))
	for _, tp := range tps {
		start, stable, high := starts[tp], stables[tp], highs[tp]
		found[tp] = seenBounds{bounds{start.offset, stable.offset, high.offset}, cmp.Or(start.err, stable.err, high.err)}
	}
	return found
}

// learnTargetEnds asks the target for the log end of every candidate.
func (f *Flow) learnTargetEnds(all []*candidate) {
	asked := map[topicPartition]*candidate{}
	for _, c := range all {
		if c.stop == nil && c.topic.destination.err == nil {
			asked[c.target()] = c
		}
	}
	ctx, cancel := f.patience()
	defer cancel()
	for tp, end := range f.target.logEnds(ctx, slices.Collect(maps.Keys(asked))) {
		if c := asked[tp]; end.err == nil {
			c.logEnd = &end.offset
		} else {
			c.fail("target", tp, end.err)
		}
	}
}

// newPartition makes the partition that a candidate becomes.
func (f *Flow) newPartition(c *candidate) *partition {
	state := f.ledger.State(c.pair.ID)
	p := &partition{
		flow: f, topic: c.topic, pair: c.pair, source: c.source(), target: c.target(),
		producer: c.pair.Producer, renew: c.pair.Producer.ID == noProducer, counts: c.counts, end: -1, first: c.bounds, logEnd: c.logEnd, doom: c.stop,
	}
	p.caughtTarget = c.caughtTarget
	if f.config.Once && c.bounds != nil {
		p.end = c.bounds.highWatermark
	}
	if !f.config.Once && p.doom != nil && p.doom.reason == StopUnavailable {
		p.doom = nil // it asks again by itself
	}
	if c.opened {
		p.counts.tiles[ledger.BeforeStart] += c.pair.ScopeStart // booked with the opening
	}
	p.asm = assembler{
		firstSight: c.firstSight, compactSeen: state.CompactSeen, lastKnown: max(state.SeenMillis, 0),
		logStart: func() (int64, error) { start, _, err := f.sourceRange(p.source); return start, err },
		loss:     p.lossCause,
	}
	p.fresh.caughtUp = state.CaughtUpMillis
	p.position.Store(f.ledger.End(c.pair.ID).Source)
	if c.bounds != nil {
		p.stable.Store(c.bounds.lastStable)
	}
	p.learn(c.topic.facts.Load().traits())
	p.recall()
	return p
}

// learn takes over what the topic's settings say now. A topic that compacted
// once leaves the holes for ever.
func (p *partition) learn(t traits) {
	a := &p.asm
	a.compactSeen = a.compactSeen || a.compactPolicy
	p.hollow = t.local
	p.deletion, p.tombstones = t.deletion, t.tombstones
	a.timestampsReplaced, a.compactPolicy, a.joinLimit = t.timestampsReplaced, t.compacts, t.joinLimit
}

// checkSources stops partitions whose source topic is gone. It runs after each
// refresh of the source's metadata.
func (f *Flow) checkSources() {
	for _, p := range f.all() {
		if stop := p.sourceGone(); stop != nil && p.status().phase == phaseCopy {
			p.post(event{stop: stop})
		}
	}
}

// tellTraits tells the partitions of topics what has changed of their settings.
func (f *Flow) tellTraits(topics []*topic) {
	changed := map[*topic]*traits{}
	for _, t := range topics {
		if now := t.facts.Load().traits(); now != t.told {
			t.told = now
			changed[t] = &now
		}
	}
	if len(changed) == 0 {
		return
	}
	for _, p := range f.all() {
		if now := changed[p.topic]; now != nil {
			p.post(event{traits: now})
		}
	}
}
