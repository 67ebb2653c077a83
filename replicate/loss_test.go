package replicate_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"apograph/internal/kafkatest"
	"apograph/ledger"
	"apograph/replicate"
)

// wantLost holds the book of partition 0 to exactly one range that was lost.
func wantLost(t *testing.T, path string, want ledger.Range, cause ledger.Cause) {
	t.Helper()
	book := kafkatest.OpenLedger(t, path, ledger.Options{ReadOnly: true})
	defer book.Close()
	id := book.Pairs()[len(book.Pairs())-1].ID
	if n := book.Totals(id).Tiles; n[ledger.Lost] != want.Len() || n[ledger.Unexplained] != 0 {
		t.Errorf("%d offsets lost, %d unexplained; want %v lost", n[ledger.Lost], n[ledger.Unexplained], want)
	}
	for at := want.Start; at < want.End; at++ {
		e, err := book.FindSource(id, at)
		if err != nil || e.Tile != ledger.Lost || e.Cause != cause || e.LastKnownMillis == 0 || e.Source.Start < want.Start || e.Source.End > want.End {
			t.Errorf("offset %d: %+v %v; want lost by %v, last known at some time", at, e, err, cause)
			return
		}
	}
}

// tens appends records [from, to) of topic t in batches of ten.
func tens(t *testing.T, pair *kafkatest.Pair, from, to int) {
	t.Helper()
	for ; from < to; from += 10 {
		mustAppend(t, pair.Source.Bootstrap, numbered(from, 10)...)
	}
}

// asksFrom selects fetches that ask a partition for an offset.
func asksFrom(offset int64) func(kmsg.Request) bool {
	return func(r kmsg.Request) bool {
		for _, topic := range r.(*kmsg.FetchRequest).Topics {
			for _, p := range topic.Partitions {
				if p.FetchOffset == offset {
					return true
				}
			}
		}
		return false
	}
}

// TestLogStartPassesThePosition moves the source's log start beyond what was
// copied, at every moment of the copy: inside a batch, between two, and down to
// the whole log. What is gone is lost, exactly, and the copy goes on.
func TestLogStartPassesThePosition(t *testing.T) {
	moments := map[string]func(*testing.T, *kafkatest.Pair, int64) replicate.Config{
		"between two runs": lossBetweenRuns, "while stopped": lossWhileStopped,
		"in the middle of a fetch": lossDuringFetch, "twice in a row": lossTwice,
	}
	extents := map[int64]ledger.Cause{ // the records are from 2023
		45: ledger.CauseDeleteRecords, 60: ledger.CauseRetention, 100: ledger.CauseRetention,
	}
	for name, lose := range moments {
		for start, cause := range extents {
			t.Run(fmt.Sprintf("%s, log start %d", name, start), func(t *testing.T) {
				t.Parallel()
				pair := stored(t)
				mustTopic(t, pair.Source, "t", nil)
				tens(t, pair, 0, 30)
				config := lose(t, pair, start)
				wantLost(t, config.LedgerPath, ledger.Range{Start: 30, End: start}, cause)
				mustAppend(t, pair.Source.Bootstrap, numbered(100, 5)...)
				s := mustRun(t, once(config))
				if s.Complete || s.BadTiles != start-30 || len(s.Stopped) > 0 {
					t.Errorf("a later run: %+v; want nothing stopped, and never complete", s)
				}
				wantLost(t, config.LedgerPath, ledger.Range{Start: 30, End: start}, cause)
				records, err := pair.Target.ReadCommitted(t.Context(), "t", 0)
				if want := int(30 + 105 - start); err != nil || len(records) != want || string(records[30].Value) != fmt.Sprintf("v%d", start) {
					t.Errorf("%d records on the target, %v; want %d, with %d behind 29", len(records), err, want, start)
				}
				kafkatest.CheckLedgerAtEnd(t, config.LedgerPath)
			})
		}
	}
}

func lossBetweenRuns(t *testing.T, pair *kafkatest.Pair, start int64) replicate.Config {
	config := configFor(t, pair, "t")
	mustRun(t, config)
	tens(t, pair, 30, 100)
	mustDelete(t, pair.Source, "t", 0, start)
	s := mustRun(t, config)
	wantTiles(t, s, map[ledger.Tile]int64{ledger.Lost: start - 30, ledger.Copied: 100 - start})
	return config
}

