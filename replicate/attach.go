package replicate

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"

	"apograph/ledger"
)

// An AttachVerdict says what came of one partition.
type AttachVerdict string

const (
	// Attached: the ledger has the partition's books.
	Attached AttachVerdict = "attached"

	// AttachEmpty: the target never held a record, or neither side holds one any
	// more; there is nothing to have books about.
	AttachEmpty AttachVerdict = "empty"

	// AttachRefused: source and target do not align, or in more than one way; or
	// the target has deleted all that it held.
	AttachRefused AttachVerdict = "refused"
)

// An AttachReport says what [Attach] found.
type AttachReport struct {
	SourceAlias, TargetAlias string
	LedgerPath               string // "" if there is none: something was refused, and nothing aligns
	Partitions               []AttachedPartition
}

// An AttachedPartition is one partition of an [AttachReport]. Offsets of the
// source and target are those that the logs had.
type AttachedPartition struct {
	Topic       string
	Partition   int32
	TargetTopic string
	Source      ledger.Range // log start and last stable offset
	Target      ledger.Range // log start and log end

	Copied, BeforeStart, Orphans, Foreign, Duplicates int64

	// Of Foreign: records of aborted transactions that MirrorMaker 2 brought over,
	// or wrote in one of its own; and markers of its transactions.
	Aborted, Markers int64

	// TimestampsReplaced counts copied records that have no time on the source, and
	// that of their copying on the target: they are told by the rest.
	TimestampsReplaced int64

	Verdict    AttachVerdict
	Detail     string // why it was refused, or is empty
	Unprovable Unprovable
}

// Unprovable counts what nobody can prove any more, as one side has lost it.
type Unprovable struct {
	BeforeStart int64 // source offsets in front of the books that may have been copied: the target does not have them, or the source does not
	Orphans     int64 // target records of the copier's whose source record is gone: it cannot be compared
	ByPlace     int64 // target offsets of the copier's whose record is gone: known by the numbers of its neighbours
	Repeats     int64 // target records under used numbers of the copier's, too long ago to say of which they are copies
	Unexplained int64 // source offsets that are empty without a cause

	// NotOnTarget counts records of the source in front of the books that the
	// target, whose log has its beginning, does not have: the copy was begun
	// behind them, or they were taken out of the target's log.
	NotOnTarget int64

	// Foreign counts target records that are not of the source's present log, as far
	// as can be told: others wrote them, or a copier did, of an earlier topic of the
	// name or before the source was cut. Nothing says so any more.
	Foreign int64

	// StaleKeys counts source offsets, from the first compacted one behind a copied
	// record to the last: tombstones may have stood there that were never copied.
	// The books have a doubt about them.
	StaleKeys int64
}

// Any reports whether there is anything.
func (u Unprovable) Any() bool { return u != Unprovable{} }

// AttachProgress is how far an [Attach] has come.
type AttachProgress struct {
	Partitions, Finished int
	Aligned              int64 // target offsets explained
	Total                int64 // of all
}

// attachWorkers is how many partitions are aligned at one time. Each holds up to
// attachWindow records of either side as hashes, attachWindow more that it has
// matched, and six answers to a fetch: together about 20 MiB.
const attachWorkers = 8

