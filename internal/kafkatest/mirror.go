package kafkatest

import (
	"context"
	"encoding/binary"
	"fmt"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// A Mirror writes a target partition as MirrorMaker 2 does: the source's records
// in order, in batches of its own without a producer id (Connect's producers are
// not idempotent, Worker.baseProducerProps), those of aborted transactions as well
// unless it reads committed data. It is independent of the product.
type Mirror struct {
	Source, Target Bootstrap
	Topic          string // on the source
	TargetTopic    string
	Partition      int32
	Committed      bool // it reads committed data

	// Batch is how many records a batch of its holds. Default 7.
	Batch int

	// Now is the time that records without one get (Connect's
	// ConnectUtils.checkAndConvertTimestamp).
	Now time.Time
}

// Read returns the records of the source at offsets in [from, to), as the mirror
// reads them.
func (m Mirror) Read(ctx context.Context, from, to int64) ([]Record, error) {
	read := m.Source.ReadUncommitted
	if m.Committed {
		read = m.Source.ReadCommitted
	}
	all, err := read(ctx, m.Topic, m.Partition)
	all = slices.DeleteFunc(all, func(r Record) bool { return r.Offset < from || r.Offset >= to })
	for i := range all {
		if all[i].Timestamp == -1 {
			all[i].Timestamp = m.Now.UnixMilli()
		}
	}
	return all, err
}

// Copy copies the records at source offsets in [from, to), and returns how many
// there were.
func (m Mirror) Copy(ctx context.Context, from, to int64) (int, error) {
	records, err := m.Read(ctx, from, to)
	if err != nil {
		return 0, err
	}
	size := m.Batch
	if size == 0 {
		size = 7
	}
	for part := range slices.Chunk(records, size) {
		var batch []BatchRecord
		for _, r := range part {
			batch = append(batch, BatchRecord{Timestamp: r.Timestamp, Key: r.Key, Value: r.Value, Headers: r.Headers})
		}
		encoded := NewBatch(0, batch...)
		raw, err := encoded.Encode()
		if err != nil {
			return 0, err
		}
		if _, err := m.Target.AppendBatch(ctx, m.TargetTopic, m.Partition, raw); err != nil {
			return 0, err
		}
	}
	return len(records), nil
}

// CopyTransaction copies the records at source offsets in [from, to) in one
// transaction, as MirrorMaker 2 does with exactly-once support (KIP-618), and ends
// it.
func (m Mirror) CopyTransaction(ctx context.Context, commit bool, from, to int64) (int, error) {
	records, err := m.Read(ctx, from, to)
	if err != nil {
		return 0, err
	}
	var all []*kgo.Record
	for _, r := range records {
		one := &kgo.Record{Topic: m.TargetTopic, Partition: m.Partition, Key: r.Key, Value: r.Value, Timestamp: time.UnixMilli(r.Timestamp)}
		for _, h := range r.Headers {
			one.Headers = append(one.Headers, kgo.RecordHeader{Key: h.Key, Value: h.Value})
		}
		all = append(all, one)
	}
	return len(all), m.Target.AppendTransaction(ctx, "mm2", commit, all...)
}

// MirrorSync returns the record of an offset sync: the source's record at an offset
// stands at one of the target (OffsetSync of Kafka's connect/mirror).
func MirrorSync(syncsTopic, topic string, partition int32, source, target int64) *kgo.Record {
	key := binary.BigEndian.AppendUint32(mirrorText(nil, topic), uint32(partition))
	value := binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint64(nil, uint64(source)), uint64(target))
	return &kgo.Record{Topic: syncsTopic, Key: key, Value: value, Timestamp: time.Now()}
}

// MirrorHeartbeat returns the record of a heartbeat of a flow (Heartbeat of Kafka's
// connect/mirror).
func MirrorHeartbeat(heartbeatsTopic, source, target string, at time.Time) *kgo.Record {
	value := binary.BigEndian.AppendUint64([]byte{0, 0}, uint64(at.UnixMilli()))
	return &kgo.Record{Topic: heartbeatsTopic, Key: mirrorText(mirrorText(nil, source), target), Value: value, Timestamp: at}
}

// MirrorSourceOffset returns the record that Connect keeps of the last record that
// MirrorMaker 2 copied of a partition; offset -1 takes it back.
func MirrorSourceOffset(offsetsTopic, alias, topic string, partition int32, offset int64) *kgo.Record {
	r := &kgo.Record{
		Topic: offsetsTopic, Timestamp: time.Now(),
		Key: fmt.Appendf(nil, `["MirrorSourceConnector",{"cluster":%q,"partition":%d,"topic":%q}]`, alias, partition, topic),
	}
	if offset >= 0 {
		r.Value = fmt.Appendf(nil, `{"offset":%d}`, offset)
	}
	return r
}

func mirrorText(to []byte, text string) []byte {
	return append(binary.BigEndian.AppendUint16(to, uint16(len(text))), text...)
}
