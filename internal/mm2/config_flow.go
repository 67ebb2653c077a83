package mm2

import (
	"errors"
	"slices"
	"strings"
	"sync"
	"time"
)

// A FlowConfig is one flow with the settings that hold for it: those of its own
// (A->B.KEY) before those of the top level (KEY) before defaults. It is read-only.
type FlowConfig struct {
	Source, Target string // aliases

	config *Config
	all    settings // as Connector returns them, old names and our own keys added
	made   *madeOfFlow
}

// madeOfFlow is what is made of a flow's settings when it is asked for, once.
type madeOfFlow struct {
	source, target func() settings
	topics         func() (TopicRules, error)
}

// String returns source->target.
func (f FlowConfig) String() string { return f.Source + "->" + f.Target }

// GoString is String: settings may be secret.
func (f FlowConfig) GoString() string { return f.String() }

// Pair returns both aliases.
func (f FlowConfig) Pair() Pair { return Pair{f.Source, f.Target} }

// LedgerName returns the name of the flow's ledger file.
func (f FlowConfig) LedgerName() string { return f.Source + "-to-" + f.Target + ".ledger" }

func (c *Config) flow(source, target string) FlowConfig {
	all := settings(c.Connector(source, target, "MirrorSourceConnector"))
	for _, s := range c.entries {
		if strings.HasPrefix(s.Key, ourPrefix) {
			all.putIfAbsent(s)
		}
	}
	for _, r := range RenamedKeys() {
		s, ok := all[r.Old]
		if !ok {
			s, ok = c.top(r.Old)
		}
		if ok {
			s.Origin.Kind = FromOldName
			all.putIfAbsent(s.as(r.New))
		}
	}
	f := FlowConfig{source, target, c, all, nil}
	f.made = &madeOfFlow{sync.OnceValue(f.sourceClient), sync.OnceValue(f.targetClient), sync.OnceValues(f.topics)}
	return f
}

const ourPrefix = "apograph."

// Enabled reports whether the flow copies, see [Config.Flows].
func (f FlowConfig) Enabled() bool {
	return f.config.enabled(f.Pair())
}

func (c *Config) enabled(pair Pair) bool {
	return slices.ContainsFunc(c.flows, func(f FlowConfig) bool { return f.Pair() == pair })
}

// Worker returns the settings of the Connect worker of the flow, see
// [Config.Worker].
func (f FlowConfig) Worker() map[string]Setting { return f.config.Worker(f.Source, f.Target) }

func (f FlowConfig) connectorEnabled() bool {
	on, err := f.Get("enabled").Bool()
	return err == nil && on
}

// Get returns the setting of a key of the table: what holds for this flow, or the
// default, empty if there is none.
func (f FlowConfig) Get(key string) Setting {
	if s, ok := f.all[key]; ok {
		return s
	}
	k, _ := f.config.keys.key(key)
	return Setting{Key: key, Value: k.Default, Origin: Origin{Kind: FromDefault}}
}

// IsSet reports whether the file says something about a key of this flow.
func (f FlowConfig) IsSet(key string) bool {
	s, ok := f.all[key]
	return ok && s.Origin.Key != ""
}

// Settings returns what holds for the flow, by key: every key of the table that
// a connector or apograph has, and what else the file gives to this flow. Those of
// its clients are not in it.
func (f FlowConfig) Settings() []Setting {
	var all []Setting
	for _, k := range f.config.keys.list {
		_, set := f.all[k.Name]
		if set || k.HasDefault && !k.Removed() && k.On&(AllConnectors|Filter|Framework|Ours) != 0 {
			all = append(all, f.Get(k.Name))
		}
	}
	for key, s := range f.all {
		if _, ok := f.config.keys.key(key); !ok && !f.isClient(key) {
			all = append(all, s)
		}
	}
	slices.SortFunc(all, func(a, b Setting) int { return strings.Compare(a.Key, b.Key) })
	return all
}

// isClient reports whether a setting is one of a client.
func (f FlowConfig) isClient(key string) bool {
	return isClientKey(key) || strings.HasPrefix(key, "source.") || strings.HasPrefix(key, "target.") || slices.Contains(f.config.keys.security, key)
}

// Bool returns a boolean setting. The errors of this and the next are
// [*ValueError].
func (f FlowConfig) Bool(key string) (bool, error) { return f.Get(key).Bool() }

