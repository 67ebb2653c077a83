package replicate_test

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"apograph/internal/kafkatest"
	"apograph/ledger"
	"apograph/replicate"
)

// recent gives records the time of now: of records that are older than what a
// target remembers of its producers there is never more than one batch in flight.
func recent(records ...*kgo.Record) []*kgo.Record {
	for _, r := range records {
		r.Timestamp = time.Now()
	}
	return records
}

// numberedFor is numbered, with records that let a window of that size fill.
func numberedFor(window, from, n int) []*kgo.Record {
	if window > 1 {
		return recent(numbered(from, n)...)
	}
	return numbered(from, n)
}

// holdUntilTwo keeps the answers to the second and the third batch back until
// both have been sent, where the window allows it: so it is known that two were
// in flight. A broker's connection takes the next request while an answer waits,
// but not while a request does.
func holdUntilTwo(t *testing.T, target *kafkatest.Cluster, window int) {
	t.Helper()
	if window == 1 {
		return
	}
	gate := make(chan struct{})
	held := target.MustFault(t, kafkatest.Fault{Kind: kafkatest.DelayAfter, Key: kmsg.Produce, Skip: 1, Count: 2, Gate: gate})
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer close(gate)
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		defer cancel()
		if err := held.Wait(ctx, 2); err != nil {
			t.Errorf("a window of %d, and two batches are never in flight: %v", window, err)
		}
	}()
	t.Cleanup(func() { <-done })
}

// severalInFlight returns a flow that has sent [0, 10) of a source of tens, and has
// [10, 30) or more, up to 60, in flight until the gate is closed.
func severalInFlight(t *testing.T, end int, prepare func(*kafkatest.Pair, *replicate.Config)) (pair *kafkatest.Pair, l *living, gate chan struct{}) {
	t.Helper()
	pair, gate = stored(t), make(chan struct{})
	for _, c := range []*kafkatest.Cluster{pair.Source, pair.Target} {
		mustTopic(t, c, "t", nil)
	}
	bulkyNow(t, pair, 0, end, 0)
	write := pair.Target.MustFault(t, kafkatest.Fault{Kind: kafkatest.DelayAfter, Key: kmsg.Produce, Gate: gate, Skip: 1, Count: -1})
	config := livingConfig(t, pair, "t")
	config.Window = 5
	prepare(pair, &config)
	l = live(t, pair, config)
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	if err := write.Wait(ctx, 2); err != nil {
		t.Fatal(err)
	}
	return pair, l, gate
}

// bulkyNow is bulky, with records of now.
func bulkyNow(t *testing.T, pair *kafkatest.Pair, from, to, shift int) {
	t.Helper()
	for ; from < to; from += 10 {
		records := recent(numbered(from+shift, 10)...)
		for _, r := range records {
			r.Value = append(r.Value, noise(r.Key, 2000)...)
		}
		mustAppendBatchOf(t, pair, records...)
	}
}

// TestSourceCutBehindWhatIsInFlight: batches are in flight, and more is at
// hand, when the source's log is known to be cut behind them. Of the log that is
// gone nothing more is sent.
func TestSourceCutBehindWhatIsInFlight(t *testing.T) {
	fetching, noticed := make(chan struct{}), make(chan struct{})
	var fetch *kafkatest.FaultHandle
	pair, l, gate := severalInFlight(t, 200, func(pair *kafkatest.Pair, c *replicate.Config) {
		c.Logger = slog.New(&waitForLog{Handler: c.Logger.Handler(), about: "fetched again", seen: noticed})
		fetch = pair.Source.MustFault(t, kafkatest.Fault{Kind: kafkatest.DelayBefore, Key: kmsg.Fetch, Count: -1, Gate: fetching, When: asksFrom(200)})
	})
	if err := fetch.Wait(t.Context(), 1); err != nil {
		t.Fatal(err)
	}
	if err := pair.Source.LoseTail("t", 0, 60); err != nil {
		t.Fatal(err)
	}
	bulkyNow(t, pair, 60, 250, 1000)
	diverges(pair.Source, 200, 60)
	close(fetching)
	select {
	case <-noticed:
	case <-time.After(20 * time.Second):
		t.Error("the cut was not noticed")
	}
	close(gate)
	s := l.until("t", 0, "at its end, or stopped", func(s replicate.PartitionStatus) bool {
		return s.Position == 250 || s.State == replicate.StateStopped
	})
	l.end()
	if s.State == replicate.StateStopped {
		t.Errorf("stopped because of what it did itself: %+v", s)
		return
	}
	prove(t, pair.Source.Bootstrap, pair.Target.Bootstrap, l.config.LedgerPath, "t")
}

// TestPauseWithSeveralInFlight: what is in flight when a person says to pause gets
// into the books, and nothing more is sent.
func TestPauseWithSeveralInFlight(t *testing.T) {
	pair, l, gate := severalInFlight(t, 500, func(*kafkatest.Pair, *replicate.Config) {})
	mustOrder(t, l.Order, ledger.Order{SourceTopic: "t", Partition: -1, Paused: true})
	l.stopped("t", 0, replicate.StopPaused)
	close(gate)
	l.until("t", 0, "with what was in flight in the books", func(s replicate.PartitionStatus) bool { return s.Position >= 30 })
	l.end() // no sooner than what is in flight has landed
	offline(t, l.config, func(book *ledger.Ledger) {
		if end := book.End(book.Pairs()[0].ID).Source; end > 60 {
			t.Errorf("copied up to %d, of which no more than 60 can have been in flight at the pause", end)
		}
		mustOrder(t, func(o ledger.Order) error { return replicate.OrderOffline(book, o) }, ledger.Order{SourceTopic: "t", Partition: -1})
	})
	mustComplete(t, pair, once(l.config))
}
