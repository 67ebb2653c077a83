package replicate

import (
	"fmt"
	"math"
	"slices"
	"time"

	"apograph/ledger"
)

// What the target has lost is copied again by a person's word: the generation is
// closed where the target's log was cut, and the next one begins there.

// A shortfall is what the target has lost whose log ends below the books: their
// end, and maybe all of them and the end of earlier generations' books.
type shortfall struct {
	logEnd int64
	cut    ledger.Cut // where the open generation is cut off
	start  int64      // source offset from which on all that is lost is copied again

	holder ledger.Pair // the generation whose books have what stands in front of the log's end
	held   ledger.Cut  // where it is cut off

	forever string // what cannot be copied again, as the source topic is another one by now; "" if nothing
}

// lostRecords deals with a target whose log ends below the books.
func (p *partition) lostRecords(logEnd int64) {
	lost, err := p.shortfall(logEnd)
	if err != nil {
		p.unreadBooks(err)
		return
	}
	detail := lost.detail(p.flow.ledger.End(p.pair.ID).Target)
	if !p.flow.exactOrder(p.source).Recopy {
		p.halt(StopTargetLostRecords, detail+lost.wayOut())
		return
	}
	if p.confirm(lost, detail, "; it is not copied again: ") {
		p.reopen(detail, opening{start: lost.start, base: logEnd, cut: &lost.cut})
	}
}

func (s *shortfall) detail(books int64) string {
	return fmt.Sprintf("the target's log ends at offset %d, the books at %d: what stood there of source offset %d and above is lost", s.logEnd, books, s.start)
}

// wayOut says what a person can do.
func (s *shortfall) wayOut() string {
	if s.forever != "" {
		return ", and " + s.forever
	}
	return "; to copy it again: resume --recopy"
}

// confirm reports whether what is lost can be cut off: all of it can be copied
// again, and what stands in front of the log's end is what the books say. Else the
// partition has stopped, or waits.
func (p *partition) confirm(lost *shortfall, detail, refused string) bool {
	wrong, err := lost.forever, error(nil)
	if wrong == "" {
		wrong, err = p.compareCut(lost)
	}
	switch {
	case err != nil:
		p.adoptionFailed(err)
	case wrong != "":
		p.dropAcceptance()
		p.halt(StopTargetLostRecords, detail+refused+wrong)
	}
	return err == nil && wrong == ""
}

// unreadBooks ends the flow: the ledger cannot be read.
func (p *partition) unreadBooks(err error) {
	_ = p.flow.fail(fmt.Errorf("partition %v: read the books: %w", p.source, err))
}

// shortfall finds out what a target has lost whose log ends below the books. It
// goes down through the earlier generations to the one that has what stands in
// front of the log's end.
func (p *partition) shortfall(logEnd int64) (*shortfall, error) {
	l := p.flow.ledger
	if err := l.Commit(); err != nil { // only what is committed can be read
		return nil, err
	}
	cut, err := l.CutAt(p.pair.ID, logEnd)
	if err != nil {
		return nil, err
	}
	s := &shortfall{logEnd: logEnd, cut: cut, start: cut.Source, holder: p.pair, held: cut}
	for logEnd <= s.holder.TargetBase {
		before, ok := l.Previous(s.holder.ID)
		if !ok || !sameTarget(&before, &p.pair) {
			break
		}
		held, err := l.CutAt(before.ID, logEnd)
		switch {
		case err != nil:
			return nil, err
		case before.SourceTopicID == p.pair.SourceTopicID:
			s.start, s.holder, s.held = min(s.start, held.Source), before, held
		default:
			s.lostForever(&before, held, l.Committed(before.ID))
			return s, nil
		}
	}
	return s, nil
}

// lostForever notes what is lost of a generation of another source topic.
func (s *shortfall) lostForever(pair *ledger.Pair, held ledger.Cut, end ledger.Position) {
	if c := pair.Closed.Cut; c != nil {
		end.Source, end.Target = c.Source, c.Target
	}
	if held.Target == end.Target {
		return
	}
	s.forever = fmt.Sprintf("source offsets [%d, %d) of generation %d cannot be copied again, since their topic is gone: "+
		"delete the target topic, and resume --recopy copies all that the source still has", held.Source, end.Source, pair.Generation)
}

