package main

import (
	"fmt"
	"sync"
	"time"

	"apograph/replicate"
)

// rateWindow is how long the past is that a rate is taken from.
const rateWindow = 10 * time.Second

// A copyProgress knows where a copier is and how fast it goes. Safe for
// concurrent use.
type copyProgress struct {
	once bool // there is an end

	mu      sync.Mutex // guards what follows
	moments []copyMoment
}

// A copyMoment is a progress and when it was.
type copyMoment struct {
	at time.Time
	replicate.Progress
}

// note takes the progress at a time, later than all before.
func (c *copyProgress) note(at time.Time, p replicate.Progress) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.moments = append(c.moments, copyMoment{at, p})
	for len(c.moments) > 2 && at.Sub(c.moments[1].at) >= rateWindow {
		c.moments = c.moments[1:]
	}
}

// state returns what to show.
func (c *copyProgress) state() progressState {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.moments) == 0 {
		return progressState{line: progressLine(c.once, nil)}
	}
	first, last := c.moments[0], c.moments[len(c.moments)-1]
	var records, bytes float64 // a second
	if seconds := last.at.Sub(first.at).Seconds(); seconds > 0 {
		records, bytes = float64(last.Copied-first.Copied)/seconds, float64(last.Bytes-first.Bytes)/seconds
	}
	state := progressState{line: progressLine(c.once, &last.Progress)}
	state.line += fmt.Sprintf(", %.0f records/s (%s/s)", records, byteSize(int64(bytes)))
	if c.once {
		state.done, state.total = last.Copied, max(last.Copied+last.Remaining, 1)
	}
	return state
}
