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
	err = errors.Join(r.run(ctx, chosen), r.save())
	fmt.Print(figures.Table(r.results), "\n", figures.Verdicts(figures.Targets(), r.results))
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

// A runner measures one row after the other.
type runner struct {
	options runOptions
	stand   *stand
	results []figures.Result
	jobs    int
}

func (r *runner) run(ctx context.Context, chosen []row) error {
	for _, row := range chosen {
		if err := r.row(ctx, row); err != nil {
			return fmt.Errorf("row %s: %w", row.Name, err)
		}
	}
	return nil
}

// row measures one row, on brokers of its own: what one row leaves behind in them
// is not to weigh upon the next.
func (r *runner) row(ctx context.Context, row row) error {
	return withStand(ctx, row.Far, func(s *stand) error {
		r.stand = s
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
	chosen, err := candidatesNamed(row.Candidates)
	if err != nil {
		return err
	}
	if err := r.warmUp(ctx, row, topic, source); err != nil {
		return err
	}
	for repeat := range r.options.repeats {
		// Each repeat begins with another candidate, so that none always follows the same.
		for i := range chosen {
			c := chosen[(i+repeat)%len(chosen)]
			result, err := r.copy(ctx, row, topic, c, source, repeat == 0)
			if err != nil {
				return err
			}
			result.Repeat, result.Wire = repeat, wire*float64(result.Payload)
			r.results = append(r.results, result)
			r.say(&result)
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

// warmUp lets the copier copy once, unmeasured: the first copy of a topic also
// compiles the brokers' code.
func (r *runner) warmUp(ctx context.Context, row row, topic string, source map[int32]content) error {
	warm, err := candidatesNamed([]string{figures.Copier, figures.Apograph})
	if err != nil {
		return err
	}
	for _, c := range warm {
		if _, err := r.copy(ctx, row, topic, c, source, false); err != nil {
			return fmt.Errorf("warm up: %w", err)
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
	return result, r.stand.sweep(ctx)
}

// job returns one of a new number.
func (r *runner) job(row row, topic string) job {
	r.jobs++
	return job{
		stand: r.stand, row: row, topic: topic, number: r.jobs, binary: r.options.binary,
		source: r.stand.sourceServer, target: r.stand.targetServer,
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

// say tells about one copy while a run goes on.
func (r *runner) say(result *figures.Result) {
	r.stand.Logf("%s %d %s: %s CPU-s/GB, %s MB/s, %s MB, target broker %s CPU-s/GB",
		result.Row, result.Repeat, result.Candidate, figures.Digits(result.CPUPerGB()), figures.Digits(result.Speed()),
		figures.Digits(result.PeakMB()), figures.Digits(result.TargetCPUPerGB()))
}

// save writes the raw figures, one result a line.
func (r *runner) save() error {
	if len(r.results) == 0 {
		return nil
	}
	if err := os.MkdirAll(r.options.results, 0o755); err != nil {
		return err
	}
	f, err := os.Create(filepath.Join(r.options.results, time.Now().UTC().Format("20060102T150405")+".jsonl"))
	if err != nil {
		return err
	}
	encoder := json.NewEncoder(f)
	for i := range r.results {
		if err := encoder.Encode(&r.results[i]); err != nil {
			return errors.Join(err, f.Close())
		}
	}
	return f.Close()
}
