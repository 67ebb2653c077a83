package fuzz

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"io"
	"math"
	"path/filepath"
	"testing"

	"apograph/internal/connect"
	"apograph/internal/kafkatest"
	"apograph/internal/recordbatch"
	"apograph/ledger"
	"apograph/replicate"
	"apograph/translate"
	"apograph/verify"
)

// A limitCase is a pair with what no producer writes in the source's topic t.
type limitCase struct {
	t      *testing.T
	pair   *kafkatest.Pair
	config replicate.Config
}

// newLimitCase lets edit change the log of the source's only partition.
func newLimitCase(t *testing.T, edit func(*kafkatest.Log)) *limitCase {
	t.Helper()
	c := &limitCase{t: t, pair: kafkatest.NewPair(t, kafkatest.Options{DataDir: t.TempDir()})}
	if err := c.pair.Source.CreateTopic(t.Context(), "t", 1, map[string]string{"max.message.bytes": "10000000"}); err != nil {
		t.Fatal(err)
	}
	err := c.pair.Source.EditLog("t", 0, func(l *kafkatest.Log) error {
		edit(l)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "f.ledger")
	kafkatest.CheckLedgerAtEnd(t, path)
	c.config = replicate.Config{
		Source:     connect.Cluster{Alias: "source", Bootstrap: c.pair.Source.Addresses},
		Target:     connect.Cluster{Alias: "target", Bootstrap: c.pair.Target.Addresses},
		LedgerPath: path, Topics: []string{"t"}, Once: true,
	}
	return c
}

func (c *limitCase) run() replicate.Summary {
	c.t.Helper()
	s, err := replicate.Run(c.t.Context(), c.config)
	if err != nil {
		c.t.Fatal(err)
	}
	return s
}

// verified has the copy verified, and returns how many records are equal.
func (c *limitCase) verified() int64 {
	c.t.Helper()
	report, err := verify.Run(c.t.Context(), verify.Config{LedgerPath: c.config.LedgerPath, Source: &c.config.Source, Target: &c.config.Target})
	if err != nil {
		c.t.Fatal(err)
	}
	for _, f := range report.Findings {
		c.t.Errorf("%+v", f)
	}
	return report.Summary.Equal
}

// zeros returns a batch with one record whose value is of so many zeros,
// compressed a thousandfold, without ever holding them.
func zeros(t *testing.T, base int64, size int64) []byte {
	t.Helper()
	var head []byte
	head = append(head, 0, 0, 0, 1) // attributes, timestamp delta, offset delta; the key is null
	head = binary.AppendVarint(head, size)
	var packed bytes.Buffer
	w, err := gzip.NewWriterLevel(&packed, gzip.BestCompression)
	if err != nil {
		t.Fatal(err)
	}
	length := binary.AppendVarint(nil, int64(len(head))+size+1)
	for _, part := range []io.Reader{bytes.NewReader(append(length, head...)), io.LimitReader(zeroReader{}, size), bytes.NewReader([]byte{0})} {
		if _, err := io.Copy(w, part); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	h := recordbatch.Header{BaseOffset: base, Magic: 2, Attributes: 1, Count: 1, ProducerID: -1, ProducerEpoch: -1, BaseSequence: -1}
	return h.Encode(nil, packed.Bytes())
}

type zeroReader struct{}

func (zeroReader) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}

// TestZeros: a batch of 100 MB of zeros in 100 KB goes through the whole copier
// and the verifier as it is. One that is larger than any batch can honestly be
// stops its partition before it fills the memory, and says at which offset.
func TestZeros(t *testing.T) {
	c := newLimitCase(t, func(l *kafkatest.Log) { l.Batches = [][]byte{zeros(t, 0, 100<<20)} })
	if s := c.run(); !s.Complete || s.Tiles[ledger.Copied] != 1 {
		t.Fatalf("%+v", s)
	}
	if equal := c.verified(); equal != 1 {
		t.Errorf("%d records are equal", equal)
	}
}

func TestTooManyZeros(t *testing.T) {
	c := newLimitCase(t, func(l *kafkatest.Log) { l.Batches = [][]byte{zeros(t, 0, 10), zeros(t, 1, 300<<20), zeros(t, 2, 10)} })
	s := c.run()
	if s.Complete || s.Tiles[ledger.Copied] != 1 || len(s.Stopped) != 1 {
		t.Fatalf("%+v", s)
	}
	if stop := s.Stopped[0]; stop.Offset != 1 || stop.Reason != replicate.StopCorruptSourceBatch {
		t.Errorf("%+v", stop)
	}
}

// TestOffsetsNearTheEnd: the largest offsets that Kafka has are copied, accounted
// for, verified and translated like any others.
func TestOffsetsNearTheEnd(t *testing.T) {
	const first = int64(math.MaxInt64) - 10 // the log ends at the largest offset but one
	c := newLimitCase(t, func(l *kafkatest.Log) {
		l.Start = first
		for i := range int64(9) {
			l.Batches = append(l.Batches, zeros(t, first+i, i))
		}
	})
	if s := c.run(); !s.Complete || s.Tiles[ledger.Copied] != 9 || s.Tiles[ledger.BeforeStart] != first {
		t.Fatalf("%+v", s)
	}
	if equal := c.verified(); equal != 9 {
		t.Errorf("%d records are equal", equal)
	}
	book := kafkatest.OpenLedger(t, c.config.LedgerPath, ledger.Options{ReadOnly: true})
	for i := range int64(10) {
		want := translate.Exact
		if i == 9 {
			want = translate.End
		}
		answers, err := translate.NewIndex(book).Forward(t.Context(), []translate.Query{{Topic: "t", Offset: first + i}})
		if err != nil || answers[0].TargetOffset != i || answers[0].Status != want {
			t.Errorf("offset %d: %+v, %v", first+i, answers, err)
		}
		back, err := translate.NewIndex(book).Reverse(t.Context(), []translate.Query{{Topic: "t", Offset: i}})
		if err != nil || back[0].SourceOffset != first+i || back[0].Status != want {
			t.Errorf("target offset %d: %+v, %v", i, back, err)
		}
	}
}
