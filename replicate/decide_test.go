package replicate_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"apograph/internal/kafkatest"
	"apograph/ledger"
	"apograph/replicate"
)

// acceptCut has the partition's cut accepted, and runs the copy.
func acceptCut(t *testing.T, config replicate.Config) replicate.Summary {
	t.Helper()
	order(t, config, ledger.Order{SourceTopic: "t", AcceptTruncated: true})
	return mustRun(t, config)
}

// wantStarts holds the generations to the source offsets at which they began.
func wantStarts(t *testing.T, config replicate.Config, want ...int64) {
	t.Helper()
	offline(t, config, func(book *ledger.Ledger) {
		var starts []int64
		for _, p := range book.Pairs() {
			starts = append(starts, p.ScopeStart)
		}
		if fmt.Sprint(starts) != fmt.Sprint(want) {
			t.Errorf("the generations begin at %v, want %v", starts, want)
		}
	})
	kafkatest.CheckLedgerAtEnd(t, config.LedgerPath)
}

// TestSlowSourceAtAnAcceptedCut: the source takes its time to say what was aborted and
// is committed by now. However long it takes, nothing is left out.
func TestSlowSourceAtAnAcceptedCut(t *testing.T) {
	pair := stored(t)
	mustTopic(t, pair.Source, "t", nil)
	transactionWith(t, pair, false, 3)
	config := configFor(t, pair, "t")
	mustRun(t, config)
	mustLoseTail(t, pair.Source, 7)
	wantStop(t, mustRun(t, config), replicate.StopSourceTruncated)
	decideAnew(t, pair, true)
	pair.Source.MustFault(t, kafkatest.Fault{Kind: kafkatest.DelayBefore, Key: kmsg.Fetch, When: asksFrom(2), Delay: 6 * time.Second})
	if s := acceptCut(t, config); !s.Complete {
		t.Errorf("summary %+v", s)
	}
	proveNothingMissing(t, pair)
	wantStarts(t, config, 0, 2)
}

// TestMarkerFarBehindItsData: the transaction whose marker a cut took began far below
// the cut, with records of nobody's transaction between.
func TestMarkerFarBehindItsData(t *testing.T) {
	pair := stored(t)
	mustTopic(t, pair.Source, "t", nil)
	transactionWith(t, pair, false, 3) // 0-1, 2-3 aborted, 4-6, marker 7
	if err := pair.Source.EditLog("t", 0, func(l *kafkatest.Log) error {
		return moveMarker(l, 300_007)
	}); err != nil {
		t.Fatal(err)
	}
	config := configFor(t, pair, "t")
	mustRun(t, config)
	mustLoseTail(t, pair.Source, 300_007)
	wantStop(t, mustRun(t, config), replicate.StopSourceTruncated)
	decideAnew(t, pair, true)
	if s := acceptCut(t, config); !s.Complete {
		t.Errorf("summary %+v", s)
	}
	proveNothingMissing(t, pair)
	wantStarts(t, config, 0, 2)
}

// moveMarker moves the marker at a log's end to an offset above, and fills what is
// between with copies of the batch in front of it, which spans 3 offsets.
func moveMarker(l *kafkatest.Log, to int64) error {
	n := len(l.Batches) - 1
	marker, err := kafkatest.DecodeBatch(l.Batches[n])
	if err != nil {
		return err
	}
	between, err := kafkatest.DecodeBatch(l.Batches[n-1])
	if err != nil {
		return err
	}
	l.Batches = l.Batches[:n]
	for between.BaseOffset += 3; between.BaseOffset+3 <= to; between.BaseOffset += 3 {
		raw, err := between.Encode()
		if err != nil {
			return err
		}
		l.Batches = append(l.Batches, raw)
	}
	marker.BaseOffset, l.End = to, to+1
	raw, err := marker.Encode()
	l.Batches = append(l.Batches, raw)
	return err
}

// markerOfAnEarlierGeneration makes two cuts, the second of which takes the marker of a
// transaction that only the first generation's books call aborted: it stands below the
// second one's start, which has copied some records.
func markerOfAnEarlierGeneration(t *testing.T, copied int) (*kafkatest.Pair, replicate.Config) {
	pair := stored(t)
	mustTopic(t, pair.Source, "t", nil)
	transactionWith(t, pair, false, 3) // 0-1, 2-3 aborted, 4-6, marker 7
	mustAppend(t, pair.Source.Bootstrap, numbered(50, 2)...)
	mustAppend(t, pair.Source.Bootstrap, numbered(52, 2)...)
	config := configFor(t, pair, "t")
	mustRun(t, config)
	mustLoseTail(t, pair.Source, 10)
	wantStop(t, mustRun(t, config), replicate.StopSourceTruncated)
	mustAppend(t, pair.Source.Bootstrap, numbered(60, copied)...)
	if s := acceptCut(t, config); !s.Complete {
		t.Errorf("after the first cut: %+v", s)
	}
	mustLoseTail(t, pair.Source, 7)
	return pair, config
}