func lossWhileStopped(t *testing.T, pair *kafkatest.Pair, start int64) replicate.Config {
	l := live(t, pair, livingConfig(t, pair, "t"))
	l.at("t", 0, 30)
	mustOrder(t, l.Order, ledger.Order{SourceTopic: "t", Partition: -1, Paused: true})
	l.stopped("t", 0, replicate.StopPaused)
	tens(t, pair, 30, 100)
	mustDelete(t, pair.Source, "t", 0, start)
	mustOrder(t, l.Order, ledger.Order{SourceTopic: "t", Partition: -1})
	l.at("t", 0, 100)
	l.end()
	return l.config
}

// lossDuringFetch has the first records at hand, not yet written, and a fetch
// of what follows on its way, when the log start passes both.
func lossDuringFetch(t *testing.T, pair *kafkatest.Pair, start int64) replicate.Config {
	mustTopic(t, pair.Target, "t", nil)
	fetching, writing := make(chan struct{}), make(chan struct{})
	fetch := pair.Source.MustFault(t, kafkatest.Fault{Kind: kafkatest.DelayBefore, Key: kmsg.Fetch, Gate: fetching, When: asksFrom(30)})
	write := pair.Target.MustFault(t, kafkatest.Fault{Kind: kafkatest.DelayBefore, Key: kmsg.Produce, Gate: writing})
	l := live(t, pair, livingConfig(t, pair, "t"))
	for _, f := range []*kafkatest.FaultHandle{fetch, write} {
		if err := f.Wait(t.Context(), 1); err != nil {
			t.Fatal(err)
		}
	}
	tens(t, pair, 30, 100)
	mustDelete(t, pair.Source, "t", 0, start)
	close(fetching)
	close(writing)
	l.at("t", 0, 100)
	l.end()
	return l.config
}

// lossTwice moves the log start again, after it was asked for and before what
// stands there was fetched.
func lossTwice(t *testing.T, pair *kafkatest.Pair, start int64) replicate.Config {
	config := livingConfig(t, pair, "t")
	mustRun(t, once(config))
	tens(t, pair, 30, 100)
	mustDelete(t, pair.Source, "t", 0, 40)
	gate := make(chan struct{})
	fetch := pair.Source.MustFault(t, kafkatest.Fault{Kind: kafkatest.DelayBefore, Key: kmsg.Fetch, Gate: gate, When: asksFrom(40)})
	l := live(t, pair, config)
	if err := fetch.Wait(t.Context(), 1); err != nil {
		t.Fatal(err)
	}
	mustDelete(t, pair.Source, "t", 0, start)
	close(gate)
	l.at("t", 0, 100)
	l.end()
	return config
}

// TestCauseOfALossBetweenRuns: the settings of the topic, and the age of what
// was copied before, tell who deleted.
func TestCauseOfALossBetweenRuns(t *testing.T) {
	for name, tt := range map[string]struct {
		configs map[string]string
		age     time.Duration
		want    ledger.Cause
	}{
		"the topic does not delete":      {map[string]string{"retention.ms": "-1"}, 9999 * time.Hour, ledger.CauseDeleteRecords},
		"the topic compacts":             {map[string]string{"cleanup.policy": "compact"}, 9999 * time.Hour, ledger.CauseDeleteRecords},
		"what was copied is younger":     {map[string]string{"retention.ms": "3600000"}, 10 * time.Minute, ledger.CauseDeleteRecords},
		"what was copied is older":       {map[string]string{"retention.ms": "3600000"}, 2 * time.Hour, ledger.CauseRetention},
		"by size, which needs no age":    {map[string]string{"retention.ms": "3600000", "retention.bytes": "100"}, 10 * time.Minute, ledger.CauseRetention},
		"the target stamps its own time": {map[string]string{"retention.ms": "3600000", "x": "stamp"}, 2 * time.Hour, ledger.CauseRetention},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pair := stored(t)
			if tt.configs["x"] != "" {
				delete(tt.configs, "x")
				mustTopic(t, pair.Target, "t", map[string]string{"message.timestamp.type": "LogAppendTime"})
			}
			mustTopic(t, pair.Source, "t", tt.configs)
			for i := range 6 {
				records := numbered(10*i, 10)
				for _, r := range records {
					r.Timestamp = time.Now().Add(-tt.age)
				}
				mustAppend(t, pair.Source.Bootstrap, records...)
				if i == 2 {
					config := configFor(t, pair, "t")
					mustRun(t, config)
					defer func() {
						mustDelete(t, pair.Source, "t", 0, 40)
						mustRun(t, config)
						wantLost(t, config.LedgerPath, ledger.Range{Start: 30, End: 40}, tt.want)
					}()
				}
			}
		})
	}
}

