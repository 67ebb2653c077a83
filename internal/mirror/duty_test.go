package mirror

import (
	"context"
	"errors"
	"log/slog"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// TestDutyStatus: it is known when a duty was last done and how long that took; of
// one that fails also why, since when, and when it is tried again.
func TestDutyStatus(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		at := func(seconds int) time.Time { return began.Add(time.Duration(seconds) * time.Second) }
		var failure atomic.Pointer[error]
		fail := func(err error) { failure.Store(&err) }
		fail(nil)
		m := &Mirror{config: Config{Now: time.Now, Logger: slog.New(slog.DiscardHandler)}}
		m.add(&duty{name: "slow", pair: "A->B", every: 10 * time.Second, do: func(context.Context) error {
			time.Sleep(3 * time.Second)
			return *failure.Load()
		}})
		expect := func(want DutyStatus) {
			t.Helper()
			want.Duty, want.Pair = "slow", "A->B"
			if got := m.Duties(); len(got) != 1 || got[0] != want {
				t.Errorf("after %v: %+v, want %+v", time.Since(began), got, want)
			}
		}
		expect(DutyStatus{Took: -1})
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() { defer close(ended); m.Run(ctx) }()
		<-time.After(5 * time.Second) // the first round was from 0 to 3
		expect(DutyStatus{LastDone: at(3), Took: 3 * time.Second})
		fail(errors.New("no coordinator"))
		<-time.After(15 * time.Second) // from 13 to 16
		expect(DutyStatus{LastDone: at(3), Took: 3 * time.Second, Failing: "no coordinator", Since: at(16), NextRetry: at(26)})
		fail(errors.New("no broker"))
		<-time.After(10 * time.Second) // from 26 to 29
		expect(DutyStatus{LastDone: at(3), Took: 3 * time.Second, Failing: "no broker", Since: at(16), NextRetry: at(39)})
		fail(nil)
		<-time.After(13 * time.Second) // from 39 to 42
		expect(DutyStatus{LastDone: at(42), Took: 3 * time.Second})
		<-time.After(10 * time.Second) // in the round from 52 on
		fail(context.Canceled)
		cancel()
		<-ended
		expect(DutyStatus{LastDone: at(42), Took: 3 * time.Second}) // it was ended, and did not fail
	})
}

// TestDutyStatusAtTheEnd: what is done once is known too.
func TestDutyStatusAtTheEnd(t *testing.T) {
	now := time.UnixMilli(1_700_000_000_000)
	m := &Mirror{config: Config{Now: func() time.Time { now = now.Add(time.Second); return now }}}
	m.add(&duty{name: "last", logger: slog.New(slog.DiscardHandler), once: func(context.Context) error { return errors.New("refused") }})
	if failed := m.Once(t.Context()); len(failed) != 1 {
		t.Fatalf("%v", failed)
	}
	if got := m.Duties()[0]; got != (DutyStatus{Duty: "last", Took: time.Second, Failing: "refused", Since: now}) {
		t.Errorf("%+v", got)
	}
}
