package fuzz

import (
	"apograph/ledger"
	"apograph/translate"
)

// translate asks for every offset of both sides, from 0 to beyond the end, and
// compares with looking through the list of what is copied.
func (p *simProof) translate() {
	const beyond = 3
	var forward, backward []translate.Query
	for offset := range p.highest + 1 + beyond {
		forward = append(forward, translate.Query{Topic: p.partition.topic, Partition: p.partition.partition, Offset: offset})
	}
	for offset := range int64(len(p.target)) + 1 + beyond {
		backward = append(backward, translate.Query{Topic: p.partition.topic, Partition: p.partition.partition, Offset: offset})
	}
	index := translate.NewIndex(p.book)
	answers, err := index.Forward(p.t.Context(), forward)
	p.must(err)
	for i, a := range answers {
		got, want := simAnswer{a.TargetOffset, a.Status, a.Distance}, p.wantForward(int64(i))
		if got != want {
			p.wrong("source offset %d translates to %v, want %v", i, got, want)
		}
	}
	answers, err = index.Reverse(p.t.Context(), backward)
	p.must(err)
	for i, a := range answers {
		got, want := simAnswer{a.SourceOffset, a.Status, a.Distance}, p.wantReverse(int64(i))
		if got != want {
			p.wrong("target offset %d translates to %v, want %v", i, got, want)
		}
	}
}

// A simAnswer is what a translation has to say.
type simAnswer struct {
	offset   int64
	status   translate.Status
	distance int64
}

func (p *simProof) wantForward(offset int64) simAnswer {
	want := simAnswer{offset: int64(len(p.target)), status: translate.End}
	for _, c := range p.copied {
		if c.source >= offset {
			want.offset, want.status = c.target, translate.Exact
			break
		}
	}
	before := func(at int64) bool { return at < p.highest && p.source[at] == ledger.BeforeStart }
	switch {
	case offset > p.highest:
		want.status, want.distance = translate.BeyondCopied, offset-p.highest
	case p.bad(offset):
		want.status = translate.Lost
		for at := offset; p.bad(at); at++ {
			want.distance++
		}
	case before(offset):
		want.status = translate.BeforeStart
		for at := offset; before(at); at++ {
			want.distance++
		}
	}
	return want
}

func (p *simProof) bad(offset int64) bool { return offset < p.highest && p.source[offset].Bad() }

func (p *simProof) wantReverse(offset int64) simAnswer {
	want := simAnswer{offset: p.highest, status: translate.End}
	for _, c := range p.copied {
		if c.target >= offset {
			want.offset, want.status = c.source, translate.Exact
			break
		}
	}
	switch end, base := int64(len(p.target)), p.base; {
	case offset > end:
		want.status, want.distance = translate.BeyondCopied, offset-end
	case offset < base: // an older generation's
		want.status, want.distance = translate.BeforeStart, base-offset
	}
	return want
}
