// Package translate turns offsets of one cluster into offsets of the other.
//
// A committed offset C is the next record that a consumer reads. It translates
// to X(C): the target offset of the first copied record with source offset C or
// above, and where there is none the end of the target book. A consumer that
// goes on at X(C) misses no copied record and reads none twice. Reverse is the
// same from the target's side.
//
// This is exact at every offset, also in transaction markers, aborted and
// compacted ranges, and at the end, because the ledger's list of entries
// accounts for every offset of both sides. Nothing is interpolated, nothing is
// rounded, and no cluster is asked: a ledger file is enough, or a snapshot. The
// offset before an offset is never used, as it may not exist.
//
// Where an answer is not all of the truth its [Status] says so: the books do
// not reach the offset, the scope starts after it, or records at it were lost
// before they could be copied. An offset of a closed generation has no answer,
// but below the cut of one that was closed with one, where the next goes on from
// it.
//
// What the books do not know: whether the target still holds the record. Its
// retention may have removed it, which only the target can tell; [CheckTarget]
// asks it.
//
// An answer is as of the last commit of the ledger when it was asked for. It
// changes later in one way only: what was at or beyond the end may become
// exact, at the same target offset or a higher one.
//
// What groups have committed on one cluster is read with [ReadGroups], and
// committed on the other by a [Carry]: under the rules of package groups, and
// only where the answer is exact or inexact answers were asked for. Everything
// else here needs no cluster.
//
// What a group committed before its log was cut is an offset of another log than
// there is: [Index.Translate] knows it by the leader epoch of the commit, or by what
// the ledger keeps of the group. Everything else here takes an offset for one of the
// log that there is.
//
// The package also reads and writes offsets in the form of Kafka's consumer
// groups tool: see [ResetPlan], and [Sheet] for millions of them.
//
// # From a program of your own
//
// Open the file with ledger.Open, read only, make an [Index], and ask
// [Index.Forward] or [Index.Reverse] about as many offsets as there are. While a
// copier holds the file it cannot be opened: take a snapshot then (apograph
// ledger snapshot), and open that with ledger.OpenCopy.
package translate
