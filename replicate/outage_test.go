package replicate_test

import (
	"fmt"
	"net"
	"strconv"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"apograph/internal/kafkatest"
	"apograph/ledger"
	"apograph/replicate"
)

// TestLateRemoteStorage: a broker with tiered storage answers a fetch whose
// remote read is late with nothing and no error. Nothing may be concluded.
func TestLateRemoteStorage(t *testing.T) {
	for _, policy := range []string{"delete", "compact"} {
		pair := stored(t)
		mustTopic(t, pair.Source, "t", map[string]string{"cleanup.policy": policy, "remote.storage.enable": strconv.FormatBool(policy == "compact")})
		for i := range 5 {
			mustAppend(t, pair.Source.Bootstrap, numbered(10*i, 10)...)
		}
		answerNothing(pair.Source, 6, 50)
		got := mustComplete(t, pair, configFor(t, pair, "t"))
		wantTiles(t, got, map[ledger.Tile]int64{ledger.Copied: 50})
	}
}

// answerNothing answers the first n fetches with nothing, of a log that ends at
// end.
func answerNothing(c *kafkatest.Cluster, n int, end int64) {
	fake := c.Fake()
	fake.ControlKey(int16(kmsg.Fetch), func(r kmsg.Request) (kmsg.Response, error, bool) {
		fake.KeepControl()
		req := r.(*kmsg.FetchRequest)
		if n == 0 || len(req.Topics) == 0 {
			return nil, nil, false
		}
		n--
		response := req.ResponseKind().(*kmsg.FetchResponse)
		for _, asked := range req.Topics {
			topic := kmsg.NewFetchResponseTopic()
			topic.Topic, topic.TopicID = asked.Topic, asked.TopicID
			for _, p := range asked.Partitions {
				answer := kmsg.NewFetchResponseTopicPartition()
				answer.Partition, answer.HighWatermark, answer.LastStableOffset, answer.LogStartOffset = p.Partition, end, end, 0
				topic.Partitions = append(topic.Partitions, answer)
			}
			response.Topics = append(response.Topics, topic)
		}
		return response, nil, true
	})
}

// TestTailThatCannotBeCompared: what an earlier process wrote and did not book
// is gone, or may not be read. The run ends, and says so.
func TestTailThatCannotBeCompared(t *testing.T) {
	for name, want := range map[string]replicate.StopReason{
		"deleted": replicate.StopTargetLostRecords, "not readable": replicate.StopNotAuthorized,
	} {
		t.Run(name, func(t *testing.T) {
			pair := stored(t)
			config := afterCrash(t, pair, func() { mustAppend(t, pair.Source.Bootstrap, numbered(10, 10)...) })
			if name == "deleted" {
				mustDelete(t, pair.Target, "t", 0, 20)
			} else {
				pair.Target.MustFault(t, kafkatest.Fault{Kind: kafkatest.ErrorBefore, Key: kmsg.Fetch, Topic: "t", Count: -1, Err: kerr.TopicAuthorizationFailed})
			}
			s := mustRun(t, config)
			if s.Complete || len(s.Stopped) != 1 || s.Stopped[0].Reason != want {
				t.Errorf("summary %+v", s)
			}
		})
	}
}

// TestSourceCutBelowTheBooks: the source's log was cut while nobody copied, and
// is shorter than the books, as long, or longer again. None of it is complete.
func TestSourceCutBelowTheBooks(t *testing.T) {
	for _, transactional := range []bool{false, true} {
		for _, again := range []int{0, 2, 4, 10} {
			t.Run(fmt.Sprintf("transactional %v, %d new records", transactional, again), func(t *testing.T) {
				t.Parallel()
				pair := stored(t)
				mustTopic(t, pair.Source, "t", nil)
				mustAppend(t, pair.Source.Bootstrap, numbered(0, 10)...)
				if transactional {
					mustTransaction(t, pair.Source.Bootstrap, true, numbered(10, 3)...)
				} else {
					mustAppend(t, pair.Source.Bootstrap, numbered(10, 4)...)
				}
				config := configFor(t, pair, "t")
				mustRun(t, config)
				if err := pair.Source.LoseTail("t", 0, 10); err != nil {
					t.Fatal(err)
				}
				if again > 0 {
					mustAppend(t, pair.Source.Bootstrap, numbered(100, again)...)
				}
				s := mustRun(t, config)
				if s.Complete || len(s.Stopped) != 1 || s.Stopped[0].Reason != replicate.StopSourceTruncated || s.Stopped[0].Offset != 10 {
					t.Errorf("summary %+v", s)
				}
				acceptTruncation(t, pair, config, again)
			})
		}
	}
}

