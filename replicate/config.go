package replicate

import (
	"errors"
	"fmt"
	"log/slog"
	"math"
	"time"

	"apograph/internal/connect"
	"apograph/internal/mirror"
	"apograph/internal/mm2"
	"apograph/internal/pace"
	"apograph/ledger"
)

// A Config says what one flow copies and how. The zero value of a field is its
// documented default.
type Config struct {
	Source connect.Cluster
	Target connect.Cluster

	// LedgerPath is the flow's ledger file. It is created if it does not
	// exist, once it is known that the flow can run.
	LedgerPath string

	Topics        []string // regular expressions on the whole name; at least one
	TopicsExclude []string // win over Topics

	// Policy names the topics on the target. The zero value keeps every name.
	Policy mm2.Policy

	// Heartbeats copies the source's heartbeats topics as well, whatever Topics
	// says.
	Heartbeats bool

	// AllowSameCluster lets source and target be one cluster.
	AllowSameCluster bool

	// Routes keeps this flow apart from others of the process, which share it.
	// Default: it is kept apart from itself alone.
	Routes *Routes

	// ReplicationFactor is that of topics that are made: 0 that of the source's
	// topic, but no more than the target has brokers; -1 what the target has for
	// its default; else the number itself.
	ReplicationFactor int

	Settings SettingsSync
	ACLs     ACLSync

	// Mirror says what is written for the clients of MirrorMaker 2 and for
	// consumer groups. The zero value writes nothing.
	Mirror mirror.Settings

	// Translator makes what translates offsets by the flow's ledger: for
	// checkpoints, and for the sync of groups.
	Translator func(*ledger.Ledger) mirror.Translator
	// Predecessor is the MirrorMaker 2 whose copy [Attach] may take over. Nil:
	// nothing is known of one.
	Predecessor *Predecessor

	// Once copies up to the high watermark that each partition had at the
	// start, and ends. Otherwise Run copies until its context ends.
	Once bool

	// Start is where topics begin that have no book. Partitions that are added
	// to a topic later, and topics that are created after the flow began, start
	// at 0 all the same.
	Start StartPoint

	// StartOf says so for each topic by itself. Nil: Start holds for all.
	StartOf func(topic string) StartPoint

	// Append lists topics, by their names on the source, that may be written
	// although the target's topic holds records that the ledger does not know. One
	// that the flow does not copy is refused.
	Append []string

	// Window is how many batches of a partition may be in flight, 1 to 5.
	// Default 5.
	Window int

	// MemoryBytes bounds the fetched data held at one time. Default 64 MiB.
	MemoryBytes int64

	// UnavailableAfter is how long, with Once, a partition is retried without
	// a step forward before it counts as stopped, and how long a topic that was
	// made is waited for. Default 60 s.
	UnavailableAfter time.Duration

	// ProduceTimeout is how long the target's leader waits for its followers
	// before it answers that it does not know. Default 30 s.
	ProduceTimeout time.Duration

	// RefreshInterval is how often the flow looks for new topics and
	// partitions, changed settings and topics that are gone. Default 30 s.
	RefreshInterval time.Duration

	// KnownTopics keeps the flow to the topics that are there when it starts, and
	// to those with books. Partitions that are added to them are copied.
	KnownTopics bool

	// RetryAfter is the pause before a partition that has stopped is tried
	// again; it doubles with every further stop, up to 64 times that. It does
	// not apply with Once. Default 10 s.
	RetryAfter time.Duration

	// RateLimit bounds the bytes of record batches that are fetched in a
	// second, over all partitions. 0: no bound.
	RateLimit int64

	// Pace is what RateLimit is kept by, for flows that share it. Default: one of
	// the flow's own.
	Pace *pace.Limiter

	Logger   *slog.Logger     // default: nothing is logged
	Progress func(Progress)   // called about once a second, from one goroutine
	Now      func() time.Time // default time.Now
}

// A SettingsMode says which target topics get their settings from the source
// while the flow runs.
type SettingsMode string

const (
	SettingsOfMade SettingsMode = ""    // those that this flow made, with what the source's topic sets itself
	SettingsOfAll  SettingsMode = "all" // all, with what the source's brokers set dynamically as well, as MirrorMaker 2 does
	SettingsOff    SettingsMode = "off" // none; topics are made with settings all the same
)

