package verify_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"apograph/internal/kafkatest"
	"apograph/ledger"
	"apograph/verify"
)

// TestAwait: the pauses grow, and waiting ends in time.
func TestAwait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start, asked := time.Now(), []time.Duration{}
		err := verify.Await(t.Context(), 20*time.Second, func() (bool, error) {
			asked = append(asked, time.Since(start))
			return false, nil
		})
		if took := time.Since(start); err != nil || took != 20*time.Second {
			t.Errorf("it took %v, error %v", took, err)
		}
		for i := range asked[1:] {
			if gap := asked[i+1] - asked[i]; gap > 5*time.Second || i > 0 && i < 5 && gap != 2*(asked[i]-asked[i-1]) {
				t.Errorf("asked at %v", asked)
			}
		}
		if len(asked) < 8 || len(asked) > 12 {
			t.Errorf("asked at %v", asked)
		}

		n := 0
		err = verify.Await(t.Context(), time.Hour, func() (bool, error) { n++; return n == 3, nil })
		if err != nil || n != 3 {
			t.Errorf("asked %d times, error %v", n, err)
		}
		err = verify.Await(t.Context(), -time.Second, func() (bool, error) { n++; return false, nil })
		if err != nil || n != 4 {
			t.Errorf("without waiting: asked %d times in all, error %v", n, err)
		}
		why := errors.New("enough")
		ctx, cancel := context.WithCancelCause(t.Context())
		time.AfterFunc(time.Second, func() { cancel(why) })
		if err := verify.Await(ctx, time.Hour, func() (bool, error) { return false, nil }); !errors.Is(err, why) {
			t.Errorf("error is %v", err)
		}
	})
}

// A running is a copier that answers with copies of its ledger: in each answer it
// has copied something more.
type running struct {
	*flow
	asked int
	step  func(asked int) // before the answer
	ended int             // answer from which on no copier is at work
	lock  int             // answers before this one: the ledger is in use
}

func (r *running) books(context.Context) (verify.Copy, error) {
	r.asked++
	if r.asked < r.lock {
		return verify.Copy{}, &ledger.LockedError{Path: r.path, PID: os.Getpid()}
	}
	if r.step != nil {
		r.step(r.asked)
	}
	l, err := ledger.OpenCopy(r.path, ledger.Options{})
	return verify.Copy{Ledger: l, Live: r.ended == 0 || r.asked < r.ended}, err
}

func (r *running) config(wait time.Duration) func(*verify.Config) {
	return func(c *verify.Config) { c.Books, c.Wait = r.books, wait }
}

// TestLive: while a copier is at work its books are waited for, up to the end
// that the source had at the beginning.
func TestLive(t *testing.T) {
	t.Parallel() // it waits more than it works
	f := newFlow(t, 1)
	f.created("t", 1, nil)
	f.plain(f.pair.Source, "t", 0, 10)
	f.copy(nil, "t")
	f.plain(f.pair.Source, "t", 10, 10)
	copier := &running{flow: f}
	copier.step = func(asked int) {
		switch asked {
		case 3: // it reaches the end of then, while the source goes on
			f.copy(nil, "t")
			f.plain(f.pair.Source, "t", 20, 5)
			f.plain(f.pair.Target, "t", 20, 4) // and is writing
		}
	}
	report := f.verify(verify.ModeFull, copier.config(time.Minute))
	expect(t, report, verify.Complete, `not_verified(moving) no fault t-0 source [20, 20) target [20, 24)`)
	s := &report.Summary
	if copier.asked != 3 || s.SourceOffsets != 20 || s.Equal != 20 || s.NotCopiedYet != 0 {
		t.Errorf("asked %d times, counts %+v", copier.asked, *s)
	}
	// Damage is found all the same, also where the log goes on behind the books.
	for _, offset := range []int64{0, 12, 19} {
		spoiled := newSaboteurAt(f, "t")
		_, err := f.pair.Target.Sabotage(kafkatest.Sabotage{Damage: kafkatest.Drop, Topic: "t", Offset: offset, Shift: true})
		f.must(err)
		report = f.verify(verify.ModeFull, (&running{flow: f}).config(-1))
		if report.Verdict != verify.Faults || report.Summary.Missing != 1 || report.Summary.Equal != 19 || report.Findings[0].Source.Start != offset {
			t.Errorf("offset %d: verdict %s, %+v, findings\n%s", offset, report.Verdict, report.Summary, findings(report))
		}
		f.must(f.pair.Target.EditLog("t", 0, spoiled))
	}
}

// newSaboteurAt returns what restores the target's log as it is now.
func newSaboteurAt(f *flow, topic string) func(*kafkatest.Log) error {
	var then kafkatest.Log
	f.must(f.pair.Target.EditLog(topic, 0, func(l *kafkatest.Log) error {
		then = *l
		then.Batches = nil
		for _, b := range l.Batches {
			then.Batches = append(then.Batches, append([]byte{}, b...))
		}
		return nil
	}))
	return func(l *kafkatest.Log) error {
		l.Batches, l.End = then.Batches, then.End
		return nil
	}
}

