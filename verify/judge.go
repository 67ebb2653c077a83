package verify

import (
	"cmp"
	"fmt"
	"slices"
)

// A judge turns what was found of each unit into counts and findings.
type judge struct {
	*tally // of what is judged right now
	tallies

	// renamed and sourceRenamed say of the target and the source that the topic
	// is another one under the same name, for details; else they are empty.
	renamed, sourceRenamed string

	nothing string // says that the target holds nothing at all of what it should; else empty

	causes []cause // why a side could not be read

	open   open   // losses and items that may belong together
	recent recent // records found in their places
}

// turn makes j judge what has to do with a source offset.
func (j *judge) turn(source int64) { j.tally = j.of(source) }

// unit judges a unit whose slots are all decided.
func (j *judge) unit(u *unit) {
	j.turn(u.entry.Source.Start)
	if u.found {
		j.stands, j.found = u.stands, true
	}
	if u.note() {
		j.note(u)
		return
	}
	d := u.digests()
	j.agree(u, d)
	if d.mixedOK && !u.torn && d.mixed != u.entry.Digest && j.damaged(u, d) {
		return
	}
	lost := u.unlocated && j.unlocated(u)
	for k := range u.slots {
		j.slot(u, k, d, lost)
	}
	j.movement(u)
	j.recent.add(u)
	j.remember()
}

// agree reports that the sides agree with each other and not with the book, or
// that the source differs where the target cannot be asked.
func (j *judge) agree(u *unit, d digests) {
	if !d.sourceOK || d.source == u.entry.Digest {
		return
	}
	equal, compared := true, true
	for k := range u.slots {
		equal = equal && u.slots[k].outcome != differs
		compared = compared && u.slots[k].holds()
	}
	source, target := rangeOf(u.entry.Source), rangeOf(u.entry.Target)
	switch {
	case equal && compared:
		j.findings.fault(Diverged, source, target, "source and target hold the same records, but not those of which the ledger has the digest %v", u.entry.Digest)
	case equal:
		j.findings.fault(Diverged, source, target, "the source holds other records than those of which the ledger has the digest %v", u.entry.Digest)
	}
}

// damaged judges a unit of which the target does not hold what was copied,
// though every known record of it is right: it is among those that the source
// cannot show. It returns false if a known record accounts for it.
func (j *judge) damaged(u *unit, d digests) bool {
	n := 0
	for k := range u.slots {
		switch {
		case u.slots[k].outcome == differs:
			return false
		case u.slots[k].outcome == present:
			n++
		}
	}
	if n == 0 {
		return false
	}
	detail := fmt.Sprintf("the target does not hold the %s that were copied, whose digest is %v: at least one is another%s", counted(int64(len(u.slots)), "record"), u.entry.Digest, j.renamed)
	if n < len(u.slots) {
		detail = fmt.Sprintf("the target does not hold all %d records that were copied, whose digest is %v, and the source holds %d of them, which are equal: at least one of the others is another%s",
			len(u.slots), u.entry.Digest, len(u.slots)-n, j.renamed)
	}
	for k := range u.slots {
		if u.slots[k].outcome != present {
			j.slot(u, k, d, false)
			continue
		}
		j.counts.Changed++
		j.stamped(u)
		source, target := one(u.slots[k].source), one(u.booked(k))
		if n == len(u.slots) {
			continue
		}
		j.findings.fault(Changed, source, target, "%s", detail)
	}
	if n == len(u.slots) {
		j.findings.fault(Changed, rangeOf(u.entry.Source), rangeOf(u.entry.Target), "%s", detail)
	}
	j.movement(u)
	return true
}

// unlocated reports the records that a unit lacks of which it cannot be told
// which they are. It returns false if they are all there are.
func (j *judge) unlocated(u *unit) bool {
	lacking, unknown, first, last := 0, 0, 0, 0
	for k := range u.slots {
		if u.slots[k].known() {
			continue
		}
		if unknown == 0 {
			first = k
		}
		last = k
		unknown++
		if u.slots[k].outcome == absent {
			lacking++
		}
	}
	if lacking == unknown {
		return false
	}
	j.counts.Missing += int64(lacking)
	j.findings.fault(Missing, &Range{u.slots[first].source, u.slots[last].source + 1}, &Range{u.booked(first), u.booked(last) + 1},
		"the target lacks %d of %d of these records, and the digest cannot tell which%s%s", lacking, unknown, j.shiftText(u.shifted), j.renamed)
	j.move(u.shifted)
	u.shifted = 0
	return true
}

// slot judges one slot of a copied unit. lost says that those which are absent
// and unknown have been counted.
func (j *judge) slot(u *unit, k int, d digests, lost bool) {
	s := &u.slots[k]
	switch s.outcome {
	case same:
		j.stamped(u)
		if s.state == sourceHas || s.state == sourceUnread {
			j.counts.Equal++
		} else {
			j.notVerified(u, k, lack{s.state.reason(), "source"}, s.state != sourceGone)
		}
	case present:
		j.present(u, k, d)
	case differs:
		j.stamped(u)
		j.differs(u, k, d)
	case absent:
		switch {
		case j.nothing != "":
			j.vanish(u, k)
		case lost && !s.known():
		default:
			j.lose(u.loss(k, Missing, ""))
		}
	default:
		j.notVerified(u, k, lack{s.outcome.reason(), "target"}, true)
	}
}

