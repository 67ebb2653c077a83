package replicate

import (
	"fmt"

	"apograph/ledger"
)

// What a copier with a newer ledger wrote across the end of an older one's books.

// mayBeNewer reports whether a batch of an unknown producer may be that of a copier
// whose ledger knew more than this one does.
func (a *adoption) mayBeNewer(b *readBatch) bool {
	return a.fresh && b.plain && int64(len(b.records)) == b.next-b.base
}

// across deals with a batch of an unknown producer that holds the end of the books,
// and more: a newer ledger's copier had copied again there what the target had lost.
// It is adopted if it holds what the books say in front of their end, and behind it
// exactly what comes next on the source.
func (a *adoption) across(p *partition, b *readBatch) (adoptionState, error) {
	n := b.next - a.at
	infos, ok := a.lookahead(0, n)
	if !ok && !a.over && n <= adoptionWindow {
		return wantsSource, nil
	}
	if !ok || !equalTo(b, a.at, infos) {
		return 0, a.rewritten(b)
	}
	same, err := p.holdsBooks(ledger.Range{Start: b.base, End: a.at})
	if err != nil {
		return 0, err
	}
	if !same {
		return 0, a.rewritten(b)
	}
	return goesOn, a.learnProducer(p, b)
}

// holdsBooks reports whether target offsets hold the copied records that the books
// say, and nothing else.
func (p *partition) holdsBooks(r ledger.Range) (bool, error) {
	if r.Start < p.pair.TargetBase {
		return false, nil
	}
	for at := r.End; at > r.Start; {
		e, err := p.flow.ledger.FindTarget(p.pair.ID, at-1)
		if err != nil {
			return false, p.flow.fail(fmt.Errorf("partition %v: read the books: %w", p.source, err))
		}
		if e.Tile != ledger.Copied || e.Target.End > r.End {
			return false, nil
		}
		if same, err := p.holdsEntry(&e); err != nil || !same {
			return false, err
		}
		at = e.Target.Start
	}
	return true, nil
}
