package ledger

import (
	"slices"
	"testing"
)

// TestFollow: a follower hears of each pair that gets entries, once, when they
// are committed and not before; of others nothing.
func TestFollow(t *testing.T) {
	l := mustCreate(t)
	var pairs []Pair
	for i := range int32(3) {
		pairs = append(pairs, Pair{SourceTopic: "orders", TargetTopic: "orders", Partition: i, Producer: Producer{ID: 4000}})
	}
	ids, err := l.OpenPairs(pairs)
	if err != nil {
		t.Fatal(err)
	}
	mustAppend(t, l, ids[2], copiedEntry(Position{}, 1))
	mustCommit(t, l)
	f, other := l.Follow(), l.Follow()
	steps := []struct {
		to     []PairID
		commit bool
		want   []PairID
	}{
		{nil, true, nil},
		{[]PairID{ids[1]}, false, nil},
		{[]PairID{ids[0], ids[1]}, true, []PairID{ids[0], ids[1]}},
		{nil, true, nil}, // of a pair's state
		{[]PairID{ids[2]}, true, []PairID{ids[2]}},
	}
	for i, s := range steps {
		for _, id := range s.to {
			mustAppend(t, l, id, copiedEntry(l.End(id), 1))
		}
		if s.commit {
			if err := l.SetState(ids[0], State{LogStart: 0, LastStable: int64(i), HighWatermark: int64(i), SeenMillis: 1}); err != nil {
				t.Fatal(err)
			}
			mustCommit(t, l)
		}
		got := f.Take()
		if !slices.Equal(got, s.want) {
			t.Errorf("step %d: %v, want %v", i, got, s.want)
		}
		for _, id := range got {
			if end := l.Committed(id); end != l.End(id) {
				t.Errorf("step %d: pair %d is committed up to %+v, and has %+v", i, id, end, l.End(id))
			}
		}
	}
	if got := other.Take(); !slices.Equal(got, ids) {
		t.Errorf("the other: %v, want %v", got, ids)
	}
}
