//go:build kafka

package main

import (
	"context"
	"flag"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"time"

	"apograph/bench/figures"
	"apograph/internal/kafkatest"
)

// open begins the journal of a run, in a new file.
func (r *runner) open(ctx context.Context, args []string) error {
	if err := os.MkdirAll(r.options.results, 0o755); err != nil {
		return err
	}
	began := time.Now()
	r.journal.Run = figures.Run{
		Began: began, Command: commandOf(args), Version: commitOf(ctx), Kafka: kafkatest.KafkaVersion, Machine: machine(),
	}
	var err error
	if r.file, err = os.Create(filepath.Join(r.options.results, began.UTC().Format("20060102T150405")+".jsonl")); err != nil {
		return err
	}
	return figures.WriteLine(r.file, figures.Line{Run: &r.journal.Run})
}

// note keeps a result, and tells about it while a run goes on.
func (r *runner) note(result *figures.Result) error {
	if err := figures.WriteLine(r.file, figures.Line{Result: result}); err != nil {
		return err
	}
	r.journal.Results = append(r.journal.Results, *result)
	said := []string{}
	for _, f := range figures.Columns() {
		if v := f.Of(result); !math.IsNaN(v) {
			said = append(said, f.Name+" "+figures.Digits(v))
		}
	}
	fmt.Fprintf(os.Stderr, "%s %d %s: %s\n", result.Row, result.Repeat, result.Candidate, strings.Join(said, ", "))
	return nil
}

// fail keeps what could not be measured.
func (r *runner) fail(row row, candidate string, repeat int, cause error) {
	f := figures.Failure{Row: row.Name, Candidate: candidate, Repeat: repeat, Error: cause.Error()}
	r.journal.Failures = append(r.journal.Failures, f)
	fmt.Fprintf(os.Stderr, "%s %s: %v\n", row.Name, candidate, cause)
	if err := figures.WriteLine(r.file, figures.Line{Failure: &f}); err != nil {
		fmt.Fprintln(os.Stderr, "journal:", err)
	}
}

// tableCommand writes what the journals of several runs, files or directories of
// them, say together: each row as its last run has it.
func tableCommand(_ context.Context, args []string) error {
	flags := flag.NewFlagSet("table", flag.ContinueOnError)
	if err := flags.Parse(args); err != nil {
		return err
	}
	var journals []figures.Journal
	for _, path := range flags.Args() {
		f, err := os.Open(path)
		if err != nil {
			return err
		}
		j, err := figures.ReadJournal(f)
		_ = f.Close()
		if err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		journals = append(journals, j)
	}
	report := figures.Merge(journals, names(rows()))
	fmt.Print(report.Markdown(figures.Targets()))
	return nil
}

// commandOf returns the command of this program without the paths, which are the
// makefile's.
func commandOf(args []string) string {
	return strings.Join(append([]string{"bench-kafka", "kafka"}, args...), " ")
}

// commitOf returns the commit of the sources, with a mark if they differ from it.
func commitOf(ctx context.Context) string {
	out, err := exec.CommandContext(ctx, "git", "describe", "--always", "--dirty").Output()
	if err != nil {
		return "of an unknown commit"
	}
	return strings.TrimSpace(string(out))
}

// machine says on what a run runs.
func machine() string {
	kilobytes, _ := strconv.ParseFloat(strings.TrimSuffix(field("/proc/meminfo", "MemTotal"), " kB"), 64)
	return fmt.Sprintf("Linux %s, %s, %d cores, %.0f GB of memory, %s", firstLine("/proc/sys/kernel/osrelease"),
		field("/proc/cpuinfo", "model name"), runtime.NumCPU(), kilobytes*1024/1e9, runtime.Version())
}

func firstLine(path string) string {
	text, _ := os.ReadFile(path)
	line, _, _ := strings.Cut(string(text), "\n")
	return line
}

// field returns the value of a name in a file of lines of names and values; "?" if
// it is not there.
func field(path, name string) string {
	text, _ := os.ReadFile(path)
	for line := range strings.Lines(string(text)) {
		if key, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(key) == name {
			return strings.TrimSpace(value)
		}
	}
	return "?"
}
