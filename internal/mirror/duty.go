package mirror

import (
	"context"
	"log/slog"
	"time"

	"apograph/internal/pace"
)

// Pauses after a duty that has failed; they double each time.
const (
	firstPause = time.Second
	lastPause  = time.Minute
)

// never is when a duty is done again that is done once and for all.
const never = 1<<63 - 1

// A duty is done again and again, by one goroutine.
type duty struct {
	name  string                          // in logs and answers
	first time.Duration                   // before it is done for the first time
	every time.Duration                   // and then after it was done
	do    func(ctx context.Context) error // does what is due
	once  func(ctx context.Context) error // does all there is to do, at the end of a copy that has one; nil: do does
	lives bool                            // it is done only as long as a copy goes on

	logger *slog.Logger
	failed string        // what it failed with last; "" it did not
	pause  time.Duration // before it is tried again
}

// run does the duty until ctx ends.
func (d *duty) run(ctx context.Context) {
	for next := d.first; pace.Pause(ctx, next) == nil; {
		err := d.do(ctx)
		if ctx.Err() != nil {
			return // what fails now fails because of that
		}
		next = d.note(err)
	}
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
	return max(d.pause, d.every)
}
