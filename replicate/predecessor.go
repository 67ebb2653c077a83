package replicate

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

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

	// beatPatience is how long to wait for a heartbeat to grow old.
	beatPatience = 10 * time.Second

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
	if err := p.membersGone(); err != nil {
		return err
	}
	err := p.beatsOver()
	if err != nil {
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
	if err := p.noMoreBeats(); err != nil {
		return err
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

// beatsOver refuses while heartbeats come. Those of a copier that has just been
// stopped are fresh as well, and those of this package's cannot be told from
// MirrorMaker's: it waits until they are not, if that is soon.
func (p *predecessor) beatsOver() (err error) {
	if p.beat, err = p.lastBeat(); err != nil || p.beat == 0 {
		return err
	}
	age := p.looked.Sub(time.UnixMilli(p.beat))
	left := freshBeats*p.Interval - age
	switch {
	case age.Abs() >= freshBeats*p.Interval:
		return nil
	case left > beatPatience:
		return alive("its last heartbeat in topic %s of cluster %s is %v old (if all copiers have been stopped, apograph too, attach in %v)",
			p.Heartbeats, p.flow.target.alias, age.Round(time.Millisecond), left.Round(time.Second))
	}
	if err := p.Wait(p.flow.ctx, left); err != nil {
		return err
	}
	return p.noMoreBeats()
}

// noMoreBeats refuses if a heartbeat has come since the first look.
func (p *predecessor) noMoreBeats() error {
	beat, err := p.lastBeat()
	if err == nil && beat != p.beat {
		err = alive("another heartbeat has come to topic %s of cluster %s", p.Heartbeats, p.flow.target.alias)
	}
	return err
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
	err = p.each(p.flow.target, p.Heartbeats, lastBeats, func(r *kgo.Record) {
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
	err := p.each(f.target, p.OffsetsTopic, 0, func(r *kgo.Record) {
		if o, err := mm2.ParseSourceOffset(r.Key, r.Value); err == nil && o.Cluster == f.source.alias {
			p.flushed[topicPartition{o.Topic, o.Partition}] = o.Offset >= 0
		}
	})
	if err != nil {
		return err
	}
	return p.each(p.syncsCluster(), p.SyncsTopic, 0, func(r *kgo.Record) {
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
func (p *predecessor) each(c *cluster, topic string, n int64, take func(r *kgo.Record)) error {
	tps, err := p.partitionsOf(c, topic)
	if err != nil || len(tps) == 0 {
		return err
	}
	state, _ := c.topic(topic)
	bounds := c.listAll(p.flow.ctx, tps, offsetQuery{replica: -1, timestamp: earliestOffset}, offsetQuery{replica: -1, timestamp: latestOffset, isolation: 1})
	for _, tp := range tps {
		start, end := bounds[0][tp], bounds[1][tp]
		if err := errors.Join(start.err, end.err); err != nil {
			return fmt.Errorf("cluster %s: offsets of %v: %w", c.alias, tp, err)
		}
		at := start.offset
		if n > 0 {
			at = max(at, end.offset-n)
		}
		r := attachReader{cluster: c, tp: tp, id: state.id, next: at, end: end.offset, committed: true, mayEnd: true, within: readPatience}
		if err := r.each(p.flow.ctx, take); err != nil {
			return fmt.Errorf("cluster %s: read %v: %w", c.alias, tp, err)
		}
	}
	return nil
}

// readPatience is for how long a leader that gives nothing is asked again.
const readPatience = 30 * time.Second

// each calls take for the committed records from r.next on.
func (r *attachReader) each(ctx context.Context, take func(r *kgo.Record)) error {
	decompressor := kgo.DefaultDecompressor()
	for r.next < r.end {
		answer, err := r.fetch(ctx)
		if errors.Is(err, errMoved) { // deleted meanwhile
			start, err := r.cluster.listOffset(ctx, r.tp, offsetQuery{replica: -1, timestamp: earliestOffset})
			if err != nil || start <= r.next {
				return cmp.Or(err, errMoved)
			}
			r.next = start
			continue
		}
		if err != nil || answer == nil {
			return err
		}
		fetched, next := kgo.ProcessFetchPartition(kgo.ProcessFetchPartitionOpts{
			Offset: r.next, IsolationLevel: kgo.ReadCommitted(), Topic: r.tp.topic, Partition: r.tp.partition,
		}, answer, decompressor, nil)
		if fetched.Err == nil && next <= r.next {
			fetched.Err = fmt.Errorf("no whole batch at offset %d", r.next)
		}
		if fetched.Err != nil {
			return fetched.Err
		}
		for _, record := range fetched.Records {
			if record.Offset < r.end {
				take(record)
			}
		}
		r.next = next
	}
	return nil
}
