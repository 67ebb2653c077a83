package replicate

import (
	"errors"
	"fmt"

	"github.com/twmb/franz-go/pkg/kerr"

	"apograph/ledger"
)

// A tailKind says what stands at a place behind the books.
type tailKind uint8

const (
	tailStranger tailKind = iota // not ours
	tailNext                     // ours, the next record in sequence, there or known by its place
	tailSecond                   // ours, under a sequence number that was used before
	tailEarly                    // ours, ahead of records that are not there
	tailGone                     // gone from the log, and not known to be ours
)

// A verdict says what stands at a place behind the books, and up to which
// target offset.
type verdict struct {
	kind   tailKind
	until  int64
	number int64 // tailSecond, tailEarly: of the first record
	why    string
}

// A tailError reports what stops the partition, once all before it is booked.
type tailError struct {
	reason StopReason
	detail string
}

func (e *tailError) Error() string { return e.detail }

// errBooks says that the books could not be written; the flow knows why.
var errBooks = errors.New("books cannot be written")

// judge says what stands at target offset at, in or in front of batch i or
// behind the last one, where number is that of the next record of ours.
func (a *adoption) judge(i int, at, number int64) (verdict, error) {
	b, err := a.peek(i)
	switch {
	case err != nil:
		return verdict{}, err
	case b == nil || b.base > at:
		return a.judgeHole(i, at, number)
	case !b.ours && b.base < at && !(i == 0 && at == a.at && a.mayBeNewer(b)):
		return verdict{}, a.rewritten(b)
	case !b.ours:
		return verdict{kind: tailStranger, until: b.next}, nil
	}
	here := b.number + at - b.base
	switch {
	case here == number:
		return verdict{kind: tailNext, until: b.next}, nil
	case b.base < at:
		return verdict{}, a.rewritten(b)
	case here < number:
		return verdict{kind: tailSecond, until: min(b.next, at+number-here), number: here}, nil
	default:
		return verdict{kind: tailEarly, until: b.next, number: here}, nil
	}
}

// rewritten says that the batch across the books' end is not the one that they
// know there.
func (a *adoption) rewritten(b *readBatch) error {
	return &tailError{StopTargetLostRecords, fmt.Sprintf("the target's log was cut below the books, and written again: the batch at offsets [%d, %d) is not what the books know up to offset %d",
		b.base, b.next, a.at)}
}

// judgeHole says what the log lacks in front of batch i. The sequence number of
// the next batch of ours tells whether it was ours: all of it, or nothing.
func (a *adoption) judgeHole(i int, at, number int64) (verdict, error) {
	b, err := a.peek(i)
	if err != nil {
		return verdict{}, err
	}
	if b == nil {
		return verdict{kind: tailGone, until: a.reader.end, why: "unknown"}, nil
	}
	end := b.base
	for next := b.base; b != nil && b.base == next && !b.ours && a.inView(i+1); {
		next = b.next
		i++
		if b, err = a.peek(i); err != nil {
			return verdict{}, err
		}
		if b != nil && b.base != next {
			b = nil
		}
	}
	switch {
	case b == nil || !b.ours:
	case b.number-number == end-at:
		return verdict{kind: tailNext, until: end}, nil
	case b.number <= number:
		return verdict{kind: tailGone, until: end, why: "gone before it was read; not the next records of ours, by their sequence numbers"}, nil
	}
	return verdict{kind: tailGone, until: end, why: "unknown"}, nil
}

// acceptedHole is what the books say of a hole of which nothing is known, and
// that a person accepted.
const acceptedHole = "gone before it was read; accepted"

// vanished books what is gone from the log and was not ours in step.
func (a *adoption) vanished(p *partition, v verdict) error {
	if v.why != "unknown" {
		return a.foreign(p, v.until, v.why)
	}
	if !a.holeKnown {
		if err := a.flush(p); err != nil {
			return err
		}
		return &tailError{StopTargetLostRecords, fmt.Sprintf("target offsets [%d, %d) behind the books are gone from its log before they could be compared, and nothing tells whether they were ours; to go on behind them, whatever they were: resume --recopy", a.at, v.until)}
	}
	return a.giveUp(p, v.until)
}

