package replicate

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"apograph/internal/recordbatch"
	"apograph/ledger"
)

// attachShare is how many bytes of one partition are read at once.
const attachShare = 1 << 20

// errMoved says that a log's start has moved while it was read.
var errMoved = errors.New("the log start has moved")

// An attachReader reads one partition of one cluster raw, up to an end that was
// known before.
type attachReader struct {
	cluster   *cluster
	tp        topicPartition
	id        ledger.TopicID
	next, end int64
	committed bool // read_committed
	mayEnd    bool // an empty answer can mean that the rest was compacted away
	within    time.Duration
}

// fetch returns what stands at r.next, nil if the rest of the log holds nothing.
func (r *attachReader) fetch(ctx context.Context) (answer *kmsg.FetchResponseTopicPartition, err error) {
	empty := 0
	err = r.cluster.retry(ctx, r.within, func(ctx context.Context) error {
		if answer, err = r.ask(ctx); err != nil || len(answer.RecordBatches) > 0 {
			return err
		}
		if empty++; empty >= emptyAnswers && r.mayEnd && r.sees(answer) >= r.end {
			answer = nil
			return nil
		}
		return fmt.Errorf("%v: it answers with nothing at offset %d, though its log goes on to %d", r.tp, r.next, r.end)
	})
	if codeOf(err) == kerr.OffsetOutOfRange {
		err = errMoved
	}
	return answer, err
}

// sees returns up to where the leader says that there may be something to read: a new
// one may not know for a while how much of its log that is.
func (r *attachReader) sees(answer *kmsg.FetchResponseTopicPartition) int64 {
	if r.committed {
		return answer.LastStableOffset
	}
	return answer.HighWatermark
}

func (r *attachReader) ask(ctx context.Context) (*kmsg.FetchResponseTopicPartition, error) {
	l, _ := r.cluster.leader(r.tp)
	if l.node < 0 {
		return nil, kerr.LeaderNotAvailable
	}
	request := newFetch(bulkWait, 2*attachShare)
	if !r.committed {
		request.IsolationLevel = 0
	}
	p := &partition{source: r.tp, pair: ledger.Pair{SourceTopicID: r.id}}
	request.add([]asked{{p: p, next: r.next, epoch: -1, leaderEpoch: l.epoch}}, attachShare)
	raw, err := r.cluster.client.Broker(int(l.node)).Request(ctx, request)
	if err != nil {
		return nil, err
	}
	response := raw.(*kmsg.FetchResponse)
	if err := kerr.ErrorForCode(response.ErrorCode); err != nil {
		return nil, err
	}
	for i := range response.Topics {
		for j := range response.Topics[i].Partitions {
			answer := &response.Topics[i].Partitions[j]
			return answer, kerr.ErrorForCode(answer.ErrorCode)
		}
	}
	return nil, fmt.Errorf("%v: empty answer to Fetch", r.tp)
}

// A piece is what one fetch brought, in parts.
type piece[T any] struct {
	parts []T
	err   error
}

// readAhead calls produce in a goroutine of its own, and returns what it hands
// over, one part at a time, the zero value at the end. No more than two pieces
// are waiting. stop ends it.
func readAhead[T any](ctx context.Context, produce func(ctx context.Context, emit func([]T) bool) error) (next func() (T, error), stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	pieces := make(chan piece[T], 1)
	done := make(chan struct{})
	send := func(p piece[T]) bool {
		select {
		case pieces <- p:
			return true
		case <-ctx.Done():
			return false
		}
	}
	go func() {
		defer close(done)
		defer close(pieces)
		if err := produce(ctx, func(parts []T) bool { return send(piece[T]{parts: parts}) }); err != nil {
			send(piece[T]{err: err})
		}
	}()
	var at piece[T]
	next = func() (part T, err error) {
		for len(at.parts) == 0 && at.err == nil {
			p, ok := <-pieces
			if !ok {
				return part, context.Cause(ctx)
			}
			at = p
		}
		if at.err != nil {
			return part, at.err
		}
		part, at.parts = at.parts[0], at.parts[1:]
		return part, nil
	}
	return next, func() { cancel(); <-done }
}

