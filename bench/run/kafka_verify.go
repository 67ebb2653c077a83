//go:build kafka

package main

import (
	"bufio"
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"strings"
	"time"

	"apograph/bench/figures"
	"apograph/ledger"
	"apograph/translate"
)

// prepare writes a row's topic, has the product copy it, and leaves both there. It
// returns the job of the copy and what is in the topic.
func (r *runner) prepare(ctx context.Context, row row) (job, map[int32]content, error) {
	topic := "bench-" + row.Name
	if _, err := r.fill(ctx, row, topic); err != nil {
		return job{}, nil, err
	}
	source, err := contentOf(ctx, r.stand.source.Server(), topic)
	if err != nil {
		return job{}, nil, err
	}
	j := r.job(row, topic)
	chosen, err := candidatesNamed([]string{figures.Apograph})
	if err != nil {
		return job{}, nil, err
	}
	_, err = measure(ctx, chosen[0], j, total(source))
	return j, source, err
}

// verify proves a copy, against a consumer that reads the same clusters and does
// nothing with the records.
func (r *runner) verify(ctx context.Context, row row) error {
	j, source, err := r.prepare(ctx, row)
	if err != nil {
		return err
	}
	clusters := []string{j.target}
	mode := strings.TrimPrefix(row.Name, "verify-")
	product := []string{j.binary, "verify", "-o", "json", "--mode", mode, "--ledger", j.ledger(), "--target-bootstrap-server", j.target}
	if mode == "full" {
		clusters = append(clusters, j.source)
		product = append(product, "--source-bootstrap-server", j.source)
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	always := func(args []string) func(job) ([]string, error) {
		return func(job) ([]string, error) { return args, nil }
	}
	commands := map[string]func(job) ([]string, error){
		figures.Apograph: always(product),
		figures.Reader:   always(append([]string{self, "reader", "-topic", j.topic}, clusters...)),
	}
	return r.inTurn(ctx, row, row.Candidates, func(c candidate, _ int) (figures.Result, error) {
		return measure(ctx, candidate{name: c.name, command: commands[c.name]}, j, total(source))
	})
}

// translations is how many offsets a file has.
const translations = 1_000_000

// translate turns the offsets of a file into those of the other side, and then
// looks up offsets one by one in this process, as nothing tells from outside how
// long a single one takes.
func (r *runner) translate(ctx context.Context, row row) error {
	j, source, err := r.prepare(ctx, row)
	if err != nil {
		return err
	}
	rng := rand.New(rand.NewPCG(seed, 0))
	least := int64(math.MaxInt64) // records of a partition: beyond its end there is no answer
	for _, c := range source {
		least = min(least, c.records)
	}
	offset := func() (int32, int64) { return rng.Int32N(int32(row.Partitions)), rng.Int64N(least) }
	path := r.stand.path("offsets.csv")
	if err := writeOffsets(path, j.topic, row.Partitions, offset); err != nil {
		return err
	}
	c := candidate{name: figures.Apograph, command: func(job) ([]string, error) {
		return []string{j.binary, "translate", "--ledger", j.ledger(), "--from-file", path, "-o", "csv"}, nil
	}}
	return r.inTurn(ctx, row, row.Candidates, func(candidate, int) (figures.Result, error) {
		result, err := measure(ctx, c, j, content{}) // which copies nothing
		if err != nil {
			return result, err
		}
		result.OffsetsPerCPU = translations / result.Whole.CPU
		result.LatencyP50, result.LatencyP99, err = lookUps(j, offset)
		return result, err
	})
}

func writeOffsets(path, topic string, partitions int, offset func() (int32, int64)) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	defer f.Close()
	w := bufio.NewWriter(f)
	for i := range translations {
		// A file has one offset of a partition for each group.
		_, o := offset()
		if _, err := fmt.Fprintf(w, "group-%d,%s,%d,%d\n", i/partitions, topic, i%partitions, o); err != nil {
			return err
		}
	}
	return w.Flush()
}

// lookUps returns the median and the 99th percentile of single translations, in
// milliseconds.
func lookUps(j job, offset func() (int32, int64)) (p50, p99 float64, err error) {
	l, err := ledger.Open(j.ledger(), ledger.Options{ReadOnly: true})
	if err != nil {
		return 0, 0, err
	}
	defer l.Close()
	pairs := make(map[int32]ledger.PairID)
	for _, pair := range l.Pairs() {
		pairs[pair.Partition] = pair.ID
	}
	times := make([]float64, 100_000)
	for i := range times {
		partition, o := offset()
		began := time.Now()
		if _, err := translate.Forward(translate.Books{Ledger: l, Pair: pairs[partition]}, o); err != nil {
			return 0, 0, err
		}
		times[i] = time.Since(began).Seconds() * 1000
	}
	return figures.Percentile(times, 0.5), figures.Percentile(times, 0.99), nil
}
