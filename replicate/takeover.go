package replicate

import (
	"context"
	"errors"

	"apograph/internal/recordbatch"
	"apograph/ledger"
)

// alignOnce aligns a partition from its logs' beginnings: as a copy of this
// package's, or as one of MirrorMaker's.
//
// Whose copy it is shows at its beginning, where MirrorMaker's records have no
// producer id (idempotence is off, Worker.baseProducerProps), or belong to
// transactions (KIP-618). Somebody else may have written that, though; or somebody
// has made MirrorMaker's producer idempotent, which its own topics tell.
func (a *attachment) alignOnce(ctx context.Context, j *attachJob) error {
	numbered, err := a.numbered(ctx, j)
	if err != nil {
		return err
	}
	known := a.before.knows(j.source())
	first, second := a.takeOver, a.alignOwn
	if numbered {
		first, second = second, first
	}
	refusal := first(ctx, j)
	if !isRefusal(refusal) || known != numbered {
		return refusal
	}
	if err := a.abandon(j, refusal); err != nil {
		return err
	}
	otherwise := second(ctx, j)
	if errors.Is(otherwise, errNothingMatches) {
		return refusal
	}
	return otherwise
}

// isRefusal reports whether an error says that both sides do not align.
func isRefusal(err error) bool {
	return errors.As(err, new(*alignError)) || errors.Is(err, errNothingMatches)
}

// numbered reports whether the first record of the target was written by an
// idempotent producer outside of transactions, as this package does.
func (a *attachment) numbered(ctx context.Context, j *attachJob) (bool, error) {
	for r := a.targetReader(j); r.next < r.end; {
		answer, err := r.fetch(ctx)
		if answer == nil || err != nil {
			return false, err
		}
		for data := answer.RecordBatches; len(data) > 0; {
			size, magic, err := recordbatch.Peek(data)
			if err != nil || magic != 2 {
				break
			}
			h, err := recordbatch.Parse(data[:size])
			if err != nil {
				return true, nil // which is refused, with its place
			}
			if !h.Control() && h.Count > 0 && h.NextOffset() > r.next {
				return h.ProducerID >= 0 && !h.Transactional(), nil
			}
			r.next, data = max(r.next, h.NextOffset()), data[size:]
		}
		if size, _, err := recordbatch.Peek(answer.RecordBatches); err != nil || size == 0 {
			return true, nil
		}
	}
	return false, nil
}

// undecidedTarget refuses a target of which a transaction is open: MirrorMaker's
// own ends when it is stopped, or by its timeout.
func (a *attachment) undecidedTarget(j *attachJob) error {
	query := offsetQuery{replica: -1, timestamp: latestOffset, isolation: 1}
	stable := a.flow.target.listOffsets(a.flow.ctx, []topicPartition{j.target()}, query)[j.target()]
	switch {
	case stable.err != nil:
		return stable.err
	case stable.offset < j.result.Target.End:
		return undecided("a transaction is open on the target from offset %d on: attach again when it has ended, as it does by its timeout", stable.offset)
	}
	return nil
}

// takeoverSides opens the two logs of a partition.
func (a *attachment) takeoverSides(ctx context.Context, j *attachJob) *takeoverSides {
	return &takeoverSides{
		source: a.sourceSide(ctx, j, true),
		target: func() (func() (*copyBatch, error), func()) {
			r := a.targetReader(j)
			r.committed = true
			return readAhead(ctx, a.flow.copyBatches(r, j.topic.facts.Load().traits().timestampsReplaced))
		},
		undecided: func() (map[uint64]int64, error) { return a.undecidedSource(ctx, j) },
		hints:     a.before.hintsFor(j.source()),
		logStart:  j.result.Source.Start, targetStart: j.result.Target.Start, targetEnd: j.result.Target.End,
	}
}