// sourceUnits hands over the units of a source partition from r.next on.
func (f *Flow) sourceUnits(r attachReader, asm *assembler) func(ctx context.Context, emit func([]*unit) bool) error {
	return func(ctx context.Context, emit func([]*unit) bool) error {
		for r.next < r.end {
			answer, err := r.fetch(ctx)
			if err != nil {
				return err
			}
			c := &chunk{until: r.end}
			if answer != nil {
				c = &chunk{logStart: answer.LogStartOffset, aborted: abortedOf(answer)}
				next, _ := wholeBatches(c, answer.RecordBatches, &fetchState{next: r.next, epoch: -1})
				if next == r.next && len(c.data) == 0 {
					return fmt.Errorf("%v: no whole batch at offset %d", r.tp, r.next)
				}
				r.next = next
			} else {
				r.next = r.end
			}
			units, err := f.assembleAll(asm, c)
			if len(units) > 0 && !emit(units) {
				return context.Cause(ctx)
			}
			if err != nil {
				return err
			}
		}
		return nil
	}
}

// assembleAll returns all units of c.
func (f *Flow) assembleAll(asm *assembler, c *chunk) (units []*unit, err error) {
	t := f.tools()
	defer f.giveBack(t)
	asm.tools = t
	for {
		u, err := asm.next(c)
		if u == nil || err != nil {
			return units, err
		}
		if u.entry.Tile == ledger.Lost {
			return units, errMoved
		}
		units = append(units, u)
	}
}

// targetBatches hands over the batches of a target partition from r.next on.
func (f *Flow) targetBatches(r attachReader, timestampsReplaced bool) func(ctx context.Context, emit func([]*targetBatch) bool) error {
	return func(ctx context.Context, emit func([]*targetBatch) bool) error {
		for r.next < r.end {
			answer, err := r.fetch(ctx)
			if err != nil || answer == nil {
				return err
			}
			batches, err := f.targetPiece(&r, answer.RecordBatches, timestampsReplaced)
			if len(batches) > 0 && !emit(batches) {
				return context.Cause(ctx)
			}
			if err != nil {
				return err
			}
		}
		return nil
	}
}

// targetPiece reads the whole batches of one answer.
func (f *Flow) targetPiece(r *attachReader, data []byte, timestampsReplaced bool) (batches []*targetBatch, err error) {
	t := f.tools()
	defer f.giveBack(t)
	before := r.next
	for r.next < r.end {
		size, magic, err := recordbatch.Peek(data)
		if errors.Is(err, recordbatch.ErrTruncated) || len(data) == 0 {
			break
		}
		if err == nil && magic != 2 {
			err = fmt.Errorf("message format %d", magic)
		}
		if err != nil {
			return batches, misaligned("target offset %d: %v", r.next, err)
		}
		b, err := t.readTarget(data[:size], timestampsReplaced)
		if err != nil {
			return batches, misaligned("target offset %d: %v", r.next, err)
		}
		data = data[size:]
		if b.next > r.next {
			r.next = b.next
			batches = append(batches, b)
		}
	}
	if r.next == before {
		return nil, fmt.Errorf("%v: no whole batch at offset %d", r.tp, r.next)
	}
	return batches, nil
}

// readTarget describes one batch of the target.
func (t *tools) readTarget(raw []byte, timestampsReplaced bool) (*targetBatch, error) {
	h, err := recordbatch.Parse(raw)
	if err != nil {
		return nil, err
	}
	if err := recordbatch.CheckCRC(raw); err != nil {
		return nil, err
	}
	b := &targetBatch{base: h.BaseOffset, next: h.NextOffset(), producer: producerKey{h.ProducerID, h.ProducerEpoch}, sequence: h.BaseSequence}
	if h.ProducerID < 0 || h.BaseSequence < 0 || h.Control() || h.Transactional() {
		b.producer = stranger
		return b, nil
	}
	if h.Count == 0 {
		return b, nil
	}
	b.records, err = t.hashes(raw, h, timestampsReplaced)
	return b, err
}
