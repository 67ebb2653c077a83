package ledger

import "math"

// marked is what a checker knows of a pair beside its entries.
type marked struct {
	accepted []acceptance
	doubts   []Doubt
	bad      []Range // of the tiles that are in acceptances
	badOf    []int64 // offsets in bad tiles, for each acceptance
	beyond   int64   // offsets from the cut on in bad tiles that nobody accepted
}

// readMarks reads acceptances and doubts. What they ask of the entries is checked
// when these are known.
func (c *checker) readMarks() error {
	if c.format < formatMarks {
		return nil
	}
	accepted, err := c.values(bucketAccepted, func(key, payload []byte) error {
		id, a, err := decodeAccepted(key, payload)
		if err != nil {
			return err
		}
		p, ok := c.pairs[id]
		if !ok {
			return unknownPair(bucketAccepted, key, id)
		}
		if err := followsAccepted(p.accepted, &a, math.MaxInt64); err != nil {
			return err
		}
		p.accepted, p.badOf = append(p.accepted, a), append(p.badOf, 0)
		return nil
	})
	c.count(bucketAccepted, accepted, c.marks.accepted)
	if err != nil {
		return err
	}
	doubts, err := c.values(bucketDoubts, func(key, payload []byte) error {
		id, d, err := decodeDoubt(key, payload)
		if err != nil {
			return err
		}
		p, ok := c.pairs[id]
		if !ok {
			return unknownPair(bucketDoubts, key, id)
		}
		if err := followsDoubt(p.doubts, &d, math.MaxInt64); err != nil {
			return err
		}
		p.doubts = append(p.doubts, d)
		return nil
	})
	c.count(bucketDoubts, doubts, c.marks.doubts)
	return err
}

// entry notes what an entry means for the acceptances, and for the cut.
func (m *marked) entry(e *Entry, cut *Cut) error {
	if e.Tile.Bad() {
		for i, a := range m.accepted {
			if n := overlap(a.Range, []Range{e.Source}); n > 0 {
				m.bad = append(m.bad, e.Source)
				m.badOf[i] += n
			}
		}
	}
	if cut == nil {
		return nil
	}
	m.beyond += unacceptedOf(m.accepted, badOf([]Entry{*e}, cut))
	return cut.splits(e)
}

// checkMarks checks the acceptances, the doubts and the cut of a pair whose
// entries are all known.
func (c *checker) checkMarks(p *checkedPair) {
	for i, a := range p.accepted {
		key := keyText(bucketAccepted, acceptedKey(p.ID, a.Range.Start))
		coverage := p.bad
		for _, d := range p.doubts {
			coverage = append(coverage, d.Range)
		}
		if first := uncovered(a.Range, coverage); first >= 0 {
			c.violation(bucketAccepted, key, lawAccepted, "source offset %d is neither in a bad tile nor in doubt", first)
		} else if a.bad != p.badOf[i] {
			c.violation(bucketAccepted, key, lawAccepted, "says that %d offsets are in bad tiles; there are %d", a.bad, p.badOf[i])
		}
	}
	for i := range p.doubts {
		if d := &p.doubts[i]; d.Range.End > p.end.source {
			c.violation(bucketDoubts, keyText(bucketDoubts, doubtKey(p.ID, d)), lawDoubts,
				"doubt about %v; the source book ends at %d", d.Range, p.end.source)
		}
	}
	c.checkCut(p)
}

func (c *checker) checkCut(p *checkedPair) {
	cut := p.cut()
	if cut == nil {
		return
	}
	key := keyText(bucketPairs, pairKey(p.ID))
	if err := cut.inside(p.TargetBase, p.end); err != nil {
		c.violation(bucketPairs, key, lawCut, "%s", err.Detail)
	} else if p.cutBad != p.beyond {
		c.violation(bucketPairs, key, lawCut, "says that %d offsets from the cut on are in bad tiles that nobody accepted; there are %d",
			p.cutBad, p.beyond)
	}
}
