package replicate_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"apograph/internal/kafkatest"
	"apograph/ledger"
	"apograph/replicate"
)

func growTopic(t *testing.T, client *kgo.Client, topic string, partitions int) {
	t.Helper()
	responses, err := kadm.NewClient(client).UpdatePartitions(t.Context(), partitions, topic)
	if err != nil || responses[topic].Err != nil {
		t.Fatalf("grow %s: %v %v", topic, err, responses[topic].Err)
	}
}

// afterCrash copies 10 records, keeps the ledger, copies what more appends, and
// returns a configuration with the older ledger: the state after a copier died
// between its last produce and its last commit.
func afterCrash(t *testing.T, pair *kafkatest.Pair, more func()) replicate.Config {
	t.Helper()
	mustTopic(t, pair.Source, "t", nil)
	mustAppend(t, pair.Source.Bootstrap, numbered(0, 10)...)
	config := configFor(t, pair, "t")
	mustRun(t, config)
	older := copyFile(t, config.LedgerPath)
	more()
	mustRun(t, config)
	config.LedgerPath = older
	return config
}

func TestAdoptWhatADeadCopierWrote(t *testing.T) {
	pair := stored(t)
	config := afterCrash(t, pair, func() {
		for i := range 5 {
			mustAppend(t, pair.Source.Bootstrap, numbered(10+10*i, 10)...)
		}
		mustTransaction(t, pair.Source.Bootstrap, true, numbered(60, 3)...)
		mustTransaction(t, pair.Source.Bootstrap, false, numbered(60, 3)...)
	})
	got := mustComplete(t, pair, config)
	wantTiles(t, got, map[ledger.Tile]int64{ledger.Copied: 53, ledger.CommitMarker: 1, ledger.Aborted: 3, ledger.AbortMarker: 1})
	if bounds, _ := pair.Target.ReadBounds(t.Context(), "t", 0); bounds.HighWatermark != 63 {
		t.Errorf("the target ends at %d, want 63: something was written again", bounds.HighWatermark)
	}
}

