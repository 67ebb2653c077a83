package kafkatest_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"apograph/internal/kafkatest"
)

// edit changes the log of a topic's partition 0 and restarts the cluster.
func edit(t *testing.T, c *kafkatest.Cluster, topic string, change func(*kafkatest.Log)) {
	t.Helper()
	must(t, c.EditLog(topic, 0, func(l *kafkatest.Log) error {
		change(l)
		return nil
	}))
}

func encode(t *testing.T, batches ...kafkatest.Batch) [][]byte {
	t.Helper()
	var raw [][]byte
	for _, b := range batches {
		one, err := b.Encode()
		must(t, err)
		raw = append(raw, one)
	}
	return raw
}

func record(value string, timestamp int64) kafkatest.BatchRecord {
	return kafkatest.BatchRecord{Timestamp: timestamp, Key: []byte(value), Value: []byte(value)}
}

// tilesOf returns the source tiles of a topic's partition 0 as text.
func tilesOf(t *testing.T, c *kafkatest.Cluster, topic string) []string {
	t.Helper()
	var all []string
	for _, tile := range c.MustSourceTiles(t, topic, 0) {
		all = append(all, fmt.Sprintf("%v [%d, %d)", tile.Fate, tile.Start, tile.End))
	}
	return all
}

// TestOddLogs puts into a log what no producer can write:
//
//	0-4 dense, 5-9 an empty batch, 10-14 sparse (11 and 13), gap 15-19,
//	20-21 with the delete horizon, 22-23 with append time, 24-26 in each
//	of the other codecs
func TestOddLogs(t *testing.T) {
	pair := diskPair(t)
	ctx := testContext(t)
	c := pair.Source
	must(t, c.CreateTopic(ctx, "odd", 1, nil))

	empty := kafkatest.NewBatch(5)
	empty.LastOffsetDelta = 4
	sparse := kafkatest.NewBatch(10, record("11", 5), record("13", 6))
	sparse.Records[0].OffsetDelta, sparse.Records[1].OffsetDelta, sparse.LastOffsetDelta = 1, 3, 4
	horizon := kafkatest.NewBatch(20, record("20", 1000), kafkatest.BatchRecord{Timestamp: 1001, Key: []byte("21")})
	horizon.Attributes |= kafkatest.AttrDeleteHorizon
	horizon.BaseTimestamp = 4_000_000_000_000
	appended := kafkatest.NewBatch(22, record("22", 1), record("23", 2))
	appended.Attributes |= kafkatest.AttrLogAppendTime
	appended.MaxTimestamp = 9000
	batches := []kafkatest.Batch{kafkatest.NewBatch(0, record("0", 1), record("1", 2), record("2", 3), record("3", 4), record("4", 5)), empty, sparse, horizon, appended}
	for i, codec := range []kafkatest.Codec{kafkatest.Gzip, kafkatest.Snappy, kafkatest.LZ4, kafkatest.Zstd} {
		b := kafkatest.NewBatch(24+int64(i), record(codec.String(), int64(i)))
		b.Codec = codec
		batches = append(batches, b)
	}
	edit(t, c, "odd", func(l *kafkatest.Log) { l.Batches = encode(t, batches...) })

	records, err := c.ReadCommitted(ctx, "odd", 0)
	must(t, err)
	equal(t, "records", values(records), []string{
		"0=0", "1=1", "2=2", "3=3", "4=4", "11=11", "13=13", "20=20", "21=", "22=22", "23=23",
		"24=gzip", "25=snappy", "26=lz4", "27=zstd",
	})
	for _, r := range records {
		if want := map[int64]int64{20: 1000, 21: 1001, 22: 9000, 23: 9000, 11: 5}[r.Offset]; want != 0 && r.Timestamp != want {
			t.Errorf("time at %d is %d, want %d", r.Offset, r.Timestamp, want)
		}
	}
	equal(t, "tiles", tilesOf(t, c, "odd"), []string{
		"copied [0, 5)", "absent [5, 11)", "copied [11, 12)", "absent [12, 13)", "copied [13, 14)", "absent [14, 20)", "copied [20, 28)",
	})

	edit(t, c, "odd", func(l *kafkatest.Log) { l.Start = 3 })
	equal(t, "tiles from the middle of a batch", tilesOf(t, c, "odd")[:3], []string{"below_start [0, 3)", "copied [3, 5)", "absent [5, 11)"})
	must(t, c.Append(ctx, kafkatest.None, numbered("odd", 1)...))
	bounds, err := c.ReadBounds(ctx, "odd", 0)
	must(t, err)
	if bounds != (kafkatest.Bounds{LogStart: 3, LastStable: 29, HighWatermark: 29}) {
		t.Errorf("bounds %+v after one more record", bounds)
	}
}

