package mm2

import "slices"

// storeSlots is how many places for syncs a store has per partition: one for each
// bit of an offset.
const storeSlots = 64

// An OffsetSyncStore answers as MirrorMaker 2's checkpoint task does that has
// read the same offset syncs in the same order (OffsetSyncStore of Kafka's
// connect/mirror, as it is since 3.5.2 and 3.6.0: KAFKA-15202). It keeps few of
// them, near ones more densely than those far behind the newest.
//
// Of each partition it keeps 64 slots, newest first, of which neighbours may hold
// the same sync. Where slots i < j hold two syncs, with source offsets u(i), u(j):
//
//   - slot 0 holds the newest sync (A);
//   - u(i) <= u(j) + 2^j - 2^i: none is too old for its slot (B);
//   - u(i) >= u(j) + 2^max(i-2, 0): none is needlessly near another (C);
//   - slot 63 holds the oldest sync that counts (D).
//
// A sync below the newest one is a rewind of the source: all others are forgotten.
// It is not safe for concurrent use.
type OffsetSyncStore struct {
	kept     map[storeKey]*storeArray
	lastOnly bool
	ready    bool
}

// A KeptSync is one that a store has, with the first of its slots.
type KeptSync struct {
	Slot                 int
	Upstream, Downstream int64
}

type storeKey struct {
	topic     string
	partition int32
}

// storePair is one sync. Slots with the same pointer hold the same sync; equal
// offsets do not make it so.
type storePair struct{ upstream, downstream int64 }

type storeArray [storeSlots]*storePair

// NewOffsetSyncStore returns an empty store. One with lastOnly is that of a task
// that could not read the topic of checkpoints: of what it reads until
// [OffsetSyncStore.ReachedEnd] only the last sync of each partition counts
// (KAFKA-15905; all releases before 3.7.1 were like that).
func NewOffsetSyncStore(lastOnly bool) *OffsetSyncStore {
	return &OffsetSyncStore{kept: map[storeKey]*storeArray{}, lastOnly: lastOnly}
}

// ReachedEnd says that all was added that the topic held when the task began.
// Nothing is translated before that.
func (s *OffsetSyncStore) ReachedEnd() { s.ready = true }

// Add adds the next sync of the topic.
func (s *OffsetSyncStore) Add(sync OffsetSync) {
	key, pair := storeKey{sync.Topic, sync.Partition}, &storePair{sync.Upstream, sync.Downstream}
	slots := s.kept[key]
	switch {
	case slots == nil:
		slots = new(storeArray)
		s.kept[key] = slots
		slots.fill(pair)
	case s.lastOnly && !s.ready, pair.upstream < slots[0].upstream:
		slots.fill(pair)
	default:
		slots.add(pair)
	}
}

// Translate returns where a group goes on at the target that has committed an
// offset on the source, -1 if it is older than every sync kept. It is not known
// before the end was reached, nor where there is no sync. Either way MirrorMaker 2
// writes no checkpoint.
func (s *OffsetSyncStore) Translate(topic string, partition int32, committed int64) (offset int64, known bool) {
	slots := s.kept[storeKey{topic, partition}]
	if slots == nil || !s.ready {
		return 0, false
	}
	for _, pair := range slots {
		switch {
		case pair.upstream == committed:
			return pair.downstream, true
		case pair.upstream < committed:
			// What stands between the sync and the group is not known: one past
			// the sync is as far as nothing can be skipped (KAFKA-12468).
			return pair.downstream + 1, true
		}
	}
	return -1, true
}

// Kept returns the syncs that a partition has, newest first.
func (s *OffsetSyncStore) Kept(topic string, partition int32) (kept []KeptSync) {
	slots := s.kept[storeKey{topic, partition}]
	if slots == nil {
		return nil
	}
	for i, pair := range slots {
		if i == 0 || pair != slots[i-1] {
			kept = append(kept, KeptSync{i, pair.upstream, pair.downstream})
		}
	}
	return slices.Clip(kept)
}

func (a *storeArray) fill(pair *storePair) {
	for i := range a {
		a[i] = pair
	}
}

// add puts a sync into slot 0, and moves what was there to slots for which it is
// not too old, so that B and C hold again. What finds none is lost.
func (a *storeArray) add(pair *storePair) {
	old := *a
	a[0] = pair
	carry, cursor := pair, 0
	for k := 1; k < storeSlots; k++ {
		carry, cursor = a.nextCarry(&old, carry, cursor, k)
		if notTooOld(a[k-1], a[k], k-1, k) {
			return // and so it is for all slots behind
		}
		a[k] = carry
	}
}

// nextCarry chooses which sync slot k gets if what it holds is too old: from the
// old slots, beginning at the cursor, or the one that slot k-1 might have had.
func (a *storeArray) nextCarry(old *storeArray, carry *storePair, cursor, k int) (*storePair, int) {
	for {
		c := old[cursor]
		apart := farApart(a[k-1], c, k-1)
		taken := apart && notTooOld(a[k-1], c, k-1, k) && (k == storeSlots-1 || farApart(c, a[k+1], k))
		if taken {
			carry = c
		}
		// Never of use again: its twin stands behind it, or it is too near.
		passed := cursor < storeSlots-1 && old[cursor+1] == c || !apart
		if taken || passed {
			cursor++
		}
		if !passed || cursor >= k {
			return carry, cursor
		}
	}
}

// notTooOld is invariant B of slots i < j. Sums overflow as in Java, and a bound
// below 0 is none.
func notTooOld(at, behind *storePair, i, j int) bool {
	bound := behind.upstream + int64(1)<<j - int64(1)<<i
	return at == behind || bound < 0 || at.upstream <= bound
}

// farApart is invariant C of slot i and any behind it; no sync is apart from one
// whose bound overflows.
func farApart(at, behind *storePair, i int) bool {
	bound := behind.upstream + int64(1)<<max(i-2, 0)
	return at == behind || bound >= 0 && at.upstream >= bound
}