// TestMarkerOfAnEarlierGeneration: what an earlier generation's books call aborted is
// committed when the second cut is accepted.
func TestMarkerOfAnEarlierGeneration(t *testing.T) {
	for _, copied := range []int{0, 2} {
		t.Run(fmt.Sprintf("%d copied between", copied), func(t *testing.T) {
			pair, config := markerOfAnEarlierGeneration(t, copied)
			decideAnew(t, pair, true)
			mustAppend(t, pair.Source.Bootstrap, numbered(70, 6)...)
			wantStop(t, mustRun(t, config), replicate.StopSourceTruncated)
			if s := acceptCut(t, config); !s.Complete {
				t.Errorf("after the second cut: %+v", s)
			}
			proveNothingMissing(t, pair)
			wantStarts(t, config, 0, 10, 2)
		})
	}
}

// TestOpenAgainBelowAGeneration: the same, with the transaction open at the acceptance.
// Nothing is complete until it ends.
func TestOpenAgainBelowAGeneration(t *testing.T) {
	pair, config := markerOfAnEarlierGeneration(t, 2)
	wantStop(t, mustRun(t, config), replicate.StopSourceTruncated)
	if s := acceptCut(t, config); s.Complete || len(s.Waiting) != 1 || s.Waiting[0].Offset != 2 {
		t.Errorf("complete %v, waiting %+v; a transaction is open at 2", s.Complete, s.Waiting)
	}
	decideAnew(t, pair, true)
	if s := mustRun(t, config); !s.Complete {
		t.Errorf("committed: %+v", s)
	}
	proveNothingMissing(t, pair)
	wantStarts(t, config, 0, 10, 2)
}

// TestSettledInTheEarlierGeneration: a generation that began again at what had been
// aborted has the last word on it: another cut above does not have it copied once more.
func TestSettledInTheEarlierGeneration(t *testing.T) {
	pair, config := markerOfAnEarlierGeneration(t, 2)
	decideAnew(t, pair, true)
	mustAppend(t, pair.Source.Bootstrap, numbered(70, 6)...)
	wantStop(t, mustRun(t, config), replicate.StopSourceTruncated)
	acceptCut(t, config)
	mustLoseTail(t, pair.Source, 8)
	wantStop(t, mustRun(t, config), replicate.StopSourceTruncated)
	if s := acceptCut(t, config); !s.Complete {
		t.Errorf("summary %+v", s)
	}
	proveNothingMissing(t, pair)
	wantStarts(t, config, 0, 10, 2, 8)
}

// TestAbortedForGoodAtAnAcceptedCut: of many transactions that were aborted, one is
// committed by now. The generation begins there, whatever stands in front.
func TestAbortedForGoodAtAnAcceptedCut(t *testing.T) {
	pair := stored(t)
	mustTopic(t, pair.Source, "t", nil)
	abortMany(t, pair, 20) // each of 2 records and a marker
	config := configFor(t, pair, "t")
	if s := mustRun(t, config); !s.Complete {
		t.Fatalf("summary %+v", s)
	}
	mustLoseTail(t, pair.Source, 59) // the last marker
	wantStop(t, mustRun(t, config), replicate.StopSourceTruncated)
	if err := pair.Source.EditLog("t", 0, func(l *kafkatest.Log) error {
		data, err := kafkatest.DecodeBatch(l.Batches[len(l.Batches)-1])
		if err != nil {
			return err
		}
		marker := kafkatest.Marker(l.End, data.ProducerID, data.ProducerEpoch, true, 1700000000000)
		marker.LeaderEpoch = l.LeaderEpoch
		raw, err := marker.Encode()
		l.Batches = append(l.Batches, raw)
		return err
	}); err != nil {
		t.Fatal(err)
	}
	if s := acceptCut(t, config); !s.Complete {
		t.Errorf("summary %+v", s)
	}
	proveNothingMissing(t, pair)
	wantStarts(t, config, 0, 57)
}

// abortMany appends transactions of 2 records each that are all aborted.
func abortMany(t *testing.T, pair *kafkatest.Pair, n int) {
	t.Helper()
	producer, err := pair.Source.TransactionalProducer("many", kafkatest.None)
	if err != nil {
		t.Fatal(err)
	}
	defer producer.Close()
	for i := range n {
		if err := producer.Begin(); err != nil {
			t.Fatal(err)
		}
		if err := producer.Append(t.Context(), numbered(2*i, 2)...); err != nil {
			t.Fatal(err)
		}
		if err := producer.End(t.Context(), false); err != nil {
			t.Fatal(err)
		}
	}
}

