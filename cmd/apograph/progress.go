package main

import (
	"context"
	"strings"
	"sync"
	"time"

	"github.com/jedib0t/go-pretty/v6/progress"
	"github.com/jedib0t/go-pretty/v6/text"
)

// A progressState is a moment of a long work.
type progressState struct {
	line        string // one line for a person
	done, total int64  // of the same unit; a total of 0: there is no end to be measured against
}

// liveInterval is how often the progress line on a terminal is rewritten.
const liveInterval = 200 * time.Millisecond

// withProgress is [invocation.withBar] for work that knows no end.
func (inv *invocation) withProgress(ctx context.Context, line func() string, work func(context.Context) error) error {
	return inv.withBar(ctx, func() progressState { return progressState{line: line()} }, work)
}

// withBar runs work and meanwhile shows what state returns: on a terminal in one
// line that is rewritten and goes away at the end, with a bar where there is an
// end to be measured against; otherwise in a new line every --stats. state is
// called from another goroutine than work.
func (inv *invocation) withBar(ctx context.Context, state func() progressState, work func(context.Context) error) error {
	interval := inv.Duration("stats")
	if interval <= 0 {
		return work(ctx)
	}
	done := make(chan struct{})
	var teller sync.WaitGroup
	if inv.stderr.live {
		teller.Go(func() { inv.stderr.tellLive(done, state) })
	} else {
		teller.Go(func() { inv.stderr.tell(done, interval, state) })
	}
	defer func() {
		close(done)
		teller.Wait()
	}()
	return work(ctx)
}

// tell says where the work is in plain lines.
func (c *console) tell(done <-chan struct{}, interval time.Duration, state func() progressState) {
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	for {
		select {
		case <-done:
			return
		case <-ticker.C:
			c.say(clean(state().line))
		}
	}
}

// tellLive shows where the work is in a line of the terminal.
func (c *console) tellLive(done <-chan struct{}, state func() progressState) {
	b := newBar(c, state)
	rendered := make(chan struct{})
	go func() {
		defer close(rendered)
		b.writer.Render()
	}()
	<-done
	b.end()
	// A renderer that has not begun yet takes no notice of Stop.
	again := time.NewTicker(time.Millisecond)
	defer again.Stop()
	for {
		b.writer.Stop()
		select {
		case <-rendered:
			c.clear()
			return
		case <-again.C:
		}
	}
}

// barSteps is how finely a bar knows its work.
const barSteps = 1000

// A bar is a line of progress. The library draws the bar in its own time; where
// and how the line gets onto the terminal is the console's business, which needs
// no escape sequences for it.
type bar struct {
	console *console
	state   func() progressState
	writer  progress.Writer
	tracker *progress.Tracker

	mu    sync.Mutex // guards what follows
	ended bool
}

func newBar(c *console, state func() progressState) *bar {
	b := &bar{console: c, state: state, writer: progress.NewWriter(), tracker: &progress.Tracker{Total: barSteps}}
	style := progress.StyleDefault
	style.Visibility = progress.StyleVisibility{Percentage: true, Tracker: true}
	style.Options.PercentFormat, style.Options.Separator = "%3.0f%%", ""
	style.Chars.Finished25, style.Chars.Finished50, style.Chars.Finished75 = ".", ".", "."
	b.writer.SetStyle(style)
	b.writer.SetTrackerPosition(progress.PositionLeft)
	b.writer.SetTrackerLength(min(max(c.columns/4, 10), 30))
	b.writer.SetUpdateFrequency(liveInterval)
	b.writer.SetOutputWriter(b)
	b.writer.AppendTracker(b.tracker)
	return b
}

// Write takes what the library has drawn: the bar as it was one interval ago,
// between sequences that move the cursor.
func (b *bar) Write(drawn []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.ended {
		return len(drawn), nil
	}
	now := b.state()
	line := clean(now.line)
	if now.total > 0 {
		line = strings.TrimSpace(text.StripEscape(string(drawn))) + " " + line
		// The last step is never taken: a tracker that is done is drawn no more.
		step := int64(barSteps * (float64(now.done) / float64(now.total)))
		b.tracker.SetValue(min(max(step, 0), barSteps-1))
	}
	b.console.show(line)
	return len(drawn), nil
}

// end has nothing shown any more.
func (b *bar) end() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.ended = true
}
