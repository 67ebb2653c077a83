package replicate

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"

	"apograph/internal/recordbatch"
	"apograph/ledger"
)

// A tailReader reads the batches of a target partition's log, committed or
// not, raw. It says of each whether it is ours: under the producer id and epoch
// of any producer that the pair ever had, not transactional, no control batch.
type tailReader struct {
	p         *partition
	at, end   int64
	producers []ledger.Producer
	appended  int64 // a count of records near those that are read, to number them
	hashAll   bool  // also what is not ours
	headers   bool  // one batch at a time, and of each the header alone
	stamped   bool  // the target has put its own time on the records
	buffer    []byte
}

// newTail returns a reader of the target's log in [from, end).
func (p *partition) newTail(from, end int64) *tailReader { return p.tailOf(p.pair.ID, from, end) }

// tailOf returns one to which what a pair's producers wrote is ours.
func (p *partition) tailOf(pair ledger.PairID, from, end int64) *tailReader {
	return &tailReader{
		p: p, at: from, end: end,
		producers: p.flow.ledger.Producers(pair), appended: p.flow.ledger.End(pair).Appended,
		stamped: p.asm.timestampsReplaced,
	}
}

// A readBatch is one batch of the target's log.
type readBatch struct {
	base, next int64
	ours       bool
	number     int64 // ours: how many records of the pair come before the one at base
	producer   ledger.Producer
	plain      bool // written by an idempotent producer, outside of transactions
	records    []readRecord
	unreadable bool // not ours, and whatever it holds, nothing that a copier wrote
}

type readRecord struct {
	offset int64
	hash   uint64
}

// weight is what a batch counts for where they are kept.
func (b *readBatch) weight() int { return 1 + len(b.records) }

// hashAt returns the hash of the record at an offset, and false where the log
// holds none any more.
func (b *readBatch) hashAt(offset int64) (uint64, bool) {
	i, ok := slices.BinarySearchFunc(b.records, offset, func(r readRecord, offset int64) int { return int(r.offset - offset) })
	if !ok {
		return 0, false
	}
	return b.records[i].hash, true
}

// batch returns the next batch, nil at the end. What was deleted from the log
// is passed over.
func (r *tailReader) batch() (*readBatch, error) {
	for r.at < r.end {
		size, magic, err := recordbatch.Peek(r.buffer)
		if err != nil {
			if err := r.fetch(); err != nil {
				return nil, err
			}
			continue
		}
		raw := r.buffer[:size]
		r.buffer = r.buffer[size:]
		b, err := r.readOld(raw), error(nil)
		if magic == 2 {
			b, err = r.read(raw)
		}
		if err != nil {
			return nil, fmt.Errorf("target offset %d: %w", r.at, err)
		}
		if b.next <= r.at {
			continue
		}
		r.at = b.next
		return b, nil
	}
	return nil, nil
}

// readOld describes an entry of a message format that knows no producers. A
// compressed one names its last offset only (KIP-31): it takes all from where
// the reader stands.
func (r *tailReader) readOld(raw []byte) *readBatch {
	offset, _ := lastOf(raw, 1)
	return &readBatch{base: r.at, next: offset + 1, unreadable: true, producer: ledger.Producer{ID: -1, Epoch: -1, Sequence: -1}}
}

// read describes a batch. What is not ours by its header need not be readable:
// brokers take payloads that are not so here, as they do not look at the checksum
// over an lz4 frame's content, and have no bounds for what comes out of one.
func (r *tailReader) read(raw []byte) (*readBatch, error) {
	h, err := recordbatch.Parse(raw)
	if err != nil {
		return nil, err
	}
	b := &readBatch{
		base: h.BaseOffset, next: h.NextOffset(),
		producer: ledger.Producer{ID: h.ProducerID, Epoch: h.ProducerEpoch, Sequence: h.BaseSequence},
		plain:    h.ProducerID >= 0 && h.BaseSequence >= 0 && !h.Control() && !h.Transactional(),
	}
	r.claim(b)
	if r.headers || !b.ours && (!r.hashAll || h.Control()) {
		return b, nil
	}
	t := r.p.flow.tools()
	b.records, err = t.hashes(raw, h, r.stamped)
	r.p.flow.giveBack(t)
	if err != nil && !b.ours && recordbatch.CheckCRC(raw) == nil {
		b.records, b.unreadable, err = nil, true, nil
	}
	return b, err
}

// hashes returns offset and hash of each record of a batch; with an error, of
// those before it.
func (t *tools) hashes(raw []byte, h recordbatch.Header, timestampsReplaced bool) (records []readRecord, err error) {
	err = t.each(raw, func(r *recordbatch.Record, timestamp int64) error {
		if timestampsReplaced {
			timestamp = 0
		}
		hash, _ := t.hash(r, timestamp)
		records = append(records, readRecord{h.BaseOffset + int64(r.OffsetDelta), hash})
		return nil
	})
	return records, err
}

// claim finds out whether a batch is ours, and the number of its first record:
// the one nearest to where the books are, as sequence numbers wrap.
func (r *tailReader) claim(b *readBatch) {
	for _, p := range r.producers {
		if b.plain && p.ID == b.producer.ID && p.Epoch == b.producer.Epoch {
			b.ours = true
			b.number = r.appended + ahead(b.producer.Sequence, p.Next(r.appended))
		}
	}
}

// ahead returns how far a sequence number is ahead of another one; negative if
// it is behind. Both wrap from 2^31-1 to 0.
func ahead(sequence, of int32) int64 {
	return int64(int32(uint32(sequence-of)<<1)) >> 1
}

// fetch replaces the buffer by what the log holds from r.at on. Where the log
// begins later, it goes on there.
func (r *tailReader) fetch() error {
	ctx, cancel := context.WithTimeout(r.p.flow.ctx, 30*time.Second)
	defer cancel()
	limit := int32(1 << 20)
	if r.headers {
		limit = 1
	}
	data, err := r.p.flow.target.readSome(ctx, r.p.target, r.p.pair.TargetTopicID, r.at, limit)
	if codeOf(err) == kerr.OffsetOutOfRange {
		start, startErr := r.p.flow.target.listOffset(ctx, r.p.target, offsetQuery{replica: -1, timestamp: earliestOffset})
		if startErr != nil {
			return startErr
		}
		if start > r.at {
			r.at = start
			return nil
		}
	}
	if err != nil {
		return err
	}
	if size, _, err := recordbatch.Peek(data); err != nil || size == 0 {
		return fmt.Errorf("target offset %d: the log ends at %d, but nothing can be read", r.at, r.end)
	}
	r.buffer = data
	return nil
}

// readTail describes the batches in [from, end) of the target's log for the
// window. What is not ours counts as one batch from hole to hole.
func (p *partition) readTail(from, end int64) ([]tailBatch, error) {
	reader := p.newTail(from, end)
	var tail []tailBatch
	for {
		b, err := reader.batch()
		if b == nil || err != nil {
			return tail, err
		}
		t := tailBatch{base: b.base, records: b.next - b.base, ours: b.ours}
		if !b.ours {
			t.generation = p.generationOf(b)
		} else {
			t.sequence = p.producer.Next(b.number)
			t.records = int64(len(b.records))
			for _, r := range b.records {
				t.digest = t.digest.Add(r.hash)
			}
		}
		if n := len(tail) - 1; n >= 0 && !t.ours && !tail[n].ours && tail[n].generation == t.generation && tail[n].base+tail[n].records == t.base {
			tail[n].records += t.records
			continue
		}
		tail = append(tail, t)
	}
}
