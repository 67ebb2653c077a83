// Package mirror writes what the clients of MirrorMaker 2 and the consumer groups
// of a flow go by: offset syncs, checkpoints, heartbeats, and offsets committed
// for groups on the target.
//
// Each of these is a duty, which runs beside the copying and beside the others:
// one that fails says so once, tries again after growing pauses, and holds up
// nothing else. All that a duty says about offsets it has from entries of the
// ledger that are committed, so that what is written is true whatever crashes.
//
// # What it guarantees
//
// An offset sync is a record that was copied, with its offset on the target; so
// what a checkpoint task of MirrorMaker 2 makes of it is never past the record
// that a group is to go on with. The source offset of a partition's syncs falls only
// where what stood in the topic before is not true any more: a lower one has such
// a task forget all that it knew.
//
// A checkpoint is the exact translation of a committed offset, by the books. The
// same is committed for groups on the target: only where they have no members, never
// backwards unless asked, never beyond what is copied, and not for a group that is
// not where the flow left it: its owner has moved it. What the flow has committed is
// in the ledger, so that no restart forgets it.
//
// # What it does not
//
// Nothing here is needed for a copy to be exact. Kafka has no conditional commit: a
// group that somebody moves on the target at the very moment may be overwritten.
// A record may be written twice where it is not known whether the first time has
// had an effect: all topics are compacted, and say the same.
package mirror
