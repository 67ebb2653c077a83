// Package verify reads what a copy consists of again and compares it with the
// flow's ledger.
//
// It shares with the copier the ledger's format and the canonical record, and
// no read path: both logs are read by the ordinary kgo consumer with its
// ordinary decoder, as any application would read them, so that a bug in the
// copier's way of reading cannot hide the loss that it caused. It writes to
// neither cluster.
//
// # Three answers
//
// Each copied record ends as one of three: it is equal on both sides; it is a
// fault (missing, changed, reordered); or it could not be verified, for a reason
// that is named. What was not looked at is never counted as fine, and what could
// not be looked at is never called a loss. The counts of a [Report] add up, and
// [Run] checks that they do before it returns.
//
// # Modes
//
//   - [ModeBooks] reads the ledger alone: is every source offset accounted for, up
//     to the end of the source that the copier saw last, and is no tile bad?
//   - [ModeTarget] reads the target as well and compares it with the digests in
//     the ledger. The source may be gone. A fault is located as exactly as a
//     digest allows, which is often one entry.
//   - [ModeFull] reads both sides and compares record by record. Faults are at
//     exact offsets; the digests say which side has changed since the copy.
//
// # What is compared
//
// The expected sequence of a target partition follows from the ledger's entries
// and, in mode full, from the source's records. The sequence that the target
// holds is aligned with it, so that one lost record is one finding and not a
// difference at every offset behind it. A record that is equal but does not
// stand at its booked offset counts as equal; the finding that moved it says by
// how much translated offsets are wrong from there on.
//
// # Generations and acceptances
//
// A generation that has ended is judged by its books alone: it is no part of what
// has to be proven. One that was closed with a cut is: it is read up to there, as
// the target must still hold that, and the next one goes on from there. In mode
// target, the entry in which the cut lies cannot be proven. One that ended because
// the source's log was cut, while both topics stayed the same, is read up to where
// the next one begins, and counted to its end.
//
// A bad tile, or a doubt of the books, that somebody has accepted is a finding
// all the same. It is no fault and leaves nothing open.
//
// # What it does not prove
//
// Records that retention or compaction has removed on either side cannot be
// compared; they are not verified. Topics that the source does not show, for
// want of the right to describe them, are not missed. Where a broker answers with
// nothing and no error, as one does whose remote storage is late, nothing follows
// from it unless a cleaner may have been there and all of the log is on disk. A
// digest withstands accidents, not somebody who chooses records to deceive it.
// What happens to a log behind the ends that it had when verification began is
// not looked at. A change of a record's time by a
// multiple of 2^58 ms is not seen, since kgo keeps times in nanoseconds.
//
// # A part at a time
//
// Books are cut into blocks of 16 MiB, or 65536 offsets if that is less, which
// stay where they are while books grow. A [Config.Sample] reads every n-th block.
// A part of a partition is read together with some hundred records around it, so
// that what is wrong at its borders is found by one part, and found right. What
// only the whole partition can tell, a part cannot: a record that stands in
// another part's place is missing here and extra there, a second copy far from
// the first is extra, and where something has moved by more records than are read
// around a part, those that stand outside of it are called missing. Each is a
// fault.
//
// With [Config.Resume] a part that an earlier run has proven is not read again. A
// proof is about the entries of a pair, by their digest, in one mode, and holds as
// long as the ledger has these entries, both topics are the same ones, and no
// log ends, nor the target's begins, inside of it. The report says from when the
// oldest one is; what has happened to those records since is not known, other
// than by the ends of the logs. [StatePath] says where proofs are kept; who can
// write there can make a copy look proven.
//
// # A copier at work
//
// The end that the source has when verification begins is the end of what is
// asked for. While a copier is at work, fresh copies of its books are asked for
// until they get there ([Config.Books]). What the target holds behind them is not
// judged.
//
// # Memory
//
// Each of [Config.Parallel] workers reads one partition at a time, both sides as
// streams with bounded buffers, or several that are small. What is fetched is as
// much as decodes into some 48 MiB for all of them together, or a batch each if
// that is more, and records are decoded into memory that is used again once they
// are reduced to hashes. Nothing grows with the
// length of a partition or with the distance between the two sides, but a list of
// its blocks and proofs: about a hundred bytes for 16 MiB of it.
package verify
