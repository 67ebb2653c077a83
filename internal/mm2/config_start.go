package mm2

import (
	"regexp"
	"strconv"
	"strings"
	"time"
)

// A StartKind says where a topic without a book begins.
type StartKind string

const (
	StartEarliest StartKind = "earliest" // the first record that the source has
	StartLatest   StartKind = "latest"   // what is written from now on
	StartTime     StartKind = "time"     // the first record of that time or later
	StartAgo      StartKind = "ago"      // the first record of that age or younger
	StartGroup    StartKind = "group"    // where a group of the source stands
)

// A Start is where a topic without a book begins. Topics that are born after the
// flow begin at 0, whatever it says.
type Start struct {
	Kind  StartKind
	Time  time.Time     // of StartTime
	Ago   time.Duration // of StartAgo
	Group string        // of StartGroup
	From  Setting       // what said so
}

const (
	startKey    = "apograph.start"
	startPrefix = startKey + "."
	resetKey    = "auto.offset.reset"
)

// Start returns where a topic begins. A->B.apograph.start.TOPIC wins over
// apograph.start.TOPIC, that over A->B.apograph.start, that over apograph.start,
// and that over auto.offset.reset of the client that reads the source, which
// MirrorMaker 2 has. The error is a [*ValueError].
func (f FlowConfig) Start(topic string) (Start, error) {
	flow := f.String() + "."
	for _, key := range []string{flow + startPrefix + topic, startPrefix + topic, flow + startKey, startKey} {
		if s, ok := f.config.top(key); ok {
			return parseStart(s)
		}
	}
	if s, ok := f.SourceClient()[resetKey]; ok {
		return parseReset(s)
	}
	return Start{Kind: StartEarliest, From: Setting{Key: resetKey, Value: "earliest", Origin: Origin{Kind: FromDefault}}}, nil
}

// ParseStart returns what a value of apograph.start says: earliest, latest, a time
// of RFC 3339, or group:GROUP. The error is a [*ValueError].
func ParseStart(value string) (Start, error) {
	return parseStart(Setting{Key: startKey, Value: value})
}

func parseStart(s Setting) (Start, error) {
	value := trim(s.Value)
	start := Start{From: s}
	group, isGroup := strings.CutPrefix(value, "group:")
	switch {
	case value == "earliest" || value == "latest":
		start.Kind = StartKind(value)
	case isGroup && group != "":
		start.Kind, start.Group = StartGroup, group
	default:
		t, err := time.Parse(time.RFC3339, value)
		if err != nil {
			return Start{}, s.wrong(0, "none of earliest, latest, group:GROUP and a time such as 2026-01-31T12:00:00Z")
		}
		start.Kind, start.Time = StartTime, t
	}
	return start, nil
}

// parseReset takes Kafka's auto.offset.reset (AutoOffsetResetStrategy, in lower
// case only; by_duration since 4.0, KIP-1106).
func parseReset(s Setting) (Start, error) {
	value := trim(s.Value)
	ago, isDuration := strings.CutPrefix(value, "by_duration:")
	switch {
	case value == "earliest" || value == "latest":
		return Start{Kind: StartKind(value), From: s}, nil
	case value == "none":
		return Start{}, s.wrong(0, "without a reset a new topic cannot begin anywhere")
	case isDuration:
		if d, ok := parsePeriod(ago); ok {
			return Start{Kind: StartAgo, Ago: d, From: s}, nil
		}
		return Start{}, s.wrong(0, "no duration of ISO 8601, such as by_duration:PT1H")
	}
	return Start{}, s.wrong(0, "none of earliest, latest, by_duration:PnDTnHnMn.nS")
}

// period is what Duration.parse of Java takes, without its signs: a negative age
// is none.
var period = regexp.MustCompile(`(?i)^P(?:(\d+)D)?(T(?:(\d+)H)?(?:(\d+)M)?(?:(\d+)(?:[.,](\d{0,9}))?S)?)?$`)

func parsePeriod(s string) (time.Duration, bool) {
	m := period.FindStringSubmatch(s)
	if m == nil || strings.EqualFold(m[2], "T") || m[1]+m[2] == "" {
		return 0, false
	}
	var total time.Duration
	for group, unit := range map[int]time.Duration{1: 24 * time.Hour, 3: time.Hour, 4: time.Minute, 5: time.Second} {
		n, err := strconv.ParseInt("0"+m[group], 10, 64)
		if err != nil || n > int64((1<<62-1)/unit)/4 {
			return 0, false
		}
		total += time.Duration(n) * unit
	}
	nanos, _ := strconv.Atoi((m[6] + "000000000")[:9])
	return total + time.Duration(nanos), true
}

// checkStarts checks all that the file says about where this flow's topics begin.
func (c *Config) checkStarts(f FlowConfig) {
	flow := f.String() + "."
	for _, s := range c.entries {
		name := strings.TrimPrefix(s.Key, flow)
		if name == startKey || strings.HasPrefix(name, startPrefix) {
			if _, err := parseStart(s); err != nil {
				c.asError(err)
			}
		}
	}
	if s, ok := f.SourceClient()[resetKey]; ok {
		if _, err := parseReset(s); err != nil {
			c.asError(err)
		}
	}
}
