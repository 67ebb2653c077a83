package replicate_test

import (
	"errors"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"apograph/internal/kafkatest"
	"apograph/ledger"
	"apograph/replicate"
)

// offline lets a person, or somebody who edits the ledger, do something to a
// flow that does not run.
func offline(t *testing.T, config replicate.Config, do func(*ledger.Ledger)) {
	t.Helper()
	book := kafkatest.OpenLedger(t, config.LedgerPath, ledger.Options{})
	do(book)
	if err := book.Close(); err != nil {
		t.Fatal(err)
	}
}

// once is a run with an end of a flow that otherwise has none.
func once(config replicate.Config) replicate.Config {
	config.Once = true
	return config
}

// TestAcceptanceThatWasNotNeededIsTakenBack: what is cut later is not accepted
// by it.
func TestAcceptanceThatWasNotNeededIsTakenBack(t *testing.T) {
	t.Parallel()
	pair := stored(t)
	mustTopic(t, pair.Source, "t", nil)
	mustAppend(t, pair.Source.Bootstrap, numbered(0, 5)...)
	config := livingConfig(t, pair, "t")
	mustRun(t, once(config))
	offline(t, config, func(book *ledger.Ledger) {
		stop := ledger.Stop{SourceTopic: "t", Offset: 5, Reason: string(replicate.StopSourceTruncated), SinceMillis: 1}
		if err := errors.Join(book.SetStop(stop), book.Commit()); err != nil {
			t.Fatal(err)
		}
		mustOrder(t, func(o ledger.Order) error { return replicate.OrderOffline(book, o) }, ledger.Order{SourceTopic: "t", AcceptTruncated: true})
	})
	l := live(t, pair, config)
	mustAppend(t, pair.Source.Bootstrap, numbered(5, 5)...)
	l.at("t", 0, 10)
	if orders := l.Ledger().Orders(); len(orders) > 0 {
		t.Errorf("the partition went on, and orders are left: %+v", orders)
	}
	l.end()
}

// TestSkipOfAPartitionAtWorkIsRefused: what it names may be on its way.
func TestSkipOfAPartitionAtWorkIsRefused(t *testing.T) {
	t.Parallel()
	pair := stored(t)
	mustTopic(t, pair.Source, "t", nil)
	mustTopic(t, pair.Target, "t", nil)
	l := live(t, pair, livingConfig(t, pair, "t"))
	l.at("t", 0, 0)
	gate := make(chan struct{})
	produce := pair.Target.MustFault(t, kafkatest.Fault{Kind: kafkatest.DelayBefore, Key: kmsg.Produce, Topic: "t", Count: 1, Gate: gate})
	mustAppend(t, pair.Source.Bootstrap, numbered(0, 5)...)
	if err := produce.Wait(t.Context(), 1); err != nil {
		t.Fatal(err)
	}
	l.until("t", 0, "known to be behind", func(s replicate.PartitionStatus) bool { return s.SourceEnd == 5 })
	err := l.Order(ledger.Order{SourceTopic: "t", Skip: ledger.Range{Start: 0, End: 3}, Reason: "x"})
	var usage *replicate.UsageError
	if !errors.As(err, &usage) {
		t.Errorf("error %v, want a UsageError", err)
	}
	close(gate)
	l.at("t", 0, 5)
	if orders := l.Ledger().Orders(); len(orders) > 0 {
		t.Errorf("all was copied, and orders are left: %+v", orders)
	}
	l.end()
}

// TestResumedOfflineIsNotPaused: the ledger of a flow that does not run says so
// at once.
func TestResumedOfflineIsNotPaused(t *testing.T) {
	t.Parallel()
	pair := stored(t)
	mustTopic(t, pair.Source, "t", nil)
	config := livingConfig(t, pair, "t")
	l := live(t, pair, config)
	l.at("t", 0, 0)
	mustOrder(t, l.Order, ledger.Order{SourceTopic: "t", Partition: -1, Paused: true})
	l.stopped("t", 0, replicate.StopPaused)
	l.end()
	offline(t, config, func(book *ledger.Ledger) {
		if stops := book.Stops(); len(stops) != 1 || stops[0].Reason != string(replicate.StopPaused) {
			t.Errorf("paused, and stops in the ledger are %+v", stops)
		}
		mustOrder(t, func(o ledger.Order) error { return replicate.OrderOffline(book, o) }, ledger.Order{SourceTopic: "t", Partition: -1})
		if stops := book.Stops(); len(stops) > 0 {
			t.Errorf("resumed, and stops in the ledger are %+v", stops)
		}
	})
}

