package figures

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
)

// A Run says what measured, of what, on what: all that a table needs to be
// believed.
type Run struct {
	Began   time.Time `json:"began"`
	Command string    `json:"command"`
	Version string    `json:"version"` // of the product: its commit
	Kafka   string    `json:"kafka"`
	Machine string    `json:"machine"`
}

// String is a run in one line.
func (r *Run) String() string {
	return fmt.Sprintf("%s: `%s`, apograph %s, Kafka and MirrorMaker %s, %s", r.Began.UTC().Format("2006-01-02 15:04 MST"), r.Command, r.Version, r.Kafka, r.Machine)
}

// A Failure is what could not be measured: a row, or one candidate of it.
type Failure struct {
	Row       string `json:"row"`
	Candidate string `json:"candidate,omitempty"` // empty: the whole row
	Repeat    int    `json:"repeat"`
	Error     string `json:"error"`
}

// A Line is one line of a journal: exactly one of its fields is set.
type Line struct {
	Run     *Run     `json:"run,omitempty"`
	Result  *Result  `json:"result,omitempty"`
	Failure *Failure `json:"failure,omitempty"`
}

// A Journal is all that one run has written down.
type Journal struct {
	Run      Run
	Results  []Result
	Failures []Failure
}

// WriteLine appends one line to a journal, in one write: what has been measured
// stays, whatever becomes of the run.
func WriteLine(w io.Writer, l Line) error {
	text, err := json.Marshal(l)
	if err != nil {
		return err
	}
	_, err = w.Write(append(text, '\n'))
	return err
}

// ReadJournal reads the lines of one run. A last line without its end is of a run
// that was killed, and is left out.
func ReadJournal(r io.Reader) (Journal, error) {
	var j Journal
	text, err := io.ReadAll(r)
	if err != nil {
		return j, err
	}
	number := 0
	for line := range bytes.Lines(text) {
		if number++; line[len(line)-1] != '\n' {
			break
		}
		var l Line
		if err := json.Unmarshal(line, &l); err != nil {
			return j, fmt.Errorf("line %d: %w", number, err)
		}
		switch {
		case l.Run != nil:
			j.Run = *l.Run
		case l.Result != nil:
			j.Results = append(j.Results, *l.Result)
		case l.Failure != nil:
			j.Failures = append(j.Failures, *l.Failure)
		default:
			return j, fmt.Errorf("line %d has neither a run, nor a result, nor a failure", number)
		}
	}
	return j, nil
}

// rows returns what a journal tells about each row.
func (j *Journal) rows() map[string]*Journal {
	found := make(map[string]*Journal)
	of := func(row string) *Journal {
		if found[row] == nil {
			found[row] = &Journal{Run: j.Run}
		}
		return found[row]
	}
	for _, r := range j.Results {
		of(r.Row).Results = append(of(r.Row).Results, r)
	}
	for _, f := range j.Failures {
		of(f.Row).Failures = append(of(f.Row).Failures, f)
	}
	return found
}

// supersedes reports whether what j tells about a row counts, and not what other
// does: results do rather than failures alone, then the later run.
func (j *Journal) supersedes(other *Journal) bool {
	if some := len(j.Results) > 0; some != (len(other.Results) > 0) {
		return some
	}
	return j.Run.Began.After(other.Run.Began)
}

// Merge joins runs into one report: each row is of the last run that has measured
// any of it, as ratios are of one run alone. Rows come in the order given; those
// that it does not know come last, by name.
func Merge(journals []Journal, order []string) Report {
	latest := make(map[string]*Journal)
	for i := range journals {
		for name, row := range journals[i].rows() {
			if had := latest[name]; had == nil || row.supersedes(had) {
				latest[name] = row
			}
		}
	}
	var names []string
	for name := range latest {
		names = append(names, name)
	}
	place := func(name string) int {
		if i := slices.Index(order, name); i >= 0 {
			return i
		}
		return len(order)
	}
	slices.SortFunc(names, func(a, b string) int {
		if d := place(a) - place(b); d != 0 {
			return d
		}
		return strings.Compare(a, b)
	})
	var report Report
	for _, name := range names {
		report.add(name, latest[name])
	}
	return report
}

// A Report is the rows of one or several runs.
type Report struct {
	runs     []Run      // whose rows are here, in order of their first row
	rows     [][]string // of each of the runs
	results  []Result
	failures []Failure
}

func (r *Report) add(name string, row *Journal) {
	at := slices.Index(r.runs, row.Run)
	if at < 0 {
		at = len(r.runs)
		r.runs, r.rows = append(r.runs, row.Run), append(r.rows, nil)
	}
	r.rows[at] = append(r.rows[at], name)
	r.results = append(r.results, row.Results...)
	r.failures = append(r.failures, row.Failures...)
}

// Markdown writes the report: the runs, the table, the comparison, what became of the
// targets, and what could not be measured.
func (r *Report) Markdown(targets []Target) string {
	var out strings.Builder
	for i := range r.runs {
		fmt.Fprintf(&out, "- %s", &r.runs[i])
		if len(r.runs) > 1 {
			fmt.Fprintf(&out, ": %s", strings.Join(r.rows[i], ", "))
		}
		out.WriteString("\n")
	}
	for _, part := range []string{Table(r.results), Comparison(r.results), Verdicts(targets, r.results)} {
		if part != "" {
			out.WriteString("\n" + part)
		}
	}
	if len(r.failures) > 0 {
		out.WriteString("\nNot measured:\n\n")
	}
	for _, f := range r.failures {
		who := f.Row
		if f.Candidate != "" {
			who = fmt.Sprintf("%s, %s, repeat %d", f.Row, f.Candidate, f.Repeat)
		}
		first, _, _ := strings.Cut(f.Error, "\n")
		fmt.Fprintf(&out, "- %s: %s\n", who, first)
	}
	return out.String()
}