// Attach makes a new ledger for a copy that this package made and whose ledger
// is gone, or that MirrorMaker 2 made: it aligns source and target record by
// record, and writes to neither cluster. A later run goes on with the ledger.
// Partitions that do not align are reported, and left out of it. The ledger
// appears at config.LedgerPath when it is whole, though it have no books as the
// target is empty; none is made where partitions were refused and no other one
// has books.
//
// Where there is a ledger already, the attachment goes on in it: partitions that
// have a book, or had one, are left as they are, and those of the others that
// align get theirs, all at once. So a partition that was refused is attached once
// its cause is gone. The ledger is held meanwhile.
//
// The copy must not be written to meanwhile: neither by a copier nor by others.
// With config.Predecessor it is looked whether MirrorMaker 2 is alive, before the
// alignment and behind it.
//
// Of config, clusters, ledger, topics, Predecessor, Logger, Now and
// UnavailableAfter are used. progress, which may be nil, is called about once a
// second.
//
// Errors: [*UsageError], with [ErrNoAttach] where there is nothing to attach, or
// [ErrHasBooks]; [*RefusedError], while MirrorMaker 2 is alive;
// [*connect.UnreachableError]; an error of the ledger; one of a cluster that
// could not be read to the end; the cause of a context that ended. No ledger is
// made or changed then.
func Attach(ctx context.Context, config Config, progress func(AttachProgress)) (AttachReport, error) {
	f, err := newFlow(ctx, config)
	if err != nil {
		return AttachReport{}, err
	}
	defer f.Close()
	defer f.cancel(nil)
	if err := f.openLedgerIfExists(); err != nil {
		return AttachReport{}, err
	}
	f.holdBooks()
	a := &attachment{flow: f}
	if err := a.prepare(); err != nil {
		return AttachReport{}, f.naming(err)
	}
	if err := a.meetPredecessor(); err != nil {
		return AttachReport{}, err
	}
	if err := a.meetOthers(); err != nil {
		return AttachReport{}, err
	}
	report := AttachReport{SourceAlias: f.source.alias, TargetAlias: f.target.alias}
	if err := a.run(progress); err != nil {
		return report, err
	}
	report.LedgerPath, err = a.finish()
	for _, j := range a.jobs {
		report.Partitions = append(report.Partitions, j.result)
	}
	return report, err
}

// ErrNoAttach is in the error of an [Attach] that has no topic to attach.
var ErrNoAttach = errors.New("no topic to attach")

// ErrHasBooks is in the error of an [Attach] in a ledger that has a book already
// of each partition of which the target holds, or held, a record.
var ErrHasBooks = errors.New("has books of all that the target holds")

// An attachment is one run of Attach.
type attachment struct {
	flow  *Flow
	stage *stage
	jobs  []*attachJob

	looked time.Time    // just before the ends of the logs were asked for
	before *predecessor // nil: there is none to look for

	finished atomic.Int64
	aligned  atomic.Int64
}

// An attachJob is one partition.
type attachJob struct {
	topic  *topic
	result AttachedPartition
	bounds bounds // of the source
	pair   ledger.PairID
	asm    bool // the source's log shows compaction
	doubt  ledger.Range

	aligned      int64 // of the attachment's
	beforeCopies int64 // target offset: in front of it there are only duplicates of what follows
}

func (j *attachJob) source() topicPartition {
	return topicPartition{j.result.Topic, j.result.Partition}
}

func (j *attachJob) target() topicPartition {
	return topicPartition{j.result.TargetTopic, j.result.Partition}
}

func (j *attachJob) end(v AttachVerdict, format string, args ...any) {
	j.result.Verdict, j.result.Detail = v, fmt.Sprintf(format, args...)
}

// prepare finds the partitions and where their logs begin and end.
func (a *attachment) prepare() error {
	f := a.flow
	if err := f.connect(); err != nil {
		return err
	}
	if err := f.checkIdentity(); err != nil {
		return err
	}
	books := f.openBooks()
	if err := f.match(books); err != nil {
		return err
	}
	if len(f.topics) == 0 {
		return usageErrorf("cluster %s has %w: %s", f.source.alias, ErrNoAttach, f.whyNone())
	}
	topics := sortedTopics(f.topics)
	l := look{topics: topics, books: books, wrong: f.askRoutes(topics, books)}
	f.config.Routes.settle()
	if err := f.mayHaveRoutes(l); err != nil {
		return err
	}
	if err := f.inspect(topics); err != nil {
		return err
	}
	if err := a.targetsThere(topics); err != nil {
		return err
	}
	past := f.pastBooks()
	for _, t := range topics {
		for i := range t.source.leaders {
			j := &attachJob{topic: t, result: AttachedPartition{Topic: t.name, TargetTopic: t.target, Partition: int32(i)}}
			if !past[j.source()] {
				a.jobs = append(a.jobs, j)
			}
		}
	}
	if err := a.learnBounds(); err != nil {
		return err
	}
	return a.anythingToDo()
}

