package mirror

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"slices"
	"time"

	"apograph/internal/groups"
	"apograph/ledger"
)

// A groupSync commits for groups on the target what their offsets on the source
// are there. Its rules are those of MirrorMaker 2 (KIP-545) made whole: only
// groups without members, never backwards, never beyond what is copied; and a
// group that is not where the flow left it belongs to its owner.
type groupSync struct {
	watch   *watch
	target  *dialer
	ledger  *ledger.Ledger
	rewinds bool
	now     func() time.Time
	board   *board
	logger  *slog.Logger

	before time.Time // when the round before began to read; zero: there was none
	forgot time.Time // which list of groups was the last that some were forgotten by
}

// addGroupSync adds the duty of committing for groups.
func (m *Mirror) addGroupSync(w *watch, b *board) {
	s := m.config.Settings.GroupSync
	g := &groupSync{
		watch: w, target: &dialer{cluster: m.config.Target}, ledger: m.config.Ledger, rewinds: s.Rewinds, now: m.config.Now,
		board: b, logger: m.config.Logger.With("duty", GroupSyncDuty),
	}
	m.close = append(m.close, g.target.close)
	m.add(&duty{name: GroupSyncDuty, every: s.Interval, do: g.round, logger: g.logger})
}

// A wish is an offset that may have to be committed.
type wish struct {
	row    int // of the round
	offset *groupOffset
	commit groups.Commit

	memory     ledger.GroupCommit // what was committed last
	remembered bool
}

// A syncRound is one round of commits.
type syncRound struct {
	*groupSync
	cluster *groups.Cluster
	looked  *reading
	rows    []GroupStatus
	topics  map[string]groups.Topic                            // of the target, that offsets are in
	bounds  map[groups.Partition]groups.Bounds                 // of those that are there
	wishes  []wish                                             // that may still be committed
	kept    map[string]map[groups.Partition]ledger.GroupCommit // what was kept before
	keep    map[string]map[groups.Partition]ledger.GroupCommit // what was learnt since, and is to be
	failed  map[string]error                                   // by group
}

// round looks at all groups and commits what may be.
func (g *groupSync) round(ctx context.Context) error {
	looked, err := g.watch.look(ctx)
	if err != nil {
		return err
	}
	cluster, err := g.target.get(ctx)
	if err != nil {
		return err
	}
	r := &syncRound{
		groupSync: g, cluster: cluster, looked: looked, failed: maps.Clone(looked.failed),
		kept: make(map[string]map[groups.Partition]ledger.GroupCommit), keep: make(map[string]map[groups.Partition]ledger.GroupCommit),
	}
	boundsErr, err := r.lookAtTarget(ctx)
	if err != nil {
		return err
	}
	r.consider(ctx, boundsErr)
	r.checkGroups(ctx)
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if err := r.commit(ctx); err != nil {
		return err
	}
	if !g.before.IsZero() {
		// Whatever was committed on the source since that reading is on the
		// target by now.
		g.board.setLag(g.now().Sub(g.before))
	}
	g.before = looked.at
	g.board.show(r.rows, looked.chosen.omitted, r.failed)
	return faults(r.rows, r.failed)
}

// consider compares what groups have on the target with what they should have. The
// error is why bounds of the target's logs may not be known.
func (r *syncRound) consider(ctx context.Context, boundsErr error) {
	ids := r.looked.chosen.ids
	offsets := r.cluster.Offsets(ctx, ids)
	r.rows = r.looked.rows()
	first := len(r.rows) - len(r.looked.offsets) // rows of offsets come last, in order
	for i := range r.looked.offsets {
		o, row := &r.looked.offsets[i], &r.rows[first+i]
		if o.reason != "" {
			continue
		}
		if !ledger.KeepsGroup(o.group) {
			r.refuse(row, UnusableID, nil)
			continue
		}
		if err := offsets[o.group].Err; err != nil {
			r.refuse(row, failure(err), err)
			continue
		}
		row.Committed = offsets[o.group].Committed(o.onTarget())
		memory, remembered := r.memory(o.group)[o.onTarget()]
		if memory.Undecided && row.Committed == memory.Offset { // it was made
			memory.Undecided, memory.Before = false, 0
			r.learn(o.group, memory)
		}
		log, reason, err := r.logOf(o, boundsErr)
		if reason != "" {
			r.refuse(row, reason, err)
			continue
		}
		wished := o.Offset
		if wished < log.Start { // see logOf
			wished = log.Start
			if row.TargetOffset = wished; row.Reason != HeldBack {
				row.Reason = BelowTargetStart
			}
		}
		if row.Action, reason = decide(wished, o.offset, row.Committed, memory, remembered, r.rewinds); reason != "" {
			row.Reason = reason
		}
		if row.Action != groups.DoCommit {
			if row.Committed > log.End { // it has lost what the group has read
				r.refuse(row, TargetChanged, nil)
			}
			continue
		}
		r.wishes = append(r.wishes, wish{
			row: first + i, offset: o, memory: memory, remembered: remembered,
			commit: groups.Commit{
				Group: o.group, Partition: o.onTarget(), TopicID: r.topics[o.TargetTopic].ID, Offset: wished,
				Metadata: o.metadata, Seen: row.Committed,
			},
		})
	}
	r.forget(ctx, offsets)
}

