package verify

import "errors"

// A chunk is a part of a stream.
type chunk struct {
	items []item // ascending, none below the position before
	next  int64  // everything below is delivered, or is not there
	start int64  // log start offset as last seen
}

// A stream is what was read of one side of a partition, in order. It belongs to
// one goroutine; another one reads ahead of it.
type stream struct {
	chunks   <-chan chunk
	items    []item        // taken from the channel and not yet used
	taken    []item        // the chunk that items is the rest of
	used     chan<- []item // takes back what is used up; nil: it does not
	position int64         // everything below has been handed over, or is not there
	start    int64         // log start offset as last seen: what is not there below it was deleted
	ended    bool
	failure  error // why it ended too early; nil if it did not. Valid once ended

	lookInto func(offset int64) (gap, bool) // nil: nothing can be looked into
	gaps     []gap                          // looked into
}

// unread returns a stream that could not even begin.
func unread(from int64, failure error) *stream {
	return &stream{position: from, ended: true, failure: failure}
}

// peek returns the next item, nil if there is none.
func (s *stream) peek() *item {
	for len(s.items) == 0 {
		if !s.more() {
			return nil
		}
	}
	return &s.items[0]
}

// next drops the item that peek returns.
func (s *stream) next() { s.items = s.items[1:] }

// more waits for the next chunk. It returns false at the end.
func (s *stream) more() bool {
	if s.ended {
		return false
	}
	c, ok := <-s.chunks
	if !ok {
		s.ended = true
		return false
	}
	if len(s.items) == 0 {
		s.giveBack()
		s.items, s.taken = c.items, c.items
	} else {
		s.items, s.taken = append(s.items, c.items...), nil
	}
	s.position, s.start = c.next, max(s.start, c.start)
	return true
}

// giveBack lets the reader write another chunk where the last one was, of which
// all items are used. Nobody keeps what peek returns for longer than that.
func (s *stream) giveBack() {
	if cap(s.taken) > 0 {
		select {
		case s.used <- s.taken[:0]: // never, where used is nil
		default:
		}
	}
	s.taken = nil
}

// broken returns why the stream ended before its end, nil if it has not, or is
// not known to have.
func (s *stream) broken() *readError {
	var err *readError
	if s.ended {
		errors.As(s.failure, &err)
	}
	return err
}

// undecodable reports whether a batch that cannot be decoded stands at an offset
// at which the stream has nothing, or may stand there, because the log gives no
// answer.
func (s *stream) undecodable(offset int64) bool {
	for _, g := range s.gaps {
		if offset >= g.from && offset < g.to {
			return g.broken
		}
	}
	if s.lookInto == nil || len(s.gaps) >= maxGaps {
		return false
	}
	g, ok := s.lookInto(offset)
	if !ok { // what cannot be looked at is no loss
		g = gap{from: offset, to: offset + 1, broken: true}
	}
	s.gaps = append(s.gaps, g)
	return g.broken
}

// fatal returns the error that ended the stream and is not the partition's own.
func (s *stream) fatal() error {
	if s != nil && s.ended && s.failure != nil && s.broken() == nil {
		return s.failure
	}
	return nil
}
