package replicate

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"apograph/internal/mirror"
	"apograph/internal/mm2"
	"apograph/ledger"
)

// A Flow is one run of the copier: from source to target, into one ledger. Its
// exported methods are safe for concurrent use while it runs.
type Flow struct {
	config  Config
	rules   mm2.TopicRules
	keeps   settingRules
	former  *mm2.Selection // of the run before; nil unknown
	started time.Time

	source *cluster // long polls and everything but bulk fetches
	bulk   *cluster // the same cluster through a second client, for bulk fetches
	target *cluster

	admissions []*admission // of both clusters

	ledger *ledger.Ledger
	topics map[string]*topic     // by source name; the survey's
	found  map[string]topicState // all topics of the source; the survey's
	looped map[string]string     // those that are copies which this flow makes, and of what; the survey's
	duties duties                // the survey's
	reader *source
	writer *writer
	mirror *mirror.Mirror // nil: there is nothing for it to do
	kick   chan struct{}  // asks for a survey now; capacity 1

	// ctx ends when nothing new may be begun: the run's context ended, a fatal
	// error, or all partitions are done. What is in flight is still waited for.
	ctx     context.Context
	outer   context.Context // the run's
	cancel  context.CancelCauseFunc
	group   sync.WaitGroup // every goroutine that copies
	summary Summary
	err     error
	ended   chan struct{} // closed when summary and err stand

	producerMemory atomic.Int64 // how long the target remembers a producer that writes no more, a time.Duration
	toolPool       sync.Pool
	buffers        buffers

	orderMu sync.RWMutex // held for reading while an order is carried out
	ending  bool         // guarded by orderMu

	mu         sync.Mutex                    // guards what follows
	partitions map[topicPartition]*partition // at work, by source
	blocked    map[topicPartition]*blocked   // in scope, and without a pair
	unbooked   []topicPartition              // blocked, and not yet in the ledger
	orders     map[topicPartition]ledger.Order
	warned     map[string]string // warnings said, by what they are about
	drift      []SettingDrift
	open       int   // partitions neither done nor stopped
	fatal      error // that ended the flow
}

// A blocked is a partition of the flow that could not be given a pair.
type blocked struct {
	stop  stopped
	retry retry
}

// errFinished is the cause of a flow's end when there is nothing left to do.
var errFinished = errors.New("all partitions are done")

// Run copies until everything is done (Config.Once), the context ends or
// something fails for good. The summary is valid whenever a flow ran, also
// with an error. If ctx ended, the error is its cause: the stop was clean, and
// the next run goes on where this one ended.
//
// Errors: [*UsageError], [*RefusedError], [*connect.UnreachableError], the
// ledger's errors, or one that says what could not be written.
func Run(ctx context.Context, config Config) (Summary, error) {
	f, err := Start(ctx, config)
	if err != nil {
		return Summary{}, err
	}
	defer f.Close()
	return f.Wait()
}

// Start is Run that returns once copying has begun. The caller calls [Flow.Wait]
// and then [Flow.Close].
func Start(ctx context.Context, config Config) (*Flow, error) {
	f, err := newFlow(ctx, config)
	if err != nil {
		return nil, err
	}
	candidates, err := f.prepare()
	if err == nil {
		err = f.startMirror()
	}
	if err != nil {
		f.cancel(nil)
		f.Close()
		return nil, f.naming(err)
	}
	go f.run(candidates)
	return f, nil
}

// newFlow returns a flow that has asked nobody yet. The caller ends it with
// cancel and close.
func newFlow(ctx context.Context, config Config) (*Flow, error) {
	config.setDefaults()
	if err := config.Validate(); err != nil {
		return nil, named(config, &UsageError{Err: err})
	}
	selection, err := mm2.ParseSelection(config.Topics, config.TopicsExclude)
	if err != nil {
		return nil, named(config, &UsageError{Err: err})
	}
	keeps, err := newSettingRules(config.Settings)
	if err != nil {
		return nil, named(config, &UsageError{Err: err})
	}
	f := &Flow{
		config: config, keeps: keeps, started: config.Now(), outer: ctx,
		topics: map[string]*topic{}, kick: make(chan struct{}, 1), ended: make(chan struct{}),
		partitions: map[topicPartition]*partition{}, blocked: map[topicPartition]*blocked{},
		orders: map[topicPartition]ledger.Order{}, warned: map[string]string{},
	}
	f.rules = mm2.TopicRules{Selection: selection, Policy: config.Policy, Source: config.Source.Alias, Target: config.Target.Alias, Heartbeats: config.Heartbeats}
	f.toolPool.New = func() any { return &tools{buffers: &f.buffers} }
	f.ctx, f.cancel = context.WithCancelCause(ctx)
	return f, nil
}

// Wait returns when the flow has ended. Its ledger can still be read.
func (f *Flow) Wait() (Summary, error) {
	<-f.ended
	return f.summary, f.err
}

