package ledger

import "slices"

// Words of [Stop.Reason] that say something which stays true while the partition
// stops for other reasons.
const (
	// SourceTruncated: the source was cut below the books, and what they say of
	// its offsets may be about other records now.
	SourceTruncated = "source_truncated"
	// ForeignWriter: somebody else wrote to the target, and nobody has said to
	// go on beside it.
	ForeignWriter = "foreign_writer"
	// TargetLostRecords: the target was seen to have lost records.
	TargetLostRecords = "target_lost_records"
	// Fenced: the target takes nothing under the pair's producer id any more.
	Fenced = "fenced"
)

// keptReasons are the words that are kept, each as the bit of its place. A
// partition that has several is shown with the first of them.
var keptReasons = [...]string{ForeignWriter, SourceTruncated, TargetLostRecords, Fenced}

// A Kept is a set of reasons that an earlier stop of a partition had, which did
// not pass when it stopped for another one.
type Kept uint8

const (
	keptTruncated Kept = 1 << 1
	keptKnown     Kept = 1<<len(keptReasons) - 1
)

// keptOf returns the set of those of the reasons that are kept.
func keptOf(reasons ...string) (k Kept) {
	for i, reason := range keptReasons {
		if slices.Contains(reasons, reason) {
			k |= 1 << i
		}
	}
	return k
}

// Holds reports whether the partition stopped for a reason, now or, if the reason
// is one that is kept, at an earlier time, and nothing has ended it since.
func (s *Stop) Holds(reason string) bool {
	return s.Reason == reason || s.Kept&keptOf(reason) != 0
}

// Truncated returns the source offset at which the source was cut below the
// books, -1 if that is unknown, and whether it was.
func (s *Stop) Truncated() (at int64, ok bool) {
	switch {
	case s.Reason == SourceTruncated:
		return s.Offset, true
	case s.Kept&keptTruncated != 0:
		return s.CutAt, true
	}
	return 0, false
}

// keep takes over what an earlier stop found that stays true.
func (s *Stop) keep(before *Stop) {
	s.Kept, s.CutAt = 0, 0
	if before == nil {
		return
	}
	s.Kept = (before.Kept | keptOf(before.Reason)) &^ keptOf(s.Reason)
	if s.Kept&keptTruncated != 0 {
		s.CutAt, _ = before.Truncated()
	}
}

// without returns what is left of a stop once some reasons are ended; nil if
// nothing is.
func (s *Stop) without(reasons []string) *Stop {
	left := *s
	left.Kept &^= keptOf(reasons...)
	if slices.Contains(reasons, s.Reason) {
		i := slices.IndexFunc(keptReasons[:], func(reason string) bool { return left.Kept&keptOf(reason) != 0 })
		if i < 0 {
			return nil
		}
		left.Reason, left.Detail = keptReasons[i], "found before, and not ended since"
		if left.Reason == SourceTruncated {
			left.Offset = s.CutAt
		}
		left.Kept &^= keptOf(left.Reason)
	}
	if left.Kept&keptTruncated == 0 {
		left.CutAt = 0
	}
	return &left
}

// keptFault returns what is wrong with what a stop keeps; "" if nothing.
func (s *Stop) keptFault() string {
	switch {
	case s.Kept&^keptKnown != 0 || s.Kept&keptOf(s.Reason) != 0:
		return "keeps a reason that it cannot keep"
	case s.Kept&keptTruncated == 0 && s.CutAt != 0, !validStop(s.CutAt):
		return "keeps a cut at an offset that cannot be"
	}
	return ""
}

// formatFault returns an error if a file of the format has no room for the stop.
func (s *Stop) formatFault(format int) error {
	if s.Kept != 0 && format < formatMarks {
		return lawErrorf(lawEncoding, "keeps reasons, in a file of format %d", format)
	}
	return nil
}

// LiftStop ends reasons for which a partition stopped, also at earlier times. If
// others are left that are kept, it has stopped for these. It is durable with the
// next commit. Errors are those of [Ledger.SetStop].
func (l *Ledger) LiftStop(topic string, number int32, reasons ...string) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.usable(); err != nil {
		return err
	}
	p := partition{topic, number}
	known := l.flow.stops[p]
	if known == nil || known.now == nil {
		return nil
	}
	if left := known.now.without(reasons); left == nil || *left != *known.now {
		known.now = left
		l.listStop(p, known)
	}
	return nil
}

// Stop returns the stop of a partition, committed or not, and whether there is
// one.
func (l *Ledger) Stop(topic string, number int32) (Stop, bool) {
	l.mu.RLock()
	defer l.mu.RUnlock()
	if known := l.flow.stops[partition{topic, number}]; known != nil && known.now != nil {
		return *known.now, true
	}
	return Stop{}, false
}
