package kafkatest

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
)

// A partSnapshot is kfake's snapshot.json of a partition.
type partSnapshot struct {
	Version          int             `json:"version"`
	HighWatermark    int64           `json:"high_watermark"`
	LastStableOffset int64           `json:"last_stable_offset"`
	LogStartOffset   int64           `json:"log_start_offset"`
	Epoch            int32           `json:"epoch"`
	LeaderNode       int32           `json:"leader_node,omitempty"`
	MaxTimestamp     int64           `json:"max_timestamp"`
	CreatedAt        json.RawMessage `json:"created_at"`
	AbortedTxns      []abortedTxn    `json:"aborted_txns,omitempty"`
	Segments         []partSegment   `json:"segments"`
}

type abortedTxn struct {
	ProducerID  int64 `json:"producer_id"`
	FirstOffset int64 `json:"first_offset"`
	LastOffset  int64 `json:"last_offset"` // of the abort marker
}

type partSegment struct {
	Base int64 `json:"base_offset"`
	Size int64 `json:"size"`
}

func readSnapshot(dir string) (partSnapshot, error) {
	data, err := os.ReadFile(filepath.Join(dir, "snapshot.json"))
	if err != nil {
		return partSnapshot{}, fmt.Errorf("the cluster has not been stopped, or the partition does not exist: %w", err)
	}
	var s partSnapshot
	if err := json.Unmarshal(data, &s); err != nil {
		return partSnapshot{}, fmt.Errorf("snapshot.json: %w", err)
	}
	return s, nil
}

// take sets everything that follows from a log, and returns the first offsets
// of the transactions that are open at its end, by producer id.
func (s *partSnapshot) take(l *Log, heads []batchHead) (open map[int64]int64) {
	s.LogStartOffset, s.HighWatermark, s.LastStableOffset = l.Start, l.End, l.End
	s.AbortedTxns, s.Epoch = nil, l.LeaderEpoch
	open = make(map[int64]int64)
	for _, h := range heads {
		s.Epoch = max(s.Epoch, h.leaderEpoch)
		first, isOpen := open[h.producerID]
		switch {
		case h.control() && h.count > 0:
			if isOpen && !h.commit {
				s.AbortedTxns = append(s.AbortedTxns, abortedTxn{ProducerID: h.producerID, FirstOffset: first, LastOffset: h.base})
			}
			delete(open, h.producerID)
		case h.transactional() && !h.control() && !isOpen:
			open[h.producerID] = h.base
		}
	}
	slices.SortFunc(s.AbortedTxns, func(a, b abortedTxn) int { return cmp.Compare(a.LastOffset, b.LastOffset) })
	for _, first := range open {
		s.LastStableOffset = min(s.LastStableOffset, first)
	}
	return open
}

// keepEmptyLogs lets partitions whose records have all been deleted keep their
// offsets over a restart: kfake ignores the snapshot of a partition that has no
// segment file, or one that the snapshot does not name, and would begin again at
// offset 0 and leader epoch 0. What was made here it forgets to name when it
// stops.
func keepEmptyLogs(dataDir string) error {
	dirs, err := filepath.Glob(filepath.Join(dataDir, "partitions", "*"))
	if err != nil {
		return err
	}
	for _, dir := range dirs {
		bases, err := segmentBases(dir)
		if err != nil {
			return err
		}
		s, err := readSnapshot(dir)
		if err != nil || holdsData(dir, bases) || s.HighWatermark == 0 && s.Epoch == 0 {
			continue // nothing to keep; a missing snapshot is kfake's to handle
		}
		if err := writeSegment(dir, &Log{Start: s.LogStartOffset, End: s.HighWatermark, LeaderEpoch: s.Epoch}, nil, nil, &s); err != nil {
			return err
		}
		if err := writeJSON(filepath.Join(dir, "snapshot.json"), s); err != nil {
			return err
		}
	}
	return nil
}

// dropFetchSessions has the brokers forget their fetch sessions (KIP-227), as a
// restarted broker has: kfake keeps them, but without the topic ids, so that
// clients that name topics by id get answers about no topic, or none at all. One
// session that nobody can go on with stays, for its id: ids are counted on from
// the highest.
func dropFetchSessions(dataDir string) error {
	return editSessionState(dataDir, func(file map[string]json.RawMessage) (err error) {
		type session struct {
			ID    int32 `json:"id"`
			Epoch int32 `json:"e"`
		}
		sessions := map[int32][]session{}
		if raw := file["fetchSessions"]; raw != nil {
			if err := json.Unmarshal(raw, &sessions); err != nil {
				return err
			}
		}
		for node, all := range sessions {
			last := slices.MaxFunc(all, func(a, b session) int { return cmp.Compare(a.ID, b.ID) })
			sessions[node] = []session{{ID: last.ID, Epoch: -2}}
		}
		file["fetchSessions"], err = json.Marshal(sessions)
		return err
	})
}

