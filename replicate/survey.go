package replicate

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"apograph/ledger"
)

// The survey looks at both clusters, at the start and then at every
// Config.RefreshInterval: it finds topics and partitions that are new, makes
// what the target lacks, opens pairs, and keeps settings in step. It is one
// goroutine; topics and candidates are its own.

// match finds the topics of the flow on the source, and says of each whether it
// is new to the flow. What the source has is remembered.
func (f *Flow) match(books map[topicPartition]ledger.Pair) error {
	all, err := f.source.lookAt(f.ctx, nil)
	if err != nil {
		return err
	}
	ids := sourceIDs(books)
	found := f.selected(all, books)
	if f.config.KnownTopics && f.found != nil {
		f.leaveNew(found, ids)
	}
	for name, t := range found {
		have := f.topics[name]
		if have == nil {
			have = newTopic(name, t.target, t.rule, topicState{})
			f.topics[name] = have
		}
		have.update(t.source, ids[name], f.acceptedAnew(name, books))
	}
	for name := range f.topics {
		if found[name] == nil {
			f.forget(name) // gone, and without a book
		}
	}
	f.found = all
	return nil
}

// leaveNew leaves out topics that are new since the flow began. booked has those
// with books.
func (f *Flow) leaveNew(found map[string]*topic, booked map[string]map[ledger.TopicID]bool) {
	maps.DeleteFunc(found, func(name string, _ *topic) bool { return f.topics[name] == nil && booked[name] == nil })
}

// forget drops a topic that the source does not have any more and that no book
// is about.
func (f *Flow) forget(name string) {
	t := f.topics[name]
	delete(f.topics, name)
	f.config.Routes.give(place{f.target.id, t.target}, f.name())
	f.source.untrack(name)
	f.target.untrack(t.target)
	f.mu.Lock()
	var blocked []topicPartition
	for tp := range f.blocked {
		if tp.topic == name {
			blocked = append(blocked, tp)
			delete(f.blocked, tp)
		}
	}
	f.mu.Unlock()
	for _, tp := range blocked {
		f.clearStop(tp)
	}
}

// remember records the topics of the source. What existed when the flow first
// looked, or before it was told to copy it, is out of scope where it is gone;
// what was created since is not, be it under the name of a topic that has books.
func (f *Flow) remember() error {
	baseline := !f.ledger.HasSeenTopics()
	booked := f.bookedPartitions()
	seen := make([]ledger.SeenTopic, 0, len(f.found))
	for _, name := range slices.Sorted(maps.Keys(f.found)) {
		if state := f.found[name]; state.err == nil {
			seen = append(seen, ledger.SeenTopic{
				Name: name, ID: state.id, SeenMillis: f.now().UnixMilli(),
				Partitions: int32(len(state.leaders)), FromStart: !baseline && f.topics[name] != nil,
			})
			if n := booked[name]; n > 0 { // by a ledger that did not remember topics
				seen[len(seen)-1].Partitions = n
			}
		}
	}
	if err := f.ledger.SeeTopics(seen); err != nil {
		return f.fail(fmt.Errorf("record the topics of the source: %w", err))
	}
	if err := f.judge(booked); err != nil {
		return f.fail(fmt.Errorf("topics that were seen: %w", err))
	}
	return nil
}

// judge says of each topic how many partitions it had before the flow was to
// copy it, by what the ledger remembers, and how many have a book.
func (f *Flow) judge(booked map[string]int32) error {
	for name, t := range f.topics {
		if t.judged == t.source.id && t.judged != (ledger.TopicID{}) {
			continue
		}
		first, ok, err := f.ledger.SeenTopic(name, t.source.id)
		if err != nil {
			return err
		}
		switch {
		case !ok || first.FromStart:
			t.existed = 0
		case booked[name] == 0 && !f.wasInScope(name): // also those that it was given before the flow was to copy it
			t.existed = int32(len(t.source.leaders))
		default:
			t.existed = first.Partitions
		}
		t.judged = t.source.id
	}
	return nil
}

// update takes what the source says now about a topic that the flow has. The
// books are about topics with the given ids: while one is about another topic
// of the same name, that one stays, until a person has accepted the other.
func (t *topic) update(now topicState, booked map[ledger.TopicID]bool, accepted bool) {
	var none ledger.TopicID
	delete(booked, none)
	switch {
	case now.err != nil:
		if t.source.leaders == nil {
			t.source = now
		}
	case now.id != none && !accepted && (len(booked) > 1 || len(booked) == 1 && !booked[now.id]):
		t.recreated = true
	default:
		t.source, t.recreated = now, false
	}
}

// sourceIDs returns, by name, the ids of the source topics that open books are
// about.
func sourceIDs(books map[topicPartition]ledger.Pair) map[string]map[ledger.TopicID]bool {
	return bookedIDs(books, func(p ledger.Pair) ledger.TopicID { return p.SourceTopicID })
}

// targetIDs does so for the target topics, by the source's name.
func targetIDs(books map[topicPartition]ledger.Pair) map[string]map[ledger.TopicID]bool {
	return bookedIDs(books, func(p ledger.Pair) ledger.TopicID { return p.TargetTopicID })
}

