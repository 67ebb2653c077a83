package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"apograph/replicate"
)

// mustStopReasons reads the reasons to stop from the source of package
// replicate: every constant of the type StopReason.
func mustStopReasons(t *testing.T) []string {
	t.Helper()
	files, err := filepath.Glob("../../replicate/*.go")
	if err != nil || len(files) == 0 {
		t.Fatalf("no source of package replicate: %v", err)
	}
	var reasons []string
	for _, name := range files {
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(file, func(n ast.Node) bool {
			spec, ok := n.(*ast.ValueSpec)
			if !ok {
				return true
			}
			if kind, ok := spec.Type.(*ast.Ident); ok && kind.Name == "StopReason" {
				for _, value := range spec.Values {
					reason, err := strconv.Unquote(value.(*ast.BasicLit).Value)
					if err != nil {
						t.Fatal(err)
					}
					reasons = append(reasons, reason)
				}
			}
			return true
		})
	}
	return reasons
}

// TestEveryStopHasAdvice: for each reason there is one line that says what to
// do, and for nothing else.
func TestEveryStopHasAdvice(t *testing.T) {
	reasons := mustStopReasons(t)
	if len(reasons) < 10 {
		t.Fatalf("package replicate has the reasons %v, want at least 10", reasons)
	}
	var advised []string
	for _, row := range stopAdvices() {
		advised = append(advised, string(row.reason))
		if row.advice == "" || strings.ContainsAny(row.advice, "\n|") || strings.HasSuffix(row.advice, ".") {
			t.Errorf("%s: advice %q, want one line without a period", row.reason, row.advice)
		}
	}
	slices.Sort(reasons)
	slices.Sort(advised)
	if !slices.Equal(reasons, advised) {
		t.Errorf("there is advice for\n%v\nthe reasons are\n%v", advised, reasons)
	}
}

// TestSummaryTable: what stopped comes first, then once for each reason what to
// do about it; the verdict is about the books and comes last.
func TestSummaryTable(t *testing.T) {
	s := replicate.Summary{
		SourceAlias: "a", TargetAlias: "b", Topics: 1, Partitions: 3, Complete: true,
		Stopped: []replicate.Stopped{
			{Topic: "t", Partition: 0, Offset: 5, Reason: replicate.StopUnavailable, Detail: "no leader"},
			{Topic: "t", Partition: 1, Offset: 6, Reason: replicate.StopFenced, Detail: "epoch 3"},
			{Topic: "t", Partition: 2, Offset: 7, Reason: replicate.StopUnavailable, Detail: "no leader"},
		},
	}
	table := summaryOf(s).table()
	want := [][]string{
		{"stopped", "t-0 at source offset 5: unavailable: no leader"},
		{"stopped", "t-1 at source offset 6: fenced: epoch 3"},
		{"stopped", "t-2 at source offset 7: unavailable: no leader"},
		{"what next", "fenced: " + adviceFor(replicate.StopFenced)},
		{"what next", "unavailable: " + adviceFor(replicate.StopUnavailable)},
		{"flow", "a -> b"},
	}
	if got := table.rows[:len(want)]; !slices.EqualFunc(got, want, slices.Equal[[]string]) {
		t.Errorf("the table begins with\n%q\nwant\n%q", got, want)
	}
	if last := table.rows[len(table.rows)-1]; !slices.Equal(last, []string{"books complete", "yes"}) {
		t.Errorf("the table ends with %q", last)
	}
}

func TestProgressLineOfReplicate(t *testing.T) {
	for _, tt := range []struct {
		once bool
		p    *replicate.Progress
		want string
	}{
		{true, nil, "connecting"},
		{true, &replicate.Progress{Partitions: 9, Finished: 2, Copied: 1, Bytes: 10, Remaining: 1},
			"2 of 9 partitions done, 1 record copied (10 B), 1 offset to go"},
		{false, &replicate.Progress{Partitions: 9, Copied: 1234, Bytes: 1258291},
			"9 partitions, 1234 records copied (1.2 MiB), caught up"},
		{false, &replicate.Progress{Partitions: 1, Remaining: 7}, "1 partition, 0 records copied (0 B), 7 offsets behind"},
		{false, &replicate.Progress{Partitions: 9, Finished: 2, Copied: 5, Bytes: 50, Remaining: 1},
			"9 partitions, 5 records copied (50 B), 1 offset behind, 2 stopped"},
	} {
		if got := progressLine(tt.once, tt.p); got != tt.want {
			t.Errorf("once %t, %+v: %q, want %q", tt.once, tt.p, got, tt.want)
		}
	}
}
