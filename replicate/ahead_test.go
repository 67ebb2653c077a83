package replicate

import (
	"slices"
	"sync"
	"testing"

	"apograph/internal/recordbatch"
	"apograph/ledger"
)

// testTail returns a reader of the given entries of a target's log, up to an
// offset, for a pair whose producer has id 1 and has written number records.
func testTail(end, number int64, entries ...[]byte) *tailReader {
	flow := &Flow{}
	flow.toolPool = sync.Pool{New: func() any { return &tools{buffers: &buffers{}} }}
	return &tailReader{
		p: &partition{flow: flow}, end: end, appended: number, hashAll: true,
		producers: []ledger.Producer{{ID: 1}}, buffer: slices.Concat(entries...),
	}
}

// TestEntriesOfOldFormatsOnTheTarget: the formats before 2 know no producers. A
// compressed entry, which is one with records before its own offset, takes them.
func TestEntriesOfOldFormatsOnTheTarget(t *testing.T) {
	r := testTail(9, 0, batchOf(0, 3), messageSet(1, 3, 7000, nil, []byte("v")), messageSet(0, 6, 0, nil, []byte("w")), batchOf(7, 2))
	var got []ledger.Range
	for {
		b, err := r.batch()
		if err != nil {
			t.Fatal(err)
		}
		if b == nil {
			break
		}
		if b.ours || b.plain {
			t.Errorf("[%d, %d) is ours %v, of an idempotent producer %v", b.base, b.next, b.ours, b.plain)
		}
		got = append(got, ledger.Range{Start: b.base, End: b.next})
	}
	if want := []ledger.Range{{Start: 0, End: 3}, {Start: 3, End: 4}, {Start: 4, End: 7}, {Start: 7, End: 9}}; !slices.Equal(got, want) {
		t.Errorf("batches %v, want %v", got, want)
	}
}

// TestDamagedBatchOnTheTarget: of a batch without its own checksum nothing is
// known, not even that it is not ours.
func TestDamagedBatchOnTheTarget(t *testing.T) {
	raw := batchOf(0, 3)
	raw[22] = 3 // lz4, which the body is not
	if b, err := testTail(3, 0, raw).batch(); err == nil {
		t.Errorf("read as %+v, want an error", b)
	}
}

// foreigners returns a tail of more records than are kept, in small batches, none
// of them ours, from an offset on.
func foreigners(from int64) (entries [][]byte, end int64) {
	for ; from < 2*adoptionWindow; from += 500 {
		entries = append(entries, batchOf(from, 500))
	}
	return entries, from
}

// TestLookingAheadHasABound: what stands in front of a long tail of somebody
// else's is judged without all of it in memory.
func TestLookingAheadHasABound(t *testing.T) {
	mine := batchOf(0, 3)
	recordbatch.Patch(mine, 1, 0, 0)
	entries, end := foreigners(3)
	t.Run("a hole", func(t *testing.T) {
		a := &adoption{reader: testTail(end, 0, entries...)}
		v, err := a.judge(0, 0, 0)
		if err != nil || v.kind != tailGone || v.until != 3 || v.why != "unknown" {
			t.Errorf("%+v, %v; want a hole of which nothing is known", v, err)
		}
		wantBounded(t, a)
	})
	t.Run("records without a source", func(t *testing.T) {
		a := &adoption{reader: testTail(end, 0, append([][]byte{mine}, entries...)...), over: true}
		if n, err := a.withoutSource(); n != 3 || err != nil {
			t.Errorf("%d records, %v; want 3", n, err)
		}
		wantBounded(t, a)
	})
}

func wantBounded(t *testing.T, a *adoption) {
	t.Helper()
	kept := 0
	for _, b := range a.batches {
		kept += 1 + len(b.records)
	}
	if kept > adoptionWindow+501 || kept != a.ahead {
		t.Errorf("%d are kept, counted as %d; the bound is %d", kept, a.ahead, adoptionWindow)
	}
}
