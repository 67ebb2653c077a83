package replicate

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"apograph/internal/mm2"
	"apograph/ledger"
)

// A flow is one run of the copier: from source to target, into one ledger.
type flow struct {
	config    Config
	selection mm2.Selection
	started   time.Time

	source *cluster // long polls and everything but bulk fetches
	bulk   *cluster // the same cluster through a second client, for bulk fetches
	target *cluster
	ledger *ledger.Ledger
	topics map[string]*topic // by source name
	reader *source
	writer *writer

	// ctx ends when nothing new may be begun: the run's context ended, a fatal
	// error, or all partitions are done. What is in flight is still waited for.
	ctx    context.Context
	cancel context.CancelCauseFunc
	group  sync.WaitGroup // every goroutine of the run

	toolPool sync.Pool

	mu   sync.Mutex // guards what follows
	open int        // partitions neither done nor stopped
	done chan struct{}
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
	config.setDefaults()
	if err := config.Validate(); err != nil {
		return Summary{}, &UsageError{err}
	}
	selection, err := mm2.ParseSelection(config.Topics, config.TopicsExclude)
	if err != nil {
		return Summary{}, &UsageError{err}
	}
	f := &flow{config: config, selection: selection, started: config.Now(), topics: map[string]*topic{}, done: make(chan struct{})}
	f.toolPool.New = func() any { return &tools{} }
	f.ctx, f.cancel = context.WithCancelCause(ctx)
	defer f.cancel(nil)
	defer f.close()
	if err := f.prepare(); err != nil {
		return Summary{}, err
	}
	return f.run(ctx)
}

// prepare does everything up to the first byte copied: clusters, ledger,
// topics, pairs.
func (f *flow) prepare() error {
	if err := f.openLedgerIfExists(); err != nil {
		return err
	}
	if err := f.connect(); err != nil {
		return err
	}
	if err := f.checkIdentity(); err != nil {
		return err
	}
	if err := f.discover(); err != nil {
		return err
	}
	if err := f.inspectTargets(); err != nil {
		return err
	}
	if err := f.createLedger(); err != nil {
		return err
	}
	if err := f.createTopics(); err != nil {
		return err
	}
	return f.openPairs()
}

// connect dials both clusters. Acks and isolation are set here although raw
// requests carry their own.
func (f *flow) connect() (err error) {
	options := []kgo.Opt{kgo.RequiredAcks(kgo.AllISRAcks()), kgo.FetchIsolationLevel(kgo.ReadCommitted())}
	if f.source, err = openCluster(f.ctx, f.config.Source, options...); err != nil {
		return err
	}
	if f.bulk, err = openCluster(f.ctx, f.config.Source, options...); err != nil {
		return err
	}
	f.target, err = openCluster(f.ctx, f.config.Target, options...)
	return err
}

func (f *flow) close() {
	for _, c := range []*cluster{f.source, f.bulk, f.target} {
		if c != nil {
			c.close()
		}
	}
	if f.ledger != nil {
		if err := f.ledger.Close(); err != nil {
			f.config.Logger.Error("close the ledger", "error", err)
		}
	}
}

// run copies.
func (f *flow) run(ctx context.Context) (Summary, error) {
	partitions := f.partitions()
	f.open = len(partitions)
	f.reader = &source{
		tail: f.source, bulk: f.bulk, budget: newBudget(f.config.MemoryBytes), now: f.config.Now,
		needLeader: make(chan struct{}, 1), parts: partitions, loops: map[loopKey]chan struct{}{},
	}
	f.writer = &writer{flow: f, cluster: f.target, queues: map[int32]*queue{}}

	commits, stopCommits := context.WithCancel(context.WithoutCancel(ctx))
	defer stopCommits()
	committed := make(chan error, 1)
	go func() { committed <- f.ledger.CommitLoop(commits) }()
	f.group.Go(func() { f.reader.run(f.ctx, f.checkSources) })
	f.group.Go(f.watch)
	for _, p := range partitions {
		p.post(event{begin: true})
	}
	select {
	case <-f.done:
		f.cancel(errFinished)
	case err := <-committed:
		f.cancel(fmt.Errorf("commit the ledger: %w", err))
		committed <- nil
	case <-f.ctx.Done():
	}
	f.group.Wait()
	stopCommits()
	if err := <-committed; err != nil {
		f.cancel(fmt.Errorf("commit the ledger: %w", err))
	}
	summary := f.summarize(partitions)
	if cause := context.Cause(f.ctx); !errors.Is(cause, errFinished) {
		return summary, cause
	}
	return summary, nil
}

// partitions returns every partition of the flow.
func (f *flow) partitions() []*partition {
	var all []*partition
	for _, t := range f.sortedTopics() {
		all = append(all, t.partitions...)
	}
	return all
}

// fail ends the flow because of an error that is not one partition's.
func (f *flow) fail(err error) { f.cancel(err) }

// draining reports whether nothing new may be begun.
func (f *flow) draining() bool { return f.ctx.Err() != nil }

func (f *flow) now() time.Time { return f.config.Now() }

// left says that a partition is done or stopped.
func (f *flow) left(p *partition) {
	if p.phase == phaseStopped {
		f.config.Logger.Warn("partition stopped", "partition", p.source.String(), "offset", p.stop.offset,
			"reason", string(p.stop.reason), "detail", p.stop.detail)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.open--
	if f.open == 0 && f.config.Once {
		close(f.done)
	}
}

// tools lends buffers for reading and encoding batches.
func (f *flow) tools() *tools {
	t := f.toolPool.Get().(*tools)
	t.decoder.MaxBytes = maxBodyBytes
	return t
}

func (f *flow) giveBack(t *tools) { f.toolPool.Put(t) }

// watch reports progress, and stops partitions that get nowhere although their
// end is set.
func (f *flow) watch() {
	ticker := time.NewTicker(time.Second)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
			if f.config.Once {
				f.reader.expire(f.config.UnavailableAfter)
			}
			f.config.Progress(f.progress())
		case <-f.ctx.Done():
			return
		}
	}
}

// unavailable reports whether a partition has tried long enough.
func (f *flow) unavailable(p *partition) bool {
	return f.config.Once && f.now().Sub(p.progress) > f.config.UnavailableAfter
}

// stale reports whether records of a time may be older than half of what the
// target remembers of a producer (producer.id.expiration.ms, one day by
// default): state of such data may vanish at any check.
func (f *flow) stale(timestamp int64) bool {
	return timestamp < f.now().Add(-12*time.Hour).UnixMilli()
}

// saw records what a fetch answer said about the source's log.
func (f *flow) saw(p *partition, b bounds) {
	p.remaining.Store(max(b.lastStable-p.asm.pos, 0))
	err := f.ledger.SetState(p.pair.ID, ledger.State{
		LogStart: b.logStart, LastStable: b.lastStable, HighWatermark: b.highWatermark,
		SeenMillis: f.now().UnixMilli(), CompactSeen: p.asm.compactSeen || p.asm.compactPolicy,
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