// anythingToDo refuses to go on in a ledger to which there is nothing to add.
func (a *attachment) anythingToDo() error {
	if a.flow.ledger == nil || slices.ContainsFunc(a.jobs, func(j *attachJob) bool { return j.result.Target.End > 0 }) {
		return nil
	}
	e := usageErrorf("ledger %s exists, and %w", a.flow.config.LedgerPath, ErrHasBooks)
	e.hint = "replicate goes on with it; to make all books anew, choose another file"
	return e
}

// learnBounds asks for the target's ends first: what is copied was on the source
// before.
func (a *attachment) learnBounds() error {
	f := a.flow
	a.looked = f.now()
	var sources, targets []topicPartition
	for _, j := range a.jobs {
		sources = append(sources, j.source())
		if d := j.topic.destination; d.err == nil && int(j.result.Partition) < len(d.leaders) {
			targets = append(targets, j.target())
		} else if d.err != nil && !d.gone() {
			return fmt.Errorf("cluster %s: topic %s: %w", f.target.alias, j.result.TargetTopic, d.err)
		}
	}
	ctx, cancel := context.WithTimeout(f.ctx, 30*time.Second)
	defer cancel()
	ends := f.target.logEnds(ctx, targets)
	starts := f.target.listOffsets(ctx, targets, offsetQuery{replica: -1, timestamp: earliestOffset})
	bounds := f.sourceBounds(sources)
	for _, j := range a.jobs {
		start, end, source := starts[j.target()], ends[j.target()], bounds[j.source()]
		if err := cmp.Or(start.err, end.err); err != nil {
			return fmt.Errorf("cluster %s: offsets of %v: %w", f.target.alias, j.target(), err)
		}
		if source.err != nil {
			return fmt.Errorf("cluster %s: offsets of %v: %w", f.source.alias, j.source(), source.err)
		}
		j.bounds = source.bounds
		j.result.Source = ledger.Range{Start: source.logStart, End: source.lastStable}
		j.result.Target = ledger.Range{Start: start.offset, End: end.offset}
	}
	return nil
}

// run aligns all partitions.
func (a *attachment) run(progress func(AttachProgress)) error {
	f := a.flow
	var err error
	a.stage, err = newStage(f.config.LedgerPath, ledger.Identity{
		SourceAlias: f.source.alias, TargetAlias: f.target.alias,
		SourceClusterID: f.source.id, TargetClusterID: f.target.id,
	}, ledger.Options{Now: f.config.Now}, f.ledger)
	if err != nil {
		return err
	}
	var watching sync.WaitGroup
	stop := make(chan struct{})
	watching.Go(func() { a.watch(stop, progress) })
	err = a.alignAll()
	close(stop)
	watching.Wait()
	if err == nil {
		err = a.leavePredecessor()
	}
	if err != nil {
		a.stage.drop()
	}
	return err
}

// alignAll aligns all partitions, some at a time, until one fails.
func (a *attachment) alignAll() error {
	ctx, cancel := context.WithCancelCause(a.flow.ctx)
	defer cancel(nil)
	jobs := make(chan *attachJob)
	var workers sync.WaitGroup
	for range min(attachWorkers, len(a.jobs)) {
		workers.Go(func() {
			for j := range jobs {
				if err := a.align(ctx, j); err != nil {
					cancel(err) // the first one stays
				}
				a.finished.Add(1)
			}
		})
	}
	for _, j := range a.jobs {
		if ctx.Err() != nil {
			break
		}
		jobs <- j
	}
	close(jobs)
	workers.Wait()
	return context.Cause(ctx)
}

func (a *attachment) watch(stop <-chan struct{}, progress func(AttachProgress)) {
	if progress == nil {
		return
	}
	p := AttachProgress{Partitions: len(a.jobs)}
	for _, j := range a.jobs {
		p.Total += j.result.Target.Len()
	}
	ticker := time.NewTicker(time.Second)
	defer ticker.Stop()
	for {
		p.Finished, p.Aligned = int(a.finished.Load()), min(a.aligned.Load(), p.Total)
		progress(p)
		select {
		case <-ticker.C:
		case <-stop:
			return
		}
	}
}

