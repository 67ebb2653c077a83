package main

import (
	"fmt"
	"io"
	"strings"
	"sync"
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