func bookedIDs(books map[topicPartition]ledger.Pair, of func(ledger.Pair) ledger.TopicID) map[string]map[ledger.TopicID]bool {
	ids := map[string]map[ledger.TopicID]bool{}
	for tp, pair := range books {
		if ids[tp.topic] == nil {
			ids[tp.topic] = map[ledger.TopicID]bool{}
		}
		ids[tp.topic][of(pair)] = true
	}
	return ids
}

// ErrNoTopics is in the error of a run with [Config.Once] that has no topic to
// copy.
var ErrNoTopics = errors.New("no topic to copy")

// firstSurvey prepares the run, up to the opening of its pairs.
func (f *Flow) firstSurvey() ([]*candidate, error) {
	l, err := f.firstLook()
	if err != nil {
		return nil, err
	}
	f.config.Routes.settle()
	if err := f.mayBegin(l); err != nil {
		return nil, err
	}
	f.config.Routes.begin() // before there is anything that another flow could find
	if err := f.createLedger(); err != nil {
		return nil, err
	}
	candidates, err := f.admit(l.topics, l.books)
	if err == nil {
		f.doDuties(l.topics)
	}
	return candidates, err
}

// matchFirst is match for a flow that has not begun.
func (f *Flow) matchFirst(books map[topicPartition]ledger.Pair) error {
	if slices.Contains(f.rules.Include.Texts(), "__consumer_offsets") {
		return usageErrorf("__consumer_offsets is never copied: its offsets mean nothing on another cluster; translate groups instead (apograph translate)")
	}
	if err := f.match(books); err != nil {
		return err
	}
	if len(f.topics) == 0 && f.config.Once {
		return usageErrorf("cluster %s has %w: %s", f.source.alias, ErrNoTopics, f.whyNone())
	}
	if err := f.checkAppend(); err != nil || len(f.topics) > 0 {
		return err
	}
	f.config.Logger.Warn("no topic matches; waiting", "topics", strings.Join(f.config.Topics, ","))
	return nil
}

// checkAppend refuses names of topics that the flow does not copy: what was to be
// decided would not be, and nobody would know.
func (f *Flow) checkAppend() error {
	for _, name := range f.config.Append {
		if f.topics[name] != nil {
			continue
		}
		err := usageErrorf("--append names %s, and the flow copies no topic of cluster %s with that name", name, f.source.alias)
		for _, t := range sortedTopics(f.topics) {
			if t.target == name {
				err.hint = "it takes names of the source: " + t.name
			}
		}
		return err
	}
	return nil
}

// bookedPartitions returns for each topic that has a book, open or closed, one
// more than the number of its highest partition that has one.
func (f *Flow) bookedPartitions() map[string]int32 {
	booked := map[string]int32{}
	if f.ledger != nil {
		for _, p := range f.ledger.Pairs() {
			booked[p.SourceTopic] = max(booked[p.SourceTopic], p.Partition+1)
		}
	}
	return booked
}

// whyNone says why none of the source's topics is copied.
func (f *Flow) whyNone() string {
	patterns := strings.Join(f.config.Topics, ",")
	var out []string
	for _, name := range slices.Sorted(maps.Keys(f.found)) {
		if rule, _ := f.explain(name); f.rules.Include.Matches(name) && len(out) < 5 {
			out = append(out, name+" ("+rule+")")
		}
	}
	if len(out) == 0 {
		return "none that its user is allowed to see matches " + patterns
	}
	return "what matches " + patterns + " is left out: " + strings.Join(out, ", ")
}

// nextSurvey finds what has changed since the last one.
func (f *Flow) nextSurvey() ([]*candidate, error) {
	books := f.openBooks()
	if err := f.match(books); err != nil {
		return nil, err
	}
	topics := sortedTopics(f.topics)
	if err := f.inspect(topics); err != nil {
		return nil, err
	}
	f.checkSources()
	f.tellTraits(topics)
	f.watchStopped()
	f.watchTargets()
	due := slices.DeleteFunc(slices.Clone(topics), func(t *topic) bool { return !f.due(t) })
	for _, t := range due {
		t.stop, t.growth, t.justMade = nil, nil, false
	}
	f.refuseRoutes(due, books)
	if err := f.refuseStrangers(due, books); err != nil {
		return nil, err
	}
	candidates, err := f.admit(due, books)
	if err == nil {
		f.doDuties(topics) // not before it is known which must be left alone
	}
	return candidates, err
}

// admit makes what the target lacks of topics and opens pairs for their
// partitions.
func (f *Flow) admit(topics []*topic, books map[topicPartition]ledger.Pair) ([]*candidate, error) {
	if err := f.remember(); err != nil {
		return nil, err
	}
	if err := f.createTopics(topics, books); err != nil {
		return nil, err
	}
	candidates := f.candidates(topics, books)
	if err := f.openPairs(candidates); err != nil {
		return nil, err
	}
	return candidates, context.Cause(f.ctx)
}

// survey runs until the flow ends.
func (f *Flow) survey() {
	timer := time.NewTicker(f.config.RefreshInterval)
	defer timer.Stop()
	for {
		select {
		case <-timer.C:
		case <-f.kick:
		case <-f.ctx.Done():
			return
		}
		candidates, err := f.nextSurvey()
		if err != nil && f.ctx.Err() == nil {
			f.warnOnce("survey", "looking for changes failed; it is tried again", "error", err)
			continue
		}
		f.begin(candidates)
	}
}