// decide says what to do for a group that has committed source on the source, and
// is to have wished on the target, where it has committed has.
//
// Where it has nothing any more, although the flow committed for it, that has
// expired, as offsets of groups without members do, or somebody deleted the group:
// it is committed again, for a group without an offset would skip all that is
// there if it begins with the latest.
//
// Where it is ahead, and the flow has put it there for a source offset that was no
// higher, the target has lost what it had read, and has got it again: it goes back
// with it, for what it would skip it has not read. Of a commit that is undecided both
// places count as those of the higher source offset: see [syncRound.commit].
func decide(wished, source, has int64, memory ledger.GroupCommit, remembered, rewinds bool) (groups.Action, Reason) {
	switch {
	case has == wished:
		return groups.None, ""
	case has == groups.NoOffset:
		return groups.DoCommit, ""
	case remembered && !memory.Has(has):
		return groups.DoNothing, TakenOver
	case has < wished:
		return groups.DoCommit, ""
	case remembered && source >= memory.Source && has >= memory.Offset:
		return groups.DoCommit, ""
	case remembered && source < memory.Source && rewinds:
		return groups.DoCommit, ""
	}
	return groups.DoNothing, Ahead
}

// memory returns what was committed last for a group.
func (r *syncRound) memory(group string) map[groups.Partition]ledger.GroupCommit {
	kept, ok := r.kept[group]
	if !ok {
		all := r.ledger.GroupCommits(group)
		kept = make(map[groups.Partition]ledger.GroupCommit, len(all))
		for _, c := range all {
			kept[groups.Partition{Topic: c.Topic, Number: c.Partition}] = c
		}
		r.kept[group] = kept
	}
	return kept
}

// learn takes what is to be kept of one partition of a group, in place of what was
// learnt of it before.
func (r *syncRound) learn(group string, c ledger.GroupCommit) {
	if r.keep[group] == nil {
		r.keep[group] = make(map[groups.Partition]ledger.GroupCommit)
	}
	r.keep[group][groups.Partition{Topic: c.Topic, Number: c.Partition}] = c
}

// keepAll keeps all that was learnt.
func (r *syncRound) keepAll() error {
	all := make(map[string][]ledger.GroupCommit, len(r.keep))
	for group, learnt := range r.keep {
		all[group] = slices.Collect(maps.Values(learnt))
	}
	return r.ledger.KeepGroupCommits(all)
}

// refuse says that an offset is not committed.
func (r *syncRound) refuse(row *GroupStatus, reason Reason, err error) {
	row.Action, row.Reason = groups.DoNothing, reason
	if err != nil {
		r.failed[row.Group] = err
	}
}

// drop keeps the wishes for which refused returns no reason.
func (r *syncRound) drop(refused func(w *wish) (Reason, error)) {
	r.wishes = slices.DeleteFunc(r.wishes, func(w wish) bool {
		reason, err := refused(&w)
		if reason != "" {
			r.refuse(&r.rows[w.row], reason, err)
		}
		return reason != ""
	})
}

// lookAtTarget looks at the target's topics in which offsets are to be. The first
// error is why not all bounds are known.
func (r *syncRound) lookAtTarget(ctx context.Context) (boundsErr, err error) {
	names := make(map[string]bool)
	for i := range r.looked.offsets {
		if o := &r.looked.offsets[i]; o.reason == "" {
			names[o.TargetTopic] = true
		}
	}
	if r.topics, err = r.cluster.Topics(ctx, sortedKeys(names)); err != nil {
		return nil, err
	}
	maps.DeleteFunc(names, func(name string, _ bool) bool { return r.topics[name].Err != nil })
	r.bounds, boundsErr = r.cluster.Bounds(ctx, sortedKeys(names))
	return boundsErr, nil
}

// logOf returns the bounds of the target's log that an offset is in, or a reason why
// nothing can be said of it: the topic must be that of the books, and hold what is to
// be read next. An offset below the log start moves up to it: a consumer that finds it
// gone may begin with the latest.
func (r *syncRound) logOf(o *groupOffset, boundsErr error) (groups.Bounds, Reason, error) {
	found, p := r.topics[o.TargetTopic], o.onTarget()
	log, err := r.cluster.BoundsOf(p, r.bounds, boundsErr)
	switch {
	case errors.Is(found.Err, groups.ErrNoTopic), found.IsOther(o.TargetTopicID):
		return log, TargetChanged, nil
	case found.Err != nil:
		return log, failure(found.Err), found.Err
	case err != nil:
		return log, failure(err), err
	case log.End < o.Offset:
		return log, TargetChanged, nil
	}
	return log, "", nil
}

