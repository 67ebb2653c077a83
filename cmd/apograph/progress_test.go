package main

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"apograph/replicate"
)

// TestBar: where there is an end, a bar says how far it is, and nothing is wider
// than the terminal. The bar is as it was one interval ago.
func TestBar(t *testing.T) {
	for _, columns := range []int{40, 80, 200} {
		var stderr lockedBuffer
		synctest.Test(t, func(t *testing.T) {
			started := time.Now()
			state := func() progressState {
				return progressState{line: "copying \x1b[2J " + strings.Repeat("long ", 50), done: int64(time.Since(started) / time.Second), total: 8}
			}
			f := newFrame(testTable(func(ctx context.Context, inv *invocation) error {
				return inv.withBar(ctx, state, func(ctx context.Context) error {
					waitFor(ctx, 20*time.Second)
					return nil
				})
			}), strings.NewReader(""), &bytes.Buffer{}, &stderr)
			f.stderr.live, f.stderr.columns = true, columns
			f.run(t.Context(), []string{"apograph", "end"})
		})
		got := stderr.String()
		screen, widest := screenOf(got)
		if !equalLines(screen, []string{""}) || widest >= columns || strings.ContainsRune(got, '\x1b') {
			t.Errorf("%d columns: widest %d, at the end %q", columns, widest, screen)
		}
		length := max(columns/4, 10) - 2
		length = min(length, 28)
		for _, quarters := range []int{1, 2, 3} {
			want := fmt.Sprintf("%d%% [%s.", 25*quarters, strings.Repeat("#", length*quarters/4))
			if !strings.Contains(got, want) {
				t.Errorf("%d columns: %q is never shown", columns, want)
			}
		}
		if !strings.Contains(got, `100% [`+strings.Repeat("#", length-1)) || !strings.Contains(got, `copying \x1b`) {
			t.Errorf("%d columns: the end of the work is never shown", columns)
		}
	}
}

// TestCopyProgress: rates are those of the last ten seconds.
func TestCopyProgress(t *testing.T) {
	start := time.UnixMilli(0)
	at := func(once bool, moments ...replicate.Progress) progressState {
		c := &copyProgress{once: once}
		for i, p := range moments {
			c.note(start.Add(time.Duration(i)*time.Second), p)
		}
		return c.state()
	}
	var long []replicate.Progress
	for i := range 100 {
		p := replicate.Progress{Partitions: 4, Finished: 1, Copied: 1000, Bytes: 4096_000, Remaining: 7}
		if i >= 50 {
			p.Copied, p.Bytes = p.Copied+int64(i-49)*10, p.Bytes+int64(i-49)*2048
		}
		long = append(long, p)
	}
	for want, got := range map[string]progressState{
		"connecting": at(false),
		"2 partitions, 5 records copied (10 B), 3 offsets behind, 0 records/s (0 B/s)":                       at(false, replicate.Progress{Partitions: 2, Copied: 5, Bytes: 10, Remaining: 3}),
		"4 partitions, 1500 records copied (4.0 MiB), 7 offsets behind, 1 stopped, 10 records/s (2.0 KiB/s)": at(false, long...),
		"1 of 4 partitions done, 1500 records copied (4.0 MiB), 7 offsets to go, 10 records/s (2.0 KiB/s)":   at(true, long...),
	} {
		if got.line != want {
			t.Errorf("progress %q, want %q", got.line, want)
		}
	}
	if s := at(true, long...); s.done != 1500 || s.total != 1507 {
		t.Errorf("state %+v", s)
	}
	if s := at(false, long...); s.total != 0 {
		t.Errorf("state %+v: there is no end", s)
	}
}
