package replicate

import (
	"time"

	"apograph/internal/pace"
)

// How a partition tries again.

const (
	// shedAfter is how many attempts may fail in a row before a partition
	// waits empty-handed, so that others can use the memory, and begins again.
	shedAfter = 4

	maxBackoff = 10 * time.Second
)

// backoff waits before another attempt and learns the target's leaders. It
// reports false if the partition has stopped, or begins again, instead.
func (p *partition) backoff(detail string) bool {
	if p.tries == 0 {
		p.failing = p.flow.now()
	}
	if p.flow.now().Sub(p.failing) > p.flow.config.UnavailableAfter {
		p.halt(StopUnavailable, detail)
		return false
	}
	generation := p.flow.target.seen()
	wait := min(50*time.Millisecond<<min(p.tries, 8), maxBackoff)
	p.tries++
	again := p.tries > shedAfter && p.phase == phaseCopy && (p.win == nil || p.win.flying == 0)
	if again {
		p.flow.warnOnce("waits "+p.source.String(), "partition makes no progress; it is tried again", "partition", p.source.String(), "detail", detail)
		p.shed()
	}
	if pace.Pause(p.flow.ctx, wait) == nil {
		_, _ = p.flow.target.refresh(p.flow.ctx, generation)
		if s := p.targetGone(); s != nil {
			p.halt(s.reason, s.detail)
			return false
		}
	}
	if again {
		p.post(event{begin: true})
	}
	return !again
}

// shed forgets everything that is not in the books. Nothing is in flight.
func (p *partition) shed() {
	p.flow.reader.stop(p)
	p.drop()
	p.win, p.bounds = nil, nil
	p.phase = phaseIdle
}

// restart begins again from the books: what the target holds is found there.
// Nothing is in flight.
func (p *partition) restart() {
	p.shed()
	p.post(event{begin: true})
}
