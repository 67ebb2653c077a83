package replicate

import "apograph/ledger"

// A unit is what is produced, acknowledged and booked as one: a record batch
// for the target with the ledger entry that it will become, or a source-only
// entry with nothing to send.
type unit struct {
	entry   ledger.Entry // Target is set by land
	records int32        // in batch; 0: nothing to send
	batch   []byte       // one whole record batch, dense, magic 2; patched when sent
	pin     *pin         // what batch aliases; released once booked
	buffer  *buffer      // what batch was written to, if that is to be used again
	flying  int          // sends without an answer

	declined bool  // the answer to the last send says that it is not in the log
	sequence int32 // given by the window
	stale    bool  // record times older than half the target's producer expiry
	recoded  bool  // encoded by us rather than passed through
	note     bool  // target offsets that are not ours

	generation int32 // of a note: the earlier one of the copy that wrote it; 0: somebody else did

	maxTimestamp int64        // of its records, ms
	infos        []recordInfo // one per record, where needed (tools.describe)
	aborted      []recordInfo // of aborted transactions, in its gaps; where needed (assembler.byContent)
}

// A recordInfo identifies one record of a unit.
type recordInfo struct {
	offset int64 // on the source
	hash   uint64
	bytes  int64 // canonical

	timeless bool // it has no time, -1, and hash is that of a record whose time is 0; see assembler.byContent
}

// addGap extends u by a source-only tile behind its end.
func (u *unit) addGap(tile ledger.Tile, r ledger.Range) {
	u.entry.Source.End = r.End
	gaps := u.entry.Gaps
	if n := len(gaps); n > 0 && gaps[n-1].Tile == tile && gaps[n-1].Range.End == r.Start {
		gaps[n-1].Range.End = r.End
		return
	}
	u.entry.Gaps = append(gaps, ledger.Gap{Tile: tile, Range: r})
}

// land sets where the unit's records stand on the target.
func (u *unit) land(target int64) {
	u.entry.Target = ledger.Range{Start: target, End: target + int64(u.records)}
}

// matches reports whether b is this unit's batch.
func (u *unit) matches(b tailBatch) bool {
	return b.ours && b.sequence == u.sequence && b.records == int64(u.records) && b.digest == u.entry.Digest
}

// part returns a unit for the records [from, to), which account for the
// source range [start, end). It has no batch. u.infos must be filled.
func (u *unit) part(start int64, from, to int, end int64) *unit {
	e := u.entry
	e.Source, e.Target = ledger.Range{Start: start, End: end}, ledger.Range{}
	e.Gaps, e.Digest, e.Bytes = nil, 0, 0
	for _, g := range u.entry.Gaps {
		if g.Range.Start >= start && g.Range.End <= end {
			e.Gaps = append(e.Gaps, g)
		}
	}
	for _, r := range u.infos[from:to] {
		e.Digest = e.Digest.Add(r.hash)
		e.Bytes += r.bytes
	}
	return &unit{entry: e, records: int32(to - from), infos: u.infos[from:to]}
}

// release gives back the memory that the unit holds. A buffer that a request
// may still be written from is left to the garbage collector.
func (u *unit) release() {
	u.pin.release()
	if u.buffer != nil && u.flying == 0 {
		u.buffer.giveBack()
	}
	u.pin, u.batch, u.buffer = nil, nil, nil
}
