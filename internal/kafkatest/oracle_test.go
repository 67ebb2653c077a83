package kafkatest_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"apograph/internal/kafkatest"
)

// copyTopic is the most naive copier there is: it takes what a kgo consumer
// gets, record by record. It is as independent of the oracle's reader as kgo
// allows.
func copyTopic(t *testing.T, pair *kafkatest.Pair, topic string) {
	t.Helper()
	ctx := testContext(t)
	consumer := pair.Source.NewClient(t, kgo.ConsumeTopics(topic), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	p, err := pair.Target.Producer(kafkatest.None)
	must(t, err)
	defer p.Close()
	for left := committedRecords(t, pair.Source, topic); left > 0; {
		fetches := consumer.PollFetches(ctx)
		must(t, fetches.Err())
		var records []*kgo.Record
		for _, r := range fetches.Records() {
			records = append(records, &kgo.Record{Topic: r.Topic, Partition: r.Partition, Key: r.Key, Value: r.Value, Headers: r.Headers, Timestamp: r.Timestamp})
		}
		must(t, p.Append(ctx, records...))
		left -= len(records)
	}
}

func committedRecords(t *testing.T, c *kafkatest.Cluster, topic string) int {
	t.Helper()
	n := int64(0)
	for p := range len(c.Fake().PartitionInfos(topic)) {
		for _, tile := range c.MustSourceTiles(t, topic, int32(p)) {
			if tile.Fate == kafkatest.Committed {
				n += tile.End - tile.Start
			}
		}
	}
	return int(n)
}

// TestOracleAgreesWithAConsumer copies a load with an ordinary consumer and
// producer, and finds no difference.
func TestOracleAgreesWithAConsumer(t *testing.T) {
	pair := kafkatest.NewPair(t, kafkatest.Options{})
	ctx := testContext(t)
	must(t, kafkatest.Load{Seed: 5, Topics: []string{"a"}, Partitions: 3, Records: 1500}.Run(ctx, pair.Source.Bootstrap))
	must(t, pair.Target.CreateTopic(ctx, "a", 3, nil))
	copyTopic(t, pair, "a")
	kafkatest.Compare(t, pair.Source.Bootstrap, pair.Target.Bootstrap, kafkatest.Same("a"))
}

// TestEverySabotageIsSeen spoils a copy in each way, at a place of the seed's
// choosing, and expects the oracle to report exactly that place.
func TestEverySabotageIsSeen(t *testing.T) {
	for _, damage := range kafkatest.Damages() {
		for _, shift := range []bool{false, true} {
			t.Run(fmt.Sprintf("%v shift %t", damage, shift), func(t *testing.T) {
				testSabotage(t, kafkatest.Sabotage{Damage: damage, Topic: "a", Offset: -1, Seed: uint64(damage), Shift: shift, Count: 3})
			})
		}
	}
}

func testSabotage(t *testing.T, s kafkatest.Sabotage) {
	t.Helper()
	pair := diskPair(t)
	ctx := testContext(t)
	must(t, kafkatest.Load{Seed: 11, Topics: []string{"a"}, Records: 150, MaxValueBytes: 2000}.Run(ctx, pair.Source.Bootstrap))
	must(t, pair.Target.CreateTopic(ctx, "a", 1, nil))
	copyTopic(t, pair, "a")
	before, err := pair.Target.ReadCommitted(ctx, "a", 0)
	must(t, err)
	done, err := pair.Target.Sabotage(s)
	must(t, err)
	after, err := pair.Target.ReadUncommitted(ctx, "a", 0)
	must(t, err)
	checkSabotaged(t, done, before, after)

	differences, err := kafkatest.Differences(ctx, pair.Source.Bootstrap, pair.Target.Bootstrap, kafkatest.Same("a"))
	must(t, err)
	if len(differences) == 0 || len(differences) > 3 {
		t.Fatalf("%s: differences %v", done.Detail, differences)
	}
	if s.Damage == kafkatest.Truncate || s.Damage == kafkatest.Drop {
		for _, d := range differences {
			if d.TargetOffset != -1 {
				t.Errorf("%s: %v", done.Detail, d)
			}
		}
		return
	}
	for _, d := range differences {
		if d.TargetOffset >= 0 && (d.TargetOffset < done.Start || d.TargetOffset >= done.End) {
			t.Errorf("%s, offsets [%d, %d): %v", done.Detail, done.Start, done.End, d)
		}
	}
}

// checkSabotaged compares the log with what it was, by position.
func checkSabotaged(t *testing.T, done kafkatest.Sabotaged, before, after []kafkatest.Record) {
	t.Helper()
	start, n := int(done.Start), int(done.End-done.Start)
	want := append([]kafkatest.Record{}, before...)
	switch done.Damage {
	case kafkatest.Drop:
		want = append(want[:start:start], want[start+1:]...)
	case kafkatest.Truncate:
		if n != done.Count {
			t.Errorf("truncated %d records, want %d", n, done.Count)
		}
		want = want[:start]
	case kafkatest.Duplicate:
		want = append(append(want[:start:start], before[done.Offset]), before[start:]...)
	case kafkatest.Insert:
		want = append(append(want[:start:start], kafkatest.Record{Key: []byte("foreign"), Value: []byte("nobody copied this"), Timestamp: before[done.Offset].Timestamp}), before[start:]...)
	case kafkatest.Swap:
		if n != 2 {
			t.Errorf("swapped over %d offsets", n)
		}
		want[start], want[start+1] = before[start+1], before[start]
	default:
		if n != 1 || sameRecord(before[start], after[start]) {
			t.Errorf("%s: the record is as before", done.Detail)
		}
		want[start] = after[start]
	}
	if len(want) != len(after) {
		t.Fatalf("%s: %d records, want %d", done.Detail, len(after), len(want))
	}
	for i := range want {
		offset := int64(i)
		if done.Damage == kafkatest.Drop && !done.Shift && i >= start {
			offset++
		}
		if !sameRecord(want[i], after[i]) || after[i].Offset != offset {
			t.Fatalf("%s: record %d is %+v, want %+v", done.Detail, i, after[i], want[i])
		}
	}
}

// sameRecord compares all but the offset, in the plainest way.
func sameRecord(a, b kafkatest.Record) bool {
	a.Offset, b.Offset = 0, 0
	return fmt.Sprintf("%#v", a) == fmt.Sprintf("%#v", b)
}

// TestSwapMovesEverything swaps two records that differ in every part.
func TestSwapMovesEverything(t *testing.T) {
	a := kafkatest.BatchRecord{Timestamp: 1, Key: []byte("a"), Value: []byte("1"), Headers: []kafkatest.Header{{Key: "h", Value: []byte("x")}}}
	b := kafkatest.BatchRecord{Timestamp: 2, Key: nil, Value: nil, Headers: []kafkatest.Header{{Key: "g"}}}
	pair := diskPair(t)
	ctx := testContext(t)
	must(t, pair.Target.CreateTopic(ctx, "a", 1, nil))
	edit(t, pair.Target, "a", func(l *kafkatest.Log) {
		l.Batches = encode(t, kafkatest.NewBatch(0, a), kafkatest.Marker(1, 5, 0, true, 9), kafkatest.NewBatch(2, b))
	})
	before, err := pair.Target.ReadCommitted(ctx, "a", 0)
	must(t, err)
	done, err := pair.Target.Sabotage(kafkatest.Sabotage{Damage: kafkatest.Swap, Topic: "a", Offset: 0})
	must(t, err)
	if done.Start != 0 || done.End != 3 {
		t.Errorf("swapped over [%d, %d)", done.Start, done.End)
	}
	after, err := pair.Target.ReadCommitted(ctx, "a", 0)
	must(t, err)
	if len(after) != 2 || !sameRecord(after[0], before[1]) || !sameRecord(after[1], before[0]) {
		t.Errorf("before %+v, after %+v", before, after)
	}
}

// TestSabotageRefuses asks for what cannot be done.
func TestSabotageRefuses(t *testing.T) {
	pair := diskPair(t)
	ctx := testContext(t)
	must(t, pair.Target.CreateTopic(ctx, "a", 1, nil))
	must(t, pair.Target.CreateTopic(ctx, "empty", 1, nil))
	must(t, pair.Target.Append(ctx, kafkatest.None, numbered("a", 2)...))
	for name, s := range map[string]kafkatest.Sabotage{
		"no such offset":   {Damage: kafkatest.Drop, Topic: "a", Offset: 2},
		"nothing to swap":  {Damage: kafkatest.Swap, Topic: "a", Offset: 1},
		"nothing to drop":  {Damage: kafkatest.Drop, Topic: "empty", Offset: -1},
		"more than exists": {Damage: kafkatest.Truncate, Topic: "a", Count: 3},
		"no such topic":    {Damage: kafkatest.Drop, Topic: "b", Offset: 0},
		"no damage":        {Topic: "a", Offset: 0},
	} {
		if done, err := pair.Target.Sabotage(s); err == nil {
			t.Errorf("%s: %+v", name, done)
		}
	}
	records, err := pair.Target.ReadCommitted(ctx, "a", 0)
	must(t, err)
	equal(t, "untouched", values(records), []string{"0=r0", "1=r1"})
	all, err := pair.Target.Sabotage(kafkatest.Sabotage{Damage: kafkatest.Truncate, Topic: "a", Count: 2})
	must(t, err)
	bounds, err := pair.Target.ReadBounds(ctx, "a", 0)
	must(t, err)
	if all.Start != 0 || all.End != 2 || bounds.HighWatermark != 0 {
		t.Errorf("truncated %+v, bounds %+v", all, bounds)
	}
}

// TestCompareDetails names each kind of difference and both offsets.
func TestCompareDetails(t *testing.T) {
	at := func(ms int64) kafkatest.BatchRecord {
		return kafkatest.BatchRecord{Timestamp: ms, Key: []byte("k"), Value: []byte("v"), Headers: []kafkatest.Header{{Key: "h", Value: []byte("1")}}}
	}
	good := func() []kafkatest.BatchRecord {
		records := []kafkatest.BatchRecord{at(1), at(2), at(3), at(4)}
		records[2].Key, records[2].Value = nil, []byte{}
		return records
	}
	for name, tt := range map[string]struct {
		change func([]kafkatest.BatchRecord) []kafkatest.BatchRecord
		want   string
	}{
		"equal":          {func(r []kafkatest.BatchRecord) []kafkatest.BatchRecord { return r }, ""},
		"timestamp":      {func(r []kafkatest.BatchRecord) []kafkatest.BatchRecord { r[1].Timestamp = 9; return r }, "at 1 -> a:0 at 1: timestamp 9, not 2"},
		"null key":       {func(r []kafkatest.BatchRecord) []kafkatest.BatchRecord { r[1].Key = nil; return r }, `at 1 -> a:0 at 1: key null, not "k"`},
		"null for empty": {func(r []kafkatest.BatchRecord) []kafkatest.BatchRecord { r[2].Value = nil; return r }, `at 2 -> a:0 at 2: value null, not ""`},
		"empty for null": {func(r []kafkatest.BatchRecord) []kafkatest.BatchRecord { r[2].Key = []byte{}; return r }, `at 2 -> a:0 at 2: key "", not null`},
		"empty value":    {func(r []kafkatest.BatchRecord) []kafkatest.BatchRecord { r[3].Value = []byte{}; return r }, `at 3 -> a:0 at 3: value "", not "v"`},
		"header value":   {func(r []kafkatest.BatchRecord) []kafkatest.BatchRecord { r[0].Headers[0].Value = nil; return r }, `header 0 is "h"=null, not "h"="1"`},
		"header name":    {func(r []kafkatest.BatchRecord) []kafkatest.BatchRecord { r[0].Headers[0].Key = "x"; return r }, `header 0 is "x"="1", not "h"="1"`},
		"no header":      {func(r []kafkatest.BatchRecord) []kafkatest.BatchRecord { r[0].Headers = nil; return r }, "0 headers, not 1"},
		"missing":        {func(r []kafkatest.BatchRecord) []kafkatest.BatchRecord { return append(r[:1], r[2:]...) }, "at 1 -> a:0 at -1: not on the target"},
		"missing at end": {func(r []kafkatest.BatchRecord) []kafkatest.BatchRecord { return r[:3] }, "at 3 -> a:0 at -1: not on the target"},
		"twice":          {func(r []kafkatest.BatchRecord) []kafkatest.BatchRecord { return append(r, r[3]) }, "at -1 -> a:0 at 4: on the target, but not the next source record"},
		"twice in the log": {func(r []kafkatest.BatchRecord) []kafkatest.BatchRecord {
			return append([]kafkatest.BatchRecord{r[0]}, r...)
		}, "at -1 -> a:0 at 1: on the target"},
		"nothing on target": {func([]kafkatest.BatchRecord) []kafkatest.BatchRecord { return nil }, "at 0 -> a:0 at -1"},
	} {
		t.Run(name, func(t *testing.T) {
			pair := diskPair(t)
			ctx := testContext(t)
			for _, c := range []*kafkatest.Cluster{pair.Source, pair.Target} {
				must(t, c.CreateTopic(ctx, "a", 1, nil))
			}
			edit(t, pair.Source, "a", func(l *kafkatest.Log) { l.Batches = encode(t, kafkatest.NewBatch(0, good()...)) })
			if changed := tt.change(good()); len(changed) > 0 {
				edit(t, pair.Target, "a", func(l *kafkatest.Log) { l.Batches = encode(t, kafkatest.NewBatch(0, changed...)) })
			}
			differences, err := kafkatest.Differences(ctx, pair.Source.Bootstrap, pair.Target.Bootstrap, kafkatest.Same("a"))
			must(t, err)
			if tt.want == "" {
				if len(differences) != 0 {
					t.Errorf("differences %v", differences)
				}
				return
			}
			if len(differences) == 0 || !strings.Contains(differences[0].String(), tt.want) {
				t.Errorf("differences %v, want %q", differences, tt.want)
			}
		})
	}
}

// TestCompareSeesMarkersAndPartitions: a copy has neither markers nor fewer
// partitions, and the extra partitions are empty.
func TestCompareSeesMarkersAndPartitions(t *testing.T) {
	pair := kafkatest.NewPair(t, kafkatest.Options{})
	ctx := testContext(t)
	must(t, pair.Source.CreateTopic(ctx, "a", 1, nil))
	must(t, pair.Target.CreateTopic(ctx, "a", 2, nil))
	must(t, pair.Source.Append(ctx, kafkatest.None, numbered("a", 2)...))
	must(t, pair.Target.AppendTransaction(ctx, "copier", true, numbered("a", 2)...))
	stray := numbered("a", 1)
	stray[0].Partition = 1
	must(t, pair.Target.Append(ctx, kafkatest.None, stray...))
	differences, err := kafkatest.Differences(ctx, pair.Source.Bootstrap, pair.Target.Bootstrap, kafkatest.Same("a"))
	must(t, err)
	if len(differences) != 2 || differences[0].TargetOffset != 2 || differences[0].Detail != "a marker on the target" || differences[1].Partition != 1 {
		t.Errorf("differences %v", differences)
	}
	must(t, pair.Source.CreateTopic(ctx, "undone", 1, nil))
	must(t, pair.Target.CreateTopic(ctx, "undone", 1, nil))
	must(t, pair.Target.AppendTransaction(ctx, "copier", false, numbered("undone", 2)...))
	differences, err = kafkatest.Differences(ctx, pair.Source.Bootstrap, pair.Target.Bootstrap, kafkatest.Same("undone"))
	must(t, err)
	if len(differences) != 3 {
		t.Errorf("differences %v, want two aborted records and a marker", differences)
	}
	must(t, pair.Source.CreateTopic(ctx, "wide", 2, nil))
	must(t, pair.Target.CreateTopic(ctx, "narrow", 1, nil))
	differences, err = kafkatest.Differences(ctx, pair.Source.Bootstrap, pair.Target.Bootstrap, map[string]string{"wide": "narrow"})
	must(t, err)
	if len(differences) != 1 || differences[0].Partition != 1 {
		t.Errorf("differences %v, want the missing partition", differences)
	}
}

// TestOpenTransaction is D23 of the worked cases: 0-9 plain, 10 open, 11-19
// plain; then the commit.
func TestOpenTransaction(t *testing.T) {
	pair := kafkatest.NewPair(t, kafkatest.Options{})
	ctx := testContext(t)
	c := pair.Source
	must(t, c.CreateTopic(ctx, "a", 1, nil))
	must(t, c.Append(ctx, kafkatest.None, numbered("a", 10)...))
	p, err := c.TransactionalProducer("open", kafkatest.Gzip)
	must(t, err)
	defer p.Close()
	must(t, p.Begin())
	must(t, p.Append(ctx, numbered("a", 1)...))
	must(t, c.Append(ctx, kafkatest.None, numbered("a", 9)...))
	equal(t, "open", tilesOf(t, c, "a"), []string{"copied [0, 10)", "undecided [10, 20)"})
	undecided, cancel := context.WithTimeout(ctx, 50*time.Millisecond)
	defer cancel()
	if err := c.WaitDecided(undecided, "a"); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("an open transaction is decided: %v", err)
	}
	must(t, p.End(ctx, true))
	must(t, c.WaitDecided(ctx, "a"))
	equal(t, "committed", tilesOf(t, c, "a"), []string{"copied [0, 20)", "commit_marker [20, 21)"})
}

