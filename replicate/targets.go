package replicate

import (
	"maps"
	"slices"
)

// A rest is where a partition's window stands while nothing is in flight: the
// target's log should end there.
type rest struct{ target, end int64 }

// watchTargets looks at the target for partitions that have nothing to send, and
// that would notice nothing otherwise: whether their topics are still there,
// whether their logs end where the books do, and, where they have another leader by
// now, whether what stands in front of that is what the books say. As long as
// nothing happens it costs one request for each broker.
func (f *Flow) watchTargets() {
	resting := map[topicPartition]*partition{}
	views := map[topicPartition]view{}
	for _, p := range f.all() {
		v := p.status()
		if v.phase != phaseCopy {
			continue
		}
		if stop := p.targetGone(); stop != nil {
			p.post(event{stop: stop})
			continue
		}
		if v.rests {
			resting[p.target], views[p.target] = p, v
		}
	}
	if len(resting) == 0 {
		return
	}
	ctx, cancel := f.patience()
	defer cancel()
	ends := f.target.listOffsets(ctx, slices.Collect(maps.Keys(resting)), offsetQuery{replica: debuggingReplica, timestamp: latestOffset})
	for tp, end := range ends {
		leader, _ := f.target.leader(tp)
		if v := views[tp]; end.err == nil && (end.offset != v.target || leader.epoch != v.epoch) {
			resting[tp].post(event{rest: &rest{v.target, end.offset}})
		}
	}
}

// rests reports whether nothing is on its way to the target.
func (p *partition) rests() bool {
	return p.phase == phaseCopy && p.win != nil && p.adoption == nil && p.win.idle()
}

// lookedAt begins again if the target's log ended elsewhere than the books, and
// nothing was sent since it was asked. What stands under another leader in front of
// the same end is compared with the books before anything else is done.
func (p *partition) lookedAt(r rest) {
	if p.rests() && p.win.target == r.target && r.end != r.target && !p.flow.draining() {
		p.restart()
	}
}
