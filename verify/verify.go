package verify

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"apograph/internal/connect"
	"apograph/internal/mm2"
	"apograph/internal/pace"
	"apograph/ledger"
)

// A run is one verification.
type run struct {
	config  Config
	started time.Time
	ledger  *ledger.Ledger
	scope   scope
	source  *site     // nil: not read
	target  *site     // nil: not read
	seenAt  time.Time // when the ends of the source were seen; zero: they were not
	meter   meter
	pace    *pace.Limiter
	buffers buffers
	proven  *proven // nil: nothing is kept

	live     bool                        // a copier is at work
	standing map[topicPartition]Standing // then: what it had stopped before the books were copied
	asked    map[topicPartition]int64    // then: the ends that the source had at the beginning

	jobs       []*job
	outOfScope []OutOfScope
	doubtful   bool // something was asked for of which it cannot be told whether it exists

	mu     sync.Mutex // guards what follows
	result collector
	failed *outage // why the rest is not read
	oldest Time    // of the proofs that are taken over
	left   int64   // of [Config.MaxBytes]
}

// Run verifies a copy.
//
// The report is valid whenever it is not nil, also beside an error: then a
// cluster went away, and what was not read is not verified.
//
// Errors: [*UsageError]; [*connect.UnreachableError]; those of [Config.Books],
// by default of [ledger.OpenCopy], and of reading a ledger; or the cause of ctx's
// end. What was proven until then is kept, if it is kept at all. A fault is no error: see
// [Report.Verdict].
func Run(ctx context.Context, config Config) (*Report, error) {
	if err := config.Validate(); err != nil {
		return nil, &UsageError{err}
	}
	config.setDefaults()
	r := &run{config: config, started: config.Now(), result: collector{limit: config.MaxFindings}}
	r.pace, r.left, r.meter.limit = pace.New(config.BytesPerSecond), config.MaxBytes, config.MaxBytes
	if r.config.Books == nil {
		r.config.Books = r.copyFile
	}
	defer r.close()
	if err := r.prepare(ctx); err != nil {
		return nil, err
	}
	if err := r.openProven(); err != nil {
		return nil, err
	}
	err := r.verify(ctx)
	var unkept error
	if r.keeps() {
		unkept = r.proven.save()
	}
	if err != nil {
		return nil, errors.Join(err, unkept)
	}
	report, err := r.report()
	if err != nil {
		return nil, err
	}
	if r.failed != nil {
		return report, errors.Join(r.failed.err, unkept)
	}
	return report, unkept
}

// openProven reads what earlier runs have proven, if it is used or added to, and
// makes sure that it can be written.
func (r *run) openProven() error {
	if !r.config.Resume && r.config.Sample == (Slice{}) {
		return nil
	}
	p, unusable, err := openProven(r.config.LedgerPath, r.ledger, r.config.Now)
	var strange *strangeError
	switch {
	case errors.As(err, &strange):
		return &UsageError{err}
	case err != nil:
		return err
	}
	if unusable != "" {
		r.config.Logger.Warn("what earlier runs have proven is not used", "file", p.path, "why", unusable)
	}
	r.proven = p
	return p.save()
}

// accepted takes into account from when a proof is that is taken over.
func (r *run) accepted(at Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.oldest.IsZero() || at.Before(r.oldest.Time) {
		r.oldest = at
	}
}

// close gives everything back.
func (r *run) close() {
	r.source.close()
	r.target.close()
	if r.ledger == nil {
		return
	}
	if err := r.ledger.Close(); err != nil {
		r.config.Logger.Error("close the private copy of the ledger", "error", err)
	}
}

