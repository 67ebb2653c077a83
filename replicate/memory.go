package replicate

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
)

// A budget bounds the bytes of fetched data that are held at one time. A
// fetch reserves what it may bring before it is sent, so a slow target stops
// the reading of the source, whatever the lag.
type budget struct {
	mu    sync.Mutex
	limit int64
	used  int64
	line  []*reservation // that wait for room, in order
}

// A reservation waits for n bytes.
type reservation struct {
	n       int64
	granted chan struct{} // closed once the bytes are reserved
}

func newBudget(limit int64) *budget { return &budget{limit: limit} }

// reserve waits until n more bytes fit, or nothing else is held (one request
// must always be possible), or ctx ends. Who comes first is served first: a
// loop that gives bytes back and at once asks again does not get ahead of those
// that wait.
func (b *budget) reserve(ctx context.Context, n int64) error {
	r := &reservation{n: n, granted: make(chan struct{})}
	b.mu.Lock()
	b.line = append(b.line, r)
	b.serve()
	b.mu.Unlock()
	select {
	case <-r.granted:
		return nil
	case <-ctx.Done():
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if i := slices.Index(b.line, r); i >= 0 {
		b.line = slices.Delete(b.line, i, i+1)
	} else {
		b.used -= n
	}
	b.serve()
	return context.Cause(ctx)
}

// serve grants what fits, in order. b.mu is held.
func (b *budget) serve() {
	for len(b.line) > 0 && (b.used == 0 || b.used+b.line[0].n <= b.limit) {
		b.used += b.line[0].n
		close(b.line[0].granted)
		b.line = slices.Delete(b.line, 0, 1)
	}
}

// adjust changes the reservation by n bytes; a negative n gives bytes back.
func (b *budget) adjust(n int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.used += n
	b.serve()
}

// A pin keeps one fetch response in the budget while any part of it is in
// use: record sets alias the buffer of the whole response, so its bytes are
// free only when the last of them is.
type pin struct {
	budget *budget
	bytes  int64
	refs   atomic.Int32
}

// newPin returns a pin with one reference, which owns bytes of b.
func newPin(b *budget, bytes int64) *pin {
	p := &pin{budget: b, bytes: bytes}
	p.refs.Store(1)
	return p
}

func (p *pin) retain() *pin {
	if p != nil {
		p.refs.Add(1)
	}
	return p
}

func (p *pin) release() {
	if p != nil && p.refs.Add(-1) == 0 {
		p.budget.adjust(-p.bytes)
	}
}

// hold counts a unit that was encoded anew as held data until it is booked. It
// does not wait for room: what it was made of is given back in its place.
func (s *source) hold(u *unit) {
	if u.pin == nil && len(u.batch) > 0 {
		held := int64(cap(u.batch))
		s.budget.adjust(held)
		u.pin = newPin(s.budget, held)
	}
}

// buffers are what batches that are encoded anew are written to: memory that
// was used for one is used for the next. They hold what was given back since
// the garbage collector's last runs, and at most as much as the budget let be
// held. The zero value is empty; it is safe for concurrent use.
type buffers struct{ pool sync.Pool }

// A buffer is the memory of one batch.
type buffer struct {
	bytes []byte
	home  *buffers
}

func (b *buffers) get() *buffer {
	if x, ok := b.pool.Get().(*buffer); ok {
		return x
	}
	return &buffer{home: b}
}

func (x *buffer) giveBack() { x.home.pool.Put(x) }
