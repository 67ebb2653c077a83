package main

import (
	"context"

	"apograph/internal/mirror"
	"apograph/internal/mm2"
	"apograph/ledger"
	"apograph/replicate"
	"apograph/translate"
)

// mirrorKeys are the settings of what is written for MirrorMaker 2's clients and
// for groups that -X may set.
func mirrorKeys() []setting {
	return []setting{
		{"emit.offset-syncs.enabled", "true: write MirrorMaker 2's offset syncs (default false)"},
		{syncsLocation, "source or target: the cluster of their topic (default source)"},
		{"offset-syncs.topic.replication.factor", "of their topic (default 3, or as many as there are brokers)"},
		{"offset.lag.max", "how many source offsets lie, at least, between the newest offset sync and the next; offsets are translated exactly whatever it is (default 100)"},
		{"emit.checkpoints.enabled", "true: write MirrorMaker 2's checkpoints (default false)"},
		{"emit.checkpoints.interval.seconds", "how often (default 60)"},
		{"checkpoints.topic.replication.factor", "of their topic (default 3, or as many as there are brokers)"},
		{"sync.group.offsets.enabled", "true: commit translated offsets for groups on the target (default false)"},
		{"sync.group.offsets.interval.seconds", "how often (default 60)"},
		{"apograph.sync.group.rewinds", "true: also backwards, where the group went back on the source (default false)"},
		{"groups", "expressions on whole names of groups (default .*)"},
		{"groups.exclude", "of groups that are left out"},
		{"refresh.groups.enabled", "false: look for groups at the start alone (default true)"},
		{"refresh.groups.interval.seconds", "how often to look for groups (default 600)"},
		{"emit.heartbeats.enabled", "true: write MirrorMaker 2's heartbeats to the target (default false)"},
		{"emit.heartbeats.interval.seconds", "how often (default 1)"},
		{"heartbeats.topic.replication.factor", "of their topic (default 3, or as many as there are brokers)"},
	}
}

// applyMirror puts into a flow what its settings say about what is written beside
// the copy. Without always a duty is done only if they say so, and not because
// MirrorMaker 2 does it by default. Beats are the flows whose heartbeats are
// written, see [mm2.Config.Beats].
func applyMirror(config *replicate.Config, f mm2.FlowConfig, beats []mm2.FlowConfig, always bool) error {
	enabled := func(key string) (bool, error) {
		on, err := f.Bool(key)
		return on && (always || f.IsSet(key)), err
	}
	s := &config.Mirror
	var err error
	if s.OffsetSyncs.Enabled, err = enabled("emit.offset-syncs.enabled"); err != nil {
		return err
	}
	if s.Checkpoints.Enabled, err = enabled("emit.checkpoints.enabled"); err != nil {
		return err
	}
	if s.GroupSync.Enabled, err = enabled("sync.group.offsets.enabled"); err != nil {
		return err
	}
	if err := readSyncs(&s.OffsetSyncs, f); err != nil {
		return err
	}
	if err := readGroups(s, f); err != nil {
		return err
	}
	if on, err := enabled("emit.heartbeats.enabled"); err != nil || !on && !always {
		beats = nil
	}
	if s.Heartbeats, err = readHeartbeats(config, beats); err != nil {
		return err
	}
	config.Translator = func(l *ledger.Ledger) mirror.Translator { return bookTranslator{l} }
	return nil
}

// replicationOf returns the replication factor of an internal topic; 0 if nobody
// says.
func replicationOf(f mm2.FlowConfig, key string) (int, error) {
	if !f.IsSet(key) {
		return 0, nil
	}
	return f.Int(key)
}

// syncsOnTarget reports whether a flow has its offset syncs on the target.
func syncsOnTarget(f mm2.FlowConfig) bool { return f.Text(syncsLocation) == sideTarget }

func readSyncs(o *mirror.OffsetSyncs, f mm2.FlowConfig) (err error) {
	o.OnTarget = syncsOnTarget(f)
	if o.TopicReplication, err = replicationOf(f, "offset-syncs.topic.replication.factor"); err != nil {
		return err
	}
	o.Spacing, err = f.Long("offset.lag.max")
	return err
}

