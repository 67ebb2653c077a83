package replicate

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"apograph/internal/recordbatch"
	"apograph/ledger"
)

// reasonOf maps an error of a cluster to a reason to stop.
func reasonOf(err error) StopReason {
	switch codeOf(err) {
	case kerr.TopicAuthorizationFailed, kerr.ClusterAuthorizationFailed, kerr.GroupAuthorizationFailed:
		return StopNotAuthorized
	}
	return StopUnavailable
}

// explainRefusal says in sizes and settings why the target does not take a
// record. Brokers say little: one code covers many causes.
func (f *Flow) explainRefusal(p *partition, u *unit, a answer) string {
	target := p.topic.facts.Load().target
	switch {
	case a.stop == StopRecordTooLarge:
		return joinDetail(fmt.Sprintf("a batch with only this record has %d bytes, the target topic's max.message.bytes is %s, segment.bytes %s",
			len(u.batch), target.get("max.message.bytes", "unknown"), target.get("segment.bytes", "unknown")), a.detail)
	case strings.HasPrefix(a.detail, kerr.InvalidTimestamp.Message):
		age := f.now().Sub(time.UnixMilli(u.maxTimestamp)).Round(time.Second)
		return joinDetail(fmt.Sprintf("the record's time is %s (%v ago); the target topic has message.timestamp.before.max.ms=%s, message.timestamp.after.max.ms=%s",
			time.UnixMilli(u.maxTimestamp).UTC().Format(time.RFC3339), age,
			target.get("message.timestamp.before.max.ms", "unknown"),
			target.get("message.timestamp.after.max.ms", "unknown")), a.detail)
	case target.compacts() && p.flow.keyless(u):
		return joinDetail("the record has no key, and the target topic has cleanup.policy=compact", a.detail)
	}
	return a.detail
}

// keyless reports whether a record of u has no key.
func (f *Flow) keyless(u *unit) (found bool) {
	t := f.tools()
	defer f.giveBack(t)
	err := t.each(u.batch, func(r *recordbatch.Record, _ int64) error {
		found = found || r.Key == nil
		return nil
	})
	return found && err == nil
}

// openTransaction describes the transaction that keeps records of a source
// partition back: it begins at the last stable offset, where its first batch
// names producer and time. Reading that batch needs no right but READ.
func (f *Flow) openTransaction(p *partition, b bounds) *Waiting {
	lastStable := b.lastStable
	w := &Waiting{
		Topic: p.source.topic, Partition: p.source.partition, Offset: lastStable,
		ProducerID: -1, Behind: b.highWatermark - lastStable,
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

// read fetches one partition from an offset on, committed or not, raw: about a
// megabyte.
func (c *cluster) read(ctx context.Context, tp topicPartition, id ledger.TopicID, offset int64) ([]byte, error) {
	return c.readSome(ctx, tp, id, offset, 1<<20)
}

// readSome is read of about so many bytes, but never of less than one batch.
func (c *cluster) readSome(ctx context.Context, tp topicPartition, id ledger.TopicID, offset int64, limit int32) ([]byte, error) {
	l, _ := c.leader(tp)
	if l.node < 0 {
		return nil, kerr.LeaderNotAvailable
	}
	request := kmsg.NewPtrFetchRequest()
	request.ReplicaID = -1
	request.MaxWaitMillis = 500
	request.MinBytes = 1
	request.MaxBytes = limit
	topic := kmsg.NewFetchRequestTopic()
	topic.Topic, topic.TopicID = tp.topic, id
	partition := kmsg.NewFetchRequestTopicPartition()
	partition.Partition = tp.partition
	partition.CurrentLeaderEpoch = l.epoch
	partition.FetchOffset = offset
	partition.PartitionMaxBytes = limit
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
func (f *Flow) progress() Progress {
	parts := f.all()
	p := Progress{Partitions: len(parts)}
	for _, part := range parts {
		p.Copied += part.copied.Load()
		p.Bytes += part.bytes.Load()
		p.Remaining += max(part.stable.Load()-part.position.Load(), 0)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	p.Partitions += len(f.blocked)
	p.Finished = len(parts) - f.open + len(f.blocked)
	return p
}

// bookReaches reports whether a partition's committed book comes to its end:
// the one that the run was given, else the last high watermark seen. What the
// books say counts, not what a partition says of itself.
func (f *Flow) bookReaches(p *partition) bool {
	end := p.end
	if end < 0 {
		end = f.ledger.State(p.pair.ID).HighWatermark
	}
	if !proven {
		return p.position.Load() >= end
	}
	return f.ledger.Committed(p.pair.ID).Source >= end
}

// summarize adds up a run that has ended.
func (f *Flow) summarize() Summary {
	partitions := f.sorted()
	s := Summary{
		SourceAlias: f.source.alias, TargetAlias: f.target.alias,
		Topics: len(f.topics), Partitions: len(partitions) + len(f.blocked),
		Complete: len(f.blocked) == 0, Elapsed: f.now().Sub(f.started),
	}
	for tp, b := range f.blocked {
		s.Stopped = append(s.Stopped, Stopped{tp.topic, tp.partition, 0, b.stop.reason, b.stop.detail})
	}
	for _, p := range partitions {
		f.addTo(&s, p)
	}
	f.addMarks(&s, partitions)
	slices.SortFunc(s.Stopped, func(a, b Stopped) int {
		return topicPartition{a.Topic, a.Partition}.compare(topicPartition{b.Topic, b.Partition})
	})
	s.Complete = s.Complete && s.BadTiles == 0
	return s
}

// addTo adds one partition to a summary.
func (f *Flow) addTo(s *Summary, p *partition) {
	for tile, n := range p.counts.tiles {
		s.Tiles[tile] += n
	}
	s.Bytes += p.counts.bytes
	if p.phase == phaseStopped && p.stop.reason != "" {
		s.Stopped = append(s.Stopped, Stopped{p.source.topic, p.source.partition, p.stop.offset, p.stop.reason, p.stop.detail})
	}
	if !f.bookReaches(p) || p.phase == phaseStopped {
		s.Complete = false
	}
	if p.waiting != nil {
		s.Complete = false // also where the transaction is open below the books' end
		s.Waiting = append(s.Waiting, *p.waiting)
		s.BehindOpenTransaction += p.waiting.Behind
	}
}

// addMarks adds what is bad or in doubt in the books of partitions, of all their
// generations: a new one makes nothing good that an earlier one has lost.
func (f *Flow) addMarks(s *Summary, partitions []*partition) {
	inScope := map[topicPartition]bool{}
	for _, p := range partitions {
		inScope[p.source] = true
	}
	for _, pair := range f.ledger.Pairs() {
		tp := topicPartition{pair.SourceTopic, pair.Partition}
		if !inScope[tp] {
			continue
		}
		s.BadTiles += f.ledger.Unaccepted(pair.ID)
		s.AcceptedTiles += f.ledger.Accepted(pair.ID)
		for _, d := range f.ledger.UnacceptedDoubts(pair.ID) {
			s.Doubts = append(s.Doubts, Doubt{tp.topic, tp.partition, d.Range, d.Kind})
		}
	}
}
