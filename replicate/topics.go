package replicate

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"

	"apograph/internal/mm2"
	"apograph/ledger"
)

// A topic is one topic of the flow.
type topic struct {
	name       string // on the source
	target     string // on the target
	rule       string // the pattern that selected it
	partitions []*partition
	stop       *stopped // the whole topic cannot be copied

	source, destination topicState // as seen at the start
	sourceSettings      map[string]kadm.Config
	targetSettings      map[string]kadm.Config
}

// rediscoverEvery is how often a flow without any topic looks for some.
const rediscoverEvery = 30 * time.Second

// discover finds the topics of the flow. With nothing to copy, a run with an
// end is a mistake; another waits.
func (f *flow) discover() error {
	if slices.Contains(f.selection.Include.Texts(), "__consumer_offsets") {
		return usageErrorf("__consumer_offsets is never copied: its offsets mean nothing on another cluster; translate groups instead (apograph translate)")
	}
	for {
		if err := f.match(); err != nil {
			return err
		}
		if len(f.topics) > 0 {
			return nil
		}
		if f.config.Once {
			return usageErrorf("no topic of cluster %s matches %s", f.source.alias, strings.Join(f.config.Topics, ","))
		}
		f.config.Logger.Warn("no topic matches; waiting", "topics", strings.Join(f.config.Topics, ","))
		if err := pause(f.ctx, rediscoverEvery); err != nil {
			return err
		}
	}
}

// match fills f.topics with the source's topics that the selection takes, and
// with those that have an open book and are gone.
func (f *flow) match() error {
	all, err := f.source.metadata(f.ctx, nil)
	if err != nil {
		return err
	}
	var names []string
	for name, state := range all {
		if rule, ok := f.selection.Match(name); ok && !mm2.IsInternal(name) && !state.gone() {
			f.topics[name] = &topic{name: name, target: name, rule: rule, source: state}
			names = append(names, name)
		}
	}
	for _, pair := range f.openBooks() {
		rule, ok := f.selection.Match(pair.SourceTopic)
		if ok && f.topics[pair.SourceTopic] == nil {
			f.topics[pair.SourceTopic] = &topic{name: pair.SourceTopic, target: pair.TargetTopic, rule: rule, source: topicState{err: kerr.UnknownTopicOrPartition}}
			names = append(names, pair.SourceTopic)
		}
	}
	for _, pattern := range f.selection.Include.Unmatched(names) {
		f.config.Logger.Warn("pattern matches no topic that may be seen", "cluster", f.source.alias, "pattern", pattern)
	}
	return nil
}

// openBooks returns the ledger's pairs that are open.
func (f *flow) openBooks() []ledger.Pair {
	if f.ledger == nil {
		return nil
	}
	return slices.DeleteFunc(f.ledger.Pairs(), func(p ledger.Pair) bool { return p.Closed != nil })
}

func (f *flow) sortedTopics() []*topic {
	topics := make([]*topic, 0, len(f.topics))
	for _, t := range f.topics {
		topics = append(topics, t)
	}
	slices.SortFunc(topics, func(a, b *topic) int { return strings.Compare(a.name, b.name) })
	return topics
}

// inspectTargets learns what there is on the target, and refuses topics that
// hold records which the ledger does not know.
func (f *flow) inspectTargets() error {
	var sources, targets []string
	for _, t := range f.sortedTopics() {
		sources, targets = append(sources, t.name), append(targets, t.target)
	}
	f.source.track(sources...)
	f.target.track(targets...)
	for _, c := range []*cluster{f.source, f.target} {
		if _, err := c.refresh(f.ctx, 0); err != nil {
			return err
		}
	}
	for _, t := range f.topics {
		t.destination, _ = f.target.topic(t.target)
	}
	f.describeSettings(f.source, sources, func(t *topic, s map[string]kadm.Config) { t.sourceSettings = s })
	f.describeSettings(f.target, f.existing(targets), func(t *topic, s map[string]kadm.Config) { t.targetSettings = s })
	return f.refuseStrangers()
}

