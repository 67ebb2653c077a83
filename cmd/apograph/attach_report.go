package main

import (
	"fmt"
	"strconv"

	"apograph/ledger"
	"apograph/replicate"
)

// An attachReport is the answer of `apograph attach`.
type attachReport struct {
	envelope
	Flow       flowNames           `json:"flow"`
	Ledger     attachedLedger      `json:"ledger"`
	Partitions []attachedPartition `json:"partitions"`
}

type attachedLedger struct {
	Path *string `json:"path"` // nil: none was made
}

type attachedPartition struct {
	Topic       string                  `json:"topic"`
	Partition   int32                   `json:"partition"`
	TargetTopic string                  `json:"target_topic"`
	Source      offsetRange             `json:"source"`
	Target      offsetRange             `json:"target"`
	Copied      int64                   `json:"copied"`
	BeforeStart int64                   `json:"before_start"`
	Orphans     int64                   `json:"orphans"`
	Foreign     int64                   `json:"foreign"`
	Duplicates  int64                   `json:"duplicates"`
	Aborted     int64                   `json:"aborted"`             // of foreign
	Markers     int64                   `json:"markers"`             // of foreign
	Replaced    int64                   `json:"timestamps_replaced"` // of copied
	Verdict     replicate.AttachVerdict `json:"verdict"`
	Detail      string                  `json:"detail"`
	Unprovable  unprovable              `json:"unprovable"`
}

type offsetRange struct {
	Start int64 `json:"start"`
	End   int64 `json:"end"`
}

// unprovable counts offsets, as [replicate.Unprovable] does.
type unprovable struct {
	BeforeStart int64 `json:"before_start"`
	Orphans     int64 `json:"orphans"`
	ByPlace     int64 `json:"by_place"`
	Repeats     int64 `json:"repeats"`
	Unexplained int64 `json:"unexplained"`
	NotOnTarget int64 `json:"not_on_target"`
	Foreign     int64 `json:"foreign"`
	StaleKeys   int64 `json:"stale_keys"`
}

func attachReportOf(r replicate.AttachReport) attachReport {
	out := attachReport{
		envelope:   newEnvelope("AttachReport", "attach"),
		Flow:       flowNames{Source: r.SourceAlias, Target: r.TargetAlias},
		Partitions: []attachedPartition{},
	}
	if r.LedgerPath != "" {
		out.Ledger.Path = &r.LedgerPath
	}
	for _, p := range r.Partitions {
		out.Partitions = append(out.Partitions, attachedPartition{
			Topic: p.Topic, Partition: p.Partition, TargetTopic: p.TargetTopic,
			Source: rangeOf(p.Source), Target: rangeOf(p.Target),
			Copied: p.Copied, BeforeStart: p.BeforeStart, Orphans: p.Orphans, Foreign: p.Foreign, Duplicates: p.Duplicates, Aborted: p.Aborted, Markers: p.Markers, Replaced: p.TimestampsReplaced,
			Verdict: p.Verdict, Detail: clean(p.Detail), Unprovable: unprovable(p.Unprovable),
		})
	}
	return out
}

func rangeOf(r ledger.Range) offsetRange { return offsetRange{r.Start, r.End} }

func (r offsetRange) String() string { return fmt.Sprintf("[%d, %d)", r.Start, r.End) }

// partitions returns one row for each partition about which there is more to say
// than that it has books.
func (r attachReport) partitions() *textTable {
	table := &textTable{
		header: []string{"TOPIC", "PARTITION", "VERDICT", "SOURCE", "TARGET", "COPIED", "WHAT TO KNOW"},
		right:  []bool{false, false, false, false, false, true, false},
	}
	for i := range r.Partitions {
		p := &r.Partitions[i]
		lines := p.unproven()
		if p.Detail != "" {
			lines = append([]string{p.Detail}, lines...)
		}
		if n := p.Duplicates; n > 0 {
			lines = append(lines, counted(n, "target record")+" there a second time")
		}
		if n := p.Aborted; n > 0 {
			lines = append(lines, counted(n, "target record")+" of aborted transactions, which the copier brought over or wrote")
		}
		if n := p.Replaced; n > 0 {
			lines = append(lines, counted(n, "record")+" without a time, to which the copier gave one")
		}
		for _, line := range lines {
			table.add(p.Topic, strconv.Itoa(int(p.Partition)), string(p.Verdict), p.Source.String(), p.Target.String(), strconv.FormatInt(p.Copied, 10), line)
		}
	}
	return table
}

// unproven says in words what can no longer be proven about a partition.
func (p *attachedPartition) unproven() (lines []string) {
	if p.Verdict == replicate.AttachRefused {
		return nil
	}
	add := func(n int64, what, text string) {
		if n > 0 {
			lines = append(lines, "not provable: "+counted(n, what)+" "+text)
		}
	}
	u := p.Unprovable
	add(u.BeforeStart, "source offset", "in front of the books: whether they were copied, or were to be, cannot be told")
	add(u.Orphans, "target record", "of the copier that the source does not have any more: there is nothing to compare them with")
	add(u.ByPlace, "target offset", "without a record any more: known by the numbers of their neighbours alone")
	add(u.Repeats, "target record", "under numbers that the copier used long before: of which records they are copies cannot be told")
	add(u.Unexplained, "source offset", "empty without a known cause")
	add(u.NotOnTarget, "record", "on the source and not on the target, in front of the books: that the copy was begun behind them (--start) is assumed")
	add(u.Foreign, "target record", "that the source's present log does not have: written by others, or copied from an earlier topic of that name, or before the source was cut")
	add(u.StaleKeys, "source offset", "between records that were compacted away: the target may hold keys that the source has deleted")
	return lines
}

// summary returns what it all comes to.
func (r attachReport) summary() *textTable {
	table := &textTable{}
	var copied, attached, empty, refused int64
	for _, p := range r.Partitions {
		copied += p.Copied
		switch p.Verdict {
		case replicate.Attached:
			attached++
		case replicate.AttachEmpty:
			empty++
		default:
			refused++
		}
	}
	table.add("flow", r.Flow.Source+" -> "+r.Flow.Target)
	table.add("partitions", strconv.Itoa(len(r.Partitions)))
	table.add("attached", fmt.Sprintf("%s, %s aligned", counted(attached, "partition"), counted(copied, "record")))
	if empty > 0 {
		table.add("empty", counted(empty, "partition")+": replicate begins them")
	}
	if refused > 0 {
		table.add("refused", counted(refused, "partition")+": not in the ledger; once the cause is gone, attach again: it adds them, and leaves the others as they are")
	}
	path := "none was made: nothing aligns"
	if r.Ledger.Path != nil {
		path = *r.Ledger.Path
	}
	table.add("ledger", path)
	return table
}
