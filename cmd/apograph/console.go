package main

import (
	"context"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"
)

// A console is standard error: messages, and at most one progress line below
// them, which every message replaces. Safe for concurrent use. It never writes
// an escape sequence: a progress line is rewritten with a carriage return and
// blanks. Errors are dropped, as there is nowhere to tell them.
type console struct {
	mu      sync.Mutex // guards all below
	w       io.Writer
	live    bool // w is a terminal that can rewrite a line
	columns int  // of the terminal; 0 if not known
	shown   int  // columns that the progress line takes now
}

// unknownColumns is the width of a terminal that does not tell its own.
const unknownColumns = 80

func newConsole(w io.Writer) *console {
	columns, terminal := terminalWidth(w)
	return &console{w: w, live: terminal && !isDumb(), columns: columns}
}

// Write writes whole lines.
func (c *console) Write(p []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.erase()
	return c.w.Write(p)
}

// say writes one line about the program itself.
func (c *console) say(line string) { fmt.Fprintf(c, "apograph: %s\n", line) }

// warn tells what is odd but no error.
func (c *console) warn(line string) { c.say("warning: " + clean(line)) }

// show replaces the progress line.
func (c *console) show(line string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	columns := c.columns
	if columns == 0 {
		columns = unknownColumns
	}
	c.erase()
	// The last column stays free: some terminals wrap once it is written.
	line = snip(line, columns-1)
	fmt.Fprint(c.w, line)
	c.shown = displayWidth(line)
}

// clear removes the progress line.
func (c *console) clear() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.erase()
}

// erase removes the progress line. The caller holds mu.
func (c *console) erase() {
	if c.shown > 0 {
		fmt.Fprint(c.w, "\r"+strings.Repeat(" ", c.shown)+"\r")
		c.shown = 0
	}
}

// liveInterval is how often the progress line on a terminal is rewritten.
const liveInterval = 200 * time.Millisecond

// withProgress runs work and meanwhile shows what line returns: on a terminal
// in one line that is rewritten and goes away at the end, otherwise in a new
// line every --stats. line is called from another goroutine than work.
func (inv *invocation) withProgress(ctx context.Context, line func() string, work func(context.Context) error) error {
	interval := inv.Duration("stats")
	if interval <= 0 {
		return work(ctx)
	}
	done := make(chan struct{})
	var teller sync.WaitGroup
	teller.Go(func() { inv.stderr.tell(done, interval, line) })
	defer func() {
		close(done)
		teller.Wait()
	}()
	return work(ctx)
}

func (c *console) tell(done <-chan struct{}, interval time.Duration, line func() string) {
	if c.live {
		interval = liveInterval
	}
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	for {
		select {
		case <-done:
			c.clear()
			return
		case <-ticker.C:
			if c.live {
				c.show(clean(line()))
			} else {
				c.say(clean(line()))
			}
		}
	}
}
