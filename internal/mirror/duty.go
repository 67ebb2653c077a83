package mirror

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"apograph/internal/pace"
)

// Pauses after a duty that has failed; they double each time.
const (
	firstPause = time.Second
	lastPause  = time.Minute
)

// Names of duties.
const (
	OffsetSyncsDuty = "offset_syncs"
	CheckpointsDuty = "checkpoints"
	GroupSyncDuty   = "group_sync"
	HeartbeatsDuty  = "heartbeats"
)

// never is when a duty is done again that is done once and for all.
const never = 1<<63 - 1

// A duty is done again and again, by one goroutine.
type duty struct {
	name  string                          // in logs and answers
	pair  string                          // of the clusters that heartbeats are about, such as A->B; else ""
	first time.Duration                   // before it is done for the first time
	every time.Duration                   // and then after it was done
	do    func(ctx context.Context) error // does what is due
	once  func(ctx context.Context) error // does all there is to do, at the end of a copy that has one; nil: do does
	lives bool                            // it is done only as long as a copy goes on

	logger *slog.Logger
	now    func() time.Time
	failed string        // what it failed with last; "" it did not
	pause  time.Duration // before it is tried again

	mu     sync.Mutex // guards status
	status DutyStatus
}

// A DutyStatus says how a duty fares. Times are zero where there is none.
type DutyStatus struct {
	Duty string // such as offset_syncs
	Pair string // of the clusters that heartbeats are about, such as A->B; else ""

	LastDone time.Time     // when it was last done to the end, without an error
	Took     time.Duration // it, or the try that failed since; negative: neither has been

	// Failing is why the last try failed; "" if it did not, or there was none. Since
	// is when the first did of those in a row, NextRetry when the next one is due.
	Failing          string
	Since, NextRetry time.Time
}

// run does the duty until ctx ends.
func (d *duty) run(ctx context.Context) {
	for next := d.first; pace.Pause(ctx, next) == nil; {
		err := d.try(ctx, d.do)
		if ctx.Err() != nil {
			return // what fails now fails because of that
		}
		next = d.note(err)
	}
}

// try does the duty, or what else stands for it, and keeps how it went.
func (d *duty) try(ctx context.Context, do func(context.Context) error) error {
	began := d.now()
	err := do(ctx)
	if ctx.Err() != nil {
		return err
	}
	ended := d.now()
	d.mu.Lock()
	defer d.mu.Unlock()
	s := &d.status
	s.Took = ended.Sub(began)
	switch {
	case err == nil:
		s.LastDone, s.Failing, s.Since, s.NextRetry = ended, "", time.Time{}, time.Time{}
	case s.Failing == "":
		s.Since = ended
		fallthrough
	default:
		s.Failing = err.Error()
	}
	return err
}

// note says what has changed, and returns when the duty is due again.
func (d *duty) note(err error) time.Duration {
	if err == nil {
		if d.failed != "" {
			d.logger.Info("the duty is done again")
		}
		d.failed, d.pause = "", 0
		return d.every
	}
	if text := err.Error(); text != d.failed {
		d.failed = text
		d.logger.Warn("the duty is not done; it will be tried again", "error", err)
	}
	d.pause = min(max(2*d.pause, firstPause), lastPause)
	next := max(d.pause, d.every)
	d.mu.Lock()
	defer d.mu.Unlock()
	d.status.NextRetry = d.now().Add(next)
	return next
}
