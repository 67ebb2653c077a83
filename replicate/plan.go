package replicate

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"apograph/internal/recordbatch"
	"apograph/ledger"
)

// A Plan says what a run would do.
type Plan struct {
	SourceAlias, TargetAlias string

	Topics []TopicPlan // all of the source's, by name

	Duties []DutyPlan // beside the copy, also those that are off

	// Refusals are what would keep the run, or part of it, from copying, or a duty
	// from being done.
	Refusals []string
}

// A TopicPlan says what a run would do with one topic of the source.
type TopicPlan struct {
	Topic  string
	Target string
	In     bool   // it is copied
	Rule   string // by which pattern it is the flow's to copy, or not

	// Refused is why it is not copied although a pattern says so: a reason to stop,
	// and its detail; "" if nothing is in the way.
	Refused string

	Create            bool // the target lacks it
	Partitions        int  // on the target, afterwards
	ReplicationFactor int
	Settings          map[string]string // that would be set; nil: none

	MissingPermissions []string // of the flow's, for example "source topic t: READ"
	ACLs               []string // that would be made on the target
	LostACLs           []string // of the source's, about the topic, that would not, or not whole, and why
	Warnings           []string // what on the target can keep records out or change them

	Records int64 // source offsets to go through; at least as many as records to copy
	Bytes   int64 // of the log that hold them, about; -1 unknown

	// Headroom is how long the next record to copy is safe from the source's
	// retention by time, over all partitions. Negative: unknown, or there is
	// none.
	Headroom time.Duration
}

// MakePlan finds out what [Run] would do, and writes nothing. l is the flow's
// ledger, nil if there is none; it is only read. Of several flows [CheckFlows] is
// asked first, so that the plan of each knows of the others.
func MakePlan(ctx context.Context, config Config, l *ledger.Ledger) (Plan, error) {
	f, err := newFlow(ctx, config)
	if err != nil {
		return Plan{}, err
	}
	defer f.Close()
	defer f.cancel(nil)
	f.ledger = l
	defer func() { f.ledger = nil }() // the caller's
	f.holdBooks()
	plan, err := f.plan()
	return plan, f.naming(err)
}

func (f *Flow) plan() (Plan, error) {
	if err := f.connect(); err != nil {
		return Plan{}, err
	}
	if err := f.checkIdentity(); err != nil {
		return Plan{}, err
	}
	f.loadOrders()
	books := f.openBooks()
	if err := f.match(books); err != nil {
		return Plan{}, err
	}
	topics := sortedTopics(f.topics)
	if err := f.inspect(topics); err != nil {
		return Plan{}, err
	}
	plan := Plan{SourceAlias: f.source.alias, TargetAlias: f.target.alias}
	if err := f.planRefusals(&plan, topics, books); err != nil {
		return Plan{}, err
	}
	return plan, f.fill(&plan, topics, books)
}

// planRefusals finds out what would be refused: of a topic by itself, or of all the
// run because of some.
func (f *Flow) planRefusals(plan *Plan, topics []*topic, books map[topicPartition]ledger.Pair) error {
	told := map[*topic]bool{}
	tell := func(of error) error {
		if of != nil && !refusal(of) {
			return of
		}
		if of != nil {
			plan.Refusals = append(plan.Refusals, of.Error())
		}
		for _, t := range topics {
			if t.stop != nil && !told[t] && of == nil {
				plan.Refusals = append(plan.Refusals, fmt.Sprintf("topic %s: %s: %s", t.name, t.stop.reason, t.stop.detail))
			}
			told[t] = t.stop != nil
		}
		return nil
	}
	f.refuseRoutes(topics, books)
	return errors.Join(tell(nil), tell(f.checkAppend()), tell(f.refuseStrangers(topics, books)), tell(f.checkStarts(topics)))
}

