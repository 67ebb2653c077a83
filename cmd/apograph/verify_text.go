package main

import (
	"fmt"
	"strconv"
	"strings"

	"apograph/verify"
)

// maxAsides is how many findings of one kind a person is shown that are no faults.
const maxAsides = 10

// verifyFindings returns one row for each finding; of those that are no faults the
// first of each kind, and how many more there are.
func verifyFindings(r *verify.Report) *textTable {
	table := &textTable{header: []string{"FINDING", "TOPIC", "PARTITION", "SOURCE OFFSETS", "TARGET OFFSETS", "DETAIL"}}
	asides, shortened := map[string]int{}, []string{}
	for i := range r.Findings {
		f := &r.Findings[i]
		what := findingText(f)
		if !f.Fault && f.Accepted == nil {
			if asides[what]++; asides[what] == maxAsides+1 {
				shortened = append(shortened, what)
			}
			if asides[what] > maxAsides {
				continue
			}
		}
		detail := f.Detail
		if a := f.Accepted; a != nil {
			detail += fmt.Sprintf("; accepted by %s at %s: %s", a.By, instant{a.At.Time}, a.Reason)
		}
		table.add(what, f.Topic, strconv.Itoa(int(f.Partition)), offsetsText(f.Source), offsetsText(f.Target), detail)
	}
	for _, what := range shortened {
		table.add(what, "-", "-", "-", "-", fmt.Sprintf("and %d more of these, which are no faults: -o json lists them", asides[what]-maxAsides))
	}
	return table
}

// findingText returns in a few words what a finding is.
func findingText(f *verify.Finding) string {
	what := inWords(f.Kind)
	if f.Kind == verify.Duplicate && !f.Fault {
		what = "named duplicate"
	}
	if f.Reason != "" {
		what += ": " + inWords(f.Reason)
	}
	if f.Accepted != nil {
		what = "accepted: " + what
	}
	return what
}

// offsetsText returns a range of a report; a place between two offsets as the
// offset that it is in front of.
func offsetsText(r *verify.Range) string {
	switch {
	case r == nil:
		return "-"
	case r.Start == r.End:
		return fmt.Sprintf("before %d", r.Start)
	default:
		return r.String()
	}
}

// verifyPartitions returns one row for each partition that is not complete.
func verifyPartitions(r *verify.Report) *textTable {
	table := &textTable{
		header: []string{"TOPIC", "PARTITION", "GENERATION", "VERDICT", "SOURCE", "TARGET", "COPIED", "EQUAL", "FAULTY", "NOT VERIFIED", "NOT COPIED YET"},
		right:  []bool{false, false, false, false, false, false, true, true, true, true, true},
	}
	for i := range r.Partitions {
		p := &r.Partitions[i]
		if p.Verdict == verify.Complete {
			continue
		}
		target := "-"
		if p.Target != nil {
			target = fmt.Sprintf("[%d, %d)", p.Target.Start, p.Target.End)
		}
		number := func(n int64) string { return strconv.FormatInt(n, 10) }
		generation := "" // there is no book
		if p.Generation > 0 {
			generation = strconv.Itoa(int(p.Generation))
		}
		table.add(p.Topic, strconv.Itoa(int(p.Partition)), generation, string(p.Verdict),
			fmt.Sprintf("[%d, %d)", p.Source.Start, p.Source.End), target,
			number(p.Copied), number(p.Equal), number(p.Missing+p.Changed+p.Reordered), number(p.NotVerified), number(p.NotCopiedYet))
	}
	return table
}

// verifySummary returns what it all comes to; counts that are zero are left out,
// the verdict comes last.
func verifySummary(r *verify.Report) *textTable {
	table := &textTable{}
	table.add("flow", clusterInfo(r.Flow.Source).String()+" -> "+clusterInfo(r.Flow.Target).String())
	table.add("mode", string(r.Mode))
	table.add("topics", r.Scope.Topics)
	if len(r.Scope.OutOfScope) > 0 {
		table.add("out of scope", outOfScopeText(r.Scope.OutOfScope))
	}
	table.add("until", untilText(r))
	if r.Scope.Sample != nil {
		table.add("sample", *r.Scope.Sample)
	}
	table.add("partitions", strconv.Itoa(r.Summary.Partitions))
	addCounts(table, &r.Summary)
	if r.Omitted > 0 {
		table.add("findings left out", fmt.Sprintf("%d, see --max-findings", r.Omitted))
	}
	for _, line := range notProven(r) {
		table.add("not proven", line)
	}
	if !r.OldestProof.IsZero() {
		table.add("oldest proof", instant{r.OldestProof.Time}.String())
	}
	table.add("time", fmt.Sprintf("%.1f s", r.Finished.Sub(r.Started.Time).Seconds()))
	table.add("verdict", verdictText(r))
	return table
}

