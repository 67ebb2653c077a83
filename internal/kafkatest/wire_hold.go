package kafkatest

import (
	"encoding/binary"
	"fmt"
	"net"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// A hold makes a partition look as if its followers had stopped fetching: the
// log grows, the high watermark does not.
type hold struct {
	of       selector
	limit    int64 // the high watermark that clients see at most
	released chan struct{}
}

// HoldHighWatermark makes the partition behave like one whose followers lag:
// until release is called, clients see a high watermark of at most limit,
// though the leader appends. (In kfake the two are always the same.) What
// changes, as in Kafka:
//
//   - a produce with acks=all whose batch ends above the limit is appended but
//     not answered; after the request's timeout the answer is
//     REQUEST_TIMED_OUT with the batch's base offset (DelayedProduce);
//   - Fetch returns nothing above the limit, and a high watermark and last
//     stable offset of at most the limit;
//   - ListOffsets for the latest offset answers at most the limit to ordinary
//     clients (replica -1), and the log end to replica -2.
//
// The limit must not lie inside a batch. release may be called more than once.
func (c *Cluster) HoldHighWatermark(topic string, partition int32, limit int64) (release func(), err error) {
	of, err := c.selector(topic, partition)
	if err != nil {
		return nil, fmt.Errorf("hold high watermark: %w", err)
	}
	h := &hold{of: of, limit: limit, released: make(chan struct{})}
	c.wire.mu.Lock()
	defer c.wire.mu.Unlock()
	c.wire.holds = append(c.wire.holds, h)
	return func() { c.wire.release(h) }, nil
}

func (w *wire) release(h *hold) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if i := slices.Index(w.holds, h); i >= 0 {
		w.holds = slices.Delete(w.holds, i, i+1)
		close(h.released)
	}
}

func (w *wire) holding() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.holds) > 0
}

// heldAt returns the hold of a partition that ends below end, or nil.
func (w *wire) heldAt(topic string, id [16]byte, partition int32, end int64) *hold {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, h := range w.holds {
		if h.limit < end && h.of.matches(topic, id, partition) {
			return h
		}
	}
	return nil
}

// holdProduce waits until every batch of the request is below its partition's
// high watermark, or the request's timeout has passed.
func (c *wireConn) holdProduce(request *kmsg.ProduceRequest, response *kmsg.ProduceResponse) error {
	if request.Acks != -1 {
		return nil
	}
	timer := time.NewTimer(time.Duration(request.TimeoutMillis) * time.Millisecond)
	defer timer.Stop()
	expired := false
	for i := range response.Topics {
		topic := &response.Topics[i]
		for j := range topic.Partitions {
			p := &topic.Partitions[j]
			h := c.wire.heldAt(topic.Topic, topic.TopicID, p.Partition, p.BaseOffset+1)
			if h == nil || p.ErrorCode != 0 {
				continue
			}
			if !expired {
				select {
				case <-h.released:
					continue
				case <-c.closed:
					return net.ErrClosed
				case <-timer.C:
					expired = true
				}
			}
			p.ErrorCode = kerr.RequestTimedOut.Code
		}
	}
	return nil
}

// holdFetch takes what lies above the held high watermarks out of an answer.
// An answer that this leaves without records is kept back for the time that
// the client was ready to wait.
func (c *wireConn) holdFetch(request *kmsg.FetchRequest, response *kmsg.FetchResponse) error {
	var held *hold
	records := 0
	for i := range response.Topics {
		topic := &response.Topics[i]
		for j := range topic.Partitions {
			p := &topic.Partitions[j]
			if h := c.wire.heldAt(topic.Topic, topic.TopicID, p.Partition, p.HighWatermark); h != nil {
				held = h
				clipFetched(p, h.limit)
			}
			records += len(p.RecordBatches)
		}
	}
	if held == nil || records > 0 {
		return nil
	}
	timer := time.NewTimer(time.Duration(request.MaxWaitMillis) * time.Millisecond)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-held.released:
	case <-c.closed:
		return net.ErrClosed
	}
	return nil
}

func clipFetched(p *kmsg.FetchResponseTopicPartition, limit int64) {
	p.HighWatermark = limit
	p.LastStableOffset = min(p.LastStableOffset, limit)
	kept := 0
	for b := p.RecordBatches; len(b) >= batchHeaderSize; {
		size := batchOverhead + int(binary.BigEndian.Uint32(b[8:]))
		next := int64(binary.BigEndian.Uint64(b)) + int64(int32(binary.BigEndian.Uint32(b[23:]))) + 1
		if size > len(b) || next > limit {
			break
		}
		kept += size
		b = b[size:]
	}
	p.RecordBatches = p.RecordBatches[:kept]
}

func (w *wire) holdListOffsets(request *kmsg.ListOffsetsRequest, response *kmsg.ListOffsetsResponse) {
	const latest, ordinaryClient = -1, -1
	if request.ReplicaID != ordinaryClient {
		return
	}
	asked := make(map[partitionKey]int64)
	for _, topic := range request.Topics {
		for _, p := range topic.Partitions {
			asked[partitionKey{topic.Topic, p.Partition}] = p.Timestamp
		}
	}
	for i := range response.Topics {
		topic := &response.Topics[i]
		for j := range topic.Partitions {
			p := &topic.Partitions[j]
			if asked[partitionKey{topic.Topic, p.Partition}] != latest || p.ErrorCode != 0 {
				continue
			}
			if h := w.heldAt(topic.Topic, [16]byte{}, p.Partition, p.Offset); h != nil {
				p.Offset = h.limit
			}
		}
	}
}