// giveUp notes target offsets up to one given as lost to the books, as a person
// has accepted. They may have been ours: the target may know the sequence numbers
// that come next as used, and would take what is sent under them for sent before.
// Another producer id is needed, also if this run ends before it has taken one.
func (a *adoption) giveUp(p *partition, until int64) error {
	if err := a.flush(p); err != nil {
		return err
	}
	if err := disown(p.flow.ledger, p.pair.ID); err != nil {
		_ = p.flow.fail(fmt.Errorf("partition %v: give up a producer id: %w", p.source, err))
		return errBooks
	}
	p.renew = true
	return a.harmless(p, until, acceptedHole)
}

// second books a second copy of what the books have already, if it is one: the
// first copies are read from the target, as far as they are still there.
func (a *adoption) second(p *partition, b *readBatch, v verdict) error {
	if err := a.flush(p); err != nil {
		return err
	}
	if v.number < 0 {
		return a.foreign(p, v.until, "under a producer id of ours, with sequence numbers from before its first record")
	}
	parts, err := p.firstCopies(b, ledger.Range{Start: a.at, End: v.until}, v.number)
	if err != nil {
		return err
	}
	if len(parts) == 0 {
		return a.foreign(p, v.until, "under a producer id and sequence numbers of ours, with other content")
	}
	for _, part := range parts {
		if part.origin == (ledger.Range{}) {
			err = a.harmless(p, a.at+part.records, "the second copy of records of ours that have no source any more")
		} else if err = a.flushNote(p); err == nil {
			err = a.duplicate(p, a.at+part.records, part.origin)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// early deals with a batch of ours that stands in front of older ones: a target
// that had forgotten the producer refused those and took this one. Its records
// are copied again in their turn.
func (a *adoption) early(p *partition, b *readBatch, v verdict) (adoptionState, error) {
	skip, n := v.number-a.number, v.until-a.at
	infos, ok := a.lookahead(skip, n)
	if !ok && !a.over && skip+n <= adoptionWindow {
		return wantsSource, nil
	}
	if err := a.flush(p); err != nil {
		return 0, err
	}
	if !ok || !equalTo(b, a.at, infos) {
		return goesOn, a.foreign(p, v.until, "under a producer id and sequence numbers of ours, ahead of others, with content that the source lacks")
	}
	return goesOn, a.duplicate(p, v.until, ledger.Range{Start: infos[0].offset, End: infos[n-1].offset + 1})
}

// equalTo reports whether b holds the given records from a target offset on, as
// far as it still has them.
func equalTo(b *readBatch, at int64, infos []recordInfo) bool {
	for i := range infos {
		if hash, there := b.hashAt(at + int64(i)); there && hash != infos[i].hash {
			return false
		}
	}
	return true
}

// stranger deals with a batch that is not ours. Where the ledger may be an older
// one, a producer id that was taken later is told by its records: exactly those
// that come next. Where the generation ends, that is for the next one to see: its
// copier may have been at work already, before the ledger was put back.
func (a *adoption) stranger(p *partition, b *readBatch) (adoptionState, error) {
	n := b.next - b.base
	if b.base < a.at {
		return a.across(p, b)
	}
	if a.mayBeNewer(b) {
		infos, ok := a.lookahead(0, n)
		if !ok && !a.over && n <= adoptionWindow {
			return wantsSource, nil
		}
		if ok && equalTo(b, a.at, infos) {
			return goesOn, a.learnProducer(p, b)
		}
	}
	if g := p.generationOf(b); g > 0 {
		return goesOn, a.harmless(p, b.next, sentBefore(g))
	}
	if a.closing {
		return tailAdopted, a.flush(p)
	}
	return goesOn, a.foreign(p, b.next, "")
}

// sentBefore is what the books say of what an earlier generation's producer wrote.
func sentBefore(generation int32) string {
	return fmt.Sprintf("sent by generation %d of this copy, and landed after it was closed", generation)
}

// generationOf returns the earlier generation of the copy whose producer wrote a
// batch; 0 if none did.
func (p *partition) generationOf(b *readBatch) int32 {
	l := p.flow.ledger
	for pair, ok := l.Previous(p.pair.ID); ok && b.plain; pair, ok = l.Previous(pair.ID) {
		for _, known := range l.Producers(pair.ID) {
			if known.ID == b.producer.ID && known.Epoch == b.producer.Epoch {
				return pair.Generation
			}
		}
	}
	return 0
}

// learnProducer takes a producer id for one of the pair's.
func (a *adoption) learnProducer(p *partition, b *readBatch) error {
	err := a.confirmed(p)
	if err == nil {
		err = a.flush(p)
	}
	if err != nil {
		return err
	}
	known := b.producer
	known.Appended = a.number
	known.Sequence = known.Next(known.Appended + a.at - b.base)
	if err = p.flow.ledger.SetProducer(p.pair.ID, known); err != nil {
		_ = p.flow.fail(fmt.Errorf("partition %v: record a producer id: %w", p.source, err))
		return errBooks
	}
	p.flow.config.Logger.Info("the target holds the source's next records under a producer id that the ledger does not know; they are adopted",
		"partition", p.source.String(), "target_offset", b.base, "producer_id", known.ID)
	p.renew = true
	a.reader.producers = append(a.reader.producers, known)
	for _, x := range a.batches {
		a.reader.claim(x)
	}
	return nil
}

// foreign notes target offsets up to one given as not ours, which stops the
// partition unless a person tolerates it.
func (a *adoption) foreign(p *partition, until int64, why string) error {
	return a.noteForeign(p, until, why, false)
}

// harmless notes target offsets up to one given that are not the books', of which
// it is known how they came there, or that a person has accepted.
func (a *adoption) harmless(p *partition, until int64, why string) error {
	return a.noteForeign(p, until, why, true)
}

// noteForeign notes target offsets up to one given. They get into the books with
// the next that is something else: one entry for each run.
func (a *adoption) noteForeign(p *partition, until int64, why string, calm bool) error {
	if a.from < a.next || a.note.End != a.at || a.noteWhy != why || a.calm != calm {
		if err := a.flush(p); err != nil {
			return err
		}
		a.note, a.noteWhy, a.calm = ledger.Range{Start: a.at}, why, calm
	}
	a.note.End, a.at = until, until
	return nil
}

// flushNote books what others wrote.
func (a *adoption) flushNote(p *partition) error {
	r := a.note
	a.note = ledger.Range{}
	if r == (ledger.Range{}) {
		return nil
	}
	why, calm := a.noteWhy, a.calm
	return a.later(func() error { return p.enterForeign(r, why, calm) })
}

func (a *adoption) duplicate(p *partition, until int64, origin ledger.Range) error {
	r := ledger.Range{Start: a.at, End: until}
	if err := p.enterNote(ledger.Entry{Tile: ledger.Duplicate, Target: r, Origin: origin}); err != nil {
		return err
	}
	p.flow.config.Logger.Warn("the target holds records twice; the books say where", "partition", p.source.String(),
		"target_offset", a.at, "records", r.Len(), "source_offset", origin.Start)
	a.at = until
	return nil
}

// enterForeign books target offsets that are not ours. That the partition is to
// stop because of them, if they are no calm matter, is in the ledger no later than
// they are.
func (p *partition) enterForeign(r ledger.Range, why string, calm bool) error {
	detail := fmt.Sprintf("target offsets [%d, %d) were written by somebody else", r.Start, r.End)
	if why != "" {
		detail = fmt.Sprintf("target offsets [%d, %d): %s", r.Start, r.End, why)
	}
	if p.tolerates() || calm {
		p.flow.warnOnce("foreign "+p.source.String(), "the target holds records that are not of the copy; they are in the books, and the copy goes on",
			"partition", p.source.String(), "detail", detail)
	} else if p.sticky == nil {
		p.sticky = &stopped{p.flow.ledger.End(p.pair.ID).Source, StopForeignWriter, detail}
		p.flow.bookStop(p.source, *p.sticky, retry{})
	}
	return p.enterNote(ledger.Entry{Tile: ledger.Foreign, Target: r, Reason: why})
}

// enterNote books a tile that advances the target book alone.
func (p *partition) enterNote(e ledger.Entry) error {
	end := p.flow.ledger.End(p.pair.ID).Source
	e.Source, e.LeaderEpoch = ledger.Range{Start: end, End: end}, -1
	if !p.enter(e) {
		return errBooks
	}
	return nil
}

// tolerates reports whether a person said to go on beside foreign records.
func (p *partition) tolerates() bool { return p.flow.order(p.source).TolerateForeign }

// haltForeign stops the partition if foreign records were met that nobody
// tolerates. It reports whether it did.
func (p *partition) haltForeign() bool {
	if p.sticky == nil {
		return false
	}
	if p.tolerates() {
		p.sticky = nil
		return false
	}
	p.haltAt(p.sticky.offset, p.sticky.reason, p.sticky.detail)
	return true
}

// haltFenced stops the partition if somebody else runs under its producer id, and
// nobody has said to go on. It reports whether it did.
func (p *partition) haltFenced() bool {
	if p.fenced == nil {
		return false
	}
	p.haltAt(p.fenced.offset, p.fenced.reason, p.fenced.detail)
	return true
}

// A firstCopy says of which records the next so many of a batch are the second
// copy: those of a source range, or orphans, whose range is empty.
type firstCopy struct {
	records int64
	origin  ledger.Range
}

// firstCopies returns the records of ours from a number on, of which b holds a
// second copy at the given target offsets; nil if the first copies differ.
func (p *partition) firstCopies(b *readBatch, second ledger.Range, number int64) (parts []firstCopy, err error) {
	if err := p.flow.ledger.Commit(); err != nil {
		return nil, p.flow.fail(fmt.Errorf("partition %v: commit: %w", p.source, err))
	}
	end := p.flow.ledger.End(p.pair.ID)
	at, left, last := end.Target, end.Appended, number+second.Len()
	for left > number && at > p.pair.TargetBase {
		e, err := p.flow.ledger.FindTarget(p.pair.ID, at-1)
		if err != nil {
			return nil, p.flow.fail(fmt.Errorf("partition %v: read the books: %w", p.source, err))
		}
		at = e.Target.Start
		if e.Tile != ledger.Copied && e.Tile != ledger.Orphan {
			continue
		}
		left -= e.Target.Len()
		from, to := max(number, left), min(last, left+e.Target.Len())
		if from >= to {
			continue
		}
		first := ledger.Range{Start: at + from - left, End: at + to - left}
		if same, err := p.sameOnTarget(first, b, second.Start+from-number); err != nil || !same {
			return nil, err
		}
		parts = inFront(parts, copyOf(&e, first))
	}
	return parts, nil
}

// copyOf returns what a second copy of an entry's records at target offsets first
// is a copy of.
func copyOf(e *ledger.Entry, first ledger.Range) firstCopy {
	c := firstCopy{records: first.Len()}
	if e.Tile == ledger.Copied {
		c.origin = ledger.Range{Start: e.SourceOf(first.Start), End: e.SourceOf(first.End-1) + 1}
	}
	return c
}

// inFront returns parts with one more in front, which becomes one with the first
// if both have a source, or neither has.
func inFront(parts []firstCopy, c firstCopy) []firstCopy {
	none := ledger.Range{}
	if len(parts) == 0 || (parts[0].origin == none) != (c.origin == none) {
		return append([]firstCopy{c}, parts...)
	}
	parts[0].records += c.records
	if c.origin != none {
		parts[0].origin.Start = c.origin.Start
	}
	return parts
}

// sameOnTarget reports whether the target's records at offsets first equal those
// of b from an offset on, as far as both are there.
func (p *partition) sameOnTarget(first ledger.Range, b *readBatch, from int64) (bool, error) {
	reader := p.newTail(first.Start, first.End)
	reader.hashAll = true
	for {
		x, err := reader.batch()
		if x == nil || err != nil {
			return err == nil, err
		}
		if x.unreadable {
			return false, nil
		}
		for _, r := range x.records {
			if r.offset < first.Start || r.offset >= first.End {
				continue
			}
			if hash, there := b.hashAt(from + r.offset - first.Start); there && hash != r.hash {
				return false, nil
			}
		}
	}
}

// adoptionFailed stops the partition, or begins again, because of an error.
func (p *partition) adoptionFailed(err error) {
	var tail *tailError
	if errors.As(err, &tail) {
		if !p.haltForeign() {
			p.halt(tail.reason, tail.detail)
		}
		return
	}
	switch code := codeOf(err); {
	case errors.Is(err, errAgain):
		p.restart()
	case code == kerr.OffsetOutOfRange:
		p.halt(StopTargetLostRecords, fmt.Sprintf("what stands behind the books on %v, from offset %d on, is gone from the target before it could be compared: %v",
			p.target, p.flow.ledger.End(p.pair.ID).Target, err))
	case errors.Is(err, errBooks) || p.flow.draining():
	case !transient(err):
		p.halt(reasonOf(err), fmt.Sprintf("read %v: %v", p.target, err))
	case p.backoff(err.Error()) && !p.flow.draining():
		p.restart() // everything is read again from the books' end
	}
}