// prepare opens the ledger and the clusters and finds out what there is to do.
//
// The order matters: what the books say was copied before the ends of the
// target were seen, and what the target holds was on the source before its ends
// were. So neither can look incomplete because a copier is at work.
func (r *run) prepare(ctx context.Context) (err error) {
	deadline := time.Now().Add(r.config.Wait)
	if err = r.openBooks(ctx, deadline); err != nil {
		return err
	}
	if err := r.checkAliases(); err != nil {
		return err
	}
	if r.scope, err = newScope(r.ledger.Scope(), r.config.Topics, r.config.TopicsExclude); err != nil {
		return err
	}
	if err := r.connect(ctx); err != nil {
		return err
	}
	if r.live && r.config.Until == UntilSourceEnd {
		if err := r.follow(ctx, deadline); err != nil {
			return err
		}
	}
	if err := r.choosePairs(); err != nil {
		return err
	}
	if r.target != nil {
		if err := r.lookAtTarget(ctx); err != nil {
			return err
		}
		r.judgeStanding(ctx)
	}
	if r.source != nil {
		if err := r.lookAtSource(ctx); err != nil {
			return err
		}
	}
	if r.source == nil {
		r.findStopped()
	}
	if err := r.nothing(); err != nil {
		return err
	}
	slices.SortFunc(r.jobs, (*job).compare)
	r.askUnmatched()
	return context.Cause(ctx)
}

// checkAliases returns an error if the clusters are called otherwise than in the
// ledger: then it is another flow's.
func (r *run) checkAliases() error {
	id := r.ledger.Identity()
	for _, side := range []struct {
		name, ledger, given string
		cluster             *connect.Cluster
	}{
		{"source", id.SourceAlias, r.config.SourceAlias, r.config.Source},
		{"target", id.TargetAlias, r.config.TargetAlias, r.config.Target},
	} {
		given := []string{side.given}
		if side.cluster != nil {
			given = append(given, side.cluster.Alias)
		}
		for _, alias := range given {
			if alias != "" && alias != side.ledger {
				return usageErrorf("ledger %s belongs to another flow: its %s alias is %s, not %s", r.config.LedgerPath, side.name, side.ledger, alias)
			}
		}
	}
	return nil
}

func (r *run) connect(ctx context.Context) (err error) {
	id := r.ledger.Identity()
	open := func(name string, c *connect.Cluster, alias, clusterID string) (*site, error) {
		cluster := *c
		if cluster.Alias == "" {
			cluster.Alias = alias
		}
		return openSite(ctx, name, cluster, clusterID, r.config.Patience)
	}
	if r.config.Mode != ModeBooks {
		if r.target, err = open("target", r.config.Target, id.TargetAlias, id.TargetClusterID); err != nil {
			return err
		}
	}
	if r.config.Mode == ModeFull {
		r.source, err = open("source", r.config.Source, id.SourceAlias, id.SourceClusterID)
	}
	return err
}

// choosePairs makes a job for each pair in scope.
func (r *run) choosePairs() error {
	pairs := r.ledger.Pairs()
	for i, pair := range pairs {
		if why := r.scope.leavesOut(pair.SourceTopic); why != "" {
			r.outOfScope = append(r.outOfScope, OutOfScope{pair.SourceTopic, why})
			continue
		}
		asked, ok := r.asked[topicPartition{pair.SourceTopic, pair.Partition}]
		books, err := openBooks(r.ledger, pair, generationsOf(&pair, pairs[i+1:]))
		if err != nil {
			return err
		}
		if !ok || books.cut != nil {
			asked = -1
		}
		r.jobs = append(r.jobs, &job{
			books: books,
			live:  r.live && r.config.Until == UntilSourceEnd && books.cut == nil, asked: asked,
			findings: findings{topic: pair.SourceTopic, partition: pair.Partition, limit: r.config.MaxFindings},
		})
	}
	return nil
}

// generationsOf returns the pairs at the front that are of the same source partition
// as a pair.
func generationsOf(pair *ledger.Pair, pairs []ledger.Pair) []ledger.Pair {
	n := 0
	for n < len(pairs) && pairs[n].SourceTopic == pair.SourceTopic && pairs[n].Partition == pair.Partition {
		n++
	}
	return pairs[:n]
}

// askedJobs returns the jobs about which the clusters are asked.
func (r *run) askedJobs() []*job {
	return slices.DeleteFunc(slices.Clone(r.jobs), func(j *job) bool { return !j.asks() })
}

