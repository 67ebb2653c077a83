package verify

import (
	"context"
	"errors"
	"time"

	"apograph/internal/pace"
	"apograph/ledger"
)

const (
	// firstPause and lastPause bound the pauses between two looks at the books of
	// a copier that is at work: each is twice as long as the one before.
	firstPause = 100 * time.Millisecond
	lastPause  = 5 * time.Second
)

// await calls step until it is done, with growing pauses in between. It gives up,
// without an error, once wait is over; step is called at least once.
func await(ctx context.Context, wait time.Duration, step func() (done bool, err error)) error {
	deadline := time.Now().Add(wait)
	for next := firstPause; ; next = min(2*next, lastPause) {
		done, err := step()
		left := time.Until(deadline)
		if done || err != nil || left <= 0 {
			return err
		}
		if err := pace.Pause(ctx, min(next, left)); err != nil {
			return err
		}
	}
}

// copyFile is the default of [Config.Books].
func (r *run) copyFile(context.Context) (Copy, error) {
	l, err := ledger.OpenCopy(r.config.LedgerPath, ledger.Options{LockTimeout: -1, Now: r.config.Now})
	return Copy{Ledger: l}, err
}

// openBooks gets a copy of the ledger, and waits for it while it is in use.
func (r *run) openBooks(ctx context.Context, deadline time.Time) error {
	var locked error
	wait := waiting{run: r, deadline: deadline}
	err := await(ctx, time.Until(deadline), func() (bool, error) {
		locked = r.ask(ctx)
		var held *ledger.LockedError
		if errors.As(locked, &held) {
			wait.tell("the ledger", held.Error())
			return false, nil
		}
		return true, locked
	})
	return firstError(err, locked)
}

// ask replaces the copy of the ledger by a fresh one.
func (r *run) ask(ctx context.Context) error {
	standing := r.whatStands(ctx)
	fresh, err := r.config.Books(ctx)
	if err != nil {
		return err
	}
	old := r.ledger
	r.ledger, r.live, r.standing = fresh.Ledger, fresh.Live, standing
	if old != nil {
		return old.Close()
	}
	return nil
}

// follow waits until the books of a copier that is at work reach the ends that
// the source has now, or time is over. What has stopped, and is not tried again by
// then, is not waited for.
func (r *run) follow(ctx context.Context, deadline time.Time) (err error) {
	if r.asked, err = r.askedEnds(ctx); err != nil {
		return err
	}
	wait := waiting{run: r, deadline: deadline}
	err = await(ctx, time.Until(deadline), func() (bool, error) {
		behind := r.awaited(deadline)
		if len(behind) == 0 {
			return true, nil
		}
		wait.tell("the copier to reach the source's end of now", r.awaitedText(behind))
		err := r.ask(ctx)
		var held *ledger.LockedError
		if errors.As(err, &held) {
			return false, nil // the copy that is at hand will do, if nothing better comes
		}
		return err == nil && (!r.live || len(r.awaited(deadline)) == 0), err
	})
	if !r.live { // it has ended: what it has left can be judged to the end
		r.asked, r.seenAt = nil, time.Time{}
	}
	return err
}

// askedEnds returns the ends of the source partitions in scope as they are now, of
// those that the copier will get to; without a source as it saw them last.
func (r *run) askedEnds(ctx context.Context) (map[topicPartition]int64, error) {
	ends, booked := map[topicPartition]int64{}, map[string]bool{}
	for _, pair := range r.ledger.Pairs() {
		if pair.Closed == nil && r.scope.leavesOut(pair.SourceTopic) == "" {
			booked[pair.SourceTopic] = true
			ends[topicPartition{pair.SourceTopic, pair.Partition}] = r.ledger.State(pair.ID).HighWatermark
		}
	}
	if r.source == nil {
		r.seenAt = r.oldestSight(booked)
		return ends, nil
	}
	topics, err := r.source.topics(ctx, nil)
	if err != nil {
		return nil, err
	}
	var tps []topicPartition
	for name, t := range topics {
		for p := range t.partitions {
			if t.err == nil && (booked[name] || r.scope.misses(name) && !r.scope.strange(name)) {
				tps = append(tps, topicPartition{name, p})
			}
		}
	}
	r.seenAt = r.config.Now()
	for tp, b := range r.source.bounds(ctx, tps) {
		if b.err == nil {
			ends[tp] = b.end
		}
	}
	return ends, context.Cause(ctx)
}

// oldestSight returns when the copier saw the end of one of these topics, the
// oldest time.
func (r *run) oldestSight(topics map[string]bool) (oldest time.Time) {
	for _, pair := range r.ledger.Pairs() {
		if seen := r.ledger.State(pair.ID).SeenMillis; topics[pair.SourceTopic] && pair.Closed == nil && seen >= 0 {
			if at := time.UnixMilli(seen); oldest.IsZero() || at.Before(oldest) {
				oldest = at
			}
		}
	}
	return oldest
}
