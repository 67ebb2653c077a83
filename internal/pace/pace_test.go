package pace_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"apograph/internal/pace"
)

// A passage is a number of bytes and when they passed.
type passage struct {
	at time.Time
	n  int64
}

// most returns the most bytes that passed within a stretch of a length that
// begins with a passage; of those, it looks at every step-th.
func most(passages []passage, length time.Duration, step int) int64 {
	best := int64(0)
	for i := 0; i < len(passages); i += step {
		sum := int64(0)
		for _, p := range passages[i:] {
			if p.at.Sub(passages[i].at) >= length {
				break
			}
			sum += p.n
		}
		best = max(best, sum)
	}
	return best
}

// TestRate: whoever always has something to pass gets the limit within 5 % over
// ten seconds, whatever the size of the pieces and whether it pauses in
// between, and never more than a second's worth in a second and a piece.
func TestRate(t *testing.T) {
	const rate = 1 << 20
	for seed := range uint64(20) {
		rng := rand.New(rand.NewPCG(seed, 7))
		l := pace.New(rate)
		now := time.Unix(1_700_000_000, 0)
		start := now
		piece := int64(1) << (4 + rng.IntN(14)) // 16 bytes to 128 KiB
		var passages []passage
		total, paused := int64(0), start
		for now.Sub(start) < 30*time.Second {
			if now.Sub(paused) > 400*time.Millisecond { // works on something else, for less than the credit
				now = now.Add(time.Duration(rng.IntN(200)) * time.Millisecond)
				paused = now
			}
			n := 1 + rng.Int64N(piece)
			if piece < 1<<10 {
				n *= 64
			}
			now = now.Add(l.Reserve(now, n))
			passages = append(passages, passage{now, n})
			total += n
		}
		elapsed := now.Sub(start).Seconds()
		if got := float64(total) / elapsed; got > rate*1.05 || got < rate*0.95 {
			t.Errorf("seed %d: %.0f bytes a second, want %d within 5 %%", seed, got, rate)
		}
		if got := most(passages, 10*time.Second, 500); float64(got) > 10*rate*1.05 {
			t.Errorf("seed %d: %d bytes in ten seconds, want at most %d and 5 %%", seed, got, 10*rate)
		}
		if got := most(passages, time.Millisecond, 1); got > rate {
			t.Errorf("seed %d: %d bytes at once, want at most a second's worth", seed, got)
		}
	}
}

// TestIdle: a long pause is not made up for.
func TestIdle(t *testing.T) {
	l := pace.New(1000)
	now := time.Unix(1_700_000_000, 0)
	if d := l.Reserve(now, 1000); d != time.Second {
		t.Errorf("the first second's worth waits %v, want 1s: nothing was saved up", d)
	}
	now = now.Add(time.Hour)
	if d := l.Reserve(now, 1250); d != time.Second {
		t.Errorf("1250 bytes after an hour wait %v, want 1s: a quarter of a second is saved up", d)
	}
	if d := l.Reserve(now, 5000); d != 6*time.Second {
		t.Errorf("5000 more wait %v, want 6s", d)
	}
}

// TestWait: many goroutines together keep to the limit.
func TestWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := pace.New(1 << 20)
		start := time.Now()
		var workers sync.WaitGroup
		for range 8 {
			workers.Go(func() {
				for range 20 {
					if err := l.Wait(t.Context(), 1<<16); err != nil {
						t.Error(err)
					}
				}
			})
		}
		workers.Wait()
		if took := time.Since(start); took < 10*time.Second || took > 10*time.Second+time.Millisecond {
			t.Errorf("10 MiB at 1 MiB/s took %v", took)
		}
	})
}

func TestWaitEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		why := errors.New("enough")
		ctx, cancel := context.WithCancelCause(t.Context())
		time.AfterFunc(time.Second, func() { cancel(why) })
		if err := pace.New(1).Wait(ctx, 1000); !errors.Is(err, why) {
			t.Errorf("error is %v, want %v", err, why)
		}
		if err := pace.New(1<<40).Wait(ctx, 0); !errors.Is(err, why) {
			t.Errorf("error with nothing to wait for is %v, want %v", err, why)
		}
	})
}

func TestNoLimit(t *testing.T) {
	for _, rate := range []int64{0, -1} {
		l := pace.New(rate)
		if d := l.Reserve(time.Unix(0, 0), 1<<60); d != 0 {
			t.Errorf("without a limit it waits %v", d)
		}
		if err := l.Wait(t.Context(), 1<<60); err != nil {
			t.Error(err)
		}
	}
}
