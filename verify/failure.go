package verify

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"apograph/internal/pace"
)

const (
	// tries is how often in a row a partition may fail before it counts as
	// unreadable: what is broken on the disk fails every time.
	tries      = 3
	retryPause = 100 * time.Millisecond
)

// A readError says why the rest of a partition could not be read.
type readError struct {
	reason Reason // Unreadable or Moving
	offset int64  // from here on
	err    error
}

func (e *readError) Error() string { return fmt.Sprintf("at offset %d: %v", e.offset, e.err) }
func (e *readError) Unwrap() error { return e.err }

// unreadable ends the reading.
func (r *reading) unreadable(reason Reason, err error) error {
	return &readError{reason: reason, offset: r.position, err: err}
}

// failed deals with an error that the consumer reports of the partition.
func (r *reading) failed(ctx context.Context, err error) error {
	var cut *kgo.ErrDataLoss
	var huge *kgo.ErrDecompressTooLarge
	switch {
	case errors.Is(err, kerr.OffsetOutOfRange):
		return r.outOfRange(ctx)
	case errors.As(err, &cut):
		return r.unreadable(Moving, err)
	case errors.As(err, &huge),
		errors.Is(err, kerr.TopicAuthorizationFailed),
		errors.Is(err, kerr.UnknownTopicID), // deleted, or created again, while it was read
		errors.Is(err, kgo.ErrClientClosed):
		return r.unreadable(Unreadable, err)
	}
	return r.retry(ctx, err)
}

// retry begins anew at the position, unless that has failed too often.
func (r *reading) retry(ctx context.Context, err error) error {
	r.failures++
	if r.failures >= tries {
		return r.giveUp(ctx, err)
	}
	r.again()
	return pace.Pause(ctx, retryPause)
}

// giveUp ends the reading, with an error that is not the partition's own if the
// whole cluster is gone.
func (r *reading) giveUp(ctx context.Context, err error) error {
	if gone := r.round.reader.site.unreachable(ctx); gone != nil && ctx.Err() == nil {
		return &outage{r.round.reader.site.name, gone}
	}
	return r.unreadable(Unreadable, err)
}

// outOfRange goes on at the log start if that has moved past the position.
func (r *reading) outOfRange(ctx context.Context) error {
	b := r.round.reader.site.bounds(ctx, []topicPartition{r.topicPartition})[r.topicPartition]
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case b.err != nil:
		return r.giveUp(ctx, b.err)
	case b.start > r.position:
		r.start = max(r.start, b.start)
		err := r.skip(ctx, b.start)
		if err == nil && r.position < r.to {
			r.again()
		}
		return err
	case b.end < r.to:
		return r.unreadable(Moving, fmt.Errorf("the log ends at offset %d now", b.end))
	default:
		return r.retry(ctx, kerr.OffsetOutOfRange)
	}
}
