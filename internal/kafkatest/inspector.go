package kafkatest

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// An inspector looks into every batch that is produced. kfake checks headers
// only; a broker also walks the records (LogValidator), and what it does not
// check it stores, whether right or wrong.
type inspector struct {
	decompressor *Decompressor

	mu  sync.Mutex // guards bad
	bad []BadBatch
}

// A BadBatch is a produced batch that is wrong.
type BadBatch struct {
	Topic     string
	Partition int32
	Refused   bool   // a broker refuses it, and so did the fake one (INVALID_RECORD)
	Problem   string // what is wrong
}

func (b BadBatch) String() string {
	fate := "stored by a broker"
	if b.Refused {
		fate = "refused"
	}
	return fmt.Sprintf("a bad batch to %s:%d (%s): %s", b.Topic, b.Partition, fate, b.Problem)
}

// BadBatches returns the batches that were produced to the cluster although
// they were wrong: not exactly one batch, not dense from offset 0, records that
// cannot be decoded or are not as many as the header says, a wrong largest
// timestamp. A broker refuses some of these, and silently stores others, of
// which consumers then get wrong offsets or nothing.
func (c *Cluster) BadBatches() []BadBatch {
	c.inspect.mu.Lock()
	defer c.inspect.mu.Unlock()
	return slices.Clone(c.inspect.bad)
}

// ForgetBadBatches empties the list, for tests that produce them on purpose.
func (c *Cluster) ForgetBadBatches() {
	c.inspect.mu.Lock()
	defer c.inspect.mu.Unlock()
	c.inspect.bad = nil
}

// install sets the inspection as a control of the cluster. Controls of this
// package never answer a request themselves, so faults still see every one.
func (i *inspector) install(fake *kfake.Cluster) {
	fake.ControlKey(int16(kmsg.Produce), func(request kmsg.Request) (kmsg.Response, error, bool) {
		if produce, ok := request.(*kmsg.ProduceRequest); ok {
			i.inspect(fake, produce)
		}
		return nil, nil, false
	})
}

// neverCutFetches lifts the limit of a whole read_committed fetch, so that only
// those of the partitions count: where the former cuts an answer short, kfake
// leaves out the aborted transactions of the partition that it cuts, and a
// consumer takes aborted records for committed ones.
func neverCutFetches(fake *kfake.Cluster) {
	const readCommitted = 1
	fake.ControlKey(int16(kmsg.Fetch), func(request kmsg.Request) (kmsg.Response, error, bool) {
		if fetch, ok := request.(*kmsg.FetchRequest); ok && fetch.IsolationLevel == readCommitted {
			fetch.MaxBytes = math.MaxInt32
		}
		return nil, nil, false
	})
}

func (i *inspector) inspect(fake *kfake.Cluster, request *kmsg.ProduceRequest) {
	for t := range request.Topics {
		topic := &request.Topics[t]
		for p := range topic.Partitions {
			partition := &topic.Partitions[p]
			problem, refused := i.batch(partition.Records)
			if problem == "" {
				continue
			}
			name := topic.Topic
			if info := fake.TopicIDInfo(topic.TopicID); name == "" && info != nil {
				name = info.Topic // from version 13 on requests hold only the id
			}
			i.mu.Lock()
			i.bad = append(i.bad, BadBatch{Topic: name, Partition: partition.Partition, Refused: refused, Problem: problem})
			i.mu.Unlock()
			if refused {
				partition.Records = refusedBatch()
			}
		}
	}
}

// batch says what is wrong with a batch, and whether a broker refuses
// it with INVALID_RECORD. Measured on Kafka 4.3.1: a base offset that is not 0,
// a second batch, no batch, a sparse or empty batch, and a count that does not
// fit are refused; inner offset gaps are refused when compressed and stored
// when not; the rest of a second batch is ignored without a word; a wrong
// largest timestamp is repaired. (kfake answers CORRUPT_MESSAGE where it sees
// any of this.) An undecodable body is refused here whatever its kind. What
// has a wrong checksum is left to kfake, which answers as brokers do.
func (i *inspector) batch(raw []byte) (problem string, refused bool) {
	if problem := inspectFrame(raw); problem != "" {
		return problem, true
	}
	b, err := decodeBatch(raw, i.decompressor)
	switch {
	case errors.Is(err, errChecksum):
		return "", false
	case err != nil:
		return err.Error(), true
	case b.Control():
		return "", false
	case b.BaseOffset != 0:
		return fmt.Sprintf("base offset %d", b.BaseOffset), true
	case len(b.Records) == 0 || b.LastOffsetDelta != int32(len(b.Records))-1:
		return fmt.Sprintf("last offset delta %d with %d records", b.LastOffsetDelta, len(b.Records)), true
	}
	return inspectRecords(&b)
}

// inspectFrame checks that there is exactly one whole batch.
func inspectFrame(raw []byte) string {
	if len(raw) < batchHeaderSize {
		return fmt.Sprintf("%d bytes are no record batch", len(raw))
	}
	if size := batchOverhead + int64(binary.BigEndian.Uint32(raw[8:])); size != int64(len(raw)) {
		return fmt.Sprintf("a batch of %d bytes in %d bytes", size, len(raw))
	}
	return ""
}

func inspectRecords(b *Batch) (problem string, refused bool) {
	largest := int64(-1)
	for n, r := range b.Records {
		if r.OffsetDelta != int32(n) {
			return fmt.Sprintf("record %d has offset delta %d", n, r.OffsetDelta), b.Codec != None
		}
		largest = max(largest, r.Timestamp)
	}
	if largest != b.MaxTimestamp && b.Attributes&AttrLogAppendTime == 0 {
		return fmt.Sprintf("the largest timestamp is %d, the header says %d", largest, b.MaxTimestamp), false
	}
	return "", false
}

// refusedBatch returns a batch that kfake refuses with INVALID_RECORD, the code
// with which brokers refuse what does not fit (it is a control batch).
func refusedBatch() []byte {
	b := Marker(0, -1, -1, false, -1)
	raw, err := b.Encode()
	if err != nil {
		panic("kafkatest: an uncompressed marker does not encode: " + err.Error())
	}
	return raw
}
