package verify

import (
	"fmt"

	"apograph/ledger"
)

// A Kind says what a [Finding] claims. The values are part of reports and never
// change.
type Kind string

const (
	// Missing: the target does not hold the record although its log covers the
	// place; or the source has committed a record that the book does not call
	// copied. Fault.
	Missing Kind = "missing"

	// Changed: the target holds another record in its place. Fault.
	Changed Kind = "changed"

	// Reordered: the target holds the record in the place of another one.
	// Fault.
	Reordered Kind = "reordered"

	// Extra: the target holds a record, or a marker, that no entry accounts
	// for. Fault.
	Extra Kind = "extra"

	// Duplicate: a second physical copy of a record. A fault, unless the ledger
	// names it.
	Duplicate Kind = "duplicate"

	// Lost: the book has a tile of this name, bad for ever. A fault, unless
	// somebody has accepted it; so is Unexplained.
	Lost Kind = "lost"

	// Unexplained: the book has a tile of this name, bad for ever.
	Unexplained Kind = "unexplained"

	// Diverged: the source does not hold what was copied, and no retention or
	// compaction accounts for that; or a topic is another one under the same
	// name. Fault.
	Diverged Kind = "diverged"

	// NotVerified: the records could not be compared; see Reason. No fault.
	NotVerified Kind = "not_verified"

	// NotCopiedYet: the source holds more than the books; see Reason. No fault.
	NotCopiedYet Kind = "not_copied_yet"

	// Unbooked: the target holds the next records of the source behind the end
	// of the book, written by a producer of the pair. The ledger does not have
	// them; the next copier adopts them. No fault.
	Unbooked Kind = "unbooked"

	// StaleKeysPossible: a tombstone was compacted away before it was copied, or
	// may have been, so that the target may still show the key. No fault.
	StaleKeysPossible Kind = "stale_keys_possible"
)

// Fault reports whether a finding of this kind is proof of a fault. Of
// duplicates only those that the ledger names are none, of bad tiles only those
// that somebody has accepted.
func (k Kind) Fault() bool {
	switch k {
	case NotVerified, NotCopiedYet, Unbooked, StaleKeysPossible:
		return false
	default:
		return true
	}
}

// A Reason says why records are not verified or not copied, or how a tile went
// bad. The values are part of reports and never change.
type Reason string

const (
	NoReason Reason = ""

	// Reasons of NotVerified.
	Retention  Reason = "retention"  // below the log start of a side
	Compaction Reason = "compaction" // removed by the cleaner of a side
	Unreadable Reason = "unreadable" // the partition could not be read
	Moving     Reason = "moving"     // the log was cut while it was read
	NotRead    Reason = "not_read"   // this mode leaves it out, or the limit of bytes was reached
	Sample     Reason = "sample"     // outside of the sample that was asked for

	// Reasons of NotCopiedYet.
	Behind          Reason = "behind"
	OpenTransaction Reason = "open_transaction"
	NoBook          Reason = "no_book"
)

// A Range is a run of offsets [Start, End) in a report. One that is empty names
// the place between two offsets.
type Range struct {
	Start int64 `json:"start"`
	End   int64 `json:"end"`
}

func rangeOf(r ledger.Range) *Range { return &Range{Start: r.Start, End: r.End} }

// at returns the empty range at an offset.
func at(offset int64) *Range { return &Range{Start: offset, End: offset} }

// one returns the range of one offset.
func one(offset int64) *Range { return &Range{Start: offset, End: offset + 1} }

// String returns the range as "[Start, End)", or as the offset if it holds one.
func (r *Range) String() string {
	switch {
	case r == nil:
		return ""
	case r.End == r.Start+1:
		return fmt.Sprint(r.Start)
	default:
		return fmt.Sprintf("[%d, %d)", r.Start, r.End)
	}
}

// counted returns a number with what is counted, which takes an s behind any
// number but one.
func counted(n int64, one string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %ss", n, one)
}

