package mm2_test

import (
	"fmt"
	"slices"
	"testing"
)

// A syncWriter is MirrorMaker 2's own writer of offset syncs (OffsetSyncWriter,
// since 3.7: KAFKA-15906), to compare with: apograph does not write as it does.
type syncWriter struct {
	lag        int64
	permits    int
	atOnce     bool // syncs are acknowledged when they are sent
	partitions map[int32]*syncState

	pending, delayed []syncPair // one of a partition each, the oldest first
	sent             []syncPair
}

type syncPair struct {
	partition int32
	u, d      int64
}

// A syncState is what is known of a partition.
type syncState struct {
	prevU, prevD, lastD int64
	due                 bool // until it was queued
}

func newSyncWriter(lag int64, permits int, atOnce bool) *syncWriter {
	return &syncWriter{lag: lag, permits: permits, atOnce: atOnce, partitions: map[int32]*syncState{}}
}

// update says whether a record that was acknowledged causes a sync at once.
func (s *syncState) update(lag, u, d int64) bool {
	if s.lastD == -1 || d-(s.lastD+1) >= lag || u-s.prevU != 1 || d < s.prevD {
		s.lastD, s.due = d, true
	}
	s.prevU, s.prevD = u, d
	return s.due
}

func replaceSync(queue []syncPair, p syncPair) []syncPair {
	if i := slices.IndexFunc(queue, func(q syncPair) bool { return q.partition == p.partition }); i >= 0 {
		queue[i] = p
		return queue
	}
	return append(queue, p)
}

// queue takes an acknowledged record.
func (w *syncWriter) queue(p syncPair) {
	state := w.partitions[p.partition]
	if state == nil {
		state = &syncState{prevU: -1, prevD: -1, lastD: -1}
		w.partitions[p.partition] = state
	}
	if !state.update(w.lag, p.u, p.d) {
		w.delayed = replaceSync(w.delayed, p)
		return
	}
	state.due = false
	w.delayed = slices.DeleteFunc(w.delayed, func(q syncPair) bool { return q.partition == p.partition })
	w.pending = replaceSync(w.pending, p)
}

// send sends what there are permits for.
func (w *syncWriter) send() {
	for len(w.pending) > 0 && w.permits > 0 {
		w.sent, w.pending = append(w.sent, w.pending[0]), w.pending[1:]
		if !w.atOnce {
			w.permits--
		}
	}
}

// commit is the hook of Connect's: every offset.flush.interval.ms.
func (w *syncWriter) commit() {
	for _, p := range w.delayed {
		w.pending = replaceSync(w.pending, p)
	}
	w.delayed = nil
	w.send()
}

func (w *syncWriter) restart() {
	w.partitions, w.pending, w.delayed = map[int32]*syncState{}, nil, nil
}

func TestVectorsOfSyncTrigger(t *testing.T) {
	type given struct {
		Lag     int64   `json:"lag"`
		Updates [][]any `json:"updates"`
	}
	for _, v := range vectors[given, []bool](t, "sync-writer/trigger.json") {
		state := &syncState{prevU: -1, prevD: -1, lastD: -1}
		var got []bool
		for _, u := range v.Given.Updates {
			got = append(got, state.update(v.Given.Lag, int64(u[0].(float64)), int64(u[1].(float64))))
			if len(u) < 3 || u[2].(bool) {
				state.due = false // by the caller, unless the third says not
			}
		}
		wantSame(t, v.ID, v.Given, got, v.Expect)
	}
}

func TestVectorsOfSyncWriter(t *testing.T) {
	type step struct {
		Do        string     `json:"do"`
		Partition int32      `json:"partition"`
		Runs      [][3]int64 `json:"runs"`
		Count     int        `json:"count"`
	}
	type given struct {
		Lag         int64  `json:"lag"`
		Permits     int    `json:"permits"`
		Acknowledge string `json:"acknowledge"`
		Steps       []step `json:"steps"`
	}
	type state struct {
		Pending [][3]int64       `json:"pending"`
		Delayed [][3]int64       `json:"delayed"`
		Last    map[string]int64 `json:"last_sync_downstream"`
	}
	type expect struct {
		Sent  [][3]int64 `json:"sent"`
		After []state    `json:"after_each_step"`
	}
	triples := func(pairs []syncPair) [][3]int64 {
		all := [][3]int64{}
		for _, p := range pairs {
			all = append(all, [3]int64{int64(p.partition), p.u, p.d})
		}
		return all
	}
	for _, v := range vectors[given, expect](t, "sync-writer/sequences.json") {
		w := newSyncWriter(v.Given.Lag, v.Given.Permits, v.Given.Acknowledge == "at once")
		var after []state
		for _, s := range v.Given.Steps {
			for _, r := range s.Runs {
				for i := range r[2] {
					w.queue(syncPair{s.Partition, r[0] + i, r[1] + i})
					if s.Do == "records" {
						w.send()
					}
				}
			}
			switch s.Do {
			case "send":
				w.send()
			case "commit":
				w.commit()
			case "restart":
				w.restart()
			case "acknowledge":
				w.permits += s.Count
			}
			last := map[string]int64{}
			for p, state := range w.partitions {
				last[fmt.Sprint(p)] = state.lastD
			}
			after = append(after, state{triples(w.pending), triples(w.delayed), last})
		}
		wantSame(t, v.ID, v.Given, expect{triples(w.sent), after}, v.Expect)
	}
}
