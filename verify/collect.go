package verify

import (
	"cmp"
	"fmt"
	"slices"
)

// A collector gathers the rows and findings of a run. What it keeps of findings
// is bounded: faults first, and of those the first in the order of the report.
type collector struct {
	limit int

	rows           []Partition
	beside         []Beside
	faults, others []Finding
	omitted        int
}

// take takes over what a job has found.
func (c *collector) take(j *job) {
	c.rows = append(c.rows, j.row)
	c.noteBeside(j)
	c.omitted += j.findings.omitted
	c.faults = c.trim(append(c.faults, order(j.findings.faults)...))
	c.others = c.trim(append(c.others, order(j.findings.others)...))
}

func (c *collector) trim(list []Finding) []Finding {
	if len(list) <= c.limit {
		return list
	}
	list = order(list)
	if len(list) > c.limit {
		c.omitted += len(list) - c.limit
		list = slices.Clip(list[:c.limit])
	}
	return list
}

// report returns the report of a run.
func (r *run) report() (*Report, error) {
	id := r.ledger.Identity()
	report := &Report{
		Kind:    "VerifyReport",
		Schema:  "apograph/verify/v1",
		Mode:    r.config.Mode,
		Verdict: Complete,
		Flow: Flow{
			Source: Cluster{id.SourceAlias, id.SourceClusterID},
			Target: Cluster{id.TargetAlias, id.TargetClusterID},
		},
		Started: Time{r.started}, OldestProof: r.oldest,
		Version: r.config.Version,
		Scope: ScopeInfo{
			Topics: r.scope.text(r.outside()), Until: r.config.Until,
			SourceEndSeenAt: r.sourceEndSeenAt(),
			OutOfScope:      append([]OutOfScope{}, sortOutOfScope(r.outOfScope)...),
		},
		Partitions: r.result.rows,
		Beside:     sortBeside(r.result.beside),
	}
	if r.config.Sample != (Slice{}) {
		text := r.config.Sample.String()
		report.Scope.Sample = &text
	}
	if r.doubtful || r.failed != nil {
		report.Verdict = Inconclusive
	}
	slices.SortFunc(report.Partitions, func(a, b Partition) int {
		return cmp.Or(cmp.Compare(a.Topic, b.Topic), cmp.Compare(a.Partition, b.Partition), cmp.Compare(a.Generation, b.Generation))
	})
	report.summarize()
	report.list(&r.result)
	report.Finished = Time{r.config.Now()}
	if !report.Summary.balanced() {
		return nil, fmt.Errorf("internal error: the summary does not add up: %+v", report.Summary)
	}
	return report, nil
}

// outside returns how many topics are verified only because they have open books.
func (r *run) outside() int {
	topics := map[string]bool{}
	for _, j := range r.openJobs() {
		if topic := j.findings.topic; r.scope.strange(topic) {
			topics[topic] = true
		}
	}
	return len(topics)
}

// summarize adds the rows up.
func (r *Report) summarize() {
	seen := map[topicPartition]bool{}
	for i := range r.Partitions {
		p := &r.Partitions[i]
		seen[topicPartition{p.Topic, p.Partition}] = true
		r.Summary.add(&p.Counts)
		switch {
		case p.Verdict == Faults:
			r.Verdict = Faults
		case p.Verdict == Inconclusive && r.Verdict != Faults:
			r.Verdict = Inconclusive
		case p.Verdict == CompleteWithAcceptedLosses && r.Verdict == Complete:
			r.Verdict = CompleteWithAcceptedLosses
		}
	}
	r.Summary.Partitions = len(seen)
}

// list takes as many findings as may be listed.
func (r *Report) list(c *collector) {
	others := order(c.others)
	faults := order(c.faults)
	room := max(c.limit-len(faults), 0)
	r.Omitted = c.omitted
	if len(others) > room {
		r.Omitted += len(others) - room
		others = others[:room]
	}
	r.Findings = append([]Finding{}, order(append(faults, others...))...)
}

// sourceEndSeenAt returns when the ends of the source were seen.
func (r *run) sourceEndSeenAt() Time {
	if !r.seenAt.IsZero() {
		return Time{r.seenAt}
	}
	return r.lastSeen()
}

// lastSeen returns the oldest time at which the copier saw the end of a source
// partition in scope.
func (r *run) lastSeen() Time {
	var oldest Time
	for _, j := range r.openJobs() {
		seen := j.books.state.SeenMillis
		if seen < 0 || j.books.state.HighWatermark < 0 {
			return Time{}
		}
		if at := timeOf(seen); oldest.IsZero() || at.Before(oldest.Time) {
			oldest = at
		}
	}
	return oldest
}
