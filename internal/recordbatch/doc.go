// Package recordbatch reads, checks, patches and writes Kafka record batches of
// magic 2, the unit in which records travel and are stored since Kafka 0.11.
//
// A batch is a header of [HeaderSize] bytes and a body of records; the body may
// be compressed. The format is the one of org.apache.kafka.common.record,
// classes DefaultRecordBatch and DefaultRecord (KIP-98).
//
// The way of a fetched batch is: [Peek] finds where it ends, [Parse] checks and
// decodes its header, [CheckCRC] its checksum, [Decoder] gives its body and
// [Walker] its records. Then either [Patch] makes it a batch of our own producer
// in place, or a [Builder] writes its records into a new one.
//
// # What it guarantees
//
// Every function that takes bytes takes hostile ones: it returns an error or a
// result that is consistent with the bytes, it does not panic, and it needs no
// more memory than its documented bound. Reading and patching do not allocate in
// steady state, except for gzip.
//
// After a complete walk of a batch through [Walker.ResetBatch] every byte of the
// body belongs to exactly one of exactly Count records, whose offsets rise
// strictly and lie within the header's range.
//
// # What it does not
//
// It does not read magic 0 and 1, beyond telling their size. It does not judge
// timestamps, producer ids or sequences, and does not know what came before: gaps
// and overlaps between batches are the caller's business.
//
// Where Kafka's Java client and the format description differ, the Java client
// decides, because brokers validate with it; each such place says so. The
// exception is what proves nothing: checksums, sizes and ends that a payload
// carries are enforced even where the Java client skips them, and numbers that it
// would cut to fit are refused.
//
// Nothing here starts a goroutine. Types are not safe for concurrent use unless
// they say so.
package recordbatch
