package main

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"apograph/internal/groups"
	"apograph/internal/mirror"
)

// TestStatusOfGroups: rows are in the report as they are, and in the table where
// they have something to say, a line for each group and reason.
func TestStatusOfGroups(t *testing.T) {
	var s flowStatus
	s.Report.setGroups(mirror.GroupsStatus{Lag: -1})
	if text, err := json.Marshal(s.Report.Groups); err != nil || string(text) != "null" || s.Report.SyncLag != nil {
		t.Errorf("%s, %v", text, err)
	}
	s.Report.setGroups(mirror.GroupsStatus{Rows: []mirror.GroupStatus{}, Lag: -1})
	if text, err := json.Marshal(s.Report.Groups); err != nil || string(text) != "[]" || groupTables(s.Report.Groups, 0) != nil {
		t.Errorf("%s, %v", text, err)
	}
	rows := []mirror.GroupStatus{
		{Group: "shares", Partition: -1, SourceOffset: -1, TargetOffset: -1, Committed: -1, Action: groups.DoNothing, Reason: mirror.ShareGroup},
		{Group: "g", Topic: "orders", TargetTopic: "a.orders", SourceOffset: 7, TargetOffset: 5, Committed: 5, Action: groups.None},
		{Group: "g", Topic: "orders", Partition: 1, TargetTopic: "a.orders", SourceOffset: 7, TargetOffset: 5, Committed: 0, Action: groups.DoNothing, Reason: mirror.TakenOver},
		{Group: "g", Topic: "orders", Partition: 2, TargetTopic: "a.orders", SourceOffset: 7, TargetOffset: 5, Committed: 0, Action: groups.DoNothing, Reason: mirror.TakenOver},
		{Group: "g", Topic: "pay", TargetTopic: "a.pay", SourceOffset: 7, TargetOffset: 5, Committed: 6, Action: groups.DoNothing, Reason: mirror.Ahead},
		{Group: "h", Topic: "pay", TargetTopic: "a.pay", SourceOffset: 7, TargetOffset: 5, Committed: 5, Action: groups.DoCommit, Reason: mirror.HeldBack},
		{Group: "h", Topic: "orders", TargetTopic: "a.orders", SourceOffset: 7, TargetOffset: 5, Committed: 5, Action: groups.DoCommit, Reason: mirror.AmongLost},
		{Group: "h", Topic: "orders", Partition: 1, TargetTopic: "a.orders", SourceOffset: 7, TargetOffset: 5, Committed: 5, Action: groups.None, Reason: mirror.AmongLost},
		{Group: "h", Topic: "old", TargetTopic: "a.old", SourceOffset: 7, TargetOffset: 0, Committed: 0, Action: groups.None, Reason: mirror.BelowStart},
		{Group: "g", Topic: "old", TargetTopic: "a.old", SourceOffset: 7, TargetOffset: 8, Committed: 8, Action: groups.None, Reason: mirror.BelowTargetStart},
	}
	s.Report.setGroups(mirror.GroupsStatus{Rows: rows, Lag: 1500 * time.Millisecond})
	text, err := json.Marshal(s.Report.Groups[:2])
	want := `[{"group":"shares","topic":"","partition":null,"target_topic":"","source_offset":null,"target_offset":null,"committed":null,"action":"skip","reason":"share_group"},` +
		`{"group":"g","topic":"orders","partition":0,"target_topic":"a.orders","source_offset":7,"target_offset":5,"committed":5,"action":"none","reason":""}]`
	if err != nil || string(text) != want || s.Report.SyncLag == nil || *s.Report.SyncLag != 1.5 {
		t.Errorf("%s, %v", text, err)
	}
	if last := s.Report.Groups[len(rows)-1]; last.Action != "none" || last.Reason != "below_target_start" {
		t.Errorf("%+v", last)
	}
	table := strings.Join([]string{
		"GROUP   LEFT-ALONE   PARTITIONS  TOPICS",
		"g       ahead                 1  pay",
		"g       taken_over            2  orders",
		"shares  share_group           -  -",
		"",
		"GROUP  INEXACT             PARTITIONS  TOPICS",
		"g      below_target_start           1  old",
		"h      before_start                 1  old",
		"h      lost                         2  orders",
		"",
	}, "\n")
	if got := s.text(0); !strings.HasSuffix(got, "\n"+table) {
		t.Errorf("%s\nwant\n%s", got, table)
	}
	if err := s.verdict(); err != nil {
		t.Error(err)
	}
}

// TestStatusOfGroupsLeftOut: of groups that patterns leave out the table has some,
// behind the others, and says how many more there are.
func TestStatusOfGroupsLeftOut(t *testing.T) {
	whole := func(group string, reason mirror.Reason) mirror.GroupStatus {
		return mirror.GroupStatus{Group: group, Partition: -1, SourceOffset: -1, TargetOffset: -1, Committed: -1, Action: groups.DoNothing, Reason: reason}
	}
	rows := []mirror.GroupStatus{whole("connect-x", mirror.Excluded), whole("other", mirror.NotMatched), whole("shares", mirror.ShareGroup)}
	var s flowStatus
	s.Report.setGroups(mirror.GroupsStatus{Rows: rows, Lag: -1})
	mustTable(t, groupTables(s.Report.Groups, 0),
		"GROUP      LEFT-ALONE   PARTITIONS  TOPICS",
		"shares     share_group           -  -",
		"connect-x  excluded              -  -",
		"other      not_matched           -  -")
	for i := range maxNames {
		rows = append(rows, whole(fmt.Sprint("connect-", i), mirror.Excluded))
	}
	s.Report.setGroups(mirror.GroupsStatus{Rows: rows, Omitted: 90, Lag: -1})
	text := groupTables(s.Report.Groups, s.Report.GroupsOmitted)[0].text(0)
	if lines := strings.Split(strings.TrimSpace(text), "\n"); len(lines) != 1+1+maxNames+1 || !strings.HasPrefix(lines[len(lines)-1], "and 92 more  excluded or not_matched") {
		t.Errorf("%s", text)
	}
	if document, err := json.Marshal(s.Report); err != nil || !strings.Contains(string(document), `"groups_omitted":90`) {
		t.Errorf("%s, %v", document, err)
	}
}

func mustTable(t *testing.T, tables []*textTable, lines ...string) {
	t.Helper()
	if len(tables) != 1 {
		t.Fatalf("%d tables", len(tables))
	}
	if got, want := tables[0].text(0), strings.Join(lines, "\n")+"\n"; got != want {
		t.Errorf("%s\nwant\n%s", got, want)
	}
}