// prepare does everything up to the first byte copied: clusters, ledger,
// topics, pairs.
func (f *Flow) prepare() ([]*candidate, error) {
	if err := f.openLedgerIfExists(); err != nil {
		return nil, err
	}
	f.holdBooks()
	return f.firstSurvey()
}

// connect dials both clusters. Acks and isolation are set here although raw
// requests carry their own.
func (f *Flow) connect() (err error) {
	source, target := &admission{flow: f, cluster: f.config.Source}, &admission{flow: f, cluster: f.config.Target}
	options := func(a *admission) []kgo.Opt {
		return []kgo.Opt{kgo.RequiredAcks(kgo.AllISRAcks()), kgo.FetchIsolationLevel(kgo.ReadCommitted()), kgo.WithHooks(a)}
	}
	if f.source, err = openCluster(f.ctx, f.config.Source, options(source)...); err != nil {
		return err
	}
	if f.bulk, err = openCluster(f.ctx, f.config.Source, options(source)...); err != nil {
		return err
	}
	if f.target, err = openCluster(f.ctx, f.config.Target, options(target)...); err != nil {
		return err
	}
	f.admissions = []*admission{source, target}
	for _, a := range f.admissions {
		a.opened()
	}
	f.learnProducerMemory()
	return nil
}

// Close gives back the ledger and the connections of a flow that has ended.
func (f *Flow) Close() {
	for _, c := range []*cluster{f.source, f.bulk, f.target} {
		if c != nil {
			c.close()
		}
	}
	if f.mirror != nil {
		f.mirror.Close()
	}
	if f.ledger != nil {
		if err := f.ledger.Close(); err != nil {
			f.config.Logger.Error("close the ledger", "error", err)
		}
	}
}

// run copies, until the flow ends.
func (f *Flow) run(candidates []*candidate) {
	defer close(f.ended)
	defer f.cancel(nil)
	f.reader = newSource(f)
	f.writer = &writer{flow: f, cluster: f.target, queues: map[int32]*queue{}}

	commits, stopCommits := context.WithCancel(context.WithoutCancel(f.outer))
	defer stopCommits()
	committed := make(chan error, 1)
	go func() { committed <- f.ledger.CommitLoop(commits) }()
	f.group.Go(func() { f.reader.run(f.ctx, f.checkSources) })
	f.begin(candidates)
	f.group.Go(f.watch)
	f.group.Go(f.watchProducerMemory)
	if !f.config.Once {
		f.group.Go(f.survey)
		if f.mirror != nil {
			f.group.Go(func() { f.mirror.Run(f.ctx) })
		}
	}
	select {
	case err := <-committed:
		f.commitFailed(err)
		committed <- nil
	case <-f.ctx.Done():
	}
	f.orderMu.Lock()
	f.ending = true // no order posts to a partition from now on
	f.orderMu.Unlock()
	f.group.Wait()
	stopCommits()
	if err := <-committed; err != nil {
		f.commitFailed(err)
	}
	f.summary = f.summarize()
	if f.fatal == nil && errors.Is(context.Cause(f.ctx), errFinished) {
		f.summary.Duties = f.mirrorOnce(f.outer)
	}
	switch cause := context.Cause(f.ctx); {
	case f.fatal != nil: // also behind a signal, or when all else was done
		f.err = f.fatal
	case !errors.Is(cause, errFinished):
		f.err = cause
	}
}

func (f *Flow) commitFailed(err error) {
	_ = f.fail(fmt.Errorf("commit the ledger: %w", err))
}

// begin sets candidates to work.
func (f *Flow) begin(candidates []*candidate) {
	var fresh []*partition
	f.mu.Lock()
	for _, c := range candidates {
		tp := c.source()
		if c.pair.ID == 0 {
			f.block(tp, c.stop)
			continue
		}
		delete(f.blocked, tp)
		p := f.newPartition(c)
		f.partitions[tp] = p
		fresh = append(fresh, p)
	}
	f.open += len(fresh)
	idle := f.open == 0
	f.mu.Unlock()
	f.bookBlocked()
	f.reader.add(fresh)
	for _, p := range fresh {
		p.post(event{begin: true})
	}
	if idle {
		f.finished()
	}
}

// block notes that a partition cannot be given a pair. f.mu is held.
func (f *Flow) block(tp topicPartition, stop *stopped) {
	b := f.blocked[tp]
	if b == nil {
		b = &blocked{}
		f.blocked[tp] = b
	}
	if stop == nil {
		stop = &stopped{reason: StopUnavailable, detail: "the partition's offsets are not known yet"}
	}
	because := f.becauseRefused(*stop)
	if stop = &because; b.stop != *stop {
		f.config.Logger.Warn("partition stopped", "partition", tp.String(), "reason", string(stop.reason), "detail", stop.detail)
	}
	b.stop = *stop
	b.retry.failed(f.now(), f.config.RetryAfter, stop.reason)
	f.unbooked = append(f.unbooked, tp)
}

