//go:build kafka

package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"apograph/bench/figures"
	"apograph/bench/workload"
	"apograph/internal/kafkatest"
)

// seed is that of all data.
const seed = 1

// quickMB is the size of each row of a quick run.
const quickMB = 200

type runOptions struct {
	rows       string
	quick      bool
	repeats    int
	sizeMB     int
	binary     string
	results    string
	candidates string
}

// kafkaCommand measures rows on real brokers, and writes the table to standard
// output.
func kafkaCommand(ctx context.Context, args []string) error {
	var o runOptions
	flags := flag.NewFlagSet("kafka", flag.ContinueOnError)
	flags.StringVar(&o.rows, "row", "", "names of rows, separated by commas; empty means all")
	flags.BoolVar(&o.quick, "quick", false, "the main rows, small, once")
	flags.IntVar(&o.repeats, "repeats", 5, "of each row")
	flags.IntVar(&o.sizeMB, "size", 0, "MB of keys and values of a row; 0 means the row's own")
	flags.StringVar(&o.binary, "apograph", "bin/apograph", "the product")
	flags.StringVar(&o.results, "results", "bench/results", "directory of the raw figures")
	flags.StringVar(&o.candidates, "candidates", "", "names of candidates, separated by commas; empty means the row's")
	if err := flags.Parse(args); err != nil {
		return err
	}
	chosen, err := o.chosen()
	if err != nil {
		return err
	}
	if o.binary, err = filepath.Abs(o.binary); err != nil {
		return err
	}
	r := runner{options: o}
	if err := r.open(ctx, args); err != nil {
		return err
	}
	err = errors.Join(r.run(ctx, chosen), r.file.Close())
	report := figures.Merge([]figures.Journal{r.journal}, names(rows()))
	fmt.Print(report.Markdown(figures.Targets()))
	return err
}

// chosen returns the rows to measure, with the sizes and candidates asked for.
func (o *runOptions) chosen() ([]row, error) {
	chosen, err := rowsNamed(o.rows)
	if err != nil {
		return nil, err
	}
	if o.quick {
		o.repeats = 1
		if o.rows == "" {
			chosen = slices.DeleteFunc(chosen, func(r row) bool { return !r.Main })
		}
	}
	for i := range chosen {
		r := &chosen[i]
		if o.quick {
			r.SizeMB = min(r.SizeMB, quickMB)
		}
		if o.sizeMB > 0 {
			r.SizeMB = o.sizeMB
		}
		if o.candidates != "" {
			r.Candidates = strings.Split(o.candidates, ",")
		}
		if r.Candidates == nil {
			r.Candidates = []string{figures.Apograph, figures.Copier, figures.Floor, figures.MM2, figures.MM2Tuned}
		}
	}
	return chosen, nil
}

// rowTimeout bounds one row. What has been measured by then counts.
const rowTimeout = 40 * time.Minute

// errRowTimeout is the cause of a row's end.
var errRowTimeout = fmt.Errorf("the row has taken %v", rowTimeout)

// A runner measures one row after the other.
type runner struct {
	options runOptions
	stand   *stand
	journal figures.Journal
	file    *os.File // of the journal
	jobs    int
	sweep   func(context.Context) error // cleans up behind a candidate
}

// run measures rows. One that fails, or a candidate of it, does not keep the next
// from being measured, but is the run's error in the end.
func (r *runner) run(ctx context.Context, chosen []row) error {
	for _, row := range chosen {
		began := time.Now()
		r.do(ctx, row, func(ctx context.Context) error { return r.row(ctx, row) })
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		fmt.Fprintf(os.Stderr, "%s: %.0f s in all\n", row.Name, time.Since(began).Seconds())
	}
	if n := len(r.journal.Failures); n > 0 {
		return fmt.Errorf("%d failures, the first of them in row %s", n, r.journal.Failures[0].Row)
	}
	return nil
}

// do measures one row in its time, and keeps its failure.
func (r *runner) do(ctx context.Context, row row, measure func(context.Context) error) {
	ctx, cancel := context.WithTimeoutCause(ctx, rowTimeout, errRowTimeout)
	defer cancel()
	if err := measure(ctx); err != nil {
		r.fail(row, "", 0, err)
	}
}

// row measures one row, on brokers of its own: what one row leaves behind in them
// is not to weigh upon the next.
func (r *runner) row(ctx context.Context, row row) error {
	return withStand(ctx, row, func(s *stand) error {
		r.stand, r.sweep = s, s.sweep
		if row.Run != nil {
			return row.Run(r, ctx, row)
		}
		return r.copies(ctx, row)
	})
}

