package mirror

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"apograph/internal/mm2"
	"apograph/ledger"
)

// A scribe writes what a projection has, into a topic that a store reads.
type scribe struct {
	*model
	at      projection
	store   *mm2.OffsetSyncStore
	written []copied
}

func newScribe(m *model) *scribe {
	s := &scribe{model: m, at: projection{last: none()}, store: mm2.NewOffsetSyncStore(false)}
	s.store.ReachedEnd()
	return s
}

// write writes what is due of what is committed, and returns it.
func (s *scribe) write(spacing int64, room int) []copied {
	s.t.Helper()
	s.commit()
	b, err := bookOf(s.ledger, s.pair())
	if err != nil {
		s.t.Fatal(err)
	}
	syncs, after, err := s.at.next(b, s.ledger.Committed(s.id).Source, spacing, room)
	if err != nil {
		s.t.Fatal(err)
	}
	s.at = after
	for _, c := range syncs {
		s.store.Add(mm2.OffsetSync{Topic: s.topic, Upstream: c.upstream, Downstream: c.downstream})
		s.written = append(s.written, c)
	}
	return syncs
}

// translate is what a checkpoint task makes of an offset; -1 nothing.
func (s *scribe) translate(offset int64) int64 {
	if d, ok := s.store.Translate(s.topic, 0, offset); ok {
		return d
	}
	return -1
}

// check holds what was written, and what a checkpoint task makes of it, to the
// list of what was copied.
func (s *scribe) check(syncs []copied, r *rand.Rand) error {
	for i, c := range syncs {
		if void := i == 0 && len(syncs) > 1 && len(s.written) > len(syncs) && c == voiding(s.written[len(s.written)-len(syncs)-1], s.records[0]); !void && !slices.Contains(s.records, c) {
			return fmt.Errorf("%+v is no record that was copied", c)
		}
		if i > 0 && c.upstream <= syncs[i-1].upstream {
			return fmt.Errorf("%+v behind %+v", c, syncs[i-1])
		}
	}
	if len(s.records) == 0 {
		return nil // what was written before stands until there is a record
	}
	end := s.ledger.Committed(s.id).Source
	for range 20 {
		g := r.Int64N(end + 20)
		if got, exact := s.translate(g), s.exact(g); got > exact {
			return fmt.Errorf("%d becomes %d, and the next record is at %d; written %v", g, got, exact, s.written)
		}
	}
	newest := s.records[len(s.records)-1]
	for _, g := range []int64{newest.upstream, newest.upstream + 1, end + 5} {
		if got, want := s.translate(g), newest.downstream+min(g-newest.upstream, 1); got != want {
			return fmt.Errorf("%d, at the end, becomes %d and not %d", g, got, want)
		}
	}
	if first := s.records[0]; s.translate(first.upstream) < 0 {
		return fmt.Errorf("the first record, %+v, has no translation", first)
	}
	return nil
}

// TestSyncsAreNeverPast: over histories of copies, gaps, notes, lost tails and
// topics that are created again, every sync is a record that was copied, no
// translation of a checkpoint task is past the next record, and who is at the end
// is translated exactly.
func TestSyncsAreNeverPast(t *testing.T) {
	for seed := range uint64(60) {
		r := rand.New(rand.NewPCG(seed, 1))
		s := newScribe(newModel(t, newLedger(t), "orders", r.Int64N(2)*r.Int64N(50), r.Int64N(2)*r.Int64N(50)))
		spacing, room := []int64{1, 12, 100}[r.IntN(3)], fewest+r.IntN(30)
		for step := range 40 {
			s.step(r)
			if r.IntN(3) > 0 {
				continue
			}
			if err := s.check(s.write(spacing, room), r); err != nil {
				t.Fatalf("seed %d, step %d: %v", seed, step, err)
			}
		}
	}
}

// TestSyncsFall: the source offset of syncs falls only where what was written
// does not hold any more.
func TestSyncsFall(t *testing.T) {
	for seed := range uint64(30) {
		r := rand.New(rand.NewPCG(seed, 2))
		s := newScribe(newModel(t, newLedger(t), "orders", 0, 0))
		for range 40 {
			s.step(r)
			before := s.at.last
			holds := slices.Contains(s.records, before)
			if syncs := s.write(12, syncsOfOne); holds && len(syncs) > 0 && syncs[0].upstream <= before.upstream {
				t.Fatalf("seed %d: %v behind %v, which holds", seed, syncs, before)
			}
		}
	}
}

// TestLadder: one round of a partition that was never written.
func TestLadder(t *testing.T) {
	tests := []struct {
		name    string
		spacing int64
		room    int
		want    []int64
	}{
		{"whole", 25, syncsOfOne, []int64{0, 17, 44, 62, 74, 99}},
		{"each", 1, syncsOfOne, []int64{0, 5, 36, 57, 71, 80, 86, 90, 93, 95, 96, 97, 98, 99}},
		{"little room", 25, 4, []int64{0, 74, 99}},
		{"no room", 25, fewest, []int64{0, 99}},
		{"wide", 100, syncsOfOne, []int64{0, 99}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := newScribe(newModel(t, newLedger(t), "orders", 0, 0))
			s.copy(100)
			s.gap(ledger.CommitMarker, 1)
			var got []int64
			for _, c := range s.write(tt.spacing, tt.room) {
				got = append(got, c.upstream)
			}
			if !slices.Equal(got, tt.want) {
				t.Errorf("%v, want %v", got, tt.want)
			}
			if again := s.write(tt.spacing, tt.room); again != nil {
				t.Errorf("again %v", again)
			}
		})
	}
}

// TestLadderOverGenerations: where the target lost a tail, what holds below is
// written again, with the first of all records: groups there keep a translation.
func TestLadderOverGenerations(t *testing.T) {
	s := newScribe(newModel(t, newLedger(t), "orders", 0, 0))
	s.copy(1000)
	s.write(12, syncsOfOne)
	s.loseTail(600)
	s.copy(10)
	syncs := s.write(12, syncsOfOne)
	if first := syncs[0]; first != (copied{0, 0}) {
		t.Errorf("the first is %v", first)
	}
	if got := s.translate(500); got < 300 || got > 500 {
		t.Errorf("500 becomes %d", got)
	}
	if got := s.translate(800); got != 610 {
		t.Errorf("800 becomes %d, want 610", got)
	}
}
