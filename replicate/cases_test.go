package replicate_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"apograph/internal/kafkatest"
	"apograph/ledger"
	"apograph/replicate"
)

// Offsets and their fates are those of the worked cases: small logs whose right
// copy is known by hand.

// stored returns a pair of clusters whose logs are kept, so that they can be
// edited.
func stored(t *testing.T) *kafkatest.Pair {
	t.Helper()
	return kafkatest.NewPair(t, kafkatest.Options{DataDir: t.TempDir()})
}

func mustTopic(t *testing.T, c *kafkatest.Cluster, topic string, configs map[string]string) {
	t.Helper()
	if err := c.CreateTopic(t.Context(), topic, 1, configs); err != nil {
		t.Fatal(err)
	}
}

// numbered returns n records of topic "t" with values from, from+1, ...
func numbered(from, n int) []*kgo.Record {
	records := make([]*kgo.Record, n)
	for i := range records {
		records[i] = &kgo.Record{
			Topic: "t", Key: fmt.Appendf(nil, "k%d", from+i), Value: fmt.Appendf(nil, "v%d", from+i),
			Timestamp: time.UnixMilli(1_700_000_000_000 + int64(from+i)),
		}
	}
	return records
}

func mustAppend(t *testing.T, b kafkatest.Bootstrap, records ...*kgo.Record) {
	t.Helper()
	if err := b.Append(t.Context(), kafkatest.None, records...); err != nil {
		t.Fatal(err)
	}
}

func mustTransaction(t *testing.T, b kafkatest.Bootstrap, commit bool, records ...*kgo.Record) {
	t.Helper()
	if err := b.AppendTransaction(t.Context(), "tx", commit, records...); err != nil {
		t.Fatal(err)
	}
}

