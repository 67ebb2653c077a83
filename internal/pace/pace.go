// Package pace has work wait: for its share of a number of bytes a second, or for
// a while.
package pace

import (
	"context"
	"sync"
	"time"
)

// credit is for how long what was not used may be made up for. Over ten seconds
// it makes at most 2.5 % more than the limit, and no burst is longer than a
// quarter of a second's worth.
const credit = 250 * time.Millisecond

// A Limiter lets a number of bytes a second pass. A nil Limiter lets everything
// pass. Safe for concurrent use; who asks first passes first.
type Limiter struct {
	rate float64 // bytes a second

	mu   sync.Mutex // guards paid
	paid time.Time  // what has passed takes until then; zero: nothing has passed
}

// New returns a limiter of a number of bytes a second. It is nil, which limits
// nothing, if that is not positive.
func New(bytesPerSecond int64) *Limiter {
	if bytesPerSecond <= 0 {
		return nil
	}
	return &Limiter{rate: float64(bytesPerSecond)}
}

// Reserve makes room for n bytes and returns for how long they have to wait at
// the time now. What does not fit into one second waits for longer: n may be
// any number. It is the whole of the arithmetic, for a caller with a clock of
// its own.
func (l *Limiter) Reserve(now time.Time, n int64) time.Duration {
	if l == nil || n <= 0 {
		return 0
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	switch earliest := now.Add(-credit); {
	case l.paid.IsZero():
		l.paid = now
	case l.paid.Before(earliest):
		l.paid = earliest
	}
	l.paid = l.paid.Add(time.Duration(float64(n) / l.rate * float64(time.Second)))
	return max(l.paid.Sub(now), 0)
}

// Wait waits until n bytes may pass, or returns the cause of ctx's end. Bytes
// that do not pass after all are not given back.
func (l *Limiter) Wait(ctx context.Context, n int64) error {
	d := l.Reserve(time.Now(), n)
	if d == 0 {
		return context.Cause(ctx)
	}
	return Pause(ctx, d)
}

// Pause returns after d, or with the cause of ctx's end.
func Pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
