package replicate_test

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"apograph/internal/kafkatest"
	"apograph/ledger"
	"apograph/replicate"
)

// bulky appends records [from, to) of topic t, with values from plus shift, in
// batches of ten that are sent as they are.
func bulky(t *testing.T, pair *kafkatest.Pair, from, to, shift int) {
	t.Helper()
	for ; from < to; from += 10 {
		records := numbered(from+shift, 10)
		for _, r := range records {
			r.Value = append(r.Value, noise(r.Key, 2000)...)
		}
		mustAppendBatchOf(t, pair, records...)
	}
}

// diverges answers fetches from an offset on, by who knows epoch 1 before it, as
// a broker does whose log has another epoch from offset end on.
func diverges(c *kafkatest.Cluster, next, end int64) {
	fake := c.Fake()
	fake.ControlKey(int16(kmsg.Fetch), func(r kmsg.Request) (kmsg.Response, error, bool) {
		fake.KeepControl()
		if !asksFrom(next)(r) || r.(*kmsg.FetchRequest).Topics[0].Partitions[0].LastFetchedEpoch != 1 {
			return nil, nil, false
		}
		answer := kmsg.NewFetchResponseTopicPartition()
		answer.DivergingEpoch.Epoch, answer.DivergingEpoch.EndOffset = 1, end
		return fetchAnswer(r, answer), nil, true
	})
}

// TestSourceCutDuringTheCopy has [0, 100) at hand, of which some is booked, ten
// records are in flight, and the rest is not sent, when the source's log is cut
// and goes on in another way, to an end below or above what was fetched. What
// was fetched and not sent is dropped; a cut below what was sent stops the
// partition.
func TestSourceCutDuringTheCopy(t *testing.T) {
	for _, booked := range []int64{0, 10} {
		for _, cut := range []int64{0, 10, 20, 50} {
			for _, end := range []int64{60, 120} {
				t.Run(fmt.Sprintf("booked %d, cut at %d, new end %d", booked, cut, end), func(t *testing.T) {
					t.Parallel()
					cutDuringTheCopy(t, booked, cut, end)
				})
			}
		}
	}
}

func cutDuringTheCopy(t *testing.T, booked, cut, end int64) {
	pair := stored(t)
	mustTopic(t, pair.Source, "t", nil)
	mustTopic(t, pair.Target, "t", nil)
	bulky(t, pair, 0, 100, 0)
	fetching, writing := make(chan struct{}), make(chan struct{})
	fetch := pair.Source.MustFault(t, kafkatest.Fault{Kind: kafkatest.DelayBefore, Key: kmsg.Fetch, Count: -1, Gate: fetching, When: asksFrom(100)})
	write := pair.Target.MustFault(t, kafkatest.Fault{Kind: kafkatest.DelayBefore, Key: kmsg.Produce, Gate: writing, Skip: int(booked) / 10})
	config := livingConfig(t, pair, "t")
	config.Window = 1 // what is sent when the cut comes is one batch
	noticed, about := make(chan struct{}), "fetched again"
	if cut < booked { // it is below what is in the books when it is noticed
		about = "partition stopped"
	}
	config.Logger = slog.New(&waitForLog{Handler: config.Logger.Handler(), about: about, seen: noticed})
	l := live(t, pair, config)
	for _, f := range []*kafkatest.FaultHandle{fetch, write} {
		if err := f.Wait(t.Context(), 1); err != nil {
			t.Fatal(err)
		}
	}
	if err := pair.Source.LoseTail("t", 0, cut); err != nil {
		t.Fatal(err)
	}
	bulky(t, pair, int(cut), int(end), 1000)
	if end > 100 { // else it is out of range, as where the epoch is not known
		diverges(pair.Source, 100, cut)
	}
	close(fetching)
	select {
	case <-noticed:
	case <-time.After(20 * time.Second):
		t.Errorf("no message %q", about)
	}
	close(writing)
	if sent := booked + 10; cut >= sent {
		l.at("t", 0, end)
		l.end()
		prove(t, pair.Source.Bootstrap, pair.Target.Bootstrap, l.config.LedgerPath, "t")
		return
	}
	l.until("t", 0, "stopped, with what was sent in the books", func(s replicate.PartitionStatus) bool {
		return s.Reason == replicate.StopSourceTruncated && s.Position == booked+10
	})
	l.end()
}

// A waitForLog is a log that closes a channel at the first message about
// something.
type waitForLog struct {
	slog.Handler
	about string
	once  sync.Once
	seen  chan struct{}
}

func (w *waitForLog) Handle(ctx context.Context, r slog.Record) error {
	if strings.Contains(r.Message, w.about) {
		w.once.Do(func() { close(w.seen) })
	}
	return w.Handler.Handle(ctx, r)
}

