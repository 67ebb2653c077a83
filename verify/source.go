package verify

import (
	"apograph/ledger"
)

// A slotState says what the source holds at the offset of a copied record.
type slotState uint8

const (
	sourceHas     slotState = iota
	sourceExpired           // below its log start
	sourceCleaned           // nothing there, and the topic compacts
	sourceGone              // nothing there, or no record, and nothing accounts for it
	sourceBroken            // it could not be read there
	sourceMoving            // its log was cut while it was read
	sourceUnread            // this mode does not read it
)

// reason returns why a record without a source counts as not verified.
func (s slotState) reason() Reason {
	switch s {
	case sourceExpired:
		return Retention
	case sourceCleaned:
		return Compaction
	case sourceBroken:
		return Unreadable
	case sourceMoving:
		return Moving
	default:
		return NotRead
	}
}

// A sourceView compares the source's log with the book, offset by offset, and
// says what the copied records should be on the target. In mode target it reads
// nothing.
type sourceView struct {
	log   *stream // nil: not read
	found *tallies
	cut   bool // it is not read to the end of the books

	end      int64 // high watermark; where the books reach beyond it, the log was cut
	compacts bool
	renamed  string // says that the topic is another one, for details; else empty
	policy   string // says of a topic that does not compact how that is known, for details

	superseded superseding
}

// at returns the findings for what has to do with a source offset.
func (v *sourceView) at(source int64) *findings { return v.found.of(source).findings }

// slot says what the source holds at offset, which the book calls copied.
// Offsets are asked for in order.
func (v *sourceView) slot(offset int64, replaced bool, target int64) (uint64, slotState) {
	if v.log == nil {
		return 0, sourceUnread
	}
	i := v.log.peek()
	for i != nil && i.offset < offset { // cannot be: every offset is asked for
		v.log.next()
		i = v.log.peek()
	}
	if i == nil || i.offset > offset {
		return 0, v.absent(offset, target)
	}
	kind := i.kind
	hash := i.hashAs(replaced)
	if kind == dataRecord {
		v.superseded.copied(i)
	}
	v.log.next()
	if kind != dataRecord {
		v.gone(one(offset), one(target), "the source has "+kind.String()+" where a record was copied")
		return 0, sourceGone
	}
	return hash, sourceHas
}

// absent says why the source has no record at an offset.
func (v *sourceView) absent(offset, target int64) slotState {
	switch broken := v.log.broken(); {
	case offset < v.log.start:
		return sourceExpired
	case broken != nil && offset >= broken.offset && broken.reason == Moving:
		return sourceMoving
	case broken != nil && offset >= broken.offset:
		return sourceBroken
	case offset >= v.end:
		v.gone(one(offset), one(target), "the source ends before this offset: only the target has the record")
		return sourceGone
	case v.compacts:
		return sourceCleaned
	case v.log.undecodable(offset):
		return sourceBroken
	default:
		v.gone(one(offset), one(target), "a consumer of the source gets no record there any more, and "+v.policy)
		return sourceGone
	}
}

func (v *sourceView) gone(source, target *Range, detail string) {
	v.at(source.Start).fault(Diverged, source, target, "%s%s", detail, v.renamed)
}

// pass compares the source with a tile that is not copied.
func (v *sourceView) pass(tile ledger.Tile, r ledger.Range, target int64) {
	if v.log == nil {
		return
	}
	for {
		i := v.log.peek()
		if i == nil || i.offset >= r.End {
			v.beyond(r, target)
			return
		}
		if i.offset >= r.Start {
			v.observed(tile, i, target)
		}
		v.log.next()
	}
}

// beyond reports what of a tile that is not copied lies where the source has no
// offsets any more: a log that does not reach so far was cut.
func (v *sourceView) beyond(r ledger.Range, target int64) {
	if r.Start = max(r.Start, v.end); r.Start < r.End && v.log.broken() == nil {
		v.gone(rangeOf(r), at(target), "the source ends before this offset, and the book says what it held there")
	}
}