// existing returns those of the target topics that exist.
func (f *flow) existing(targets []string) []string {
	return slices.DeleteFunc(slices.Clone(targets), func(name string) bool {
		t, ok := f.target.topic(name)
		return !ok || t.err != nil
	})
}

// describeSettings reads the settings of topics of one cluster. Without the
// right to read them the flow goes on with Kafka's defaults.
func (f *flow) describeSettings(c *cluster, names []string, set func(*topic, map[string]kadm.Config)) {
	if len(names) == 0 {
		return
	}
	resources, err := c.admin.DescribeTopicConfigs(f.ctx, names...)
	if err != nil {
		f.config.Logger.Warn("topic settings cannot be read", "cluster", c.alias, "error", err)
	}
	settings := map[string]map[string]kadm.Config{}
	for _, r := range resources {
		if r.Err != nil {
			f.config.Logger.Warn("topic settings cannot be read", "cluster", c.alias, "topic", r.Name, "error", r.Err)
			continue
		}
		settings[r.Name] = map[string]kadm.Config{}
		for _, s := range r.Configs {
			settings[r.Name][s.Key] = s
		}
	}
	for _, t := range f.topics {
		name := t.name
		if c == f.target {
			name = t.target
		}
		set(t, settings[name])
	}
}

// setting returns a setting's value, or the given default where it is unknown.
func setting(settings map[string]kadm.Config, key, unknown string) string {
	if s, ok := settings[key]; ok && s.Value != nil {
		return *s.Value
	}
	return unknown
}

// integerSetting does the same for a number.
func integerSetting(settings map[string]kadm.Config, key string, unknown int64) int64 {
	n, err := strconv.ParseInt(setting(settings, key, ""), 10, 64)
	if err != nil {
		return unknown
	}
	return n
}

// refuseStrangers finds target partitions that hold records and have no pair.
// With a new ledger nothing at all is begun; with an existing one such a topic
// stops alone.
func (f *flow) refuseStrangers() error {
	strangers := map[*topic][]string{}
	for _, t := range f.sortedTopics() {
		held, err := f.unknownRecords(t)
		if err != nil {
			return err
		}
		if len(held) == 0 {
			continue
		}
		if slices.Contains(f.config.Append, t.name) {
			if err := f.refuseAppend(t); err != nil {
				return err
			}
			continue
		}
		strangers[t] = held
	}
	if len(strangers) == 0 {
		return nil
	}
	const hint = "restore the flow's ledger from a snapshot if there is one; only if the target's records are not copies of the source's, name the topic in --append"
	if f.ledger == nil {
		var all []string
		for _, t := range f.sortedTopics() {
			all = append(all, strangers[t]...)
		}
		return usageErrorf("cluster %s holds records that this ledger does not know: %s. %s", f.target.alias, strings.Join(all, ", "), hint)
	}
	for t, held := range strangers {
		t.stop = &stopped{reason: StopTargetNotEmpty, detail: strings.Join(held, ", ") + ". " + hint}
	}
	return nil
}

// unknownRecords describes what a target topic holds in partitions that would
// get a new pair.
func (f *flow) unknownRecords(t *topic) ([]string, error) {
	var fresh []topicPartition
	for i := range t.source.leaders {
		if _, ok := f.openPair(t.name, int32(i)); !ok && i < len(t.destination.leaders) {
			fresh = append(fresh, topicPartition{t.target, int32(i)})
		}
	}
	if len(fresh) == 0 {
		return nil, nil
	}
	starts := f.target.listOffsets(f.ctx, fresh, offsetQuery{replica: -1, timestamp: earliestOffset})
	ends := f.target.logEnds(f.ctx, fresh)
	var held []string
	for _, tp := range fresh {
		start, end := starts[tp], ends[tp]
		for _, a := range []offsetAnswer{start, end} {
			if a.err == nil {
				continue
			}
			if !transient(a.err) {
				t.stop = &stopped{reason: f.reasonOf(a.err), detail: fmt.Sprintf("target partition %v: %v", tp, a.err)}
				return nil, nil
			}
			return nil, fmt.Errorf("cluster %s: offsets of %v: %w", f.target.alias, tp, a.err)
		}
		if end.offset > start.offset {
			held = append(held, fmt.Sprintf("%v has offsets %d to %d", tp, start.offset, end.offset))
		}
	}
	return held, nil
}