// TestRewrittenTransactions builds D01 of the worked cases, an interleaved
// abort, and an open transaction.
func TestRewrittenTransactions(t *testing.T) {
	pair := diskPair(t)
	ctx := testContext(t)
	c := pair.Source
	must(t, c.CreateTopic(ctx, "tx", 1, nil))
	data := func(base, producer int64, names ...string) kafkatest.Batch {
		var records []kafkatest.BatchRecord
		for _, name := range names {
			records = append(records, record(name, 1))
		}
		b := kafkatest.NewBatch(base, records...)
		if producer >= 0 {
			b.ProducerID, b.ProducerEpoch, b.BaseSequence, b.Attributes = producer, 0, 0, kafkatest.AttrTransactional
		}
		return b
	}
	edit(t, c, "tx", func(l *kafkatest.Log) {
		l.Batches = encode(t,
			data(0, -1, "0", "1"),
			data(2, 70, "2", "3"),
			data(4, 71, "4"),
			data(5, -1, "5"),
			kafkatest.Marker(6, 70, 0, false, 1),
			kafkatest.Marker(7, 71, 0, true, 1),
			data(8, 72, "8"),
			data(9, -1, "9"),
		)
	})
	equal(t, "tiles", tilesOf(t, c, "tx"), []string{
		"copied [0, 2)", "aborted [2, 4)", "copied [4, 6)", "abort_marker [6, 7)", "commit_marker [7, 8)", "undecided [8, 10)",
	})
	records, err := c.ReadUncommitted(ctx, "tx", 0)
	must(t, err)
	if len(records) != 8 {
		t.Errorf("read_uncommitted returns %v", values(records))
	}
}

// TestTransactionsFollowTheLog cuts off all that a transaction has in a log. The
// next one of the producer is not taken for part of it when it is aborted.
func TestTransactionsFollowTheLog(t *testing.T) {
	pair := diskPair(t)
	ctx := testContext(t)
	c := pair.Source
	must(t, c.CreateTopic(ctx, "a", 1, nil))
	for range 2 {
		must(t, c.Append(ctx, kafkatest.None, numbered("a", 2)...))
	}
	lost, err := c.TransactionalProducer("tx", kafkatest.None)
	must(t, err)
	must(t, lost.Begin())
	must(t, lost.Append(ctx, numbered("a", 3)...))
	lost.Close()
	must(t, c.LoseTail("a", 0, 2))
	bounds, err := c.ReadBounds(ctx, "a", 0)
	must(t, err)
	if bounds.LastStable != 2 || bounds.HighWatermark != 2 {
		t.Errorf("bounds %+v after the cut", bounds)
	}
	next, err := c.TransactionalProducer("tx", kafkatest.None)
	must(t, err)
	defer next.Close()
	must(t, next.Begin())
	for range 4 {
		must(t, next.Append(ctx, numbered("a", 1)...))
	}
	must(t, next.End(ctx, true))
	must(t, c.WaitDecided(ctx, "a"))
	records, err := c.ReadCommitted(ctx, "a", 0)
	must(t, err)
	if len(records) != 6 {
		t.Errorf("read_committed returns %v", values(records))
	}
}