// observed judges an item that stands where the book has another tile than
// copied. Nothing at all may stand anywhere: cleaners remove aborted records
// and, in time, markers.
func (v *sourceView) observed(tile ledger.Tile, i *item, target int64) {
	switch {
	case tile == ledger.Filtered || tile == ledger.BeforeStart: // left out on purpose, whatever it is
	case i.kind == dataRecord && tile == ledger.Compacted && v.compacts && i.keyed:
		v.superseded.found(i, target)
	case i.kind == dataRecord:
		v.at(i.offset).fault(Missing, one(i.offset), at(target), "committed on the source, and the book calls it %s%s", tile, v.renamed)
	case i.kind == markerOf(tile):
	case tile == ledger.Compacted && v.compacts: // on another replica, whose cleaner has not been there
	case tile.Bad(): // reported as such
	default:
		v.gone(one(i.offset), at(target), "the source has "+i.kind.String()+" and the book calls it "+tile.String())
	}
}

// markerOf returns the kind of control record that a tile stands for; a data
// record for those that stand for none.
func markerOf(tile ledger.Tile) itemKind {
	switch tile {
	case ledger.CommitMarker:
		return commitMarker
	case ledger.AbortMarker:
		return abortMarker
	default:
		return dataRecord
	}
}

// next returns the next record behind the books, nil if there is none: what a
// copier would copy next.
func (v *sourceView) next() *item {
	if v.log == nil {
		return nil
	}
	for i := v.log.peek(); i != nil; i = v.log.peek() {
		if i.kind == dataRecord {
			return i
		}
		v.log.next()
	}
	return nil
}

// finish settles what had to wait for the end of the source.
func (v *sourceView) finish() {
	if v.log == nil {
		return
	}
	for len(v.superseded.open) > 0 {
		i := v.log.peek()
		if i == nil {
			break
		}
		v.superseded.copied(i)
		v.log.next()
	}
	v.superseded.settle(v.at, v.cut || v.log.broken() != nil)
}

// A superseding settles records that stand on the source where the book says
// compacted. Each replica cleans its own log (LogCleaner), so a record that was
// gone when the copier read one leader may be there on the next. That is in
// order if a later record has the same key: the cleaner keeps the last one.
type superseding struct {
	open map[uint64][]resurrected // by hash of the key
	kept int                      // in open
	full *Range                   // what had no room any more
}

// A resurrected is a record that the book calls compacted.
type resurrected struct {
	source, target int64
	tombstone      bool
}

// maxResurrected bounds the records that wait for a later one.
const maxResurrected = 1 << 16

func (s *superseding) found(i *item, target int64) {
	s.copied(i)
	if s.kept >= maxResurrected {
		if s.full == nil {
			s.full = at(i.offset)
		}
		s.full.End = i.offset + 1
		return
	}
	if s.open == nil {
		s.open = map[uint64][]resurrected{}
	}
	s.open[i.key] = append(s.open[i.key], resurrected{i.offset, target, i.tombstone})
	s.kept++
}

// copied takes a later record into account.
func (s *superseding) copied(i *item) {
	if s.kept > 0 && i.keyed && i.kind == dataRecord {
		s.kept -= len(s.open[i.key])
		delete(s.open, i.key)
	}
}

// settle reports what no later record accounts for. If the source could not be
// read to its end, that cannot be told.
func (s *superseding) settle(to func(source int64) *findings, cut bool) {
	for _, records := range s.open {
		for _, r := range records {
			f := to(r.source)
			switch {
			case cut:
				f.note(StaleKeysPossible, NoReason, one(r.source), at(r.target),
					"the book calls it compacted, the source holds it, and could not be read further to find a later record of its key")
			case r.tombstone:
				f.note(StaleKeysPossible, NoReason, one(r.source), at(r.target),
					"a tombstone that was compacted away before it was copied: the target may still show its key")
			default:
				f.fault(Missing, one(r.source), at(r.target), "committed on the source and the newest of its key, and the book calls it compacted")
			}
		}
	}
	if s.full != nil {
		to(s.full.Start).note(StaleKeysPossible, NoReason, s.full, nil, "the book calls these compacted and the source holds them: too many to look for later records of their keys")
	}
}