// TestLiveBehind: books that do not get there in time are behind, and what stands
// behind them is not judged.
func TestLiveBehind(t *testing.T) {
	t.Parallel() // it waits more than it works
	f := newFlow(t, 1)
	f.created("t", 1, nil)
	f.plain(f.pair.Source, "t", 0, 10)
	f.copy(nil, "t")
	f.plain(f.pair.Source, "t", 10, 10)
	f.plain(f.pair.Target, "t", 700, 3)
	copier := &running{flow: f}
	report := f.verify(verify.ModeFull, copier.config(time.Second))
	expect(t, report, verify.Inconclusive, `
		not_copied_yet(behind) no fault t-0 source [10, 20) target [10, 10)
		not_verified(moving) no fault t-0 source [10, 10) target [10, 13)`)
	if copier.asked < 3 || report.Summary.Equal != 10 {
		t.Errorf("asked %d times, %+v", copier.asked, report.Summary)
	}
	// To the end of the books there is nothing to wait for.
	copier = &running{flow: f}
	report = f.verify(verify.ModeFull, copier.config(time.Hour), func(c *verify.Config) { c.Until = verify.UntilBook })
	expect(t, report, verify.Complete, "")
	if copier.asked != 1 || report.Summary.AfterBook != 3 {
		t.Errorf("asked %d times, %+v", copier.asked, report.Summary)
	}
	// A copier that ended has left what stands behind the books.
	copier = &running{flow: f, ended: 2}
	report = f.verify(verify.ModeFull, copier.config(time.Hour))
	expect(t, report, verify.Faults, `
		extra t-0 source [10, 10) target [10, 13)
		not_copied_yet(behind) no fault t-0 source [10, 20) target [10, 10)`)
	if copier.asked != 2 {
		t.Errorf("asked %d times", copier.asked)
	}
}

// TestLiveTargetAlone: without the source the end is the one that the copier has
// seen when verification began.
func TestLiveTargetAlone(t *testing.T) {
	t.Parallel() // it waits more than it works
	f := newFlow(t, 1)
	f.created("t", 1, nil)
	f.plain(f.pair.Source, "t", 0, 10)
	f.copy(nil, "t")
	f.plain(f.pair.Source, "t", 10, 10)
	f.edit(func(l *ledger.Ledger) error { return seen(l, pairsOf(l, "t")[0], 20) })
	copier := &running{flow: f}
	copier.step = func(asked int) {
		if asked == 2 {
			f.copy(nil, "t")
			f.plain(f.pair.Source, "t", 20, 10)
			f.edit(func(l *ledger.Ledger) error { return seen(l, pairsOf(l, "t")[0], 30) })
		}
	}
	report := f.verify(verify.ModeTarget, copier.config(time.Hour))
	expect(t, report, verify.Complete, "")
	if copier.asked != 2 || report.Summary.SourceOffsets != 20 || report.Scope.SourceEndSeenAt.UnixMilli() != 1_700_000_000_000 {
		t.Errorf("asked %d times, %+v, seen at %v", copier.asked, report.Summary, report.Scope.SourceEndSeenAt)
	}
}

// TestLedgerInUse: a ledger of which there is no copy is waited for.
func TestLedgerInUse(t *testing.T) {
	t.Parallel() // it waits more than it works
	f := newFlow(t, 1)
	f.created("t", 1, nil)
	f.plain(f.pair.Source, "t", 0, 10)
	f.copy(nil, "t")
	copier := &running{flow: f, lock: 4, ended: 1}
	expect(t, f.verify(verify.ModeFull, copier.config(time.Hour)), verify.Complete, "")
	copier = &running{flow: f, lock: 100}
	config := verify.Config{LedgerPath: f.path, Source: cluster(f.source), Target: cluster(f.target), Books: copier.books, Wait: 500 * time.Millisecond}
	report, err := verify.Run(f.ctx, config)
	var locked *ledger.LockedError
	if report != nil || !errors.As(err, &locked) || copier.asked < 3 {
		t.Errorf("report %v, error %v after %d questions", report, err, copier.asked)
	}
	if left, _ := filepath.Glob(filepath.Join(os.TempDir(), "apograph-ledger-*")); len(left) > 50 {
		t.Errorf("%d private copies are left behind", len(left))
	}
}

// TestLiveNewTopic: a topic that has no book yet, and gets one while it is waited
// for.
func TestLiveNewTopic(t *testing.T) {
	t.Parallel() // it waits more than it works
	f := newFlow(t, 1)
	f.created("t", 1, nil)
	f.plain(f.pair.Source, "t", 0, 10)
	f.copy(nil, "t")
	f.created("u", 1, nil)
	f.plain(f.pair.Source, "u", 0, 5)
	f.edit(func(l *ledger.Ledger) error { return l.SetScope(ledger.Scope{Topics: []string{".*"}}) })
	copier := &running{flow: f}
	copier.step = func(asked int) {
		if asked == 2 {
			f.copy(nil, "u")
		}
	}
	report := f.verify(verify.ModeFull, copier.config(time.Hour))
	expect(t, report, verify.Complete, "")
	if copier.asked != 2 || report.Summary.Equal != 15 {
		t.Errorf("asked %d times, %+v", copier.asked, report.Summary)
	}
}