// TestOpenTransactionSurvivesRestart checks that a fake cluster on disk keeps
// a transaction open.
func TestOpenTransactionSurvivesRestart(t *testing.T) {
	pair := diskPair(t)
	ctx := testContext(t)
	c := pair.Source
	must(t, c.CreateTopic(ctx, "a", 1, nil))
	p, err := c.TransactionalProducer("open", kafkatest.None)
	must(t, err)
	defer p.Close()
	must(t, p.Begin())
	must(t, p.Append(ctx, numbered("a", 2)...))
	must(t, c.Restart())
	equal(t, "after restart", tilesOf(t, c, "a"), []string{"undecided [0, 2)"})
	must(t, p.End(ctx, false))
	equal(t, "aborted", tilesOf(t, c, "a"), []string{"aborted [0, 2)", "abort_marker [2, 3)"})
}

// TestTilesOfAMovingPartition appends between the oracle's two readings.
func TestTilesOfAMovingPartition(t *testing.T) {
	c := kafkatest.NewCluster(t, kafkatest.ClusterOptions{})
	ctx := testContext(t)
	must(t, c.CreateTopic(ctx, "a", 1, nil))
	must(t, c.Append(ctx, kafkatest.None, numbered("a", 1)...))
	gate := make(chan struct{})
	h := c.MustFault(t, kafkatest.Fault{Kind: kafkatest.DelayBefore, Key: kmsg.ListOffsets, Skip: 3, Gate: gate}) // a reading asks for three bounds
	done := make(chan error, 1)
	go func() {
		_, err := c.SourceTiles(ctx, "a", 0)
		done <- err
	}()
	must(t, h.Wait(ctx, 1))
	must(t, c.Append(ctx, kafkatest.None, numbered("a", 1)...))
	close(gate)
	if err := <-done; err == nil || !strings.Contains(err.Error(), "moves") {
		t.Errorf("tiles of a moving partition: %v", err)
	}
}