// openJobs returns the jobs of pairs that are open.
func (r *run) openJobs() []*job {
	return slices.DeleteFunc(slices.Clone(r.jobs), func(j *job) bool { return j.books == nil || j.books.pair.Closed != nil })
}

// bookedJobs returns the jobs of pairs.
func (r *run) bookedJobs() []*job {
	return slices.DeleteFunc(slices.Clone(r.jobs), func(j *job) bool { return j.books == nil })
}

// lookAtTarget learns what the target says about the topics in scope. Of closed
// generations too, whose records it may have lost; their topics may be gone.
func (r *run) lookAtTarget(ctx context.Context) error {
	names := map[string]bool{}
	for _, j := range r.bookedJobs() {
		names[j.books.pair.TargetTopic] = true
	}
	topics, err := r.target.topics(ctx, keys(names))
	if err != nil {
		return err
	}
	r.target.settings(ctx, topics)
	var tps []topicPartition
	for _, j := range r.bookedJobs() {
		j.target.topicPartition = topicPartition{j.books.pair.TargetTopic, j.books.pair.Partition}
		if j.target.look(topics); j.asks() || j.target.unreadable() == nil && !j.target.deleted() {
			tps = append(tps, j.target.topicPartition)
		}
	}
	all, err := r.target.reachableBounds(ctx, each(tps))
	if err != nil {
		return err
	}
	for _, j := range r.bookedJobs() {
		j.target.bounds = all[j.target.topicPartition]
	}
	return nil
}

// lookAtSource learns what the source says about the topics in scope, and finds
// those that should have a book and have none.
func (r *run) lookAtSource(ctx context.Context) error {
	all, err := r.source.topics(ctx, nil)
	if err != nil {
		return err
	}
	absent := map[string]bool{}
	for _, j := range r.askedJobs() {
		if _, ok := all[j.books.pair.SourceTopic]; !ok {
			absent[j.books.pair.SourceTopic] = true
		}
	}
	if len(absent) > 0 { // by name the cluster says why
		named, err := r.source.topics(ctx, keys(absent))
		if err != nil {
			return err
		}
		for name, t := range named {
			all[name] = t
		}
	}
	r.findMissingBooks(all)
	inScope := map[string]topicState{}
	for _, j := range r.jobs {
		if t, ok := all[j.findings.topic]; ok {
			inScope[j.findings.topic] = t
		}
	}
	r.source.settings(ctx, inScope)
	var tps []topicPartition
	if r.seenAt.IsZero() {
		r.seenAt = r.config.Now()
	}
	for _, j := range r.jobs {
		j.source.topicPartition = topicPartition{j.findings.topic, j.findings.partition}
		j.source.look(inScope)
		if j.books == nil || j.asks() {
			tps = append(tps, j.source.topicPartition)
		}
	}
	bounds, err := r.source.reachableBounds(ctx, each(tps))
	if err != nil {
		return err
	}
	for _, j := range r.jobs {
		j.source.bounds = bounds[j.source.topicPartition]
	}
	return nil
}

// findMissingBooks makes jobs for partitions of the source that should have a
// book and have none.
func (r *run) findMissingBooks(topics map[string]topicState) {
	booked, open := map[string]bool{}, map[topicPartition]bool{}
	for _, j := range r.jobs {
		booked[j.findings.topic] = true
		if j.books.pair.Closed == nil {
			open[topicPartition{j.findings.topic, j.findings.partition}] = true
		}
	}
	for name, t := range topics {
		if !booked[name] && !r.scope.misses(name) {
			if !mm2.IsInternal(name) {
				r.outOfScope = append(r.outOfScope, OutOfScope{name, r.scope.withoutBook(name)})
			}
			continue
		}
		for p := range t.partitions {
			if !open[topicPartition{name, p}] {
				r.jobs = append(r.jobs, &job{findings: findings{topic: name, partition: p, limit: r.config.MaxFindings}, stop: r.stands(topicPartition{name, p})})
			}
		}
	}
}