// movedLimit is how often a partition is begun again because a log start moved.
const movedLimit = 5

// empty ends a partition of which the target holds nothing. It reports whether
// that is so.
func (j *attachJob) empty() bool {
	r := &j.result
	switch d := j.topic.destination; {
	case d.gone():
		j.end(AttachEmpty, "the target has no such topic")
	case int(r.Partition) >= len(d.leaders):
		j.end(AttachEmpty, "the target's topic has only %d partitions", len(d.leaders))
	case !r.Target.Empty():
		return false
	case r.Target.End == 0:
		j.end(AttachEmpty, "the target holds no record")
	case r.Source.Empty():
		r.Unprovable.BeforeStart = r.Source.End
		j.end(AttachEmpty, "both sides have deleted all that they held; what was copied cannot be told")
	default:
		j.end(AttachRefused, "the target has deleted all that it held, up to offset %d: what was copied cannot be told, and replicate would copy all of it again; "+
			"give it --start to begin elsewhere, or leave the topic out with --topics-exclude", r.Target.End)
	}
	return true
}

// missed refuses a partition whose target topic is not there, though MirrorMaker
// says that it has copied it: it has another name, or was deleted.
func (a *attachment) missed(j *attachJob) {
	if j.topic.destination.gone() && a.before.knows(j.source()) {
		j.end(AttachRefused, "MirrorMaker 2 has copied it, by its source offsets or offset syncs, and the target has no topic %s: "+
			"check that alias and replication.policy are those that it ran with; if the topic was deleted there, replicate makes it again", j.result.TargetTopic)
	}
}

// align aligns one partition.
func (a *attachment) align(ctx context.Context, j *attachJob) error {
	if j.empty() {
		a.missed(j)
		return nil
	}
	for try := 1; ; try++ {
		err := a.alignOnce(ctx, j)
		var refusal *alignError
		var source *sourceError
		switch {
		case err == nil:
			j.result.Verdict = Attached
			return nil
		case errors.As(err, &refusal), errors.As(err, &source), errors.Is(err, errNothingMatches):
			j.end(AttachRefused, "%v", err)
			return a.abandon(j, err)
		case errors.Is(err, errMoved) && try < movedLimit:
			if err := cmp.Or(a.abandon(j, err), a.boundsAgain(ctx, j)); err != nil {
				return err
			}
		default:
			return fmt.Errorf("partition %v: %w", j.source(), err)
		}
	}
}

// abandon closes the pair of a partition that comes to nothing.
func (a *attachment) abandon(j *attachJob, why error) error {
	id := j.pair
	j.pair = 0
	if id == 0 {
		return nil
	}
	reason := why.Error()
	return a.stage.draft.ClosePair(id, ledger.Closing{Reason: strings.ToValidUTF8(reason[:min(len(reason), 1000)], "")})
}

// boundsAgain learns where the logs of a partition begin now. Their ends stay.
func (a *attachment) boundsAgain(ctx context.Context, j *attachJob) error {
	f := a.flow
	query := offsetQuery{replica: -1, timestamp: earliestOffset}
	source := f.source.listOffsets(ctx, []topicPartition{j.source()}, query)[j.source()]
	target := f.target.listOffsets(ctx, []topicPartition{j.target()}, query)[j.target()]
	if err := cmp.Or(source.err, target.err); err != nil {
		return err
	}
	j.bounds.logStart = source.offset
	j.result.Source.Start = min(source.offset, j.result.Source.End)
	j.result.Target.Start = min(target.offset, j.result.Target.End)
	return nil
}

