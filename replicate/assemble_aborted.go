package replicate

import (
	"slices"

	"apograph/internal/recordbatch"
)

// noteAborted puts the records of an aborted batch, from an offset on, into the
// unit that has just accounted for them. A batch that cannot be read is noted as
// one without records: of what is never copied no more than its place is needed.
func (a *assembler) noteAborted(from int64, h recordbatch.Header, batch []byte) {
	u := a.join.unit
	if u == nil {
		if len(a.ready) == 0 {
			return
		}
		u = a.ready[len(a.ready)-1]
	}
	before := len(u.aborted)
	err := a.tools.each(batch, func(r *recordbatch.Record, timestamp int64) error {
		offset := h.BaseOffset + int64(r.OffsetDelta)
		timeless := a.timeless(timestamp)
		if timeless || a.timestampsReplaced {
			timestamp = 0
		}
		if hash, bytes := a.tools.hash(r, timestamp); offset >= from {
			u.aborted = append(u.aborted, recordInfo{offset, hash, bytes, timeless})
		}
		return nil
	})
	if err != nil {
		u.aborted = u.aborted[:before]
	}
}

// timeless reports whether a record without a time is one that MirrorMaker 2 has
// given the time at which it was copied (ConnectUtils.checkAndConvertTimestamp).
func (a *assembler) timeless(timestamp int64) bool { return a.byContent && timestamp == noTime }

// noTime is what stands for no time (RecordBatch.NO_TIMESTAMP).
const noTime = -1

// everyInfo returns the records of a unit, copied ones and aborted ones, in order
// of their offsets. copied is the index of each among the copied ones; -1: it was
// aborted.
func (u *unit) everyInfo(each func(r recordInfo, copied int)) {
	aborted := u.aborted
	for i, r := range u.infos {
		n, _ := slices.BinarySearchFunc(aborted, r.offset, func(x recordInfo, offset int64) int { return int(x.offset - offset) })
		for _, x := range aborted[:n] {
			each(x, -1)
		}
		aborted = aborted[n:]
		each(r, i)
	}
	for _, x := range aborted {
		each(x, -1)
	}
}
