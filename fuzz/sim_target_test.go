package fuzz

import (
	"bytes"
	"slices"

	"apograph/internal/kafkatest"
	"apograph/ledger"
)

// checkTarget holds what the target holds to what the books say of it, offset by
// offset. Records are told apart by their timestamps, which no two have in
// common. A copy is the record that the source held at the offset that the book
// says; what is there twice is called a duplicate; what somebody else wrote is
// called foreign; an orphan is one that the source held and holds no more. With
// what checkTile says of the source's side, nothing is missing.
func (p *simProof) checkTarget() {
	first := map[int64]int64{} // target offset by timestamp
	last := struct{ source, generation int64 }{-1, -1}
	for i, got := range p.target {
		if got.Offset != int64(i) {
			p.wrong("target offset %d after %d", got.Offset, i-1)
			return
		}
		b, claim := p.claimOf(got.Offset)
		if b == nil {
			p.wrong("no book accounts for target offset %d, %+v", i, got)
			continue
		}
		before, twice := first[got.Timestamp]
		if !twice {
			first[got.Timestamp] = got.Offset
		}
		switch {
		case claim.tile == ledger.Foreign:
			if !p.foreign[got.Timestamp] && !twice {
				p.wrong("target offset %d is called foreign: %+v", i, got)
			}
		case twice != (claim.tile == ledger.Duplicate):
			p.wrong("target offset %d is %v, and holds what stands at %d (%t)", i, claim, before, twice)
		case twice:
			p.checkDuplicate(got, claim)
		case claim.tile == ledger.Orphan:
			p.checkOrphan(b, got)
		case claim.tile != ledger.Copied:
			p.wrong("target offset %d is %v", i, claim.tile)
		default:
			p.checkCopy(b, claim, got)
			if generation := int64(b.pair.Generation); last.generation == generation && claim.source <= last.source {
				p.wrong("target offset %d is source offset %d, after %d", i, claim.source, last.source)
			} else {
				last.source, last.generation = claim.source, generation
			}
		}
	}
	p.checkStanding()
}

// claimOf returns what the books say of an offset of the target's present log.
func (p *simProof) claimOf(offset int64) (*simBooks, simClaim) {
	for _, b := range slices.Backward(p.books) {
		if claim, ok := b.target[offset]; ok && b.pair.TargetTopicID == p.targetID && offset < b.targetEnds {
			return b, claim
		}
	}
	return nil, simClaim{}
}

// checkCopy holds a copy to what the source held at its offset, and holds still,
// if the books answer for that offset today.
func (p *simProof) checkCopy(b *simBooks, claim simClaim, got kafkatest.Record) {
	want, ok := p.archive.held(b.pair.SourceTopicID, claim.source, got.Timestamp)
	switch now, is := p.archive.now().records[claim.source]; {
	case !ok:
		p.wrong("target offset %d: the source never had it at offset %d: %+v", got.Offset, claim.source, got)
	case !simEqual(want, got):
		p.wrong("target offset %d is %+v, not %+v", got.Offset, got, want)
	case p.answering(claim.source) == b && is && now.Timestamp != got.Timestamp && claim.source >= p.archive.forgotten:
		p.wrong("target offset %d is what source offset %d held before, and holds no more", got.Offset, claim.source)
	}
}

// checkOrphan holds an orphan to what the source ever held.
func (p *simProof) checkOrphan(b *simBooks, got kafkatest.Record) {
	for _, e := range p.archive.eras {
		for offset, r := range e.records {
			if r.Timestamp != got.Timestamp {
				continue
			}
			now, is := p.archive.now().records[offset]
			still := is && now.Timestamp == got.Timestamp
			generation := b.pair.Generation
			if still && !simIn(p.archive.lost, generation, offset) && !simIn(p.archive.compacted, generation, offset) {
				p.wrong("target offset %d is an orphan, and the source had it: %d", got.Offset, offset)
			}
			return
		}
	}
	p.wrong("target offset %d is an orphan, and the source never had it: %+v", got.Offset, got)
}

// checkDuplicate holds the origin of a double to where the source had it.
func (p *simProof) checkDuplicate(got kafkatest.Record, claim simClaim) {
	for _, e := range p.archive.eras {
		for offset := claim.origin.Start; offset < claim.origin.End; offset++ {
			if r, ok := e.records[offset]; ok && r.Timestamp == got.Timestamp && simEqual(r, got) {
				return
			}
		}
	}
	p.wrong("target offset %d is called a double of source offsets %v, and is not: %+v", got.Offset, claim.origin, got)
}

// checkStanding asks whether each copy that the books of today count on stands in
// the target's present log.
func (p *simProof) checkStanding() {
	for _, b := range p.books {
		for _, c := range b.copied {
			if p.answering(c.source) != b {
				continue
			}
			if owner, claim := p.claimOf(c.target); owner != b || claim.source != c.source || c.target >= int64(len(p.target)) {
				p.wrong("source offset %d is at target offset %d, by the book of generation %d: it does not stand there", c.source, c.target, b.pair.Generation)
			}
		}
	}
}

func simEqual(a, b kafkatest.Record) bool {
	same := func(x, y []byte) bool { return (x == nil) == (y == nil) && bytes.Equal(x, y) }
	return a.Timestamp == b.Timestamp && same(a.Key, b.Key) && same(a.Value, b.Value) &&
		slices.EqualFunc(a.Headers, b.Headers, func(x, y kafkatest.Header) bool { return x.Key == y.Key && same(x.Value, y.Value) })
}
