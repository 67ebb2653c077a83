package replicate_test

import (
	"encoding/binary"
	"math/big"
	"testing"

	"github.com/cespare/xxhash/v2"

	"apograph/internal/kafkatest"
	"apograph/ledger"
)

// prove holds a finished copy to everything that is promised: both clusters
// are equal record by record, the books tile both axes, each source offset has
// the tile that the source itself shows, and each digest is that of the records
// on either side, computed here in the slowest way.
func prove(t *testing.T, source, target kafkatest.Bootstrap, path string, topics ...string) {
	t.Helper()
	proveAs(t, source, target, path, kafkatest.Same(topics...))
}

// proveAs is prove for topics that have other names on the target.
func proveAs(t *testing.T, source, target kafkatest.Bootstrap, path string, topics map[string]string) {
	t.Helper()
	kafkatest.Compare(t, source, target, topics)
	kafkatest.CheckLedgerAtEnd(t, path)
	l, err := ledger.Open(path, ledger.Options{ReadOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	for _, p := range l.Pairs() {
		if name, ok := topics[p.SourceTopic]; ok && name != p.TargetTopic {
			t.Errorf("topic %s was copied to %s, want %s", p.SourceTopic, p.TargetTopic, name)
		}
		kafkatest.CompareSourceBook(t, l, p.ID, source.MustSourceTiles(t, p.SourceTopic, p.Partition))
		proveDigests(t, l, p, mustRead(t, source, p.SourceTopic, p.Partition), mustRead(t, target, p.TargetTopic, p.Partition))
		bounds, err := target.ReadBounds(t.Context(), p.TargetTopic, p.Partition)
		if err != nil {
			t.Fatal(err)
		}
		if end := l.Committed(p.ID).Target; end != bounds.HighWatermark {
			t.Errorf("%s-%d: the target book ends at %d, the target at %d", p.TargetTopic, p.Partition, end, bounds.HighWatermark)
		}
	}
}

func mustRead(t *testing.T, b kafkatest.Bootstrap, topic string, partition int32) map[int64]kafkatest.Record {
	t.Helper()
	records, err := b.ReadCommitted(t.Context(), topic, partition)
	if err != nil {
		t.Fatal(err)
	}
	byOffset := make(map[int64]kafkatest.Record, len(records))
	for _, r := range records {
		byOffset[r.Offset] = r
	}
	return byOffset
}

func proveDigests(t *testing.T, l *ledger.Ledger, p ledger.Pair, source, target map[int64]kafkatest.Record) {
	t.Helper()
	position := p.TargetBase
	for e, err := range l.Entries(p.ID, 0) {
		if err != nil {
			t.Fatal(err)
		}
		if e.Target.Start != position {
			t.Fatalf("%s-%d: entry at target offset %d, want %d", p.TargetTopic, p.Partition, e.Target.Start, position)
		}
		position = e.Target.End
		if e.Tile != ledger.Copied {
			continue
		}
		var sent, stored [][]byte
		for run := range e.Runs() {
			if run.Tile != ledger.Copied {
				continue
			}
			for i := range run.Source.Len() {
				if r, ok := source[run.Source.Start+i]; ok {
					sent = append(sent, naiveCanonical(r, e.TimestampsReplaced))
				}
				if r, ok := target[run.Target.Start+i]; ok {
					stored = append(stored, naiveCanonical(r, e.TimestampsReplaced))
				}
			}
		}
		for side, records := range map[string][][]byte{"source": sent, "target": stored} {
			if len(records) != int(e.Records()) {
				continue // gone by now; Compare has judged what there is
			}
			if digest, bytes := naiveDigest(records); digest != uint64(e.Digest) || bytes != e.Bytes {
				t.Errorf("%s-%d source offsets [%d, %d): digest %v over %d bytes, on the %s %016x over %d",
					p.SourceTopic, p.Partition, e.Source.Start, e.Source.End, e.Digest, e.Bytes, side, digest, bytes)
			}
		}
	}
}

// naiveCanonical writes a record as the design says, field by field.
func naiveCanonical(r kafkatest.Record, withoutTime bool) []byte {
	var b []byte
	if withoutTime {
		r.Timestamp = 0
	}
	b = binary.BigEndian.AppendUint64(b, uint64(r.Timestamp))
	field := func(v []byte) {
		if v == nil {
			b = binary.BigEndian.AppendUint32(b, 0xffffffff)
			return
		}
		b = binary.BigEndian.AppendUint32(b, uint32(len(v)))
		b = append(b, v...)
	}
	field(r.Key)
	field(r.Value)
	b = binary.BigEndian.AppendUint32(b, uint32(len(r.Headers)))
	for _, h := range r.Headers {
		field([]byte(h.Key))
		field(h.Value)
	}
	return b
}

// naiveDigest folds records with numbers of any size.
func naiveDigest(records [][]byte) (digest uint64, bytes int64) {
	p := new(big.Int).Sub(new(big.Int).Lsh(big.NewInt(1), 61), big.NewInt(1))
	r := new(big.Int).Mod(new(big.Int).SetUint64(xxhash.Sum64String("apograph/digest/1")), p)
	d := new(big.Int)
	for _, record := range records {
		h := new(big.Int).Mod(new(big.Int).SetUint64(xxhash.Sum64(record)), p)
		d.Mul(d, r).Add(d, h).Add(d, big.NewInt(1)).Mod(d, p)
		bytes += int64(len(record))
	}
	return d.Uint64(), bytes
}
