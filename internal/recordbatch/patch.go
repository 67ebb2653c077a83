package recordbatch

import (
	"encoding/binary"
)

// Patch turns b, one whole batch that [Parse] accepted, into a batch that our
// producer can send, in place: base offset 0, leader epoch unknown, attributes
// reduced to the codec, and the given producer id, epoch and base sequence. The
// body, the timestamps, the count and the last offset delta stay as they are.
//
// Flags must go because a broker would store them: with the timestamp type set it
// keeps a wrong maximum timestamp, and it accepts a delete horizon that is not its
// own. The base timestamp stays even where the horizon flag was set, since the
// records' deltas are relative to it.
//
// The new checksum follows from the old one and from what changed in the header;
// the body is not read. So a batch that was damaged in memory after [CheckCRC],
// in its body or in its header, before or after Patch, has a wrong checksum, and
// the target's broker refuses it.
//
// The batch must be dense, and each of its offset deltas must have been walked: a
// broker stores an uncompressed batch with false deltas, and its consumers then
// lose records. Patch does not allocate.
func Patch(b []byte, producerID int64, epoch int16, sequence int32) {
	be := binary.BigEndian
	be.PutUint64(b[baseOffsetAt:], 0)
	be.PutUint32(b[leaderEpochAt:], ^uint32(0))

	// What Patch changes lies within this range, and the checksum's constants
	// cancel in the difference.
	changed := b[attributesAt:countAt]
	difference := checksum(changed)
	be.PutUint16(b[attributesAt:], be.Uint16(b[attributesAt:])&codecMask)
	be.PutUint64(b[producerIDAt:], uint64(producerID))
	be.PutUint16(b[producerEpochAt:], uint16(epoch))
	be.PutUint32(b[baseSequenceAt:], uint32(sequence))
	difference ^= checksum(changed)

	be.PutUint32(b[crcAt:], be.Uint32(b[crcAt:])^crcShift(difference, len(b)-countAt))
}
