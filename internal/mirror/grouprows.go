package mirror

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"

	"apograph/internal/groups"
)

// A Reason says why an offset of a group is not committed on the target, or not
// translated; of BeyondCopied, that it is held back.
type Reason string

// All reasons. Those up to NoOffset are about the source and the books.
const (
	HeldBack      Reason = "beyond_copied"  // the copy does not reach the group's offset: the end of what is copied stands for it
	BeyondEnd     Reason = "beyond_end"     // the source's log does not reach it either
	NotCopiedYet  Reason = "not_copied_yet" // the topic is in scope, and has no book yet
	NoBook        Reason = "no_book"        // the book is closed, and the next one not open; or it does not join the one before it
	SourceChanged Reason = "source_changed" // the source topic is gone, was created again, or its log was cut
	LogUnknown    Reason = "log_unknown"    // the source's log was cut, which a person accepted; whether the offset is one from before, nobody can know
	ShareGroup    Reason = "share_group"    // a group of a kind without committed offsets
	NoOffset      Reason = "no_offset"      // the group has committed none, or a negative one
	Excluded      Reason = "excluded"       // groups.exclude names the group
	NotMatched    Reason = "not_matched"    // groups does not

	Active        Reason = "active"         // the group has members on the target
	Ahead         Reason = "ahead"          // it has gone further on the target
	TakenOver     Reason = "taken_over"     // it is not where the flow left it: its owner has moved it
	Moved         Reason = "moved"          // somebody committed for it while the flow was about to
	TargetChanged Reason = "target_changed" // the target topic is gone, was created again, or has lost its end
	UnusableID    Reason = "unusable_id"    // the ledger cannot keep what is committed for a group of this id
	NotAuthorized Reason = "not_authorized"
	Failed        Reason = "failed" // what was asked of a cluster failed; the log says how
)

// A GroupStatus says where a group is in one partition, as its duty saw it last.
type GroupStatus struct {
	Group     string
	Topic     string // on the source; "" if the row is about all of the group
	Partition int32  // -1 if it is

	TargetTopic  string // "" unknown
	SourceOffset int64  // committed on the source; -1 none
	TargetOffset int64  // what that is on the target; -1 none
	Committed    int64  // what the group has there; -1 nothing, or not looked at

	// Action is DoCommit if the offset was committed in the last round, None if
	// there was nothing to do, and DoNothing if it must not be.
	Action groups.Action
	Reason Reason // of DoNothing; or of an offset that is held back
}

// PatternRows bounds the rows about groups that patterns leave out: a cluster may
// have a hundred thousand of them.
const PatternRows = 1000

// ByPattern reports whether the flow has nothing to do with the group, as its
// patterns say.
func (r Reason) ByPattern() bool { return r == Excluded || r == NotMatched }

// A GroupsStatus says where the groups were when they were last looked at.
type GroupsStatus struct {
	// Rows are by group, topic and partition, but for those about all of a group,
	// which come first. The slice is shared, and never changed.
	Rows []GroupStatus

	// Omitted counts the groups that patterns leave out for which there is no row:
	// those beyond [PatternRows].
	Omitted int

	// Lag is how long at most an offset that a group had committed on the source
	// until then had to wait for the same on the target; negative if that is not
	// known.
	Lag time.Duration
}

func rowOf(o *groupOffset) GroupStatus {
	row := GroupStatus{
		Group: o.group, Topic: o.topic, Partition: o.number, TargetTopic: o.TargetTopic,
		SourceOffset: o.offset, TargetOffset: groups.NoOffset, Committed: groups.NoOffset, Action: groups.None, Reason: o.reason,
	}
	switch {
	case o.reason == NoOffset:
		row.SourceOffset = groups.NoOffset
	case o.reason != "":
		row.Action = groups.DoNothing
	default:
		row.TargetOffset = o.Offset
		if o.Status == BeyondCopied {
			row.Reason = HeldBack
		}
	}
	return row
}

// wholeGroup returns a row about all of a group.
func wholeGroup(group string, reason Reason) GroupStatus {
	return GroupStatus{
		Group: group, Partition: -1, SourceOffset: groups.NoOffset, TargetOffset: groups.NoOffset, Committed: groups.NoOffset,
		Action: groups.DoNothing, Reason: reason,
	}
}

// failure returns the reason that an error is. A group of which an open
// transaction may yet commit offsets has a member, or had one a moment ago.
func failure(err error) Reason {
	if errors.Is(err, kerr.UnstableOffsetCommit) {
		return Active
	}
	for _, refused := range []*kerr.Error{kerr.GroupAuthorizationFailed, kerr.TopicAuthorizationFailed, kerr.ClusterAuthorizationFailed} {
		if errors.Is(err, refused) {
			return NotAuthorized
		}
	}
	return Failed
}

// A board shows the rows of the last round. Its memory is that of the rows.
type board struct {
	logger *slog.Logger
	told   map[string]string // what was said last of a group; of the duty's goroutine

	mu     sync.Mutex // guards status
	status GroupsStatus
}

// show replaces the rows, and says of each group what has changed about why it
// is left alone.
func (b *board) show(rows []GroupStatus, omitted int, details map[string]error) {
	b.tell(rows, details)
	b.mu.Lock()
	defer b.mu.Unlock()
	b.status.Rows, b.status.Omitted = rows, omitted
}

func (b *board) setLag(lag time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.status.Lag = lag
}

// toldAtOnce bounds the lines of one round.
const toldAtOnce = 20

// tell says of each group once why it is left alone, and when it is no more: not of
// those that patterns leave out, which whoever wrote them knows.
func (b *board) tell(rows []GroupStatus, details map[string]error) {
	reasons := make(map[string][]string)
	for i := range rows {
		r := &rows[i]
		if text := string(r.Reason); r.Action == groups.DoNothing && !r.Reason.ByPattern() && !slices.Contains(reasons[r.Group], text) {
			reasons[r.Group] = append(reasons[r.Group], text)
		}
	}
	lines := 0
	say := func(level slog.Level, message string, args ...any) {
		if lines++; lines <= toldAtOnce {
			b.logger.Log(context.Background(), level, message, args...)
		}
	}
	for _, group := range sortedKeys(reasons) {
		slices.Sort(reasons[group])
		text := strings.Join(reasons[group], ", ")
		if text == b.told[group] {
			continue
		}
		args := []any{"group", group, "reasons", text}
		if err := details[group]; err != nil {
			args = append(args, "error", err)
		}
		say(slog.LevelWarn, "offsets of the group are left alone", args...)
		b.told[group] = text
	}
	for _, group := range sortedKeys(b.told) {
		if len(reasons[group]) == 0 {
			say(slog.LevelInfo, "offsets of the group are left alone no more", "group", group)
			delete(b.told, group)
		}
	}
	if more := lines - toldAtOnce; more > 0 {
		b.logger.Warn("the same of more groups; the status says of which", "groups", more)
	}
}

// faults returns an error if something failed, which is one line however many
// groups it concerns.
func faults(rows []GroupStatus, details map[string]error) error {
	failed := make(map[string]bool)
	for i := range rows {
		if r := rows[i].Reason; r == Failed || r == NotAuthorized {
			failed[rows[i].Group] = true
		}
	}
	if len(failed) == 0 {
		return nil
	}
	first := sortedKeys(failed)[0]
	err := details[first]
	if err == nil {
		err = errors.New("it could not be looked at")
	}
	return fmt.Errorf("%d groups failed, such as %q: %w", len(failed), first, err)
}
