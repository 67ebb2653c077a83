package mm2_test

import (
	"fmt"
	"math"
	"math/bits"
	"math/rand"
	"testing"

	"github.com/leanovate/gopter"
	"github.com/leanovate/gopter/gen"
	"github.com/leanovate/gopter/prop"

	"apograph/internal/mm2"
)

// aSync is one of the only partition of a scenario.
func aSync(u, d int64) mm2.OffsetSync {
	return mm2.OffsetSync{Topic: "t", Upstream: u, Downstream: d}
}

// A syncScenario is a row of vectors/translation.
type syncScenario struct {
	ID               string    `json:"id"`
	Syncs            [][]int64 `json:"syncs"`
	InitializedAfter *int      `json:"initialized_after"`
	MustReadToEnd    bool      `json:"must_read_to_end"`
	Queries          []struct {
		Upstream int64  `json:"upstream"`
		After    *int   `json:"after"`
		Expect   *int64 `json:"expect"`
	} `json:"queries"`
	Slots          [][4]int64   `json:"slots"`
	SlotsAfterEach [][][4]int64 `json:"slots_after_each"`
}

// pairs returns the syncs one by one: five numbers are a run of several.
func (s *syncScenario) pairs() (all [][2]int64) {
	for _, sync := range s.Syncs {
		if len(sync) == 2 {
			all = append(all, [2]int64{sync[0], sync[1]})
			continue
		}
		for i := range sync[4] {
			all = append(all, [2]int64{sync[0] + i*sync[2], sync[1] + i*sync[3]})
		}
	}
	return all
}

// storeAfter returns the store once the first n syncs have been read.
func (s *syncScenario) storeAfter(n int) *mm2.OffsetSyncStore {
	store := mm2.NewOffsetSyncStore(s.MustReadToEnd)
	for i, pair := range s.pairs() {
		if s.InitializedAfter != nil && i == *s.InitializedAfter {
			store.ReachedEnd()
		}
		if i == n {
			break
		}
		store.Add(aSync(pair[0], pair[1]))
	}
	if s.InitializedAfter != nil && n >= *s.InitializedAfter {
		store.ReachedEnd()
	}
	return store
}

// slotsOf returns what a store keeps as [first slot, last slot, u, d].
func slotsOf(store *mm2.OffsetSyncStore) [][4]int64 {
	kept := store.Kept("t", 0)
	slots := make([][4]int64, len(kept))
	for i, k := range kept {
		last := int64(63)
		if i+1 < len(kept) {
			last = int64(kept[i+1].Slot) - 1
		}
		slots[i] = [4]int64{int64(k.Slot), last, k.Upstream, k.Downstream}
	}
	return slots
}

func translated(store *mm2.OffsetSyncStore, committed int64) *int64 {
	if offset, known := store.Translate("t", 0, committed); known {
		return &offset
	}
	return nil
}

func TestVectorsOfTranslation(t *testing.T) {
	asked := 0
	for _, file := range []string{"named", "by-release", "random-1", "random-2", "random-3", "random-4"} {
		for _, s := range vectorItems[syncScenario](t, "translation/"+file+".json") {
			all := len(s.pairs())
			for _, q := range s.Queries {
				after := all
				if q.After != nil {
					after = *q.After
				}
				wantSame(t, s.ID, q, translated(s.storeAfter(after), q.Upstream), q.Expect)
				asked++
			}
			wantSame(t, s.ID+" slots", "", slotsOf(s.storeAfter(all)), s.Slots)
			for i, slots := range s.SlotsAfterEach {
				wantSame(t, fmt.Sprintf("%s after %d", s.ID, i+1), "", slotsOf(s.storeAfter(i+1)), slots)
			}
		}
	}
	if asked < 2000 {
		t.Errorf("%d questions", asked)
	}
}

// A storeModel is the store once more, from its description: slots are indexes
// into all syncs that were ever added, and the walk is written out.
type storeModel struct {
	u     []int64
	slots [64]int
}

func (m *storeModel) b(x, y, i, j int) bool {
	bound := uint64(m.u[y]) + 1<<j - 1<<i
	return x == y || int64(bound) < 0 || m.u[x] <= int64(bound)
}

func (m *storeModel) c(x, y, i int) bool {
	bound := uint64(m.u[y]) + 1
	if i > 2 {
		bound = uint64(m.u[y]) + 1<<(i-2)
	}
	return x == y || int64(bound) >= 0 && m.u[x] >= int64(bound)
}

