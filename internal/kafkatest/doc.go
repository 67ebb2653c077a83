// Package kafkatest gives tests, and the demo, Kafka clusters to work on: fake
// ones in the process, which can fail in every way that matters and be spoiled
// behind everyone's back, and real ones. It has an oracle that knows what is in
// them.
//
//   - [StartPair], [NewPair]: a fake source and target ([Cluster], made of
//     kfake), on the loopback interface or on a virtual network inside a
//     synctest bubble, in memory or on disk.
//   - [Load]: mixed data from a seed. [Producer], [Batch] and [Cluster.EditLog]:
//     exactly the data that a test needs, also what no producer can write.
//   - [Cluster.Fault], [Cluster.HoldHighWatermark], [Cluster.MoveLeader]: faults
//     before and after a request has taken effect.
//   - [Sabotage]: one record of a stopped copy changed, lost, doubled, moved.
//   - [Compare], [Bootstrap.SourceTiles], [CompareSourceBook]: the oracle. It
//     reads with kgo's code and shares none with the product.
//   - StartKafka (build tag kafka): real brokers, Java clients, the real cleaner.
//
// The package does not import testing; what needs a test takes a [TB].
//
// # Where kfake differs from brokers
//
// Checked against kfake of 2026-09-18, whose code is the reference; a test holds
// each point that can be seen from outside, so that it is noticed when kfake
// changes.
//
// Corrected for every client of a [Cluster]:
//
//   - A refused produce is answered with base offset 0; brokers say -1, which is
//     how "not appended" is told from "appended, then failed".
//   - The answer to a duplicate has no LogAppendTime; brokers give the first
//     append's largest timestamp. The log start offset of that answer stays -1.
//   - Batches that are not one dense batch from offset 0 are refused with
//     CORRUPT_MESSAGE; brokers say INVALID_RECORD.
//   - Payloads are neither decoded nor checked. [Cluster.BadBatches] lists what is
//     wrong in produced batches and fails the test; what brokers refuse is
//     refused.
//   - A fetch that its MaxBytes cuts short lacks the aborted transactions of the
//     partition that is cut, so consumers get aborted records. MaxBytes is
//     therefore lifted for read_committed fetches: only partition limits count, and
//     a test of bounded memory must not rely on MaxBytes.
//   - OffsetForLeaderEpoch does not know the end of an epoch until something has
//     been appended in a later one, and says 0 where the log has been emptied;
//     brokers know it at once.
//   - Fetch ignores LastFetchedEpoch; brokers answer with the diverging epoch when
//     their log has been cut below what the client has fetched (KIP-595).
//   - A partition whose records are all deleted or cut off begins again at offset 0
//     and leader epoch 0 after a restart with DataDir. [Cluster.Start] keeps both.
//   - Fetch sessions outlive a restart with DataDir, without the ids of their
//     topics; brokers forget them. [Cluster.Start] drops them.
//   - Leaders are chosen at random, unseeded. [Cluster.CreateTopic] spreads them in
//     order; topics that clients create keep the random choice. Topic ids and the
//     ids of idempotent producers are random, too.
//
// To be had with a helper:
//
//   - The high watermark is always the log end: [Cluster.HoldHighWatermark].
//   - Producer state never expires: [Cluster.ForgetProducers]. It also survives a
//     restart whole, while a restarted broker knows only the newest batch of each
//     producer (an older duplicate then gives OUT_OF_ORDER_SEQUENCE_NUMBER).
//   - Compact moves the log start, shrinks batches, leaves no empty ones and sets
//     no delete horizon: [Cleaner] and [Cluster.Clean] do as brokers do.
//   - message.timestamp.type is ignored, and a batch produced with the
//     LogAppendTime bit is stored with a wrong checksum: [Cluster.StampAppendTime].
//   - Logs are never truncated and records never change: [Cluster.LoseTail],
//     [Cluster.EditLog].
//   - No request outlives its connection for longer than a delay: [Stray].
//   - A network never fails, and of the codes that are answered after an append
//     there are two: [Cluster.Fault].
//
// Not to be had; test on real brokers:
//
//   - Sequence numbers wrap modulo 2^31-1; brokers go from 2^31-1 to 0.
//   - A producer's epoch is kept once for the cluster; brokers keep it for each
//     partition, so that raising it in one does not fence the producer in another.
//   - From Kafka 4.5 on (KAFKA-15591) a partition that was never written takes only
//     sequence 0 from an unknown producer. kfake does so now, released brokers do
//     not.
//   - A fetch session cannot be told to forget a partition, by id, whose topic has
//     been deleted: each answer names it again, with an error, and so does not wait.
//   - WriteTxnMarkers does not check epochs. DescribeProducers lists open
//     transactions only.
//   - CreateTopics takes any setting, known or not, and most have no effect:
//     timestamp limits, min.insync.replicas, unclean elections. Records without a
//     key are stored in compacted topics, and DeleteRecords works on them.
//   - Replicas are only a number: nothing is copied, acks=all waits for nobody.
//
// Outside kfake: a kgo client that has read zstd inside a synctest bubble ends
// the process when it is collected; see [Decompressor].
package kafkatest