// verdictText returns the verdict. That of the books alone does not read as if the
// clusters had been asked.
func verdictText(r *verify.Report) string {
	if r.Mode != verify.ModeBooks {
		return string(r.Verdict)
	}
	text := "books " + string(r.Verdict)
	if r.Verdict == verify.Faults {
		text = "faults in the books"
	}
	return text + "; clusters not read"
}

func addCounts(table *textTable, s *verify.Summary) {
	for _, row := range []struct {
		name   string
		n      int64
		always bool
	}{
		{"source offsets", s.SourceOffsets, true}, {"copied", s.Copied, true},
		{"commit markers", s.CommitMarkers, false}, {"abort markers", s.AbortMarkers, false}, {"aborted", s.Aborted, false},
		{"compacted", s.Compacted, false}, {"filtered", s.Filtered, false}, {"before start", s.BeforeStart, false},
		{"lost", s.Lost, false}, {"unexplained", s.Unexplained, false}, {"not copied yet", s.NotCopiedYet, false},
		{"equal", s.Equal, true}, {"missing on target", s.Missing, false}, {"changed", s.Changed, false},
		{"reordered", s.Reordered, false}, {"not verified", s.NotVerified, false}, {"proven earlier", s.ProvenEarlier, false}, {"extra on target", s.Extra, false},
		{"duplicates", s.Duplicates, false}, {"foreign", s.Foreign, false}, {"orphans", s.Orphans, false},
		{"after the book", s.AfterBook, false}, {"compared without time", s.TimestampsReplaced, false},
	} {
		if row.n > 0 || row.always {
			table.add(row.name, strconv.FormatInt(row.n, 10))
		}
	}
}

func untilText(r *verify.Report) string {
	seen := instant{r.Scope.SourceEndSeenAt.Time}.String()
	switch {
	case r.Scope.Until == verify.UntilBook:
		return "the end of the books"
	case r.Mode == verify.ModeFull:
		return "the end of the source at " + seen
	case seen == "":
		return "the end of the source that the copier saw last"
	default:
		return "the end of the source that the copier saw last, at " + seen + " or later"
	}
}

// maxBeside is of how many partitions it is said where others wrote.
const maxBeside = 3

// maxNames is how many topics a line of text names.
const maxNames = 10

func outOfScopeText(topics []verify.OutOfScope) string {
	var names []string
	for i, t := range topics {
		if i == maxNames {
			names = append(names, fmt.Sprintf("and %d more", len(topics)-maxNames))
			break
		}
		names = append(names, fmt.Sprintf("%s (%s)", t.Topic, inWords(t.Reason)))
	}
	return strings.Join(names, ", ")
}

// notProven returns what the report leaves open, a line each.
func notProven(r *verify.Report) []string {
	var lines []string
	s := &r.Summary
	if r.Summary.Partitions == 0 {
		lines = append(lines, "anything: the ledger has no book, so nothing was copied")
	}
	switch {
	case r.Mode == verify.ModeBooks:
		lines = append(lines, "what the clusters hold: neither was read")
	case s.NotVerified > 0:
		lines = append(lines, fmt.Sprintf("%d of %s could not be compared; the findings say why", s.NotVerified, counted(s.Copied, "copied record")))
	}
	if r.Mode == verify.ModeTarget {
		lines = append(lines, "what the source holds now: it was not read")
	}
	if s.NotCopiedYet > 0 {
		lines = append(lines, plural(s.NotCopiedYet, "source offset is", "source offsets are")+" not copied yet")
	}
	return lines
}

// besideText says what others wrote to the target beside the copies; nothing if
// they wrote nothing.
func besideText(r *verify.Report) string {
	total, places, more := int64(0), []string{}, 0
	for _, b := range r.Beside {
		total += b.Offsets
		if len(places) == maxBeside {
			more++
			continue
		}
		var ranges []string
		named := int64(0)
		for _, first := range b.First {
			ranges, named = append(ranges, first.String()), named+first.End-first.Start
		}
		place := fmt.Sprintf("%s-%d %s", b.Topic, b.Partition, strings.Join(ranges, " "))
		if named < b.Offsets {
			place += fmt.Sprintf(" and %d more", b.Offsets-named)
		}
		places = append(places, place)
	}
	if total == 0 {
		return ""
	}
	if more > 0 {
		places = append(places, fmt.Sprintf("and in %s more", counted(int64(more), "partition")))
	}
	return fmt.Sprintf("Beside the copies the target holds %s that others wrote, at %s. No fault of the copy, but consumers of the target read such records as well: "+
		"see foreign_writer in README.", plural(total, "record or transaction marker", "records or transaction markers"), strings.Join(places, ", "))
}
