package mm2

import (
	"fmt"
	"slices"
	"strings"

	"apograph/internal/javaprops"
)

// A Level says how bad a problem is.
type Level string

const (
	LevelError   Level = "error"   // the configuration is refused
	LevelWarning Level = "warning" // something does not do what its author will think
	LevelNotice  Level = "notice"  // worth knowing
)

// A ProblemKind is a stable name for what is wrong.
type ProblemKind string

const (
	NoClusters       ProblemKind = "no_clusters"
	BadAlias         ProblemKind = "bad_alias"
	SharedLedger     ProblemKind = "shared_ledger" // two flows would have one
	NoFlow           ProblemKind = "no_flow"
	NoBootstrap      ProblemKind = "no_bootstrap"
	UnknownKey       ProblemKind = "unknown_key"
	UnknownAlias     ProblemKind = "unknown_alias"
	OwnUnknownKey    ProblemKind = "unknown_apograph_key"
	WrongLevel       ProblemKind = "wrong_level"
	OldKey           ProblemKind = "old_key"
	OldKeyShadowed   ProblemKind = "old_key_shadowed"
	RemovedKey       ProblemKind = "removed_key"
	FlowBlank        ProblemKind = "flow_blank"
	FlowSelf         ProblemKind = "flow_self"
	FlowNotEnabled   ProblemKind = "flow_not_enabled"
	FlowEnabledBlank ProblemKind = "flow_enabled_blank"
	EnabledForAll    ProblemKind = "enabled_for_all" // a bare enabled=true
	BadValue         ProblemKind = "bad_value"
	EmptyElement     ProblemKind = "empty_element"  // of a list: 4.3.1 refuses it, 3.9.2 does not
	DoubleElement    ProblemKind = "double_element" // the same
	Conflict         ProblemKind = "conflict"
	RefusedKey       ProblemKind = "refused"
	IgnoredKey       ProblemKind = "ignored"
	BetterKey        ProblemKind = "better"
	ProviderRefused  ProblemKind = "provider_refused"
	ProviderUnknown  ProblemKind = "provider_unknown"
	ProviderFailed   ProblemKind = "provider_failed"
	IntervalTrap     ProblemKind = "interval"
	UnusedOfClient   ProblemKind = "unused_of_client"   // of clients that have another value from elsewhere
	SecurityOfClient ProblemKind = "security_of_client" // the same of a login, of TLS, or of addresses
)

// A Problem is a finding about one place of a configuration.
type Problem struct {
	Kind       ProblemKind
	Level      Level
	At         javaprops.Position
	Key        string // as it stands in the file
	Message    string // one line; never has a secret
	Suggestion string // what to do; "" if that is plain
	// MM2 is what MirrorMaker 2 does about it, where that is not what apograph
	// does; "" else.
	MM2 string
}

func (p Problem) String() string {
	s := fmt.Sprintf("%v: %s", p.At, p.Message)
	if p.Suggestion != "" {
		s += ": " + p.Suggestion
	}
	return s
}

// shownKey returns a key that nobody knows as it may be shown: a line of a private
// key that was not continued is taken for a key.
func shownKey(key string) string {
	if len(key) > 24 && !strings.Contains(key, ".") {
		return key[:4] + "..."
	}
	return key
}

// A ConfigError holds the problems because of which a configuration is refused.
type ConfigError struct{ Problems []Problem }

func (e *ConfigError) Error() string {
	lines := make([]string, len(e.Problems))
	for i, p := range e.Problems {
		lines[i] = p.String()
	}
	return strings.Join(lines, "\n")
}

// Unresolved returns the problems because of which settings have no value: their
// variables could not be replaced by a config provider that there is.
func (c *Config) Unresolved(settings map[string]Setting) []Problem {
	var found []Problem
	for _, p := range c.problems {
		for _, s := range settings {
			if p.Kind == ProviderFailed && s.Origin.Key == p.Key && s.Unresolved {
				found = append(found, p)
				break
			}
		}
	}
	return found
}

// OfClients reports whether a key of the file is about nothing but clients of
// clusters: what it says is needed where one of them is made.
func (c *Config) OfClients(key string) bool {
	if _, rest, ok := c.splitFlow(key); ok {
		return clientRole(rest) != "" || ofSide(rest)
	}
	_, known := c.keys.key(key)
	return !known && c.aliasOf(key) != "" || slices.Contains(c.keys.security, key)
}

// A ValueError is a value that its key does not allow.
type ValueError struct {
	Key    string
	At     javaprops.Position
	Value  string // as it may be shown
	Reason string
}

func (e *ValueError) Error() string {
	return fmt.Sprintf("%v: %s=%s: %s", e.At, e.Key, e.Value, e.Reason)
}

func (s Setting) wrong(at int, format string, args ...any) *ValueError {
	return &ValueError{Key: s.named(), At: s.ValueAt(at), Value: s.Shown(), Reason: fmt.Sprintf(format, args...)}
}

// named returns the key as it stands in the file, if it does.
func (s Setting) named() string {
	if s.Origin.Key != "" {
		return s.Origin.Key
	}
	return s.Key
}