// SettingsSync says how the settings of topics follow the source. Whatever it
// says: those that an exact copy depends on are ours (see [SettingDrift]).
type SettingsSync struct {
	Mode SettingsMode

	// Interval is how often they are looked at; at the start they always are.
	// Default: whenever the flow looks for changes.
	Interval time.Duration

	// Exclude are regular expressions on the whole name of a setting that stays
	// behind. Nil: MirrorMaker 2's default, see
	// [mm2.DefaultConfigPropertiesExclude].
	Exclude []string

	// FromSource also sets what the source has by default
	// (use.defaults.from=source).
	FromSource bool
}

// ACLSync says whether access control entries about topics go over to the
// target. What is there is never taken away.
type ACLSync struct {
	Enabled  bool
	Interval time.Duration // default 10 minutes; at the start they always do
}

// Validate returns everything that is wrong with c, joined.
func (c *Config) Validate() error {
	var errs []error
	for _, x := range []struct{ name, value string }{
		{"source alias", c.Source.Alias}, {"target alias", c.Target.Alias}, {"ledger", c.LedgerPath},
	} {
		if x.value == "" {
			errs = append(errs, fmt.Errorf("%s is empty", x.name))
		}
	}
	if len(c.Source.Bootstrap) == 0 || len(c.Target.Bootstrap) == 0 {
		errs = append(errs, errors.New("source and target need a bootstrap server each"))
	}
	if len(c.Topics) == 0 {
		errs = append(errs, errors.New("no topics are given"))
	}
	switch c.Settings.Mode {
	case SettingsOfMade, SettingsOfAll, SettingsOff:
	default:
		errs = append(errs, fmt.Errorf("settings of topics: %q is no mode", c.Settings.Mode))
	}
	if c.ReplicationFactor < -1 || c.ReplicationFactor > math.MaxInt16 {
		errs = append(errs, fmt.Errorf("replication factor %d is not -1, and not in [0, %d]", c.ReplicationFactor, math.MaxInt16))
	}
	if c.RateLimit < 0 || c.Settings.Interval < 0 || c.ACLs.Interval < 0 || c.RefreshInterval < 0 || c.RetryAfter < 0 {
		errs = append(errs, errors.New("a rate limit or an interval is negative"))
	}
	if c.Translator == nil && (c.Mirror.Checkpoints.Enabled || c.Mirror.GroupSync.Enabled) {
		errs = append(errs, errors.New("checkpoints and the sync of groups need a translator"))
	}
	if c.Window < 0 || c.Window > 5 {
		errs = append(errs, fmt.Errorf("window %d is not in [1, 5]", c.Window))
	}
	return errors.Join(errs...)
}

func (c *Config) setDefaults() {
	if c.Window == 0 {
		c.Window = 5
	}
	if c.MemoryBytes == 0 {
		c.MemoryBytes = 64 << 20
	}
	if c.UnavailableAfter == 0 {
		c.UnavailableAfter = 60 * time.Second
	}
	if c.ProduceTimeout == 0 {
		c.ProduceTimeout = 30 * time.Second
	}
	if c.RefreshInterval == 0 {
		c.RefreshInterval = mm2.DefaultRefresh
	}
	if c.RetryAfter == 0 {
		c.RetryAfter = 10 * time.Second
	}
	if c.ACLs.Interval == 0 {
		c.ACLs.Interval = 10 * time.Minute
	}
	if c.Settings.Exclude == nil {
		c.Settings.Exclude = []string{mm2.DefaultConfigPropertiesExclude}
	}
	if c.Routes == nil {
		c.Routes = &Routes{}
	}
	if c.StartOf == nil {
		start := c.Start
		c.StartOf = func(string) StartPoint { return start }
	}
	if c.Pace == nil {
		c.Pace = pace.New(c.RateLimit)
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	if c.Progress == nil {
		c.Progress = func(Progress) {}
	}
	if c.Now == nil {
		c.Now = time.Now
	}
}

// A UsageError reports that the flow cannot run as asked for. Nothing was
// written to a cluster or a ledger.
type UsageError struct {
	Err  error
	hint string
}

// Hint returns what to do about it, in one sentence without a full stop; "" if
// the error says all.
func (e *UsageError) Hint() string {
	var hinted interface{ Hint() string }
	if e.hint == "" && errors.As(e.Err, &hinted) {
		return hinted.Hint()
	}
	return e.hint
}

func (e *UsageError) Error() string { return e.Err.Error() }
func (e *UsageError) Unwrap() error { return e.Err }

func usageErrorf(format string, args ...any) *UsageError {
	return &UsageError{Err: fmt.Errorf(format, args...)}
}

// A RefusedError reports that a gate refused: what was asked for would do
// harm. Nothing was written.
type RefusedError struct{ Err error }

func (e *RefusedError) Error() string { return e.Err.Error() }
func (e *RefusedError) Unwrap() error { return e.Err }
