package replicate

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"

	"apograph/ledger"
)

// lockTimeout is how long to wait for the ledger: whoever only reads it is gone
// by then, another copier is not.
const lockTimeout = 2 * time.Second

// openLedgerIfExists opens the flow's ledger first: if another instance holds
// it, or it is damaged, nothing else is worth doing.
func (f *flow) openLedgerIfExists() error {
	l, err := ledger.Open(f.config.LedgerPath, ledger.Options{Now: f.config.Now, LockTimeout: lockTimeout})
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	f.ledger = l
	return err
}

// checkIdentity refuses a ledger of another flow, and a flow from a cluster to
// itself.
func (f *flow) checkIdentity() error {
	if f.source.id == f.target.id {
		return usageErrorf("source %s and target %s are the same cluster (id %s)", f.source.alias, f.target.alias, f.source.id)
	}
	if f.ledger == nil {
		return nil
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

// createLedger makes a new ledger, now that the flow is known to be able to run.
func (f *flow) createLedger() error {
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
	return f.ledger.SetScope(ledger.Scope{Topics: f.config.Topics, TopicsExclude: f.config.TopicsExclude})
}

// openPairs makes the flow's partitions. Those without a pair get one, durably
// and before anything is produced: what is found on the target later can then
// be told from what others wrote.
func (f *flow) openPairs() error {
	for _, t := range f.sortedTopics() {
		f.makePartitions(t)
	}
	if err := f.learnBounds(); err != nil {
		return err
	}
	fresh := slices.DeleteFunc(f.partitions(), func(p *partition) bool { return p.pair.ID != 0 || p.doom != nil })
	if len(fresh) == 0 {
		return nil
	}
	id, epoch, err := f.target.initProducer(f.ctx)
	if code := codeOf(err); code == kerr.ClusterAuthorizationFailed || code == kerr.TopicAuthorizationFailed {
		for _, p := range fresh {
			p.doom = &stopped{reason: StopNotAuthorized, detail: "WRITE on the target topic is needed"}
		}
		return nil
	}
	if err != nil {
		return err
	}
	return f.openFresh(fresh, ledger.Producer{ID: id, Epoch: epoch})
}

// openFresh opens pairs for partitions that have none. All share one producer
// id that nobody used before: sequence numbers count per partition.
func (f *flow) openFresh(fresh []*partition, producer ledger.Producer) error {
	var targets []topicPartition
	for _, p := range fresh {
		targets = append(targets, p.target)
	}
	bases := f.target.logEnds(f.ctx, targets)
	known := map[string]bool{}
	for _, pair := range f.ledger.Pairs() {
		known[pair.SourceTopic] = true
	}
	var pairs []ledger.Pair
	var opened []*partition
	for _, p := range fresh {
		base := bases[p.target]
		if base.err != nil {
			p.doom = &stopped{reason: f.reasonOf(base.err), detail: fmt.Sprintf("target %v: %v", p.target, base.err)}
			continue
		}
		p.pair.Producer = producer
		p.pair.TargetBase = base.offset
		if !known[p.source.topic] { // else added to a topic with a book: it starts at 0
			p.pair.ScopeStart = p.first.logStart
			p.asm.firstSight = true
		}
		pairs, opened = append(pairs, p.pair), append(opened, p)
	}
	ids, err := f.ledger.OpenPairs(pairs)
	if err != nil {
		return fmt.Errorf("open pairs: %w", err)
	}
	for i, p := range opened {
		p.pair, _ = f.ledger.Pair(ids[i])
		p.producer = p.pair.Producer
		p.counts.tiles[ledger.BeforeStart] += p.pair.ScopeStart // booked with the opening
	}
	return nil
}

// makePartitions makes a topic's partitions from what the source has and what
// the ledger knows.
func (f *flow) makePartitions(t *topic) {
	numbers := map[int32]bool{}
	for i := range t.source.leaders {
		numbers[int32(i)] = true
	}
	for _, pair := range f.openBooks() {
		if pair.SourceTopic == t.name {
			numbers[pair.Partition] = true
		}
	}
	for number := range numbers {
		t.partitions = append(t.partitions, f.makePartition(t, number))
	}
	slices.SortFunc(t.partitions, func(a, b *partition) int { return int(a.source.partition) - int(b.source.partition) })
}

func (f *flow) makePartition(t *topic, number int32) *partition {
	p := &partition{
		flow:   f,
		source: topicPartition{t.name, number},
		target: topicPartition{t.target, number},
		end:    -1,
		pair: ledger.Pair{
			SourceTopic: t.name, SourceTopicID: t.source.id,
			TargetTopic: t.target, TargetTopicID: t.destination.id, Partition: number,
		},
		doom: t.stop,
	}
	p.asm = assembler{
		timestampsReplaced: setting(t.targetSettings, "message.timestamp.type", "CreateTime") == "LogAppendTime",
		compactPolicy:      contains(setting(t.sourceSettings, "cleanup.policy", "delete"), "compact"),
		retention:          deletes(t.sourceSettings),
		joinLimit:          min(joinBytes, f.maxBatchBytes(p)),
		logStart:           func() (int64, error) { start, _, err := f.sourceRange(p.source); return start, err },
	}
	if pair, ok := f.openPair(t.name, number); ok {
		f.resumePair(t, p, pair)
	}
	return p
}

// resumePair takes up a pair that the ledger has, unless its topics are not
// those that the book is about.
func (f *flow) resumePair(t *topic, p *partition, pair ledger.Pair) {
	p.pair, p.producer = pair, pair.Producer
	state := f.ledger.State(pair.ID)
	p.asm.compactSeen = state.CompactSeen
	if state.SeenMillis > 0 {
		p.asm.lastKnown = state.SeenMillis
	}
	var none ledger.TopicID
	stop := func(reason StopReason, what string, id, now ledger.TopicID) {
		p.doom = &stopped{reason: reason, detail: fmt.Sprintf("%s topic %s has id %v, the book is about %v", what, p.source.topic, now, id)}
	}
	switch {
	case p.doom != nil:
	case t.source.gone():
		p.doom = &stopped{reason: StopTopicDeleted, detail: "topic " + t.name + " does not exist on the source any more"}
	case t.destination.gone():
		p.doom = &stopped{reason: StopTargetDeleted, detail: "topic " + t.target + " does not exist on the target any more"}
	case pair.SourceTopicID != none && t.source.id != none && pair.SourceTopicID != t.source.id:
		stop(StopTopicRecreated, "source", pair.SourceTopicID, t.source.id)
	case pair.TargetTopicID != none && t.destination.id != none && pair.TargetTopicID != t.destination.id:
		stop(StopTargetRecreated, "target", pair.TargetTopicID, t.destination.id)
	}
}

// learnBounds asks the source for the bounds of every partition. With an end to
// the run, that is the high watermark that a partition has now.
func (f *flow) learnBounds() error {
	var all []*partition
	var tps []topicPartition
	for _, p := range f.partitions() {
		if p.doom == nil {
			all, tps = append(all, p), append(tps, p.source)
		}
	}
	starts := f.source.listOffsets(f.ctx, tps, offsetQuery{replica: -1, timestamp: earliestOffset})
	stables := f.source.listOffsets(f.ctx, tps, offsetQuery{replica: -1, timestamp: latestOffset, isolation: 1})
	highs := f.source.listOffsets(f.ctx, tps, offsetQuery{replica: -1, timestamp: latestOffset})
	for _, p := range all {
		start, stable, high := starts[p.source], stables[p.source], highs[p.source]
		if err := cmp.Or(start.err, stable.err, high.err); err != nil {
			p.doom = &stopped{reason: f.reasonOf(err), detail: fmt.Sprintf("source %v: %v", p.source, err)}
			continue
		}
		p.first = &bounds{start.offset, stable.offset, high.offset}
		if f.config.Once {
			p.end = high.offset
		}
	}
	return context.Cause(f.ctx)
}
