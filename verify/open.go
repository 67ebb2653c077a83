package verify

import (
	"cmp"
	"fmt"
	"slices"
)

// maxOpen bounds how many losses, and items without a place, are kept to find
// out which belong together.
const maxOpen = 1 << 16

// A loss is a copied record that does not stand in its place on the target.
type loss struct {
	kind   Kind // Missing, or Changed if something else stands there
	detail string

	source, target int64 // offsets; the target's as booked
	hash           uint64
	known          bool // hash is known
	replaced       bool // hash is that without the time
	partner        int  // the item that stands in its place, an index of open.spares; -1 for none
	shift          int64
}

// A spare is an item of the target that does not stand in the place of its own
// record: it stands in that of another, or nothing expects it.
type spare struct {
	item   item
	source int64 // in front of the record of this source offset, or in its place
	shift  int64
	paired bool // it stands in the place of a loss

	since  int64 // value of recent.added when it was found
	second bool  // a record like it was found before or soon after
	first  int64 // source offset of that one
	used   bool  // it is accounted for
}

// An open holds losses and items until it is known which belong together: a
// record that is missed in one place and stands in another is reordered.
type open struct {
	losses []loss
	spares []spare
	looked int // how many spares, from the front, were looked for
}

// overflow settles what is open when it becomes too much.
func (j *judge) overflow() {
	if len(j.open.losses) >= maxOpen || len(j.open.spares) >= maxOpen {
		j.reconcile()
	}
}

// reconcile decides everything that is open.
func (j *judge) reconcile() {
	now := j.tally
	defer func() { j.tally = now }()
	o := &j.open
	places := map[uint64][]int{} // of spares, by either hash
	for o.looked < len(o.spares) {
		j.look()
	}
	for n := range o.spares {
		if s := &o.spares[n]; s.item.kind == dataRecord {
			places[s.item.hash] = append(places[s.item.hash], n)
			if s.item.bare != s.item.hash {
				places[s.item.bare] = append(places[s.item.bare], n)
			}
		}
	}
	moved := make([]int, len(o.losses))
	for n := range o.losses {
		moved[n] = o.elsewhere(&o.losses[n], places)
	}
	for n := range o.losses {
		j.lost(&o.losses[n], moved[n])
	}
	for n := range o.spares {
		if s := &o.spares[n]; !s.used {
			j.stranger(s)
		}
	}
	*o = open{}
}

// elsewhere returns the nearest spare item that is the record of l, and takes
// it; -1 if there is none.
func (o *open) elsewhere(l *loss, places map[uint64][]int) int {
	if !l.known {
		return -1
	}
	best, distance := -1, int64(0)
	for _, n := range places[l.hash] {
		s := &o.spares[n]
		if s.used || s.item.hashAs(l.replaced) != l.hash {
			continue
		}
		d := s.item.offset - l.target
		if d < 0 {
			d = -d
		}
		if best < 0 || d < distance {
			best, distance = n, d
		}
	}
	if best >= 0 {
		o.spares[best].used = true
	}
	return best
}

// lost reports a loss. moved is the item that is its record, -1 for none.
func (j *judge) lost(l *loss, moved int) {
	j.turn(l.source)
	spares := j.open.spares
	source, target := one(l.source), one(l.target)
	kind, detail := l.kind, l.detail
	switch {
	case moved >= 0:
		kind, detail = Reordered, "stands in the place of another record on the target"
		if s := &spares[moved]; !s.paired {
			detail = fmt.Sprintf("stands at target offset %d", s.item.offset)
		}
		j.counts.Reordered++
	case l.partner >= 0 && !spares[l.partner].used:
		spares[l.partner].used = true
		j.counts.Changed++
	default:
		kind, detail = Missing, "not on the target"
		j.counts.Missing++
	}
	j.findings.fault(kind, source, target, "%s%s%s", detail, j.shiftText(l.shift), j.renamed)
}

// stranger reports an item that is nothing's record.
func (j *judge) stranger(s *spare) {
	j.turn(s.source)
	target := one(s.item.offset)
	switch {
	case s.item.kind != dataRecord:
		j.counts.Extra++
		j.findings.fault(Extra, at(s.source), target, "%s of producer id %d that the ledger does not name%s", s.item.kind, s.item.producer, j.shiftText(s.shift))
	case s.second:
		j.counts.Duplicates++
		j.findings.fault(Duplicate, one(s.first), target, "a second physical copy that the ledger does not name%s", j.shiftText(s.shift))
	default:
		j.counts.Extra++
		j.findings.fault(Extra, at(s.source), target, "written by producer id %d, and no copy that the ledger names%s", s.item.producer, j.shiftText(s.shift))
	}
}

// A recent remembers the last records that were found in their places, to tell
// a second copy from a stranger.
type recent struct {
	ring  []record
	added int64

	index   map[uint64]int64 // source offsets by hash, as of indexed
	indexed int64
}

type record struct {
	hash   uint64
	source int64
}

// remembered is how many records are remembered.
const remembered = 1 << 16

func (r *recent) add(u *unit) {
	for k := range u.slots {
		s := &u.slots[k]
		if s.outcome != same && s.outcome != present {
			continue
		}
		found := record{s.got, s.source}
		if len(r.ring) < remembered {
			r.ring = append(r.ring, found)
		} else {
			r.ring[r.added%remembered] = found
		}
		r.added++
	}
}

// find returns the source offset of a remembered record.
func (r *recent) find(i *item) (source int64, ok bool) {
	if r.index == nil || r.indexed != r.added {
		r.index, r.indexed = make(map[uint64]int64, len(r.ring)), r.added
		for _, found := range r.ring {
			r.index[found.hash] = found.source
		}
	}
	if source, ok = r.index[i.hash]; !ok {
		source, ok = r.index[i.bare]
	}
	return source, ok
}

// remember looks for the records of spare items before they are forgotten, and
// not before those behind them have been found as well; for many at a time, as
// the index of what is remembered is dear.
func (j *judge) remember() {
	o := &j.open
	if o.looked == len(o.spares) || j.recent.added-o.spares[o.looked].since < remembered/2 {
		return
	}
	for o.looked < len(o.spares) && j.recent.added-o.spares[o.looked].since >= remembered/4 {
		j.look()
	}
}

// look looks for the record of the next spare item.
func (j *judge) look() {
	s := &j.open.spares[j.open.looked]
	j.open.looked++
	if s.item.kind == dataRecord {
		s.first, s.second = j.recent.find(&s.item)
	}
}

// order puts findings in the order of reports and joins those that belong
// together.
func order(list []Finding) []Finding {
	slices.SortStableFunc(list, func(a, b Finding) int {
		return cmp.Or(
			cmp.Compare(a.Topic, b.Topic), cmp.Compare(a.Partition, b.Partition),
			cmp.Compare(start(a.Source), start(b.Source)), cmp.Compare(start(a.Target), start(b.Target)),
			cmp.Compare(a.Kind, b.Kind),
		)
	})
	var joined []Finding
	for i := range list {
		if n := len(joined); n > 0 && joined[n-1].Topic == list[i].Topic && joined[n-1].Partition == list[i].Partition && joined[n-1].join(&list[i]) {
			continue
		}
		joined = append(joined, list[i])
	}
	return joined
}

func start(r *Range) int64 {
	if r == nil {
		return -1
	}
	return r.Start
}
