package verify

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/twmb/franz-go/pkg/kgo"
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
	for n > 0 && n < share && q.jobs[n-1].small(q.until) && q.jobs[n].small(q.until) && !q.jobs[n].beside(q.jobs[:n]) {
		n++
	}
	group := q.jobs[:n:n]
	q.jobs = q.jobs[n:]
	return group
}

// beside reports whether one of the jobs reads a partition that j reads as well:
// a consumer reads each once at a time.
func (j *job) beside(others []*job) bool {
	return slices.ContainsFunc(others, func(o *job) bool {
		return o.key() == j.key() || o.target.topicPartition == j.target.topicPartition && j.target.topic != ""
	})
}

func (j *job) small(until Until) bool {
	if j.books == nil {
		return true
	}
	whole := j.books.whole()
	source, target := j.extents(&whole, until)
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

// do does a group of jobs, a part of each at a time. If a cluster goes away
// meanwhile the part that was read, and everything that is still to be done,
// counts as unreadable.
func (w *worker) do(ctx context.Context, group []*job) error {
	for _, j := range group {
		if err := w.run.begin(j); err != nil {
			return located(j, err)
		}
	}
	for len(group) > 0 {
		left := group[:0:0]
		for _, j := range group {
			if len(j.parts) > 0 {
				left = append(left, j)
				continue
			}
			if err := j.close(); err != nil {
				return located(j, err)
			}
			w.run.finished(j)
		}
		group = left
		if len(group) == 0 {
			break
		}
		if err := w.round(ctx, group); err != nil {
			return err
		}
	}
	return nil
}

func located(j *job, err error) error {
	return fmt.Errorf("verify %s-%d: %w", j.findings.topic, j.findings.partition, err)
}

// round compares the next part of each job.
func (w *worker) round(ctx context.Context, group []*job) error {
	stop, err := w.begin(ctx, group)
	defer stop()
	if err != nil {
		return err
	}
	for _, j := range group {
		if len(j.parts) == 0 {
			continue // there were no bytes left for it
		}
		p := j.parts[0]
		j.parts = j.parts[1:]
		if err := w.one(ctx, j, p); err != nil {
			return located(j, err)
		}
	}
	return nil
}

// one compares a part, or abandons it if a cluster has gone away.
func (w *worker) one(ctx context.Context, j *job, p part) error {
	lost := w.run.lost(nil)
	if lost == nil {
		found, err := w.compare(ctx, j, p)
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err == nil {
			j.take(found)
			return w.run.keep(j, found)
		}
		if !errors.As(err, &lost) {
			return err
		}
		lost = w.run.lost(lost)
	}
	return j.abandon(&p, lost, w.run.config.Until)
}

// begin starts to read both sides of the next part of each job of a group, as
// far as bytes are left. The caller calls stop in any case.
func (w *worker) begin(ctx context.Context, group []*job) (stop func(), err error) {
	var source, target *round
	stop = func() {
		source.close()
		target.close()
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
		if err := w.run.afford(j); err != nil {
			return stop, located(j, err)
		}
		if len(j.parts) == 0 {
			continue
		}
		s, t := j.portions(&j.parts[0], w.run.config.Until)
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
		if w.target, err = w.run.reader(w.run.target, kgo.ReadUncommitted()); err != nil {
			return err
		}
	}
	if w.run.source != nil && w.source == nil {
		w.source, err = w.run.reader(w.run.source, kgo.ReadCommitted())
	}
	return err
}
