// Package ledger keeps the double-entry books that prove a copy of Kafka
// topics, in one bbolt file a flow.
//
// A [Pair] is one source partition copied to one target partition, in one
// generation. Its books are one ordered list of entries; each [Entry] advances
// the source book, the target book, or both. So a hole, an overlap or an
// imbalance cannot be written down: [Ledger.Append] refuses an entry that does
// not start exactly where both books end, and the encoding has no room for one.
// Every offset lies in exactly one tile ([Tile]) that says what became of it.
//
// Beside the pairs a ledger remembers what a flow must know that lives for
// years: the topics it has seen ([SeenTopic]), those that it made, with their
// settings ([Ledger.MadeTopic]), what people told it to do ([Order]), and why a
// partition cannot go on ([Stop]).
//
// # What a ledger proves
//
// Up to the ends of the books, every source offset is on the target at the
// offset that the entry says, or is accounted for by name: a control record,
// data of an aborted transaction, compacted away, filtered, before the start,
// or, and these are bad for ever, lost or unexplained. A [Digest] stands for the
// content of each run of records. [Ledger.FindSource] and [Ledger.FindTarget]
// translate any offset exactly, in both directions, with both clusters away.
//
// What is bad stays so, but people can say that they know of it and accept it
// ([Ledger.Accept]), and a flow can note where its books may not hold for the keys
// of a compacted topic ([Ledger.SetDoubt]). Where a target has lost a tail that is
// copied again, the old generation is closed with a [Cut]: below it, its books go
// on to hold.
//
// # What it does not prove
//
// A ledger says what was acknowledged, not what the target still holds:
// retention, compaction and people change the target later, and only reading
// both clusters tells. Nor does it withstand somebody who wants to deceive: its
// checksums and digests are for accidents.
//
// # Durability
//
// Append queues. [Ledger.Commit], or [Ledger.CommitLoop] every 100 ms, writes
// everything queued in one transaction and returns after fsync; only then do
// readers see it. A crash loses at most what was queued, and never half of an
// entry. Where a commit fails so that nobody knows whether it is in the file,
// the ledger refuses to go on until it is opened again.
//
// # Damage
//
// A file is inspected before bbolt may touch it, every value carries a checksum
// that covers its place, counts and ends tell when a value has gone missing, and
// reads follow no pointer of the file blindly. What is damaged is a
// [*CorruptError]; the file stays as it is. So is a file that is deleted, replaced
// or cut while it is open for writing: nothing more is written, as nobody would
// find it again. [Ledger.Check] and [CheckFile] read
// everything and name every broken law.
//
// # One process at a time
//
// A ledger that is open for writing is locked for all others, also for reading.
// While it is open for reading nobody can write. Hold it for as short as
// possible, or work on a copy ([OpenCopy], [Ledger.Snapshot]).
//
// FORMAT.md describes the file.
package ledger