// TestCauseOfALossAfterASettingChanged: retention begins to delete at once when
// somebody lets it, and the settings that the flow knows are those of before.
func TestCauseOfALossAfterASettingChanged(t *testing.T) {
	pair := stored(t)
	mustTopic(t, pair.Source, "t", map[string]string{"retention.ms": "-1"})
	tens(t, pair, 0, 30)
	config := livingConfig(t, pair, "t")
	config.RefreshInterval = time.Hour
	l := live(t, pair, config)
	l.at("t", 0, 30)
	mustOrder(t, l.Order, ledger.Order{SourceTopic: "t", Partition: -1, Paused: true})
	l.stopped("t", 0, replicate.StopPaused)
	tens(t, pair, 30, 100)
	change := []kadm.AlterConfig{{Op: kadm.SetConfig, Name: "retention.ms", Value: kadm.StringPtr("60000")}}
	if _, err := admin(t, pair.Source.Bootstrap).AlterTopicConfigs(t.Context(), change, "t"); err != nil {
		t.Fatal(err)
	}
	mustDelete(t, pair.Source, "t", 0, 60)
	mustOrder(t, l.Order, ledger.Order{SourceTopic: "t", Partition: -1})
	l.at("t", 0, 100)
	l.end()
	wantLost(t, config.LedgerPath, ledger.Range{Start: 30, End: 60}, ledger.CauseRetention)
}

// TestLogStartThatWasNotSo: a leader says that the position is out of range and
// that its log starts higher, and the next one has all of it: nothing is lost.
func TestLogStartThatWasNotSo(t *testing.T) {
	t.Parallel()
	pair := stored(t)
	mustTopic(t, pair.Source, "t", nil)
	tens(t, pair, 0, 30)
	config := configFor(t, pair, "t")
	mustRun(t, config)
	tens(t, pair, 30, 100)
	fake := pair.Source.Fake()
	refused, wrong := false, false
	fake.ControlKey(int16(kmsg.Fetch), func(r kmsg.Request) (kmsg.Response, error, bool) {
		fake.KeepControl()
		if refused || !asksFrom(30)(r) {
			return nil, nil, false
		}
		refused = true
		answer := kmsg.NewFetchResponseTopicPartition()
		answer.ErrorCode, answer.HighWatermark, answer.LastStableOffset, answer.LogStartOffset = kerr.OffsetOutOfRange.Code, -1, -1, -1
		return fetchAnswer(r, answer), nil, true
	})
	fake.ControlKey(int16(kmsg.ListOffsets), func(r kmsg.Request) (kmsg.Response, error, bool) {
		fake.KeepControl()
		if !refused || wrong || !asksLogStart(r) {
			return nil, nil, false
		}
		wrong = true
		return offsetAnswer(r, 50), nil, true
	})
	wantTiles(t, mustComplete(t, pair, config), map[ledger.Tile]int64{ledger.Copied: 70})
	if !wrong {
		t.Error("the log start was not asked for")
	}
}

// fetchAnswer answers a fetch of one partition.
func fetchAnswer(r kmsg.Request, answer kmsg.FetchResponseTopicPartition) *kmsg.FetchResponse {
	request := r.(*kmsg.FetchRequest)
	response := request.ResponseKind().(*kmsg.FetchResponse)
	topic := kmsg.NewFetchResponseTopic()
	topic.Topic, topic.TopicID = request.Topics[0].Topic, request.Topics[0].TopicID
	topic.Partitions = append(topic.Partitions, answer)
	response.Topics = append(response.Topics, topic)
	return response
}

// offsetAnswer answers a question for an offset of partition 0 of topic t.
func offsetAnswer(r kmsg.Request, offset int64) *kmsg.ListOffsetsResponse {
	response := r.(*kmsg.ListOffsetsRequest).ResponseKind().(*kmsg.ListOffsetsResponse)
	topic := kmsg.NewListOffsetsResponseTopic()
	topic.Topic = "t"
	p := kmsg.NewListOffsetsResponseTopicPartition()
	p.Offset = offset
	topic.Partitions = append(topic.Partitions, p)
	response.Topics = append(response.Topics, topic)
	return response
}