// TestSabotageAboveLogStart leaves alone what cannot be read any more.
func TestSabotageAboveLogStart(t *testing.T) {
	pair := diskPair(t)
	ctx := testContext(t)
	must(t, pair.Target.CreateTopic(ctx, "a", 1, nil))
	must(t, pair.Target.Append(ctx, kafkatest.None, numbered("a", 6)...))
	must(t, pair.Target.DeleteRecords("a", 0, 5))
	if done, err := pair.Target.Sabotage(kafkatest.Sabotage{Damage: kafkatest.MutateKey, Topic: "a", Offset: 4}); err == nil {
		t.Errorf("offset 4 is below the log start: %+v", done)
	}
	for seed := range uint64(4) {
		done, err := pair.Target.Sabotage(kafkatest.Sabotage{Damage: kafkatest.MutateKey, Topic: "a", Offset: -1, Seed: seed})
		must(t, err)
		if done.Offset != 5 {
			t.Errorf("seed %d chooses offset %d", seed, done.Offset)
		}
	}
}

// TestReadGivesUp: an oracle that cannot reach the end says so when its context
// ends, instead of waiting for ever.
func TestReadGivesUp(t *testing.T) {
	c := kafkatest.NewCluster(t, kafkatest.ClusterOptions{})
	ctx := testContext(t)
	must(t, c.CreateTopic(ctx, "a", 1, nil))
	must(t, c.Append(ctx, kafkatest.None, numbered("a", 1)...))
	bounded, cancel := context.WithTimeout(ctx, 200*time.Millisecond)
	defer cancel()
	c.Stop()
	if _, err := c.ReadCommitted(bounded, "a", 0); err == nil {
		t.Error("a stopped cluster could be read")
	}
}
