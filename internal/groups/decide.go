package groups

import "fmt"

// A Commit is one offset to be committed for a group.
type Commit struct {
	Group     string
	Partition Partition
	TopicID   [16]byte // of the topic; a topic with another id is refused. Zero: unknown
	Offset    int64    // the next offset to read
	Metadata  string

	// Seen is what the group had committed when the commit was decided, or
	// NoOffset. If it has something else by now somebody else is at work, and
	// nothing is committed.
	Seen int64
}

// An Action is what is done about an offset, or is to be done.
type Action string

const (
	None      Action = "none"   // the group is there already, or nothing was asked for
	DoCommit  Action = "commit" // it is committed, or would be
	DoNothing Action = "skip"   // it must not be committed
)

// A Reason says why an offset is skipped.
type Reason string

const (
	Active       Reason = "active"           // the group has members
	Joined       Reason = "joined"           // it has got members since it was looked at
	Backwards    Reason = "backwards"        // the group has gone further
	Moved        Reason = "moved"            // somebody else commits for the group
	NoCommits    Reason = "not_translatable" // the group is of a kind without committed offsets
	Unreadable   Reason = "unreadable"       // what the group has is not known
	Failed       Reason = "failed"           // the commit was refused, or its outcome is not known
	NotAttempted Reason = "not_attempted"    // the run ended before its turn
)

// A Decision says what to do about a commit.
type Decision struct {
	Action Action
	Reason Reason // of DoNothing
	Detail string // of DoNothing, one line for a person
}

// Decide says whether a commit may be made, by what is known of its group. These
// are the rules of MM2's group sync (KIP-545), made whole: only groups without
// members, never backwards. MM2 takes a group that it could not look at for a
// new one (KAFKA-19794); here it is left alone. rewind allows to go backwards.
func Decide(commit Commit, group Group, offsets Offsets, rewind bool) Decision {
	committed := offsets.Committed(commit.Partition)
	switch {
	case group.Err != nil:
		return skip(Unreadable, "the group could not be looked at: %v", group.Err)
	case !group.Kind.CommitsOffsets():
		return skip(NoCommits, "a %s group has no committed offsets", group.Kind)
	case group.HasMembers():
		return skip(Active, "the group has members: it is %s", group.State)
	case offsets.Err != nil:
		return skip(Unreadable, "what the group has committed could not be read: %v", offsets.Err)
	case committed == commit.Offset:
		return Decision{Action: None}
	case committed > commit.Offset && !rewind:
		return skip(Backwards, "the group has committed %d, which is further", committed)
	}
	return Decision{Action: DoCommit}
}

func skip(reason Reason, format string, args ...any) Decision {
	return Decision{Action: DoNothing, Reason: reason, Detail: fmt.Sprintf(format, args...)}
}