func (m *storeModel) add(u int64) {
	n := len(m.u)
	m.u = append(m.u, u)
	if n == 0 || u < m.u[m.slots[0]] {
		for i := range m.slots {
			m.slots[i] = n
		}
		return
	}
	before := m.slots
	m.slots[0] = n
	carry, cursor, k, searching := n, 0, 1, true
	for k < 64 {
		if searching {
			c := before[cursor]
			fresh, apart := m.b(m.slots[k-1], c, k-1, k), m.c(m.slots[k-1], c, k-1)
			after := k == 63 || m.c(c, m.slots[k+1], k)
			twin := cursor < 63 && before[cursor+1] == c
			moved := false
			if fresh && apart && after {
				carry, moved = c, true
			}
			skip := twin || !apart
			if moved || skip {
				cursor++
			}
			searching = skip && cursor < k
			continue
		}
		if m.b(m.slots[k-1], m.slots[k], k-1, k) {
			return
		}
		m.slots[k] = carry
		k, searching = k+1, true
	}
}

// steps are what a generated sequence of syncs is made of: how far each is from
// the one before, of all magnitudes; now and then it goes back, or is the same.
// Some sequences reach so far up that sums overflow.
func steps() gopter.Gen {
	return gen.SliceOfN(120, gen.Int64Range(0, 1<<62)).Map(func(raw []int64) []int64 {
		at, all := int64(0), make([]int64, len(raw))
		for i, r := range raw {
			if i == 3 && raw[0]%5 == 0 {
				at = math.MaxInt64 - raw[1]>>(raw[2]%60)
			}
			step := (r >> 8) % (1 << (r % 19))
			switch {
			case r%61 == 0:
				step = -step
			case r%97 == 0:
				step = r >> 3 // far, and now and then beyond what fits
			}
			if at+step < 0 {
				step = 0
			}
			at += step
			if raw[0]%5 == 1 { // ever nearer to the last offset that there is
				at = math.MaxInt64 - 1<<(60-i/2) - r%3<<max(0, 58-i/2)
			}
			all[i] = at
		}
		return all
	})
}

func properties(t *testing.T) *gopter.Properties {
	t.Helper()
	parameters := gopter.DefaultTestParameters()
	parameters.SetSeed(8)
	parameters.MinSuccessfulTests = 300
	t.Logf("seed 8")
	return gopter.NewProperties(parameters)
}

// TestStoreAgainstModel compares every slot after every sync.
func TestStoreAgainstModel(t *testing.T) {
	p := properties(t)
	p.Property("every slot holds what the description says", prop.ForAll(func(us []int64) string {
		store, model := mm2.NewOffsetSyncStore(false), &storeModel{}
		for i, u := range us {
			store.Add(aSync(u, int64(i)))
			model.add(u)
			kept := store.Kept("t", 0)
			at := 0
			for slot, want := range model.slots {
				if at+1 < len(kept) && kept[at+1].Slot == slot {
					at++
				}
				if kept[at].Downstream != int64(want) {
					return fmt.Sprintf("%v: after %d syncs slot %d holds %+v, want sync %d", us, i+1, slot, kept[at], want)
				}
			}
		}
		return ""
	}, steps()))
	p.TestingRun(t)
}

// TestStoreInvariants is P0, P1, P2 and P6 of vectors/translation/properties.
func TestStoreInvariants(t *testing.T) {
	p := properties(t)
	p.Property("A, B, C, D; answers rise with the offset", prop.ForAll(func(us []int64) string {
		store := mm2.NewOffsetSyncStore(false)
		store.ReachedEnd()
		first := 0 // of those since the last rewind
		for i, u := range us {
			if i > 0 && u < us[i-1] {
				first = i
			}
			store.Add(aSync(u, int64(i)))
			kept := store.Kept("t", 0)
			if kept[0].Upstream != u || kept[0].Downstream != int64(i) || kept[0].Slot != 0 {
				return fmt.Sprintf("A: %v at %d", us, i)
			}
			if span := u - us[first]; span < 1<<62 && kept[len(kept)-1].Downstream != int64(first) {
				return fmt.Sprintf("D: %v at %d: %v", us, i, kept)
			}
			if broken := brokenLaw(kept); broken != "" {
				return fmt.Sprintf("%s: %v at %d: %v", broken, us, i, kept)
			}
		}
		last := int64(-1)
		for g := int64(0); g < us[len(us)-1] && g < 2000; g++ {
			got, _ := store.Translate("t", 0, g)
			if got < last {
				return fmt.Sprintf("%v: %d becomes %d, and the one before %d", us, g, got, last)
			}
			last = got
		}
		return ""
	}, steps()))
	p.TestingRun(t)
}