// TestAdoptInOtherPieces: the dead copier's last batch ends in the middle of
// what the next one would send as one.
func TestAdoptInOtherPieces(t *testing.T) {
	pair := stored(t)
	config := afterCrash(t, pair, func() {
		mustAppend(t, pair.Source.Bootstrap, numbered(10, 30)...)
	})
	err := pair.Target.EditLog("t", 0, func(l *kafkatest.Log) error {
		last, err := kafkatest.DecodeBatch(l.Batches[len(l.Batches)-1])
		if err != nil {
			return err
		}
		last.Records = last.Records[:17]
		last.LastOffsetDelta = 16
		l.Batches[len(l.Batches)-1], err = last.Encode()
		l.End = last.NextOffset()
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	got := mustComplete(t, pair, config)
	wantTiles(t, got, map[ledger.Tile]int64{ledger.Copied: 30})
}

// TestOrphan: a record that was copied and not booked is gone from the source
// when the next copier looks.
func TestOrphan(t *testing.T) {
	pair := stored(t)
	config := afterCrash(t, pair, func() {
		mustAppend(t, pair.Source.Bootstrap, numbered(10, 6)...)
		mustAppend(t, pair.Source.Bootstrap, numbered(16, 4)...)
	})
	editSource(t, pair, func(batches [][]byte) [][]byte {
		b, err := kafkatest.DecodeBatch(batches[1])
		if err != nil {
			t.Fatal(err)
		}
		b.Records = slices.Delete(b.Records, 2, 4) // offsets 12 and 13
		batches[1] = encode(t, b)
		return batches
	})
	got := mustRun(t, config)
	if !got.Complete {
		t.Errorf("not complete: %+v", got)
	}
	wantTiles(t, got, map[ledger.Tile]int64{ledger.Copied: 8, ledger.Compacted: 2, ledger.Orphan: 2})
	l := kafkatest.OpenLedger(t, config.LedgerPath, ledger.Options{ReadOnly: true})
	e, err := l.FindTarget(l.Pairs()[0].ID, 12)
	if err != nil || e.Tile != ledger.Orphan || e.Target != (ledger.Range{Start: 12, End: 14}) {
		t.Errorf("entry %+v %v, want orphans at target offsets [12, 14)", e, err)
	}
}

func TestForeignRecordsBehindTheBooks(t *testing.T) {
	pair := stored(t)
	mustTopic(t, pair.Source, "t", nil)
	mustAppend(t, pair.Source.Bootstrap, numbered(0, 10)...)
	config := configFor(t, pair, "t")
	mustRun(t, config)
	mustAppend(t, pair.Target.Bootstrap, numbered(100, 1)...)
	mustAppend(t, pair.Source.Bootstrap, numbered(10, 10)...)
	got := mustRun(t, config)
	if len(got.Stopped) != 1 || got.Stopped[0].Reason != replicate.StopForeignWriter {
		t.Errorf("stopped %+v, want foreign_writer", got.Stopped)
	}
	wantTiles(t, got, map[ledger.Tile]int64{ledger.Foreign: 1})
	proveNotes(t, pair, config.LedgerPath, map[ledger.Tile]int64{ledger.Copied: 10, ledger.Foreign: 1})
}

func TestTargetThatLostRecords(t *testing.T) {
	pair := stored(t)
	mustTopic(t, pair.Source, "t", nil)
	mustAppend(t, pair.Source.Bootstrap, numbered(0, 10)...)
	mustAppend(t, pair.Source.Bootstrap, numbered(10, 10)...)
	config := configFor(t, pair, "t")
	mustRun(t, config)
	if _, err := pair.Target.Sabotage(kafkatest.Sabotage{Damage: kafkatest.Truncate, Topic: "t", Count: 3}); err != nil {
		t.Fatal(err)
	}
	got := mustRun(t, config)
	if len(got.Stopped) != 1 || got.Stopped[0].Reason != replicate.StopTargetLostRecords {
		t.Errorf("stopped %+v, want target_lost_records", got.Stopped)
	}
	kafkatest.CheckLedgerAtEnd(t, config.LedgerPath)
}

// TestLogEndAboveTheHighWatermark: a produce is not answered in time because
// the followers lag. An ordinary look at the log's end would not see the batch.
func TestLogEndAboveTheHighWatermark(t *testing.T) {
	pair := stored(t)
	for _, c := range []*kafkatest.Cluster{pair.Source, pair.Target} {
		mustTopic(t, c, "t", nil)
	}
	for i := range 5 {
		mustAppend(t, pair.Source.Bootstrap, numbered(10*i, 10)...)
	}
	release, err := pair.Target.HoldHighWatermark("t", 0, 0)
	if err != nil {
		t.Fatal(err)
	}
	produced := pair.Target.MustFault(t, kafkatest.Fault{Kind: kafkatest.DelayAfter, Key: kmsg.Produce, Delay: 1})
	asked := pair.Target.MustFault(t, kafkatest.Fault{Kind: kafkatest.DelayAfter, Key: kmsg.ListOffsets, Count: -1, Delay: 1})
	go func() {
		_ = produced.Wait(t.Context(), 1)
		_ = asked.Wait(t.Context(), asked.Hits()+4)
		release()
	}()
	config := configFor(t, pair, "t")
	config.ProduceTimeout = 100 * time.Millisecond
	got := mustComplete(t, pair, config)
	wantTiles(t, got, map[ledger.Tile]int64{ledger.Copied: 50})
}

// TestStartWhileFollowersLag: a dead copier's batches are in the leader's log
// and not yet replicated, and the leader has forgotten the producer. Whoever
// takes the high watermark for the log's end writes them again.
func TestStartWhileFollowersLag(t *testing.T) {
	pair := stored(t)
	config := afterCrash(t, pair, func() {
		mustAppend(t, pair.Source.Bootstrap, numbered(10, 10)...)
	})
	if err := pair.Target.ForgetProducers("t", 0); err != nil {
		t.Fatal(err)
	}
	release, err := pair.Target.HoldHighWatermark("t", 0, 10)
	if err != nil {
		t.Fatal(err)
	}
	asked := pair.Target.MustFault(t, kafkatest.Fault{Kind: kafkatest.DelayAfter, Key: kmsg.ListOffsets, Count: -1, Delay: 1})
	go func() {
		_ = asked.Wait(t.Context(), 4)
		release()
	}()
	mustComplete(t, pair, config)
}

// TestCopyOfAnotherCopier: what stands behind the books was written by somebody
// else, under the right sequence number. It equals the source's next record, as
// with a ledger that was restored from an older copy, or it does not.
func TestCopyOfAnotherCopier(t *testing.T) {
	for _, equal := range []bool{true, false} {
		t.Run(fmt.Sprint("equal ", equal), func(t *testing.T) { copyOfAnother(t, equal) })
	}
}

func copyOfAnother(t *testing.T, equal bool) {
	pair := stored(t)
	mustTopic(t, pair.Source, "t", nil)
	mustAppend(t, pair.Source.Bootstrap, numbered(0, 10)...)
	config := configFor(t, pair, "t")
	mustRun(t, config)
	next := numbered(10, 1)[0]
	mustAppend(t, pair.Source.Bootstrap, next)
	if !equal {
		next = numbered(11, 1)[0]
	}
	b := kafkatest.NewBatch(0, kafkatest.BatchRecord{Timestamp: next.Timestamp.UnixMilli(), Key: next.Key, Value: next.Value})
	b.ProducerID, b.ProducerEpoch, b.BaseSequence = 4242, 0, 10
	if _, err := pair.Target.AppendBatch(t.Context(), "t", 0, encode(t, b)); err != nil {
		t.Fatal(err)
	}
	got := mustRun(t, config)
	if equal {
		mustAppend(t, pair.Source.Bootstrap, numbered(11, 1)...)
		mustComplete(t, pair, config)
		return
	}
	if len(got.Stopped) != 1 || got.Stopped[0].Reason != replicate.StopForeignWriter {
		t.Errorf("stopped %+v, want foreign_writer", got.Stopped)
	}
	proveNotes(t, pair, config.LedgerPath, map[ledger.Tile]int64{ledger.Copied: 10, ledger.Foreign: 1})
}

// TestSourceThatDiffersFromWhatWasWritten: the batch behind the books is ours,
// but the source now holds another record in its place and lacks none: it was
// cut above the books, and what was copied of it has no source any more once a
// person says so.
func TestSourceThatDiffersFromWhatWasWritten(t *testing.T) {
	pair := stored(t)
	config := afterCrash(t, pair, func() {
		mustAppend(t, pair.Source.Bootstrap, numbered(10, 4)...)
	})
	editSource(t, pair, func(batches [][]byte) [][]byte {
		b, err := kafkatest.DecodeBatch(batches[1])
		if err != nil {
			t.Fatal(err)
		}
		for i := range b.Records[1:] {
			b.Records[1+i].Value = fmt.Appendf(nil, "another%d", i)
		}
		batches[1] = encode(t, b)
		return batches
	})
	got := mustRun(t, config)
	if len(got.Stopped) != 1 || got.Stopped[0].Reason != replicate.StopSourceTruncated || got.Stopped[0].Offset != 11 {
		t.Errorf("stopped %+v, want at source offset 11", got.Stopped)
	}
	wantTiles(t, got, map[ledger.Tile]int64{ledger.Copied: 1})
	order(t, config, ledger.Order{SourceTopic: "t", AcceptTruncated: true})
	got = mustRun(t, config)
	if !got.Complete {
		t.Errorf("after it was accepted: %+v", got)
	}
	wantTiles(t, got, map[ledger.Tile]int64{ledger.Orphan: 3, ledger.Copied: 3})
	proveNotes(t, pair, config.LedgerPath, map[ledger.Tile]int64{ledger.Copied: 14, ledger.Orphan: 3})
}
