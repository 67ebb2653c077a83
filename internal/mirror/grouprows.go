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
// translated; or, of one that is, why it is not exact.
type Reason string

// All reasons. Those up to NoOffset are about the source and the books.
const (
	HeldBack      Reason = "beyond_copied"  // the copy does not reach the group's offset: the end of what is copied stands for it
	BelowStart    Reason = "before_start"   // the offset is below all that is in scope: the first copied record stands for it
	AmongLost     Reason = "lost"           // it is among records that were lost: what was copied behind them stands for it
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

	BelowTargetStart Reason = "below_target_start" // the target has removed what is to be read next: its log start stands for it
)

// A GroupStatus says where a group is in one partition, as its duty saw it last.
type GroupStatus struct {
	Group     string
	Topic     string // on the source; "" if the row is about all of the group
	Partition int32  // -1 if it is

	TargetTopic  string // "" unknown
	SourceOffset int64  // committed on the source; -1 none
	TargetOffset int64  // what that is on the target, or what stands for it; -1 none
	Committed    int64  // what the group has there; -1 nothing, or not looked at

	// Action is DoCommit if the offset was committed in the last round, None if
	// there was nothing to do, and DoNothing if it must not be.
	Action groups.Action
	Reason Reason // of DoNothing; or of an offset that is not exact
}

// PatternRows bounds the rows about groups that patterns leave out: a cluster may
// have a hundred thousand of them.
const PatternRows = 1000

// ByPattern reports whether the flow has nothing to do with the group, as its
// patterns say.
func (r Reason) ByPattern() bool { return r == Excluded || r == NotMatched }

// Inexact reports whether a group goes on behind records that it has not read, as the
// target does not have them. What is held back is no such thing, and passes.
func (r Reason) Inexact() bool { return r == BelowStart || r == AmongLost || r == BelowTargetStart }

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
		if o.Status != Exact && o.Status != End {
			row.Reason = Reason(o.Status)
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
	logger         *slog.Logger
	alone, inexact telling // of the duty's goroutine

	mu     sync.Mutex // guards status
	status GroupsStatus
}

func newBoard(logger *slog.Logger) *board {
	return &board{
		logger: logger, status: GroupsStatus{Lag: -1},
		alone: telling{
			is:  func(r *GroupStatus) bool { return r.Action == groups.DoNothing && !r.Reason.ByPattern() },
			now: "offsets of the group are left alone", over: "offsets of the group are left alone no more",
			told: make(map[string]string),
		},
		inexact: telling{
			is:  func(r *GroupStatus) bool { return r.Reason.Inexact() },
			now: "the group goes on behind records that it has not read, which the target does not have", over: "offsets of the group are exact again, or left alone",
			told: make(map[string]string),
		},
	}
}

// show replaces the rows, and says of each group what has changed about why it
// is left alone, or is not where it is on the source.
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

// tell says what is new in the rows.
func (b *board) tell(rows []GroupStatus, details map[string]error) {
	lines := 0
	say := func(level slog.Level, message string, args ...any) {
		if lines++; lines <= toldAtOnce {
			b.logger.Log(context.Background(), level, message, args...)
		}
	}
	b.alone.tell(rows, details, say)
	b.inexact.tell(rows, details, say)
	if more := lines - toldAtOnce; more > 0 {
		b.logger.Warn("the same of more groups; the status says of which", "groups", more)
	}
}

// A telling is what is said of groups about which rows of one kind are: of those that
// patterns leave out nothing, which whoever wrote them knows.
type telling struct {
	is        func(r *GroupStatus) bool
	now, over string            // what is said when there are reasons, and when there are none any more
	told      map[string]string // the reasons that were said last of a group
}

// tell says of each group once for which reasons there are rows about it, and when
// there are none any more: not of one that could not be looked at.
func (t *telling) tell(rows []GroupStatus, details map[string]error, say func(slog.Level, string, ...any)) {
	reasons := make(map[string][]string)
	for i := range rows {
		r := &rows[i]
		if text := string(r.Reason); t.is(r) && !slices.Contains(reasons[r.Group], text) {
			reasons[r.Group] = append(reasons[r.Group], text)
		}
	}
	for _, group := range sortedKeys(reasons) {
		slices.Sort(reasons[group])
		text := strings.Join(reasons[group], ", ")
		if text == t.told[group] {
			continue
		}
		args := []any{"group", group, "reasons", text}
		if err := details[group]; err != nil {
			args = append(args, "error", err)
		}
		say(slog.LevelWarn, t.now, args...)
		t.told[group] = text
	}
	for _, group := range sortedKeys(t.told) {
		if len(reasons[group]) == 0 && details[group] == nil {
			say(slog.LevelInfo, t.over, "group", group)
			delete(t.told, group)
		}
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
