package ledger

import "testing"

// TestEpochs: what the books know of the source's leader epochs, and where they part
// from a log that has others.
func TestEpochs(t *testing.T) {
	l := mustCreate(t)
	id := mustOpenPair(t, l, 0, 0)
	appendEpoch := func(id PairID, epoch int32, records int64) {
		e := copiedEntry(l.End(id), records)
		e.LeaderEpoch = epoch
		mustAppend(t, l, id, e)
		mustCommit(t, l)
	}
	mustKnow := func(id PairID, epoch int32, end int64) {
		t.Helper()
		if gotEpoch, gotEnd := l.NewestEpoch(id); gotEpoch != epoch || gotEnd != end {
			t.Errorf("epoch %d up to %d, want %d up to %d", gotEpoch, gotEnd, epoch, end)
		}
	}
	mustKnow(id, -1, 0)
	appendEpoch(id, 1, 40)
	appendEpoch(id, 3, 20)
	appendEpoch(id, 3, 20)
	mustKnow(id, 3, 80)
	appendEpoch(id, -1, 20)
	mustKnow(id, 3, 80)
	for _, tt := range []struct {
		epoch     int32
		end, want int64
	}{
		{3, 70, 70},
		{3, 30, 30},
		{2, 50, 40},  // all of epoch 3 is not in that log
		{1, 200, 40}, // the log goes on in epoch 1 beyond the books
		{1, 30, 30},
		{0, 200, 0},
	} {
		if got := l.PartsAt(id, tt.epoch, tt.end); got != tt.want {
			t.Errorf("a log with epoch %d up to %d parts at %d, want %d", tt.epoch, tt.end, got, tt.want)
		}
	}

	p, _ := l.Pair(id)
	p.ScopeStart, p.Producer.ID, p.TargetBase = 60, 77, l.End(id).Target
	next, err := l.Reopen(id, Closing{Reason: "source_truncated", AtMillis: startMillis},
		Pair{SourceTopic: p.SourceTopic, TargetTopic: p.TargetTopic, ScopeStart: 60, TargetBase: p.TargetBase, Producer: p.Producer})
	if err != nil {
		t.Fatal(err)
	}
	mustKnow(next, 3, 60) // of what is below
	appendEpoch(next, 5, 10)
	mustKnow(next, 5, 70)
	if got := l.PartsAt(next, 3, 100); got != 60 {
		t.Errorf("the next generation parts at %d", got)
	}
	if got := l.PartsAt(next, 2, 100); got != 40 {
		t.Errorf("where the one before parts, the next does at %d", got)
	}
}
