package verify

import (
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"apograph/internal/canon"
)

// An itemKind says what stands at an offset of a log.
type itemKind uint8

const (
	dataRecord itemKind = iota
	commitMarker
	abortMarker
	otherControl // a control record of a type that is neither
)

func (k itemKind) String() string {
	switch k {
	case dataRecord:
		return "a record"
	case commitMarker:
		return "a commit marker"
	case abortMarker:
		return "an abort marker"
	default:
		return "a control record"
	}
}

// An item is one record of a log, reduced to what is compared.
type item struct {
	offset   int64
	hash     uint64 // of the canonical record
	bare     uint64 // the same with a timestamp of 0 if the hasher makes it, else equal to hash
	key      uint64 // hash of the key; only if the hasher makes it
	producer int64
	epoch    int16
	kind     itemKind

	stamped   bool // the broker set the time (LogAppendTime)
	tombstone bool // the value is null
	keyed     bool // the key is not null
}

// hashAs returns the hash to compare where the entry's timestamps were replaced,
// or were not.
func (i *item) hashAs(replaced bool) uint64 {
	if replaced {
		return i.bare
	}
	return i.hash
}

// A hasher turns consumed records into items. It is not safe for concurrent use.
type hasher struct {
	bare   bool // make item.bare
	keys   bool // make item.key
	buffer []byte
}

func (h *hasher) item(r *kgo.Record) item {
	i := item{
		offset:    r.Offset,
		producer:  r.ProducerID,
		epoch:     r.ProducerEpoch,
		stamped:   r.Attrs.TimestampType() == 1,
		tombstone: r.Value == nil,
		keyed:     r.Key != nil,
	}
	if r.Attrs.IsControl() {
		i.kind = controlKind(r.Key)
		return i
	}
	h.buffer = canon.AppendRecord(h.buffer[:0], timestampMillis(r), r.Key, r.Value, len(r.Headers))
	for _, header := range r.Headers {
		h.buffer = canon.AppendHeader(h.buffer, []byte(header.Key), header.Value)
	}
	i.hash = canon.Sum(h.buffer)
	i.bare = i.hash
	if h.bare {
		clear(h.buffer[:8]) // the timestamp comes first
		i.bare = canon.Sum(h.buffer)
	}
	if h.keys && i.keyed {
		i.key = canon.Sum(r.Key)
	}
	return i
}

// controlKind reads the type of a marker from its key: version, then type, two
// bytes each (ControlRecordType).
func controlKind(key []byte) itemKind {
	switch {
	case len(key) < 4 || key[2] != 0:
		return otherControl
	case key[3] == 0:
		return abortMarker
	case key[3] == 1:
		return commitMarker
	default:
		return otherControl
	}
}

// timestampMillis returns a record's time as Kafka stores it. kgo keeps it as
// nanoseconds in an int64, which overflow from the year 2262 on: milliseconds
// times 10^6 modulo 2^64. As 10^6 is 2^6 times an odd number, dividing by it in
// that ring gives back the milliseconds modulo 2^58, which is exact for times
// within four million years of 1970. Message format v0 has no time; the Java
// consumer shows -1 (RecordBatch.NO_TIMESTAMP), kgo the zero time.
func timestampMillis(r *kgo.Record) int64 {
	if r.Attrs.TimestampType() < 0 {
		return -1
	}
	return millisOf(r.Timestamp)
}

func millisOf(t time.Time) int64 {
	const odd = 1_000_000 >> 6
	ring := uint64(t.UnixNano()) >> 6 * inverseMod2to64(odd)
	return int64(ring<<6) >> 6
}

// inverseMod2to64 returns the number that an odd n must be multiplied with to
// give 1 modulo 2^64, by Newton's iteration: each step doubles the right bits,
// of which n itself has three.
func inverseMod2to64(n uint64) uint64 {
	inverse := n
	for right := 3; right < 64; right *= 2 {
		inverse *= 2 - n*inverse
	}
	return inverse
}