// editSessionState changes what kfake keeps in session_state.json, by its names;
// nothing if it keeps none.
func editSessionState(dataDir string, edit func(file map[string]json.RawMessage) error) error {
	path := filepath.Join(dataDir, "session_state.json")
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	var file map[string]json.RawMessage
	if err := json.Unmarshal(data, &file); err != nil {
		return fmt.Errorf("session_state.json: %w", err)
	}
	if err := edit(file); err != nil {
		return fmt.Errorf("session_state.json: %w", err)
	}
	return writeJSON(path, file)
}

// holdsData reports whether any of the segments has a byte.
func holdsData(dir string, bases []int64) bool {
	return slices.ContainsFunc(bases, func(base int64) bool {
		info, err := os.Stat(segmentFile(dir, base, "dat"))
		return err != nil || info.Size() > 0
	})
}

// A windows file is kfake's seq_windows.json: for every producer and partition
// the newest five batches, for recognizing duplicates, and the next sequence.
type windowsFile struct {
	Version int              `json:"version"`
	Windows []sequenceWindow `json:"windows"`
}

type sequenceWindow struct {
	PID     int64         `json:"pid"`
	Topic   string        `json:"topic"`
	Part    int32         `json:"partition"`
	Entries [5]windowItem `json:"entries,omitempty"`
	Count   uint8         `json:"count,omitempty"`
	At      uint8         `json:"at"` // where the next entry goes
	Epoch   int16         `json:"epoch"`
	Seen    bool          `json:"seen,omitempty"`
	NextSeq int32         `json:"next_seq,omitempty"`
}

type windowItem struct {
	FirstSeq int32 `json:"first_seq"`
	NextSeq  int32 `json:"next_seq"`
	Offset   int64 `json:"offset"`
}

// push adds a batch as kfake does when it accepts one.
func (w *sequenceWindow) push(h *batchHead) {
	if w.Seen && w.Epoch != h.epoch {
		w.Entries, w.Count, w.At = [5]windowItem{}, 0, 0
	}
	// kfake wraps one early: modulo 2^31-1.
	next := int32((int64(h.sequence) + int64(h.lastDelta) + 1) % math.MaxInt32)
	w.Entries[w.At] = windowItem{FirstSeq: h.sequence, NextSeq: next, Offset: h.base}
	w.At = (w.At + 1) % 5
	w.Count = min(w.Count+1, 5)
	w.Epoch, w.NextSeq, w.Seen = h.epoch, next, true
}

// rewriteWindows replaces the sequence windows of a partition by those that
// follow from its log. A broker does the same when it loads a log; so a
// producer whose batches are all gone is unknown, and may begin anywhere.
func rewriteWindows(dataDir, topic string, partition int32, heads []batchHead) error {
	byProducer := make(map[int64]*sequenceWindow)
	var order []int64
	for i := range heads {
		h := &heads[i]
		if h.control() || h.producerID < 0 || h.sequence < 0 {
			continue
		}
		if byProducer[h.producerID] == nil {
			byProducer[h.producerID] = &sequenceWindow{PID: h.producerID, Topic: topic, Part: partition}
			order = append(order, h.producerID)
		}
		byProducer[h.producerID].push(h)
	}
	windows := make([]sequenceWindow, 0, len(order))
	for _, id := range order {
		windows = append(windows, *byProducer[id])
	}
	return replaceWindows(dataDir, topic, partition, windows)
}

// ForgetProducers makes the brokers of a stopped cluster forget the sequence
// numbers of all producers in a partition, as a broker does when a producer's
// last batch is older than producer.id.expiration.ms
// (ProducerStateManager.isProducerExpired; kfake itself never does). After that
// any sequence is accepted, so a batch that is sent again is stored again.
func ForgetProducers(dataDir, topic string, partition int32) error {
	if err := replaceWindows(dataDir, topic, partition, nil); err != nil {
		return fmt.Errorf("forget producers of %s:%d: %w", topic, partition, err)
	}
	return nil
}

// ForgetProducers stops the cluster if it runs, makes it forget, and starts it
// again if it ran.
func (c *Cluster) ForgetProducers(topic string, partition int32) error {
	if c.options.DataDir == "" {
		return fmt.Errorf("forget producers: %s has no data directory", c.options.Name)
	}
	ran := c.Fake() != nil
	c.Stop()
	err := ForgetProducers(c.options.DataDir, topic, partition)
	if ran {
		err = errors.Join(err, c.Start())
	}
	return err
}

func replaceWindows(dataDir, topic string, partition int32, windows []sequenceWindow) error {
	path := filepath.Join(dataDir, "seq_windows.json")
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	var file windowsFile
	if err := json.Unmarshal(data, &file); err != nil {
		return fmt.Errorf("seq_windows.json: %w", err)
	}
	file.Windows = slices.DeleteFunc(file.Windows, func(w sequenceWindow) bool {
		return w.Topic == topic && w.Part == partition
	})
	file.Windows = append(file.Windows, windows...)
	return writeJSON(path, file)
}
