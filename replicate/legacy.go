package replicate

import (
	"errors"
	"fmt"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"apograph/internal/recordbatch"
)

// A bounded decompresses for kgo within the bounds of a decoder: what kgo brings
// along has none. What it returns is valid until the decoder is used again.
type bounded struct {
	decoder *recordbatch.Decoder
	err     error // of the last call
}

// Decompress implements [kgo.Decompressor].
func (b *bounded) Decompress(src []byte, codec kgo.CompressionCodecType) (out []byte, err error) {
	h := recordbatch.Header{Attributes: int16(codec), Count: 1}
	out, b.err = b.decoder.Body(h, append(make([]byte, recordbatch.HeaderSize), src...))
	return out, b.err
}

// legacy accounts for one entry of a message set, the format before Kafka 0.11
// (magic 0 and 1), which old logs can still hold. Its records are read by kgo
// and encoded anew; message format 0 has no times, a consumer sees -1.
func (a *assembler) legacy(c *chunk, entry []byte) error {
	inside := &bounded{decoder: &a.tools.decoder}
	fp, _ := kgo.ProcessFetchPartition(kgo.ProcessFetchPartitionOpts{},
		&kmsg.FetchResponseTopicPartition{RecordBatches: entry}, inside, nil)
	if inside.err != nil {
		return &sourceError{a.pos, StopUnsupportedFormat, fmt.Errorf("message set: %w", inside.err)}
	}
	if fp.Err != nil {
		return &sourceError{a.pos, StopUnsupportedFormat, fmt.Errorf("message set: %w", fp.Err)}
	}
	if len(fp.Records) == 0 {
		return &sourceError{a.pos, StopUnsupportedFormat, errors.New("message set without records")}
	}
	for _, r := range fp.Records {
		if r.Offset < a.pos {
			continue
		}
		if r.Offset > a.pos {
			if err := a.gap(c, r.Offset); err != nil || a.pos < r.Offset {
				return err // the rest of the gap comes with the next step
			}
		}
		a.legacyRecord(c, r)
	}
	c.at += len(entry)
	return nil
}

func (a *assembler) legacyRecord(c *chunk, r *kgo.Record) {
	h := recordbatch.Header{LeaderEpoch: -1, MaxTimestamp: -1}
	if r.Attrs.TimestampType() >= 0 {
		h.MaxTimestamp = r.Timestamp.UnixMilli()
	}
	size := len(r.Key) + len(r.Value) + recordbatch.HeaderSize
	if !a.joins(h, size) {
		a.flush(c)
	}
	j := &a.join
	if j.unit == nil {
		*j = joint{unit: a.newUnit(h), codec: h.Codec()}
		a.tools.builder.Reset(h.Codec())
	}
	a.tools.record = recordbatch.Record{Key: r.Key, Value: r.Value}
	a.tools.builder.Append(&a.tools.record, h.MaxTimestamp)
	a.account(j.unit, r.Offset, h.MaxTimestamp)
	j.unit.maxTimestamp = max(j.unit.maxTimestamp, h.MaxTimestamp)
	j.raw = nil
	j.body += size
}
