package main

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"time"

	"apograph/internal/mm2"
	"apograph/ledger"
	"apograph/replicate"
)

// The states of a flow.
const (
	stateRunning = "running"
	stateStopped = "stopped" // no process holds the ledger
)

// A statusReport is the answer of `apograph status`.
type statusReport struct {
	envelope
	Flow       flowInfo          `json:"flow"`
	State      string            `json:"state"`
	HolderPID  *int              `json:"holder_pid"` // nil if the flow is stopped
	Ledger     ledgerInfo        `json:"ledger"`
	Unaccepted int64             `json:"unaccepted"` // lost and unexplained offsets in scope that nobody has accepted
	Accepted   int64             `json:"accepted"`   // the same, of those that somebody has
	Doubts     []doubtInfo       `json:"doubts"`     // that nobody has accepted
	Acceptance []acceptanceInfo  `json:"acceptances"`
	Partitions []partitionStatus `json:"partitions"` // those that stopped first
	Groups     []groupStatus     `json:"groups"`     // nil if no duty of the flow is about groups, or it is stopped
	// GroupsOmitted counts groups that patterns leave out, beyond those with a row.
	GroupsOmitted int `json:"groups_omitted"`
	// SyncLag is how long at most an offset that was committed on the source waited
	// for the same on the target, in the last round that was done; nil if that is not
	// known.
	SyncLag  *float64        `json:"sync_lag_seconds"`
	Duties   []dutyStatus    `json:"duties"`   // beside the copy; nil if the flow is stopped
	Settings []settingStatus `json:"settings"` // of target topics, that are not as on the source; nil if the flow is stopped
}

// A settingStatus is a setting in which a target topic is not as its source.
type settingStatus struct {
	Topic       string `json:"topic"`
	TargetTopic string `json:"target_topic"`
	Setting     string `json:"setting"`
	Source      string `json:"source"` // its value there; "" if the source does not say
	Target      string `json:"target"`
	State       string `json:"state"` // protective, excluded, target_only or behind
}

func settingRows(drift []replicate.SettingDrift) []settingStatus {
	rows := []settingStatus{}
	for _, d := range drift {
		rows = append(rows, settingStatus{d.Topic, d.Target, d.Setting, d.SourceValue, d.TargetValue, string(d.State)})
	}
	return rows
}

// An acceptanceInfo is what somebody has accepted: bad tiles, doubts, or both.
type acceptanceInfo struct {
	Topic      string    `json:"topic"`
	Partition  int32     `json:"partition"`
	Generation int32     `json:"generation"`
	Offsets    rangeInfo `json:"source_offsets"`
	By         string    `json:"by"`
	At         instant   `json:"at"`
	Reason     string    `json:"reason"`
}

// A doubtInfo is a source range about which the books may not hold.
type doubtInfo struct {
	Topic     string `json:"topic"`
	Partition int32  `json:"partition"`
	Start     int64  `json:"start"`
	End       int64  `json:"end"`
	Kind      string `json:"kind"`
}

// A partitionStatus is one row of a [statusReport]. What is not known is nil.
type partitionStatus struct {
	Topic     string  `json:"topic"`
	Partition int32   `json:"partition"`
	State     string  `json:"state"` // of a stopped flow: what it would be in, running where nothing keeps it from that
	Reason    string  `json:"reason"`
	Since     instant `json:"since"`
	NextRetry instant `json:"next_retry"`

	Position  *int64 `json:"position"` // end of the source book
	SourceEnd *int64 `json:"source_end"`
	TargetEnd *int64 `json:"target_end"`

	LagRecords        *int64   `json:"lag_records"`
	LagSeconds        *float64 `json:"lag_seconds"`
	RetentionHeadroom *float64 `json:"retention_headroom_seconds"`
}

// A flowStatus is a status report, and what is not in it.
type flowStatus struct {
	Report  statusReport `json:"report"`
	Details []string     `json:"details"` // of the partitions, in their order; for a person
	Seen    instant      `json:"seen"`    // when the source was seen last
}

// newFlowStatus returns the status of a flow with these partitions.
func newFlowStatus(state string, info ledgerInfo, l *ledger.Ledger, all []replicate.PartitionStatus) flowStatus {
	s := flowStatus{
		Report: statusReport{
			envelope: newEnvelope("StatusReport", "status"),
			Flow:     info.Flow, State: state, HolderPID: info.HolderPID, Ledger: info,
		},
		Seen: lastSeen(l, all),
	}
	s.Report.Partitions, s.Details = partitionRows(l, all)
	s.mark(l, all)
	return s
}

// partitionRows returns the rows of partitions, and their details. A partition
// without a book has no place in one.
func partitionRows(l *ledger.Ledger, all []replicate.PartitionStatus) ([]partitionStatus, []string) {
	booked := openPairs(l)
	rows, details := []partitionStatus{}, []string{}
	for _, p := range all {
		row := partitionStatus{
			Topic: p.Topic, Partition: p.Partition, State: p.State, Reason: string(p.Reason),
			Since: instant{p.Since}, NextRetry: instant{p.NextRetry},
			SourceEnd: known(p.SourceEnd), LagRecords: known(p.LagRecords),
			LagSeconds: secondsOf(p.Lag), RetentionHeadroom: secondsOf(p.Headroom),
		}
		if _, ok := booked[partitionName{p.Topic, p.Partition}]; ok {
			row.Position, row.TargetEnd = known(p.Position), known(p.TargetEnd)
		}
		rows, details = append(rows, row), append(details, p.Detail)
	}
	return rows, details
}