// TestPauseDoesNotHideWhatIsToBeAccepted: a partition that was paused after it
// had stopped can still be told to accept why.
func TestPauseDoesNotHideWhatIsToBeAccepted(t *testing.T) {
	t.Parallel()
	pair := stored(t)
	mustTopic(t, pair.Source, "t", nil)
	mustAppend(t, pair.Source.Bootstrap, numbered(0, 5)...)
	config := livingConfig(t, pair, "t")
	l := live(t, pair, config)
	l.at("t", 0, 5)
	mustDeleteTopic(t, pair.Source, "t")
	mustTopic(t, pair.Source, "t", nil)
	l.stopped("t", 0, replicate.StopTopicRecreated)
	mustOrder(t, l.Order, ledger.Order{SourceTopic: "t", Paused: true})
	l.stopped("t", 0, replicate.StopPaused)
	l.end()
	l = live(t, pair, config)
	l.stopped("t", 0, replicate.StopPaused)
	mustOrder(t, l.Order, ledger.Order{SourceTopic: "t", AcceptRecreated: true})
	mustAppend(t, pair.Source.Bootstrap, numbered(100, 7)...)
	l.at("t", 0, 7)
	l.end()
}

// TestResumeWhileABatchIsInFlight: what was sent before a pause is booked, and
// then the copy goes on.
func TestResumeWhileABatchIsInFlight(t *testing.T) {
	t.Parallel()
	pair := stored(t)
	mustTopic(t, pair.Source, "t", nil)
	mustTopic(t, pair.Target, "t", nil)
	l := live(t, pair, livingConfig(t, pair, "t"))
	l.at("t", 0, 0)
	gate := make(chan struct{})
	produce := pair.Target.MustFault(t, kafkatest.Fault{Kind: kafkatest.DelayAfter, Key: kmsg.Produce, Topic: "t", Count: 1, Gate: gate})
	mustAppend(t, pair.Source.Bootstrap, numbered(0, 5)...)
	if err := produce.Wait(t.Context(), 1); err != nil {
		t.Fatal(err)
	}
	mustOrder(t, l.Order, ledger.Order{SourceTopic: "t", Paused: true})
	l.stopped("t", 0, replicate.StopPaused)
	mustOrder(t, l.Order, ledger.Order{SourceTopic: "t"})
	close(gate)
	mustAppend(t, pair.Source.Bootstrap, numbered(5, 5)...)
	l.at("t", 0, 10)
	l.end()
	prove(t, pair.Source.Bootstrap, pair.Target.Bootstrap, l.config.LedgerPath, "t")
}

// TestResumeLooksAtTheTargetAnew: what the target held when the flow began says
// nothing about a partition that is resumed later.
func TestResumeLooksAtTheTargetAnew(t *testing.T) {
	t.Parallel()
	pair := stored(t)
	mustTopic(t, pair.Source, "t", nil)
	mustAppend(t, pair.Source.Bootstrap, numbered(0, 5)...)
	config := livingConfig(t, pair, "t")
	mustRun(t, once(config))
	offline(t, config, func(book *ledger.Ledger) {
		mustOrder(t, func(o ledger.Order) error { return replicate.OrderOffline(book, o) }, ledger.Order{SourceTopic: "t", Paused: true})
	})
	l := live(t, pair, config)
	l.stopped("t", 0, replicate.StopPaused)
	mustAppend(t, pair.Target.Bootstrap, numbered(900, 1)...) // by somebody else
	mustAppend(t, pair.Source.Bootstrap, numbered(5, 5)...)
	produce := pair.Target.MustFault(t, kafkatest.Fault{Kind: kafkatest.DelayBefore, Key: kmsg.Produce, Topic: "t", Count: -1, Delay: time.Nanosecond})
	mustOrder(t, l.Order, ledger.Order{SourceTopic: "t"})
	l.stopped("t", 0, replicate.StopForeignWriter)
	if produce.Hits() > 0 {
		t.Errorf("%d batches were sent behind another writer's record", produce.Hits())
	}
	l.end()
}

// TestOrdersWhileTheFlowEnds: an order is carried out or refused, and sets
// nothing to work that outlives the flow.
func TestOrdersWhileTheFlowEnds(t *testing.T) {
	t.Parallel()
	for range 5 {
		pair := kafkatest.NewPair(t, kafkatest.Options{})
		mustTopic(t, pair.Source, "a", nil)
		l := live(t, pair, livingConfig(t, pair, "a"))
		l.at("a", 0, 0)
		given, refused := make(chan struct{}), make(chan struct{})
		go func() {
			defer close(refused)
			for i := range 5_000 {
				if l.Order(ledger.Order{SourceTopic: "a", Partition: -1, Paused: i%2 == 0}) != nil {
					return
				}
				if i == 10 {
					close(given)
				}
			}
			t.Error("no order was refused")
		}()
		select {
		case <-given:
		case <-refused:
			t.Fatal("an order was refused before the end")
		}
		l.stop(errStop)
		_, _ = l.Wait()
		if l.Order(ledger.Order{SourceTopic: "a", Partition: -1}) == nil {
			t.Error("an order was taken after the end")
		}
		<-refused
		l.end()
	}
}
