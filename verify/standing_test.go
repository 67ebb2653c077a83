package verify_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"reflect"
	"strings"
	"testing"
	"time"

	"apograph/ledger"
	"apograph/verify"
)

// standing has a copier answer with a stop of t-0; mark has a number for each time
// that it is asked.
func standing(retry time.Time, mark func(asked int) int) func(*verify.Config) {
	asked := 0
	return func(c *verify.Config) {
		c.Standing = func(context.Context) []verify.Standing {
			asked++
			return []verify.Standing{{Topic: "t", Why: "stopped, foreign writer", Retry: retry, Mark: fmt.Sprint(mark(asked))}}
		}
	}
}

func never(int) int { return 0 }

// TestStanding: what the copier has stopped is not waited for, and what stands
// behind its books is judged, unless it has moved.
func TestStanding(t *testing.T) {
	t.Parallel() // it waits more than it works
	f := newFlow(t, 1)
	f.asPair = true
	f.created("t", 1, nil)
	f.plain(f.pair.Source, "t", 0, 10)
	f.copy(nil, "t")
	f.plain(f.pair.Source, "t", 10, 10)
	f.wrote("t", 10, 2) // by the copier, when it stopped
	f.plain(f.pair.Target, "t", 700, 3)

	copier := &running{flow: f}
	report := f.verify(verify.ModeFull, copier.config(time.Hour), standing(time.Time{}, never))
	expect(t, report, verify.Faults, `
		not_copied_yet(behind) no fault t-0 source [10, 20) target [10, 10)
		unbooked no fault t-0 source [10, 12) target [10, 12)
		extra t-0 source [12, 12) target [12, 15)`)
	if copier.asked != 1 || report.Summary.SourceOffsets != 20 || !strings.Contains(report.Findings[0].Detail, "foreign writer") {
		t.Errorf("asked %d times, %+v, findings %+v", copier.asked, report.Summary, report.Findings)
	}

	copier = &running{flow: f}
	report = f.verify(verify.ModeFull, copier.config(time.Hour), standing(time.Time{}, func(asked int) int { return asked }))
	expect(t, report, verify.Inconclusive, `
		not_copied_yet(behind) no fault t-0 source [10, 20) target [10, 10)
		not_verified(moving) no fault t-0 source [10, 10) target [10, 15)`)

	copier = &running{flow: f}
	soon := time.Now().Add(time.Minute)
	f.verify(verify.ModeFull, copier.config(500*time.Millisecond), standing(soon, never))
	if copier.asked != 1 {
		t.Errorf("asked %d times, though it is tried again too late", copier.asked)
	}
	copier.step = func(asked int) {
		if asked == 3 {
			f.copy(nil, "t")
		}
	}
	f.verify(verify.ModeFull, copier.config(time.Hour), standing(soon, never))
	if copier.asked != 3 {
		t.Errorf("asked %d times, though it is tried again in time", copier.asked)
	}
}

// TestBeside: what others wrote beside the copies is told with its places, and no
// finding; what an earlier copier brought over of aborted transactions is not told.
func TestBeside(t *testing.T) {
	f := newFlow(t, 1)
	f.created("t", 1, nil)
	f.plain(f.pair.Source, "t", 0, 10)
	f.copy(nil, "t")
	f.plain(f.pair.Target, "t", 500, 10)
	foreign := func(start, end int64, cause ledger.Cause) ledger.Entry {
		return ledger.Entry{Tile: ledger.Foreign, Cause: cause, Source: ledger.Range{Start: 10, End: 10}, Target: ledger.Range{Start: start, End: end}}
	}
	f.edit(func(l *ledger.Ledger) error {
		for _, e := range []ledger.Entry{foreign(10, 12, 0), foreign(12, 13, ledger.CauseAborted), foreign(13, 14, 0), foreign(14, 15, 0),
			foreign(15, 16, ledger.CauseAborted), foreign(16, 17, 0), foreign(17, 18, ledger.CauseAborted), foreign(18, 20, 0)} {
			f.append(l, pairsOf(l, "t")[0], e)
		}
		return nil
	})
	want := []verify.Beside{{Topic: "t", Offsets: 7, First: []verify.Range{{Start: 10, End: 12}, {Start: 13, End: 15}, {Start: 16, End: 17}}}}
	for _, mode := range []verify.Mode{verify.ModeFull, verify.ModeTarget, verify.ModeBooks} {
		report := f.verify(mode)
		expect(t, report, verify.Complete, "")
		if report.Summary.Foreign != 10 || !reflect.DeepEqual(report.Beside, want) {
			t.Errorf("mode %s: %d foreign, beside the copies %+v", mode, report.Summary.Foreign, report.Beside)
		}
	}
}

// TestLiveTells: it says what is waited for, and until when.
func TestLiveTells(t *testing.T) {
	t.Parallel() // it waits more than it works
	f := newFlow(t, 1)
	f.created("t", 1, nil)
	f.plain(f.pair.Source, "t", 0, 10)
	f.copy(nil, "t")
	f.plain(f.pair.Source, "t", 10, 5)
	f.created("u", 2, nil)
	f.plain(f.pair.Source, "u", 0, 5)
	f.edit(func(l *ledger.Ledger) error { return l.SetScope(ledger.Scope{Topics: []string{".*"}}) })
	copier := &running{flow: f, lock: 3}
	copier.step = func(asked int) {
		if asked == 6 {
			f.copy(nil, "t", "u")
		}
	}
	var log bytes.Buffer
	waiting := map[string]bool{}
	f.verify(verify.ModeFull, copier.config(time.Hour), func(c *verify.Config) {
		c.Logger = slog.New(slog.NewTextHandler(&log, nil))
		c.Progress = func(p verify.Progress) { waiting[p.Waiting] = true }
	})
	until := `UTC" for="t-0`
	for _, want := range []string{"waiting for the ledger", "waiting for the copier", until, "t-0 (5 offsets behind), u (the copier has not begun it)"} {
		if strings.Count(log.String(), want) == 0 {
			t.Errorf("the log does not say %q:\n%s", want, log.String())
		}
	}
	if n := strings.Count(log.String(), "waiting for"); n != 2 {
		t.Errorf("the log says %d times what is waited for:\n%s", n, log.String())
	}
	if len(waiting) < 3 || !waiting[""] {
		t.Errorf("the progress says %v", waiting)
	}
}
