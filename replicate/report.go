package replicate

import (
	"context"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"apograph/internal/recordbatch"
	"apograph/ledger"
)

// reasonOf maps an error of a cluster to a reason to stop.
func (f *flow) reasonOf(err error) StopReason {
	switch codeOf(err) {
	case kerr.TopicAuthorizationFailed, kerr.ClusterAuthorizationFailed, kerr.GroupAuthorizationFailed:
		return StopNotAuthorized
	}
	return StopUnavailable
}

// explainRefusal says in sizes and settings why the target does not take a
// record. Brokers say little: one code covers many causes.
func (f *flow) explainRefusal(p *partition, u *unit, a answer) string {
	t := f.topics[p.source.topic]
	switch {
	case a.stop == StopRecordTooLarge:
		return joinDetail(fmt.Sprintf("a batch with only this record has %d bytes, the target topic's max.message.bytes is %s, segment.bytes %s",
			len(u.batch), setting(t.targetSettings, "max.message.bytes", "unknown"), setting(t.targetSettings, "segment.bytes", "unknown")), a.detail)
	case a.detail != "" && codeNamed(a.detail, kerr.InvalidTimestamp):
		age := f.now().Sub(time.UnixMilli(u.maxTimestamp)).Round(time.Second)
		return joinDetail(fmt.Sprintf("the record's time is %s (%v ago); the target topic has message.timestamp.before.max.ms=%s, message.timestamp.after.max.ms=%s",
			time.UnixMilli(u.maxTimestamp).UTC().Format(time.RFC3339), age,
			setting(t.targetSettings, "message.timestamp.before.max.ms", "unknown"),
			setting(t.targetSettings, "message.timestamp.after.max.ms", "unknown")), a.detail)
	case contains(setting(t.targetSettings, "cleanup.policy", "delete"), "compact"):
		return joinDetail("the target topic has cleanup.policy=compact and takes only records with a key", a.detail)
	}
	return a.detail
}

func codeNamed(detail string, code *kerr.Error) bool {
	return len(detail) >= len(code.Message) && detail[:len(code.Message)] == code.Message
}

// openTransaction describes the transaction that keeps records of a source
// partition back: it begins at the last stable offset, where its first batch
// names producer and time. Reading that batch needs no right but READ.
func (f *flow) openTransaction(p *partition, lastStable int64) *Waiting {
	w := &Waiting{
		Topic: p.source.topic, Partition: p.source.partition, Offset: lastStable,
		ProducerID: -1, Behind: p.bounds.highWatermark - lastStable,
	}
	ctx, cancel := context.WithTimeout(f.ctx, 10*time.Second)
	defer cancel()
	data, err := f.source.read(ctx, p.source, p.pair.SourceTopicID, lastStable)
	if err != nil {
		return w
	}
	size, magic, err := recordbatch.Peek(data)
	if err != nil || magic != 2 {
		return w
	}
	h, err := recordbatch.Parse(data[:size])
	if err == nil && h.Transactional() && h.LastOffset() >= lastStable {
		w.ProducerID = h.ProducerID
		w.Since = time.UnixMilli(h.BaseTimestamp)
	}
	return w
}

// read fetches one partition from an offset on, committed or not, raw.
func (c *cluster) read(ctx context.Context, tp topicPartition, id ledger.TopicID, offset int64) ([]byte, error) {
	l, _ := c.leader(tp)
	if l.node < 0 {
		return nil, kerr.LeaderNotAvailable
	}
	request := kmsg.NewPtrFetchRequest()
	request.ReplicaID = -1
	request.MaxWaitMillis = 500
	request.MinBytes = 1
	request.MaxBytes = 4 << 20
	topic := kmsg.NewFetchRequestTopic()
	topic.Topic, topic.TopicID = tp.topic, id
	partition := kmsg.NewFetchRequestTopicPartition()
	partition.Partition = tp.partition
	partition.CurrentLeaderEpoch = l.epoch
	partition.FetchOffset = offset
	partition.PartitionMaxBytes = 1 << 20
	topic.Partitions = append(topic.Partitions, partition)
	request.Topics = append(request.Topics, topic)
	raw, err := c.client.Broker(int(l.node)).Request(ctx, &fetchRequest{request, id != ledger.TopicID{}})
	if err != nil {
		return nil, err
	}
	for _, t := range raw.(*kmsg.FetchResponse).Topics {
		for _, answer := range t.Partitions {
			return answer.RecordBatches, kerr.ErrorForCode(answer.ErrorCode)
		}
	}
	return nil, nil
}

// progress adds up where the partitions are.
func (f *flow) progress() Progress {
	var p Progress
	f.mu.Lock()
	open := f.open
	f.mu.Unlock()
	for _, part := range f.reader.parts {
		p.Partitions++
		p.Copied += part.copied.Load()
		p.Bytes += part.bytes.Load()
		p.Remaining += part.remaining.Load()
	}
	p.Finished = p.Partitions - open
	return p
}

// bookReaches reports whether a partition's committed book comes to its end:
// the one that the run was given, else the last high watermark seen. What the
// books say counts, not what a partition says of itself.
func (f *flow) bookReaches(p *partition) bool {
	if p.pair.ID == 0 {
		return false
	}
	end := p.end
	if end < 0 {
		end = f.ledger.State(p.pair.ID).HighWatermark
	}
	return f.ledger.Committed(p.pair.ID).Source >= end
}

// summarize adds up a run that has ended.
func (f *flow) summarize(partitions []*partition) Summary {
	s := Summary{
		SourceAlias: f.source.alias, TargetAlias: f.target.alias,
		Topics: len(f.topics), Partitions: len(partitions),
		Complete: true, Elapsed: f.now().Sub(f.started),
	}
	for _, p := range partitions {
		for tile, n := range p.counts.tiles {
			s.Tiles[tile] += n
		}
		s.Bytes += p.counts.bytes
		if p.phase == phaseStopped {
			s.Stopped = append(s.Stopped, Stopped{p.source.topic, p.source.partition, p.stop.offset, p.stop.reason, p.stop.detail})
		}
		if !f.bookReaches(p) {
			s.Complete = false
		}
		if p.waiting != nil {
			s.Waiting = append(s.Waiting, *p.waiting)
			s.BehindOpenTransaction += p.waiting.Behind
		}
		if p.pair.ID != 0 {
			for tile, n := range f.ledger.Totals(p.pair.ID).Tiles {
				if ledger.Tile(tile).Bad() {
					s.BadTiles += n
				}
			}
		}
	}
	s.Complete = s.Complete && s.BadTiles == 0
	return s
}
