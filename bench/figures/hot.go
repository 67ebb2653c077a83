package figures

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"path"
	"regexp"
	"strconv"
	"strings"
)

// hotColumns are the units of a Go benchmark, as benchstat names them, with what
// they are called in a table and how they are written there.
var hotColumns = []struct {
	unit, title string
	write       func(float64) string
}{
	{"sec/op", "time", seconds},
	{"B/s", "MB/s", func(v float64) string { return Digits(v / 1e6) }},
	{"allocs/op", "allocations", func(v float64) string { return strconv.FormatFloat(v, 'f', -1, 64) }},
}

// procs is what the testing package adds to a benchmark's name.
var procs = regexp.MustCompile(`-[0-9]+$`)

// Hot writes what benchstat says in CSV, its medians and confidence intervals, as one
// Markdown table: a line for each benchmark.
func Hot(benchstat io.Reader) (string, error) {
	records := csv.NewReader(benchstat)
	records.FieldsPerRecord = -1
	var names []string
	cells := make(map[string]map[string]string) // by name and unit
	pkg, unit := "", ""
	for {
		r, err := records.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return "", err
		}
		switch {
		case len(r) == 1:
			if p, ok := strings.CutPrefix(r[0], "pkg: "); ok {
				pkg = path.Base(p)
			}
		case r[0] == "":
			unit = r[1] // or the file's name, which a unit follows
		case len(r) == 3 && r[0] != "geomean" && r[1] != "":
			name := pkg + "." + procs.ReplaceAllString(r[0], "")
			if cells[name] == nil {
				cells[name] = make(map[string]string)
				names = append(names, name)
			}
			if cells[name][unit], err = hotCell(unit, r[1], r[2]); err != nil {
				return "", fmt.Errorf("%s: %w", name, err)
			}
		}
	}
	return hotTable(names, cells), nil
}

func hotCell(unit, value, interval string) (string, error) {
	v, err := strconv.ParseFloat(value, 64)
	if err != nil {
		return "", err
	}
	for _, c := range hotColumns {
		if c.unit != unit {
			continue
		}
		text := c.write(v)
		if interval != "0%" {
			text += " ± " + interval
		}
		return text, nil
	}
	return "", nil
}

func hotTable(names []string, cells map[string]map[string]string) string {
	head, rule := "| function |", "| --- |"
	for _, c := range hotColumns {
		head += " " + c.title + " |"
		rule += " --- |"
	}
	out := head + "\n" + rule + "\n"
	for _, name := range names {
		out += "| " + name + " |"
		for _, c := range hotColumns {
			out += " " + cells[name][c.unit] + " |"
		}
		out += "\n"
	}
	return out
}

func seconds(v float64) string {
	switch {
	case v < 1e-6:
		return Digits(v*1e9) + " ns"
	case v < 1e-3:
		return Digits(v*1e6) + " us"
	default:
		return Digits(v*1e3) + " ms"
	}
}