// Int returns a setting that is a number of 32 bits, or of less.
func (f FlowConfig) Int(key string) (int, error) {
	bits := 32
	if k, ok := f.config.keys.key(key); ok && k.Type == ShortKey {
		bits = 16
	}
	n, err := f.Get(key).Int(bits)
	return int(n), err
}

// Long returns a setting that is a number of 64 bits.
func (f FlowConfig) Long(key string) (int64, error) { return f.Get(key).Int(64) }

// Seconds returns a setting that is a number of seconds, which may be negative.
func (f FlowConfig) Seconds(key string) (time.Duration, error) {
	return f.Get(key).Duration(time.Second)
}

// Millis returns a setting that is a number of milliseconds.
func (f FlowConfig) Millis(key string) (time.Duration, error) {
	return f.Get(key).Duration(time.Millisecond)
}

// Every returns how often a duty is due of which duty.enabled and
// duty.interval.seconds speak, such as refresh.topics; 0 if never. A negative
// interval is never, as in MirrorMaker 2; 0, which makes its scheduling fail, is
// refused.
func (f FlowConfig) Every(duty string) (time.Duration, error) {
	on, err := f.Bool(duty + ".enabled")
	if err != nil {
		return 0, err
	}
	interval, err := f.Seconds(duty + ".interval.seconds")
	switch {
	case err != nil:
		return 0, err
	case !on || interval < 0:
		return 0, nil
	case interval == 0:
		return 0, f.Get(duty+".interval.seconds").wrong(0, "0 is no interval; %s.enabled=false turns it off", duty)
	}
	return interval, nil
}

// List returns the elements of a list that count, see [Setting.List].
func (f FlowConfig) List(key string) []string { return f.Get(key).List() }

// Text returns a setting as ConfigDef takes a string: without the blanks around it.
func (f FlowConfig) Text(key string) string { return trim(f.Get(key).Value) }

// Policy returns how the flow names topics. A separator that gets a character into
// names that none can have is refused, as each single topic would be. The error is
// a [*ValueError].
func (f FlowConfig) Policy() (Policy, error) {
	values := map[string]string{PolicySourceAliasKey: f.Source}
	for _, key := range []string{PolicyClassKey, PolicySeparatorKey, PolicyInternalSeparatorKey, PolicyKey, PolicyMapKey} {
		if f.IsSet(key) {
			values[key] = f.Get(key).Value
		}
	}
	p, err := ParsePolicy(values)
	var bad *PolicyError
	illegal := strings.IndexFunc(p.Separator(), func(r rune) bool { return !legalInTopic(r) })
	switch {
	case err == nil && p.kind == PolicyDefault && illegal >= 0:
		return Policy{}, f.Get(PolicySeparatorKey).wrong(illegal, "no topic's name can hold such a separator")
	case !errors.As(err, &bad):
		return p, err
	case f.Get(bad.Key).Secret:
		return Policy{}, f.Get(bad.Key).wrong(0, "no policy")
	}
	return Policy{}, f.Get(bad.Key).wrong(bad.At, "%v", bad.Err)
}

// Topics returns which topics the flow copies, and under which names. The error
// is a [*ValueError].
func (f FlowConfig) Topics() (TopicRules, error) { return f.made.topics() }

func (f FlowConfig) topics() (TopicRules, error) {
	policy, err := f.Policy()
	if err != nil {
		return TopicRules{}, err
	}
	include, err := f.Patterns("topics")
	if err != nil {
		return TopicRules{}, err
	}
	exclude, err := f.Patterns("topics.exclude")
	if err != nil {
		return TopicRules{}, err
	}
	beats, err := f.Bool("heartbeats.replication.enabled")
	return TopicRules{Selection: Selection{Include: include, Exclude: exclude}, Policy: policy, Source: f.Source, Target: f.Target, Heartbeats: beats}, err
}

// Patterns returns the expressions of a list. The error is a [*ValueError] at the
// element that is none.
func (f FlowConfig) Patterns(key string) (Patterns, error) {
	s := f.Get(key)
	p, err := ParsePatterns([]string{s.Value})
	var bad *PatternError
	if !errors.As(err, &bad) {
		return p, err
	}
	if s.Secret {
		return Patterns{}, s.wrong(0, "no regular expression")
	}
	for _, e := range s.Elements() {
		if e.Text == bad.Element {
			return Patterns{}, s.wrong(e.Index+bad.At, "%v", bad)
		}
	}
	return Patterns{}, s.wrong(0, "%v", bad)
}
