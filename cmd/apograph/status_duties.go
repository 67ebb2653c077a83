package main

import (
	"cmp"
	"strings"

	"apograph/internal/mirror"
)

// stateFailing is the state of a duty of which the last try failed. Of others it is
// [stateRunning].
const stateFailing = "failing"

// A dutyStatus says how what is done beside the copy fares. What is not known is
// nil.
type dutyStatus struct {
	Duty      string   `json:"duty"` // offset_syncs, checkpoints, group_sync or heartbeats
	Pair      string   `json:"pair"` // of the clusters that heartbeats are about; else ""
	State     string   `json:"state"`
	LastDone  instant  `json:"last_done"`
	Seconds   *float64 `json:"seconds"` // that the last round took, or the try that failed
	Error     string   `json:"error"`   // why it fails; "" if it does not
	Since     instant  `json:"since"`   // when it began to fail
	NextRetry instant  `json:"next_retry"`
}

// dutyRows returns the rows about the duties of a flow that runs.
func dutyRows(all []mirror.DutyStatus) []dutyStatus {
	rows := make([]dutyStatus, 0, len(all))
	for _, d := range all {
		row := dutyStatus{
			Duty: d.Duty, Pair: d.Pair, State: stateRunning, LastDone: instant{d.LastDone}, Seconds: secondsOf(d.Took),
			Error: clean(d.Failing), Since: instant{d.Since}, NextRetry: instant{d.NextRetry},
		}
		if d.Failing != "" {
			row.State = stateFailing
		}
		rows = append(rows, row)
	}
	return rows
}

// failing returns how many duties fail.
func (r *statusReport) failing() (n int) {
	for _, d := range r.Duties {
		if d.State == stateFailing {
			n++
		}
	}
	return n
}

func dutyTable(rows []dutyStatus) *textTable {
	table := &textTable{
		header: []string{"DUTY", "STATE", "LAST-DONE", "TOOK", "SINCE", "NEXT-RETRY", "DETAIL"},
		right:  []bool{false, false, false, true},
	}
	for _, d := range rows {
		table.add(strings.TrimSpace(d.Duty+" "+d.Pair), d.State, cmp.Or(d.LastDone.String(), "-"), secondsOrDash(d.Seconds),
			cmp.Or(d.Since.String(), "-"), cmp.Or(d.NextRetry.String(), "-"), d.Error)
	}
	return table
}