// undecidedSource returns where the records of the source stand that lie behind an
// open transaction, by hash; as many as an alignment holds.
func (a *attachment) undecidedSource(ctx context.Context, j *attachJob) (map[uint64]int64, error) {
	r := attachReader{
		cluster: a.flow.source, tp: j.source(), id: j.topic.source.id, next: j.bounds.lastStable, end: j.bounds.highWatermark,
		mayEnd: true, within: a.flow.config.UnavailableAfter,
	}
	next, stop := readAhead(ctx, a.flow.copyBatches(r, j.topic.facts.Load().traits().timestampsReplaced))
	defer stop()
	found := map[uint64]int64{}
	for len(found) < attachWindow {
		b, err := next()
		if b == nil || err != nil {
			return found, err
		}
		for _, record := range b.records {
			if record.offset >= j.bounds.lastStable {
				found[record.hash] = record.offset
			}
		}
	}
	return found, nil
}

// takeOver makes the books of a partition by content: first as the copier is said
// to have read the source, then in the other way.
func (a *attachment) takeOver(ctx context.Context, j *attachJob) error {
	if err := a.undecidedTarget(j); err != nil {
		return err
	}
	sides := a.takeoverSides(ctx, j)
	at, err := sides.locate()
	if err != nil {
		return err
	}
	at = at.inHoles(sides.targetStart)
	committed := a.before.readsCommitted()
	got, err := sides.takeover(at, committed, a.sink(j, sides.startOf(at)))
	var refusal *alignError
	if errors.As(err, &refusal) && !refusal.undecided {
		if err := a.abandon(j, err); err != nil {
			return err
		}
		var otherwise error
		got, otherwise = sides.takeover(at, !committed, a.sink(j, sides.startOf(at)))
		if !errors.As(otherwise, new(*alignError)) { // else what was likelier says more
			err = otherwise
		}
	}
	if err != nil {
		return err
	}
	j.tookOver(got, sides, at)
	return a.complete(j)
}

// startOf returns where the scope of books starts that begin at an anchor.
func (s *takeoverSides) startOf(at takenAnchor) int64 {
	if at.skipped == 0 {
		return s.logStart
	}
	return at.source
}

// tookOver notes what came of a partition.
func (j *attachJob) tookOver(got *takeover, sides *takeoverSides, at takenAnchor) {
	r := &j.result
	r.Copied, r.Foreign, r.Duplicates, r.BeforeStart = got.counts.copied, got.counts.foreign, got.counts.duplicates, got.start
	r.Aborted, r.Markers, r.TimestampsReplaced = got.found.aborted, got.found.markers, got.found.stamped
	r.Unprovable = Unprovable{ByPlace: got.counts.byPlace, Unexplained: got.counts.unexplained, Foreign: got.found.strange}
	switch {
	case at.skipped > 0 && at.holes == 0 && sides.targetStart == 0:
		r.Unprovable.NotOnTarget = at.skipped
	case at.skipped > 0 || sides.logStart > 0 && (sides.targetStart > 0 || at.target > 0):
		r.Unprovable.BeforeStart = got.start
	}
}

// complete gives the books of a partition what stands beside the entries.
func (a *attachment) complete(j *attachJob) error {
	r := &j.result
	if r.Unprovable.StaleKeys = j.doubt.Len(); !j.doubt.Empty() {
		doubt := ledger.Doubt{Kind: ledger.StaleKeys, Range: j.doubt, AtMillis: a.flow.now().UnixMilli()}
		if err := a.stage.draft.SetDoubt(j.pair, doubt); err != nil {
			return err
		}
	}
	return a.stage.draft.SetState(j.pair, ledger.State{
		LogStart: j.bounds.logStart, LastStable: j.bounds.lastStable, HighWatermark: j.bounds.highWatermark,
		SeenMillis: a.flow.now().UnixMilli(), CaughtUpMillis: a.caughtUp(j), CompactSeen: j.asm || j.topic.facts.Load().traits().compacts,
	})
}
