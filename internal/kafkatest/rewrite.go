package kafkatest

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// A Log is the log of one partition of a stopped fake cluster.
type Log struct {
	Batches [][]byte // whole record batches in offset order
	Start   int64    // log start offset; may lie inside a batch
	End     int64    // log end offset; moved to the end of the last batch, if there is one

	LeaderEpoch int32 // current; raised to that of the newest batch
}

// EditLog lets edit change the log of a partition under the data directory of
// a stopped fake cluster, and writes what has to agree with it: index,
// snapshot, aborted transactions, those that are going on, last stable offset,
// and the producers' sequence windows, as a broker rebuilds them from a log
// (ProducerStateManager). The batches are stored as they are, so that a fake broker can be made to hold
// what no producer can write: sparse and empty batches, gaps, the delete
// horizon and LogAppendTime bits, broken payloads. kfake drops a batch with a
// wrong checksum, and everything behind it, when it starts.
//
// An error of edit leaves everything as it was. The format is kfake's own, of
// the version in go.mod.
func EditLog(dataDir, topic string, partition int32, edit func(*Log) error) error {
	dir := partitionDir(dataDir, topic, partition)
	if err := editLog(dataDir, dir, topic, partition, edit); err != nil {
		return fmt.Errorf("edit log of %s:%d: %w", topic, partition, err)
	}
	return nil
}

// RewriteLog is EditLog for the batches alone.
func RewriteLog(dataDir, topic string, partition int32, rewrite func(batches [][]byte) [][]byte) error {
	return EditLog(dataDir, topic, partition, func(l *Log) error {
		l.Batches = rewrite(l.Batches)
		return nil
	})
}

// EditLog stops the cluster if it runs, edits the log, and starts the cluster
// again if it ran.
func (c *Cluster) EditLog(topic string, partition int32, edit func(*Log) error) error {
	if c.options.DataDir == "" {
		return fmt.Errorf("edit log of %s:%d: %s has no data directory", topic, partition, c.options.Name)
	}
	ran := c.Fake() != nil
	c.Stop()
	err := EditLog(c.options.DataDir, topic, partition, edit)
	if ran {
		err = errors.Join(err, c.Start())
	}
	return err
}

func editLog(dataDir, dir, topic string, partition int32, edit func(*Log) error) error {
	snapshot, err := readSnapshot(dir)
	if err != nil {
		return err
	}
	l := &Log{Start: snapshot.LogStartOffset, End: snapshot.HighWatermark, LeaderEpoch: snapshot.Epoch}
	if l.Batches, err = readSegments(dir); err != nil {
		return err
	}
	if err := edit(l); err != nil {
		return err
	}
	heads, err := checkBatches(l.Batches)
	if err != nil {
		return err
	}
	if n := len(heads); n > 0 {
		l.End = heads[n-1].next()
	}
	if l.Start > l.End {
		return fmt.Errorf("log start %d behind log end %d", l.Start, l.End)
	}
	open := snapshot.take(l, heads)
	if err := writeSegment(dir, l, heads, open, &snapshot); err != nil {
		return err
	}
	if err := writeJSON(filepath.Join(dir, "snapshot.json"), snapshot); err != nil {
		return err
	}
	return errors.Join(rewriteWindows(dataDir, topic, partition, heads), rewriteTransactions(dataDir, topic, partition, open))
}

func partitionDir(dataDir, topic string, partition int32) string {
	return filepath.Join(dataDir, "partitions", fmt.Sprintf("%s-%d", url.PathEscape(topic), partition))
}

// readSegments returns the batches of all segment files in order.
func readSegments(dir string) ([][]byte, error) {
	bases, err := segmentBases(dir)
	if err != nil {
		return nil, err
	}
	var batches [][]byte
	for _, base := range bases {
		raw, err := os.ReadFile(segmentFile(dir, base, "dat"))
		if err != nil {
			return nil, err
		}
		split, err := splitBatches(raw)
		if err != nil {
			return nil, fmt.Errorf("segment %d: %w", base, err)
		}
		batches = append(batches, split...)
	}
	return batches, nil
}

func segmentFile(dir string, base int64, suffix string) string {
	return filepath.Join(dir, fmt.Sprintf("%d.%s", base, suffix))
}

func segmentBases(dir string) ([]int64, error) {
	entries, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	var bases []int64
	for _, e := range entries {
		if name, ok := strings.CutSuffix(e.Name(), ".dat"); ok {
			base, err := strconv.ParseInt(name, 10, 64)
			if err != nil {
				return nil, fmt.Errorf("segment file %s: %w", e.Name(), err)
			}
			bases = append(bases, base)
		}
	}
	slices.Sort(bases)
	return bases, nil
}

