package figures

import (
	"fmt"
	"strings"
)

// comparisons are the columns of a comparison.
func comparisons() []Target {
	var all []Target
	for _, against := range [][]string{{Copier}, mirrorMakers} {
		all = append(all,
			atMost("", cpu, 1, against...), atMost("", withTarget, 1, against...),
			atLeast("", speed, 1, against...), atMost("", memory, 1, against...), atMost("", p99, 1, against...))
	}
	return all
}

// Comparison writes, as a Markdown table, how the product stands against the copier
// and against MirrorMaker's better setting in each row that has both: ratios pair by
// pair, with the least and the greatest. Bold is what the product loses. A column
// that is empty for all is left out.
func Comparison(results []Result) string {
	var rows []string
	for _, p := range pairsOf(results) {
		if p.candidate == Apograph {
			rows = append(rows, p.row)
		}
	}
	cells := make([]string, len(rows))
	head, rule := "| row |", "| --- |"
	for _, t := range comparisons() {
		column := make([]string, len(rows))
		empty := true
		for i, row := range rows {
			t.Row = row
			if v, ok := t.Judge(results); ok {
				column[i], empty = v.Value.String(), false
				if !v.Met {
					column[i] = "**" + column[i] + "**"
				}
			}
		}
		if empty {
			continue
		}
		head += fmt.Sprintf(" %s / %s's |", t.Figure.Name, t.Against[0])
		rule += " --- |"
		for i := range cells {
			cells[i] += " " + column[i] + " |"
		}
	}
	var out strings.Builder
	for i, row := range rows {
		if strings.Trim(cells[i], " |") != "" {
			fmt.Fprintf(&out, "| %s |%s\n", row, cells[i])
		}
	}
	if out.Len() == 0 {
		return ""
	}
	return head + "\n" + rule + "\n" + out.String()
}
