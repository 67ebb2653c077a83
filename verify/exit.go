package verify

import "apograph/ledger"

// exit returns the nearest place, behind the first slot or item, from which the
// sequences agree. Of several equally near ones it prefers one where records
// stand as they did before.
func (w *window) exit() (best place, ok bool) {
	index := w.index()
	distance, moved := len(w.want)+len(w.have)+1, int64(0)
	try := func(p place) {
		d := max(p.want, p.have)
		if d == 0 || d > distance || p.have >= len(w.have) {
			return
		}
		m := w.have[p.have].offset - w.want[p.want].want - w.shift
		if m < 0 {
			m = -m
		}
		if d == distance && m >= moved || !w.agrees(p) {
			return
		}
		best, ok, distance, moved = p, true, d, m
	}
	for i := 0; i < len(w.want) && i <= distance; i++ {
		e := &w.want[i]
		if j := w.position(e.want + w.shift); j < len(w.have) && w.have[j].offset == e.want+w.shift {
			try(place{i, j})
		}
		switch {
		case e.note():
		case e.known():
			for _, j := range index.find(e) {
				try(place{i, int(j)})
			}
		case e.slot == 0:
			for _, j := range w.places(e.unit) {
				try(place{i, int(j)})
			}
		}
	}
	return best, ok
}

// maxOccurrences bounds how many items of one hash are tried. The place in which
// a record should stand is tried in any case.
const maxOccurrences = 8

// A hashIndex finds items by their hashes.
type hashIndex struct {
	hash, bare map[uint64][]int32
}

func (w *window) index() hashIndex {
	x := hashIndex{hash: make(map[uint64][]int32, len(w.have)), bare: map[uint64][]int32{}}
	replaced := false
	for i := range w.want {
		replaced = replaced || w.want[i].unit == nil || w.want[i].unit.entry.TimestampsReplaced
	}
	for j := range w.have {
		if w.have[j].kind != dataRecord {
			continue
		}
		x.hash[w.have[j].hash] = addOccurrence(x.hash[w.have[j].hash], j)
		if replaced {
			x.bare[w.have[j].bare] = addOccurrence(x.bare[w.have[j].bare], j)
		}
	}
	return x
}

func addOccurrence(list []int32, j int) []int32 {
	if len(list) >= maxOccurrences {
		return list
	}
	return append(list, int32(j))
}

// find returns the indexes of items that may fit an elem whose content is known.
func (x *hashIndex) find(e *elem) []int32 {
	if e.unit == nil {
		return x.hash[e.item.hash]
	}
	s := &e.unit.slots[e.slot]
	if e.unit.entry.TimestampsReplaced {
		return x.bare[s.hash]
	}
	return x.hash[s.hash]
}

// A runLength says of which runs of items the digests are indexed.
type runLength struct {
	records  int
	replaced bool
}

// places returns where, by the digest, the records of a whole unit stand.
func (w *window) places(u *unit) []int32 {
	if u.torn || u.done > 0 {
		return nil
	}
	key := runLength{len(u.slots), u.entry.TimestampsReplaced}
	index, ok := w.runs[key]
	if !ok {
		index = map[ledger.Digest][]int32{}
		w.prefix(key.replaced, 0)
		power := ledger.Concat(1, 0, int64(key.records))
		for j := range w.have {
			if w.run(j, key.records) {
				d := minus(w.prefix(key.replaced, j+key.records), times(w.prefix(key.replaced, j), power))
				index[d] = addOccurrence(index[d], j)
			}
		}
		w.runs[key] = index
	}
	return index[u.entry.Digest]
}
