package replicate

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"apograph/internal/connect"
	"apograph/internal/mm2"
	"apograph/internal/pace"
)

// A Predecessor says where MirrorMaker 2, run with a flow's file, leaves traces:
// signs of life, for which [Attach] looks, and what it says of positions, which
// are no more than hints: content decides. An empty name is nothing to look at. A topic or a group
// that is not there is no sign.
type Predecessor struct {
	Group        string        // of its Connect workers, on the target
	OffsetsTopic string        // Connect's source offsets, on the target (offset.storage.topic)
	SyncsTopic   string        // its offset syncs
	SyncsTarget  bool          // they are on the target, else on the source
	Heartbeats   string        // its heartbeats topic, on the target
	Interval     time.Duration // between two heartbeats
	Committed    bool          // it read committed data

	// Look is how much time lies between two looks at what moves while MirrorMaker
	// works. Default 3 s.
	Look time.Duration

	// Wait waits for a time; tests give one that does not. Default: it does.
	Wait func(ctx context.Context, d time.Duration) error
}

const (
	defaultLook = 3 * time.Second

	// freshBeats is for how many intervals a heartbeat is a sign of life.
	freshBeats = 3

	// lastBeats is how many of the last heartbeats, of all flows to the target, are
	// looked at.
	lastBeats = 1000
)

// A predecessor is what was seen of a Predecessor. Nil: there is none.
type predecessor struct {
	Predecessor
	flow    *Flow
	looked  time.Time               // first
	beat    int64                   // the newest heartbeat of the flow then, ms; 0 none
	syncs   int64                   // the end of the offset syncs then; -1 there are none
	flushed map[topicPartition]bool // Connect knows a source offset
	hints   map[topicPartition]map[int64]int64
}

// meetPredecessor looks for signs of life of MirrorMaker 2 before the alignment,
// and learns what it says of positions.
func (a *attachment) meetPredecessor() error {
	f := a.flow
	if f.config.Predecessor == nil {
		return nil
	}
	p := &predecessor{
		Predecessor: *f.config.Predecessor, flow: f, looked: f.now(),
		flushed: map[topicPartition]bool{}, hints: map[topicPartition]map[int64]int64{},
	}
	if p.Look == 0 {
		p.Look = defaultLook
	}
	if p.Wait == nil {
		p.Wait = pace.Pause
	}
	a.before = p
	var err error
	if p.beat, err = p.lastBeat(); err != nil {
		return err
	}
	if age := p.looked.Sub(time.UnixMilli(p.beat)); p.beat > 0 && age.Abs() < freshBeats*p.Interval {
		return alive("its last heartbeat in topic %s of cluster %s is %v old", p.Heartbeats, f.target.alias, age.Round(time.Millisecond))
	}
	if err := p.membersGone(); err != nil {
		return err
	}
	if p.syncs, err = p.syncsEnd(); err != nil {
		return err
	}
	return p.learn()
}

// leavePredecessor looks again, some time after the first look, for what has moved
// since.
func (a *attachment) leavePredecessor() error {
	p, f := a.before, a.flow
	if p == nil {
		return nil
	}
	if left := p.Look - f.now().Sub(p.looked); left > 0 {
		if err := p.Wait(f.ctx, left); err != nil {
			return err
		}
	}
	beat, err := p.lastBeat()
	switch {
	case err != nil:
		return err
	case beat != p.beat:
		return alive("another heartbeat has come to topic %s of cluster %s", p.Heartbeats, f.target.alias)
	}
	if err := p.membersGone(); err != nil {
		return err
	}
	switch end, err := p.syncsEnd(); {
	case err != nil:
		return err
	case end != p.syncs:
		return alive("another offset sync has come to topic %s of cluster %s", p.SyncsTopic, p.syncsCluster().alias)
	}
	return a.targetStill()
}

// targetStill refuses targets whose ends move.
func (a *attachment) targetStill() error {
	var targets []topicPartition
	for _, j := range a.jobs {
		if j.topic.destination.err == nil && int(j.result.Partition) < len(j.topic.destination.leaders) {
			targets = append(targets, j.target())
		}
	}
	ctx, cancel := context.WithTimeout(a.flow.ctx, 30*time.Second)
	defer cancel()
	ends := a.flow.target.logEnds(ctx, targets)
	for _, j := range a.jobs {
		switch end, asked := ends[j.target()]; {
		case !asked:
		case end.err != nil:
			return fmt.Errorf("cluster %s: offsets of %v: %w", a.flow.target.alias, j.target(), end.err)
		case end.offset != j.result.Target.End:
			return alive("the end of %v on cluster %s has moved from offset %d to %d", j.target(), a.flow.target.alias, j.result.Target.End, end.offset)
		}
	}
	return nil
}

