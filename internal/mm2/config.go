package mm2

import (
	"cmp"
	"os"
	"slices"
	"strings"

	"apograph/internal/javaprops"
)

// ConfigOptions are what a configuration needs besides its file. The zero value
// is for a process that runs it.
type ConfigOptions struct {
	// LookupEnv is where ${env:NAME} comes from; nil: the process's environment.
	LookupEnv func(name string) (string, bool)
	// KeepVariables leaves ${...} as it stands, so that nothing outside of the
	// file is read; their values are secret all the same.
	KeepVariables bool
}

// A Config is a mm2.properties file: what MirrorMaker 2 makes of it, and what
// apograph does. It is read-only and safe for concurrent use.
type Config struct {
	file     *javaprops.File
	entries  []Setting // those that count, in order of the file, values resolved
	byKey    map[string]int
	keys     table
	clusters []string
	flows    []FlowConfig
	problems []Problem
}

// ParseConfig returns what a mm2.properties file says. The configuration is there
// even if the error, a [*ConfigError], says that it must not be run: for lint.
func ParseConfig(f *javaprops.File, options ConfigOptions) (*Config, error) {
	c := &Config{file: f, byKey: map[string]int{}, keys: newTable()}
	c.resolve(options)
	c.findClusters()
	c.findFlows()
	c.checkAll()
	slices.SortStableFunc(c.problems, func(a, b Problem) int {
		return cmp.Or(cmp.Compare(a.At.Line, b.At.Line), cmp.Compare(a.At.Column, b.At.Column))
	})
	var errors []Problem
	for _, p := range c.problems {
		if p.Level == LevelError {
			errors = append(errors, p)
		}
	}
	if errors != nil {
		return c, &ConfigError{errors}
	}
	return c, nil
}

// String names the file: settings may be secret.
func (c *Config) String() string { return c.file.Name }

// GoString is String.
func (c *Config) GoString() string { return c.String() }

// File returns the file as it was read.
func (c *Config) File() *javaprops.File { return c.file }

// Clusters returns the aliases, in order and each once.
func (c *Config) Clusters() []string { return slices.Clone(c.clusters) }

// Flows returns the enabled flows, ordered as the file names their clusters.
//
// A flow is enabled by true in any case, as A->B.enabled; a bare enabled=true holds
// for all flows with a worker. Blanks around the word do not matter here, while MirrorMaker 2 starts such a flow only if heartbeats are on; it is a
// problem of kind [FlowEnabledBlank].
func (c *Config) Flows() []FlowConfig { return slices.Clone(c.flows) }

// Flow returns the flow between two clusters, enabled or not; false if the file
// does not know them.
func (c *Config) Flow(source, target string) (FlowConfig, bool) {
	if source == target || !slices.Contains(c.clusters, source) || !slices.Contains(c.clusters, target) {
		return FlowConfig{}, false
	}
	return c.flow(source, target), true
}

// Problems returns all that was found, in order of the file; those without a
// place in it come first.
func (c *Config) Problems() []Problem { return slices.Clone(c.problems) }

// Entries returns the settings as they stand in the file, each key once, with
// variables resolved.
func (c *Config) Entries() []Setting { return slices.Clone(c.entries) }

// LedgerDir returns the directory of the ledgers: apograph.ledger.dir, else ".".
func (c *Config) LedgerDir() string {
	if s, ok := c.top("apograph.ledger.dir"); ok && trim(s.Value) != "" {
		return trim(s.Value)
	}
	return "."
}

// A Pair is a source and a target, by alias.
type Pair struct{ Source, Target string }

// String returns source->target.
func (p Pair) String() string { return p.Source + "->" + p.Target }

// Herders returns the flows for which MirrorMaker 2 starts a worker: the enabled
// ones and, unless heartbeats are off, all others, since heartbeats of A->B are
// written to A by the worker of B->A (MirrorMakerConfig.clusterPairs).
func (c *Config) Herders() []Pair {
	beats := true
	if s, ok := c.top("emit.heartbeats.enabled"); ok {
		beats = parseBoolean(s.Value)
	}
	var pairs []Pair
	for _, pair := range c.pairs() {
		s, ok := c.top(pair.String() + ".enabled")
		enabled := ok && parseBoolean(s.Value)
		here := beats
		if s, ok := c.top(pair.String() + ".emit.heartbeats.enabled"); ok {
			here = parseBoolean(s.Value)
		}
		if enabled || here {
			pairs = append(pairs, pair)
		}
	}
	return pairs
}

// parseBoolean is Boolean.parseBoolean of Java: the word true, and no blanks.
func parseBoolean(s string) bool { return strings.EqualFold(s, "true") }

// pairs returns all pairs of different clusters.
func (c *Config) pairs() []Pair {
	var pairs []Pair
	for _, source := range c.clusters {
		for _, target := range c.clusters {
			if source != target {
				pairs = append(pairs, Pair{source, target})
			}
		}
	}
	return pairs
}

// top returns the setting of a key exactly as the file has it.
func (c *Config) top(key string) (Setting, bool) {
	i, ok := c.byKey[key]
	if !ok {
		return Setting{}, false
	}
	return c.entries[i], true
}

// resolve takes the entries that count, with the values of config providers.
func (c *Config) resolve(options ConfigOptions) {
	if options.LookupEnv == nil {
		options.LookupEnv = os.LookupEnv
	}
	providers := c.providers(options)
	entries := c.file.Last()
	for i := range entries {
		e := &entries[i]
		s := Setting{Key: e.Key, Value: e.Value, Origin: Origin{Kind: FromTop, Key: e.Key, At: e.At, entry: e}, Secret: javaprops.Secret(e.Key)}
		c.variables(&s, providers, options.KeepVariables)
		c.byKey[e.Key] = len(c.entries)
		c.entries = append(c.entries, s)
	}
}

func (c *Config) findClusters() {
	s, ok := c.top("clusters")
	if !ok || len(s.List()) == 0 {
		c.report(Problem{Kind: NoClusters, Level: LevelError, At: s.Origin.At, Key: "clusters", Message: "clusters names no cluster",
			Suggestion: "clusters=A, B and A.bootstrap.servers=..."})
	}
	c.clusters = s.List()
}

// findFlows finds the enabled flows: those whose connectors are, and for which
// MirrorMaker 2 starts a worker, or only does not because of a blank.
func (c *Config) findFlows() {
	herders := c.Herders()
	for _, pair := range c.pairs() {
		f := c.flow(pair.Source, pair.Target)
		if f.connectorEnabled() && (slices.Contains(herders, pair) || f.Get("enabled").Origin.Kind == FromFlow) {
			c.flows = append(c.flows, f)
		}
	}
}

func (c *Config) report(p Problem) { c.problems = append(c.problems, p) }