// TestProducerStateFollowsTheLog cuts a log and checks that the fake broker then
// knows the producer as a real one would: what is left is a duplicate, what is
// cut off can be appended again.
func TestProducerStateFollowsTheLog(t *testing.T) {
	pair := diskPair(t)
	ctx := testContext(t)
	c := pair.Target
	must(t, c.CreateTopic(ctx, "a", 1, nil))
	batch := func(sequence int32) []byte {
		b := kafkatest.NewBatch(0, record(fmt.Sprint(sequence), 5))
		b.ProducerID, b.ProducerEpoch, b.BaseSequence, b.LeaderEpoch = 4711, 0, sequence, -1
		return encode(t, b)[0]
	}
	for sequence := range int32(3) {
		base, err := c.AppendBatch(ctx, "a", 0, batch(sequence))
		must(t, err)
		if base != int64(sequence) {
			t.Fatalf("batch %d is at %d", sequence, base)
		}
	}
	edit(t, c, "a", func(l *kafkatest.Log) { l.Batches = l.Batches[:2] })
	base, err := c.AppendBatch(ctx, "a", 0, batch(1))
	if must(t, err); base != 1 {
		t.Errorf("the duplicate is answered with base offset %d", base)
	}
	base, err = c.AppendBatch(ctx, "a", 0, batch(2))
	if must(t, err); base != 2 {
		t.Errorf("the batch that was cut off is at %d", base)
	}
	must(t, c.ForgetProducers("a", 0))
	base, err = c.AppendBatch(ctx, "a", 0, batch(2))
	if must(t, err); base != 3 {
		t.Errorf("a forgotten producer's batch is at %d, want a second copy at 3", base)
	}
}

func TestEditLogRefuses(t *testing.T) {
	pair := diskPair(t)
	ctx := testContext(t)
	c := pair.Source
	must(t, c.CreateTopic(ctx, "a", 1, nil))
	must(t, c.Append(ctx, kafkatest.None, numbered("a", 2)...))
	boom := errors.New("boom")
	for name, change := range map[string]func(*kafkatest.Log) error{
		"an error of edit":     func(*kafkatest.Log) error { return boom },
		"overlapping batches":  func(l *kafkatest.Log) error { l.Batches = append(l.Batches, l.Batches[0]); return nil },
		"half a batch":         func(l *kafkatest.Log) error { l.Batches[0] = l.Batches[0][:70]; return nil },
		"two batches as one":   func(l *kafkatest.Log) error { l.Batches[0] = append(l.Batches[0], l.Batches[0]...); return nil },
		"log start behind end": func(l *kafkatest.Log) error { l.Start = 3; return nil },
	} {
		if err := c.EditLog("a", 0, change); err == nil {
			t.Errorf("%s: no error", name)
		}
		records, err := c.ReadCommitted(ctx, "a", 0)
		must(t, err)
		equal(t, name, values(records), []string{"0=r0", "1=r1"})
	}
	if err := c.EditLog("unknown", 0, func(*kafkatest.Log) error { return nil }); err == nil {
		t.Error("an unknown topic can be edited")
	}
}