// TestSecondCutBelowAnEmptyGeneration: the generation that was begun at a cut has copied
// nothing when the source is cut again, below it, and has grown beyond it.
func TestSecondCutBelowAnEmptyGeneration(t *testing.T) {
	pair := stored(t)
	mustTopic(t, pair.Source, "t", nil)
	tens(t, pair, 0, 30)
	config := configFor(t, pair, "t")
	mustRun(t, config)
	mustLoseTail(t, pair.Source, 20)
	wantStop(t, mustRun(t, config), replicate.StopSourceTruncated)
	if s := acceptCut(t, config); !s.Complete {
		t.Errorf("after the first cut: %+v", s)
	}
	mustLoseTail(t, pair.Source, 10)
	tens(t, pair, 100, 130)
	s := mustRun(t, config)
	wantStop(t, s, replicate.StopSourceTruncated)
	if len(s.Stopped) == 1 && s.Stopped[0].Offset != 10 {
		t.Errorf("stopped at %d, want 10", s.Stopped[0].Offset)
	}
	if s := acceptCut(t, config); !s.Complete {
		t.Errorf("after the second cut: %+v", s)
	}
	proveNothingMissing(t, pair)
	wantStarts(t, config, 0, 20, 10)
}

// TestHoleInFrontOfAnEmptyGeneration: the open generation has copied nothing yet when
// the target's log is cut below it, and filled by others to the same end.
func TestHoleInFrontOfAnEmptyGeneration(t *testing.T) {
	pair := stored(t)
	mustTopic(t, pair.Source, "t", nil)
	config := configFor(t, pair, "t")
	for at := 0; at < 30; at += 10 {
		tens(t, pair, at, at+10)
		mustRun(t, config)
	}
	mustLoseTail(t, pair.Source, 20)
	mustRun(t, config)
	if s := acceptCut(t, config); !s.Complete {
		t.Errorf("after the cut: %+v", s)
	}
	cutAndFill(t, pair, 10, 20)
	mustAppend(t, pair.Source.Bootstrap, numbered(100, 10)...)
	wantStop(t, mustRun(t, config), replicate.StopTargetLostRecords)
	kafkatest.CheckLedgerAtEnd(t, config.LedgerPath)
}

// TestHoleBehindManyNotes: many visits of others stand behind the last record of ours
// when the target's log is cut below it, and filled.
func TestHoleBehindManyNotes(t *testing.T) {
	const visits = 66
	pair, config := copiedBig(t, 8)
	order(t, config, ledger.Order{SourceTopic: "t", TolerateForeign: true})
	for i := range visits {
		mustAppend(t, pair.Target.Bootstrap, numbered(1000+i, 1)...)
		mustRun(t, config)
	}
	cutAndFill(t, pair, 5, 3+visits)
	appendBig(t, pair, 8, 3)
	wantStop(t, mustRun(t, config), replicate.StopTargetLostRecords)
	kafkatest.CheckLedgerAtEnd(t, config.LedgerPath)
}

// TestLogThatGoesOnInAnOlderEpoch: the source's log comes back from a replica that had
// lost touch: it has more of an older leader epoch than the books, which have a later
// one there. The logs part where the later one began, not where the older one ends.
func TestLogThatGoesOnInAnOlderEpoch(t *testing.T) {
	partsWhereItComesBack(t, 1, 20, 0, 2)
}

// TestLogThatPartsInAnEpochBefore: a replica that had lost touch earlier still comes back:
// what it wrote in an epoch that the books do not know begins below the last one that
// they do. The end of the newest common epoch tells where the logs part, not that of the
// one that the books lack (KIP-279).
func TestLogThatPartsInAnEpochBefore(t *testing.T) {
	partsWhereItComesBack(t, 2, 10, 1, 15)
}

// partsWhereItComesBack has a source's log of 20 records, and 10 of an epoch later by so
// much, copied. Then the log of a replica comes back that has kept the records up to one
// offset, and has others behind that of an epoch of its own, later than the first by so
// much, before it led again. There the logs part, and all of the new one is copied.
func partsWhereItComesBack(t *testing.T, later int32, kept int64, own int32, others int) {
	t.Helper()
	pair := stored(t)
	mustTopic(t, pair.Source, "t", nil)
	edit := func(change func(l *kafkatest.Log)) {
		t.Helper()
		if err := pair.Source.EditLog("t", 0, func(l *kafkatest.Log) error { change(l); return nil }); err != nil {
			t.Fatal(err)
		}
	}
	var first int32
	tens(t, pair, 0, 20)
	edit(func(l *kafkatest.Log) { first = l.LeaderEpoch; l.LeaderEpoch += later })
	tens(t, pair, 20, 30)
	config := configFor(t, pair, "t")
	mustRun(t, config)
	edit(func(l *kafkatest.Log) { l.Batches, l.End, l.LeaderEpoch = l.Batches[:kept/10], kept, first+own })
	mustAppend(t, pair.Source.Bootstrap, numbered(500, others)...)
	edit(func(l *kafkatest.Log) { l.LeaderEpoch = first + later + 1 })
	mustAppend(t, pair.Source.Bootstrap, numbered(600, 20)...)
	s := mustRun(t, config)
	wantStop(t, s, replicate.StopSourceTruncated)
	if len(s.Stopped) == 1 && s.Stopped[0].Offset != kept {
		t.Errorf("stopped at %d, want %d", s.Stopped[0].Offset, kept)
	}
	if s := acceptCut(t, config); !s.Complete {
		t.Errorf("summary %+v", s)
	}
	proveNothingMissing(t, pair)
	wantStarts(t, config, 0, kept)
}