// alignOwn aligns a partition as a copy of this package's.
func (a *attachment) alignOwn(ctx context.Context, j *attachJob) error {
	sides := a.sides(ctx, j)
	b, err := sides.locate()
	if err != nil {
		return err
	}
	got, err := sides.reconstruct(&b, a.sink(j, b.start))
	if err != nil {
		return err
	}
	r := &j.result
	r.Copied, r.Orphans, r.Foreign, r.Duplicates = got.counts.copied, got.counts.orphans, got.counts.foreign, got.counts.duplicates
	r.BeforeStart = b.start
	r.Unprovable = Unprovable{Orphans: r.Orphans, ByPlace: got.counts.byPlace, Repeats: got.counts.unknown, Unexplained: got.counts.unexplained}
	r.Unprovable.Foreign = got.counts.foreign - got.counts.unknown
	if r.Unprovable.NotOnTarget = b.notOnTarget(); r.Unprovable.NotOnTarget == 0 && (b.skipped > 0 || b.anchor.sequence != 0) {
		r.Unprovable.BeforeStart = b.start
	}
	return a.complete(j)
}

// longAgo is when a copy was last at the source's end of which that is not known:
// before any tombstone could have gone. It is a time, as what is never said would
// be taken for that of the pair's opening, which says nothing of the copy.
const longAgo = 1

// caughtUp returns when the copy of a partition was last at the source's end, as
// far as there is evidence: it was when the ends were asked for, or it is not known.
func (a *attachment) caughtUp(j *attachJob) int64 {
	if a.stage.draft.End(j.pair).Source >= j.bounds.highWatermark {
		return a.looked.UnixMilli()
	}
	return longAgo
}

// refused reports whether a partition was.
func (a *attachment) refused() bool {
	return slices.ContainsFunc(a.jobs, func(j *attachJob) bool { return j.result.Verdict == AttachRefused })
}

// finish writes the ledger, and returns its path; "" if there is none and nothing
// to write.
func (a *attachment) finish() (string, error) {
	defer a.stage.drop()
	f := a.flow
	var kept []ledger.PairID
	for _, j := range a.jobs {
		if j.result.Verdict == Attached {
			kept = append(kept, j.pair)
		}
	}
	switch {
	case len(kept) == 0 && f.ledger != nil:
		return f.config.LedgerPath, nil
	case len(kept) == 0 && a.refused():
		return "", nil
	}
	fresh, err := f.freshProducer()
	if err != nil {
		return "", err
	}
	prepare := func(l *ledger.Ledger) error {
		base := f.ledger
		f.ledger = l
		defer func() { f.ledger = base }()
		if err := a.setScope(l); err != nil {
			return err
		}
		return f.remember()
	}
	complete := func(l *ledger.Ledger, from, to []ledger.PairID) error {
		for i, id := range to {
			if err := l.SetState(id, a.stage.draft.State(from[i])); err != nil {
				return err
			}
			for _, d := range a.stage.draft.Doubts(from[i]) {
				if err := l.SetDoubt(id, d); err != nil {
					return err
				}
			}
			if fresh == nil {
				continue
			}
			p := *fresh
			p.Appended = l.End(id).Appended
			if err := l.SetProducer(id, p); err != nil {
				return err
			}
		}
		return nil
	}
	return f.config.LedgerPath, a.stage.finish(kept, prepare, complete)
}

// setScope says which topics the flow is about. A scope that has all that is
// attached stays: an attachment of some topics does not make it narrower.
func (a *attachment) setScope(l *ledger.Ledger) error {
	outside := func(j *attachJob) bool { return j.result.Verdict == Attached && !a.flow.wasInScope(j.result.Topic) }
	if a.flow.former != nil && !slices.ContainsFunc(a.jobs, outside) {
		return nil
	}
	return l.SetScope(a.flow.scope())
}

// freshProducer returns a producer id for what is copied from now on, so that
// it cannot be taken for what a copier wrote that may be alive. Nil if there is
// no right to get one: then the last one goes on.
func (f *Flow) freshProducer() (*ledger.Producer, error) {
	id, epoch, err := f.target.initProducer(f.ctx)
	if code := codeOf(err); code == kerr.ClusterAuthorizationFailed || code == kerr.TopicAuthorizationFailed {
		return nil, nil
	}
	return &ledger.Producer{ID: id, Epoch: epoch}, err
}
