package replicate_test

import (
	"fmt"
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"

	"apograph/internal/kafkatest"
	"apograph/ledger"
	"apograph/replicate"
)

// asksLogStart selects questions for a log start.
func asksLogStart(r kmsg.Request) bool {
	topics := r.(*kmsg.ListOffsetsRequest).Topics
	return len(topics) > 0 && topics[0].Partitions[0].Timestamp == -2
}

// mustRecreate deletes topic t on the source and makes another one of the name.
func mustRecreate(t *testing.T, pair *kafkatest.Pair, partitions int32) {
	t.Helper()
	mustDeleteTopic(t, pair.Source, "t")
	if err := pair.Source.CreateTopic(t.Context(), "t", partitions, nil); err != nil {
		t.Fatal(err)
	}
}

// TestRecreatedWhileTheLogStartIsAskedFor: the question for a log start names a
// topic and not its id. The answer of another topic of the name is no reason to
// call anything lost.
func TestRecreatedWhileTheLogStartIsAskedFor(t *testing.T) {
	t.Parallel()
	pair := stored(t)
	mustTopic(t, pair.Source, "t", nil)
	tens(t, pair, 0, 30)
	config := livingConfig(t, pair, "t")
	mustRun(t, once(config))
	tens(t, pair, 30, 60)
	mustDelete(t, pair.Source, "t", 0, 40)
	gate := make(chan struct{})
	asked := pair.Source.MustFault(t, kafkatest.Fault{Kind: kafkatest.DelayBefore, Key: kmsg.ListOffsets, Gate: gate, When: asksLogStart, Skip: 1})
	l := live(t, pair, config)
	if err := asked.Wait(t.Context(), 1); err != nil {
		t.Fatal(err)
	}
	mustRecreate(t, pair, 1)
	tens(t, pair, 0, 70)
	mustDelete(t, pair.Source, "t", 0, 50)
	close(gate)
	l.stopped("t", 0, replicate.StopTopicRecreated)
	if end := l.Ledger().End(l.Ledger().Pairs()[0].ID).Source; end != 30 {
		t.Errorf("the books end at %d, want 30: something of another topic got in", end)
	}
	l.end()
}

// TestRecreatedBetweenTwoRuns: the topic was deleted and created again while
// nobody copied, with fewer, as many and more partitions, and with less, as
// much and more in it than was copied. Nothing is copied and nothing is called
// lost; the partitions stop.
func TestRecreatedBetweenTwoRuns(t *testing.T) {
	for _, partitions := range []int32{1, 2, 3} {
		for _, records := range []int{0, 10, 25, 40} {
			t.Run(fmt.Sprintf("%d partitions, %d records", partitions, records), func(t *testing.T) {
				t.Parallel()
				pair := stored(t)
				if err := pair.Source.CreateTopic(t.Context(), "t", 2, nil); err != nil {
					t.Fatal(err)
				}
				mustAppend(t, pair.Source.Bootstrap, append(on("t", 0, 0, 25), on("t", 1, 0, 25)...)...)
				config := configFor(t, pair, "t")
				mustRun(t, config)
				mustRecreate(t, pair, partitions)
				for p := range partitions {
					if records > 0 {
						mustAppend(t, pair.Source.Bootstrap, on("t", p, 1000, records)...)
					}
				}
				s := mustRun(t, config)
				wantTiles(t, s, nil)
				if s.Complete || s.BadTiles != 0 || len(s.Stopped) < 2 {
					t.Errorf("summary %+v", s)
				}
				for _, stop := range s.Stopped {
					if stop.Reason != replicate.StopTopicRecreated || stop.Partition < 2 && stop.Offset != 25 {
						t.Errorf("stopped %+v, want topic_recreated at 25", stop)
					}
				}
				acceptRecreated(t, pair, config, partitions, records)
			})
		}
	}
}

