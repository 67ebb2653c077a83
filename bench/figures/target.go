package figures

import (
	"fmt"
	"math"
	"strings"
)

// A Target is what a figure is to reach, alone or against another candidate's.
type Target struct {
	Row       string
	Candidate string
	Figure    Figure
	Against   []string // the best of these; none: the figure itself, no ratio
	Than      string   // a row: the ratio is to the same candidate's median there, without pairs, as that is another time
	More      float64  // with Against: so much more than the other's is allowed, in the figure's unit, instead of a ratio
	Bound     float64
	AtLeast   bool // the bound is the least; else the greatest
}

// Verdict is what became of a target.
type Verdict struct {
	Target  Target
	Against string // the candidate, or the row, that it was held against; empty if none
	Value   Spread
	Met     bool
}

// Judge holds the results of one row against a target. It reports false where one of the two
// sides has not been measured. Ratios are taken pair by pair.
func (t Target) Judge(results []Result) (Verdict, bool) {
	own := t.Figure.In(results, t.Row, t.Candidate)
	if t.Than != "" {
		there := SpreadOf(t.Figure.In(results, t.Than, t.Candidate)).Median
		for i := range own {
			own[i] /= there
		}
		return t.verdict(t.Than, SpreadOf(own))
	}
	if len(t.Against) == 0 {
		return t.verdict("", SpreadOf(own))
	}
	best, name := []float64(nil), ""
	for _, other := range t.Against {
		values := t.Figure.In(results, t.Row, other)
		better := SpreadOf(values).Median < SpreadOf(best).Median
		if t.AtLeast {
			better = SpreadOf(values).Median > SpreadOf(best).Median
		}
		if len(values) > 0 && (name == "" || better) {
			best, name = values, other
		}
	}
	if t.More != 0 {
		differences := make([]float64, min(len(own), len(best)))
		for i := range differences {
			differences[i] = own[i] - best[i]
		}
		return t.verdict(name, SpreadOf(differences))
	}
	return t.verdict(name, SpreadOf(Ratios(own, best)))
}

func (t Target) verdict(against string, value Spread) (Verdict, bool) {
	bound := t.Bound
	if t.More != 0 {
		bound = t.More
	}
	met := value.Median <= bound
	if t.AtLeast {
		met = value.Median >= bound
	}
	return Verdict{Target: t, Against: against, Value: value, Met: met}, !math.IsNaN(value.Median)
}

// Verdicts writes what became of the targets of the rows that were measured, as a
// Markdown table.
func Verdicts(targets []Target, results []Result) string {
	var out strings.Builder
	out.WriteString("| row | figure of apograph | against | value | to reach | |\n| --- | --- | --- | --- | --- | --- |\n")
	n := 0
	for _, t := range targets {
		v, ok := t.Judge(results)
		if !ok {
			continue
		}
		n++
		met := "met"
		if !v.Met {
			met = "**missed**"
		}
		fmt.Fprintf(&out, "| %s | %s | %s | %s | %s | %s |\n", t.Row, t.Figure.Name, v.Against, v.Value, t.wanted(), met)
	}
	if n == 0 {
		return ""
	}
	return out.String()
}

func (t Target) wanted() string {
	sign := "<="
	if t.AtLeast {
		sign = ">="
	}
	switch {
	case t.More != 0:
		return fmt.Sprintf("%s +%s", sign, Digits(t.More))
	case len(t.Against) > 0 || t.Than != "":
		return fmt.Sprintf("%s %sx", sign, Digits(t.Bound))
	}
	return sign + " " + Digits(t.Bound)
}
