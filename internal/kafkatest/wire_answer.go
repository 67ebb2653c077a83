package kafkatest

import (
	"encoding/binary"
	"fmt"

	"github.com/twmb/franz-go/pkg/kbin"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// amend corrects, holds back and falsifies the answer to e, in this order.
// Answers that nothing applies to pass as the same bytes.
func (c *wireConn) amend(e *exchange, answer []byte) ([]byte, error) {
	switch request := e.request.(type) {
	case *kmsg.ProduceRequest:
		response := &kmsg.ProduceResponse{}
		if err := readAnswer(e, answer, response); err != nil {
			return nil, err
		}
		correctProduce(request, response)
		if err := c.holdProduce(request, response); err != nil {
			return nil, err
		}
		falsifyProduce(e.after, response)
		return appendAnswer(e, response), nil
	case *kmsg.FetchRequest:
		response := &kmsg.FetchResponse{}
		if err := readAnswer(e, answer, response); err != nil {
			return nil, err
		}
		if diverged := c.diverge(request, response); !diverged && !c.wire.holding() {
			return answer, nil
		}
		if err := c.holdFetch(request, response); err != nil {
			return nil, err
		}
		return appendAnswer(e, response), nil
	case *kmsg.ListOffsetsRequest:
		if !c.wire.holding() {
			return answer, nil
		}
		response := &kmsg.ListOffsetsResponse{}
		if err := readAnswer(e, answer, response); err != nil {
			return nil, err
		}
		c.wire.holdListOffsets(request, response)
		return appendAnswer(e, response), nil
	case *kmsg.OffsetForLeaderEpochRequest:
		response := &kmsg.OffsetForLeaderEpochResponse{}
		if err := readAnswer(e, answer, response); err != nil {
			return nil, err
		}
		c.wire.correctEpochEnds(request, response)
		return appendAnswer(e, response), nil
	default:
		return answer, nil
	}
}

func readAnswer(e *exchange, answer []byte, response kmsg.Response) error {
	response.SetVersion(e.version)
	reader := kbin.Reader{Src: answer[8:]}
	if response.IsFlexible() {
		kmsg.SkipTags(&reader)
	}
	if err := response.ReadFrom(reader.Src); err != nil {
		return fmt.Errorf("kafkatest: answer to key %d: %w", e.key, err)
	}
	return nil
}

func appendAnswer(e *exchange, response kmsg.Response) []byte {
	out := binary.BigEndian.AppendUint32(make([]byte, 4), uint32(e.correlation))
	if response.IsFlexible() {
		out = append(out, 0) // no tags in the header
	}
	out = response.AppendTo(out)
	binary.BigEndian.PutUint32(out, uint32(len(out)-4))
	return out
}

// correctProduce makes the answer what a broker would send where kfake's
// differs:
//
//   - A refusal carries base offset -1 (ProduceResponse.PartitionResponse,
//     INVALID_OFFSET); kfake answers 0, which reads as "appended at 0". A code
//     that is answered after the append keeps its base offset
//     (DelayedProduce only replaces the error).
//   - The answer to a duplicate carries the first append's largest timestamp
//     as LogAppendTime (UnifiedLog.append sets duplicate.timestamp), on
//     CreateTime topics too; kfake leaves -1. Nothing else tells a duplicate
//     from a first append. kfake leaves the log start offset of a duplicate
//     unset, which is how it is recognized here; that field stays -1.
func correctProduce(request *kmsg.ProduceRequest, response *kmsg.ProduceResponse) {
	if request.Version < 5 {
		return // no log start offset in the answer
	}
	for i := range response.Topics {
		topic := &response.Topics[i]
		for j := range topic.Partitions {
			p := &topic.Partitions[j]
			switch {
			case p.ErrorCode == 0 && p.LogStartOffset == -1:
				p.LogAppendTime = producedMaxTimestamp(request, topic.Topic, topic.TopicID, p.Partition)
			case p.ErrorCode != 0 && !answeredAfterAppend(p.ErrorCode):
				p.BaseOffset = -1
			}
		}
	}
}

func answeredAfterAppend(code int16) bool {
	return code == kerr.RequestTimedOut.Code || code == kerr.NotEnoughReplicasAfterAppend.Code
}

// producedMaxTimestamp returns the largest timestamp of the batch that the
// request holds for a partition, from its header.
func producedMaxTimestamp(request *kmsg.ProduceRequest, topic string, id [16]byte, partition int32) int64 {
	const at, end = 35, 43 // of maxTimestamp in a batch of magic 2
	for _, t := range request.Topics {
		if t.Topic != topic || t.TopicID != id {
			continue
		}
		for _, p := range t.Partitions {
			if p.Partition == partition && len(p.Records) >= end {
				return int64(binary.BigEndian.Uint64(p.Records[at:end]))
			}
		}
	}
	return -1
}

// falsifyProduce answers with an error what has been appended. A partition
// that the broker itself refused keeps its refusal.
func falsifyProduce(rules []*rule, response *kmsg.ProduceResponse) {
	for _, r := range rules {
		if r.fault.Kind != ErrorAfter {
			continue
		}
		for i := range response.Topics {
			topic := &response.Topics[i]
			for j := range topic.Partitions {
				p := &topic.Partitions[j]
				if p.ErrorCode == 0 && r.concerns(topic.Topic, topic.TopicID, p.Partition) {
					p.ErrorCode = r.fault.Err.Code
				}
			}
		}
	}
}

// correctEpochEnds answers for an epoch that is over although nothing has been
// appended since. A broker notes where an epoch begins when it becomes leader
// (Partition.makeLeader), so it knows that the epochs before it end at its log
// end (LeaderEpochFileCache.endOffsetFor); kfake looks for a batch of a newer
// epoch and, finding none, says that it does not know (-1, -1).
func (w *wire) correctEpochEnds(request *kmsg.OffsetForLeaderEpochRequest, response *kmsg.OffsetForLeaderEpochResponse) {
	asked := make(map[partitionKey]int32)
	for _, topic := range request.Topics {
		for _, p := range topic.Partitions {
			asked[partitionKey{topic.Topic, p.Partition}] = p.LeaderEpoch
		}
	}
	for i := range response.Topics {
		topic := &response.Topics[i]
		for j := range topic.Partitions {
			p := &topic.Partitions[j]
			epoch := asked[partitionKey{topic.Topic, p.Partition}]
			if p.ErrorCode != 0 || p.EndOffset > 0 || epoch < 0 {
				continue
			}
			info := w.info(topic.Topic, p.Partition)
			if info != nil && epoch < info.Epoch && (p.EndOffset < 0 || info.LogStartOffset == info.HighWatermark) {
				p.LeaderEpoch, p.EndOffset = epoch, info.HighWatermark
			}
		}
	}
}
