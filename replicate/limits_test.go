package replicate_test

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"apograph/internal/kafkatest"
	"apograph/ledger"
	"apograph/replicate"
)

// TestMemoryUnderASlowTarget: the target takes far longer than the source, and
// far more is to be copied than may be held. What is held stays below the
// setting; where batches are joined, what they become is held beside what they
// were made of.
func TestMemoryUnderASlowTarget(t *testing.T) {
	for _, tt := range []struct {
		codec kafkatest.Codec
		most  int64
	}{{kafkatest.Zstd, 12 << 20}, {kafkatest.None, 24 << 20}} {
		t.Run(fmt.Sprint(tt.codec), func(t *testing.T) { memoryUnderASlowTarget(t, tt.codec, tt.most) })
	}
}

func memoryUnderASlowTarget(t *testing.T, codec kafkatest.Codec, allowed int64) {
	pair := kafkatest.NewPair(t, kafkatest.Options{})
	const partitions, batches, size = 4, 60, 200_000 // 48 MB
	for _, c := range []*kafkatest.Cluster{pair.Source, pair.Target} {
		if err := c.CreateTopic(t.Context(), "t", partitions, nil); err != nil {
			t.Fatal(err)
		}
	}
	for p := range int32(partitions) {
		for i := range batches {
			record := &kgo.Record{Topic: "t", Partition: p, Value: noise(fmt.Append(nil, p, i), size)}
			if err := pair.Source.Bootstrap.Append(t.Context(), codec, record); err != nil {
				t.Fatal(err)
			}
		}
	}
	pair.Target.MustFault(t, kafkatest.Fault{Kind: kafkatest.DelayBefore, Key: kmsg.Produce, Count: -1, Delay: 20 * time.Millisecond})
	config := livingConfig(t, pair, "t")
	config.MemoryBytes = 12 << 20
	l := live(t, pair, config)
	var most int64
	for p := range int32(partitions) {
		l.until("t", p, "at its end", func(s replicate.PartitionStatus) bool {
			most = max(most, l.HeldBytes())
			return s.Position == batches
		})
	}
	t.Logf("at most %d bytes were held, of %d allowed and %d copied", most, allowed, partitions*batches*size)
	if most > allowed || most < 2<<20 {
		t.Errorf("at most %d bytes were held, want some, and no more than %d", most, allowed)
	}
	l.end()
}

// TestHugeBatchOfZeros: what is tiny on the wire and huge inside is copied up to
// a bound, and beyond it stops its partition, naming the bound.
func TestHugeBatchOfZeros(t *testing.T) {
	for _, tt := range []struct {
		records, size int
		stops         bool
	}{{1, 100 << 20, false}, {260, 1 << 20, true}} {
		t.Run(fmt.Sprintf("%d of %d MiB", tt.records, tt.size>>20), func(t *testing.T) {
			pair := stored(t)
			mustTopic(t, pair.Source, "t", nil)
			mustAppend(t, pair.Source.Bootstrap, numbered(0, 3)...)
			records := make([]kafkatest.BatchRecord, tt.records)
			zeros := make([]byte, tt.size)
			for i := range records {
				records[i] = kafkatest.BatchRecord{OffsetDelta: int32(i), Timestamp: 1, Value: zeros}
			}
			b := kafkatest.NewBatch(0, records...)
			b.Codec = kafkatest.Zstd
			raw := encode(t, b)
			if len(raw) > 200_000 {
				t.Fatalf("%d bytes on the wire", len(raw))
			}
			if _, err := pair.Source.AppendBatch(t.Context(), "t", 0, raw); err != nil {
				t.Fatal(err)
			}
			config := configFor(t, pair, "t")
			config.MemoryBytes = 1 << 20
			s := mustRun(t, config)
			switch {
			case tt.stops:
				if len(s.Stopped) != 1 || s.Stopped[0].Offset != 3 || s.Stopped[0].Reason != replicate.StopCorruptSourceBatch || !strings.Contains(s.Stopped[0].Detail, fmt.Sprint(256<<20)) {
					t.Errorf("summary %+v, want stopped at 3, naming the bound", s)
				}
				wantTiles(t, s, map[ledger.Tile]int64{ledger.Copied: 3})
			case !s.Complete || s.Tiles[ledger.Copied] != int64(3+tt.records):
				t.Errorf("summary %+v", s)
			}
			kafkatest.CheckLedgerAtEnd(t, config.LedgerPath)
		})
	}
}

