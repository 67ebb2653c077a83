package main

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// lockedBuffer is a buffer that several goroutines may write to.
type lockedBuffer struct {
	mu     sync.Mutex
	buffer bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buffer.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buffer.String()
}

// waitFor blocks for a time, or until ctx ends.
func waitFor(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

// progressOf runs a command that works for a time, shows progress, and ends with
// result. It returns what was written to standard error. live stands for a
// terminal.
func progressOf(t *testing.T, live bool, columns int, work time.Duration, result error, argv ...string) string {
	t.Helper()
	var stderr lockedBuffer
	synctest.Test(t, func(t *testing.T) {
		started := time.Now()
		end := func(ctx context.Context, inv *invocation) error {
			line := func() string { return "at " + time.Since(started).String() + " \x1b[2J of long" }
			return inv.withProgress(ctx, line, func(ctx context.Context) error {
				waitFor(ctx, work)
				return result
			})
		}
		f := newFrame(testTable(end), strings.NewReader(""), &bytes.Buffer{}, &stderr)
		f.stderr.live, f.stderr.columns = live, columns
		f.run(t.Context(), append([]string{"apograph", "end"}, argv...))
	})
	return stderr.String()
}

func TestProgressLines(t *testing.T) {
	line := func(at string) string { return `apograph: at ` + at + ` \x1b[2J of long` + "\n" }
	done := "apograph: end: done\n"
	tests := []struct {
		name string
		work time.Duration
		argv []string
		want string
	}{
		{"every 30 s", 95 * time.Second, nil, line("30s") + line("1m0s") + line("1m30s") + done},
		{"none if it is quick", 29 * time.Second, nil, done},
		{"as often as --stats says", 5 * time.Second, []string{"--stats", "2s"}, line("2s") + line("4s") + done},
		{"never", time.Hour, []string{"--stats=0"}, done},
		{"never, negative", time.Hour, []string{"--stats=-1s"}, done},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := progressOf(t, false, 0, tt.work, errors.New("done"), tt.argv...); got != tt.want {
				t.Errorf("standard error\n%q\nwant\n%q", got, tt.want)
			}
		})
	}
}

func TestProgressOnATerminal(t *testing.T) {
	for _, columns := range []int{0, 20, 40, 80, 200} {
		silent, _ := screenOf(progressOf(t, true, columns, time.Second, nil))
		if !equalLines(silent, []string{""}) {
			t.Errorf("%d columns: at the end the terminal shows %q, want nothing", columns, silent)
		}
		got := progressOf(t, true, columns, 1100*time.Millisecond, errors.New("done"))
		screen, widest := screenOf(got)
		if want := []string{"apograph: end: done", ""}; !equalLines(screen, want) {
			t.Errorf("%d columns: at the end the terminal shows %q, want %q", columns, screen, want)
		}
		limit := columns
		if columns == 0 {
			limit = unknownColumns
		}
		if widest >= limit {
			t.Errorf("%d columns: a line takes %d", columns, widest)
		}
		if strings.ContainsRune(got, '\x1b') {
			t.Errorf("%d columns: escape sequence in %q", columns, got)
		}
		if n := strings.Count(got, "at "); n != 5 {
			t.Errorf("%d columns: progress was shown %d times in 1.1 s, want 5", columns, n)
		}
	}
}

// TestMessageReplacesProgress: a message stands on a line of its own, whatever
// the progress line showed.
func TestMessageReplacesProgress(t *testing.T) {
	var out bytes.Buffer
	c := &console{w: &out, live: true, columns: 40}
	c.show("a rather long line")
	c.say("message")
	c.show("short")
	screen, _ := screenOf(out.String())
	if want := []string{"apograph: message", "short"}; !equalLines(screen, want) {
		t.Errorf("the terminal shows %q, want %q", screen, want)
	}
	c.clear()
	c.clear()
	if screen, _ := screenOf(out.String()); !equalLines(screen, []string{"apograph: message", ""}) {
		t.Errorf("the terminal shows %q after clearing", screen)
	}
}

// screenOf returns what a terminal shows after these bytes, without blanks at
// the ends of lines, and the widest that a rewritten line ever was.
func screenOf(written string) (lines []string, widest int) {
	line, at := []rune{}, 0
	shown := func() string { return strings.TrimRight(string(line), " ") }
	for _, r := range written {
		switch r {
		case '\n':
			lines, line, at = append(lines, shown()), nil, 0
		case '\r':
			widest, at = max(widest, len(line)), 0
		default:
			if at == len(line) {
				line = append(line, ' ')
			}
			line[at] = r
			at++
		}
	}
	return append(lines, shown()), widest
}

func equalLines(a, b []string) bool { return strings.Join(a, "\n") == strings.Join(b, "\n") }