// A partitionName names a partition of the source.
type partitionName struct {
	topic  string
	number int32
}

// openPairs returns the open pairs of a ledger by their source partitions.
func openPairs(l *ledger.Ledger) map[partitionName]ledger.Pair {
	pairs := map[partitionName]ledger.Pair{}
	for _, pair := range l.Pairs() {
		if pair.Closed == nil {
			pairs[partitionName{pair.SourceTopic, pair.Partition}] = pair
		}
	}
	return pairs
}

// mark puts into a status what is lost or in doubt in the books of its
// partitions, of all their generations: a new one makes nothing good.
func (s *flowStatus) mark(l *ledger.Ledger, all []replicate.PartitionStatus) {
	inScope := map[partitionName]bool{}
	for _, p := range all {
		inScope[partitionName{p.Topic, p.Partition}] = true
	}
	s.Report.Doubts, s.Report.Acceptance = []doubtInfo{}, []acceptanceInfo{}
	for _, pair := range l.Pairs() {
		if !inScope[partitionName{pair.SourceTopic, pair.Partition}] {
			continue
		}
		s.Report.Unaccepted += l.Unaccepted(pair.ID)
		for _, d := range l.UnacceptedDoubts(pair.ID) {
			s.Report.Doubts = append(s.Report.Doubts, doubtInfo{pair.SourceTopic, pair.Partition, d.Range.Start, d.Range.End, d.Kind.String()})
		}
		s.Report.Accepted += l.Accepted(pair.ID)
		for _, a := range l.Acceptances(pair.ID) {
			s.Report.Acceptance = append(s.Report.Acceptance, acceptanceInfo{
				pair.SourceTopic, pair.Partition, pair.Generation, rangeInfo{a.Range.Start, a.Range.End}, a.By, instantOf(a.AtMillis), a.Reason,
			})
		}
	}
}

// lastSeen returns when the source of one of the partitions was seen last.
func lastSeen(l *ledger.Ledger, all []replicate.PartitionStatus) instant {
	booked := openPairs(l)
	var newest int64
	for _, p := range all {
		if pair, ok := booked[partitionName{p.Topic, p.Partition}]; ok {
			newest = max(newest, l.State(pair.ID).SeenMillis)
		}
	}
	return instantOf(newest)
}

func known(n int64) *int64 {
	if n < 0 {
		return nil
	}
	return &n
}

// secondsOf returns a duration in seconds, to the millisecond; nil if it is
// negative, which means unknown.
func secondsOf(d time.Duration) *float64 {
	if d < 0 {
		return nil
	}
	seconds := float64(d.Milliseconds()) / 1000
	return &seconds
}

// statusInFile returns what a ledger says about the partitions of its flow,
// while the flow does not run. Those of topics that the flow was not started
// with any more are left out.
func statusInFile(l *ledger.Ledger) ([]replicate.PartitionStatus, error) {
	scope := l.Scope()
	selection, err := mm2.ParseSelection(scope.Topics, scope.TopicsExclude)
	if err != nil {
		return nil, err
	}
	stops := map[partitionName]ledger.Stop{}
	for _, stop := range l.Stops() {
		stops[partitionName{stop.SourceTopic, stop.Partition}] = stop
	}
	var all []replicate.PartitionStatus
	for name, pair := range openPairs(l) {
		if _, ok := selection.Match(name.topic); !ok && len(scope.Topics) > 0 {
			continue
		}
		status := replicate.StatusInBook(l, pair)
		stopIn(&status, stops[name])
		pauseIn(&status, l.Orders())
		all = append(all, status)
		delete(stops, name)
	}
	for name, stop := range stops {
		if _, ok := selection.Match(name.topic); !ok && len(scope.Topics) > 0 {
			continue
		}
		status := replicate.PartitionStatus{Topic: name.topic, Partition: name.number, SourceEnd: -1, LagRecords: -1, Lag: -1, Headroom: -1}
		stopIn(&status, stop)
		all = append(all, status)
	}
	replicate.SortStatus(all)
	return all, nil
}

// stopIn puts into a status why a partition stopped, if it did.
func stopIn(status *replicate.PartitionStatus, stop ledger.Stop) {
	if stop.Reason == "" {
		return
	}
	status.State = replicate.StateStopped
	status.Reason, status.Detail = replicate.StopReason(stop.Reason), stop.Detail
	status.Since = instantOf(stop.SinceMillis).Time
}

// pauseIn puts into a status that a partition, or its topic, was told to pause.
func pauseIn(status *replicate.PartitionStatus, orders []ledger.Order) {
	for _, o := range orders {
		if !o.Paused || !isAbout(o, status.Topic, status.Partition) {
			continue
		}
		status.State, status.Reason = replicate.StatePaused, replicate.StopPaused
		status.Since, status.Detail = instantOf(o.AtMillis).Time, pausedBy(o)
	}
}

