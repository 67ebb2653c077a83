package replicate

import (
	"context"
	"iter"

	"apograph/ledger"
)

// sides opens the two logs of a partition.
func (a *attachment) sides(ctx context.Context, j *attachJob) *attachSides {
	f, traits := a.flow, j.topic.facts.Load().traits()
	s := &attachSides{logStart: j.result.Source.Start, targetStart: j.result.Target.Start, targetEnd: j.result.Target.End}
	s.source = a.sourceSide(ctx, j, false)
	s.target = func() (func() (*targetBatch, error), func()) {
		return readAhead(ctx, f.targetBatches(a.targetReader(j), traits.timestampsReplaced))
	}
	return s
}

// sourceSide returns what reads a partition's source from an offset on; content: as
// it is compared with a copy that MirrorMaker 2 made.
func (a *attachment) sourceSide(ctx context.Context, j *attachJob, content bool) func(from int64) (func() (*unit, error), func()) {
	f, traits := a.flow, j.topic.facts.Load().traits()
	return func(from int64) (func() (*unit, error), func()) {
		r := attachReader{
			cluster: f.source, tp: j.source(), id: j.topic.source.id, next: from, end: j.result.Source.End,
			committed: true, mayEnd: traits.local && traits.compacts, within: f.config.UnavailableAfter,
		}
		asm := &assembler{
			pos: from, timestampsReplaced: traits.timestampsReplaced, compactPolicy: traits.compacts, compactSeen: traits.compacts,
			keepInfos: true, byContent: content, booksOnly: true, joinLimit: joinBytes,
			loss:     func(bool) ledger.Cause { return ledger.CauseNone }, // it is begun again then
			logStart: func() (int64, error) { start, _, err := f.sourceRange(j.source()); return start, err },
		}
		return readAhead(ctx, f.sourceUnits(r, asm))
	}
}

// targetReader returns a reader of a partition's target, of all that is written.
func (a *attachment) targetReader(j *attachJob) attachReader {
	return attachReader{
		cluster: a.flow.target, tp: j.target(), id: j.topic.destination.id, next: j.result.Target.Start, end: j.result.Target.End,
		mayEnd: j.topic.facts.Load().target.compacts(), within: a.flow.config.UnavailableAfter,
	}
}

// sink returns where the books of a partition go whose scope starts at an offset.
func (a *attachment) sink(j *attachJob, start int64) attachSink {
	draft := a.stage.draft
	j.doubt, j.beforeCopies = ledger.Range{}, j.result.Target.Start
	a.aligned.Add(-j.aligned)
	j.aligned = 0
	return attachSink{
		open: func(first ledger.Producer) error {
			ids, err := draft.OpenPairs([]ledger.Pair{{
				SourceTopic: j.topic.name, SourceTopicID: j.topic.source.id,
				TargetTopic: j.topic.target, TargetTopicID: j.topic.destination.id, Partition: j.result.Partition,
				ScopeStart: start, TargetBase: j.result.Target.Start, Producer: first,
			}})
			if err == nil {
				j.pair = ids[0]
			}
			return err
		},
		entry: func(e ledger.Entry) error {
			a.aligned.Add(e.Target.Len())
			j.aligned += e.Target.Len()
			j.sawCompaction(&e)
			return draft.Append(j.pair, e)
		},
		produce: func(p ledger.Producer) error { return draft.SetProducer(j.pair, p) },
		again: func() (attachSink, iter.Seq2[ledger.Entry, error], error) {
			entries := draft.Entries(j.pair, 0)
			return a.sink(j, start), entries, a.abandon(j, errCopiedAgain)
		},
	}
}

// sawCompaction notes what of an entry was compacted away. When that was cannot
// be told, so behind what was copied it is in doubt.
func (j *attachJob) sawCompaction(e *ledger.Entry) {
	note := func(r ledger.Range) {
		j.asm = true
		if e.Target.Start == j.beforeCopies && r.Start == e.Source.Start {
			return // nothing was copied before it
		}
		if j.doubt.Empty() {
			j.doubt = r
		}
		j.doubt.End = r.End
	}
	if e.Tile == ledger.Duplicate && e.Target.Start == j.beforeCopies {
		j.beforeCopies = e.Target.End // of what follows
	}
	if e.Tile == ledger.Compacted {
		note(e.Source)
	}
	for _, g := range e.Gaps {
		if g.Tile == ledger.Compacted {
			note(g.Range)
		}
	}
}