// acceptTruncation goes on by a person's word: the books are closed, and the
// next generation begins where the source's log was cut.
func acceptTruncation(t *testing.T, pair *kafkatest.Pair, config replicate.Config, again int) {
	t.Helper()
	book := kafkatest.OpenLedger(t, config.LedgerPath, ledger.Options{})
	if err := replicate.OrderOffline(book, ledger.Order{SourceTopic: "t", Partition: -1, AcceptTruncated: true, By: "ann"}); err != nil {
		t.Fatal(err)
	}
	if err := book.Close(); err != nil {
		t.Fatal(err)
	}
	s := mustRun(t, config)
	if !s.Complete || s.Tiles[ledger.Copied] != int64(again) || s.Tiles[ledger.BeforeStart] != 10 {
		t.Errorf("after it was accepted: %+v", s)
	}
	book = kafkatest.OpenLedger(t, config.LedgerPath, ledger.Options{ReadOnly: true})
	pairs := book.Pairs()
	if len(pairs) != 2 || pairs[0].Closed == nil || pairs[1].ScopeStart != 10 || pairs[1].TargetBase != book.End(pairs[0].ID).Target {
		t.Errorf("pairs %+v", pairs)
	}
	if orders := book.Orders(); len(orders) != 0 {
		t.Errorf("orders left: %+v", orders)
	}
}

// large returns records of their own batches' size, in one partition.
func large(topic string, partition int32, n, size int) []*kgo.Record {
	records := on(topic, partition, 0, n)
	for _, r := range records {
		r.Value = make([]byte, size)
	}
	return records
}

// TestStuckPartitionsLeaveRoom: partitions that cannot write hold no memory that
// the others need.
func TestStuckPartitionsLeaveRoom(t *testing.T) {
	pair := kafkatest.NewPair(t, kafkatest.Options{})
	for _, c := range []*kafkatest.Cluster{pair.Source, pair.Target} {
		for topic, n := range map[string]int32{"stuck": 6, "free": 1} {
			if err := c.CreateTopic(t.Context(), topic, n, nil); err != nil {
				t.Fatal(err)
			}
		}
	}
	for p := range int32(6) {
		for range 8 {
			mustAppend(t, pair.Source.Bootstrap, large("stuck", p, 1, 600_000)...)
		}
	}
	for range 40 {
		mustAppend(t, pair.Source.Bootstrap, large("free", 0, 1, 600_000)...)
	}
	config := livingConfig(t, pair, "stuck", "free")
	config.MemoryBytes = 12 << 20
	pair.Target.MustFault(t, kafkatest.Fault{Kind: kafkatest.ErrorBefore, Key: kmsg.Produce, Topic: "stuck", Count: -1, Err: kerr.NotEnoughReplicas})
	l := live(t, pair, config)
	l.at("free", 0, 40)
	l.end()
}

// TestSlowTarget: nothing is wrong but that the target takes its time, and
// partitions are many. None is called unavailable because its turn is late.
func TestSlowTarget(t *testing.T) {
	pair := kafkatest.NewPair(t, kafkatest.Options{})
	const n = 24
	for _, c := range []*kafkatest.Cluster{pair.Source, pair.Target} {
		if err := c.CreateTopic(t.Context(), "t", n, nil); err != nil {
			t.Fatal(err)
		}
	}
	for p := range int32(n) {
		for range 3 {
			mustAppend(t, pair.Source.Bootstrap, large("t", p, 1, 600_000)...)
		}
	}
	config := configFor(t, pair, "t")
	config.MemoryBytes = 12 << 20
	config.UnavailableAfter = 2 * time.Second
	pair.Target.MustFault(t, kafkatest.Fault{Kind: kafkatest.DelayBefore, Key: kmsg.Produce, Count: -1, Delay: 200 * time.Millisecond})
	if s := mustRun(t, config); !s.Complete {
		t.Errorf("summary %+v", s)
	}
}

// TestEpochBehindMarker: the broker is told which epoch stands before the
// position, also where the books end in a marker; only then can it say that its
// log was cut.
func TestEpochBehindMarker(t *testing.T) {
	for _, transactional := range []bool{false, true} {
		pair := stored(t)
		mustTopic(t, pair.Source, "t", nil)
		mustAppend(t, pair.Source.Bootstrap, numbered(0, 10)...)
		if transactional {
			mustTransaction(t, pair.Source.Bootstrap, true, numbered(10, 3)...)
		}
		config := configFor(t, pair, "t")
		mustRun(t, config)
		mustAppend(t, pair.Source.Bootstrap, numbered(20, 3)...)
		epochs := make(chan int32, 1)
		fake := pair.Source.Fake()
		fake.ControlKey(int16(kmsg.Fetch), func(r kmsg.Request) (kmsg.Response, error, bool) {
			fake.KeepControl()
			if req := r.(*kmsg.FetchRequest); len(req.Topics) > 0 {
				select {
				case epochs <- req.Topics[0].Partitions[0].LastFetchedEpoch:
				default:
				}
			}
			return nil, nil, false
		})
		mustRun(t, config)
		if got := <-epochs; got < 0 {
			t.Errorf("transactional %v: LastFetchedEpoch %d", transactional, got)
		}
	}
}

