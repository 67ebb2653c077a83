package verify

import (
	"apograph/ledger"
)

// An outcome says what the target holds of a slot.
type outcome uint8

const (
	undecided  outcome = iota
	same               // the record, as the source has it
	present            // a record, and the source cannot say which it should be
	differs            // something else stands in its place
	absent             // nothing, although the target's log covers the place
	expired            // below the target's log start
	cleaned            // nothing, and the target topic compacts
	unreadable         // the target could not be read there
	moving             // the target's log was cut while it was read
)

// reason returns why a slot with the outcome counts as not verified.
func (o outcome) reason() Reason {
	switch o {
	case expired:
		return Retention
	case cleaned:
		return Compaction
	case moving:
		return Moving
	default:
		return Unreadable
	}
}

// A slot is one expected offset of the target: a copied record, or an offset of
// a note.
type slot struct {
	source  int64  // offset of the copied record
	hash    uint64 // of what should be there, if known
	got     uint64 // of what is there: same, present, differs with a record
	state   slotState
	proven  bool // the digest says what should be there, although the source does not
	outcome outcome
}

// known reports whether it is known what should be there.
func (s *slot) known() bool { return s.state == sourceHas || s.proven }

// holds reports whether a record of the target stands there, whichever it is.
func (s *slot) holds() bool { return s.outcome == same || s.outcome == present || s.outcome == differs }

// A unit is an entry on its way through the comparison.
type unit struct {
	entry ledger.Entry
	slots []slot // one for each target offset of the entry
	done  int    // how many of them, from the front, are decided

	others []other // what stands where a slot differs, in order

	// shifted says that from slot shiftedAt on the target's records stand
	// shifted offsets higher than before; 0 for nowhere in the unit.
	shifted   int64
	shiftedAt int

	// stands is by how much the last record that was found stands higher than
	// booked; valid if found.
	stands int64
	found  bool

	// torn: a cut tears the entry, and its digest says nothing of these records.
	torn bool

	// unlocated: records are absent, but of which offsets cannot be told.
	unlocated bool
}

// An other is what stands in the place of a slot.
type other struct {
	slot int
	item item
}

func (u *unit) note() bool { return u.entry.Tile != ledger.Copied }

// booked returns the booked target offset of slot k.
func (u *unit) booked(k int) int64 { return u.entry.Target.Start + int64(k) }

// unknown reports whether it is not known of some slot what should be there.
func (u *unit) unknown() bool {
	for i := range u.slots {
		if !u.slots[i].known() {
			return true
		}
	}
	return false
}

// A digests folds the records of a unit: as the source has them, as the target
// has them, and as the source has them where it can say, else as the target has
// them. OK of each is false if a record is missing for it. The target's is of
// records in the places of the slots, whatever they are.
type digests struct {
	source, target, mixed       ledger.Digest
	sourceOK, targetOK, mixedOK bool

	faulty  bool   // a slot is absent or differs
	without Reason // why a record of the target is not at hand; empty if none is missing
}

func (u *unit) digests() digests {
	d := digests{sourceOK: true, targetOK: true, mixedOK: true}
	for i := range u.slots {
		s := &u.slots[i]
		if s.state == sourceHas {
			d.source = d.source.Add(s.hash)
		} else {
			d.sourceOK = false
		}
		record := s.holds() && !u.holdsControl(i)
		if record {
			d.target = d.target.Add(s.got)
		} else {
			d.targetOK = false
		}
		switch {
		case s.known():
			d.mixed = d.mixed.Add(s.hash)
		case record:
			d.mixed = d.mixed.Add(s.got)
		default:
			d.mixedOK = false
		}
		switch s.outcome {
		case absent, differs:
			d.faulty = true
		case expired, cleaned, unreadable, moving:
			d.without = s.outcome.reason()
		}
	}
	return d
}

// holdsControl reports whether a marker stands in the place of slot k.
func (u *unit) holdsControl(k int) bool {
	return u.slots[k].outcome == differs && u.otherOf(k).kind != dataRecord
}

// decide sets what stands in the place of slot k.
func (u *unit) decide(k int, i *item) {
	s := &u.slots[k]
	if u.note() {
		s.outcome = present
		return
	}
	s.got = i.hashAs(u.entry.TimestampsReplaced)
	switch {
	case i.kind != dataRecord, s.known() && s.hash != s.got:
		s.outcome = differs
		u.others = append(u.others, other{k, *i})
	case s.known():
		s.outcome = same
	default:
		s.outcome = present
	}
}

// fits reports whether i is what should stand in the place of slot k, as far as
// is known.
func (u *unit) fits(k int, i *item) bool {
	s := &u.slots[k]
	switch {
	case u.note():
		return true
	case i.kind != dataRecord:
		return false
	default:
		return !s.known() || s.hash == i.hashAs(u.entry.TimestampsReplaced)
	}
}
