package replicate

import (
	"fmt"
	"strings"
	"time"
)

// A StartPoint says where the copy of a topic begins that has no book yet. The
// zero value is the earliest record that the source holds.
type StartPoint struct {
	latest bool
	time   time.Time
	group  string
}

// ParseStartPoint reads "earliest", "latest", a time in RFC 3339, or "group:G".
//
// Latest is the last stable offset, as for a consumer that reads committed
// data: what open transactions bring later is copied. A time stands for the
// first record that is not older (ListOffsets), and for latest if there is
// none. A group stands for its committed offset; where it has none, for
// earliest.
func ParseStartPoint(s string) (StartPoint, error) {
	switch {
	case s == "" || s == "earliest":
		return StartPoint{}, nil
	case s == "latest":
		return StartPoint{latest: true}, nil
	case strings.HasPrefix(s, "group:") && len(s) > len("group:"):
		return StartPoint{group: strings.TrimPrefix(s, "group:")}, nil
	}
	t, err := time.Parse(time.RFC3339, s)
	if err != nil {
		return StartPoint{}, fmt.Errorf("start %q is neither earliest, latest, group:NAME nor a time such as 2026-11-29T12:00:00Z", s)
	}
	return StartAt(t), nil
}

// StartAt returns the start point of a time.
func StartAt(t time.Time) StartPoint { return StartPoint{time: t.UTC().Round(0)} }

// StartLatest returns the start point "latest".
func StartLatest() StartPoint { return StartPoint{latest: true} }

// StartOfGroup returns the start point of what a group has committed.
func StartOfGroup(group string) StartPoint { return StartPoint{group: group} }

// earliest reports whether the copy begins with all that the source holds.
func (s StartPoint) earliest() bool { return s == StartPoint{} }

func (s StartPoint) String() string {
	switch {
	case s.latest:
		return "latest"
	case s.group != "":
		return "group:" + s.group
	case !s.time.IsZero():
		return s.time.UTC().Format(time.RFC3339)
	}
	return "earliest"
}
