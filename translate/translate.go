package translate

import (
	"errors"
	"fmt"

	"apograph/ledger"
)

// ErrNegativeOffset: an offset below 0 was to be translated. Kafka's special
// offsets, such as -1 for the end, are no places in a log.
var ErrNegativeOffset = errors.New("negative offset")

// NoOffset stands in a [Result] for an offset that there is not.
const NoOffset = -1

// Books are the two books of one pair of a ledger.
type Books struct {
	Ledger *ledger.Ledger
	Pair   ledger.PairID
}

// String names the pair, for errors.
func (b Books) String() string { return fmt.Sprintf("pair %d", b.Pair) }

// A Result is the answer to one question. The offset that was asked for and the
// answer stand side by side: which is which depends on the direction.
type Result struct {
	Status       Status
	SourceOffset int64  // NoOffset if it is the answer and there is none
	TargetOffset int64  // the same
	Distance     int64  // in offsets of the side asked for; see the statuses
	CopiedTo     int64  // end of the source book; NoOffset if Status is Unknown
	Detail       string // one line for a person; empty if there is nothing to say
}

// Forward translates a source offset into a target offset. Where the pair goes on
// from an earlier generation, as the target had lost what it says from there on, or the
// source's log was cut there, the books of that one answer for what lies below. It
// never falls as offset rises, it is never inside a note, and never beyond the end of the
// target book.
//
// It takes two or three searches of the ledger, however large that is, except
// that it steps over notes that lie between the offset and the first copied
// record after it, and over adjacent lost ranges. Safe for concurrent use,
// also while the ledger is written.
//
// The error is ErrNegativeOffset, or one of the ledger's: a
// [*ledger.CorruptError] or [ledger.ErrClosed].
func Forward(b Books, offset int64) (Result, error) {
	return one(b, offset, forwards())
}

// Reverse translates a target offset into a source offset: that of the first
// copied record with target offset offset or above, and where there is none the
// end of the source book. An offset inside a note is translated like that of
// the first copied record after it, and Reverse of an Exact answer of Forward
// is the first copied record at or after what Forward was asked.
//
// Costs, concurrency and errors are those of Forward.
func Reverse(b Books, offset int64) (Result, error) {
	return one(b, offset, backwards())
}

// A direction is one of the two ways to translate.
type direction struct {
	from      string // the side of the offset that is asked for
	asked     func(offset int64) Result
	translate func(s *reading, offset int64) (Result, error)
}

func forwards() direction {
	return direction{
		from: "source",
		asked: func(offset int64) Result {
			return Result{SourceOffset: offset, TargetOffset: NoOffset, CopiedTo: NoOffset}
		},
		translate: (*reading).forward,
	}
}

func backwards() direction {
	return direction{
		from: "target",
		asked: func(offset int64) Result {
			return Result{SourceOffset: NoOffset, TargetOffset: offset, CopiedTo: NoOffset}
		},
		translate: (*reading).reverse,
	}
}

func one(b Books, offset int64, d direction) (Result, error) {
	if offset < 0 {
		return Result{}, negative(b.String(), offset)
	}
	var s reading
	why, err := s.open(b)
	if err != nil {
		return Result{}, err
	}
	if why != "" {
		return d.unknown(offset, why), nil
	}
	r, err := d.translate(&s, offset)
	if err != nil {
		return Result{}, s.located(d, offset, err)
	}
	return r, nil
}

func negative(where string, offset int64) error {
	return fmt.Errorf("translate offset %d of %s: %w", offset, where, ErrNegativeOffset)
}

// unknown returns the answer to a question that has none.
func (d direction) unknown(offset int64, why string) Result {
	r := d.asked(offset)
	r.Detail = why
	return r
}

func (s *reading) located(d direction, offset int64, err error) error {
	topic := s.pair.SourceTopic
	if d.from == "target" {
		topic = s.pair.TargetTopic
	}
	return fmt.Errorf("translate %s offset %d of %s-%d: %w", d.from, offset, topic, s.pair.Partition, err)
}