// TestCleaner compacts a log and checks each rule in Cleaner.Clean's comment.
//
//	0 k=a       keys a, b, c; 5 is a tombstone of b
//	1 k=b       10-11 an aborted transaction of producer 9, marker at 12
//	2 k=c       13 the newest record of producer 8
//	3 k=a v2    14 the active batch
//	4 no key
//	5 b null
//	6-9 one batch of superseded c
func TestCleaner(t *testing.T) {
	keyed := func(key, value string) kafkatest.BatchRecord {
		return kafkatest.BatchRecord{Timestamp: 1000, Key: []byte(key), Value: []byte(value)}
	}
	first := kafkatest.NewBatch(0, keyed("a", "0"), keyed("b", "1"), keyed("c", "2"), keyed("a", "3"))
	first.Codec = kafkatest.LZ4
	second := kafkatest.NewBatch(4, kafkatest.BatchRecord{Timestamp: 5, Value: []byte("4")}, kafkatest.BatchRecord{Timestamp: 77, Key: []byte("b")})
	third := kafkatest.NewBatch(6, keyed("c", "6"), keyed("c", "7"), keyed("c", "8"), keyed("c", "9"))
	aborted := kafkatest.NewBatch(10, keyed("a", "10"), keyed("x", "11"))
	aborted.ProducerID, aborted.ProducerEpoch, aborted.BaseSequence, aborted.Attributes = 9, 0, 0, kafkatest.AttrTransactional
	superseded := kafkatest.NewBatch(13, keyed("d", "13"))
	superseded.ProducerID, superseded.ProducerEpoch, superseded.BaseSequence = 8, 0, 40
	gone := kafkatest.NewBatch(14, keyed("d", "14"))
	newest := kafkatest.NewBatch(15, keyed("d", "15"), keyed("c", "16"))
	active := kafkatest.NewBatch(17, keyed("a", "17"))
	now := time.UnixMilli(1_000_000)
	cleaner := kafkatest.Cleaner{Now: now, DeleteRetention: time.Minute}
	raw := encode(t, first, second, third, aborted, kafkatest.Marker(12, 9, 0, false, 500), superseded, gone, newest, active)
	clean, err := cleaner.Clean(raw)
	must(t, err)

	var got []string
	for _, one := range clean {
		b, err := kafkatest.DecodeBatch(one)
		must(t, err)
		line := fmt.Sprintf("%d+%d %v attrs %#x base %d:", b.BaseOffset, b.LastOffsetDelta, b.Codec, b.Attributes, b.BaseTimestamp)
		for _, r := range b.Records {
			line += fmt.Sprintf(" %d=%s@%d", b.BaseOffset+int64(r.OffsetDelta), r.Value, r.Timestamp)
		}
		got = append(got, line)
	}
	equal(t, "cleaned", got, []string{
		"0+3 lz4 attrs 0x0 base 1000: 3=3@1000",
		"4+1 none attrs 0x40 base 1060000: 5=@77",
		"10+1 none attrs 0x10 base -1:",
		"12+0 none attrs 0x30 base 500: 12=\x00\x00\x00\x00\x00\x00@500",
		"13+0 none attrs 0x0 base -1:",
		"15+1 none attrs 0x0 base 1000: 15=15@1000 16=16@1000",
		"17+0 none attrs 0x0 base 1000: 17=17@1000",
	})

	// Later the tombstone goes. The batch at 10 is still the newest of its
	// producer, so that its marker stays. Once that batch is gone, the marker gets
	// a horizon of its own.
	for _, step := range []struct {
		without int // batches that are gone for another reason
		want    int // batches
	}{{0, 6}, {2, 5}, {0, 4}} {
		cleaner.Now = cleaner.Now.Add(time.Hour)
		clean, err = cleaner.Clean(append(clean[:1:1], clean[max(step.without, 1):]...))
		must(t, err)
		if len(clean) != step.want {
			t.Errorf("at %v: %d batches, want %d", cleaner.Now, len(clean), step.want)
		}
	}
	cleanedClusterAgrees(t, raw)
}

// cleanedClusterAgrees cleans inside a cluster and reads it.
func cleanedClusterAgrees(t *testing.T, raw [][]byte) {
	t.Helper()
	pair := diskPair(t)
	ctx := context.WithoutCancel(testContext(t))
	must(t, pair.Source.CreateTopic(ctx, "compacted", 1, map[string]string{"cleanup.policy": "compact"}))
	edit(t, pair.Source, "compacted", func(l *kafkatest.Log) { l.Batches = raw })
	must(t, pair.Source.Clean("compacted", 0, kafkatest.Cleaner{Now: time.UnixMilli(1_000_000), DeleteRetention: time.Minute}))
	equal(t, "tiles", tilesOf(t, pair.Source, "compacted"), []string{
		"absent [0, 3)", "copied [3, 4)", "absent [4, 5)", "copied [5, 6)", "absent [6, 12)", "abort_marker [12, 13)",
		"absent [13, 15)", "copied [15, 18)",
	})
}