// checkGroups leaves groups alone that have members on the target, or of which
// it is not known whether they do.
func (r *syncRound) checkGroups(ctx context.Context) {
	ids := make(map[string]bool)
	for i := range r.wishes {
		ids[r.wishes[i].commit.Group] = true
	}
	if len(ids) == 0 {
		return
	}
	found := r.cluster.Groups(ctx, sortedKeys(ids))
	r.drop(func(w *wish) (Reason, error) {
		group := found[w.commit.Group]
		seen := groups.Offsets{At: map[groups.Partition]groups.Offset{w.commit.Partition: {At: w.commit.Seen}}}
		d := groups.Decide(w.commit, group, seen, true)
		if d.Action == groups.DoCommit {
			return "", nil
		}
		return reasonOf(d.Reason, group.Err), group.Err
	})
}

// commit makes the commits that are left. Each is kept as undecided before it is
// made: if the process dies in between, the next one knows that the group may be
// at either place because of us.
func (r *syncRound) commit(ctx context.Context) error {
	at := r.now().UnixMilli()
	commits := make([]groups.Commit, len(r.wishes))
	for i := range r.wishes {
		w := &r.wishes[i]
		commits[i] = w.commit
		intent := w.made(at)
		intent.Undecided, intent.Before = true, w.commit.Seen
		// While the group may be where it was, it is not to go back for an offset
		// below that of which this was.
		intent.Source = max(intent.Source, w.memory.Source)
		r.learn(w.commit.Group, intent)
	}
	if err := r.keepAll(); err != nil || len(commits) == 0 {
		return err
	}
	for i, outcome := range r.cluster.Commit(ctx, commits) {
		r.settle(&r.wishes[i], &outcome, at)
	}
	return r.keepAll()
}

// made returns what is to be kept of a wish that is committed.
func (w *wish) made(at int64) ledger.GroupCommit {
	return ledger.GroupCommit{Topic: w.offset.TargetTopic, Partition: w.offset.number, Offset: w.commit.Offset, Source: w.offset.offset, AtMillis: at}
}

// settle takes what became of a commit. One that was sent and may have had an effect,
// or may have one yet, stays undecided; so does one that was acknowledged, and is not
// what the group is found with: it has to be made again where the group is still where
// it was before.
func (r *syncRound) settle(w *wish, outcome *groups.Outcome, at int64) {
	row := &r.rows[w.row]
	row.Action, row.Committed = outcome.Action, outcome.Committed
	if outcome.Action == groups.DoNothing || outcome.Err != nil {
		r.refuse(row, reasonOf(outcome.Reason, outcome.Err), outcome.Err)
	}
	switch {
	case row.Action != groups.DoNothing:
		r.learn(w.commit.Group, w.made(at))
	case outcome.Sent:
	case w.remembered:
		r.learn(w.commit.Group, w.memory)
	default:
		r.learn(w.commit.Group, ledger.GroupCommit{Topic: w.offset.TargetTopic, Partition: w.offset.number, Offset: ledger.NoOffset})
	}
}

// reasonOf returns what a reason of the package groups is called here.
func reasonOf(reason groups.Reason, err error) Reason {
	switch reason {
	case groups.Active, groups.Joined:
		return Active
	case groups.Backwards:
		return Ahead
	case groups.Moved:
		return Moved
	case groups.NoCommits:
		return ShareGroup
	}
	return failure(err)
}

// forget gives up what is kept of offsets that are on neither cluster any more,
// so that the memory is bounded by the groups that there are.
func (r *syncRound) forget(ctx context.Context, offsets map[string]groups.Offsets) {
	present := make(map[string]map[groups.Partition]bool)
	for i := range r.looked.offsets {
		o := &r.looked.offsets[i]
		if present[o.group] == nil {
			present[o.group] = make(map[groups.Partition]bool)
		}
		present[o.group][o.onTarget()] = true
	}
	for _, id := range r.looked.chosen.ids {
		if offsets[id].Err == nil && r.looked.failed[id] == nil {
			r.forgetGroup(id, present[id], offsets[id])
		}
	}
	if r.looked.chosen.exists == nil || r.looked.chosen.at.Equal(r.forgot) {
		return
	}
	r.groupSync.forgot = r.looked.chosen.at
	gone := slices.DeleteFunc(r.ledger.CommittedGroups(), func(id string) bool { return r.looked.chosen.exists[id] })
	for id, o := range r.cluster.Offsets(ctx, gone) {
		if o.Err == nil {
			r.forgetGroup(id, nil, o)
		}
	}
}

func (r *syncRound) forgetGroup(id string, present map[groups.Partition]bool, offsets groups.Offsets) {
	for p, c := range r.memory(id) {
		if !present[p] && offsets.Committed(p) == groups.NoOffset {
			c.Offset = ledger.NoOffset
			r.learn(id, c)
		}
	}
}
