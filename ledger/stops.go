package ledger

import (
	"cmp"
	"encoding/binary"
	"maps"
	"math"
	"slices"
	"strings"
	"unicode/utf8"

	"go.etcd.io/bbolt"
)

// A Stop says why a partition could not go on when it was tried last. There is
// at most one a partition, also of a partition without a pair.
type Stop struct {
	SourceTopic string // of 1 to 249 bytes
	Partition   int32  // -1: all of the topic, whose partitions are not known
	Offset      int64  // source offset at which it stopped; -1 unknown
	Reason      string // one of a few words that programs know; 1 to 1024 bytes
	Detail      string // for a person; cut at 1024 bytes
	SinceMillis int64  // when it stopped first, Unix time in milliseconds
	Tries       int32  // how often it was tried since

	// What earlier stops found that stays true, beside Reason, and of a source
	// that was cut the offset (-1 unknown; 0 if that is not kept). SetStop sets
	// them.
	Kept  Kept
	CutAt int64
}

func (s *Stop) partition() partition { return partition{s.SourceTopic, s.Partition} }

// A stop is what a Ledger knows about the stop of a partition.
type stop struct {
	now    *Stop // committed or not, never changed; nil: the partition goes on
	stored bool  // the file has one, this or an earlier one
	listed bool  // in flowBooks.news
}

// A stopChange is what a commit does to the stop of a partition.
type stopChange struct {
	partition partition
	stop      *Stop // nil: none any more
}

// SetStop says why a partition cannot go on, in place of what was said before.
// Of that, what stays true is kept, until [Ledger.LiftStop] or
// [Ledger.ClearStop] ends it. It is durable with the next commit, which is no later than for an entry. What
// does not change anything is not committed.
//
// A detail that is not UTF-8 is made so. The error is an [*LawError] for
// anything else that cannot be, ErrReadOnly, ErrClosed, or that of a commit
// after which the file may be bad.
func (l *Ledger) SetStop(s Stop) error {
	s.Detail = cut(strings.ToValidUTF8(s.Detail, "\uFFFD"), maxText)
	s.Kept, s.CutAt = 0, 0
	if fault := s.fault(); fault != "" {
		return lawErrorf(lawStops, "%s", fault)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.usable(); err != nil {
		return err
	}
	known := l.flow.stops[s.partition()]
	if known == nil {
		known = &stop{}
		l.flow.stops[s.partition()] = known
	}
	s.keep(known.now)
	if known.now == nil || *known.now != s {
		known.now = &s
		l.listStop(s.partition(), known)
	}
	return nil
}

// ClearStop says that a partition goes on. It is durable with the next commit;
// where there is no stop it does nothing. Errors are those of [Ledger.SetStop].
func (l *Ledger) ClearStop(topic string, number int32) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.usable(); err != nil {
		return err
	}
	p := partition{topic, number}
	if known := l.flow.stops[p]; known != nil && known.now != nil {
		known.now = nil
		l.listStop(p, known)
	}
	return nil
}

// Stops returns the stops of all partitions, committed or not, by topic and
// partition.
func (l *Ledger) Stops() []Stop {
	l.mu.RLock()
	defer l.mu.RUnlock()
	stops := make([]Stop, 0, len(l.flow.stops))
	for s := range maps.Values(l.flow.stops) {
		if s.now != nil {
			stops = append(stops, *s.now)
		}
	}
	slices.SortFunc(stops, func(a, b Stop) int { return a.partition().compare(b.partition()) })
	return stops
}

// listStop notes that a stop is to be committed. The caller holds l.mu.
func (l *Ledger) listStop(p partition, s *stop) {
	if !s.listed {
		s.listed = true
		l.flow.news = append(l.flow.news, p)
	}
	l.wake()
}

// takeStops moves the stops that are to be committed into the commit. The
// caller holds l.mu.
func (c *commit) takeStops(f *flowBooks) {
	for _, p := range f.news {
		s := f.stops[p]
		s.listed = false
		if s.now == nil && !s.stored {
			delete(f.stops, p)
			continue
		}
		c.stops = append(c.stops, stopChange{p, s.now})
	}
	f.news = nil
}

