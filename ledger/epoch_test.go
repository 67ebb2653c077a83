package ledger

import (
	"math/rand"
	"testing"

	"github.com/leanovate/gopter"
	"github.com/leanovate/gopter/gen"
	"github.com/leanovate/gopter/prop"
)

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
		if got, err := l.NewestEpoch(id); err != nil || got != (EpochEnd{epoch, end}) {
			t.Errorf("%+v, %v, want epoch %d up to %d", got, err, epoch, end)
		}
	}
	mustKnow(id, -1, 0)
	appendEpoch(id, 1, 40)
	appendEpoch(id, 3, 20)
	appendEpoch(id, 3, 20)
	mustKnow(id, 3, 80)
	appendEpoch(id, -1, 20)
	mustKnow(id, 3, 80)
	mustPart := func(id PairID, want int64, line ...EpochEnd) {
		t.Helper()
		known, err := l.NewestEpoch(id)
		if err != nil {
			t.Fatal(err)
		}
		got, err := l.PartsAt(id, known, logOf(line))
		if err != nil || (got == nil) != (want < 0) || got != nil && got.At != want {
			t.Errorf("a log %v parts at %+v, %v, want %d", line, got, err, want)
		}
	}
	mustPart(id, -1, EpochEnd{1, 40}, EpochEnd{3, 80})
	mustPart(id, -1, EpochEnd{1, 40}, EpochEnd{3, 90}, EpochEnd{4, 100})
	mustPart(id, 70, EpochEnd{1, 40}, EpochEnd{3, 70}, EpochEnd{4, 100})
	mustPart(id, 40, EpochEnd{1, 40}, EpochEnd{2, 50}, EpochEnd{4, 100})
	mustPart(id, 40, EpochEnd{1, 200}, EpochEnd{4, 300}) // it goes on in epoch 1 beyond the books
	mustPart(id, 30, EpochEnd{1, 30}, EpochEnd{4, 100})
	mustPart(id, 30, EpochEnd{1, 30}, EpochEnd{2, 60}, EpochEnd{4, 100}) // below what 2 says
	mustPart(id, 0, EpochEnd{0, 200}, EpochEnd{4, 300})

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
	mustPart(next, 60, EpochEnd{1, 40}, EpochEnd{3, 100}, EpochEnd{6, 200})
	mustPart(next, 50, EpochEnd{1, 40}, EpochEnd{3, 50}, EpochEnd{4, 80}, EpochEnd{6, 200})
	mustPart(next, 40, EpochEnd{1, 100}, EpochEnd{6, 200}) // where the one before parts, the next does
}

// logOf tells of the epochs of a log from offset 0 on, each with the offset at which the
// next begins, as Kafka does (LeaderEpochFileCache.endOffsetFor): of an epoch older than
// all, that it ends where the log starts.
func logOf(line []EpochEnd) func(int32) (EpochEnd, error) {
	return func(epoch int32) (EpochEnd, error) {
		found := EpochEnd{epoch, 0}
		for _, e := range line {
			if e.Epoch <= epoch {
				found = e
			}
		}
		return found, nil
	}
}

// TestPartsAt: books part from a log at the first offset at which the leader epochs of
// both differ, whatever became of both since; an epoch goes on in one of them alone.
func TestPartsAt(t *testing.T) {
	properties := newProperties(t)
	properties.Property("the first offset that differs", prop.ForAll(func(seed int64) bool {
		rng := rand.New(rand.NewSource(seed))
		common, last := growEpochs(rng, nil, 0, 1)
		common = common[:rng.Intn(len(common)+1)]
		books, next := growEpochs(rng, common, last+1, 2)
		log, _ := growEpochs(rng, common, last+2, 2)
		if n := len(common); n > 0 && rng.Intn(2) == 0 { // what is last goes on in one
			log = append(log[:n:n], append([]int32{common[n-1], common[n-1]}, log[n:]...)...)
		}
		log = append(log, max(next, last)+100) // who leads now
		want := int64(0)
		for want < int64(len(books)) && want < int64(len(log)) && books[want] == log[want] {
			want++
		}

		l := mustCreate(t)
		id := mustOpenPair(t, l, 0, 0)
		for at := 0; at < len(books); {
			e := copiedEntry(l.End(id), 1)
			if e.LeaderEpoch = books[at]; at+1 < len(books) && books[at+1] == books[at] {
				e = copiedEntry(l.End(id), 2)
				e.LeaderEpoch = books[at]
			}
			at += int(e.Source.Len())
			mustAppend(t, l, id, e)
		}
		mustCommit(t, l)
		known, err := l.NewestEpoch(id)
		if err != nil {
			t.Fatal(err)
		}
		got, err := l.PartsAt(id, known, logOf(epochEndsOf(log)))
		if whole := want == int64(len(books)); err != nil || (got == nil) != whole || !whole && got.At != want {
			t.Logf("seed %d: books %v, log %v: parts at %+v, %v, want %d", seed, books, log, got, err, want)
			return false
		}
		return true
	}, gen.Int64()))
	properties.TestingRun(t, gopter.ConsoleReporter(false))
}

// growEpochs appends to the epochs of a log's offsets some more, from one on in steps.
func growEpochs(rng *rand.Rand, line []int32, epoch, step int32) (longer []int32, last int32) {
	longer = append(longer, line...)
	for range rng.Intn(5) {
		for range 1 + rng.Intn(3) {
			longer = append(longer, epoch)
		}
		epoch += step * int32(1+rng.Intn(2))
	}
	return longer, epoch
}

func epochEndsOf(log []int32) (ends []EpochEnd) {
	for i, epoch := range log {
		if i == 0 || log[i-1] != epoch {
			ends = append(ends, EpochEnd{Epoch: epoch})
		}
		ends[len(ends)-1].Offset = int64(i + 1)
	}
	return ends
}
