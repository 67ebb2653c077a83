package replicate

import (
	"context"
	"fmt"
	"iter"
	"math"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"apograph/internal/recordbatch"
	"apograph/ledger"
)

// Where the next generation begins at a cut of the source's log. A cut can take the
// marker of a transaction whose data stays. What the books call aborted can be
// committed by then, or be open again and be committed later.

// decided returns where the next generation must begin so that it leaves nothing out
// below a cut at source offset at: at the first of what the books call aborted, those
// of the open generation or of an earlier one, and the source does not, or not yet.
// What was copied and is aborted now stays on the target, which verify names. An
// error says that the source did not tell.
func (p *partition) decided(at int64) (int64, error) {
	ctx, cancel := context.WithTimeout(p.flow.ctx, 30*time.Second)
	defer cancel()
	start, err := p.flow.source.listOffset(ctx, p.source, offsetQuery{replica: -1, timestamp: earliestOffset})
	if err != nil {
		return at, err
	}
	again := rereading{p: p, reader: attachReader{cluster: p.flow.source, tp: p.source, id: p.pair.SourceTopicID, committed: true}}
	for _, b := range slices.Backward(p.booksBelow(ledger.Range{Start: start, End: at})) {
		for r, err := range p.flow.aborted(b.pair, b.part) {
			if err != nil {
				return at, err
			}
			if first, err := again.first(r); err != nil || first >= 0 {
				return first, err
			}
		}
	}
	return at, nil
}

// tellTwice says that the source range in front of a cut is copied again.
func (p *partition) tellTwice(r ledger.Range) {
	if r.Empty() {
		return
	}
	p.flow.config.Logger.Warn("source offsets in front of the cut are copied again: what was aborted at the first of them is not so any more; "+
		"what is copied of them already is on the target twice then", "partition", p.source.String(), "offsets", r.String())
}

// booksOf is the part of the source of which one generation's books have the last word.
type booksOf struct {
	pair ledger.PairID
	part ledger.Range
}

// booksBelow returns which generation's books have the last word on which part of a
// source range, from the newest generation down: each as far as no later one of the
// same source topic has said anything.
func (p *partition) booksBelow(r ledger.Range) (all []booksOf) {
	pair, ok := p.flow.ledger.Pair(p.pair.ID) // its start may have grown since the opening
	for ok && pair.SourceTopicID == p.pair.SourceTopicID && !r.Empty() {
		part := ledger.Range{Start: max(r.Start, pair.ScopeStart), End: r.End}
		if !part.Empty() {
			all = append(all, booksOf{pair.ID, part})
			r.End = part.Start
		}
		pair, ok = p.flow.ledger.Previous(pair.ID)
	}
	return all
}

// aborted returns, ascending, the parts of a source range that a pair's books call
// aborted.
func (f *Flow) aborted(pair ledger.PairID, in ledger.Range) iter.Seq2[ledger.Range, error] {
	return func(yield func(ledger.Range, error) bool) {
		for e, err := range f.ledger.Entries(pair, in.Start) {
			if err != nil {
				yield(ledger.Range{}, f.fail(fmt.Errorf("read the books: %w", err)))
				return
			}
			if e.Source.Start >= in.End {
				return
			}
			for run := range e.Runs() {
				r := ledger.Range{Start: max(run.Source.Start, in.Start), End: min(run.Source.End, in.End)}
				if run.Tile == ledger.Aborted && !r.Empty() && !yield(r, nil) {
					return
				}
			}
		}
	}
}

// A rereading tells what the source says by now of offsets that were aborted. It keeps
// what one answer says, for what is asked next.
type rereading struct {
	p      *partition
	reader attachReader
	looked ledger.Range   // what the last answer was about
	open   []ledger.Range // in it, ascending, what is not aborted, or not yet
}

