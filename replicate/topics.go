package replicate

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"apograph/ledger"
)

// A topic is one topic of the flow. Its fields belong to the survey, which is
// the only one to change them.
type topic struct {
	name   string // on the source
	target string // on the target
	rule   string // the pattern that selected it

	source, destination topicState     // as the last survey saw them
	recreated           bool           // the source has another topic under its name
	otherTarget         bool           // so has the target, no book is about that one, and nobody has accepted it
	existed             int32          // partitions that it had before the flow was to copy it
	judged              ledger.TopicID // the source topic that existed is about
	stop                *stopped       // the whole topic cannot be copied
	growth              *stopped       // the partitions that the target lacks cannot be added

	// made are the settings of a target topic that was made just now, until they
	// are remembered.
	made     map[string]string
	justMade bool // in this survey

	facts atomic.Pointer[topicFacts]
	told  traits // to its partitions, last
}

// topicFacts are a topic's settings on both sides; nil where they cannot be
// read. They are replaced, never changed.
type topicFacts struct{ source, target settings }

// traits are what a partition's assembler has to know of its topic's settings.
type traits struct {
	timestampsReplaced bool // the target topic stamps its own time
	compacts           bool // the source topic does
	deletion           deletion
	tombstones         int64 // delete.retention.ms
	joinLimit          int   // bytes of a batch
	local              bool  // all of the source's log is known to lie on its brokers' disks
}

func (x *topicFacts) traits() traits {
	return traits{
		timestampsReplaced: x.target.stampsTimes(),
		compacts:           x.source.compacts(),
		deletion:           x.source.deletion(),
		tombstones:         x.source.integer("delete.retention.ms", 24*time.Hour.Milliseconds()),
		joinLimit:          min(joinBytes, x.target.maxBatchBytes()),
		local:              x.source != nil && x.source.get("remote.storage.enable", "false") == "false",
	}
}

func newTopic(name, target, rule string, source topicState) *topic {
	t := &topic{name: name, target: target, rule: rule, source: source}
	t.facts.Store(&topicFacts{})
	return t
}

// selected returns the topics of the source, as metadata gave them, that the
// flow copies, and those that have an open book and are gone.
func (f *Flow) selected(all map[string]topicState, books map[topicPartition]ledger.Pair) map[string]*topic {
	found := map[string]*topic{}
	for name, state := range all {
		if rule, ok := f.rules.Match(name); ok && !state.gone() {
			found[name] = newTopic(name, f.rules.Remote(name), rule, state)
		}
	}
	for _, pair := range books {
		rule, ok := f.rules.Match(pair.SourceTopic)
		if ok && found[pair.SourceTopic] == nil {
			found[pair.SourceTopic] = newTopic(pair.SourceTopic, pair.TargetTopic, rule, topicGone)
		}
	}
	f.leaveOwnCopies(found)
	names := slices.AppendSeq(slices.Collect(maps.Keys(all)), maps.Keys(found))
	for _, pattern := range f.rules.Include.Unmatched(names) {
		f.warnOnce("pattern "+pattern, "pattern matches no topic that the user of the cluster is allowed to see", "cluster", f.source.alias, "pattern", pattern)
	}
	return found
}

// openBooks returns the ledger's open pairs by source partition.
func (f *Flow) openBooks() map[topicPartition]ledger.Pair {
	books := map[topicPartition]ledger.Pair{}
	if f.ledger == nil {
		return books
	}
	for _, p := range f.ledger.Pairs() {
		if p.Closed == nil {
			books[topicPartition{p.SourceTopic, p.Partition}] = p
		}
	}
	return books
}

// sortedTopics returns topics by name.
func sortedTopics(byName map[string]*topic) []*topic {
	topics := make([]*topic, 0, len(byName))
	for _, t := range byName {
		topics = append(topics, t)
	}
	slices.SortFunc(topics, func(a, b *topic) int { return strings.Compare(a.name, b.name) })
	return topics
}

// inspect learns what there is on both sides of topics.
func (f *Flow) inspect(topics []*topic) error {
	var sources, targets []string
	for _, t := range topics {
		sources, targets = append(sources, t.name), append(targets, t.target)
	}
	f.source.track(sources...)
	f.target.track(targets...)
	for _, c := range []*cluster{f.source, f.target} {
		seen := c.seen()
		err := c.retry(f.ctx, surveyRetries, func(ctx context.Context) error {
			_, err := c.refresh(ctx, seen)
			return err
		})
		if err != nil {
			return err
		}
	}
	books := f.openBooks()
	booked, accepted := targetIDs(books), map[string]bool{}
	for tp := range books {
		o := f.exactOrder(tp)
		accepted[tp.topic] = accepted[tp.topic] || o.Recopy || o.AcceptRecreated
	}
	for _, t := range topics {
		t.destination, _ = f.target.topic(t.target)
		ids := booked[t.name]
		t.otherTarget = len(ids) > 0 && !ids[t.destination.id] && !ids[ledger.TopicID{}] && !accepted[t.name]
	}
	f.learnSettings(topics)
	return nil
}

