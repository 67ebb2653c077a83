package groups_test

import (
	"errors"
	"testing"

	"apograph/internal/groups"
)

func TestDecide(t *testing.T) {
	p := groups.Partition{Topic: "orders"}
	empty := groups.Group{Kind: groups.Classic, State: "Empty"}
	has := func(offset int64) groups.Offsets {
		return groups.Offsets{At: map[groups.Partition]groups.Offset{p: {At: offset}}}
	}
	lost := errors.New("gone")
	tests := []struct {
		name    string
		offset  int64
		group   groups.Group
		offsets groups.Offsets
		rewind  bool
		want    groups.Action
		reason  groups.Reason
	}{
		{name: "no group", offset: 9, group: groups.Group{Kind: groups.Absent}, want: groups.DoCommit},
		{name: "nothing committed", offset: 9, group: empty, offsets: has(groups.NoOffset), want: groups.DoCommit},
		{name: "zero is an offset", offset: 0, group: empty, offsets: has(groups.NoOffset), want: groups.DoCommit},
		{name: "forwards", offset: 9, group: empty, offsets: has(8), want: groups.DoCommit},
		{name: "from zero", offset: 9, group: empty, offsets: has(0), want: groups.DoCommit},
		{name: "there already", offset: 9, group: empty, offsets: has(9), want: groups.None},
		{name: "backwards", offset: 9, group: empty, offsets: has(10), want: groups.DoNothing, reason: groups.Backwards},
		{name: "backwards to zero", offset: 0, group: empty, offsets: has(10), want: groups.DoNothing, reason: groups.Backwards},
		{name: "backwards as asked", offset: 9, group: empty, offsets: has(10), rewind: true, want: groups.DoCommit},
		{name: "another partition is further", offset: 9, group: empty,
			offsets: groups.Offsets{At: map[groups.Partition]groups.Offset{{Topic: "orders", Number: 1}: {At: 10}}}, want: groups.DoCommit},
		{name: "dead", offset: 9, group: groups.Group{Kind: groups.Consumer, State: "Dead"}, want: groups.DoCommit},
		{name: "members", offset: 9, group: groups.Group{Kind: groups.Classic, State: "Stable"}, want: groups.DoNothing, reason: groups.Active},
		{name: "members, there already", offset: 9, group: groups.Group{Kind: groups.Classic, State: "Stable"}, offsets: has(9), want: groups.DoNothing, reason: groups.Active},
		{name: "members, rewind", offset: 9, group: groups.Group{Kind: groups.Classic, State: "PreparingRebalance"}, rewind: true, want: groups.DoNothing, reason: groups.Active},
		{name: "a state not known here", offset: 9, group: groups.Group{Kind: groups.Consumer, State: "Pondering"}, want: groups.DoNothing, reason: groups.Active},
		{name: "share group", offset: 9, group: groups.Group{Kind: groups.Share, State: "Empty"}, want: groups.DoNothing, reason: groups.NoCommits},
		{name: "group not known", offset: 9, group: groups.Group{Err: lost}, rewind: true, want: groups.DoNothing, reason: groups.Unreadable},
		{name: "offsets not known", offset: 9, group: empty, offsets: groups.Offsets{Err: lost}, rewind: true, want: groups.DoNothing, reason: groups.Unreadable},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := groups.Decide(groups.Commit{Group: "g", Partition: p, Offset: tt.offset}, tt.group, tt.offsets, tt.rewind)
			if got.Action != tt.want || got.Reason != tt.reason || (got.Detail == "") != (tt.reason == "") {
				t.Errorf("%+v, want %s %s", got, tt.want, tt.reason)
			}
		})
	}
}
