package main

import (
	"context"
	"io"
	"net"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/twmb/franz-go/pkg/kgo"
	"go.uber.org/goleak"

	"apograph/bench/workload"
	"apograph/internal/kafkatest"
	"apograph/internal/recordbatch"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func testContext(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(cancel)
	return ctx
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// TestCopierCopies has it copy records with headers, nulls and transactions, whose
// markers end each partition, and compares with the oracle's reader; and sees that
// the comparison of the runs notices one record more.
func TestCopierCopies(t *testing.T) {
	ctx := testContext(t)
	pair := kafkatest.NewPair(t, kafkatest.Options{})
	must(t, kafkatest.Load{Seed: 3, Topics: []string{"a"}, Partitions: 3, Records: 600}.Run(ctx, pair.Source.Bootstrap))
	source, target := pair.Source.Server(), pair.Target.Server()
	must(t, copierCommand(ctx, []string{"-source", source, "-target", target, "-topic", "a", "-codec", "lz4"}))

	want, err := pair.Source.ReadTopic(ctx, "a")
	must(t, err)
	got, err := pair.Target.ReadTopic(ctx, "a")
	must(t, err)
	records := int64(0)
	for p := range want {
		records += int64(len(want[p]))
		for i := range want[p] {
			want[p][i].Offset = int64(i) // as they are at a target that has nothing else
		}
		if d := cmp.Diff(want[p], got[p]); d != "" {
			t.Errorf("partition %d: %s", p, d)
		}
	}
	there, err := contentOf(ctx, source, "a")
	must(t, err)
	here, err := contentOf(ctx, target, "a")
	must(t, err)
	if d := differenceOf(there, here); d != "" {
		t.Error(d)
	}
	if n := total(there).records; n != records || n < 500 {
		t.Errorf("%d records counted, %d there", n, records)
	}
	must(t, pair.Target.Append(ctx, kafkatest.None, &kgo.Record{Topic: "a", Partition: 1, Value: []byte("more")}))
	here, err = contentOf(ctx, target, "a")
	must(t, err)
	if differenceOf(there, here) == "" {
		t.Error("one record more is not noticed")
	}
}

// TestContentIsOfEverything changes one part of a record after the other.
func TestContentIsOfEverything(t *testing.T) {
	record := func() *kgo.Record {
		return &kgo.Record{Key: []byte("k"), Value: []byte("v"), Timestamp: time.UnixMilli(5), Headers: []kgo.RecordHeader{{Key: "h", Value: []byte("w")}}}
	}
	hash := func(records ...*kgo.Record) uint64 {
		var c content
		for _, r := range records {
			c.add(r)
		}
		return c.hash
	}
	for name, change := range map[string]func(*kgo.Record){
		"time":         func(r *kgo.Record) { r.Timestamp = time.UnixMilli(6) },
		"key":          func(r *kgo.Record) { r.Key = []byte("l") },
		"null key":     func(r *kgo.Record) { r.Key = nil },
		"empty value":  func(r *kgo.Record) { r.Value = []byte{} },
		"boundary":     func(r *kgo.Record) { r.Key, r.Value = []byte("kv"), []byte{} },
		"header":       func(r *kgo.Record) { r.Headers[0].Key = "i" },
		"header value": func(r *kgo.Record) { r.Headers[0].Value = nil },
		"no header":    func(r *kgo.Record) { r.Headers = nil },
	} {
		changed := record()
		change(changed)
		if hash(record()) == hash(changed) {
			t.Errorf("%s: the hash is the same", name)
		}
	}
	other := record()
	other.Value = []byte("w")
	if hash(record(), other) == hash(other, record()) {
		t.Error("the order does not count")
	}
	if hash(record(), other) == hash(other, other) {
		t.Error("only the last record counts")
	}
	if same := hash(record()); same != hash(record()) {
		t.Error("equal records have different hashes")
	}
}

// TestFloorMovesAllBytes counts what arrives at its sink: each batch once, and what
// cut ends of answers bring twice.
func TestFloorMovesAllBytes(t *testing.T) {
	ctx := testContext(t)
	pair := kafkatest.NewPair(t, kafkatest.Options{})
	must(t, pair.Source.CreateTopic(ctx, "a", 4, nil))
	batches, err := workload.Shape{RecordBytes: 1024, BatchBytes: 16 << 10, Codec: recordbatch.LZ4, Different: 50}.Batches(1, 5)
	must(t, err)
	must(t, fill(ctx, pair.Source.Server(), "a", 4, batches, 3<<20))
	size := 0
	for i, left := 0, 3<<20; left > 0; i++ {
		size += len(batches[i%len(batches)].Bytes)
		left -= batches[i%len(batches)].Payload
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	defer listener.Close()
	arrived := make(chan int64, 1)
	go func() {
		defer close(arrived)
		conn, err := listener.Accept()
		if err != nil {
			return
		}
		defer conn.Close()
		n, _ := io.Copy(io.Discard, conn)
		arrived <- n
	}()
	must(t, floorCommand(ctx, []string{"-source", pair.Source.Server(), "-topic", "a", "-sink", listener.Addr().String()}))
	if n := <-arrived; n < int64(size) || n > int64(size)*11/10 {
		t.Errorf("%d bytes arrived of %d", n, size)
	}
	all, err := contentOf(ctx, pair.Source.Server(), "a")
	must(t, err)
	if n := total(all).payload; n < 3<<20 || n > 3<<20+16<<10 {
		t.Errorf("%d bytes filled in", n)
	}
}

// TestUnknownWordsAreErrors: a command or a codec that is not there.
func TestUnknownWordsAreErrors(t *testing.T) {
	for _, args := range [][]string{nil, {"race"}, {"copier", "-codec", "lzma"}, {"source", "-codec", "lzma"}} {
		if err := dispatch(testContext(t), args); err == nil {
			t.Errorf("%q does something", args)
		}
	}
}