// findStopped makes jobs for partitions that have no book, as the ledger says why
// they could not be begun. Without the source nothing else tells of them.
func (r *run) findStopped() {
	open := map[topicPartition]bool{}
	for _, j := range r.openJobs() {
		open[topicPartition{j.books.pair.SourceTopic, j.books.pair.Partition}] = true
	}
	for _, stop := range r.ledger.Stops() {
		switch why := r.scope.withoutBook(stop.SourceTopic); {
		case open[topicPartition{stop.SourceTopic, stop.Partition}]:
		case why != "" && why != WithoutBook:
			r.outOfScope = append(r.outOfScope, OutOfScope{stop.SourceTopic, why})
		default:
			r.jobs = append(r.jobs, &job{
				findings: findings{topic: stop.SourceTopic, partition: stop.Partition, limit: r.config.MaxFindings},
				stop:     fmt.Sprintf(": %s: %s", stop.Reason, stop.Detail),
			})
		}
	}
}

// nothing returns an error if nothing that was asked for is there. Where the
// ledger has no book at all, nothing was copied: without the source nobody can
// tell what should have been.
func (r *run) nothing() error {
	switch {
	case len(r.jobs) > 0:
		return nil
	case r.source != nil || len(r.ledger.Pairs()) > 0:
		return usageErrorf("nothing to verify: no topic of ledger %s matches %s", r.config.LedgerPath, r.scope.text(0))
	}
	r.config.Logger.Warn("the ledger has no book: nothing was copied", "ledger", r.config.LedgerPath)
	r.doubtful = true
	return nil
}

// askUnmatched names what was asked for and is nowhere to be found. Without the
// source it cannot be told whether there is such a topic.
func (r *run) askUnmatched() {
	var topics []string
	for _, j := range r.jobs {
		topics = append(topics, j.findings.topic)
	}
	for _, o := range r.outOfScope {
		topics = append(topics, o.Topic)
	}
	for _, text := range r.scope.unmatched(topics) {
		r.config.Logger.Warn("pattern matches no topic", "pattern", text)
		r.outOfScope = append(r.outOfScope, OutOfScope{text, WithoutBook})
		r.doubtful = r.doubtful || r.source == nil
	}
}

// each returns each partition once: a broker refuses to be asked for one twice
// (INVALID_REQUEST of ListOffsets), and generations share theirs.
func each(tps []topicPartition) []topicPartition {
	slices.SortFunc(tps, topicPartition.compare)
	return slices.Compact(tps)
}

func keys(set map[string]bool) []string {
	names := make([]string, 0, len(set))
	for name := range set {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// verify does all jobs.
func (r *run) verify(ctx context.Context) error {
	for _, j := range r.jobs {
		r.meter.partitions++
		if j.books != nil {
			whole := j.books.whole()
			r.meter.total += r.toRead(j, &whole)
		}
	}
	telling, stop := context.WithCancel(ctx)
	var teller sync.WaitGroup
	teller.Go(func() { r.meter.tell(telling, r.started, r.config.Now, r.config.Progress) })
	defer teller.Wait()
	defer stop()

	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	queue := &queue{jobs: slices.Clone(r.jobs), workers: r.config.Parallel, until: r.config.Until}
	var workers sync.WaitGroup
	for range min(r.config.Parallel, len(r.jobs)) {
		workers.Go(func() {
			if err := r.work(ctx, queue); err != nil {
				cancel(err)
			}
		})
	}
	workers.Wait()
	return context.Cause(ctx)
}

// work does jobs until there are none.
func (r *run) work(ctx context.Context, queue *queue) error {
	w := &worker{run: r}
	defer w.close()
	for group := queue.next(); len(group) > 0; group = queue.next() {
		if err := w.do(ctx, group); err != nil {
			return err
		}
	}
	return nil
}

// lost returns why nothing more is read, after remembering an outage if it is the
// first.
func (r *run) lost(o *outage) *outage {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.failed == nil {
		r.failed = o
	}
	return r.failed
}

// finished takes the result of a job.
func (r *run) finished(j *job) {
	r.meter.finished.Add(1)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.result.take(j)
}
