package verify

import (
	"apograph/ledger"
)

// An Accepted says who knows of what a finding says, and accepts it.
type Accepted struct {
	By     string `json:"by"`
	At     Time   `json:"at"`
	Reason string `json:"reason"`
}

// A piece is a part of a range that one acceptance, or none, is about.
type piece struct {
	Range
	accepted *Accepted
}

// pieces cuts a source range where acceptances begin and end.
func (b *books) pieces(r ledger.Range) (list []piece) {
	for _, a := range b.accepted {
		if a.Range.End <= r.Start || a.Range.Start >= r.End {
			continue
		}
		if a.Range.Start > r.Start {
			list = append(list, piece{Range{r.Start, a.Range.Start}, nil})
		}
		end := min(a.Range.End, r.End)
		list = append(list, piece{
			Range{max(a.Range.Start, r.Start), end}, &Accepted{a.By, timeOf(a.AtMillis), a.Reason},
		})
		r.Start = end
	}
	if !r.Empty() {
		list = append(list, piece{*rangeOf(r), nil})
	}
	return list
}

// bad reports a bad tile, which is a fault where nobody accepts it.
func (b *books) bad(f *findings, e *ledger.Entry, found Finding) {
	for _, p := range b.pieces(e.Source) {
		found.Source = &Range{p.Start, p.End}
		found.Fault, found.Accepted = p.accepted == nil, p.accepted
		f.add(found)
	}
}

// doubt reports what the books say that may not hold. What the target lost may
// still be in doubt; what it keeps of a source that was cut is set aside.
func (b *books) doubt(f *findings) {
	for _, d := range b.doubts {
		if !b.kept {
			b.doubtIn(d.Range, f.add)
			continue
		}
		b.doubtIn(ledger.Range{Start: d.Range.Start, End: min(d.Range.End, b.cut.Source)}, f.add)
		b.doubtIn(ledger.Range{Start: max(d.Range.Start, b.cut.Source), End: d.Range.End}, f.aside)
	}
}

func (b *books) doubtIn(r ledger.Range, add func(Finding)) {
	for _, p := range b.pieces(r) {
		add(Finding{
			Kind: StaleKeysPossible, Accepted: p.accepted, Source: &Range{p.Start, p.End},
			Detail: "records were compacted away before they were copied, and their tombstones may have been too: the target may still show keys that the source has deleted",
		})
	}
}

// same reports whether two findings are accepted by the same person for the same
// reason, or neither is.
func (a *Accepted) same(b *Accepted) bool {
	return a == b || a != nil && b != nil && a.By == b.By && a.Reason == b.Reason && a.At.Equal(b.At.Time)
}