// settleStop ends the stop of the partition that the task settles. The caller
// holds l.mu.
func (c *commit) settleStop(f *flowBooks) {
	if c.settled == nil {
		return
	}
	s := f.stops[*c.settled]
	if s == nil || s.now == nil {
		return
	}
	c.ended, s.now = s.now, nil
	if !s.listed {
		s.listed, f.news = true, append(f.news, *c.settled)
	}
}

// untakeStops lists what a failed commit took, and keeps the stop that it would
// have ended. The caller holds l.mu.
func (l *Ledger) untakeStops(c *commit) {
	if c.ended != nil {
		l.keepStop(*c.settled, c.ended)
	}
	for _, ch := range c.stops {
		l.listStop(ch.partition, l.flow.stops[ch.partition])
	}
}

// keepStop puts a stop back that has not ended, unless another was noted since.
// The caller holds l.mu.
func (l *Ledger) keepStop(p partition, ended *Stop) {
	s := l.flow.stops[p]
	if s == nil {
		s = &stop{}
		l.flow.stops[p] = s
	}
	if s.now == nil {
		s.now = ended
		l.listStop(p, s)
	}
}

// publishStop notes what the file holds now.
func (f *flowBooks) publishStop(ch stopChange) {
	s := f.stops[ch.partition]
	s.stored = ch.stop != nil
	if s.now == nil && !s.stored && !s.listed {
		delete(f.stops, ch.partition)
	}
}

func (ch *stopChange) write(tx *bbolt.Tx) error {
	key := partitionKey(ch.partition)
	if ch.stop == nil {
		return tx.Bucket([]byte(bucketStops)).Delete(key)
	}
	return putAnywhere(tx, bucketStops, key, stopValue(key, ch.stop))
}

// cut returns the first runes of a text, of at most limit bytes.
func cut(text string, limit int) string {
	if len(text) <= limit {
		return text
	}
	for !utf8.RuneStart(text[limit]) {
		limit--
	}
	return text[:limit]
}

// fault returns what is wrong with a stop; "" if nothing.
func (s *Stop) fault() string {
	if fault := partitionFault(s.partition()); fault != "" {
		return fault
	}
	switch {
	case s.Reason == "":
		return "stopped without a reason"
	case !validStop(s.Offset):
		return "stopped at an offset that cannot be"
	case s.Tries < 0:
		return "tried less than never"
	}
	return cmp.Or(textFault("reason", s.Reason), textFault("detail", s.Detail), timeFault(s.SinceMillis), s.keptFault())
}

// validStop reports whether a partition can stop at a source offset.
func validStop(offset int64) bool { return offset >= -1 && offset < math.MaxInt64 }

func stopValue(key []byte, s *Stop) []byte {
	b := binary.AppendUvarint(newValue(64+len(s.Detail)), uint64(s.Kept)) // flags
	b = binary.AppendUvarint(b, uint64(s.Offset+1))
	b = appendText(b, s.Reason)
	b = appendText(b, s.Detail)
	b = binary.AppendVarint(b, s.SinceMillis)
	b = binary.AppendUvarint(b, uint64(s.Tries))
	if s.Kept&keptTruncated != 0 {
		b = binary.AppendUvarint(b, uint64(s.CutAt+1))
	}
	return seal(bucketStops, key, b)
}

// decodeStop is the inverse of partitionKey and stopValue.
func decodeStop(key, payload []byte) (s Stop, err error) {
	p, ok := parsePartitionKey(key)
	if !ok {
		return s, unknownKey(bucketStops, key)
	}
	s.SourceTopic, s.Partition = p.topic, p.partition
	r := wireReader{b: payload}
	s.Kept = Kept(r.flags(uint64(keptKnown)))
	s.Offset = r.count() - 1
	s.Reason, s.Detail = r.text(maxText), r.text(maxText)
	s.SinceMillis, s.Tries = r.varint(), int32(r.below(math.MaxInt32))
	if s.Kept&keptTruncated != 0 {
		s.CutAt = r.count() - 1
	}
	if err := r.end("stop"); err != nil {
		return s, err
	}
	if fault := s.fault(); fault != "" {
		return s, lawErrorf(lawStops, "%s", fault)
	}
	return s, nil
}
