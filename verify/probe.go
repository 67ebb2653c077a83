package verify

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// errBroken reports a batch that cannot be decoded.
var errBroken = errors.New("a batch cannot be decoded")

// errSilent reports answers with nothing and no error, although consumers may
// read further.
var errSilent = errors.New("the broker answers with no records and no error, although the log goes on")

// emptyAnswers is how often in a row a leader must answer with nothing, although
// consumers may read further, before the rest is held to be empty, or silent.
//
// Of a log on the broker's disks LocalLog.read returns nothing only when no batch
// follows, which a cleaner brings about. Of remote storage it means nothing:
// DelayedRemoteFetch.onComplete answers a read that is late with no records, no
// error and the bounds of the log. See [topicState.hollow].
const emptyAnswers = 3

// probe looks for the first record in [position, to) that a consumer gets; more
// is false if there is none. It asks for one partition in one request, and lets
// kgo's decoder say where the next fetch begins, which a consumer does not
// tell. It begins with little, since the first record is all that is looked for.
// Hollow is that answers with nothing can mean that there is nothing.
func (r *logReader) probe(ctx context.Context, e extent, hollow bool, position int64) (next int64, more bool, err error) {
	bytes := int32(leastFetchBytes)
	for empty := 0; position < e.to; bytes = min(2*bytes, r.fetchBytes) {
		answer, err := r.fetchOnce(ctx, e, position, bytes)
		if err != nil {
			return position, false, err
		}
		fetched, next := kgo.ProcessFetchPartition(kgo.ProcessFetchPartitionOpts{
			KeepControlRecords: true,
			Offset:             position,
			IsolationLevel:     r.level,
			Topic:              e.topic,
			Partition:          e.partition,
		}, answer, r.decompressor, nil)
		switch {
		case fetched.Err != nil && answer.ErrorCode == 0:
			return position, false, fmt.Errorf("%w: %w", errBroken, fetched.Err)
		case fetched.Err != nil:
			return position, false, fetched.Err
		case len(fetched.Records) > 0:
			return fetched.Records[0].Offset, fetched.Records[0].Offset < e.to, nil
		case next > position:
			position, empty = next, 0
		case len(answer.RecordBatches) > 0:
			return position, false, fmt.Errorf("%w: its records are not what its header says", errBroken)
		case r.visible(answer) < e.to:
			return position, false, fmt.Errorf("the log ends at offset %d now", r.visible(answer))
		default:
			empty++
			switch {
			case empty < emptyAnswers:
			case hollow:
				return e.to, false, nil
			default:
				return position, false, errSilent
			}
		}
	}
	return position, false, nil
}

// visible returns up to where a consumer may read, as an answer has it. A new
// leader may not know for a moment how far that is.
func (r *logReader) visible(answer *kmsg.FetchResponseTopicPartition) int64 {
	if r.level == kgo.ReadCommitted() && answer.LastStableOffset >= 0 {
		return answer.LastStableOffset
	}
	return answer.HighWatermark
}

// A gap is a run of offsets at which a consumer gets nothing.
type gap struct {
	from, to int64
	broken   bool // there is a batch, and it cannot be decoded
}

// maxGaps bounds how many gaps of one partition are looked into.
const maxGaps = 1000

// lookInto says why a consumer gets nothing at an offset. kgo passes over a batch
// of which it cannot decode all records once it has one behind it. ok is false if
// it cannot be told.
func (r *logReader) lookInto(ctx context.Context, e extent, offset int64) (g gap, ok bool) {
	var answer *kmsg.FetchResponseTopicPartition
	for attempt := 0; attempt < tries && !ok; attempt++ {
		var err error
		answer, err = r.fetchOnce(ctx, e, offset, leastFetchBytes)
		ok = err == nil && answer.ErrorCode == 0 && len(answer.RecordBatches) >= 17
	}
	if !ok {
		return gap{}, false
	}
	first, last := firstBatch(answer.RecordBatches)
	answer.RecordBatches = first
	fetched, next := kgo.ProcessFetchPartition(kgo.ProcessFetchPartitionOpts{
		KeepControlRecords: true,
		Offset:             offset,
		IsolationLevel:     r.level,
		Topic:              e.topic,
		Partition:          e.partition,
	}, answer, r.decompressor, nil)
	switch {
	case fetched.Err != nil || next <= offset:
		return gap{offset, max(last, offset) + 1, true}, true
	case len(fetched.Records) > 0:
		return gap{offset, fetched.Records[0].Offset, false}, true
	default:
		return gap{offset, next, false}, true
	}
}

// firstBatch cuts what was fetched behind its first batch, and returns the last
// offset of that: base offset and last offset delta are the fields 0 and 23 of
// a batch, its length is field 8 and counts from field 12 on. Older formats,
// whose magic byte at 16 is not 2, have no such delta.
func firstBatch(raw []byte) (batch []byte, last int64) {
	size := int64(int32(binary.BigEndian.Uint32(raw[8:]))) + 12
	if size > 17 && size < int64(len(raw)) {
		raw = raw[:size]
	}
	last = int64(binary.BigEndian.Uint64(raw))
	if raw[16] == 2 && len(raw) >= 27 {
		last += int64(int32(binary.BigEndian.Uint32(raw[23:])))
	}
	return raw, last
}

// fetchOnce fetches a partition from its leader, outside any session.
func (r *logReader) fetchOnce(ctx context.Context, e extent, position int64, bytes int32) (*kmsg.FetchResponseTopicPartition, error) {
	leader, _, err := r.client.PartitionLeader(e.topic, e.partition)
	if err != nil {
		return nil, err
	}
	if leader < 0 {
		return nil, kerr.LeaderNotAvailable
	}
	answer, err := r.client.Broker(int(leader)).Request(ctx, fetchRequest(e, position, r.level, bytes))
	if err != nil {
		return nil, err
	}
	response, ok := answer.(*kmsg.FetchResponse)
	if !ok {
		return nil, fmt.Errorf("unexpected answer %T", answer)
	}
	if err := kerr.ErrorForCode(response.ErrorCode); err != nil {
		return nil, err
	}
	if len(response.Topics) != 1 || len(response.Topics[0].Partitions) != 1 {
		return nil, errNoAnswer
	}
	return &response.Topics[0].Partitions[0], nil
}

func fetchRequest(e extent, position int64, level kgo.IsolationLevel, bytes int32) *kmsg.FetchRequest {
	request := kmsg.NewPtrFetchRequest()
	request.ReplicaID, request.SessionEpoch = -1, -1
	request.MaxWaitMillis, request.MinBytes, request.MaxBytes = int32(fetchWait.Milliseconds()), 1, bytes
	if level == kgo.ReadCommitted() {
		request.IsolationLevel = 1
	}
	t := kmsg.NewFetchRequestTopic()
	t.Topic, t.TopicID = e.topic, e.id
	p := kmsg.NewFetchRequestTopicPartition()
	p.Partition, p.FetchOffset, p.PartitionMaxBytes = e.partition, position, bytes
	t.Partitions = append(t.Partitions, p)
	request.Topics = append(request.Topics, t)
	return request
}
