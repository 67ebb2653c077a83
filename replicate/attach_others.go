package replicate

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"apograph/internal/mm2"
)

// mirrorGroup ends the name of the group of MirrorMaker 2's Connect workers on the
// target, behind the alias of their source.
const mirrorGroup = "-mm2"

// meetOthers looks for workers of a MirrorMaker 2 on the target that is not the one
// of the flow's file, be it that the file has another alias than it ran with, or
// that there is no file. It refuses where their source offsets say that they copy
// into the flow's topics. Else it names them and goes on: a target may well have
// copiers from elsewhere, and nobody could attach beside them.
func (a *attachment) meetOthers() error {
	f := a.flow
	working, err := f.mirrorsAtWork()
	if err != nil {
		f.config.Logger.Warn("whether another MirrorMaker 2 is at work on the target cannot be seen in full", "cluster", f.target.alias, "reason", err)
	}
	for _, group := range slices.Sorted(maps.Keys(working)) {
		alias := strings.TrimSuffix(group, mirrorGroup)
		topic, target, err := a.copiesOf(alias)
		switch {
		case err != nil:
			return err
		case topic != "":
			return alive("the group %s on cluster %s has members, %d in all, and its source offsets say that it copies topic %s, here to %s", group, f.target.alias, working[group], topic, target)
		}
		f.config.Logger.Warn("a MirrorMaker 2 of another source is at work on the target: make sure that it copies to none of the flow's topics",
			"cluster", f.target.alias, "group", group, "members", working[group])
	}
	return nil
}

// mirrorsAtWork returns the groups of MirrorMaker's workers that have members, with
// how many, but for the flow's own. With an error it returns those that it has seen.
func (f *Flow) mirrorsAtWork() (map[string]int, error) {
	working := map[string]int{}
	ctx, cancel := context.WithTimeout(f.ctx, f.config.UnavailableAfter)
	defer cancel()
	listed, listErr := f.target.admin.ListGroups(ctx)
	var names []string
	for name, g := range listed {
		own := f.config.Predecessor != nil && name == f.config.Predecessor.Group
		if g.ProtocolType == "connect" && strings.HasSuffix(name, mirrorGroup) && !own {
			names = append(names, name)
		}
	}
	if len(names) == 0 {
		return working, listErr
	}
	described, err := f.target.admin.DescribeGroups(ctx, names...)
	errs := []error{listErr, err}
	for name, g := range described {
		switch {
		case errors.Is(g.Err, kerr.GroupIDNotFound):
		case g.Err != nil:
			errs = append(errs, fmt.Errorf("group %s: %w", name, g.Err))
		case len(g.Members) > 0:
			working[name] = len(g.Members)
		}
	}
	return working, errors.Join(errs...)
}

// copiesOf returns a topic that MirrorMaker has copied from the source with an alias
// to one of the flow's target topics, and that target topic; "" if there is none.
// Its policy is not known: a topic goes to its own name unless there is one with the
// alias in front. Connect writes source offsets once a minute, so that a copier that
// has just begun has none.
func (a *attachment) copiesOf(alias string) (topic, target string, err error) {
	f := a.flow
	ours := map[string]bool{}
	for _, j := range a.jobs {
		ours[j.result.TargetTopic] = true
	}
	copied := map[string]bool{}
	p := &predecessor{flow: f}
	err = p.each(f.target, "mm2-offsets."+alias+".internal", 0, func(r *kgo.Record) {
		if o, err := mm2.ParseSourceOffset(r.Key, r.Value); err == nil && o.Cluster == alias && o.Offset >= 0 {
			copied[o.Topic] = true
		}
	})
	if err != nil || len(copied) == 0 {
		return "", "", err
	}
	there, err := f.target.lookAt(f.ctx, nil)
	if err != nil {
		return "", "", err
	}
	for _, topic := range slices.Sorted(maps.Keys(copied)) {
		target := alias + "." + topic
		if _, prefixed := there[target]; !prefixed {
			target = topic
		}
		if ours[target] {
			return topic, target, nil
		}
	}
	return "", "", nil
}

// targetsThere refuses a flow none of whose target topics is there: a file with
// other aliases, names or clusters than the copy was made with looks like that.
func (a *attachment) targetsThere(topics []*topic) error {
	f := a.flow
	if f.ledger != nil || slices.ContainsFunc(topics, func(t *topic) bool { return !t.destination.gone() }) {
		return nil
	}
	there, err := f.target.lookAt(f.ctx, nil)
	if err != nil {
		return err
	}
	var traces []string
	for _, name := range slices.Sorted(maps.Keys(there)) {
		if f.leftByCopier(name) {
			traces = append(traces, name)
		}
	}
	names := topics[0].target
	if n := len(topics) - 1; n > 0 {
		names += fmt.Sprintf(" and %d more", n)
	}
	const check = "check that the aliases, replication.policy.class or --policy, and what each bootstrap.servers belongs to are those that the copy was made with; a copy that was never begun replicate begins"
	if len(traces) == 0 {
		e := usageErrorf("%w: cluster %s has none of the topics that the flow copies to: %s", ErrNoAttach, f.target.alias, names)
		e.hint = check
		return e
	}
	e := usageErrorf("cluster %s has none of the topics that the flow copies to, %s; but a copier has been at work there, by its %s", f.target.alias, names, someOf(traces))
	e.hint = check
	return e
}

// leftByCopier reports whether a topic on the target is one that MirrorMaker 2, or
// apograph, leaves where it copies to.
func (f *Flow) leftByCopier(name string) bool {
	var dot mm2.Policy
	policy := f.config.Policy
	if dot.IsCheckpoints(name) || policy.IsCheckpoints(name) || strings.HasSuffix(name, policy.Separator()+policy.HeartbeatsTopic()) {
		return true
	}
	for _, of := range []string{"mm2-offsets.", "mm2-configs.", "mm2-status."} {
		if strings.HasPrefix(name, of) && strings.HasSuffix(name, ".internal") {
			return true
		}
	}
	return false
}
