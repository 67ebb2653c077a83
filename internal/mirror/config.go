package mirror

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"apograph/internal/connect"
	"apograph/internal/mm2"
	"apograph/ledger"
)

// A Config is a flow as its duties see it.
type Config struct {
	Source, Target connect.Cluster
	Ledger         *ledger.Ledger
	Topics         mm2.TopicRules // what is copied, and the policy
	Settings       Settings

	// Translate is needed for checkpoints and for the sync of groups alone.
	Translate Translator

	Logger *slog.Logger     // default: nothing is logged
	Now    func() time.Time // default time.Now
}

// Settings say which duties a flow has. The zero value has none.
type Settings struct {
	OffsetSyncs OffsetSyncs
	Checkpoints Checkpoints
	GroupSync   GroupSync
	Heartbeats  []Heartbeats
}

// OffsetSyncs says what is written of offset syncs.
type OffsetSyncs struct {
	Enabled          bool // emit.offset-syncs.enabled
	OnTarget         bool // offset-syncs.topic.location=target
	TopicReplication int  // see [Checkpoints.TopicReplication]

	// Spacing is how many source offsets at least lie between the newest sync of
	// a partition and those that help groups behind it (offset.lag.max). Default
	// 100.
	Spacing int64
}

// Checkpoints says what is written of checkpoints.
type Checkpoints struct {
	Enabled  bool
	Interval time.Duration // default 60 s

	// TopicReplication is the replication factor of a topic that is made: -1 what
	// the cluster has for its default. Default: 3, as MirrorMaker 2 has it, but no
	// more than the cluster has brokers.
	TopicReplication int

	Groups        mm2.Selection // groups, groups.exclude
	RefreshGroups time.Duration // how often groups are looked for; 0: at the start alone
}

// GroupSync says which offsets are committed for groups on the target. Which
// groups, and how often they are looked for, is as for [Checkpoints].
type GroupSync struct {
	Enabled  bool
	Interval time.Duration // default 60 s

	// Rewinds lets a group go back on the target that went back on the source
	// (apograph.sync.group.rewinds).
	Rewinds bool
}

// Heartbeats says what is written of one pair of clusters.
type Heartbeats struct {
	Source, Target string // aliases: the key of its records

	// OnSource: Target is the source of the flow whose duty this is.
	OnSource bool

	// Copied: another flow copies from Target. As on the flow's own source, none
	// is written at the end of a copy, which that flow would lack.
	Copied bool

	Interval         time.Duration // 0: the topic is made, and nothing else
	TopicReplication int           // see [Checkpoints.TopicReplication]
}

// IsZero reports whether there is nothing to do.
func (s Settings) IsZero() bool {
	return !s.OffsetSyncs.Enabled && !s.Checkpoints.Enabled && !s.GroupSync.Enabled && len(s.Heartbeats) == 0
}

// A Status says how much a translated offset is worth, in the words of the
// package translate.
type Status string

// What [Translator.Forward] answers. That of [Unknown] has no offset.
const (
	Unknown      Status = "unknown"       // there is no book, and no offset
	Exact        Status = "exact"         // of the first copied record at or after the offset
	End          Status = "end"           // the end of the target's book, and all before the offset is accounted for
	BeyondCopied Status = "beyond_copied" // the end of the target's book, which does not reach so far
	BeforeStart  Status = "before_start"  // of the first copied record: the offset is before all that is in scope
	Lost         Status = "lost"          // of the first copied record after the lost ones that the offset is among
)

// A Position is what a group has committed in a source topic: the next offset to be
// read.
type Position struct {
	Group     string
	Topic     string
	Partition int32
	Offset    int64
	Epoch     int32 // leader epoch of the commit; -1: none
}

// A Translation is what a position is on the target.
type Translation struct {
	Status Status
	Offset int64 // on the target; -1 where Status is [Unknown]

	// Doubtful says that Status is [Unknown] as the source's log was cut, and nobody can
	// know whether the position is one of the log from before.
	Doubtful bool

	// Pair is whose books answer, the closed generation where Status is
	// [Unknown] because of that; 0 if there is no book.
	Pair                         ledger.PairID
	TargetTopic                  string
	SourceTopicID, TargetTopicID ledger.TopicID // zero: the book does not know
}

// A Translator translates offsets by the committed books.
type Translator interface {
	// Forward returns one translation for each position, in their order. It is
	// safe for concurrent use, and asks no cluster.
	Forward(ctx context.Context, positions []Position) ([]Translation, error)
}

func (c *Config) setDefaults() {
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.Settings.OffsetSyncs.Spacing <= 0 {
		c.Settings.OffsetSyncs.Spacing = 100
	}
	if c.Settings.Checkpoints.Interval <= 0 {
		c.Settings.Checkpoints.Interval = time.Minute
	}
	if c.Settings.GroupSync.Interval <= 0 {
		c.Settings.GroupSync.Interval = time.Minute
	}
}

func (c *Config) validate() error {
	if c.Translate == nil && (c.Settings.Checkpoints.Enabled || c.Settings.GroupSync.Enabled) {
		return errors.New("mirror: checkpoints and the sync of groups need a translator")
	}
	return nil
}
