package translate

import (
	"context"
	"errors"
	"fmt"

	"apograph/internal/groups"
)

// Reasons to skip a transfer that are the translation's, beside those of package
// groups.
const (
	NoAnswer   groups.Reason = "unknown"       // there is no translation
	NotCopied  groups.Reason = "beyond_copied" // the target does not have it yet
	Inexact    groups.Reason = "inexact"       // records would be skipped or read again
	Withheld   groups.Reason = "withheld"      // another group stands against all commits
	Unverified groups.Reason = "unverified"    // the target could not be asked
	Gone       groups.Reason = "gone"          // the target's log ends before it
)

// A Carry commits translated offsets to the target, or says what it would do.
type Carry struct {
	Target *groups.Cluster

	TargetGroup    string // commit under this name; empty is that of each transfer
	IncludeInexact bool   // commit BeforeStart, Lost and BelowTargetStart as well
	AllowRewind    bool   // commit below what the target's group has committed
	SkipActive     bool   // leave groups that are in use alone, and do the others
	Execute        bool   // write; else only decide

	// Against says what stands against all commits, beside groups on the
	// target: a group that could not be read on the source, for instance.
	Against string
}

// A CarryReport says what there is on the target.
type CarryReport struct {
	Groups map[string]groups.Group // by the names under which they are committed

	// Active are groups that have members, and Unread those that could not be
	// looked at, both in the order of transfers. Without SkipActive either of
	// them stands against all commits.
	Active, Unread []string
}

// against returns what stands against all commits, or nothing.
func (c *Carry) against(r *CarryReport) string {
	switch {
	case c.Against != "":
		return c.Against
	case c.SkipActive:
		return ""
	case len(r.Active) > 0:
		return fmt.Sprintf("group %s has members on %s", r.Active[0], c.Target.Alias)
	case len(r.Unread) > 0:
		return fmt.Sprintf("group %s could not be looked at on %s", r.Unread[0], c.Target.Alias)
	}
	return ""
}

// Run decides about transfers, which [CheckTarget] has seen, and with Execute
// commits them. It fills in what the target has, and a decision with its reason;
// after a commit, what was read back.
//
// All groups are looked at before anything is written. Per group and partition
// errors are in the transfers.
func (c *Carry) Run(ctx context.Context, transfers []Transfer) CarryReport {
	ids := c.targetGroups(transfers)
	found, offsets := lookAt(ctx, c.Target, ids, c.Target.Offsets)
	report := CarryReport{Groups: found}
	for _, id := range ids {
		switch group := report.Groups[id]; {
		case group.Err != nil || offsets[id].Err != nil:
			report.Unread = append(report.Unread, id)
		case group.HasMembers() && group.Kind.CommitsOffsets():
			report.Active = append(report.Active, id)
		}
	}
	for i := range transfers {
		t := &transfers[i]
		id := c.targetGroup(t)
		commit := c.commitOf(t)
		t.TargetCommitted = offsets[id].Committed(commit.Partition)
		t.Decision = c.decide(t, commit, report.Groups[id], offsets[id])
		if t.Decision.Reason == groups.Unreadable && t.Err == nil {
			t.Err = fmt.Errorf("group %s on %s: %w", id, c.Target.Alias, errors.Join(report.Groups[id].Err, offsets[id].Err))
		}
	}
	if why := c.against(&report); why != "" {
		withhold(transfers, why)
	} else if c.Execute && ctx.Err() == nil {
		c.commit(ctx, transfers)
	}
	return report
}

// targetGroups returns the groups to commit for, each once.
func (c *Carry) targetGroups(transfers []Transfer) []string {
	seen := make(map[string]bool)
	var ids []string
	for i := range transfers {
		if id := c.targetGroup(&transfers[i]); !seen[id] {
			seen[id] = true
			ids = append(ids, id)
		}
	}
	return ids
}

func (c *Carry) targetGroup(t *Transfer) string {
	if c.TargetGroup != "" {
		return c.TargetGroup
	}
	return t.Group
}

func (c *Carry) commitOf(t *Transfer) groups.Commit {
	return groups.Commit{
		Group:     c.targetGroup(t),
		Partition: groups.Partition{Topic: t.Pair.TargetTopic, Number: t.Partition},
		TopicID:   t.topicID,
		Offset:    t.TargetOffset,
		Metadata:  t.Metadata,
		Seen:      t.TargetCommitted,
	}
}

func (c *Carry) decide(t *Transfer, commit groups.Commit, group groups.Group, offsets groups.Offsets) groups.Decision {
	skip := func(reason groups.Reason, detail string) groups.Decision {
		return groups.Decision{Action: groups.DoNothing, Reason: reason, Detail: detail}
	}
	switch {
	case t.Status == Unknown:
		return skip(NoAnswer, "there is no offset to commit")
	case t.Err != nil:
		return skip(Unverified, "it could not be checked")
	case t.Status == BeyondCopied:
		return skip(NotCopied, "it is not copied yet")
	case t.Gone:
		return skip(Gone, "consumers would find no offset there")
	case t.TargetOffset > t.TargetEnd:
		return skip(NotCopied, fmt.Sprintf("that is beyond the end of the target book, %d", t.TargetEnd))
	case !t.Status.IsExact() && !c.IncludeInexact:
		return skip(Inexact, "it is not exact")
	}
	return groups.Decide(commit, group, offsets, c.AllowRewind)
}

// withhold takes back all commits, as something stands against them.
func withhold(transfers []Transfer, why string) {
	for i := range transfers {
		if t := &transfers[i]; t.Decision.Action == groups.DoCommit {
			t.Decision = groups.Decision{
				Action: groups.DoNothing, Reason: Withheld,
				Detail: "nothing is committed for any group: " + why,
			}
		}
	}
}

// commit makes the commits that were decided.
func (c *Carry) commit(ctx context.Context, transfers []Transfer) {
	var commits []groups.Commit
	var indexes []int
	for i := range transfers {
		if transfers[i].Decision.Action == groups.DoCommit {
			indexes = append(indexes, i)
			commits = append(commits, c.commitOf(&transfers[i]))
		}
	}
	for n, outcome := range c.Target.Commit(ctx, commits) {
		t := &transfers[indexes[n]]
		t.Decision, t.TargetCommitted = outcome.Decision, outcome.Committed
		if outcome.Err != nil {
			t.Err = fmt.Errorf("group %s, %v on %s: %w", commits[n].Group, commits[n].Partition, c.Target.Alias, outcome.Err)
		}
	}
}
