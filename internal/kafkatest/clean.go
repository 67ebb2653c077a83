package kafkatest

import (
	"fmt"
	"time"
)

// A Cleaner compacts the log of a stopped fake cluster the way a broker's log
// cleaner does (LogCleaner, MemoryRecords.filterTo), which kfake's own Compact
// does not: kfake moves the log start, shrinks batches, never leaves an empty
// one, and sets no delete horizon.
type Cleaner struct {
	// Upto is the offset from which nothing is cleaned, as the active segment
	// and what lies behind the last stable offset are not. 0 means the last
	// batch.
	Upto int64
	// Now is the time of cleaning; tombstones get the delete horizon
	// Now + DeleteRetention, and those whose horizon has come are removed.
	Now             time.Time
	DeleteRetention time.Duration
}

// Clean compacts one partition's batches:
//
//   - of the records with one key only the newest committed one stays, also a
//     tombstone until its horizon; records without a key go;
//   - records of aborted transactions go; markers stay, and get a delete horizon
//     once their transaction has no batches left, not even empty ones
//     (CleanedTransactionMetadata): without it those would be taken for an open
//     transaction;
//   - a batch that loses records keeps base offset, last offset delta, codec and
//     producer fields; with a tombstone inside, its base timestamp becomes the
//     delete horizon and the bit 0x40 is set (KIP-534);
//   - a batch that loses all records vanishes, unless it is the newest of its
//     producer or the last that is cleaned: then 61 bytes with count 0 stay.
func (c Cleaner) Clean(batches [][]byte) ([][]byte, error) {
	run := cleaning{Cleaner: c, newest: make(map[string]int64), lastOf: make(map[int64]int64)}
	for _, raw := range batches {
		b, err := DecodeBatch(raw)
		if err != nil {
			return nil, fmt.Errorf("clean: %w", err)
		}
		run.batches = append(run.batches, cleaned{raw: raw, Batch: b})
	}
	run.survey()
	var out [][]byte
	for i := range run.batches {
		raw, err := run.batch(&run.batches[i])
		if err != nil {
			return nil, fmt.Errorf("clean: %w", err)
		}
		if raw != nil {
			out = append(out, raw)
		}
	}
	return out, nil
}

// Clean stops the cluster if it runs, compacts a partition, and starts it again
// if it ran.
func (c *Cluster) Clean(topic string, partition int32, cleaner Cleaner) error {
	return c.EditLog(topic, partition, func(l *Log) (err error) {
		l.Batches, err = cleaner.Clean(l.Batches)
		return err
	})
}

type cleaning struct {
	Cleaner
	batches []cleaned
	newest  map[string]int64 // offset of the newest committed record of a key
	lastOf  map[int64]int64  // last data offset of a producer in the whole log
	last    int64            // last offset that is cleaned, plus one
}

type cleaned struct {
	Batch
	raw     []byte
	aborted bool
	empty   bool // a marker whose transaction has no batch left
}

// survey finds out what is aborted, what is newest, and which markers end
// nothing any more.
func (c *cleaning) survey() {
	if n := len(c.batches); c.Upto == 0 && n > 0 {
		c.Upto = c.batches[n-1].BaseOffset
	}
	open := make(map[int64][]*cleaned)
	for i := range c.batches {
		b := &c.batches[i]
		if b.BaseOffset < c.Upto {
			c.last = b.NextOffset()
		}
		switch {
		case b.Control():
			c.endTransaction(b, open[b.ProducerID])
			delete(open, b.ProducerID)
		case b.ProducerID >= 0:
			c.lastOf[b.ProducerID] = b.NextOffset() - 1
			if b.Transactional() {
				open[b.ProducerID] = append(open[b.ProducerID], b)
			}
		}
	}
	for i := range c.batches {
		b := &c.batches[i]
		if b.Control() || b.aborted || b.BaseOffset >= c.Upto {
			continue
		}
		for _, r := range b.Records {
			if r.Key != nil {
				c.newest[string(r.Key)] = b.BaseOffset + int64(r.OffsetDelta)
			}
		}
	}
}