func alive(format string, args ...any) error {
	return &RefusedError{fmt.Errorf("MirrorMaker 2, or another copier, is alive: "+format+"; stop it, and attach then", args...)}
}

// lastBeat returns the time of the newest heartbeat of the flow that is near the
// end of the topic; 0 if there is none.
func (p *predecessor) lastBeat() (newest int64, err error) {
	err = p.each(p.flow.target, p.flow.config.Target, p.Heartbeats, lastBeats, func(r *kgo.Record) {
		beat, err := mm2.ParseHeartbeat(r.Key, r.Value)
		if err == nil && beat.Source == p.flow.source.alias && beat.Target == p.flow.target.alias {
			newest = max(newest, beat.Timestamp)
		}
	})
	return newest, err
}

// membersGone refuses while there are members in the group of the workers. One that
// was killed stays a member until its session has timed out.
func (p *predecessor) membersGone() error {
	if p.Group == "" {
		return nil
	}
	described, err := p.flow.target.admin.DescribeGroups(p.flow.ctx, p.Group)
	if err == nil {
		err = described[p.Group].Err
	}
	switch {
	case errors.Is(err, kerr.GroupIDNotFound):
		return nil
	case errors.Is(err, kerr.GroupAuthorizationFailed):
		p.flow.config.Logger.Warn("whether MirrorMaker 2 has members in its group cannot be seen", "group", p.Group, "needed", "DESCRIBE on the group")
		return nil
	case err != nil:
		return fmt.Errorf("cluster %s: group %s: %w", p.flow.target.alias, p.Group, err)
	}
	if n := len(described[p.Group].Members); n > 0 {
		return alive("its group %s on cluster %s has members, %d in all (one that was killed stays until its session times out)", p.Group, p.flow.target.alias, n)
	}
	return nil
}

// traceOfMirrorMaker says that MirrorMaker 2 has been at work, if its topic of
// source offsets is on the target.
func (f *Flow) traceOfMirrorMaker() string {
	p := f.config.Predecessor
	if p == nil || p.OffsetsTopic == "" {
		return ""
	}
	found, err := f.target.metadata(f.ctx, []string{p.OffsetsTopic})
	if state, ok := found[p.OffsetsTopic]; err != nil || !ok || state.err != nil {
		return ""
	}
	return "; MirrorMaker 2 has copied there, by its topic " + p.OffsetsTopic
}

func (p *predecessor) syncsCluster() *cluster {
	if p.SyncsTarget {
		return p.flow.target
	}
	return p.flow.source
}

// syncsEnd returns where the topic of offset syncs ends; -1 if there is none.
func (p *predecessor) syncsEnd() (int64, error) {
	tps, err := p.partitionsOf(p.syncsCluster(), p.SyncsTopic)
	if err != nil || len(tps) == 0 {
		return -1, err
	}
	end := p.syncsCluster().listOffsets(p.flow.ctx, tps[:1], offsetQuery{replica: -1, timestamp: latestOffset})[tps[0]]
	return end.offset, end.err
}

// learn reads what MirrorMaker says of positions.
func (p *predecessor) learn() error {
	f := p.flow
	err := p.each(f.target, f.config.Target, p.OffsetsTopic, 0, func(r *kgo.Record) {
		if o, err := mm2.ParseSourceOffset(r.Key, r.Value); err == nil && o.Cluster == f.source.alias {
			p.flushed[topicPartition{o.Topic, o.Partition}] = o.Offset >= 0
		}
	})
	if err != nil {
		return err
	}
	config := f.config.Source
	if p.SyncsTarget {
		config = f.config.Target
	}
	return p.each(p.syncsCluster(), config, p.SyncsTopic, 0, func(r *kgo.Record) {
		s, err := mm2.ParseOffsetSync(r.Key, r.Value)
		if err != nil {
			return
		}
		tp := topicPartition{s.Topic, s.Partition}
		if p.hints[tp] == nil {
			p.hints[tp] = map[int64]int64{}
		}
		p.hints[tp][s.Downstream] = s.Upstream
	})
}

