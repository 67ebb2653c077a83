package verify

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/twmb/franz-go/pkg/kgo"

	"apograph/internal/connect"
)

const (
	// smallExtent is up to how many offsets a side may have for its partition
	// to be read together with others.
	smallExtent = 1024

	// maxGroup is how many partitions are read together.
	maxGroup = 64
)

// A queue holds the jobs that nobody has begun.
type queue struct {
	workers int
	until   Until

	mu   sync.Mutex // guards jobs
	jobs []*job
}

// next returns jobs for one round: one, or several of which there is little to
// read. There are none left if it is empty.
func (q *queue) next() []*job {
	q.mu.Lock()
	defer q.mu.Unlock()
	share := min(len(q.jobs)/q.workers, maxGroup)
	n := min(len(q.jobs), 1)
	for n > 0 && n < share && q.jobs[n-1].small(q.until) && q.jobs[n].small(q.until) {
		n++
	}
	group := q.jobs[:n:n]
	q.jobs = q.jobs[n:]
	return group
}

func (j *job) small(until Until) bool {
	source, target := j.extents(until)
	return source.len() <= smallExtent && target.len() <= smallExtent
}

// A worker does one group of jobs after the other, with one consumer for each
// side.
type worker struct {
	run            *run
	source, target *logReader // nil: not made yet
}

func (w *worker) close() {
	for _, r := range []*logReader{w.source, w.target} {
		if r != nil {
			r.client.Close()
		}
	}
}

// do does a group of jobs. If a cluster goes away meanwhile the partition that
// was read, and everything that is still to be done, counts as unreadable.
func (w *worker) do(ctx context.Context, group []*job) error {
	stop, err := w.begin(ctx, group)
	defer stop()
	if err != nil {
		return err
	}
	for _, j := range group {
		if err := w.one(ctx, j); err != nil {
			return fmt.Errorf("verify %s-%d: %w", j.findings.topic, j.findings.partition, err)
		}
		w.run.finished(j)
	}
	return nil
}

func (w *worker) one(ctx context.Context, j *job) error {
	lost := w.run.lost(nil)
	if lost == nil {
		fresh := *j
		fresh.findings.faults, fresh.findings.others = slices.Clone(j.findings.faults), slices.Clone(j.findings.others)
		err := w.attempt(ctx, j, nil)
		var gone *connect.UnreachableError
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if !errors.As(err, &gone) {
			return err
		}
		*j = fresh
		lost = w.run.lost(gone)
	}
	return w.attempt(ctx, j, lost)
}

// begin starts to read both sides of a group. The caller calls stop in any case.
func (w *worker) begin(ctx context.Context, group []*job) (stop func(), err error) {
	var source, target *round
	stop = func() {
		source.close()
		target.close()
	}
	for _, j := range group {
		if err := j.survey(); err != nil {
			return stop, err
		}
	}
	if w.run.lost(nil) != nil {
		return stop, nil
	}
	if err := w.readers(); err != nil {
		return stop, err
	}
	var from, to []portion
	var fromJobs, toJobs []*job
	for _, j := range group {
		s, t := j.portions(w.run.config.Until)
		if s != nil {
			from, fromJobs = append(from, *s), append(fromJobs, j)
		}
		if t != nil {
			to, toJobs = append(to, *t), append(toJobs, j)
		}
	}
	if len(from) > 0 {
		source = w.source.read(ctx, from...)
		for i, j := range fromJobs {
			j.source.stream = source.streams[i]
		}
	}
	if len(to) > 0 {
		target = w.target.read(ctx, to...)
		for i, j := range toJobs {
			j.target.stream = target.streams[i]
		}
	}
	return stop, nil
}

// readers makes the consumers of the sides that are read.
func (w *worker) readers() (err error) {
	if w.run.target != nil && w.target == nil {
		if w.target, err = w.run.target.reader(kgo.ReadUncommitted(), &w.run.meter); err != nil {
			return err
		}
	}
	if w.run.source != nil && w.source == nil {
		w.source, err = w.run.source.reader(kgo.ReadCommitted(), &w.run.meter)
	}
	return err
}
