package main

import (
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/urfave/cli/v2"

	"apograph/internal/connect"
	"apograph/internal/javaprops"
	"apograph/internal/mm2"
	"apograph/replicate"
)

// policyFlags returns the flags that say how topics are named on the target, and
// between which clusters.
func policyFlags() []cli.Flag {
	return []cli.Flag{
		stringFlag("policy", "name topics on the target by `POLICY`: identity keeps their names; default puts the source's alias and replication.policy.separator in front; map renames by the rules of apograph.policy.map (default identity; with --config what the file says)"),
		// Not from the environment: each use needs a decision of its own.
		&cli.BoolFlag{Name: "allow-same-cluster", Usage: "copy even where both aliases are one cluster"},
	}
}

// policySettings are the settings of policies that -X may set.
func policySettings() []setting {
	return []setting{
		{mm2.PolicySeparatorKey, "what stands between the alias and the topic's name (default .)"},
		{mm2.PolicyMapKey, "old=new, or an expression=replacement with $1 for groups, separated by commas"},
	}
}

// dutySettings are the settings of other duties that -X may set.
func dutySettings() []setting {
	return []setting{
		{"replication.factor", "of topics that are made; -1 what the target has for its default (default that of the source's topic)"},
		{"sync.topic.configs.enabled", "true: settings of all topics follow the source, false: of none (default of those that this flow made)"},
		{"config.properties.exclude", "settings that do not follow"},
		{"use.defaults.from", "source: also what the source has by default follows (default target)"},
		{"sync.topic.acls.enabled", "true: what is allowed on topics follows the source, as MirrorMaker 2 has it (default false)"},
	}
}

// applyDuties puts into a flow what its settings say about the duties beside
// copying. Without always it is only what they say, and not what MirrorMaker 2
// does by default.
func applyDuties(config *replicate.Config, f mm2.FlowConfig, always bool) error {
	if f.IsSet("replication.factor") {
		factor, err := f.Int("replication.factor")
		if err != nil {
			return err
		}
		config.ReplicationFactor = factor
	}
	config.Settings.FromSource = f.Text("use.defaults.from") == "source"
	if always || f.IsSet("config.properties.exclude") {
		config.Settings.Exclude = []string{f.Get("config.properties.exclude").Value}
	}
	if always || f.IsSet("sync.topic.configs.enabled") {
		every, err := f.Every("sync.topic.configs")
		if err != nil {
			return err
		}
		config.Settings.Mode = replicate.SettingsOff
		if every > 0 {
			config.Settings.Mode = replicate.SettingsOfAll
		}
		if f.IsSet("sync.topic.configs.interval.seconds") {
			config.Settings.Interval = every
		}
	}
	if always || f.IsSet("sync.topic.acls.enabled") {
		every, err := f.Every("sync.topic.acls")
		if err != nil {
			return err
		}
		config.ACLs = replicate.ACLSync{Enabled: every > 0, Interval: every}
	}
	return nil
}

// adHocFlow returns the flow that -X describes where there is no configuration
// file: one with nothing but the settings of duties.
func adHocFlow(settings map[string]string) (mm2.FlowConfig, error) {
	const prefix = "source->target."
	values := map[string]string{
		"clusters": "source, target", "source.bootstrap.servers": "source:1", "target.bootstrap.servers": "target:1",
		prefix + "enabled": "true",
	}
	for _, s := range slices.Concat(dutySettings(), mirrorKeys()) {
		if value, ok := settings[s.key]; ok {
			values[prefix+s.key] = value
		}
	}
	c, err := mm2.ParseConfig(javaprops.New(overX, values), mm2.ConfigOptions{})
	if err != nil {
		return mm2.FlowConfig{}, err
	}
	return c.Flows()[0], nil
}