// knows reports whether MirrorMaker says that it has copied a partition.
func (p *predecessor) knows(tp topicPartition) bool {
	if p == nil {
		return false
	}
	return p.flushed[tp] || len(p.hints[tp]) > 0
}

func (p *predecessor) hintsFor(tp topicPartition) map[int64]int64 {
	if p == nil {
		return nil
	}
	return p.hints[tp]
}

func (p *predecessor) readsCommitted() bool { return p != nil && p.Committed }

// partitionsOf returns the partitions of a topic; none if it is not there.
func (p *predecessor) partitionsOf(c *cluster, topic string) (tps []topicPartition, err error) {
	if topic == "" {
		return nil, nil
	}
	c.track(topic)
	seen := c.seen()
	err = c.retry(p.flow.ctx, surveyRetries, func(ctx context.Context) error {
		_, err := c.refresh(ctx, seen)
		return err
	})
	if err != nil {
		return nil, err
	}
	state, ok := c.topic(topic)
	switch {
	case !ok || state.gone():
		return nil, nil
	case errors.Is(state.err, kerr.TopicAuthorizationFailed):
		p.flow.config.Logger.Warn("a topic of MirrorMaker 2 cannot be read", "cluster", c.alias, "topic", topic)
		return nil, nil
	case state.err != nil:
		return nil, fmt.Errorf("cluster %s: topic %s: %w", c.alias, topic, state.err)
	}
	for i := range state.leaders {
		tps = append(tps, topicPartition{topic, int32(i)})
	}
	return tps, nil
}

// each calls take for the committed records of a topic, in order in each
// partition; the last n offsets of each, all if n is 0.
func (p *predecessor) each(c *cluster, config connect.Cluster, topic string, n int64, take func(r *kgo.Record)) error {
	tps, err := p.partitionsOf(c, topic)
	if err != nil || len(tps) == 0 {
		return err
	}
	bounds := c.listAll(p.flow.ctx, tps, offsetQuery{replica: -1, timestamp: earliestOffset}, offsetQuery{replica: -1, timestamp: latestOffset, isolation: 1})
	from, ends := map[int32]kgo.Offset{}, map[int32]int64{}
	for _, tp := range tps {
		start, end := bounds[0][tp], bounds[1][tp]
		if err := errors.Join(start.err, end.err); err != nil {
			return fmt.Errorf("cluster %s: offsets of %v: %w", c.alias, tp, err)
		}
		at := start.offset
		if n > 0 {
			at = max(at, end.offset-n)
		}
		if at < end.offset {
			from[tp.partition], ends[tp.partition] = kgo.NewOffset().At(at), end.offset
		}
	}
	if len(from) == 0 {
		return nil
	}
	if err := readUpTo(p.flow.ctx, config, topic, from, ends, take); err != nil {
		return fmt.Errorf("cluster %s: read topic %s: %w", c.alias, topic, err)
	}
	return nil
}

// silence is for how long nothing may come of a topic before its end counts as
// reached: what stood there was compacted away.
const silence = 5 * time.Second

// readUpTo calls take for the committed records of a topic, up to an end in each
// partition.
func readUpTo(ctx context.Context, config connect.Cluster, topic string, from map[int32]kgo.Offset, ends map[int32]int64, take func(r *kgo.Record)) error {
	client, err := config.Client(
		kgo.FetchIsolationLevel(kgo.ReadCommitted()), kgo.KeepControlRecords(),
		kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{topic: from}),
	)
	if err != nil {
		return err
	}
	defer client.Close()
	for len(ends) > 0 {
		quiet, cancel := context.WithTimeout(ctx, silence)
		fetches := client.PollFetches(quiet)
		over := quiet.Err() != nil
		cancel()
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case over:
			return nil
		case fetches.Err() != nil:
			return fetches.Err()
		}
		fetches.EachRecord(func(r *kgo.Record) {
			end, reading := ends[r.Partition]
			if reading && r.Offset < end && !r.Attrs.IsControl() {
				take(r)
			}
			if r.Offset+1 >= end {
				delete(ends, r.Partition)
			}
		})
	}
	return nil
}