// all returns the partitions at work, in no order.
func (f *Flow) all() []*partition {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.AppendSeq(make([]*partition, 0, len(f.partitions)), maps.Values(f.partitions))
}

// forgetWarnings lets the warnings about a partition be said again.
func (f *Flow) forgetWarnings(tp topicPartition) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.warned, "stop "+tp.String())
	delete(f.warned, "waits "+tp.String())
}

// sorted returns the partitions at work, by name and number.
func (f *Flow) sorted() []*partition {
	all := f.all()
	slices.SortFunc(all, func(a, b *partition) int { return a.source.compare(b.source) })
	return all
}

// atWork reports whether the flow has a partition for a source partition.
func (f *Flow) atWork(tp topicPartition) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.partitions[tp] != nil
}

// due reports whether a partition of a topic is to be set to work: it is new,
// or the pause after it could not be has passed; or the topic is to be made again
// on the target.
func (f *Flow) due(t *topic) bool {
	if f.toBeRecopied(t.name) {
		return true
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	for i := range max(len(t.source.leaders), 1) {
		tp := topicPartition{t.name, int32(i)}
		b := f.blocked[tp]
		if f.partitions[tp] == nil && !t.recreated && (b == nil || !f.now().Before(b.retry.at)) {
			return true
		}
	}
	return false
}

// fail ends the flow because of an error that is not one partition's, and
// returns it. The first one is what the run ends with, whatever else ended it.
func (f *Flow) fail(err error) error {
	f.mu.Lock()
	if f.fatal == nil {
		f.fatal = err
	}
	f.mu.Unlock()
	f.cancel(err)
	return err
}

// finished ends a run that has an end.
func (f *Flow) finished() {
	if f.config.Once && f.ctx.Err() == nil {
		f.cancel(errFinished)
	}
}

// draining reports whether nothing new may be begun.
func (f *Flow) draining() bool { return f.ctx.Err() != nil }

func (f *Flow) now() time.Time { return f.config.Now() }

// left says that a partition is done or stopped.
func (f *Flow) left(p *partition) {
	if p.phase == phaseStopped && !p.replaced {
		f.warnOnce("stop "+p.source.String(), "partition stopped", "partition", p.source.String(), "offset", p.stop.offset,
			"reason", string(p.stop.reason), "detail", p.stop.detail)
	}
	f.mu.Lock()
	f.open--
	idle := f.open == 0
	f.mu.Unlock()
	if idle {
		f.finished()
	}
}

// tools lends buffers for reading and encoding batches.
func (f *Flow) tools() *tools {
	t := f.toolPool.Get().(*tools)
	t.decoder.MaxBytes = maxBodyBytes
	return t
}

func (f *Flow) giveBack(t *tools) { f.toolPool.Put(t) }

// confirmEvery is how old what was last seen of an idle partition may become
// before it is recorded that it still holds.
const confirmEvery = 30 * time.Second

// watch reports progress, and stops partitions that get nowhere although their
// end is set.
func (f *Flow) watch() {
	ticker := time.NewTicker(time.Second)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
			f.reader.expire(f.config.UnavailableAfter)
			f.reader.wakeSleepers()
			if !f.config.Once {
				f.retryStopped()
				f.reader.confirm(confirmEvery)
			}
			f.config.Progress(f.progress())
		case <-f.ctx.Done():
			return
		}
	}
}

// saw records what a fetch answer said about the source's log.
func (f *Flow) saw(p *partition, b bounds) {
	p.stable.Store(b.lastStable)
	if !proven {
		return
	}
	seen := f.now().UnixMilli()
	if b.logStart > f.ledger.End(p.pair.ID).Source {
		seen = f.ledger.State(p.pair.ID).SeenMillis // when the log last held what is next
	}
	err := f.ledger.SetState(p.pair.ID, ledger.State{
		LogStart: b.logStart, LastStable: b.lastStable, HighWatermark: b.highWatermark,
		SeenMillis: seen, CompactSeen: p.asm.compactSeen || p.asm.compactPolicy,
	})
	if err != nil {
		f.fail(fmt.Errorf("partition %v: record the source's bounds: %w", p.source, err))
	}
}

// initProducer asks the cluster for a producer id that nobody has used.
func (c *cluster) initProducer(ctx context.Context) (id int64, epoch int16, err error) {
	err = c.retry(ctx, 30*time.Second, func(ctx context.Context) error {
		request := kmsg.NewPtrInitProducerIDRequest()
		request.TransactionTimeoutMillis = 60_000
		response, err := request.RequestWith(ctx, c.client)
		if err != nil {
			return err
		}
		id, epoch = response.ProducerID, response.ProducerEpoch
		return kerr.ErrorForCode(response.ErrorCode)
	})
	if err != nil {
		return 0, 0, fmt.Errorf("cluster %s: get a producer id: %w", c.alias, err)
	}
	return id, epoch, nil
}

// Ledger returns the flow's ledger, for reading, until [Flow.Close].
func (f *Flow) Ledger() *ledger.Ledger { return f.ledger }