// openPair returns the open pair of a source partition.
func (f *flow) openPair(topic string, partition int32) (ledger.Pair, bool) {
	for _, p := range f.openBooks() {
		if p.SourceTopic == topic && p.Partition == partition {
			return p, true
		}
	}
	return ledger.Pair{}, false
}

// targetGone says why the target partition can no longer be written, if it
// cannot: its topic was deleted, or is another one under the same name.
func (f *flow) targetGone(p *partition) (StopReason, string) {
	return gone(f.target, p.target.topic, p.pair.TargetTopicID, StopTargetDeleted, StopTargetRecreated)
}

// missingLimit is how many metadata answers in a row must miss a topic before
// it is held to be deleted.
const missingLimit = 5

func gone(c *cluster, name string, id ledger.TopicID, deleted, recreated StopReason) (StopReason, string) {
	t, ok := c.topic(name)
	var none ledger.TopicID
	switch {
	case ok && t.err == nil && id != none && t.id != none && t.id != id:
		return recreated, fmt.Sprintf("topic %s of cluster %s has id %v, the book is about %v", name, c.alias, t.id, id)
	case ok && t.gone() && t.missing >= missingLimit:
		return deleted, fmt.Sprintf("topic %s of cluster %s does not exist any more", name, c.alias)
	}
	return "", ""
}

// checkSources stops partitions whose source topic is gone. It runs after each
// refresh of the source's metadata.
func (f *flow) checkSources() {
	for _, t := range f.topics {
		for _, p := range t.partitions {
			reason, detail := gone(f.source, t.name, p.pair.SourceTopicID, StopTopicDeleted, StopTopicRecreated)
			if reason != "" && p.pair.ID != 0 {
				p.post(event{stop: &stopped{reason: reason, detail: detail}})
			}
		}
	}
}

// maxBatchBytes is the largest batch that the target partition takes.
func (f *flow) maxBatchBytes(p *partition) int { return maxBytesOf(f.topics[p.source.topic]) }

func maxBytesOf(t *topic) int {
	return int(min(integerSetting(t.targetSettings, "max.message.bytes", math.MaxInt32), math.MaxInt32))
}

// sourceRange returns the source partition's log start and high watermark.
func (f *flow) sourceRange(tp topicPartition) (start, end int64, err error) {
	ctx, cancel := context.WithTimeout(f.ctx, 30*time.Second)
	defer cancel()
	if start, err = f.source.listOffset(ctx, tp, offsetQuery{replica: -1, timestamp: earliestOffset}); err != nil {
		return 0, 0, err
	}
	end, err = f.source.listOffset(ctx, tp, offsetQuery{replica: -1, timestamp: latestOffset})
	return start, end, err
}

// truncated reports whether the source's leader says that the epoch of what
// was read last ended below offset next (OffsetForLeaderEpoch, KIP-320).
func (f *flow) truncated(p *partition, next int64) bool {
	epoch := p.lastEpoch(next)
	if epoch < 0 {
		return false
	}
	var request kadm.OffsetForLeaderEpochRequest
	request.Add(p.source.topic, p.source.partition, epoch)
	answers, err := f.source.admin.OffsetForLeaderEpoch(f.ctx, request)
	if err != nil {
		return false
	}
	a, ok := answers[p.source.topic][p.source.partition]
	return ok && a.Err == nil && a.EndOffset >= 0 && (a.LeaderEpoch < epoch || a.EndOffset < next)
}