// isAbout reports whether an order is about a partition, alone or with its
// topic.
func isAbout(o ledger.Order, topic string, partition int32) bool {
	return o.SourceTopic == topic && (o.Partition == wholeTopic || o.Partition == partition)
}

func pausedBy(o ledger.Order) string {
	detail := "paused by " + cmp.Or(o.By, "somebody")
	if o.Reason != "" {
		detail += ": " + o.Reason
	}
	return detail
}

// verdict returns what the exit code has to say about the state of a flow.
func (s *flowStatus) verdict() error {
	switch {
	case slices.ContainsFunc(s.Report.Partitions, func(p partitionStatus) bool { return p.State == replicate.StateStopped }):
		return verdict(exitError)
	case s.Report.Unaccepted > 0:
		return verdict(exitFaults)
	}
	return nil
}

// headline says in one line what the flow is and as of when the table is.
func (s *flowStatus) headline() string {
	r := &s.Report
	line := r.Flow.Source.Alias + " -> " + r.Flow.Target.Alias + ": "
	if r.HolderPID != nil {
		line += "running as process " + strconv.Itoa(*r.HolderPID)
	} else {
		line += "not running"
	}
	line += ", last seen at " + orUnknown(s.Seen.String())
	if r.Unaccepted > 0 {
		line += ", " + strconv.FormatInt(r.Unaccepted, 10) + " offsets lost or unexplained"
	}
	if r.Accepted > 0 {
		line += ", " + strconv.FormatInt(r.Accepted, 10) + " lost or unexplained and accepted"
	}
	if n := r.failing(); n > 0 {
		line += ", failing: " + plural(int64(n), "duty", "duties")
	}
	if n := r.drifted(); n > 0 {
		line += fmt.Sprintf(", settings of target topics not as on the source: %d", n)
	}
	if n := len(r.Doubts); n > 0 {
		line += ", in doubt: " + doubtText(r.Doubts[0])
		if n > 1 {
			line += fmt.Sprintf(" and %d more", n-1)
		}
	}
	return line
}

// drifted returns how many settings differ that an exact copy does not depend
// on.
func (r *statusReport) drifted() (n int) {
	for _, s := range r.Settings {
		if s.State != string(replicate.DriftProtective) {
			n++
		}
	}
	return n
}

// acceptedText says in a line each what somebody has accepted.
func (s *flowStatus) acceptedText() (lines []string) {
	for i, a := range s.Report.Acceptance {
		if i == maxNames {
			return append(lines, fmt.Sprintf("accepted: %d more", len(s.Report.Acceptance)-maxNames))
		}
		lines = append(lines, fmt.Sprintf("accepted: %s:%d source offsets [%d, %d), generation %d, by %s at %s: %s",
			a.Topic, a.Partition, a.Offsets.Start, a.Offsets.End, a.Generation, cmp.Or(a.By, "somebody"), a.At, a.Reason))
	}
	return lines
}

// doubtText names a doubt in words.
func doubtText(d doubtInfo) string {
	return fmt.Sprintf("%s:%d source offsets [%d, %d) (%s)", d.Topic, d.Partition, d.Start, d.End, inWords(d.Kind))
}

// partitionTable returns rows of partitions as a table. Those that nothing keeps from
// running do not run while the flow, whose state is given, is stopped.
func partitionTable(flow string, rows []partitionStatus, details []string) *textTable {
	table := &textTable{
		header: []string{"TOPIC", "PARTITION", "STATE", "LAG", "LAG-TIME", "POSITION", "SOURCE-END", "TARGET-END", "HEADROOM", "SINCE", "NEXT-RETRY", "REASON", "DETAIL"},
		right:  []bool{false, true, false, true, true, true, true, true, true},
	}
	for i, p := range rows {
		state := p.State
		if flow == stateStopped && state == replicate.StateRunning {
			state = "not running"
		}
		table.add(p.Topic, number(int64(p.Partition)), state, offsetOrDash(p.LagRecords), secondsOrDash(p.LagSeconds),
			offsetOrDash(p.Position), offsetOrDash(p.SourceEnd), offsetOrDash(p.TargetEnd), secondsOrDash(p.RetentionHeadroom),
			cmp.Or(p.Since.String(), "-"), cmp.Or(p.NextRetry.String(), "-"), cmp.Or(p.Reason, "-"), details[i])
	}
	return table
}

// secondsOrDash returns a number of seconds as a duration, of which only the
// two largest units matter to a person.
func secondsOrDash(seconds *float64) string {
	if seconds == nil {
		return "-"
	}
	d := time.Duration(*seconds * float64(time.Second))
	switch {
	case d < 10*time.Second:
		return d.Round(100 * time.Millisecond).String()
	case d < 48*time.Hour:
		return d.Round(time.Second).String()
	default:
		return strconv.FormatInt(int64(d/(24*time.Hour)), 10) + "d"
	}
}
