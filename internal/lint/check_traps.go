package lint

import (
	"fmt"
	"strings"
	"time"
	"unicode"

	"apograph/internal/mm2"
)

// traps reports values that are allowed and do not do what they look like. key
// is that of the setting without its level.
func (c *checker) traps(s mm2.Setting, key string) {
	switch key {
	case mm2.PolicySeparatorKey:
		c.separatorTrap(s)
		return
	case mm2.RefreshKey:
		c.refreshTrap(s)
		return
	}
	n, err := s.Int(64)
	if err != nil {
		return
	}
	const factor = "replication.factor = 3, or -1 for the default of the target"
	switch {
	case strings.HasSuffix(key, ".interval.seconds"):
		c.interval(s, key, n)
	case key == "offset.lag.max" && n <= 0:
		c.add("AP0322", s.ValueAt(0), s.Key, "MirrorMaker 2 would send an offset sync for every record, and drop most of them under load", "offset.lag.max = 100")
	case key == "replication.factor" && n == 1:
		c.add("AP0323", s.ValueAt(0), s.Key, "topics that are made live on one broker each", factor)
	case key == "replication.factor" && n == 2:
		c.add("AP0324", s.ValueAt(0), s.Key, "where min.insync.replicas is 2, nothing can be written while one broker is down", factor)
	}
}

// separatorTrap reports a separator that makes names ambiguous, or illegal.
func (c *checker) separatorTrap(s mm2.Setting) {
	const keep = "keep the default, a dot"
	switch separator := s.Value; {
	case strings.TrimRight(separator, " \t\f") == "":
		c.add("AP0326", s.ValueAt(0), s.Key, "the separator is empty: every letter of a name would be a cluster", "delete the line, or use IdentityReplicationPolicy")
	case separator == "-":
		c.add("AP0325", s.ValueAt(0), s.Key, "mm2-offset-syncs looks like a topic that was copied from a cluster mm2", keep)
	case separator == "_":
		c.add("AP0325", s.ValueAt(0), s.Key, "every topic that ends with _internal looks internal, and every name with an underscore copied", keep)
	case mm2.CheckTopicName("x"+separator) != nil:
		c.add("AP0330", s.ValueAt(0), s.Key, fmt.Sprintf("%s holds a character that no name of a topic may hold", brief(separator)), keep)
	case strings.ContainsFunc(separator, func(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) }):
		c.add("AP0325", s.ValueAt(0), s.Key, fmt.Sprintf("%s is found inside of names, which then look as if they were copied", brief(separator)), keep)
	}
}

// refreshTrap reports a time between two looks at the clusters that is hardly
// meant.
func (c *checker) refreshTrap(s mm2.Setting) {
	every, err := s.Interval()
	_, bare := s.Int(64)
	switch {
	case err != nil: // AP0301
	case every < time.Second && bare == nil:
		c.add("AP0329", s.ValueAt(0), s.Key, fmt.Sprintf("%s without a unit is milliseconds: both clusters are asked for all topics that often", strings.TrimSpace(s.Value)), s.Key+" = "+strings.TrimSpace(s.Value)+"s")
	case every < time.Second:
		c.add("AP0329", s.ValueAt(0), s.Key, "both clusters are asked for all topics that often", s.Key+" = 30s")
	case every > time.Hour:
		c.add("AP0329", s.ValueAt(0), s.Key, fmt.Sprintf("topics and partitions that are added wait for up to %v", every), s.Key+" = 30s")
	}
}

// interval reports an interval that is no time. key is that of the setting
// without its level.
func (c *checker) interval(s mm2.Setting, key string, seconds int64) {
	duty := strings.TrimSuffix(key, ".interval.seconds")
	off := strings.TrimSuffix(s.Key, ".interval.seconds") + ".enabled = false"
	switch {
	case seconds == 0 && strings.HasPrefix(key, "emit."):
		c.add("AP0320", s.ValueAt(0), s.Key, "0 does not switch it off: MirrorMaker 2 does it without a pause", off)
	case seconds == 0:
		c.add("AP0320", s.ValueAt(0), s.Key, "0 does not switch it off: MirrorMaker 2 fails to schedule "+duty, off)
	case seconds < 0:
		c.add("AP0321", s.ValueAt(0), s.Key, "an interval below 0 switches "+duty+" off", off)
	}
}

// combinations reports keys that do not go together in a flow.
func (c *checker) combinations() {
	const key = "emit.checkpoints.enabled"
	for _, f := range c.running {
		if f.IsSet(key) && !isOn(f, key) && isOn(f, "sync.group.offsets.enabled") {
			c.once("AP0327", f.Get(key), f, "group offsets are to be synced, and MirrorMaker 2 takes them from checkpoints, which are switched off", "delete the line")
		}
	}
}