// fill describes the topics.
func (f *Flow) fill(plan *Plan, topics []*topic, books map[topicPartition]ledger.Pair) error {
	if err := f.judgePlan(topics); err != nil {
		return err
	}
	described := map[string]*TopicPlan{}
	for _, t := range topics {
		described[t.name] = f.planOf(t, books)
	}
	if err := f.amounts(described, topics, books); err != nil {
		return err
	}
	f.permissions(described, topics)
	f.planACLs(described, topics)
	for name, state := range f.found {
		if rule, in := f.explain(name); !in && !state.gone() {
			described[name] = &TopicPlan{Topic: name, Rule: rule, Headroom: -1}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(described)) {
		t := described[name]
		plan.Topics = append(plan.Topics, *t)
		for _, missing := range t.MissingPermissions {
			plan.Refusals = append(plan.Refusals, "missing permission: "+missing)
		}
	}
	f.planDuties(plan)
	for _, t := range topics {
		if t.stop == nil && t.growth != nil {
			plan.Refusals = append(plan.Refusals, fmt.Sprintf("topic %s: %s: %s", t.name, t.growth.reason, t.growth.detail))
		}
	}
	return nil
}

// judgePlan is judge for a ledger that may not exist yet, or knows no topics.
func (f *Flow) judgePlan(topics []*topic) error {
	if f.ledger != nil && f.ledger.HasSeenTopics() {
		return f.judge(f.bookedPartitions())
	}
	for _, t := range topics {
		t.existed = math.MaxInt32
	}
	return nil
}

func (f *Flow) planOf(t *topic, books map[topicPartition]ledger.Pair) *TopicPlan {
	rule, _ := f.explain(t.name)
	p := &TopicPlan{Topic: t.name, Target: t.target, In: true, Rule: rule, Headroom: -1, Partitions: max(len(t.source.leaders), len(t.destination.leaders))}
	if t.stop != nil {
		p.In, p.Refused = false, fmt.Sprintf("%s: %s", t.stop.reason, t.stop.detail)
	}
	p.ReplicationFactor = t.destination.replicas
	facts := t.facts.Load()
	if t.destination.gone() && !booked(books, t.name) {
		p.Create = true
		p.ReplicationFactor = int(f.replicas(t))
		p.Settings = f.keeps.forTarget(facts.source)
		return p
	}
	p.Warnings = facts.warnings(t)
	if before, ok := f.keptSettings(t); ok {
		for key, value := range f.keeps.changes(before, facts) {
			if p.Settings == nil {
				p.Settings = map[string]string{}
			}
			p.Settings[key] = "(default)"
			if value != nil {
				p.Settings[key] = *value
			}
		}
	}
	return p
}

func booked(books map[topicPartition]ledger.Pair, topic string) bool {
	for tp := range books {
		if tp.topic == topic {
			return true
		}
	}
	return false
}

// amounts says how much there is to copy, and for how long it is safe.
func (f *Flow) amounts(described map[string]*TopicPlan, topics []*topic, books map[topicPartition]ledger.Pair) error {
	candidates := f.candidates(topics, books)
	f.learnBounds(candidates)
	var fresh []*candidate
	past := f.pastBooks()
	for _, c := range candidates {
		if c.pair.ID == 0 && c.bounds != nil {
			c.firstSight = past.firstSight(c)
			fresh = append(fresh, c)
		}
	}
	if err := f.resolveStarts(fresh); err != nil {
		return err
	}
	sizes := f.logSizes(topics)
	for _, c := range candidates {
		if c.bounds == nil {
			continue
		}
		position := c.pair.ScopeStart
		if c.pair.ID != 0 {
			position = f.ledger.Committed(c.pair.ID).Source
		}
		f.addAmount(described[c.topic.name], c, max(c.bounds.highWatermark-position, 0), position, sizes)
	}
	return nil
}

func (f *Flow) addAmount(t *TopicPlan, c *candidate, records, position int64, sizes map[topicPartition]int64) {
	t.Records += records
	held := c.bounds.highWatermark - max(c.bounds.logStart, 0)
	size, known := sizes[c.source()]
	switch {
	case records == 0:
	case !known:
		t.Bytes = -1
	case t.Bytes >= 0 && held > 0:
		t.Bytes += int64(float64(size) * float64(min(records, held)) / float64(held))
	}
	if records == 0 {
		return
	}
	source := c.topic.facts.Load().source
	retention := source.integer("retention.ms", -1)
	if retention < 0 || !source.deletes() {
		return
	}
	if at, ok := f.timeAt(c, max(position, c.bounds.logStart)); ok {
		left := max(at.Add(time.Duration(min(retention, maxRetention))*time.Millisecond).Sub(f.now()), 0)
		if t.Headroom < 0 || left < t.Headroom {
			t.Headroom = left
		}
	}
}

// maxRetention keeps sums of times in range: a hundred years, in milliseconds.
const maxRetention = 100 * 365 * 24 * 3600 * 1000

// timeAt returns the newest time in the batch at a source offset: the batch is
// not deleted before that is older than the retention.
func (f *Flow) timeAt(c *candidate, offset int64) (time.Time, bool) {
	ctx, cancel := context.WithTimeout(f.ctx, 10*time.Second)
	defer cancel()
	data, err := f.source.read(ctx, c.source(), c.topic.source.id, offset)
	if err != nil {
		return time.Time{}, false
	}
	size, magic, err := recordbatch.Peek(data)
	if err != nil || magic != 2 {
		return time.Time{}, false
	}
	h, err := recordbatch.Parse(data[:size])
	return time.UnixMilli(h.MaxTimestamp), err == nil && h.MaxTimestamp >= 0
}

// logSizes returns the bytes of the source's logs, of the largest replica each;
// nothing without the right to ask.
func (f *Flow) logSizes(topics []*topic) map[topicPartition]int64 {
	set := kadm.TopicsSet{}
	for _, t := range topics {
		for i := range t.source.leaders {
			set.Add(t.name, int32(i))
		}
	}
	sizes := map[topicPartition]int64{}
	if len(set) == 0 {
		return sizes
	}
	all, err := f.source.admin.DescribeAllLogDirs(f.ctx, set)
	if err != nil {
		f.config.Logger.Warn("sizes of logs cannot be read", "cluster", f.source.alias, "error", err)
	}
	all.Each(func(dir kadm.DescribedLogDir) {
		dir.Topics.Each(func(p kadm.DescribedLogDirPartition) {
			if tp := (topicPartition{p.Topic, p.Partition}); !p.IsFuture {
				sizes[tp] = max(sizes[tp], p.Size)
			}
		})
	})
	return sizes
}

// permissions says which rights the run would lack (KIP-430).
func (f *Flow) permissions(described map[string]*TopicPlan, topics []*topic) {
	var sources, targets, made []string
	for _, t := range topics {
		sources = append(sources, t.name)
		if !described[t.name].Create {
			targets = append(targets, t.target)
		}
		if described[t.name].Create || t.destination.hidden() {
			made = append(made, t.target)
		}
	}
	read := f.source.operations(f.ctx, sources)
	written := f.target.operations(f.ctx, targets)
	refused := f.target.refusesToMake(f.ctx, made)
	for _, t := range topics {
		p := described[t.name]
		p.MissingPermissions = lacking("source topic "+t.name, read[t.name], kmsg.ACLOperationRead, kmsg.ACLOperationDescribe, kmsg.ACLOperationDescribeConfigs)
		if !p.Create {
			p.MissingPermissions = append(p.MissingPermissions,
				lacking("target topic "+t.target, written[t.target], kmsg.ACLOperationWrite, kmsg.ACLOperationRead, kmsg.ACLOperationDescribe)...)
		}
		if t.destination.hidden() {
			p.Warnings = append(p.Warnings, "the target topic cannot be seen without DESCRIBE: whether it is there, and what it is like, is not known; if it is not, CREATE is needed, too")
		}
		if refused[t.target] {
			p.MissingPermissions = append(p.MissingPermissions, "target topic "+t.target+": CREATE")
		}
	}
}

// lacking returns what is not allowed. A nil set of rights is not known.
func lacking(where string, have []kmsg.ACLOperation, need ...kmsg.ACLOperation) (missing []string) {
	if have == nil {
		return nil
	}
	for _, op := range need {
		if !slices.Contains(have, op) && !slices.Contains(have, kmsg.ACLOperationAll) {
			missing = append(missing, where+": "+strings.ToUpper(op.String()))
		}
	}
	return missing
}

// operations returns what this client may do with topics; topics of which the
// cluster does not say so are left out.
func (c *cluster) operations(ctx context.Context, names []string) map[string][]kmsg.ACLOperation {
	return rightsTo(c.lookAtTopics(ctx, names))
}

func rightsTo(topics []kmsg.MetadataResponseTopic) map[string][]kmsg.ACLOperation {
	rights := map[string][]kmsg.ACLOperation{}
	for _, t := range topics {
		switch {
		case t.Topic == nil:
		case t.ErrorCode == kerr.TopicAuthorizationFailed.Code:
			rights[*t.Topic] = []kmsg.ACLOperation{} // to be told of a topic needs no more than any right
		case t.ErrorCode == 0 && t.AuthorizedOperations != math.MinInt32:
			rights[*t.Topic] = kadm.DecodeACLOperations(t.AuthorizedOperations)
		}
	}
	return rights
}

// lookAtTopics returns what metadata says about topics and this client's rights to
// them; nothing where there is no answer.
func (c *cluster) lookAtTopics(ctx context.Context, names []string) []kmsg.MetadataResponseTopic {
	if len(names) == 0 {
		return nil
	}
	request := kmsg.NewPtrMetadataRequest()
	request.IncludeTopicAuthorizedOperations = true
	for _, name := range names {
		t := kmsg.NewMetadataRequestTopic()
		t.Topic = kmsg.StringPtr(name)
		request.Topics = append(request.Topics, t)
	}
	response, err := request.RequestWith(ctx, c.client)
	if err != nil {
		return nil
	}
	return response.Topics
}

// refusesToMake returns the topics that this client may not make: with CREATE on the
// cluster it may make all, else those that the brokers say when they are asked to
// make them without doing it. An answer other than that it is not allowed is about
// something else, as that they are there.
func (c *cluster) refusesToMake(ctx context.Context, names []string) map[string]bool {
	refused := map[string]bool{}
	if len(names) == 0 || c.mayMakeAll(ctx) {
		return refused
	}
	responses, err := c.admin.ValidateCreateTopics(ctx, 1, 1, nil, names...)
	if err != nil {
		return refused
	}
	for name, r := range responses {
		refused[name] = errors.Is(r.Err, kerr.TopicAuthorizationFailed)
	}
	return refused
}

// mayMakeAll reports whether the cluster says that this client may make any topic.
func (c *cluster) mayMakeAll(ctx context.Context) bool {
	request := kmsg.NewPtrDescribeClusterRequest()
	request.IncludeClusterAuthorizedOperations = true
	response, err := request.RequestWith(ctx, c.client)
	if err != nil || response.ClusterAuthorizedOperations == math.MinInt32 || response.ErrorCode != 0 {
		return false
	}
	rights := kadm.DecodeACLOperations(response.ClusterAuthorizedOperations)
	return slices.Contains(rights, kmsg.ACLOperationCreate) || slices.Contains(rights, kmsg.ACLOperationAll)
}
