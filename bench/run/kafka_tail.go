//go:build kafka

package main

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"apograph/bench/figures"
	"apograph/internal/kafkatest"
)

// How the tail is measured: so many records a second, of which those of the first
// while after the first arrival do not count.
const (
	tailRate   = 1000
	tailWarmUp = 20 * time.Second
	tailTime   = 30 * time.Second
)

// tail measures how long a record takes from a producer at the source to a
// consumer at the target, once the copier has caught up.
func (r *runner) tail(ctx context.Context, row row) error {
	return r.inTurn(ctx, row, row.Candidates, func(c candidate, _ int) (figures.Result, error) {
		result, err := r.tailOnce(ctx, row, c)
		if err != nil {
			return result, err
		}
		return result, r.sweep(ctx)
	})
}

// endless returns the arguments of a candidate's command that keep it going at the
// end of the topic.
func endless(name string, args []string) []string {
	switch name {
	case figures.Apograph:
		var rest []string
		for _, arg := range args {
			if arg != "--once" {
				rest = append(rest, arg)
			}
		}
		return rest
	case figures.Copier:
		return append(args, "-follow")
	}
	return args
}

func (r *runner) tailOnce(ctx context.Context, row row, c candidate) (figures.Result, error) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Minute)
	defer cancel()
	j := r.job(row, fmt.Sprintf("bench-tail-%d", r.jobs))
	if err := r.stand.source.CreateTopic(ctx, j.topic, int32(row.Partitions), kafkatest.LoadConfigs()); err != nil {
		return figures.Result{}, err
	}
	args, err := c.command(j)
	if err != nil {
		return figures.Result{}, err
	}
	args = endless(c.name, args)
	output, err := os.Create(r.stand.path("candidate.log"))
	if err != nil {
		return figures.Result{}, err
	}
	defer output.Close()
	command := exec.Command(args[0], args[1:]...)
	command.Stdout, command.Stderr = output, output
	if err := command.Start(); err != nil {
		return figures.Result{}, err
	}
	defer func() {
		_ = command.Process.Kill()
		_ = command.Wait()
	}()
	produced, stop := context.WithCancel(ctx)
	failed := make(chan error, 1)
	go func() { failed <- produceSteadily(produced, r.stand.source.Server(), j.topic, row) }()
	latencies, err := arrivals(ctx, r.stand.target.Server(), c.topic(j))
	stop()
	if produceErr := <-failed; err == nil {
		err = produceErr
	}
	if err != nil {
		log, _ := os.ReadFile(output.Name())
		return figures.Result{}, fmt.Errorf("%w\n%s", err, log[max(0, len(log)-4000):])
	}
	var result figures.Result
	result.LatencyP50, result.LatencyP99 = figures.Percentile(latencies, 0.5), figures.Percentile(latencies, 0.99)
	result.PeakRSS, err = figures.PeakRSS(command.Process.Pid)
	return result, err
}

// produceSteadily writes a record every millisecond until ctx ends. The value
// begins with the moment at which it was written.
func produceSteadily(ctx context.Context, servers, topic string, row row) error {
	client, err := kgo.NewClient(
		kgo.SeedBrokers(strings.Split(servers, ",")...),
		kgo.RecordPartitioner(kgo.ManualPartitioner()),
		kgo.ProducerLinger(0),
	)
	if err != nil {
		return err
	}
	defer client.Close()
	records := row.Shape.Records(seed, 1000)
	ticker := time.NewTicker(time.Second / tailRate)
	defer ticker.Stop()
	for i := 0; ; i++ {
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
		template := records[i%len(records)]
		value := append([]byte{}, template.Value...)
		binary.BigEndian.PutUint64(value, uint64(time.Now().UnixNano()))
		client.Produce(context.WithoutCancel(ctx), &kgo.Record{Topic: topic, Partition: int32(i % row.Partitions), Key: template.Key, Value: value}, nil)
	}
}

// arrivals consumes a topic, which need not be there yet, and returns how many
// milliseconds each record took, once it is warm.
func arrivals(ctx context.Context, servers, topic string) ([]float64, error) {
	client, err := kgo.NewClient(
		kgo.SeedBrokers(strings.Split(servers, ",")...),
		kgo.ConsumeTopics(topic),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
		kgo.MetadataMinAge(100*time.Millisecond),
		kgo.MetadataMaxAge(time.Second),
		kgo.UnknownTopicRetries(-1),
	)
	if err != nil {
		return nil, err
	}
	defer client.Close()
	var first time.Time
	var latencies []float64
	for {
		fetches := client.PollFetches(ctx)
		if ctx.Err() != nil {
			return nil, fmt.Errorf("nothing more arrived: %w", context.Cause(ctx))
		}
		now := time.Now()
		fetches.EachRecord(func(r *kgo.Record) {
			if first.IsZero() {
				first = now
			}
			sent := time.Unix(0, int64(binary.BigEndian.Uint64(r.Value)))
			if sent.Sub(first) > tailWarmUp {
				latencies = append(latencies, now.Sub(sent).Seconds()*1000)
			}
		})
		if !first.IsZero() && now.Sub(first) > tailWarmUp+tailTime {
			if len(latencies) == 0 {
				return nil, errors.New("nothing that was sent late enough arrived")
			}
			return latencies, nil
		}
	}
}