// A Finding is one claim about a run of offsets of one partition. Neighbouring
// offsets of which the same is true are one finding.
type Finding struct {
	Kind      Kind   `json:"kind"`
	Fault     bool   `json:"fault"`
	Topic     string `json:"topic"` // of the source
	Partition int32  `json:"partition"`

	// Source and Target are the offsets concerned. Empty is a place: nothing of
	// that side is concerned. Nil is not known. The target offsets of a record
	// that was copied are those that the book has; of what should not be there,
	// and of Unbooked, those at which it stands.
	Source *Range `json:"source_offsets"`
	Target *Range `json:"target_offsets"`

	// Accepted says who accepts a bad tile, or a doubt, which then is no fault
	// and leaves nothing open; nil if nobody does.
	Accepted *Accepted `json:"accepted,omitempty"`

	Reason Reason `json:"reason"`
	Detail string `json:"detail"` // one line for a person; not for parsing
}

// A findings collects what is found in one partition. What is kept is bounded:
// faults are kept first, and what is left out is counted.
type findings struct {
	topic     string
	partition int32
	limit     int // of each of the two lists

	faults, others []Finding
	omitted        int
	sawFault       bool
	unread         bool // something could not be read that may be read another time, or never
	open           bool // something is found that leaves a part unproven
	accepted       bool // something is found that somebody has accepted
}

// add takes a finding. It becomes a part of the one before it if it continues
// that on both sides.
func (f *findings) add(found Finding) {
	found.Topic, found.Partition = f.topic, f.partition
	list := &f.others
	if found.Fault {
		list, f.sawFault = &f.faults, true
	} else if found.Accepted != nil {
		f.accepted = true
	} else if found.Kind != Duplicate {
		f.open = true
		f.unread = f.unread || found.Kind == NotVerified && found.Reason != Compaction
	}
	if n := len(*list); n > 0 && (*list)[n-1].join(&found) {
		return
	}
	if len(*list) >= f.limit {
		f.omitted++
		return
	}
	*list = append(*list, found)
}

// aside adds a finding that is no fault and leaves nothing open.
func (f *findings) aside(found Finding) {
	open := f.open
	f.add(found)
	f.open = open
}

// merge takes over what another collection about the same partition has.
func (f *findings) merge(g *findings) {
	open := f.open || g.open
	for _, list := range [][]Finding{g.faults, g.others} {
		for _, found := range list {
			f.add(found)
		}
	}
	f.omitted += g.omitted
	f.sawFault = f.sawFault || g.sawFault
	f.open = open
}

// fault adds a finding of a kind that is a fault.
func (f *findings) fault(kind Kind, source, target *Range, format string, args ...any) {
	f.add(Finding{Kind: kind, Fault: true, Source: source, Target: target, Detail: fmt.Sprintf(format, args...)})
}

// note adds a finding that is no fault.
func (f *findings) note(kind Kind, reason Reason, source, target *Range, format string, args ...any) {
	f.add(Finding{Kind: kind, Reason: reason, Source: source, Target: target, Detail: fmt.Sprintf(format, args...)})
}

// join makes g a part of f if g says the same of the offsets that follow.
func (f *Finding) join(g *Finding) bool {
	if f.Kind != g.Kind || f.Fault != g.Fault || f.Reason != g.Reason || f.Detail != g.Detail || !f.Accepted.same(g.Accepted) ||
		!follows(f.Source, g.Source) || !follows(f.Target, g.Target) {
		return false
	}
	if f.Source != nil {
		f.Source = &Range{f.Source.Start, g.Source.End}
	}
	if f.Target != nil {
		f.Target = &Range{f.Target.Start, g.Target.End}
	}
	return true
}

// follows reports whether b begins where a ends: on one side of a finding, an
// empty range stays at its place.
func follows(a, b *Range) bool {
	if a == nil || b == nil {
		return a == b
	}
	return a.End == b.Start
}
