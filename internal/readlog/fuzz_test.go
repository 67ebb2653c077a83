package readlog

import (
	"encoding/binary"
	"hash/crc32"
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// FuzzTake: no answer makes it panic, go backwards or hand over what lies outside
// of the log; and unless it is an error it goes on.
func FuzzTake(f *testing.F) {
	batch := []byte("\x00\x00\x00\x00\x00\x00\x00\x05\x00\x00\x00\x3a\x00\x00\x00\x00\x02crc!\x00\x00\x00\x00\x00\x00" +
		"\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x00\x00\x00\x01" +
		"\x10\x00\x00\x00\x02k\x02v\x00")
	seal(batch)
	f.Add(batch, int64(5))
	f.Add(append(append([]byte{}, batch...), batch...), int64(0))
	f.Add(batch[:40], int64(0))
	f.Add([]byte{}, int64(3))
	f.Fuzz(func(t *testing.T, raw []byte, position int64) {
		seal(raw)
		const end = 1000
		last := int64(-1)
		r := &reader{topic: "t", decompressor: kgo.DefaultDecompressor(), log: Log{End: end}, position: max(position, 0) % end}
		before := r.position
		r.each = func(one Record) {
			if one.Offset < before || one.Offset >= end || one.Offset <= last {
				t.Errorf("offset %d behind %d, from %d", one.Offset, last, before)
			}
			last = one.Offset
		}
		err := r.take(&kmsg.FetchResponseTopicPartition{RecordBatches: raw})
		if r.position < before || err == nil && len(raw) > 0 && r.position == before {
			t.Errorf("at %d, was at %d: %v", r.position, before, err)
		}
	})
}

// seal makes the checksum of the first batch right, so that it is decoded.
func seal(raw []byte) {
	if batch := firstBatch(raw); len(batch) > 21 {
		binary.BigEndian.PutUint32(batch[17:], crc32.Checksum(batch[21:], crc32.MakeTable(crc32.Castagnoli)))
	}
}
