package replicate

import (
	"math"
	"slices"
	"testing"
	"time"
)

// lineOf returns a source whose bulk loop of broker 1 has partitions in line,
// with the time that each has until its next record may be deleted.
func lineOf(now time.Time, left ...time.Duration) (*source, *fetchLoop, []*partition) {
	s := &source{
		now: func() time.Time { return now }, needLeader: make(chan struct{}, 1),
		tail:  &cluster{generation: 1, topics: map[string]topicState{"t": {}}},
		parts: map[*partition]struct{}{}, loops: map[loopKey]*fetchLoop{},
	}
	l := &fetchLoop{key: loopKey{1, true}, woken: make(chan struct{}, 1)}
	s.loops[l.key] = l
	var parts []*partition
	state := topicState{}
	for i, d := range left {
		state.leaders = append(state.leaders, leader{1, 0})
		p := &partition{source: topicPartition{"t", int32(i)}}
		p.deadline.Store(math.MaxInt64)
		if d >= 0 {
			p.deadline.Store(now.Add(d).UnixMilli())
		}
		p.fetch = fetchState{active: true, behind: true}
		parts = append(parts, p)
	}
	s.tail.topics["t"] = state
	for _, p := range parts {
		s.settle(p)
	}
	return s, l, parts
}

func numbers(parts []*partition) []int32 {
	var out []int32
	for _, p := range parts {
		out = append(out, p.source.partition)
	}
	return out
}

// TestNearestToDeletionGoesFirst: partitions whose next record is soon deleted
// go first, in that order; the others in that in which they came.
func TestNearestToDeletionGoesFirst(t *testing.T) {
	now := time.UnixMilli(1_700_000_000_000)
	s, l, _ := lineOf(now, -1, 10*time.Hour, 30*time.Minute, 2*time.Hour, time.Minute, -1)
	var order []int32
	for len(l.line) > 0 {
		taken, _ := s.takeFrom(l, 2)
		order = append(order, numbers(taken)...)
	}
	if want := []int32{4, 2, 0, 1, 3, 5}; !slices.Equal(order, want) {
		t.Errorf("order %v, want %v", order, want)
	}
}

// TestEmptyAnswersGoAlone: a partition that answered with nothing is asked alone.
func TestEmptyAnswersGoAlone(t *testing.T) {
	s, l, parts := lineOf(time.UnixMilli(1_700_000_000_000), -1, -1, -1)
	parts[1].fetch.empties = 1
	for _, want := range []struct {
		parts []int32
		solo  bool
	}{{[]int32{0}, false}, {[]int32{1}, true}, {[]int32{2}, false}} {
		taken, solo := s.takeFrom(l, 8)
		if !slices.Equal(numbers(taken), want.parts) || solo != want.solo {
			t.Errorf("took %v, alone %v; want %v, %v", numbers(taken), solo, want.parts, want.solo)
		}
	}
}

// TestLineIsLeft: a partition that has stopped, or has another leader now, does
// not stay in line; one in flight does not come back before it has landed.
func TestLineIsLeft(t *testing.T) {
	s, l, parts := lineOf(time.UnixMilli(1_700_000_000_000), -1, -1, -1)
	s.stop(parts[0])
	s.tail.topics["t"].leaders[1] = leader{2, 1}
	taken, _ := s.takeFrom(l, 8)
	if !slices.Equal(numbers(taken), []int32{2}) || len(l.line) != 0 {
		t.Errorf("took %v, %d left in line", numbers(taken), len(l.line))
	}
	if other := s.loops[loopKey{2, true}]; other == nil || !slices.Equal(numbers(other.line), []int32{1}) {
		t.Errorf("the partition with another leader is not in its line")
	}
	s.settle(parts[2])
	if len(l.line) != 0 {
		t.Error("in line while in flight")
	}
	s.landed(parts[2])
	if !slices.Equal(numbers(l.line), []int32{2}) {
		t.Errorf("in line after it landed: %v", numbers(l.line))
	}
}

// TestHelpings holds what one bulk request may bring: more where a round trip
// is what limits, never more than half of the memory there is, and as before
// where a rate is kept.
func TestHelpings(t *testing.T) {
	far := &cluster{distance: &distance{}}
	far.distance.shortest.Store(int64(farAway))
	near := &cluster{distance: &distance{}}
	for _, tt := range []struct {
		name           string
		bulk           *cluster
		memory         int64
		rate           int64
		waiting        int
		wantPartitions int
		wantBytes      int64
		wantShare      int32 // where as many are taken
	}{
		{"near", near, 56 << 20, 0, 64, 8, 8 << 20, 1 << 20},
		{"near, few", near, 56 << 20, 0, 1, 8, 8 << 20, 4 << 20},
		{"far", far, 56 << 20, 0, 64, 24, 24 << 20, 1 << 20},
		{"far, few", far, 56 << 20, 0, 4, 24, 16 << 20, 4 << 20},
		{"far, one", far, 56 << 20, 0, 1, 24, 8 << 20, 4 << 20},
		{"far, little memory", far, 28 << 20, 0, 64, 24, 14 << 20, 14 << 20 / 24},
		{"far, hardly any memory", far, 7 << 20, 0, 64, 24, 8 << 20, 8 << 20 / 24},
		{"far, a rate", far, 56 << 20, 16 << 20, 64, 8, 8 << 20, 16 << 20 / 160},
	} {
		s := &source{bulk: tt.bulk, budget: newBudget(tt.memory), rate: tt.rate}
		partitions, bytes := s.helping(tt.waiting)
		share := s.share(bytes, min(partitions, tt.waiting))
		if partitions != tt.wantPartitions || bytes != tt.wantBytes || share != tt.wantShare {
			t.Errorf("%s: %d partitions, %d bytes, shares of %d, not %d, %d, %d",
				tt.name, partitions, bytes, share, tt.wantPartitions, tt.wantBytes, tt.wantShare)
		}
	}
}
