package groups

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"

	"apograph/internal/pace"
)

const (
	firstPause = 100 * time.Millisecond // doubled with every attempt
	lastPause  = time.Second
)

// patiently asks about ids, and asks again about those whose answer was "not
// now", or for which there was none, until patience is at its end. The client
// itself does not ask again where a coordinator has died, and not where the
// cluster has yet to make its offsets topic, as the first use of a coordinator
// has it do (COORDINATOR_NOT_AVAILABLE).
func patiently(ctx context.Context, patience time.Duration, ids []string, ask func(ids []string), answer func(id string) error) {
	deadline := time.Now().Add(patience)
	for wait := firstPause; len(ids) > 0; wait = min(2*wait, lastPause) {
		ask(ids)
		var left []string
		for _, id := range ids {
			if isTransient(answer(id)) {
				left = append(left, id)
			}
		}
		if len(left) == 0 || !time.Now().Add(wait).Before(deadline) || pace.Pause(ctx, wait) != nil {
			return
		}
		ids = left
	}
}

// isTransient reports whether an answer says "not now", or is none.
func isTransient(err error) bool {
	var code *kerr.Error
	if errors.As(err, &code) {
		return code.Retriable
	}
	return err != nil
}

// inParallel calls do with 0 to n-1, atOnce at a time, and returns when all
// calls have.
func inParallel(n, atOnce int, do func(i int)) {
	var wait sync.WaitGroup
	slots := make(chan struct{}, atOnce)
	for i := range n {
		slots <- struct{}{}
		wait.Go(func() {
			defer func() { <-slots }()
			do(i)
		})
	}
	wait.Wait()
}