// mustRun copies and expects no error.
func mustRun(t *testing.T, config replicate.Config) replicate.Summary {
	t.Helper()
	summary, err := replicate.Run(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	return summary
}

// mustComplete copies, expects a complete copy, and proves it.
func mustComplete(t *testing.T, pair *kafkatest.Pair, config replicate.Config) replicate.Summary {
	t.Helper()
	summary := mustRun(t, config)
	if !summary.Complete {
		t.Errorf("not complete: %+v", summary)
	}
	prove(t, pair.Source.Bootstrap, pair.Target.Bootstrap, config.LedgerPath, "t")
	return summary
}

func wantTiles(t *testing.T, got replicate.Summary, want map[ledger.Tile]int64) {
	t.Helper()
	for tile, n := range got.Tiles {
		if n != want[ledger.Tile(tile)] {
			t.Errorf("%d offsets are %v, want %d", n, ledger.Tile(tile), want[ledger.Tile(tile)])
		}
	}
}

func editSource(t *testing.T, pair *kafkatest.Pair, edit func(batches [][]byte) [][]byte) {
	t.Helper()
	err := pair.Source.EditLog("t", 0, func(l *kafkatest.Log) error {
		l.Batches = edit(l.Batches)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func encode(t *testing.T, b kafkatest.Batch) []byte {
	t.Helper()
	raw, err := b.Encode()
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

func TestAbortedTransaction(t *testing.T) {
	// 0-4 plain; 5-7 aborted; 8 its marker; 9-11 plain.
	pair := stored(t)
	mustTopic(t, pair.Source, "t", nil)
	mustAppend(t, pair.Source.Bootstrap, numbered(0, 5)...)
	mustTransaction(t, pair.Source.Bootstrap, false, numbered(5, 3)...)
	mustAppend(t, pair.Source.Bootstrap, numbered(9, 3)...)
	got := mustComplete(t, pair, configFor(t, pair, "t"))
	wantTiles(t, got, map[ledger.Tile]int64{ledger.Copied: 8, ledger.Aborted: 3, ledger.AbortMarker: 1})
}

func TestCompactedBatch(t *testing.T) {
	// Of 0-9 only 3 and 9 are left.
	pair := stored(t)
	mustTopic(t, pair.Source, "t", map[string]string{"cleanup.policy": "compact"})
	mustAppend(t, pair.Source.Bootstrap, numbered(0, 10)...)
	editSource(t, pair, func([][]byte) [][]byte {
		b := kafkatest.NewBatch(0)
		b.LastOffsetDelta = 9
		b.Records = []kafkatest.BatchRecord{
			{OffsetDelta: 3, Timestamp: 5, Key: []byte("k3"), Value: []byte("v3")},
			{OffsetDelta: 9, Timestamp: 7, Key: []byte("k9"), Value: []byte("v9")},
		}
		return [][]byte{encode(t, b)}
	})
	config := configFor(t, pair, "t")
	got := mustComplete(t, pair, config)
	wantTiles(t, got, map[ledger.Tile]int64{ledger.Copied: 2, ledger.Compacted: 8})
	again := mustComplete(t, pair, config)
	wantTiles(t, again, nil)
}

func TestCompactedTailOfTheLastBatch(t *testing.T) {
	// Of 0-9 only 3 is left: the position is the batch's end, not the record's.
	pair := stored(t)
	mustTopic(t, pair.Source, "t", nil)
	mustAppend(t, pair.Source.Bootstrap, numbered(0, 10)...)
	editSource(t, pair, func([][]byte) [][]byte {
		b := kafkatest.NewBatch(0)
		b.LastOffsetDelta = 9
		b.Records = []kafkatest.BatchRecord{{OffsetDelta: 3, Timestamp: 5, Key: []byte("k3")}}
		return [][]byte{encode(t, b)}
	})
	got := mustComplete(t, pair, configFor(t, pair, "t"))
	wantTiles(t, got, map[ledger.Tile]int64{ledger.Copied: 1, ledger.Compacted: 9})
}

func TestEmptyBatchInTheMiddle(t *testing.T) {
	// 0-4, an empty batch 5-9, 10-12.
	pair := stored(t)
	mustTopic(t, pair.Source, "t", nil)
	for _, from := range []int{0, 5, 10} {
		mustAppend(t, pair.Source.Bootstrap, numbered(from, min(5, 13-from))...)
	}
	editSource(t, pair, func(batches [][]byte) [][]byte {
		empty := kafkatest.NewBatch(5)
		empty.LastOffsetDelta, empty.BaseTimestamp = 4, -1
		batches[1] = encode(t, empty)
		return batches
	})
	got := mustComplete(t, pair, configFor(t, pair, "t"))
	wantTiles(t, got, map[ledger.Tile]int64{ledger.Copied: 8, ledger.Compacted: 5})
}

func TestOpenTransactionAtTheEnd(t *testing.T) {
	// 0-9 plain, 10 open, 11-19 plain: only 10 can be copied until it ends.
	pair := stored(t)
	mustTopic(t, pair.Source, "t", nil)
	mustAppend(t, pair.Source.Bootstrap, numbered(0, 10)...)
	producer, err := pair.Source.TransactionalProducer("open", kafkatest.None)
	if err != nil {
		t.Fatal(err)
	}
	defer producer.Close()
	if err := errors.Join(producer.Begin(), producer.Append(t.Context(), numbered(10, 1)...)); err != nil {
		t.Fatal(err)
	}
	mustAppend(t, pair.Source.Bootstrap, numbered(11, 9)...)
	config := configFor(t, pair, "t")
	got := mustRun(t, config)
	if got.Complete || len(got.Waiting) != 1 || got.Waiting[0].Offset != 10 || got.Waiting[0].ProducerID < 0 ||
		got.Waiting[0].Since.UnixMilli() != 1_700_000_000_010 || got.BehindOpenTransaction != 10 {
		t.Errorf("summary %+v, want waiting at offset 10 since the time of record 10", got)
	}
	wantTiles(t, got, map[ledger.Tile]int64{ledger.Copied: 10})
	if err := producer.End(t.Context(), true); err != nil {
		t.Fatal(err)
	}
	got = mustComplete(t, pair, config)
	wantTiles(t, got, map[ledger.Tile]int64{ledger.Copied: 10, ledger.CommitMarker: 1})
}

func TestSourceBrokerStampsTimes(t *testing.T) {
	// Consumers see the time of the append; so must those of the target.
	pair := stored(t)
	mustTopic(t, pair.Source, "t", nil)
	mustAppend(t, pair.Source.Bootstrap, numbered(0, 4)...)
	if err := pair.Source.StampAppendTime("t", 0, time.UnixMilli(5000)); err != nil {
		t.Fatal(err)
	}
	mustComplete(t, pair, configFor(t, pair, "t"))
	records, err := pair.Target.ReadCommitted(t.Context(), "t", 0)
	if err != nil || len(records) != 4 || records[2].Timestamp != 5000 {
		t.Errorf("target records %v %v, want 4 of time 5000", records, err)
	}
}

func TestCodecsAndFramings(t *testing.T) {
	pair := stored(t)
	mustTopic(t, pair.Source, "t", nil)
	for _, codec := range kafkatest.Codecs() {
		if err := pair.Source.Append(t.Context(), codec, numbered(0, 1)...); err != nil {
			t.Fatal(err)
		}
	}
	config := configFor(t, pair, "t")
	mustComplete(t, pair, config)
	records, err := pair.Target.ReadCommitted(t.Context(), "t", 0)
	if err != nil || len(records) != len(kafkatest.Codecs()) {
		t.Fatalf("%d records, %v", len(records), err)
	}
	for _, r := range records {
		if string(r.Value) != "v0" {
			t.Errorf("value %q at %d", r.Value, r.Offset)
		}
	}
}

func TestLargeRecordCompressesSmall(t *testing.T) {
	// 3 MB of zeros are a few hundred bytes in a zstd batch: the limit of the
	// target is about those.
	pair := stored(t)
	mustTopic(t, pair.Source, "t", nil)
	b := kafkatest.NewBatch(0, kafkatest.BatchRecord{Timestamp: 1, Value: make([]byte, 3<<20)})
	b.Codec = kafkatest.Zstd
	if _, err := pair.Source.AppendBatch(t.Context(), "t", 0, encode(t, b)); err != nil {
		t.Fatal(err)
	}
	mustComplete(t, pair, configFor(t, pair, "t"))
}

func TestRecordTooLargeStopsItsPartitionAlone(t *testing.T) {
	pair := stored(t)
	if err := pair.Source.CreateTopic(t.Context(), "t", 2, map[string]string{"max.message.bytes": "2000000"}); err != nil {
		t.Fatal(err)
	}
	if err := pair.Target.CreateTopic(t.Context(), "t", 2, map[string]string{"max.message.bytes": "100000"}); err != nil {
		t.Fatal(err)
	}
	batch := numbered(0, 3)
	batch[1].Value = slices.Repeat([]byte("x"), 150_000)
	other := numbered(0, 5)
	for _, r := range other {
		r.Partition = 1
	}
	mustAppend(t, pair.Source.Bootstrap, batch...)
	mustAppend(t, pair.Source.Bootstrap, other...)
	config := configFor(t, pair, "t")
	got := mustRun(t, config)
	if got.Complete || len(got.Stopped) != 1 {
		t.Fatalf("summary %+v, want one stopped partition", got)
	}
	stop := got.Stopped[0]
	if stop.Reason != replicate.StopRecordTooLarge || stop.Partition != 0 || stop.Offset != 1 || !strings.Contains(stop.Detail, "100000") {
		t.Errorf("stopped %+v, want partition 0 at offset 1 with the limit", stop)
	}
	wantTiles(t, got, map[ledger.Tile]int64{ledger.Copied: 6})
	kafkatest.CheckLedgerAtEnd(t, config.LedgerPath)
}

func TestCorruptPayloadStopsAtItsOffset(t *testing.T) {
	pair := stored(t)
	mustTopic(t, pair.Source, "t", nil)
	mustAppend(t, pair.Source.Bootstrap, numbered(0, 5)...)
	mustAppend(t, pair.Source.Bootstrap, numbered(5, 5)...)
	editSource(t, pair, func(batches [][]byte) [][]byte {
		bad := kafkatest.NewBatch(5)
		bad.Codec, bad.Payload, bad.Count, bad.LastOffsetDelta = kafkatest.LZ4, []byte("not an lz4 frame"), 5, 4
		batches[1] = encode(t, bad)
		return batches
	})
	config := configFor(t, pair, "t")
	got := mustRun(t, config)
	if len(got.Stopped) != 1 || got.Stopped[0].Offset != 5 || got.Stopped[0].Reason != replicate.StopCorruptSourceBatch ||
		!strings.Contains(got.Stopped[0].Detail, "lz4") {
		t.Errorf("stopped %+v, want at offset 5, naming the codec", got.Stopped)
	}
	wantTiles(t, got, map[ledger.Tile]int64{ledger.Copied: 5})
	kafkatest.CheckLedgerAtEnd(t, config.LedgerPath)
}

func TestBelowTheLogStartAtFirstSight(t *testing.T) {
	pair := stored(t)
	mustTopic(t, pair.Source, "t", nil)
	mustAppend(t, pair.Source.Bootstrap, numbered(0, 100)...)
	if err := pair.Source.DeleteRecords("t", 0, 50); err != nil { // inside a batch
		t.Fatal(err)
	}
	got := mustComplete(t, pair, configFor(t, pair, "t"))
	wantTiles(t, got, map[ledger.Tile]int64{ledger.Copied: 50, ledger.BeforeStart: 50})
}

// TestLogStartMovesBeforeTheFirstFetch: scope begins with the first successful
// fetch, not with the look before it.
func TestLogStartMovesBeforeTheFirstFetch(t *testing.T) {
	pair := stored(t)
	mustTopic(t, pair.Source, "t", nil)
	for from := range 4 {
		mustAppend(t, pair.Source.Bootstrap, numbered(10*from, 10)...)
	}
	gate := make(chan struct{})
	fetch := pair.Source.MustFault(t, kafkatest.Fault{Kind: kafkatest.DelayBefore, Key: kmsg.Fetch, Gate: gate})
	go func() {
		_ = fetch.Wait(t.Context(), 1)
		if err := pair.Source.DeleteRecords("t", 0, 20); err != nil {
			t.Error(err)
		}
		close(gate)
	}()
	got := mustComplete(t, pair, configFor(t, pair, "t"))
	wantTiles(t, got, map[ledger.Tile]int64{ledger.Copied: 20, ledger.BeforeStart: 20})
}

func TestLogStartOvertakesAStoppedCopier(t *testing.T) {
	pair := stored(t)
	mustTopic(t, pair.Source, "t", nil)
	for from := range 10 {
		mustAppend(t, pair.Source.Bootstrap, numbered(10*from, 10)...)
	}
	config := configFor(t, pair, "t")
	mustComplete(t, pair, config)
	for from := range 10 {
		mustAppend(t, pair.Source.Bootstrap, numbered(100+10*from, 10)...)
	}
	if err := pair.Source.DeleteRecords("t", 0, 150); err != nil {
		t.Fatal(err)
	}
	got := mustRun(t, config)
	wantTiles(t, got, map[ledger.Tile]int64{ledger.Copied: 50, ledger.Lost: 50})
	if got.Complete || got.BadTiles != 50 {
		t.Errorf("summary %+v: a loss is never complete", got)
	}
	l := kafkatest.OpenLedger(t, config.LedgerPath, ledger.Options{ReadOnly: true})
	e, err := l.FindSource(l.Pairs()[0].ID, 120)
	if err != nil || e.Tile != ledger.Lost || e.Source != (ledger.Range{Start: 100, End: 150}) || e.Cause == ledger.CauseNone || e.LastKnownMillis == 0 {
		t.Errorf("entry %+v %v, want lost [100, 150) with cause and last known time", e, err)
	}
}

func TestGapThatNothingExplains(t *testing.T) {
	pair := stored(t)
	mustTopic(t, pair.Source, "t", nil)
	for from := range 3 {
		mustAppend(t, pair.Source.Bootstrap, numbered(5*from, 5)...)
	}
	editSource(t, pair, func(batches [][]byte) [][]byte { return slices.Delete(batches, 1, 2) })
	config := configFor(t, pair, "t")
	got := mustRun(t, config)
	wantTiles(t, got, map[ledger.Tile]int64{ledger.Copied: 10, ledger.Unexplained: 5})
	if got.Complete || got.BadTiles != 5 {
		t.Errorf("summary %+v: an unexplained gap is never complete", got)
	}
	kafkatest.CheckLedgerAtEnd(t, config.LedgerPath)
}

func TestGapBetweenBatchesOfACompactedTopic(t *testing.T) {
	pair := stored(t)
	mustTopic(t, pair.Source, "t", map[string]string{"cleanup.policy": "compact"})
	for from := range 3 {
		mustAppend(t, pair.Source.Bootstrap, numbered(5*from, 5)...)
	}
	editSource(t, pair, func(batches [][]byte) [][]byte { return slices.Delete(batches, 1, 2) })
	got := mustComplete(t, pair, configFor(t, pair, "t"))
	wantTiles(t, got, map[ledger.Tile]int64{ledger.Copied: 10, ledger.Compacted: 5})
}

func TestPartitionAddedLaterStartsAtZero(t *testing.T) {
	pair := stored(t)
	mustTopic(t, pair.Source, "t", nil)
	mustAppend(t, pair.Source.Bootstrap, numbered(0, 5)...)
	config := configFor(t, pair, "t")
	mustComplete(t, pair, config)
	admin := pair.Source.NewClient(t)
	growTopic(t, admin, "t", 2)
	late := numbered(0, 20)
	for _, r := range late {
		r.Partition = 1
	}
	mustAppend(t, pair.Source.Bootstrap, late[:10]...)
	mustAppend(t, pair.Source.Bootstrap, late[10:]...)
	if err := pair.Source.DeleteRecords("t", 1, 10); err != nil {
		t.Fatal(err)
	}
	got := mustRun(t, config)
	wantTiles(t, got, map[ledger.Tile]int64{ledger.Copied: 10, ledger.Lost: 10})
	kafkatest.CheckLedgerAtEnd(t, config.LedgerPath)
}

func TestTargetThatIsNotEmptyIsRefused(t *testing.T) {
	pair := stored(t)
	for _, c := range []*kafkatest.Cluster{pair.Source, pair.Target} {
		mustTopic(t, c, "t", nil)
	}
	mustAppend(t, pair.Source.Bootstrap, numbered(0, 5)...)
	mustAppend(t, pair.Target.Bootstrap, numbered(100, 2)...)
	config := configFor(t, pair, "t")
	_, err := replicate.Run(t.Context(), config)
	var usage *replicate.UsageError
	if !errors.As(err, &usage) {
		t.Fatalf("error %v, want a UsageError", err)
	}
	if _, err := os.Stat(config.LedgerPath); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a ledger was written: %v", err)
	}

	for _, name := range []string{"T", "u"} {
		config.Append = []string{"t", name}
		if _, err := replicate.Run(t.Context(), config); !errors.As(err, &usage) || !strings.Contains(err.Error(), "--append names "+name) {
			t.Errorf("--append %q: error %v", name, err)
		}
	}
	t.Run("unless told to append", func(t *testing.T) {
		config.Append = []string{"t"}
		got := mustRun(t, config)
		if !got.Complete || got.Tiles[ledger.Copied] != 5 {
			t.Errorf("summary %+v", got)
		}
		l := kafkatest.OpenLedger(t, config.LedgerPath, ledger.Options{ReadOnly: true})
		if base := l.Pairs()[0].TargetBase; base != 2 {
			t.Errorf("target base %d, want 2", base)
		}
	})
}

func TestAppendBehindCopiesIsRefused(t *testing.T) {
	pair := stored(t)
	for _, c := range []*kafkatest.Cluster{pair.Source, pair.Target} {
		mustTopic(t, c, "t", nil)
		mustAppend(t, c.Bootstrap, numbered(0, 5)...)
	}
	config := configFor(t, pair, "t")
	config.Append = []string{"t"}
	_, err := replicate.Run(t.Context(), config)
	var refused *replicate.RefusedError
	if !errors.As(err, &refused) {
		t.Fatalf("error %v, want a RefusedError", err)
	}
}

// TestAppendBesideBooks: what the flow itself has copied is no reason to refuse
// that it appends to a partition of the same topic in which there were strangers.
func TestAppendBesideBooks(t *testing.T) {
	pair := stored(t)
	mustTopic(t, pair.Source, "t", nil)
	mustAppend(t, pair.Source.Bootstrap, numbered(0, 5)...)
	config := configFor(t, pair, "t")
	mustComplete(t, pair, config)
	for _, c := range []*kafkatest.Cluster{pair.Source, pair.Target} {
		mustGrow(t, c, "t", 2)
	}
	mustAppend(t, pair.Target.Bootstrap, &kgo.Record{Topic: "t", Partition: 1, Value: []byte("a stranger")})
	mustAppend(t, pair.Source.Bootstrap, &kgo.Record{Topic: "t", Partition: 1, Value: []byte("x")})
	for _, s := range mustRun(t, config).Stopped {
		if s.Reason != replicate.StopTargetNotEmpty {
			t.Errorf("stopped: %+v, want target_not_empty", s)
		}
	}
	config.Append = []string{"t"}
	got := mustRun(t, config)
	if !got.Complete || len(got.Stopped) > 0 {
		t.Errorf("not complete: %+v", got)
	}
	wantTiles(t, got, map[ledger.Tile]int64{ledger.Copied: 1})
	kafkatest.CheckLedgerAtEnd(t, config.LedgerPath)
}

func TestTargetTopicOfAnExistingFlowStopsAlone(t *testing.T) {
	pair := stored(t)
	mustTopic(t, pair.Source, "t", nil)
	mustAppend(t, pair.Source.Bootstrap, numbered(0, 5)...)
	config := configFor(t, pair, ".*")
	mustComplete(t, pair, config)
	for _, c := range []*kafkatest.Cluster{pair.Source, pair.Target} {
		mustTopic(t, c, "u", nil)
		mustAppend(t, c.Bootstrap, &kgo.Record{Topic: "u", Value: []byte("x")})
	}
	mustAppend(t, pair.Source.Bootstrap, numbered(5, 5)...)
	got := mustRun(t, config)
	if len(got.Stopped) != 1 || got.Stopped[0].Topic != "u" || got.Stopped[0].Reason != replicate.StopTargetNotEmpty {
		t.Errorf("stopped %+v, want topic u, target_not_empty", got.Stopped)
	}
	wantTiles(t, got, map[ledger.Tile]int64{ledger.Copied: 5})
	kafkatest.CheckLedgerAtEnd(t, config.LedgerPath)
}

func TestWhatCannotRun(t *testing.T) {
	pair := stored(t)
	mustTopic(t, pair.Source, "t", nil)
	tests := []struct {
		name   string
		change func(*replicate.Config)
	}{
		{"nothing matches", func(c *replicate.Config) { c.Topics = []string{"nothing.*"} }},
		{"a broken pattern", func(c *replicate.Config) { c.Topics = []string{"*"} }},
		{"one cluster on both sides", func(c *replicate.Config) { c.Target = clusterOf("target", pair.Source.Bootstrap) }},
		{"Kafka's own offsets", func(c *replicate.Config) { c.Topics = []string{"__consumer_offsets"} }},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			config := configFor(t, pair, "t")
			tt.change(&config)
			_, err := replicate.Run(t.Context(), config)
			var usage *replicate.UsageError
			if !errors.As(err, &usage) {
				t.Errorf("error %v, want a UsageError", err)
			}
			if _, err := os.Stat(config.LedgerPath); !errors.Is(err, os.ErrNotExist) {
				t.Error("a ledger was written")
			}
		})
	}
}

func TestLedgerOfAnotherFlow(t *testing.T) {
	pair := stored(t)
	mustTopic(t, pair.Source, "t", nil)
	config := configFor(t, pair, "t")
	mustRun(t, config)
	config.Source.Alias = "another"
	var usage *replicate.UsageError
	if _, err := replicate.Run(t.Context(), config); !errors.As(err, &usage) {
		t.Errorf("error %v, want a UsageError", err)
	}
	kafkatest.CheckLedgerAtEnd(t, config.LedgerPath)
}

func TestStopAndGoOn(t *testing.T) {
	pair := stored(t)
	load := kafkatest.Load{Seed: 5, Topics: []string{"t"}, Partitions: 1, Records: 4000, MaxValueBytes: 20_000}
	if err := load.Run(t.Context(), pair.Source.Bootstrap); err != nil {
		t.Fatal(err)
	}
	config := configFor(t, pair, "t")
	config.Once = false
	stop := errors.New("stop")
	ctx, cancel := context.WithCancelCause(t.Context())
	seen := pair.Target.MustFault(t, kafkatest.Fault{Kind: kafkatest.DelayAfter, Key: kmsg.Produce, Count: -1, Delay: 1})
	go func() {
		if err := seen.Wait(ctx, 5); err == nil {
			cancel(stop)
		}
	}()
	if _, err := replicate.Run(ctx, config); !errors.Is(err, stop) {
		t.Fatalf("error %v, want the context's cause", err)
	}
	l, err := ledger.Open(config.LedgerPath, ledger.Options{ReadOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	bounds, err := pair.Target.ReadBounds(t.Context(), "t", 0)
	if err != nil {
		t.Fatal(err)
	}
	if end := l.Committed(l.Pairs()[0].ID).Target; end != bounds.HighWatermark {
		t.Errorf("after a clean stop the book ends at %d, the target at %d", end, bounds.HighWatermark)
	}
	l.Close()
	config.Once = true
	mustComplete(t, pair, config)
	if used := producers(t, config); len(used) != 1 {
		t.Errorf("producers %v: the numbers of the first one did not go on", used)
	}
}