const strangersHint = "restore the flow's ledger from a snapshot; if there is none, or MirrorMaker 2 made the copy, make one with `apograph attach`; and only if the target's records are not copies of the source's, name the topic in --append"

// refuseStrangers finds topics whose target holds records that the ledger does
// not know. With a new ledger nothing at all is begun; with an existing one
// such a topic stops alone.
func (f *Flow) refuseStrangers(topics []*topic, books map[topicPartition]ledger.Pair) error {
	strangers := map[*topic][]string{}
	closed := f.closedEnds()
	for _, t := range topics {
		if t.stop != nil {
			continue
		}
		held := f.unknownRecords(t, books, closed)
		switch {
		case len(held) == 0:
		case slices.Contains(f.config.Append, t.name):
			err := f.refuseAppend(t, books)
			if err != nil {
				t.stop = &stopped{reason: StopTargetNotEmpty, detail: err.Error()}
			}
			if err != nil && f.reader == nil {
				return err
			}
			if err != nil && !refusal(err) { // while it runs: the others go on
				t.stop.reason = reasonOf(err)
			}
		default:
			strangers[t] = held
		}
	}
	var all []string
	for _, t := range topics {
		if held := strangers[t]; len(held) > 0 {
			t.stop = &stopped{reason: StopTargetNotEmpty, detail: strings.Join(held, ", ")}
			all = append(all, held...)
		}
	}
	if len(all) == 0 || f.ledger != nil {
		return nil
	}
	err := usageErrorf("cluster %s holds records that this ledger does not know: %s%s", f.target.alias, strings.Join(all, ", "), f.traceOfMirrorMaker())
	err.hint = strangersHint
	return err
}

// unknownRecords describes what a target topic holds in partitions that would
// get a new pair, beyond what a closed generation knows of.
func (f *Flow) unknownRecords(t *topic, books map[topicPartition]ledger.Pair, closed map[closedTarget]int64) (held []string) {
	var fresh []topicPartition
	for i := range t.source.leaders {
		if _, ok := books[topicPartition{t.name, int32(i)}]; !ok && i < len(t.destination.leaders) {
			fresh = append(fresh, topicPartition{t.target, int32(i)})
		}
	}
	if len(fresh) == 0 {
		return nil
	}
	ctx, cancel := f.patience()
	defer cancel()
	var starts map[topicPartition]offsetAnswer
	var group sync.WaitGroup
	group.Go(func() { starts = f.target.listOffsets(ctx, fresh, offsetQuery{replica: -1, timestamp: earliestOffset}) })
	ends := f.target.logEnds(ctx, fresh)
	group.Wait()
	for _, tp := range fresh {
		start, end := starts[tp], ends[tp]
		for _, a := range []offsetAnswer{start, end} {
			if a.err == nil {
				continue
			}
			t.growth = &stopped{reason: reasonOf(a.err), detail: fmt.Sprintf("target partition %v: %v", tp, a.err)}
			return nil // those that have a book go on
		}
		if end.offset > start.offset && end.offset > closed[closedTarget{tp, t.destination.id}] {
			held = append(held, fmt.Sprintf("%v has offsets [%d, %d)", tp, start.offset, end.offset))
		}
	}
	return held
}

// A closedTarget is a target partition of the topic of an id.
type closedTarget struct {
	topicPartition
	id ledger.TopicID
}

// closedEnds returns where the last closed generation of each target partition
// ends, or was cut off.
func (f *Flow) closedEnds() map[closedTarget]int64 {
	ends := map[closedTarget]int64{}
	if f.ledger == nil {
		return ends
	}
	for _, pair := range f.ledger.Pairs() {
		if pair.Closed == nil {
			continue
		}
		upto := f.ledger.End(pair.ID).Target
		if pair.Closed.Cut != nil {
			upto = pair.Closed.Cut.Target
		}
		at := closedTarget{topicPartition{pair.TargetTopic, pair.Partition}, pair.TargetTopicID}
		ends[at] = max(ends[at], upto)
	}
	return ends
}

// A topic is held to be deleted when so many metadata answers in a row have
// missed it, for so long: a broker that has just started may know less.
const (
	missingLimit = 5
	missingFor   = 2 * time.Second
)

// gone says why a cluster's topic can no longer be what a book is about, if it
// cannot: it was deleted, or another one bears its name. A single answer that
// misses it proves little: brokers that have just started know less.
func gone(c *cluster, name string, id ledger.TopicID, deleted, recreated StopReason) *stopped {
	t, ok := c.topic(name)
	switch {
	case ok && t.isOther(id):
		return &stopped{reason: recreated, detail: fmt.Sprintf("topic %s of cluster %s has id %v, the book is about %v", name, c.alias, t.id, id)}
	case ok && t.gone() && t.missing >= missingLimit && time.Since(t.since) >= missingFor:
		return &stopped{reason: deleted, detail: fmt.Sprintf("topic %s of cluster %s does not exist any more", name, c.alias)}
	}
	return nil
}
