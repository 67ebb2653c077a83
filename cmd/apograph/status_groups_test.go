package main

import (
	"encoding/json"
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
	s.Report.setGroups(nil, -1)
	if text, err := json.Marshal(s.Report.Groups); err != nil || string(text) != "null" || s.Report.SyncLag != nil {
		t.Errorf("%s, %v", text, err)
	}
	s.Report.setGroups([]mirror.GroupStatus{}, -1)
	if text, err := json.Marshal(s.Report.Groups); err != nil || string(text) != "[]" || groupTable(s.Report.Groups) != nil {
		t.Errorf("%s, %v", text, err)
	}
	rows := []mirror.GroupStatus{
		{Group: "shares", Partition: -1, SourceOffset: -1, TargetOffset: -1, Committed: -1, Action: groups.DoNothing, Reason: mirror.ShareGroup},
		{Group: "g", Topic: "orders", TargetTopic: "a.orders", SourceOffset: 7, TargetOffset: 5, Committed: 5, Action: groups.None},
		{Group: "g", Topic: "orders", Partition: 1, TargetTopic: "a.orders", SourceOffset: 7, TargetOffset: 5, Committed: 0, Action: groups.DoNothing, Reason: mirror.TakenOver},
		{Group: "g", Topic: "orders", Partition: 2, TargetTopic: "a.orders", SourceOffset: 7, TargetOffset: 5, Committed: 0, Action: groups.DoNothing, Reason: mirror.TakenOver},
		{Group: "g", Topic: "pay", TargetTopic: "a.pay", SourceOffset: 7, TargetOffset: 5, Committed: 6, Action: groups.DoNothing, Reason: mirror.Ahead},
		{Group: "h", Topic: "pay", TargetTopic: "a.pay", SourceOffset: 7, TargetOffset: 5, Committed: 5, Action: groups.DoCommit, Reason: mirror.HeldBack},
	}
	s.Report.setGroups(rows, 1500*time.Millisecond)
	text, err := json.Marshal(s.Report.Groups[:2])
	want := `[{"group":"shares","topic":"","partition":null,"target_topic":"","source_offset":null,"target_offset":null,"committed":null,"action":"skip","reason":"share_group"},` +
		`{"group":"g","topic":"orders","partition":0,"target_topic":"a.orders","source_offset":7,"target_offset":5,"committed":5,"action":"none","reason":""}]`
	if err != nil || string(text) != want || s.Report.SyncLag == nil || *s.Report.SyncLag != 1.5 {
		t.Errorf("%s, %v", text, err)
	}
	table := strings.Join([]string{
		"GROUP   LEFT-ALONE   PARTITIONS  TOPICS",
		"g       ahead                 1  pay",
		"g       taken_over            2  orders",
		"shares  share_group           -  -",
		"",
	}, "\n")
	if got := groupTable(s.Report.Groups).text(0); got != table {
		t.Errorf("%s\nwant\n%s", got, table)
	}
	if got := s.text(0); !strings.HasSuffix(got, "\n"+table) {
		t.Errorf("%s", got)
	}
}