// first returns the first offset of a range which consumers of the source get, or may
// get later; -1 if all of it is aborted for good, or gone.
func (v *rereading) first(r ledger.Range) (int64, error) {
	for at := r.Start; at < r.End; at = v.looked.End {
		if !v.looked.Contains(at) {
			if err := v.look(at); err != nil {
				return -1, err
			}
		}
		for _, o := range v.open {
			if start := max(o.Start, at); start < min(o.End, r.End) {
				return start, nil
			}
		}
	}
	return -1, nil
}

// look asks the source about what stands at an offset and behind it.
func (v *rereading) look(at int64) error {
	empty, hollow := 0, v.p.hollow && (v.p.asm.compactPolicy || v.p.asm.compactSeen)
	v.reader.next = at
	err := v.p.flow.source.retry(v.p.flow.ctx, 30*time.Second, func(ctx context.Context) error {
		if v.p.flow.draining() {
			return context.Canceled
		}
		answer, err := v.reader.ask(ctx)
		if err != nil {
			return err
		}
		v.judge(at, answer)
		if !v.looked.Empty() {
			return nil
		}
		if empty++; empty >= emptyAnswers && hollow && len(answer.RecordBatches) == 0 {
			v.looked.End = answer.LastStableOffset
			return nil
		}
		return fmt.Errorf("it answers with nothing at offset %d, though its log goes on to %d", at, answer.LastStableOffset)
	})
	if codeOf(err) == kerr.OffsetOutOfRange {
		return v.outside(at)
	}
	return err
}

// outside deals with an offset at which the source's log has nothing: it is deleted,
// or it comes again.
func (v *rereading) outside(at int64) error {
	ctx, cancel := context.WithTimeout(v.p.flow.ctx, 30*time.Second)
	defer cancel()
	start, err := v.p.flow.source.listOffset(ctx, v.p.source, offsetQuery{replica: -1, timestamp: earliestOffset})
	v.looked, v.open = ledger.Range{Start: at, End: start}, nil
	if start <= at {
		v.unknownFrom(at)
	}
	return err
}

// judge notes what an answer says of what stands from an offset on. Batches are told
// by their headers alone. What cannot be read counts as what consumers get: the copy
// says what is wrong with it.
func (v *rereading) judge(at int64, answer *kmsg.FetchResponseTopicPartition) {
	v.looked, v.open = ledger.Range{Start: at, End: at}, nil
	if at >= answer.LastStableOffset {
		v.unknownFrom(at)
		return
	}
	aborted := abortedOf(answer)
	for rest := answer.RecordBatches; len(rest) > 0; {
		size, magic, err := recordbatch.Peek(rest)
		if err == recordbatch.ErrTruncated {
			return
		}
		if err != nil {
			v.unknownFrom(v.looked.End)
			return
		}
		start, end, given := v.judgeBatch(rest[:size], magic, &aborted)
		if v.looked.End = max(v.looked.End, end); given && end > max(start, at) {
			v.note(ledger.Range{Start: max(start, at), End: end})
		}
		rest = rest[size:]
	}
}

// judgeBatch returns the offsets of a batch, and whether consumers get them.
func (v *rereading) judgeBatch(batch []byte, magic int8, aborted *abortedTransactions) (start, end int64, given bool) {
	last, _ := lastOf(batch, magic)
	if magic < 2 { // of a compressed one, the last offset alone is known
		return v.looked.End, last + 1, true
	}
	h, err := recordbatch.Parse(batch)
	if err != nil || recordbatch.CheckCRC(batch) != nil {
		return v.looked.End, last + 1, true
	}
	tile, err := aborted.classify(h, batch)
	return h.BaseOffset, h.NextOffset(), err != nil || tile == ledger.Copied && h.Count > 0
}

func (v *rereading) note(r ledger.Range) {
	if n := len(v.open) - 1; n >= 0 && v.open[n].End == r.Start {
		v.open[n].End = r.End
		return
	}
	v.open = append(v.open, r)
}

// unknownFrom notes that nothing is settled from an offset on.
func (v *rereading) unknownFrom(at int64) {
	v.note(ledger.Range{Start: at, End: math.MaxInt64})
	v.looked.End = math.MaxInt64
}
