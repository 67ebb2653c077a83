package replicate

import (
	"fmt"

	"apograph/ledger"
)

// adoptFrom begins the adoption of what the target holds behind the books. It
// reports false if they cannot be read.
func (p *partition) adoptFrom(end ledger.Position, logEnd int64) bool {
	var err error
	known := p.flow.ledger.State(p.pair.ID).HighWatermark
	if p.adoption, err = newAdoption(p, end, logEnd); err != nil {
		_ = p.flow.fail(fmt.Errorf("partition %v: read the books' end: %w", p.source, err))
		p.phase = phaseStopped
		return false
	}
	p.adoption.sourceEnd = known
	p.asm.keepInfos = true
	return true
}

// adopt matches what is at hand with what the target holds behind the books.
func (p *partition) adopt() {
	for p.phase == phaseCopy && p.adoption != nil && !p.flow.draining() {
		state, err := p.adoption.step(p)
		switch {
		case err != nil:
			p.adoptionFailed(err)
		case state == tailAdopted:
			p.adopted()
		case p.adoptionOver():
			p.adoption.over = true
		case !p.assemble():
			return
		}
	}
}

// adoptionOver reports whether the source has nothing more to match.
func (p *partition) adoptionOver() bool {
	return p.reached() || p.sourceEnded(max(p.adoption.sourceEnd, p.seenEnd, p.end))
}

// adopted goes on behind the target's end, which is that of the books now. What
// the adoption read ahead of the source is fetched again.
func (p *partition) adopted() {
	p.caughtTarget = true
	p.adoption = nil
	p.asm.keepInfos = false
	p.dropAcceptance()
	if p.haltForeign() {
		return
	}
	position := p.flow.ledger.End(p.pair.ID).Source
	again := p.asm.settled() != position
	if again {
		for _, c := range p.chunks {
			p.dealtWith(c)
		}
		p.chunks = nil
		p.asm.discard()
		p.asm.pos = position
	}
	p.newWindow()
	if p.renew && !p.rotate() {
		return
	}
	if again {
		p.resumeFetch(p.asm.pos)
	}
}

// endHolds reports whether the last record of ours in the books stands on the
// target as they know it, as far as it is still there. If it does not the target's
// log was cut and written again, whatever its end: the partition has stopped then,
// or it waits for an answer. It holds until the partition has another leader there,
// since only with one can a log be cut (KIP-101).
func (p *partition) endHolds() bool {
	leader, _ := p.flow.target.leader(p.target)
	detail, err := p.compareNewest()
	switch {
	case err != nil:
		p.adoptionFailed(err)
		return false
	case detail != "":
		if p.flow.exactOrder(p.source).Recopy {
			p.dropAcceptance()
			detail += "; it is not copied again: behind what was written since, order could not be restored"
		}
		p.halt(StopTargetLostRecords, detail)
		return false
	}
	p.comparedAt = leader.epoch
	return true
}

// compareNewest says what is wrong with the last record of ours in the books of the
// open generation, or in those of an earlier one in the same target topic, as far as
// they hold, where the later ones have none.
func (p *partition) compareNewest() (detail string, err error) {
	pair, at := p.pair, p.flow.ledger.End(p.pair.ID)
	for {
		if err := p.commitBooks(p.pair.ID); err != nil {
			return "", p.flow.fail(fmt.Errorf("partition %v: commit: %w", p.source, err))
		}
		e, end, err := p.lastOfOurs(&pair, at.Target)
		if err != nil {
			return "", p.flow.fail(fmt.Errorf("partition %v: read the books: %w", p.source, err))
		}
		if end >= 0 {
			return p.compareEntry(&pair, &e, end, at)
		}
		before, ok := p.flow.ledger.Previous(pair.ID)
		if !ok || !sameTarget(&before, &p.pair) {
			return "", nil
		}
		if at, err = p.placeAt(&before, min(at.Target, pair.TargetBase)); err != nil {
			return "", p.flow.fail(fmt.Errorf("partition %v: read the books: %w", p.source, err))
		}
		pair = before
	}
}

// ledAnew reports whether the target partition has another leader than when the
// books' end was compared.
func (p *partition) ledAnew() bool {
	leader, _ := p.flow.target.leader(p.target)
	return leader.node >= 0 && leader.epoch != p.comparedAt
}

// lastOfOurs returns the last entry of ours that begins below a target offset, and
// where it, or what is below of it, ends; -1 if there is none.
func (p *partition) lastOfOurs(pair *ledger.Pair, below int64) (e ledger.Entry, end int64, err error) {
	for end = below; end > pair.TargetBase && err == nil; end = e.Target.Start {
		e, err = p.flow.ledger.FindTarget(pair.ID, end-1)
		if e.Tile == ledger.Copied || e.Tile == ledger.Orphan {
			return e, end, err
		}
	}
	return e, -1, err
}

// placeAt returns the end of a pair's books below a target offset: how many records
// of ours they count up to there.
func (p *partition) placeAt(pair *ledger.Pair, target int64) (ledger.Position, error) {
	at := p.flow.ledger.End(pair.ID)
	if target >= at.Target {
		return at, nil
	}
	at.Target = target
	for e, err := range p.flow.ledger.EntriesFromTarget(pair.ID, target) {
		if err != nil {
			return at, err
		}
		if e.Tile == ledger.Copied || e.Tile == ledger.Orphan {
			at.Appended -= e.Target.End - max(e.Target.Start, target)
		}
	}
	return at, nil
}

// commitBooks makes the books of a pair readable to their end: only what is
// committed can be read.
func (p *partition) commitBooks(id ledger.PairID) error {
	if l := p.flow.ledger; l.Committed(id) != l.End(id) {
		return l.Commit()
	}
	return nil
}

// compareEntry says what is wrong with the target's log at offset end-1, which the
// last entry of ours below a place in a pair's books has, in whole or in part: "" if
// nothing is. A batch that is ours by its sequence number is what the books say; else
// the content of the entry is compared.
func (p *partition) compareEntry(pair *ledger.Pair, e *ledger.Entry, end int64, at ledger.Position) (detail string, err error) {
	reader := p.tailOf(pair.ID, end-1, end)
	reader.headers = true
	b, err := reader.batch()
	switch {
	case err != nil || b == nil || b.base >= end:
		return "", err
	case b.ours && b.number+end-b.base == at.Appended:
		return "", nil
	}
	detail = fmt.Sprintf("the target's log was cut below the books, and written again: offset %d does not hold what the books say", end-1)
	if b.ours || e.Tile != ledger.Copied || e.Target.End > at.Target {
		return detail, nil
	}
	same, err := p.holdsEntry(e)
	if same || err != nil {
		detail = ""
	}
	return detail, err
}

// holdsEntry reports whether the target's records are those of a copied entry, as
// far as it still has them.
func (p *partition) holdsEntry(e *ledger.Entry) (bool, error) {
	reader := p.newTail(e.Target.Start, e.Target.End)
	reader.hashAll, reader.stamped = true, e.TimestampsReplaced
	var digest ledger.Digest
	for at := e.Target.Start; ; {
		b, err := reader.batch()
		if err != nil {
			return false, err
		}
		if b == nil {
			return at < e.Target.End || digest == e.Digest, nil
		}
		if b.unreadable {
			return false, nil
		}
		for ; at < min(b.next, e.Target.End); at++ {
			hash, there := b.hashAt(at)
			if !there {
				return true, nil // compacted, or deleted: nothing can be said
			}
			digest = digest.Add(hash)
		}
	}
}