// splitBatches cuts concatenated record batches apart.
func splitBatches(raw []byte) ([][]byte, error) {
	var batches [][]byte
	for len(raw) > 0 {
		if len(raw) < batchHeaderSize {
			return nil, fmt.Errorf("%d bytes behind the last batch", len(raw))
		}
		size := batchOverhead + int64(binary.BigEndian.Uint32(raw[8:]))
		if size < batchHeaderSize || size > int64(len(raw)) {
			return nil, fmt.Errorf("batch of %d bytes in %d", size, len(raw))
		}
		batches = append(batches, raw[:size:size])
		raw = raw[size:]
	}
	return batches, nil
}

// checkBatches reads the headers, and refuses batches that overlap or go
// backwards.
func checkBatches(batches [][]byte) ([]batchHead, error) {
	heads := make([]batchHead, 0, len(batches))
	end := int64(0)
	for i, raw := range batches {
		split, err := splitBatches(raw)
		if err != nil || len(split) != 1 {
			return nil, fmt.Errorf("batch %d is not one whole batch (%d): %w", i, len(split), err)
		}
		h := headOf(raw)
		if h.base < end || h.lastDelta < 0 {
			return nil, fmt.Errorf("batch %d covers [%d, %d), the one before it ends at %d", i, h.base, h.next(), end)
		}
		end = h.next()
		heads = append(heads, h)
	}
	return heads, nil
}

// A batchHead is what the other files need to know of a batch.
type batchHead struct {
	base        int64
	lastDelta   int32
	leaderEpoch int32
	attributes  int16
	producerID  int64
	epoch       int16
	sequence    int32
	count       int32
	commit      bool // of a control batch: its record is a commit marker
}

func (h *batchHead) next() int64 { return h.base + int64(h.lastDelta) + 1 }

func (h *batchHead) control() bool { return h.attributes&AttrControl != 0 }

func (h *batchHead) transactional() bool { return h.attributes&AttrTransactional != 0 }

func headOf(raw []byte) batchHead {
	be := binary.BigEndian
	h := batchHead{
		base: int64(be.Uint64(raw)), leaderEpoch: int32(be.Uint32(raw[12:])),
		attributes: int16(be.Uint16(raw[21:])), lastDelta: int32(be.Uint32(raw[23:])),
		producerID: int64(be.Uint64(raw[43:])), epoch: int16(be.Uint16(raw[51:])),
		sequence: int32(be.Uint32(raw[53:])), count: int32(be.Uint32(raw[57:])),
	}
	if h.control() && h.count > 0 {
		if b, err := DecodeBatch(raw); err == nil && len(b.Records[0].Key) >= 4 {
			h.commit = be.Uint16(b.Records[0].Key[2:]) == 1
		}
	}
	return h
}

// writeSegment replaces the segment files by one. A log without batches gets an
// empty file, without which kfake would begin again at offset 0.
func writeSegment(dir string, l *Log, heads []batchHead, open map[int64]int64, s *partSnapshot) error {
	bases, err := segmentBases(dir)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	for _, base := range bases {
		for _, suffix := range []string{"dat", "idx"} {
			if err := os.Remove(segmentFile(dir, base, suffix)); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return err
			}
		}
	}
	base := l.End
	var data, index []byte
	for i, h := range heads {
		if i == 0 {
			base = h.base
		}
		data = append(data, l.Batches[i]...)
		first, isOpen := open[h.producerID]
		index = append(index, indexEntry(h.leaderEpoch, isOpen && h.base >= first && h.transactional())...)
	}
	s.Segments = []partSegment{{Base: base, Size: int64(len(data))}}
	if err := os.WriteFile(segmentFile(dir, base, "dat"), data, 0o644); err != nil {
		return err
	}
	return os.WriteFile(segmentFile(dir, base, "idx"), index, 0o644)
}

// indexEntry is kfake's record of one batch: version, low byte of the checksum
// of the rest, leader epoch, a time that kfake recomputes, and whether the
// batch belongs to an open transaction; little endian.
func indexEntry(leaderEpoch int32, open bool) []byte {
	entry := make([]byte, 15)
	entry[0] = 1
	binary.LittleEndian.PutUint32(entry[2:], uint32(leaderEpoch))
	if open {
		entry[14] = 1
	}
	entry[1] = byte(crc32.Checksum(entry[2:], crc32.MakeTable(crc32.Castagnoli)))
	return entry
}

func writeJSON(path string, v any) error {
	data, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("%s: %w", filepath.Base(path), err)
	}
	return os.WriteFile(path, data, 0o644)
}