// TestTopicOfWhichMetadataSaysOnlyAnError is not left out in silence.
func TestTopicOfWhichMetadataSaysOnlyAnError(t *testing.T) {
	pair := stored(t)
	mustTopic(t, pair.Source, "t", nil)
	mustTopic(t, pair.Source, "u", nil)
	mustAppend(t, pair.Source.Bootstrap, numbered(0, 10)...)
	fake := pair.Source.Fake()
	host, text, err := net.SplitHostPort(fake.ListenAddrs()[0])
	if err != nil {
		t.Fatal(err)
	}
	port, _ := strconv.Atoi(text)
	fake.ControlKey(int16(kmsg.Metadata), func(r kmsg.Request) (kmsg.Response, error, bool) {
		fake.KeepControl()
		req := r.(*kmsg.MetadataRequest)
		if req.Topics != nil {
			return nil, nil, false
		}
		response := req.ResponseKind().(*kmsg.MetadataResponse)
		response.ClusterID = kmsg.StringPtr(pair.Source.ID())
		response.Brokers = []kmsg.MetadataResponseBroker{{Host: host, Port: int32(port)}}
		for name, code := range map[string]int16{"t": kerr.LeaderNotAvailable.Code, "u": kerr.TopicAuthorizationFailed.Code} {
			topic := kmsg.NewMetadataResponseTopic()
			topic.Topic, topic.ErrorCode = kmsg.StringPtr(name), code
			response.Topics = append(response.Topics, topic)
		}
		return response, nil, true
	})
	s := mustRun(t, configFor(t, pair, "t", "u"))
	if s.Complete || len(s.Stopped) != 2 || s.Stopped[0].Reason != replicate.StopUnavailable || s.Stopped[1].Reason != replicate.StopNotAuthorized {
		t.Errorf("summary %+v", s)
	}
}

// TestHighWatermarkThatStays: one target partition whose end does not come
// below its high watermark holds up no other.
func TestHighWatermarkThatStays(t *testing.T) {
	pair := stored(t)
	for _, c := range []*kafkatest.Cluster{pair.Source, pair.Target} {
		mustTopic(t, c, "t", nil)
		mustTopic(t, c, "u", nil)
	}
	mustAppend(t, pair.Source.Bootstrap, on("u", 0, 0, 10)...)
	mustAppend(t, pair.Target.Bootstrap, numbered(0, 1)...)
	release, err := pair.Target.HoldHighWatermark("t", 0, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer release()
	config := configFor(t, pair, "t", "u")
	config.UnavailableAfter = 3 * time.Second
	s := mustRun(t, config)
	if s.Complete || s.Tiles[ledger.Copied] != 10 || len(s.Stopped) != 1 || s.Stopped[0].Reason != replicate.StopUnavailable {
		t.Errorf("summary %+v", s)
	}
}

// TestLateRequestOfTheDead: a request of the process before, which joined small
// batches otherwise, lands while this one waits for its answer.
func TestLateRequestOfTheDead(t *testing.T) {
	pair := stored(t)
	mustTopic(t, pair.Source, "t", nil)
	mustAppend(t, pair.Source.Bootstrap, numbered(0, 10)...)
	config := configFor(t, pair, "t")
	mustRun(t, config)
	book := kafkatest.OpenLedger(t, config.LedgerPath, ledger.Options{ReadOnly: true})
	producer := book.Pairs()[0].Producer
	if err := book.Close(); err != nil {
		t.Fatal(err)
	}
	mustAppend(t, pair.Source.Bootstrap, numbered(10, 5)...)
	mustAppend(t, pair.Source.Bootstrap, numbered(15, 5)...)
	gate := make(chan struct{})
	fault := pair.Target.MustFault(t, kafkatest.Fault{Kind: kafkatest.DelayBefore, Key: kmsg.Produce, Gate: gate})
	landed := make(chan error, 1)
	go func() {
		defer close(gate)
		if err := fault.Wait(t.Context(), 1); err != nil {
			landed <- err
			return
		}
		b := kafkatest.NewBatch(0)
		for i, r := range numbered(10, 5) {
			at := r.Timestamp.UnixMilli()
			b.Records = append(b.Records, kafkatest.BatchRecord{OffsetDelta: int32(i), Timestamp: at, Key: r.Key, Value: r.Value})
			b.MaxTimestamp = at
		}
		b.LastOffsetDelta = 4
		b.ProducerID, b.ProducerEpoch, b.BaseSequence = producer.ID, producer.Epoch, 10
		raw, err := b.Encode()
		if err == nil {
			_, err = pair.Target.AppendBatch(t.Context(), "t", 0, raw)
		}
		landed <- err
	}()
	mustComplete(t, pair, config)
	if err := <-landed; err != nil {
		t.Error(err)
	}
}