// TestDivergenceBelowTheBooks: the broker's word that its log parts from what is
// in the books stops the partition.
func TestDivergenceBelowTheBooks(t *testing.T) {
	pair := stored(t)
	mustTopic(t, pair.Source, "t", nil)
	tens(t, pair, 0, 30)
	config := configFor(t, pair, "t")
	mustRun(t, config)
	tens(t, pair, 30, 60)
	diverges(pair.Source, 30, 20)
	s := mustRun(t, config)
	if s.Complete || len(s.Stopped) != 1 || s.Stopped[0].Reason != replicate.StopSourceTruncated || s.Stopped[0].Offset != 20 {
		t.Errorf("summary %+v, want source_truncated, the logs parting at 20", s)
	}
	wantTiles(t, s, nil)
	if err := pair.Source.Restart(); err != nil { // nobody says so any more
		t.Fatal(err)
	}
	s = mustRun(t, config)
	if s.Complete || len(s.Stopped) != 1 || s.Stopped[0].Reason != replicate.StopSourceTruncated || s.Stopped[0].Offset != 20 {
		t.Errorf("forgotten: %+v", s)
	}
	offline(t, config, func(book *ledger.Ledger) {
		mustOrder(t, func(o ledger.Order) error { return replicate.OrderOffline(book, o) }, ledger.Order{SourceTopic: "t", Partition: -1, AcceptTruncated: true})
	})
	s = mustRun(t, config)
	wantTiles(t, s, map[ledger.Tile]int64{ledger.BeforeStart: 20, ledger.Copied: 40})
	if !s.Complete {
		t.Errorf("accepted: %+v", s)
	}
	kafkatest.CheckLedgerAtEnd(t, config.LedgerPath)
}

// TestEndBelowThePositionProvesNothing: after an election a leader can say for
// a moment that the log ends lower than it does.
func TestEndBelowThePositionProvesNothing(t *testing.T) {
	pair := stored(t)
	mustTopic(t, pair.Source, "t", nil)
	tens(t, pair, 0, 30)
	config := configFor(t, pair, "t")
	mustRun(t, config)
	tens(t, pair, 30, 60)
	fake, refusals, ends := pair.Source.Fake(), 0, 0
	fake.ControlKey(int16(kmsg.Fetch), func(r kmsg.Request) (kmsg.Response, error, bool) {
		fake.KeepControl()
		if refusals == 3 || !asksFrom(30)(r) {
			return nil, nil, false
		}
		refusals++
		answer := kmsg.NewFetchResponseTopicPartition()
		answer.ErrorCode, answer.HighWatermark, answer.LastStableOffset, answer.LogStartOffset = kerr.OffsetOutOfRange.Code, -1, -1, -1
		return fetchAnswer(r, answer), nil, true
	})
	fake.ControlKey(int16(kmsg.ListOffsets), func(r kmsg.Request) (kmsg.Response, error, bool) {
		fake.KeepControl()
		if refusals == 0 || ends == 3 || asksLogStart(r) {
			return nil, nil, false
		}
		ends++
		return offsetAnswer(r, 20), nil, true
	})
	wantTiles(t, mustComplete(t, pair, config), map[ledger.Tile]int64{ledger.Copied: 30})
	if ends != 3 {
		t.Errorf("the end was asked for %d times, want 3", ends)
	}
}