// TestClocks: records of 1970, of before and of the future are copied like any
// other, in order, and no lag is negative.
func TestClocks(t *testing.T) {
	pair := stored(t)
	mustTopic(t, pair.Source, "t", nil)
	future := time.Now().Add(60 * time.Second).UnixMilli()
	times := []int64{future, 0, 1, -1, future + 1, 5, 7_258_118_400_000, time.Now().UnixMilli(), 0}
	for _, at := range times {
		b := kafkatest.NewBatch(0, kafkatest.BatchRecord{Timestamp: at, Key: fmt.Append(nil, at), Value: []byte("v")})
		b.BaseTimestamp, b.MaxTimestamp = at, at
		if _, err := pair.Source.AppendBatch(t.Context(), "t", 0, encode(t, b)); err != nil {
			t.Fatal(err)
		}
	}
	config := livingConfig(t, pair, "t")
	l := live(t, pair, config)
	l.until("t", 0, "at its end, with no negative lag on the way", func(s replicate.PartitionStatus) bool {
		if s.LagRecords >= 0 && s.Lag < 0 && s.State != replicate.StateStopped && s.Position > 0 {
			t.Errorf("status %+v", s)
		}
		return s.Position == int64(len(times))
	})
	if s := l.end(); !s.Complete || s.BadTiles != 0 {
		t.Errorf("summary %+v", s)
	}
	prove(t, pair.Source.Bootstrap, pair.Target.Bootstrap, config.LedgerPath, "t")
	records, err := pair.Target.ReadCommitted(t.Context(), "t", 0)
	if err != nil || len(records) != len(times) {
		t.Fatalf("%d records, %v", len(records), err)
	}
	for i, r := range records {
		if r.Timestamp != times[i] {
			t.Errorf("record %d is of %d, want %d", i, r.Timestamp, times[i])
		}
	}
}

// TestSequenceWrap: sequence numbers go from 2^31-1 to 0, inside a batch and
// between two.
func TestSequenceWrap(t *testing.T) {
	for _, left := range []int32{1, 10, 15, 30} {
		t.Run(fmt.Sprintf("%d left", left), func(t *testing.T) {
			t.Parallel()
			pair := stored(t)
			mustTopic(t, pair.Source, "t", nil)
			mustAppend(t, pair.Source.Bootstrap, numbered(0, 10)...)
			config := configFor(t, pair, "t")
			mustRun(t, config)
			request := kmsg.NewPtrInitProducerIDRequest()
			request.TransactionTimeoutMillis = 60_000
			id, err := request.RequestWith(t.Context(), pair.Target.NewClient(t))
			if err != nil {
				t.Fatal(err)
			}
			offline(t, config, func(book *ledger.Ledger) {
				pair := book.Pairs()[0].ID
				producer := ledger.Producer{ID: id.ProducerID, Epoch: id.ProducerEpoch, Sequence: math.MaxInt32 - left + 1, Appended: book.End(pair).Appended}
				if err := book.SetProducer(pair, producer); err != nil {
					t.Fatal(err)
				}
			})
			bulky(t, pair, 10, 60, 0)
			mustComplete(t, pair, config)
			bulky(t, pair, 60, 80, 0)
			mustComplete(t, pair, config)
		})
	}
}

// TestOffsetsNearTheEnd: a log whose offsets are close to 2^63 is copied.
func TestOffsetsNearTheEnd(t *testing.T) {
	pair := stored(t)
	mustTopic(t, pair.Source, "t", nil)
	mustAppend(t, pair.Source.Bootstrap, numbered(0, 10)...)
	mustAppend(t, pair.Source.Bootstrap, numbered(10, 10)...)
	const base = math.MaxInt64 - 40
	err := pair.Source.EditLog("t", 0, func(log *kafkatest.Log) error {
		for i, raw := range log.Batches {
			b, err := kafkatest.DecodeBatch(raw)
			if err != nil {
				return err
			}
			b.BaseOffset += base
			log.Batches[i] = encode(t, b)
		}
		log.Start = base
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	config := configFor(t, pair, "t")
	s := mustRun(t, config)
	wantTiles(t, s, map[ledger.Tile]int64{ledger.BeforeStart: base, ledger.Copied: 20})
	if !s.Complete {
		t.Errorf("summary %+v", s)
	}
	mustAppend(t, pair.Source.Bootstrap, numbered(20, 10)...)
	s = mustRun(t, config)
	wantTiles(t, s, map[ledger.Tile]int64{ledger.Copied: 10})
	kafkatest.CheckLedgerAtEnd(t, config.LedgerPath)
}
