package figures_test

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"apograph/bench/figures"
)

func journal(t *testing.T, lines ...figures.Line) figures.Journal {
	t.Helper()
	var text bytes.Buffer
	for _, l := range lines {
		if err := figures.WriteLine(&text, l); err != nil {
			t.Fatal(err)
		}
	}
	text.WriteString(`{"result":{"row":"cut o`) // the run was killed
	j, err := figures.ReadJournal(&text)
	if err != nil {
		t.Fatal(err)
	}
	return j
}

func runAt(hour int, version string) figures.Line {
	return figures.Line{Run: &figures.Run{
		Began: time.Date(2026, 1, 2, hour, 0, 0, 0, time.UTC), Command: "make bench-kafka", Version: version, Kafka: "4.3.1", Machine: "2 cores",
	}}
}

func copyOf(row, candidate string, repeat int, cpu float64) figures.Line {
	return figures.Line{Result: &figures.Result{
		Row: row, Candidate: candidate, Repeat: repeat, Records: 10, Payload: 1e9,
		Whole: figures.Span{Seconds: 1, Payload: 1e9, CPU: cpu}, Copy: figures.Span{Seconds: 1, Payload: 1e9, CPU: cpu},
	}}
}

func failureOf(row, candidate string) figures.Line {
	return figures.Line{Failure: &figures.Failure{Row: row, Candidate: candidate, Repeat: 1, Error: "it ended\nits log"}}
}

func TestMergeTakesTheLastRunOfEachRow(t *testing.T) {
	old := journal(t, runAt(1, "aaa"), copyOf("1k-lz4", figures.Apograph, 0, 7), copyOf("1k-lz4", figures.Copier, 0, 8), copyOf("tail", figures.Apograph, 0, 3))
	again := journal(t, runAt(2, "bbb"), copyOf("1k-lz4", figures.Apograph, 0, 2), failureOf("tail", ""), failureOf("txn", figures.MM2), failureOf("other", ""))
	for _, journals := range [][]figures.Journal{{old, again}, {again, old}} {
		report := figures.Merge(journals, []string{"txn", "tail", "1k-lz4"})
		text := report.Markdown(nil)
		for _, want := range []string{
			"- 2026-01-02 02:00 UTC: `make bench-kafka`, apograph bbb, Kafka and MirrorMaker 4.3.1, 2 cores: txn, 1k-lz4, other\n",
			"apograph aaa, Kafka and MirrorMaker 4.3.1, 2 cores: tail\n",
			"| tail | apograph | 3.00 |", "| 1k-lz4 | apograph | 2.00 |",
			"- txn, mm2, repeat 1: it ended\n", "- other: it ended\n",
		} {
			if !strings.Contains(text, want) {
				t.Errorf("no %q in\n%s", want, text)
			}
		}
		for _, unwanted := range []string{"7.00", "8.00", "its log", "copier"} {
			if strings.Contains(text, unwanted) {
				t.Errorf("%q in\n%s", unwanted, text)
			}
		}
		if strings.Index(text, "| tail |") > strings.Index(text, "| 1k-lz4 |") {
			t.Errorf("rows out of order in\n%s", text)
		}
	}
}

func TestReadJournalRefusesOtherLines(t *testing.T) {
	for _, text := range []string{"{}\n", "row\n", `{"result":7}` + "\n"} {
		if _, err := figures.ReadJournal(strings.NewReader(text)); err == nil {
			t.Errorf("%q is a journal", text)
		}
	}
}

func TestRatiosSkipWhatOneSideLacks(t *testing.T) {
	j := journal(t, runAt(1, "aaa"),
		copyOf("r", figures.Apograph, 0, 1), copyOf("r", figures.Apograph, 2, 3),
		copyOf("r", figures.Copier, 0, 4), copyOf("r", figures.Copier, 1, 400), copyOf("r", figures.Copier, 2, 6))
	target := figures.Target{Row: "r", Candidate: figures.Apograph, Figure: figures.Columns()[0], Against: []string{figures.Copier}, Bound: 1}
	v, ok := target.Judge(j.Results)
	if !ok || v.Value.Least != 0.25 || v.Value.Greatest != 0.5 {
		t.Errorf("%+v, %v", v, ok)
	}
}

func TestComparison(t *testing.T) {
	j := journal(t, runAt(1, "aaa"),
		copyOf("r", figures.Apograph, 0, 1), copyOf("r", figures.Copier, 0, 2), copyOf("r", figures.MM2, 0, 10), copyOf("r", figures.MM2Tuned, 0, 8),
		copyOf("s", figures.Apograph, 0, 3), copyOf("s", figures.Copier, 0, 2),
		copyOf("alone", figures.Apograph, 0, 3))
	want := "| row | CPU-s/GB / copier's | MB/s / copier's | CPU-s/GB / mm2's | MB/s / mm2's |\n| --- | --- | --- | --- | --- |\n" +
		"| r | 0.500 | 1.00 | 0.125 | 1.00 |\n| s | **1.50** | 1.00 |  |  |\n"
	if got := figures.Comparison(j.Results); got != want {
		t.Errorf("comparison\n%s\nwant\n%s", got, want)
	}
	if got := figures.Comparison(nil); got != "" {
		t.Errorf("of nothing: %q", got)
	}
}

func TestTargetAgainstAnotherRow(t *testing.T) {
	j := journal(t, runAt(1, "aaa"), copyOf("small", figures.Apograph, 0, 1), copyOf("small", figures.Apograph, 1, 3),
		copyOf("large", figures.Apograph, 0, 3))
	target := figures.Target{Row: "large", Candidate: figures.Apograph, Figure: figures.Columns()[0], Than: "small", Bound: 1.2}
	if v, ok := target.Judge(j.Results); !ok || v.Value.Median != 1.5 || v.Met || v.Against != "small" {
		t.Errorf("%+v, %v", v, ok)
	}
	target.Than = "none"
	if v, ok := target.Judge(j.Results); ok {
		t.Errorf("against a row that is not there: %+v", v)
	}
}