// acceptRecreated goes on by a person's word: each partition that the new topic
// has is copied from its start behind what the target holds.
func acceptRecreated(t *testing.T, pair *kafkatest.Pair, config replicate.Config, partitions int32, records int) {
	t.Helper()
	offline(t, config, func(book *ledger.Ledger) {
		mustOrder(t, func(o ledger.Order) error { return replicate.OrderOffline(book, o) }, ledger.Order{SourceTopic: "t", Partition: -1, AcceptRecreated: true})
	})
	s := mustRun(t, config)
	if !s.Complete || s.Tiles[ledger.Copied] != int64(partitions)*int64(records) {
		t.Errorf("accepted: %+v; want %d partitions of %d records, complete", s, partitions, records)
	}
	kafkatest.CheckLedgerAtEnd(t, config.LedgerPath)
}

// TestRecreatedWhileAFetchIsOnItsWay: a fetch that reaches the broker after the
// topic was created again brings nothing of the new one.
func TestRecreatedWhileAFetchIsOnItsWay(t *testing.T) {
	t.Parallel()
	pair := stored(t)
	mustTopic(t, pair.Source, "t", nil)
	tens(t, pair, 0, 30)
	config := livingConfig(t, pair, "t")
	mustRun(t, once(config))
	gate := make(chan struct{})
	fetch := pair.Source.MustFault(t, kafkatest.Fault{Kind: kafkatest.DelayBefore, Key: kmsg.Fetch, Gate: gate, When: asksFrom(30)})
	l := live(t, pair, config)
	if err := fetch.Wait(t.Context(), 1); err != nil {
		t.Fatal(err)
	}
	mustRecreate(t, pair, 1)
	tens(t, pair, 0, 70)
	close(gate)
	l.stopped("t", 0, replicate.StopTopicRecreated)
	if end := l.Ledger().End(l.Ledger().Pairs()[0].ID).Source; end != 30 {
		t.Errorf("the books end at %d, want 30: something of another topic got in", end)
	}
	l.end()
	if bounds, err := pair.Target.ReadBounds(t.Context(), "t", 0); err != nil || bounds.HighWatermark != 30 {
		t.Errorf("the target ends at %d, %v; want 30", bounds.HighWatermark, err)
	}
}

// TestDeletedBetweenTwoRuns: the source topic is gone. What was copied stays,
// and the partition says so.
func TestDeletedBetweenTwoRuns(t *testing.T) {
	t.Parallel()
	pair := stored(t)
	mustTopic(t, pair.Source, "t", nil)
	tens(t, pair, 0, 30)
	config := configFor(t, pair, "t")
	mustRun(t, config)
	mustDeleteTopic(t, pair.Source, "t")
	s := mustRun(t, config)
	wantTiles(t, s, nil)
	if s.Complete || s.BadTiles != 0 || len(s.Stopped) != 1 || s.Stopped[0].Reason != replicate.StopTopicDeleted || s.Stopped[0].Offset != 30 {
		t.Errorf("summary %+v, want topic_deleted at 30", s)
	}
	kafkatest.CheckLedgerAtEnd(t, config.LedgerPath)
}

// TestTargetRecreatedKeepsTheScope: what was gone from the source before the copy began
// is not lost because the target topic was created again, whichever way a person goes
// on. What was copied and is gone by then is.
func TestTargetRecreatedKeepsTheScope(t *testing.T) {
	for name, o := range map[string]ledger.Order{"accepted": {AcceptRecreated: true}, "copied again": {Recopy: true}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pair := stored(t)
			mustTopic(t, pair.Source, "t", nil)
			tens(t, pair, 0, 30)
			mustDelete(t, pair.Source, "t", 0, 10)
			config := configFor(t, pair, "t")
			wantTiles(t, mustRun(t, config), map[ledger.Tile]int64{ledger.BeforeStart: 10, ledger.Copied: 20})
			mustDelete(t, pair.Source, "t", 0, 20)
			mustDeleteTopic(t, pair.Target, "t")
			mustTopic(t, pair.Target, "t", nil)
			wantStop(t, mustRun(t, config), replicate.StopTargetRecreated)
			o.SourceTopic = "t"
			order(t, config, o)
			wantTiles(t, mustRun(t, config), map[ledger.Tile]int64{ledger.BeforeStart: 10, ledger.Lost: 10, ledger.Copied: 10})
			kafkatest.CheckLedgerAtEnd(t, config.LedgerPath)
		})
	}
}
