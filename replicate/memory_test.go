package replicate

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"apograph/internal/pace"
)

// TestBudgetIsFair has more loops than there is room for, each of which asks
// again as soon as it has given back: they take turns.
func TestBudgetIsFair(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const loops, turns = 5, 20
		b := newBudget(2 * tailReserve)
		ctx, cancel := context.WithCancel(t.Context())
		var group sync.WaitGroup
		var had [loops]int
		for i := range loops {
			group.Go(func() {
				_ = pace.Pause(ctx, time.Duration(i)*time.Millisecond) // no two give back at one moment: which is first would be chance
				for ctx.Err() == nil && b.reserve(ctx, tailReserve) == nil {
					had[i]++
					_ = pace.Pause(ctx, tailWait)
					b.adjust(-tailReserve)
				}
			})
		}
		_ = pace.Pause(t.Context(), turns*tailWait*loops/2+loops*time.Millisecond)
		cancel()
		group.Wait()
		for i, n := range had {
			if n < turns-1 || n > turns+2 {
				t.Errorf("loop %d had %d turns, about %d are its share: %v", i, n, turns, had)
			}
		}
		if b.used != 0 {
			t.Errorf("%d bytes are held by nobody", b.used)
		}
	})
}
