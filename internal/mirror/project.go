package mirror

import (
	"slices"

	"apograph/ledger"
)

// A projection says how far the syncs of a source partition are.
type projection struct {
	last copied        // the last sync; [none] if there was none
	pair ledger.PairID // whose books were looked at
	seen int64         // source offsets below were: none behind last is copied
	from int64         // nothing below is written: what is in the topic may be above it
}

// next returns the syncs to write of a partition whose source book ends at end: at
// most room, at least [fewest], of ascending source offsets.
//
// A checkpoint task translates an offset by the last sync at or below it that it
// has kept: exactly, if that is of the record before or of the one that is asked
// for; else to the offset behind that record (OffsetSyncStore.translateDownstream).
// What it keeps gets sparser with the distance from the newest sync, about one for
// each doubling of it (invariants B and C of its class). So these are written:
//
//   - the newest copied record: exact for whoever is at the end;
//   - others behind it, at distances that begin with spacing and grow by half, none
//     nearer than that to the sync before: of more, the task would keep no more;
//   - where there is no sync, or what there is does not hold any more, the first
//     copied record: without one below it, a group has no translation at all. As it
//     is lower than the last sync, a task forgets that, and all before it. Where it
//     is not, as the source has nothing any more of what was copied then, what has
//     this effect is written first.
//
// A record behind a gap needs none: all offsets in the gap, and that of the
// record, are translated exactly by the one before.
func (p projection) next(b book, end, spacing int64, room int) (syncs []copied, after projection, err error) {
	if p.pair != b.parts[0].id {
		p.pair, p.seen = b.parts[0].id, 0 // it may begin below, where the source's log was cut
	}
	after = projection{last: p.last, pair: p.pair, seen: end}
	wrong := none()
	if p.last.exists() {
		holds, err := b.holds(p.last)
		if err != nil {
			return nil, p, err
		}
		if !holds {
			wrong, p = p.last, projection{last: none()}
		}
	}
	newest, err := b.last(end-1, max(p.last.upstream+1, p.seen))
	if err != nil || !newest.exists() {
		return nil, after, err
	}
	first := none()
	if !p.last.exists() && p.from == 0 {
		if first, err = b.first(); err != nil {
			return nil, p, err
		}
		room -= fewest - 1
	}
	floor := max(first.upstream+1, p.from)
	if p.last.exists() {
		floor = p.last.upstream + spacing
	}
	syncs, err = b.ladder(newest, floor, spacing, room)
	if err != nil {
		return nil, p, err
	}
	if first.exists() && first != newest {
		syncs = append(syncs, first)
	}
	if wrong.exists() && first.upstream >= wrong.upstream {
		syncs = append(syncs, voiding(wrong, first))
	}
	slices.Reverse(syncs)
	after.last = newest
	return syncs, after, nil
}

// voiding returns what has a task forget a sync that does not hold, where no record
// that was copied is below it: it has all offsets translated to that of the first
// record, or one below.
func voiding(wrong, first copied) copied {
	return copied{wrong.upstream - 1, first.downstream - 1}
}

// ladder returns the newest record and those behind it at growing distances, none
// below floor.
func (b book) ladder(newest copied, floor, spacing int64, room int) ([]copied, error) {
	syncs := []copied{newest}
	for distance := max(spacing, 1); len(syncs) < room && newest.upstream-distance >= floor; distance += max(distance/2, 1) {
		step, err := b.last(newest.upstream-distance, floor)
		if err != nil {
			return nil, err
		}
		if !step.exists() {
			break
		}
		if step != syncs[len(syncs)-1] {
			syncs = append(syncs, step)
		}
	}
	return syncs, nil
}
