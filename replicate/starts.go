package replicate

import (
	"fmt"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
)

// resolveStarts sets where the scope of fresh pairs begins. What is added to a
// topic later, and what was created after the flow began, is copied from 0: a
// log that starts higher has lost records.
func (f *Flow) resolveStarts(fresh []*candidate) error {
	elsewhere := map[StartPoint][]*candidate{}
	for _, c := range fresh {
		if !c.firstSight {
			continue
		}
		if start := f.config.StartOf(c.topic.name); start.earliest() {
			c.pair.ScopeStart = c.bounds.logStart
		} else {
			elsewhere[start] = append(elsewhere[start], c)
		}
	}
	for start, all := range elsewhere {
		if err := f.resolveStart(start, all); err != nil {
			return err
		}
	}
	return nil
}

// resolveStart does so for fresh pairs that begin at one point.
func (f *Flow) resolveStart(point StartPoint, all []*candidate) error {
	starts, err := f.startOffsets(point, all)
	if err != nil && f.reader == nil {
		return err
	}
	if err != nil { // while it runs: the others go on
		for _, c := range all {
			c.fail("source", c.source(), err)
		}
		return nil
	}
	for _, c := range all {
		start, ok := starts[c.source()]
		switch {
		case ok && start.err != nil:
			c.fail("source", c.source(), start.err)
		case !ok: // the group has read nothing of it, or all is as young as asked for
			c.pair.ScopeStart = c.bounds.logStart
		case start.offset < 0: // no record is that young
			c.pair.ScopeStart = c.bounds.lastStable
		default:
			c.pair.ScopeStart = min(max(start.offset, c.bounds.logStart), c.bounds.lastStable)
		}
	}
	return nil
}

// checkStarts finds out whether the groups at whose offsets topics begin have
// any.
func (f *Flow) checkStarts(topics []*topic) error {
	booked := f.bookedPartitions()
	asked := map[string]bool{}
	for _, t := range topics {
		group := f.config.StartOf(t.name).group
		if group == "" || t.stop != nil || booked[t.name] > 0 || asked[group] {
			continue
		}
		asked[group] = true
		if _, err := f.groupOffsets(group); err != nil {
			return err
		}
	}
	return nil
}

// startOffsets asks the source where a start point lies.
func (f *Flow) startOffsets(start StartPoint, all []*candidate) (map[topicPartition]offsetAnswer, error) {
	if start.group != "" {
		return f.groupOffsets(start.group)
	}
	if start.latest {
		answers := map[topicPartition]offsetAnswer{}
		for _, c := range all {
			answers[c.source()] = offsetAnswer{offset: c.bounds.lastStable}
		}
		return answers, nil
	}
	if start.time.UnixMilli() <= 0 {
		// Negative times mean something else to ListOffsets, and no record that
		// a consumer can see is older than what the log begins with.
		return map[topicPartition]offsetAnswer{}, nil
	}
	var tps []topicPartition
	for _, c := range all {
		tps = append(tps, c.source())
	}
	return f.source.listOffsets(f.ctx, tps, offsetQuery{replica: -1, timestamp: start.time.UnixMilli()}), nil
}

// groupOffsets returns what a group has committed on the source.
func (f *Flow) groupOffsets(group string) (map[topicPartition]offsetAnswer, error) {
	committed, err := f.source.admin.FetchOffsets(f.ctx, group)
	if err != nil && codeOf(err) != kerr.GroupIDNotFound {
		return nil, fmt.Errorf("cluster %s: offsets of group %s: %w", f.source.alias, group, err)
	}
	answers := map[topicPartition]offsetAnswer{}
	committed.Each(func(o kadm.OffsetResponse) {
		switch {
		case o.Err != nil:
			answers[topicPartition{o.Topic, o.Partition}] = offsetAnswer{err: o.Err}
		case o.At >= 0:
			answers[topicPartition{o.Topic, o.Partition}] = offsetAnswer{offset: o.At}
		}
	})
	if len(answers) == 0 {
		return nil, usageErrorf("group %s has committed nothing on cluster %s", group, f.source.alias)
	}
	return answers, nil
}
