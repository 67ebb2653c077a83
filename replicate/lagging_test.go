package replicate_test

import (
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"apograph/internal/kafkatest"
	"apograph/ledger"
	"apograph/replicate"
)

// lags answers the first fetches from an offset on as a leader does that has just
// been elected: what it holds behind that offset may not be read yet.
func lags(c *kafkatest.Cluster, from int64, times int) {
	fake := c.Fake()
	fake.ControlKey(int16(kmsg.Fetch), func(r kmsg.Request) (kmsg.Response, error, bool) {
		fake.KeepControl()
		if times == 0 || !asksFrom(from)(r) {
			return nil, nil, false
		}
		times--
		answer := kmsg.NewFetchResponseTopicPartition()
		answer.DivergingEpoch.Epoch, answer.DivergingEpoch.EndOffset = -1, -1
		answer.HighWatermark, answer.LastStableOffset, answer.LogStartOffset = from, from, 0
		return fetchAnswer(r, answer), nil, true
	})
}

// TestLaggingWatermark: an answer whose watermark lags ends neither an adoption,
// as if what a dead copier left had no source, nor a run, as if a transaction kept
// the rest back.
func TestLaggingWatermark(t *testing.T) {
	t.Run("in an adoption", func(t *testing.T) {
		pair := stored(t)
		config := afterCrash(t, pair, func() { mustAppend(t, pair.Source.Bootstrap, numbered(10, 4)...) })
		lags(pair.Source, 10, 2)
		wantTiles(t, mustComplete(t, pair, config), map[ledger.Tile]int64{ledger.Copied: 4})
	})
	t.Run("in a copy", func(t *testing.T) {
		pair, config := copied(t, 10)
		mustAppend(t, pair.Source.Bootstrap, numbered(10, 4)...)
		lags(pair.Source, 10, 2)
		wantTiles(t, mustComplete(t, pair, config), map[ledger.Tile]int64{ledger.Copied: 4})
	})
}

// TestSourceThatEndsLower: the end that the source had when an adoption began is
// not waited for where its log does not go so far any more.
func TestSourceThatEndsLower(t *testing.T) {
	pair := stored(t)
	config := afterCrash(t, pair, func() { mustAppend(t, pair.Source.Bootstrap, numbered(10, 4)...) })
	gate := make(chan struct{})
	fetch := pair.Source.MustFault(t, kafkatest.Fault{Kind: kafkatest.DelayBefore, Key: kmsg.Fetch, Gate: gate, When: asksFrom(10)})
	ended := make(chan replicate.Summary, 1)
	go func() {
		s, err := replicate.Run(t.Context(), config)
		if err != nil {
			t.Error(err)
		}
		ended <- s
	}()
	if err := fetch.Wait(t.Context(), 1); err != nil {
		t.Fatal(err)
	}
	if err := pair.Source.LoseTail("t", 0, 10); err != nil {
		t.Fatal(err)
	}
	close(gate)
	s := <-ended
	wantStop(t, s, replicate.StopSourceTruncated)
	wantTiles(t, s, nil)
	kafkatest.CheckLedgerAtEnd(t, config.LedgerPath)
}

// TestNoAnswerAboutEpochs: the source's log was cut and written anew, the books end
// where no epoch is known, and the leader does not say where the one before ended:
// nothing is copied until it does.
func TestNoAnswerAboutEpochs(t *testing.T) {
	pair := stored(t)
	mustTopic(t, pair.Source, "t", nil)
	tens(t, pair, 0, 20)
	config := configFor(t, pair, "t")
	mustRun(t, config)
	mustDelete(t, pair.Source, "t", 0, 20)
	tens(t, pair, 20, 30)
	mustDelete(t, pair.Source, "t", 0, 30)
	mustRun(t, config) // ends in a lost tile
	err := pair.Source.EditLog("t", 0, func(log *kafkatest.Log) error {
		log.Batches, log.Start, log.End, log.LeaderEpoch = nil, 8, 8, log.LeaderEpoch+1
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	mustAppend(t, pair.Source.Bootstrap, numbered(1000, 40)...)
	config.UnavailableAfter = time.Second
	fault := kafkatest.Fault{Kind: kafkatest.ErrorBefore, Key: kmsg.OffsetForLeaderEpoch, Topic: "t", Count: -1, Err: kerr.InconsistentTopicID}
	handle := pair.Source.MustFault(t, fault)
	s := mustRun(t, config)
	wantStop(t, s, replicate.StopUnavailable)
	wantTiles(t, s, nil)
	handle.Remove()
	s = mustRun(t, config)
	wantStop(t, s, replicate.StopSourceTruncated)
	wantTiles(t, s, nil)
	kafkatest.CheckLedgerAtEnd(t, config.LedgerPath)
}
