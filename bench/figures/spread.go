// Package figures does the arithmetic of the benchmarks: medians with their
// spread, ratios pair by pair, what /proc says about a process, and the table.
// It measures nothing by itself, and knows no Kafka.
package figures

import (
	"fmt"
	"math"
	"slices"
)

// A Spread is the median of several repeats of one measurement, with the least
// and the greatest of them. Without any repeat all three are NaN.
type Spread struct {
	Median, Least, Greatest float64
}

// SpreadOf returns the spread of values, which it leaves as they are. Values that
// are NaN were not measured and do not count. The median of an even number is the
// mean of the two in the middle.
func SpreadOf(values []float64) Spread {
	sorted := slices.DeleteFunc(slices.Clone(values), math.IsNaN)
	n := len(sorted)
	if n == 0 {
		return Spread{math.NaN(), math.NaN(), math.NaN()}
	}
	slices.Sort(sorted)
	return Spread{
		Median: (sorted[(n-1)/2] + sorted[n/2]) / 2,
		Least:  sorted[0], Greatest: sorted[n-1],
	}
}

// Ratios returns a[i]/b[i] for each repeat i that both have. What disturbs a
// machine for minutes disturbs both sides of a pair, so the spread of the ratios is
// narrower than that of the figures.
func Ratios(a, b []float64) []float64 {
	ratios := make([]float64, min(len(a), len(b)))
	for i := range ratios {
		ratios[i] = a[i] / b[i]
	}
	return ratios
}

// String returns the median and, where the repeats differ, the least and the
// greatest behind it, each with three digits; "" where nothing was measured.
func (s Spread) String() string {
	if math.IsNaN(s.Median) {
		return ""
	}
	if s.Least == s.Greatest {
		return Digits(s.Median)
	}
	return fmt.Sprintf("%s (%s-%s)", Digits(s.Median), Digits(s.Least), Digits(s.Greatest))
}

// Digits writes a number with three digits that count, and without exponent; what
// was not measured (NaN) is "n/a".
func Digits(v float64) string {
	switch size := math.Abs(v); {
	case math.IsNaN(v):
		return "n/a"
	case size >= 99.95:
		return fmt.Sprintf("%.0f", v)
	case size >= 9.995:
		return fmt.Sprintf("%.1f", v)
	case size >= 0.9995 || v == 0:
		return fmt.Sprintf("%.2f", v)
	default:
		return fmt.Sprintf("%.3f", v)
	}
}

// Percentile returns the value below which the part p (0 to 1) of the values
// lies, by the nearest rank; NaN of none. It sorts them.
func Percentile(values []float64, p float64) float64 {
	if len(values) == 0 {
		return math.NaN()
	}
	slices.Sort(values)
	rank := int(math.Ceil(p * float64(len(values))))
	return values[min(max(rank-1, 0), len(values)-1)]
}