func (c *cleaning) endTransaction(marker *cleaned, data []*cleaned) {
	commit := len(marker.Records) > 0 && isCommit(marker.Records[0].Key)
	for _, b := range data {
		b.aborted = !commit
	}
	marker.empty = len(data) == 0
}

func isCommit(key []byte) bool { return len(key) >= 4 && key[2] == 0 && key[3] == 1 }

// batch returns what is left of a batch; nil is nothing.
func (c *cleaning) batch(b *cleaned) ([]byte, error) {
	if b.BaseOffset >= c.Upto {
		return b.raw, nil
	}
	due := b.HasDeleteHorizon() && b.BaseTimestamp <= c.Now.UnixMilli()
	if b.Control() {
		return c.marker(b, due)
	}
	kept := make([]BatchRecord, 0, len(b.Records))
	tombstones := false
	for _, r := range b.Records {
		newest := r.Key != nil && c.newest[string(r.Key)] <= b.BaseOffset+int64(r.OffsetDelta)
		if b.aborted || !newest || (r.Value == nil && due) {
			continue
		}
		tombstones = tombstones || r.Value == nil
		kept = append(kept, r)
	}
	setHorizon := tombstones && !b.HasDeleteHorizon()
	switch {
	case len(kept) == 0:
		return c.emptied(b)
	case len(kept) == len(b.Records) && !setHorizon:
		return b.raw, nil
	}
	b.Records = kept
	b.MaxTimestamp = -1
	for _, r := range kept {
		b.MaxTimestamp = max(b.MaxTimestamp, r.Timestamp)
	}
	switch {
	case setHorizon:
		c.setHorizon(&b.Batch)
	case !b.HasDeleteHorizon():
		b.BaseTimestamp = kept[0].Timestamp
	}
	return b.Encode()
}

func (c *cleaning) setHorizon(b *Batch) {
	b.Attributes |= AttrDeleteHorizon
	b.BaseTimestamp = c.Now.Add(c.DeleteRetention).UnixMilli()
}

func (c *cleaning) marker(b *cleaned, due bool) ([]byte, error) {
	switch {
	case b.empty && due && b.NextOffset() == c.last:
		return c.emptied(b)
	case b.empty && due:
		return nil, nil
	case b.empty && !b.HasDeleteHorizon():
		c.setHorizon(&b.Batch)
		return b.Encode()
	default:
		return b.raw, nil
	}
}

// emptied returns what stays of a batch without records: nothing, or its header
// where that carries the producer's last sequence or the log's last offset.
func (c *cleaning) emptied(b *cleaned) ([]byte, error) {
	newest := b.ProducerID >= 0 && !b.Control() && c.lastOf[b.ProducerID] == b.NextOffset()-1
	if !newest && b.NextOffset() != c.last {
		return nil, nil
	}
	b.Records, b.Codec, b.BaseTimestamp = nil, None, -1
	b.Attributes &^= AttrDeleteHorizon
	return b.Encode()
}

// StampAppendTime returns the batches as a topic with
// message.timestamp.type=LogAppendTime holds them: the bit 0x08 is set, and
// every record's time is the header's largest timestamp, whatever its own says.
// (kfake does not know such topics; a batch that is produced with the bit set it
// stores with a wrong checksum.)
func StampAppendTime(batches [][]byte, appended time.Time) ([][]byte, error) {
	out := make([][]byte, 0, len(batches))
	for _, raw := range batches {
		b, err := DecodeBatch(raw)
		if err != nil {
			return nil, fmt.Errorf("stamp append time: %w", err)
		}
		b.Attributes |= AttrLogAppendTime
		b.MaxTimestamp = appended.UnixMilli()
		if raw, err = b.Encode(); err != nil {
			return nil, fmt.Errorf("stamp append time: %w", err)
		}
		out = append(out, raw)
	}
	return out, nil
}

// StampAppendTime does it to a partition, stopping and starting the cluster if
// it runs.
func (c *Cluster) StampAppendTime(topic string, partition int32, appended time.Time) error {
	return c.EditLog(topic, partition, func(l *Log) (err error) {
		l.Batches, err = StampAppendTime(l.Batches, appended)
		return err
	})
}