// adHocPolicy returns the policy that --policy and -X ask for.
func adHocPolicy(inv *invocation, alias string, settings map[string]string) (mm2.Policy, error) {
	kind := inv.String("policy")
	values := map[string]string{mm2.PolicyKey: kind, mm2.PolicySourceAliasKey: alias}
	for _, s := range policySettings() {
		if value, ok := settings[s.key]; ok {
			values[s.key] = value
			if kind == "" || kind == string(mm2.PolicyIdentity) {
				return mm2.Policy{}, usagef("-X %s says how topics are renamed, and they keep their names", s.key).
					withHint("--policy default or --policy map renames them")
			}
		}
	}
	if kind == "" || kind == string(mm2.PolicyIdentity) {
		return mm2.Policy{}, nil // every name, also those of heartbeats topics
	}
	policy, err := mm2.ParsePolicy(values)
	var bad *mm2.PolicyError
	switch {
	case errors.As(err, &bad) && bad.Key == mm2.PolicyKey:
		return policy, usagef("--policy: %v", bad.Err)
	case errors.As(err, &bad):
		return policy, usagef("-X %s: %v", bad.Key, bad.Err)
	}
	return policy, err
}

// flowConfig returns how a flow of a file runs, with nothing of what a command
// adds. now is what ages are counted from.
func (inv *invocation) flowConfig(c *mm2.Config, f mm2.FlowConfig, path string, now time.Time) (config replicate.Config, err error) {
	config = replicate.Config{LedgerPath: path, AllowSameCluster: inv.Bool("allow-same-cluster"), Logger: inv.logger()}
	var other error
	config.Source, err = inv.flowCluster(c, f.Source, f.SourceClient())
	config.Target, other = inv.flowCluster(c, f.Target, f.TargetClient())
	if err := errors.Join(err, other); err != nil {
		return config, err
	}
	rules, err := f.Topics()
	if err != nil {
		return config, err
	}
	config.Topics, config.TopicsExclude = []string{f.Get("topics").Value}, []string{f.Get("topics.exclude").Value}
	config.Policy, config.Heartbeats = rules.Policy, rules.Heartbeats
	if config.Predecessor, err = predecessorOf(f); err != nil {
		return config, err
	}
	if err := applyRefresh(&config, f); err != nil {
		return config, err
	}
	if _, err := f.Start(""); err != nil {
		return config, err
	}
	config.StartOf = func(topic string) replicate.StartPoint { return startOf(f, topic, now) }
	if err := applyMirror(&config, f, c.Beats(f), true); err != nil {
		return config, err
	}
	for i := range config.Mirror.Heartbeats {
		h := &config.Mirror.Heartbeats[i]
		h.Copied = slices.ContainsFunc(c.Flows(), func(other mm2.FlowConfig) bool { return other.Source == h.Target })
	}
	return config, applyDuties(&config, f, true)
}

// predecessorOf returns where the MirrorMaker 2 that ran with the file leaves its
// traces for a flow.
func predecessorOf(f mm2.FlowConfig) (*replicate.Predecessor, error) {
	policy, err := f.Policy()
	if err != nil {
		return nil, err
	}
	interval, err := f.Seconds("emit.heartbeats.interval.seconds")
	if err != nil {
		return nil, err
	}
	worker := f.Worker()
	onTarget := syncsOnTarget(f)
	return &replicate.Predecessor{
		Group: worker["group.id"].Value, OffsetsTopic: worker["offset.storage.topic"].Value,
		SyncsTopic: policy.OffsetSyncsOf(f.Source, f.Target, onTarget), SyncsTarget: onTarget,
		Heartbeats: policy.HeartbeatsTopic(), Interval: interval,
		Committed: f.SourceClient()["isolation.level"].Value == "read_committed",
	}, nil
}

