//go:build kafka

package main

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"apograph/bench/figures"
)

func TestKafkaRowsNamed(t *testing.T) {
	for list, want := range map[string][]string{
		"txn,1k-lz4":  {"1k-lz4", "txn"},
		"tls-*":       {"tls-none", "tls-lz4"},
		"1k-n*,*-1k-": nil,
		"?":           nil,
	} {
		chosen, err := rowsNamed(list)
		if got := names(chosen); !slices.Equal(got, want) || (err == nil) != (want != nil) {
			t.Errorf("rows of %q: %v, %v", list, got, err)
		}
	}
	all := names(rows())
	slices.Sort(all)
	if len(slices.Compact(all)) != len(rows()) {
		t.Error("two rows have one name")
	}
	for _, target := range figures.Targets() {
		if !slices.Contains(all, target.Row) {
			t.Errorf("a target is of row %q, which is not there", target.Row)
		}
	}
}

// TestKafkaRunGoesOn has no brokers: a row is what its function does.
func TestKafkaRunGoesOn(t *testing.T) {
	dir := t.TempDir()
	r := runner{options: runOptions{repeats: 3, results: dir}}
	if err := r.open(t.Context(), []string{"-row", "some"}); err != nil {
		t.Fatal(err)
	}
	var swept int
	measured := func(ctx context.Context, row row) error {
		r.stand = &stand{}
		r.sweep = func(context.Context) error { swept++; return nil }
		return r.inTurn(ctx, row, []string{figures.Copier, figures.Apograph}, func(c candidate, repeat int) (figures.Result, error) {
			if c.name == figures.Copier && repeat == 1 {
				return figures.Result{}, errors.New("it ended")
			}
			return figures.Result{Records: 1}, nil
		})
	}
	for _, x := range []row{{Name: "broken"}, {Name: "good"}} {
		r.do(t.Context(), x, func(ctx context.Context) error {
			if x.Name == "broken" {
				return errors.New("no brokers")
			}
			return measured(ctx, x)
		})
	}
	if err := r.file.Close(); err != nil {
		t.Fatal(err)
	}
	paths, err := filepath.Glob(filepath.Join(dir, "*.jsonl"))
	if err != nil || len(paths) != 1 {
		t.Fatal(paths, err)
	}
	f, err := os.Open(paths[0])
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	j, err := figures.ReadJournal(f)
	if err != nil {
		t.Fatal(err)
	}
	var done []string
	for _, x := range j.Results {
		done = append(done, x.Candidate+string(rune('0'+x.Repeat)))
	}
	text, _ := json.Marshal(j.Failures)
	if got := strings.Join(done, " "); got != "copier0 apograph0 apograph1 apograph2" || swept != 1 || len(j.Failures) != 2 {
		t.Errorf("measured %s, cleaned up %d times, failures %s", got, swept, text)
	}
}