// readGroups takes what holds for checkpoints and for the sync of groups.
func readGroups(s *mirror.Settings, f mm2.FlowConfig) (err error) {
	c := &s.Checkpoints
	if c.Interval, err = f.Seconds("emit.checkpoints.interval.seconds"); err != nil {
		return err
	}
	if c.TopicReplication, err = replicationOf(f, "checkpoints.topic.replication.factor"); err != nil {
		return err
	}
	if c.Groups.Include, err = f.Patterns("groups"); err != nil {
		return err
	}
	if c.Groups.Exclude, err = f.Patterns("groups.exclude"); err != nil {
		return err
	}
	if c.RefreshGroups, err = f.Every("refresh.groups"); err != nil {
		return err
	}
	if s.GroupSync.Interval, err = f.Seconds("sync.group.offsets.interval.seconds"); err != nil {
		return err
	}
	// A negative interval is never, as in MirrorMaker 2.
	c.Enabled = c.Enabled && c.Interval > 0
	s.GroupSync.Enabled = s.GroupSync.Enabled && s.GroupSync.Interval > 0
	s.GroupSync.Rewinds, err = f.Bool("apograph.sync.group.rewinds")
	return err
}

// readHeartbeats returns what is written of pairs. The first is the flow's own.
func readHeartbeats(config *replicate.Config, beats []mm2.FlowConfig) ([]mirror.Heartbeats, error) {
	var all []mirror.Heartbeats
	for i, f := range beats {
		h := mirror.Heartbeats{Source: f.Source, Target: f.Target, OnSource: f.Target == config.Source.Alias}
		if i == 0 {
			h.Source, h.Target, h.OnSource = config.Source.Alias, config.Target.Alias, false
		}
		var err error
		if h.Interval, err = f.Every("emit.heartbeats"); err != nil {
			return nil, err
		}
		if h.TopicReplication, err = replicationOf(f, "heartbeats.topic.replication.factor"); err != nil {
			return nil, err
		}
		all = append(all, h)
	}
	return all, nil
}

// checkKeptHeartbeats refuses heartbeats in a topic that is itself a copy: the
// source's, if all topics keep their names.
func checkKeptHeartbeats(config replicate.Config) error {
	name := config.Policy.HeartbeatsTopic()
	if len(config.Mirror.Heartbeats) == 0 || config.Policy.Remote(config.Source.Alias, name) != name {
		return nil
	}
	selection, err := mm2.ParseSelection(config.Topics, config.TopicsExclude)
	if err != nil {
		return nil // the flow itself says so
	}
	if _, copied := selection.Match(name); copied {
		return usagef("-X emit.heartbeats.enabled: the target's topic %s would be a copy of the source's as well", name).
			withHint("--topics-exclude %s leaves it out, --policy default gives the copy another name", name)
	}
	return nil
}

// A bookTranslator translates by the books of a ledger as they are when it is
// asked.
type bookTranslator struct{ ledger *ledger.Ledger }

func (t bookTranslator) Forward(ctx context.Context, positions []mirror.Position) ([]mirror.Translation, error) {
	transfers := make([]translate.Transfer, len(positions))
	for i, p := range positions {
		transfers[i] = translate.NewTransfer(translate.PlanRow{Group: p.Group, Query: translate.Query{Topic: p.Topic, Partition: p.Partition, Offset: p.Offset}}, "")
		transfers[i].Epoch = p.Epoch
	}
	if err := translate.NewIndex(t.ledger).Translate(ctx, transfers, false); err != nil {
		return nil, err
	}
	translations := make([]mirror.Translation, len(transfers))
	for i := range transfers {
		a := &transfers[i]
		translations[i] = mirror.Translation{
			Status: mirror.Status(a.Status.String()), Offset: a.TargetOffset, Doubtful: a.Doubtful, Pair: a.Pair.ID,
			TargetTopic: a.Pair.TargetTopic, SourceTopicID: a.Pair.SourceTopicID, TargetTopicID: a.Pair.TargetTopicID,
		}
	}
	return translations, nil
}