// flowCluster makes a cluster of what a file says about it. Variables without a value
// are refused here, where they are needed.
func (inv *invocation) flowCluster(c *mm2.Config, alias string, from map[string]mm2.Setting) (connect.Cluster, error) {
	if problems := c.Unresolved(from); problems != nil {
		return connect.Cluster{}, &configError{path: c.File().Name, err: &mm2.ConfigError{Problems: problems}}
	}
	settings, secrets := flowSettings(from)
	return inv.cluster(alias, settings, secrets...)
}

// applyRefresh says how often the flow looks for what is new: as the file does,
// if it does, since ours is much shorter than MirrorMaker 2's default.
func applyRefresh(config *replicate.Config, f mm2.FlowConfig) (err error) {
	every, err := f.Every("refresh.topics")
	if err != nil {
		return err
	}
	config.KnownTopics = every == 0
	if f.IsSet("refresh.topics.interval.seconds") {
		config.RefreshInterval = every
	}
	if f.IsSet(settingRefresh) {
		config.RefreshInterval, err = f.Get(settingRefresh).Interval()
	}
	return err
}

// startOf returns where a topic begins. What the file says about that has been
// checked.
func startOf(f mm2.FlowConfig, topic string, now time.Time) replicate.StartPoint {
	start, err := f.Start(topic)
	if err != nil {
		return replicate.StartPoint{}
	}
	switch start.Kind {
	case mm2.StartTime:
		return replicate.StartAt(start.Time)
	case mm2.StartAgo:
		return replicate.StartAt(now.Add(-start.Ago))
	case mm2.StartGroup:
		return replicate.StartOfGroup(start.Group)
	case mm2.StartLatest:
		return replicate.StartLatest()
	}
	return replicate.StartPoint{}
}

// flowConfigs returns how the flows of a configuration run.
func (inv *invocation) flowConfigs(c *configuration) ([]replicate.Config, error) {
	paths, err := c.ledgers(inv)
	if err != nil {
		return nil, err
	}
	if dir := filepath.Dir(paths[0]); !isDirectory(dir) { // all lie in one
		return nil, usagef("the directory of ledgers, %s, does not exist", quoteArg(dir)).withHint("make it, or name another: apograph.ledger.dir in %s, or with -X", c.path)
	}
	var configs []replicate.Config
	var errs []error
	now := time.Now()
	for i, f := range c.flows {
		config, err := inv.flowConfig(c.file, f, paths[i], now)
		if len(c.flows) > 1 {
			config.Logger = config.Logger.With("flow", f.String())
		}
		configs, errs = append(configs, config), append(errs, err)
	}
	if err := joinOnce(errs); err != nil {
		return nil, err
	}
	return configs, nil
}

func isDirectory(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

// joinOnce joins errors, each text once: flows have clusters in common.
func joinOnce(errs []error) error {
	told := map[string]bool{}
	return errors.Join(slices.DeleteFunc(errs, func(err error) bool {
		if err == nil || told[err.Error()] {
			return true
		}
		told[err.Error()] = true
		return false
	})...)
}

// logger returns what writes the log.
func (inv *invocation) logger() *slog.Logger { return slog.New(slog.NewTextHandler(inv.stderr, nil)) }

// tellLint says once that the file has more to it than a run shows.
func (c *configuration) tellLint(inv *invocation) {
	counts := map[bool]int{} // of warnings, or not
	for _, p := range c.file.Problems() {
		switch {
		case p.Level == mm2.LevelWarning:
			counts[true]++
		case slices.Contains([]mm2.ProblemKind{mm2.IgnoredKey, mm2.BetterKey, mm2.UnusedOfClient}, p.Kind):
			counts[false]++
		}
	}
	line := ""
	if n := counts[false]; n > 0 {
		line = counted(int64(n), "setting") + " of " + c.path + " ignored, or done better"
	}
	if n := counts[true]; n > 0 {
		if line != "" {
			line += ", "
		}
		line += counted(int64(n), "warning") + " about " + c.path
	}
	if line != "" {
		inv.stderr.say(clean(line + ": `apograph lint " + c.path + "` says which"))
	}
}