// present judges a record that the source cannot show.
func (j *judge) present(u *unit, k int, d digests) {
	state := u.slots[k].state
	switch {
	case state != sourceUnread:
		j.notVerified(u, k, lack{state.reason(), "source"}, state != sourceGone)
	case d.targetOK && d.target == u.entry.Digest:
		j.stamped(u)
		j.counts.Equal++
	default: // the digest is of all records of the entry, and does not tell
		j.notVerified(u, k, lack{cmp.Or(d.without, NotRead), "target"}, !d.faulty)
	}
}

// differs judges a slot where something else stands: the digest says which side
// has changed since the copy.
func (j *judge) differs(u *unit, k int, d digests) {
	s := &u.slots[k]
	i := u.otherOf(k)
	if d.targetOK && d.target == u.entry.Digest {
		j.counts.Changed++
		j.findings.fault(Diverged, one(s.source), one(u.booked(k)), "the source holds another record than the one that was copied; the target holds what was copied%s", j.sourceRenamed)
		return
	}
	detail := "the target holds another record in its place"
	switch {
	case i.kind != dataRecord:
		detail = "the target holds " + i.kind.String() + " in its place"
	case d.sourceOK && d.source == u.entry.Digest:
		detail += "; the source holds what was copied"
	case d.sourceOK && d.targetOK:
		detail += "; neither side's records have the digest in the ledger"
	}
	l := u.loss(k, Changed, detail)
	l.partner = len(j.open.spares)
	j.open.spares = append(j.open.spares, spare{item: *i, source: s.source, paired: true, since: j.recent.added})
	j.lose(l)
}

func (j *judge) lose(l loss) {
	j.open.losses = append(j.open.losses, l)
	j.overflow()
}

// loss returns what is lost with slot k.
func (u *unit) loss(k int, kind Kind, detail string) loss {
	s := &u.slots[k]
	return loss{
		kind: kind, detail: detail, source: s.source, target: u.booked(k),
		hash: s.hash, known: s.known(), replaced: u.entry.TimestampsReplaced,
		partner: -1, shift: u.shiftOf(k),
	}
}

// surplus takes an item of the target that nothing expects, in front of the
// record of a source offset.
func (j *judge) surplus(i *item, source, shift int64) {
	j.open.spares = append(j.open.spares, spare{item: *i, source: source, shift: shift, since: j.recent.added})
	j.turn(source)
	j.move(shift)
	j.overflow()
}

// note judges a unit that the ledger names and that is no copy: only that it is
// there counts.
func (j *judge) note(u *unit) {
	for k := range u.slots {
		switch {
		case u.slots[k].outcome != absent:
		case j.nothing != "":
			j.vanish(u, k)
		default:
			j.findings.fault(Missing, at(u.entry.Source.Start), one(u.booked(k)),
				"a record that the ledger calls %s is not there%s%s", u.entry.Tile, j.shiftText(u.shiftOf(k)), j.renamed)
		}
	}
	j.movement(u)
}

// movement reports a movement of the target's records that no finding of the
// unit tells.
func (j *judge) movement(u *unit) {
	if u.shifted == 0 {
		return
	}
	j.move(u.shifted)
	if u.slots[u.shiftedAt].outcome == absent {
		return
	}
	source, target := at(u.entry.Source.Start), at(u.booked(u.shiftedAt))
	kind := Extra
	if u.shifted < 0 {
		kind = Missing
	}
	j.findings.fault(kind, source, target, "no record tells why%s%s", j.shiftText(u.shifted), j.renamed)
}

// move takes a movement of the target's records into account.
func (j *judge) move(by int64) {
	j.anyShift = j.anyShift || by != 0
}

// shiftText says what a movement means; nothing for none.
func (j *judge) shiftText(shift int64) string {
	switch {
	case shift > 0:
		return fmt.Sprintf("; from here on the target's records stand %d higher than the book says, and translated offsets are wrong", shift)
	case shift < 0:
		return fmt.Sprintf("; from here on the target's records stand %d lower than the book says, and translated offsets are wrong", -shift)
	default:
		return ""
	}
}

// stamped counts a record that was compared without its time.
func (j *judge) stamped(u *unit) {
	if u.entry.TimestampsReplaced {
		j.counts.TimestampsReplaced++
	}
}

// notVerified counts a record that could not be compared. reported says that it
// is to be named in a finding, and none has done so.
func (j *judge) notVerified(u *unit, k int, why lack, reported bool) {
	j.counts.NotVerified++
	if !reported {
		return
	}
	if why.reason != Unreadable && why.reason != Moving {
		why.side = ""
	}
	source, target := u.slots[k].source, u.booked(k)
	n := j.unverified[why]
	if n == nil {
		n = &unverified{source: Range{Start: source}, target: Range{Start: target}}
		j.unverified[why] = n
	}
	n.records++
	n.source.End, n.target.End = source+1, target+1
}

// shiftOf returns the movement that begins at slot k.
func (u *unit) shiftOf(k int) int64 {
	if u.shiftedAt != k {
		return 0
	}
	return u.shifted
}

// otherOf returns what stands in the place of slot k, which differs.
func (u *unit) otherOf(k int) *item {
	i, ok := slices.BinarySearchFunc(u.others, k, func(o other, k int) int { return o.slot - k })
	if ok {
		return &u.others[i].item
	}
	panic(fmt.Sprintf("verify: slot %d of entry %v differs from nothing", k, u.entry.Source))
}
