//go:build kafka

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"apograph/bench/figures"
	"apograph/internal/kafkatest"
)

// copyTimeout bounds one copy.
const copyTimeout = 10 * time.Minute

// measure runs one copy. Expected is how many records will be at the target.
func measure(ctx context.Context, c candidate, j job, expected content) (figures.Result, error) {
	ctx, cancel := context.WithTimeout(ctx, copyTimeout)
	defer cancel()
	if c.command == nil {
		return figures.Result{}, fmt.Errorf("%s has no part in row %s", c.name, j.row.Name)
	}
	args, err := c.command(j)
	if err != nil {
		return figures.Result{}, err
	}
	w := watcher{candidate: c, job: j, expected: expected.records}
	samples, usage, err := w.run(ctx, args)
	if err != nil {
		return figures.Result{}, fmt.Errorf("%s: %w", c.name, err)
	}
	r := figures.ResultOf(samples, usage, expected.records, expected.payload)
	r.Row, r.Candidate, r.Warm = j.row.Name, c.name, c.jvm
	r.PeakRSS = w.peak
	return r, nil
}

// A watcher runs a candidate and looks at it again and again.
type watcher struct {
	candidate candidate
	job       job
	expected  int64

	client *kgo.Client // of the target
	peak   int64       // bytes
}

// run returns the samples of a copy, and what the process has used in all.
func (w *watcher) run(ctx context.Context, args []string) ([]figures.Sample, time.Duration, error) {
	client, err := w.job.stand.target.Client()
	if err != nil {
		return nil, 0, err
	}
	defer client.Close()
	w.client = client
	output, err := os.Create(w.job.stand.path("candidate.log"))
	if err != nil {
		return nil, 0, err
	}
	defer output.Close()
	before, err := w.look(ctx, 0)
	if err != nil {
		return nil, 0, err
	}
	command := exec.Command(args[0], args[1:]...)
	command.Stdout, command.Stderr = output, output
	if err := command.Start(); err != nil {
		return nil, 0, err
	}
	ended := make(chan error, 1)
	go func() { ended <- command.Wait() }()
	samples, err := w.watch(ctx, before, command.Process, ended)
	if err != nil {
		log, _ := os.ReadFile(output.Name())
		return nil, 0, fmt.Errorf("%w\n%s", err, log[max(0, len(log)-4000):])
	}
	used := command.ProcessState
	return samples, used.UserTime() + used.SystemTime(), nil
}

// watch samples until the process has ended, and ends one that does not end by
// itself once all has arrived.
func (w *watcher) watch(ctx context.Context, before figures.Sample, process *os.Process, ended <-chan error) ([]figures.Sample, error) {
	samples := []figures.Sample{before}
	ticker := time.NewTicker(w.job.row.sampleEvery())
	defer ticker.Stop()
	for {
		select {
		case err := <-ended:
			if err != nil {
				return nil, err
			}
			last, err := w.look(ctx, 0)
			last.Own = samples[len(samples)-1].Own
			return append(samples, last), err
		case <-ctx.Done():
			_ = process.Kill()
			<-ended
			return nil, context.Cause(ctx)
		case <-ticker.C:
		}
		s, err := w.look(ctx, process.Pid)
		if err != nil {
			_ = process.Kill()
			<-ended
			return nil, err
		}
		if s.Own == 0 && len(samples) > 1 && !w.candidate.endless {
			continue // it has just ended
		}
		samples = append(samples, s)
		if w.candidate.endless && s.Records >= w.expected {
			_ = process.Signal(syscall.SIGKILL)
			<-ended
			return samples, nil
		}
	}
}

// look takes a sample; pid 0 is no process.
func (w *watcher) look(ctx context.Context, pid int) (figures.Sample, error) {
	s := figures.Sample{At: time.Now()}
	var err error
	if pid != 0 {
		s.Own, err = figures.CPU(pid)
		if errors.Is(err, os.ErrNotExist) || errors.Is(err, syscall.ESRCH) {
			s.Own, err = 0, nil
		}
		if peak, peakErr := figures.PeakRSS(pid); peakErr == nil {
			w.peak = max(w.peak, peak)
		}
	}
	if err != nil {
		return s, err
	}
	if s.Source, err = brokerCPU(w.job.stand.source); err != nil {
		return s, err
	}
	if s.Target, err = brokerCPU(w.job.stand.target); err != nil {
		return s, err
	}
	if w.candidate.topic != nil {
		s.Records, err = recordsAt(ctx, w.client, w.candidate.topic(w.job))
	}
	return s, err
}

func brokerCPU(k *kafkatest.Kafka) (time.Duration, error) {
	pids, err := k.PIDs()
	if err != nil {
		return 0, err
	}
	var sum time.Duration
	for _, pid := range pids {
		used, err := figures.CPU(pid)
		if err != nil {
			return 0, err
		}
		sum += used
	}
	return sum, nil
}
