package mirror

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"slices"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"apograph/internal/connect"
	"apograph/internal/groups"
	"apograph/internal/mm2"
	"apograph/internal/readlog"
)

// A checkpointKey is what a checkpoint is about.
type checkpointKey struct {
	group, topic string // the topic is that on the target
	partition    int32
}

// A checkpointValue is what one says.
type checkpointValue struct {
	upstream, downstream int64
	metadata             string
}

// Checkpoints writes what the committed offsets of groups are on the target:
// for MirrorMaker 2's clients, which take them as they stand.
//
// One is written when it would say something else than the last one. Books give
// each offset one answer for as long as their pair is open, so that this falls
// only where the group went back on the source, or where a new generation has
// begun; MirrorMaker 2, whose answers for one offset fall, has to hold those back.
type checkpoints struct {
	watch     *watch
	board     *board // nil: another duty shows the groups
	target    connect.Cluster
	logs      *dialer // to the target
	topic     string
	chosen    mm2.Selection
	publisher *publisher
	logger    *slog.Logger

	// last are those that the topic has, as far as is known, of offsets that there
	// are; nil: not read yet.
	last map[checkpointKey]checkpointValue
}

// addCheckpoints adds the duty of checkpoints.
func (m *Mirror) addCheckpoints(w *watch, b *board) {
	s := m.config.Settings.Checkpoints
	logger := m.config.Logger.With("duty", CheckpointsDuty)
	topic := m.config.Topics.Policy.CheckpointsTopic(m.config.Source.Alias)
	c := &checkpoints{
		watch: w, board: b, target: m.config.Target, logs: &dialer{cluster: m.config.Target}, topic: topic, chosen: s.Groups, logger: logger,
		publisher: m.newPublisher(m.config.Target, topic, s.TopicReplication, logger),
	}
	m.close = append(m.close, c.logs.close)
	m.add(&duty{name: CheckpointsDuty, every: s.Interval, do: c.round, logger: logger})
}

// round writes the checkpoints that say something new.
func (c *checkpoints) round(ctx context.Context) error {
	if err := c.publisher.ready(ctx); err != nil {
		return err
	}
	if err := c.remember(ctx); err != nil {
		return err
	}
	looked, err := c.watch.look(ctx)
	if err != nil {
		return err
	}
	if err := c.holdBack(ctx, looked); err != nil {
		return err
	}
	rows := looked.rows()
	if c.board != nil {
		c.board.show(rows, looked.chosen.omitted, looked.failed)
	}
	return errors.Join(c.write(ctx, looked), faults(rows, looked.failed))
}

// holdBack leaves out, of partitions that do not go on, what is behind the end of the
// target's log, or may be: it may be what that has lost. A consumer that failed over to
// there now would find no offset, and begin anywhere. The last checkpoint stands
// meanwhile.
func (c *checkpoints) holdBack(ctx context.Context, looked *reading) error {
	stopped := make(map[groups.Partition]bool) // on the source
	for _, s := range c.watch.config.Ledger.Stops() {
		stopped[groups.Partition{Topic: s.SourceTopic, Number: s.Partition}] = true
	}
	names := make(map[string]bool)
	for i := range looked.offsets {
		if o := &looked.offsets[i]; o.reason == "" && stopped[o.onSource()] {
			names[o.TargetTopic] = true
		}
	}
	if len(names) == 0 {
		return nil
	}
	target, err := c.logs.get(ctx)
	if err != nil {
		return err
	}
	bounds, _ := target.Bounds(ctx, sortedKeys(names)) // what is not known is held back
	for i := range looked.offsets {
		o := &looked.offsets[i]
		if o.reason != "" || !stopped[o.onSource()] {
			continue
		}
		if log, ok := bounds[o.onTarget()]; !ok || log.Err != nil || log.End < o.Offset {
			o.reason = TargetChanged
		}
	}
	return nil
}

// rows returns what there is to say of groups that are not committed for.
func (r *reading) rows() []GroupStatus {
	rows := make([]GroupStatus, 0, len(r.offsets)+len(r.chosen.leftOut))
	rows = append(rows, r.chosen.leftOut...)
	for _, id := range r.chosen.shares {
		rows = append(rows, wholeGroup(id, ShareGroup))
	}
	for _, id := range sortedKeys(r.failed) {
		rows = append(rows, wholeGroup(id, failure(r.failed[id])))
	}
	for i := range r.offsets {
		rows = append(rows, rowOf(&r.offsets[i]))
	}
	return rows
}

// remember reads what the topic has, once: also what a MirrorMaker 2 wrote that
// ran before. One that may not be read is taken to have nothing: each checkpoint
// is written once more.
func (c *checkpoints) remember(ctx context.Context) error {
	if c.last != nil {
		return nil
	}
	last := make(map[checkpointKey]checkpointValue)
	err := readTopic(ctx, c.target, c.topic, func(r readlog.Record) {
		p, err := mm2.ParseCheckpoint(r.Key, r.Value)
		if err != nil {
			return // not written by us, nor by MirrorMaker 2
		}
		if _, ok := c.chosen.Match(p.Group); ok {
			last[checkpointKey{p.Group, p.Topic, p.Partition}] = checkpointValue{p.Upstream, p.Downstream, p.Metadata}
		}
	})
	if errors.Is(err, kerr.TopicAuthorizationFailed) {
		c.logger.Warn("the checkpoints that are there may not be read: each is written once more", "topic", c.topic, "error", err)
		clear(last)
		err = nil
	}
	if err == nil {
		c.last = last
	}
	return err
}

// write writes those that are new. After an error it is not known which of them
// are in the topic, nor whether that is still there: it is read again.
func (c *checkpoints) write(ctx context.Context, looked *reading) error {
	var records []*kgo.Record
	var tooLong error
	news := make(map[checkpointKey]checkpointValue)
	for i := range looked.offsets {
		o := &looked.offsets[i]
		if o.reason != "" {
			continue
		}
		key := checkpointKey{o.group, o.TargetTopic, o.number}
		value := checkpointValue{o.offset, o.Offset, o.metadata}
		if last, ok := c.last[key]; ok && last == value {
			continue
		}
		k, v, err := mm2.Checkpoint{
			Group: o.group, Topic: o.TargetTopic, Partition: o.number, Upstream: o.offset, Downstream: o.Offset, Metadata: o.metadata,
		}.Encode()
		if err != nil {
			tooLong = err
			continue
		}
		records = append(records, &kgo.Record{Key: k, Value: v, Timestamp: looked.at})
		news[key] = value
	}
	if err := c.publisher.publish(ctx, records); err != nil {
		c.last = nil
		return errors.Join(err, tooLong)
	}
	maps.Copy(c.last, news)
	c.forget(looked)
	return tooLong
}

// forget gives up what is kept of offsets that their groups do not have any more, so
// that the memory is bounded by the groups that there are. Should they have them again,
// that is written once more.
func (c *checkpoints) forget(looked *reading) {
	present := make(map[checkpointKey]bool, len(looked.offsets))
	for i := range looked.offsets {
		o := &looked.offsets[i]
		present[checkpointKey{o.group, o.TargetTopic, o.number}] = true
	}
	maps.DeleteFunc(c.last, func(key checkpointKey, _ checkpointValue) bool {
		return !present[key] && looked.failed[key.group] == nil
	})
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