// TestCutThatTheBrokerCannotSee: the books end in offsets of no known epoch, so
// that the broker is not told what stands before the position. A new leader's
// log was cut below it and is longer than it again when the next fetch comes.
func TestCutThatTheBrokerCannotSee(t *testing.T) {
	pair := stored(t)
	mustTopic(t, pair.Source, "t", nil)
	tens(t, pair, 0, 20)
	editSource(t, pair, func(batches [][]byte) [][]byte { // 10 to 19 are compacted away, and so is what said so
		empty := kafkatest.NewBatch(10)
		empty.LastOffsetDelta, empty.BaseTimestamp, empty.LeaderEpoch = 9, -1, 1
		batches[1] = encode(t, empty)
		return batches
	})
	config := configFor(t, pair, "t")
	mustRun(t, config)
	mustDelete(t, pair.Source, "t", 0, 20)
	tens(t, pair, 20, 30)
	mustDelete(t, pair.Source, "t", 0, 30)
	config.Once, config.RefreshInterval, config.RetryAfter = false, 100*time.Millisecond, 50*time.Millisecond
	l := live(t, pair, config)
	l.at("t", 0, 30) // by a lost tile, which knows no epoch
	gate := make(chan struct{})
	fetch := pair.Source.MustFault(t, kafkatest.Fault{Kind: kafkatest.DelayBefore, Key: kmsg.Fetch, Count: -1, Gate: gate})
	if err := fetch.Wait(t.Context(), 1); err != nil {
		t.Fatal(err)
	}
	err := pair.Source.EditLog("t", 0, func(log *kafkatest.Log) error {
		log.Batches, log.Start, log.End, log.LeaderEpoch = nil, 8, 8, log.LeaderEpoch+1
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	mustAppend(t, pair.Source.Bootstrap, numbered(1000, 40)...)
	close(gate)
	l.stopped("t", 0, replicate.StopSourceTruncated)
	if end := l.Ledger().End(l.Ledger().Pairs()[0].ID).Source; end != 30 {
		t.Errorf("the books end at %d, want 30: something of another log got in", end)
	}
	l.end()
}

// transactionWith appends records 2 and 3 in a transaction, with others of nobody's
// transaction behind them, and ends it: 0, 1, 2, 3, those, marker.
func transactionWith(t *testing.T, pair *kafkatest.Pair, commit bool, between int) {
	t.Helper()
	mustAppend(t, pair.Source.Bootstrap, numbered(0, 2)...)
	producer, err := pair.Source.TransactionalProducer("long", kafkatest.None)
	if err != nil {
		t.Fatal(err)
	}
	defer producer.Close()
	if err := producer.Begin(); err != nil {
		t.Fatal(err)
	}
	if err := producer.Append(t.Context(), numbered(2, 2)...); err != nil {
		t.Fatal(err)
	}
	mustAppend(t, pair.Source.Bootstrap, numbered(4, between)...)
	if err := producer.End(t.Context(), commit); err != nil {
		t.Fatal(err)
	}
}

// decideAnew ends the transaction once more, whose marker a cut took.
func decideAnew(t *testing.T, pair *kafkatest.Pair, commit bool) {
	t.Helper()
	err := pair.Source.EditLog("t", 0, func(l *kafkatest.Log) error {
		data, err := kafkatest.DecodeBatch(l.Batches[1])
		if err != nil {
			return err
		}
		marker := kafkatest.Marker(l.End, data.ProducerID, data.ProducerEpoch, commit, 1700000000000)
		marker.LeaderEpoch = l.LeaderEpoch
		raw, err := marker.Encode()
		l.Batches = append(l.Batches, raw)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestCutTookAMarker: the source's log was cut between the data of a transaction and
// its marker, and the transaction ends in the other way then, or in the same, before
// or after the cut is accepted. Whatever the source gives to consumers is on the
// target; what the target has beyond that is in the books of the generation that ended.
func TestCutTookAMarker(t *testing.T) {
	for _, first := range []bool{true, false} {
		for _, then := range []bool{true, false} {
			for _, late := range []bool{true, false} {
				for _, between := range []int{0, 3} {
					t.Run(fmt.Sprintf("committed %v, then %v, after the order %v, %d records between", first, then, late, between), func(t *testing.T) {
						cutTookMarker(t, first, then, late, between)
					})
				}
			}
		}
	}
}

func cutTookMarker(t *testing.T, first, then, late bool, between int) {
	pair := stored(t)
	mustTopic(t, pair.Source, "t", nil)
	transactionWith(t, pair, first, between)
	config := configFor(t, pair, "t")
	if s := mustRun(t, config); !s.Complete {
		t.Fatalf("summary %+v", s)
	}
	cut := int64(4 + between)
	mustLoseTail(t, pair.Source, cut)
	wantStop(t, mustRun(t, config), replicate.StopSourceTruncated)
	if !late {
		decideAnew(t, pair, then)
	}
	order(t, config, ledger.Order{SourceTopic: "t", AcceptTruncated: true})
	s := mustRun(t, config)
	if late {
		if s.Complete || len(s.Waiting) != 1 || s.Waiting[0].Offset != 2 {
			t.Errorf("complete %v, waiting %+v, with a transaction that is open at 2", s.Complete, s.Waiting)
		}
		decideAnew(t, pair, then)
		s = mustRun(t, config)
	}
	if !s.Complete {
		t.Errorf("summary %+v", s)
	}
	proveNothingMissing(t, pair)
	kafkatest.CheckLedgerAtEnd(t, config.LedgerPath)
	offline(t, config, func(book *ledger.Ledger) {
		start := cut
		if !first && (then || late) {
			start = 2
		}
		if pairs := book.Pairs(); len(pairs) != 2 || pairs[1].ScopeStart != start {
			t.Errorf("pairs %+v, want the second to begin at source offset %d", pairs, start)
		}
	})
}