// brokenLaw holds all pairs of different syncs to B and C, in the slots that are
// nearest to and farthest from one another.
func brokenLaw(kept []mm2.KeptSync) string {
	for a := range kept {
		for b := a + 1; b < len(kept); b++ {
			lastOfA := kept[a+1].Slot - 1
			firstOfB := kept[b].Slot
			near, far := kept[a].Upstream, kept[b].Upstream
			if near == far {
				continue // the same record twice
			}
			for _, i := range []int{kept[a].Slot, lastOfA} {
				if bound := far + int64(uint64(1)<<firstOfB-uint64(1)<<i); bound >= 0 && near > bound {
					return fmt.Sprintf("B of slots %d, %d", i, firstOfB)
				}
				if bound := far + 1<<max(i-2, 0); bound >= 0 && near < bound {
					return fmt.Sprintf("C of slots %d, %d", i, firstOfB)
				}
			}
		}
	}
	return ""
}

// TestStoreNeverPast: whatever true pairs it was given, in order, with a restart
// anywhere, a store never sends a group past its next record. The truth is a list:
// for each source offset, whether a record is there.
func TestStoreNeverPast(t *testing.T) {
	p := properties(t)
	p.Property("translate(g) <= exact(g)", prop.ForAll(func(present, emitted []bool, start uint8, lastOnly bool) string {
		exact := make([]int64, len(present)+1) // by source offset: records before it
		store := mm2.NewOffsetSyncStore(lastOnly)
		for u, is := range present {
			exact[u+1] = exact[u]
			if !is {
				continue
			}
			if emitted[u] {
				store.Add(aSync(int64(u), exact[u]))
			}
			if u >= int(start) {
				store.ReachedEnd()
			}
			exact[u+1]++
		}
		store.ReachedEnd()
		for g := range exact {
			got, known := store.Translate("t", 0, int64(g))
			if known && (got > exact[g] || got < -1) {
				return fmt.Sprintf("%v, %v: %d becomes %d, exact is %d", present, emitted, g, got, exact[g])
			}
		}
		return ""
	}, gen.SliceOfN(200, gen.Bool()), gen.SliceOfN(200, gen.Bool()), gen.UInt8(), gen.Bool()))
	p.TestingRun(t)
}

// TestStoreLoss is P3, P4 and P5: how many syncs one more costs.
func TestStoreLoss(t *testing.T) {
	r := rand.New(rand.NewSource(8))
	t.Logf("seed 8")
	lost := func(n int, step func() int64) (most int) {
		store, u, had := mm2.NewOffsetSyncStore(false), int64(r.Intn(30)), 0
		for i := range n {
			store.Add(aSync(u, int64(i)))
			has := len(store.Kept("t", 0))
			most = max(most, had+1-has)
			had = has
			u += step()
		}
		return most
	}
	for e := range 20 {
		if most := lost(100, func() int64 { return 1<<(e+1) - 1 }); most > 1 {
			t.Errorf("steps of %d: one more costs %d", 1<<(e+1)-1, most)
		}
		for _, least := range []int64{0, 1 << 16} {
			if most := lost(1024, func() int64 { return least + r.Int63n(1<<e) }); most > e+3 {
				t.Errorf("steps in %d and 2^%d more: one more costs %d", least, e, most)
			}
		}
	}
	if most := lost(10000, func() int64 { return 100 << r.Intn(2) }); most > 2 {
		t.Errorf("steps of 100 and 200: one more costs %d", most)
	}
}

// TestStoreSize: what is kept grows with the bits of the span.
func TestStoreSize(t *testing.T) {
	store := mm2.NewOffsetSyncStore(false)
	const span = 1 << 20
	for u := range int64(span) {
		store.Add(aSync(u, u))
	}
	if kept := len(store.Kept("t", 0)); kept > bits.Len(span)+2 || kept < bits.Len(span)/2 {
		t.Errorf("%d syncs are kept of %d", kept, span)
	}
	store.ReachedEnd()
	for _, other := range []mm2.OffsetSync{{Topic: "t", Partition: 1}, {Topic: "u"}} {
		if _, known := store.Translate(other.Topic, other.Partition, 5); known || store.Kept(other.Topic, other.Partition) != nil {
			t.Errorf("%v has answers", other)
		}
	}
}
