package verify

import "apograph/ledger"

// A mark is a place in a pair's list of entries: where both books stand.
type mark struct{ source, target int64 }

// A stretch is a run of entries and what they sum up to. A mark bounds one only
// where a source offset does as well: entries that stand at the same source
// offset, as notes in front of a copy do, are never torn apart.
type stretch struct {
	from, to mark

	records  int64         // copied
	replaced int64         // of them, those compared without their time
	bytes    int64         // canonical bytes of them
	digest   ledger.Digest // of them, in order
}

// add puts the next entry behind the stretch.
func (s *stretch) add(e *ledger.Entry) {
	s.to = mark{e.Source.End, e.Target.End}
	if e.Tile != ledger.Copied {
		return
	}
	n := e.Target.Len()
	s.records += n
	s.bytes += e.Bytes
	s.digest = ledger.Concat(s.digest, e.Digest, n)
	if e.TimestampsReplaced {
		s.replaced += n
	}
}

// join puts the next stretch behind s.
func (s *stretch) join(next *stretch) {
	s.to = next.to
	s.records += next.records
	s.replaced += next.replaced
	s.bytes += next.bytes
	s.digest = ledger.Concat(s.digest, next.digest, next.records)
}

// stretch sums up the entries between two marks.
func (b *books) stretch(from, to mark) (stretch, error) {
	s := stretch{from: from, to: from}
	for e, err := range b.entries(from.source) {
		switch {
		case err != nil:
			return s, err
		case e.Source.Start >= to.source:
			return s, nil
		}
		s.add(&e)
	}
	return s, nil
}

// start and limit return where the books begin and end.
func (b *books) start() mark { return mark{0, b.pair.TargetBase} }
func (b *books) limit() mark { return mark{b.end.Source, b.end.Target} }

// A part is a run of entries that is compared at a time. What lies before and
// behind it is read as well, as far as the alignment needs it to tell what has
// happened at the borders, and belongs to another part: each finding and each
// count comes from the one part that has its source offset.
type part struct {
	from, to    mark
	lead, trail mark // what is read
	block       int64
	last        bool // it ends where the books do, and has what the target holds behind them
}

// whole returns the part that is everything.
func (b *books) whole() part {
	return part{from: b.start(), to: b.limit(), lead: b.start(), trail: b.limit(), last: true}
}

// contextRecords is how many records before and behind a part are read as well.
const contextRecords = 512

// surround says what is read around a part.
func (b *books) surround(p *part, records int64) error {
	p.lead, p.trail = p.from, p.to
	if back := max(p.from.target-records, b.pair.TargetBase); back < p.from.target {
		e, err := b.ledger.FindTarget(b.pair.ID, back)
		if err != nil {
			return err
		}
		p.lead = mark{e.Source.Start, e.Target.Start}
	}
	if ahead := min(p.to.target+records, b.end.Target); ahead > p.to.target {
		e, err := b.ledger.FindTarget(b.pair.ID, ahead-1)
		if err != nil {
			return err
		}
		p.trail = mark{min(e.Source.End, b.end.Source), min(e.Target.End, b.end.Target)}
	}
	return nil
}

// reach returns up to where the target is read for a part behind which the books
// go on to an end. Where that is near, records that stand higher than booked
// stand behind it.
func (p *part) reach(end int64) int64 {
	if p.trail.target == end {
		return end + slack
	}
	return p.trail.target
}

// before and behind report whether an entry lies outside of what is read for
// the part.
func (p *part) before(e *ledger.Entry) bool {
	return e.Source.Start < p.lead.source || e.Target.Start < p.lead.target
}

func (p *part) behind(e *ledger.Entry) bool {
	return !p.last && e.Source.Start >= p.trail.source && e.Target.Start >= p.trail.target
}

// A tally takes the counts and findings of one part, or of what is read beside
// it.
type tally struct {
	counts     *Counts
	findings   *findings
	unverified map[lack]*unverified
	vanished   *unverified // of a target that holds nothing

	anyShift bool  // records stand elsewhere than booked, from some place on
	stands   int64 // by how much higher the last record does that was found
	found    bool  // one was
}

// An unverified is the records that a reason concerns, and where they lie.
type unverified struct {
	records        int64
	source, target Range
}

func newTally(f *findings) *tally {
	return &tally{
		counts:     &Counts{},
		findings:   &findings{topic: f.topic, partition: f.partition, limit: f.limit},
		unverified: map[lack]*unverified{},
	}
}

// tallies has one tally for what lies before a part, one for the part, and one
// for what lies behind it. Of the last part the third is what the target holds
// behind the books.
type tallies struct {
	part               part
	before, in, behind *tally
}

func newTallies(p part, f *findings) tallies {
	return tallies{part: p, before: newTally(f), in: newTally(f), behind: newTally(f)}
}

// of returns the tally for what has to do with a source offset.
func (t *tallies) of(source int64) *tally {
	switch {
	case source < t.part.from.source:
		return t.before
	case source >= t.part.to.source:
		return t.behind
	default:
		return t.in
	}
}

// moves reports whether records stand elsewhere than booked where the part ends.
func (t *tallies) moves() bool {
	if t.in.found {
		return t.in.stands != 0
	}
	return t.before.stands != 0
}

// own returns the tallies that the report is made of.
func (t *tallies) own() []*tally {
	if t.part.last {
		return []*tally{t.in, t.behind}
	}
	return []*tally{t.in}
}