// copies has each candidate copy the row's topic, in turn, and all again for each
// repeat. Before the first one the brokers are warmed up.
func (r *runner) copies(ctx context.Context, row row) error {
	topic := "bench-" + row.Name
	began := time.Now()
	filling := row.Fill
	if filling == nil {
		filling = (*runner).fill
	}
	wire, err := filling(r, ctx, row, topic)
	if err != nil {
		return err
	}
	source, err := contentOf(ctx, r.stand.source.Server(), topic)
	if err != nil {
		return err
	}
	all := total(source)
	r.stand.Logf("%s: %d records, %d MB, written in %.0f s", row.Name, all.records, all.payload/1_000_000, time.Since(began).Seconds())
	if err := r.warmUp(ctx, row, topic, source); err != nil {
		return err
	}
	return r.inTurn(ctx, row, row.Candidates, func(c candidate, repeat int) (figures.Result, error) {
		result, err := r.copy(ctx, row, topic, c, source, repeat == 0)
		result.Wire = wire * float64(result.Payload)
		return result, err
	})
}

// inTurn calls measure for each candidate, and all again for each repeat. Each
// repeat begins with another candidate, so that none always follows the same. One
// that has failed is not tried again; the others go on.
func (r *runner) inTurn(ctx context.Context, row row, names []string, measure func(candidate, int) (figures.Result, error)) error {
	chosen, err := candidatesNamed(names)
	if err != nil {
		return err
	}
	failed := make(map[string]bool)
	for repeat := range r.options.repeats {
		for i := range chosen {
			c := chosen[(i+repeat)%len(chosen)]
			if failed[c.name] {
				continue
			}
			result, err := measure(c, repeat)
			result.Row, result.Candidate, result.Repeat = row.Name, c.name, repeat
			if err == nil {
				err = r.note(&result)
			}
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			if err == nil {
				continue
			}
			failed[c.name] = true
			r.fail(row, c.name, repeat, err)
			if err := r.sweep(ctx); err != nil {
				return fmt.Errorf("clean up behind %s: %w", c.name, err)
			}
		}
	}
	return nil
}

// fill writes the row's topic and returns how many bytes of batches there are for
// each byte of keys and values.
func (r *runner) fill(ctx context.Context, row row, topic string) (float64, error) {
	batches, err := row.Shape.Batches(seed, time.Now().Add(-max(row.Age, time.Hour)).UnixMilli())
	if err != nil {
		return 0, err
	}
	r.stand.Logf("%s: %d MB in %d different batches, ratio %.2f", row.Name, row.SizeMB, len(batches), workload.Ratio(batches))
	if err := r.stand.source.CreateTopic(ctx, topic, int32(row.Partitions), kafkatest.LoadConfigs()); err != nil {
		return 0, err
	}
	return 1 / workload.Ratio(batches), fill(ctx, r.stand.source.Server(), topic, row.Partitions, batches, int64(row.SizeMB)*1e6)
}

// warmUp lets the copier and the product copy once, unmeasured: the first copy of a
// topic also compiles the brokers' code. Whether they can is not told here.
func (r *runner) warmUp(ctx context.Context, row row, topic string, source map[int32]content) error {
	warm, err := candidatesNamed([]string{figures.Copier, figures.Apograph})
	if err != nil {
		return err
	}
	for _, c := range warm {
		if _, err := r.copy(ctx, row, topic, c, source, false); err != nil {
			r.stand.Logf("%s: warm up: %v", row.Name, err)
			if err := r.sweep(ctx); err != nil {
				return err
			}
		}
	}
	return nil
}

// copy has one candidate copy the topic, and cleans up behind it. With check the
// copy is compared with the source.
func (r *runner) copy(ctx context.Context, row row, topic string, c candidate, source map[int32]content, check bool) (figures.Result, error) {
	j := r.job(row, topic)
	result, err := measure(ctx, c, j, total(source))
	if err != nil {
		return result, err
	}
	if c.name == figures.Apograph {
		if result.LedgerBytes, err = ledgerBytes(ctx, j); err != nil {
			return result, err
		}
	}
	if check && c.topic != nil {
		target, err := contentOf(ctx, r.stand.target.Server(), c.topic(j))
		if err != nil {
			return result, err
		}
		if d := differenceOf(source, target); d != "" {
			return result, fmt.Errorf("%s: the copy differs: %s", c.name, d)
		}
	}
	return result, r.sweep(ctx)
}

// job returns one of a new number.
func (r *runner) job(row row, topic string) job {
	r.jobs++
	return job{
		stand: r.stand, row: row, topic: topic, number: r.jobs, binary: r.options.binary,
		source: r.stand.sourceServer, target: r.stand.targetServer, ca: r.stand.ca,
	}
}

// ledgerBytes returns how much of a ledger's file is in use.
func ledgerBytes(ctx context.Context, j job) (int64, error) {
	out, err := exec.CommandContext(ctx, j.binary, "ledger", "inspect", "-o", "json", "--ledger", j.ledger()).Output()
	if err != nil {
		return 0, fmt.Errorf("ledger inspect: %w", err)
	}
	var info struct{ Bytes int64 }
	return info.Bytes, json.Unmarshal(out, &info)
}
