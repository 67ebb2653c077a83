package figures

import (
	"fmt"
	"math"
	"strings"
)

// A Figure is something that can be read from a result.
type Figure struct {
	Name string // as a table's head has it
	Of   func(*Result) float64
}

// Columns returns the figures of the table, in its order.
func Columns() []Figure {
	return []Figure{
		cpu,
		speed,
		{"wire MB/s", (*Result).WireSpeed},
		memory,
		{"source broker CPU-s/GB", (*Result).SourceCPUPerGB},
		{"target broker CPU-s/GB", (*Result).TargetCPUPerGB},
		ledgerBytes,
		start,
		{"whole CPU-s/GB", (*Result).WholeCPUPerGB},
		{"p50 ms", func(r *Result) float64 { return unlessZero(r.LatencyP50) }},
		p99,
		rate,
	}
}

func unlessZero(v float64) float64 {
	if v == 0 {
		return math.NaN()
	}
	return v
}

// In returns the figure of each repeat of a candidate in a row; NaN for one that
// is not there.
func (f Figure) In(results []Result, row, candidate string) []float64 {
	var values []float64
	for i := range results {
		r := &results[i]
		if r.Row != row || r.Candidate != candidate {
			continue
		}
		for len(values) <= r.Repeat {
			values = append(values, math.NaN())
		}
		values[r.Repeat] = f.Of(r)
	}
	return values
}

// Table writes the results as a Markdown table: for each row its candidates, in
// the order in which they first appear, with median, least and greatest of each
// figure. A column that is empty for all is left out.
func Table(results []Result) string {
	lines := pairsOf(results)
	if len(lines) == 0 {
		return ""
	}
	var head, rule strings.Builder
	head.WriteString("| row | candidate |")
	rule.WriteString("| --- | --- |")
	cells := make([]strings.Builder, len(lines))
	for _, f := range Columns() {
		column := make([]string, len(lines))
		empty := true
		for i, line := range lines {
			column[i] = SpreadOf(f.In(results, line.row, line.candidate)).String()
			empty = empty && column[i] == ""
		}
		if empty {
			continue
		}
		fmt.Fprintf(&head, " %s |", f.Name)
		rule.WriteString(" --- |")
		for i := range column {
			fmt.Fprintf(&cells[i], " %s |", column[i])
		}
	}
	out := head.String() + "\n" + rule.String() + "\n"
	for i, line := range lines {
		out += fmt.Sprintf("| %s | %s |%s\n", line.row, line.candidate, cells[i].String())
	}
	return out
}

type rowAndCandidate struct{ row, candidate string }

func pairsOf(results []Result) []rowAndCandidate {
	var pairs []rowAndCandidate
	seen := make(map[rowAndCandidate]bool)
	for _, r := range results {
		pair := rowAndCandidate{r.Row, r.Candidate}
		if !seen[pair] {
			seen[pair] = true
			pairs = append(pairs, pair)
		}
	}
	return pairs
}