// compareCut says what is wrong with what the target still holds in front of its
// log's end, by the number of its last record and the content of the last entry
// that is there as a whole; "" if nothing is.
func (p *partition) compareCut(lost *shortfall) (wrong string, err error) {
	pair, cut := &lost.holder, lost.held
	at, err := p.placeAt(pair, cut.Target)
	if err != nil {
		return "", err
	}
	last, from, err := p.lastOfOurs(pair, cut.Target)
	if err != nil {
		return "", err
	}
	if from >= 0 {
		if wrong, err = p.compareEntry(pair, &last, from, at); wrong != "" || err != nil {
			return wrong, err
		}
	}
	for end := cut.Target; end > pair.TargetBase; {
		e, err := p.flow.ledger.FindTarget(pair.ID, end-1)
		if err != nil {
			return "", err
		}
		if end = e.Target.Start; e.Tile != ledger.Copied || e.Target.End > cut.Target {
			continue
		}
		same, err := p.holdsEntry(&e)
		if err == nil && !same {
			wrong = fmt.Sprintf("target offsets [%d, %d) do not hold what the books say", e.Target.Start, e.Target.End)
		}
		return wrong, err
	}
	return "", nil
}

// recopyAll begins the copy again in a target topic that was created anew: of all
// generations in the one that is gone, as far as they are of the source topic
// that there is.
func (p *partition) recopyAll(why string) {
	pair, _ := p.flow.ledger.Pair(p.pair.ID)
	p.reopen(why, opening{start: p.scopeStart(), cut: &ledger.Cut{Source: pair.ScopeStart, Target: pair.TargetBase}})
}

// scopeStart returns where the scope of all generations begins that copied the source
// topic to the target topic of the open one: what lies below was never to be copied.
func (p *partition) scopeStart() int64 {
	pair, _ := p.flow.ledger.Pair(p.pair.ID) // what is before the start may have grown since the opening
	start := pair.ScopeStart
	for at := p.pair.ID; ; {
		before, ok := p.flow.ledger.Previous(at)
		if !ok || before.SourceTopicID != p.pair.SourceTopicID || !sameTarget(&before, &p.pair) {
			return start
		}
		at, start = before.ID, min(start, before.ScopeStart)
	}
}

// awaitTarget waits for the survey to make the target topic again.
func (p *partition) awaitTarget(detail string) {
	p.halt(StopTargetDeleted, detail+"; it is being made again")
	p.retry.at = p.flow.now().Add(time.Second)
	p.flow.lookNow()
}

// toBeRecopied reports whether a person said to copy a topic again that is gone
// from the target.
func (f *Flow) toBeRecopied(name string) bool {
	ordered := false
	f.mu.Lock()
	for tp, o := range f.orders {
		ordered = ordered || o.Recopy && tp.topic == name
	}
	f.mu.Unlock()
	return ordered && slices.ContainsFunc(f.ledger.Stops(), func(s ledger.Stop) bool {
		tp := topicPartition{s.SourceTopic, s.Partition}
		return s.SourceTopic == name && StopReason(s.Reason) == StopTargetDeleted && f.exactOrder(tp).Recopy
	})
}

// bookTail settles what stands behind the books of a generation that is to be
// closed, or what they have and the target lost. It returns where the books end
// then, and where the next generation is to begin so that nothing of the same
// source topic is left out: at a source offset, or below. It reports false if the
// partition has stopped, or waits.
func (p *partition) bookTail() (b opening, ok bool) {
	logEnd, ok := p.knownEnd()
	end := p.flow.ledger.End(p.pair.ID)
	b = opening{start: math.MaxInt64, base: end.Target}
	switch {
	case !ok:
		return b, false
	case logEnd < end.Target:
		return p.cutTail(logEnd)
	case !p.endHolds():
		return b, false
	case logEnd == end.Target:
		return b, true
	case !p.bookWithoutSource(end, logEnd):
		return b, false
	}
	b.base = p.flow.ledger.End(p.pair.ID).Target
	return b, !p.haltForeign()
}

// cutTail cuts the books off where the target's log ends below them. Of a source
// topic that is another one by now, nothing is copied again: a person has said to
// go on without.
func (p *partition) cutTail(logEnd int64) (b opening, ok bool) {
	lost, err := p.shortfall(logEnd)
	if err != nil {
		p.unreadBooks(err)
		return b, false
	}
	if p.sourceGone() != nil {
		lost.forever = ""
	}
	detail := lost.detail(p.flow.ledger.End(p.pair.ID).Target)
	if !p.confirm(lost, detail, "; the next generation cannot begin there: ") {
		return b, false
	}
	return opening{start: lost.start, base: logEnd, cut: &lost.cut, lost: "; " + detail}, true
}

// bookWithoutSource books what stands behind the books, without its source: what
// is ours in step has none any more. What others wrote, and all behind it, is left
// to the next generation, if there is to be one.
func (p *partition) bookWithoutSource(end ledger.Position, logEnd int64) bool {
	a, err := newAdoption(p, end, logEnd)
	a.over, a.cutKnown, a.holeKnown, a.fresh, a.closing = true, true, true, false, !p.orphaned()
	for state := goesOn; err == nil && state != tailAdopted; {
		state, err = a.step(p)
	}
	if err != nil {
		p.adoptionFailed(err)
		return false
	}
	return true
}
