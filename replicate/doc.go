// Package replicate copies the topics of one cluster to another and books what
// became of every source offset.
//
// [Run] copies until it is done or told to stop; [Start] and [Flow] are the same
// for a copier that is asked and told things while it runs; [MakePlan] says what
// a run would do.
//
// What it guarantees, as long as the target's acknowledged records stay:
//
//   - Every committed record of the source, from the start of the scope on, is on
//     the target once and in order, with its time, key, value and headers. What is
//     read is committed data only; control records and data of aborted transactions
//     are booked and never copied.
//   - Nothing is in the books that is not in the target's log below its high
//     watermark. Whatever a crash left there that is not in the books is found by
//     the next start, by producer id, sequence number and content.
//   - Each source offset is in exactly one tile, with its cause. What was gone
//     before it could be copied is lost, for ever and by name.
//   - A partition that cannot go on stops alone, with a [StopReason], and is tried
//     again with growing pauses. The others go on.
//   - Memory is bounded by [Config.MemoryBytes] and what batches grow to when they
//     are encoded anew, whatever the lag.
//
// What it does not: it does not watch the target's records after they were
// acknowledged; two copiers on one target partition are noticed, not supported;
// records that the source takes back after they were copied stay on the target.
//
// The way of the data and the rules that hold it together are in ARCHITECTURE.md.
package replicate
