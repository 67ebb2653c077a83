package verify

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"apograph/internal/canon"
	"apograph/ledger"
)

// Blocks are what samples are made of: the books of a partition are cut, from
// their beginning on, behind every entry with which a block has blockBytes
// canonical bytes or blockOffsets offsets of one side. Books are only appended
// to, so that blocks stay where they are while a flow goes on, but for the last
// one, which grows.
const (
	blockBytes   = 16 << 20
	blockOffsets = 1 << 16

	// partBlocks bounds what is read before it is noted as proven, and so what
	// has to be read again after a kill.
	partBlocks = 16
)

// A grain says how finely books are cut; zero is the default. Tests change it.
type grain struct {
	bytes, offsets int64 // of a block
	blocks         int64 // of a part
	context        int64 // records around a part
}

func (g *grain) setDefaults() {
	if *g == (grain{}) {
		*g = grain{blockBytes, blockOffsets, partBlocks, contextRecords}
	}
}

// A Slice is one of several that are everything together: the Index-th, from 1
// on, of Of. The zero Slice is everything.
type Slice struct{ Index, Of int }

// ParseSlice parses "i/n".
func ParseSlice(text string) (Slice, error) {
	index, of, ok := strings.Cut(text, "/")
	i, err1 := strconv.Atoi(index)
	n, err2 := strconv.Atoi(of)
	s := Slice{i, n}
	if !ok || err1 != nil || err2 != nil || !s.valid() {
		return Slice{}, fmt.Errorf("%q is no i/n with 1 <= i <= n: 3/30 is the third of thirty slices", text)
	}
	return s, nil
}

func (s Slice) valid() bool { return s.Index >= 1 && s.Index <= s.Of }

// String returns "i/n".
func (s Slice) String() string { return fmt.Sprintf("%d/%d", s.Index, s.Of) }

// has reports whether a block of a source partition is in the slice. The first
// blocks of partitions are spread over the slices by name, since most have no
// more than one.
func (s Slice) has(tp topicPartition, block int64) bool {
	if s.Of <= 1 {
		return true
	}
	first := canon.Sum([]byte(tp.String())) >> 1 // not negative
	return (int64(first%uint64(s.Of))+block)%int64(s.Of) == int64(s.Index-1)
}

// A cell is a run of entries in one block that earlier proofs cover as a whole
// or not at all.
type cell struct {
	stretch
	block int64
}

// A planner cuts the books of a pair into cells, entry by entry.
type planner struct {
	grain  grain
	proofs []proof // earlier ones, in order
	cells  []cell

	cuts    []int64 // source offsets at which proofs begin and end, in order
	block   int64
	bytes   int64 // of the block so far
	offsets int64
	torn    bool // a cut may lie here: the last entry has moved the source on
}

func newPlanner(g grain, proofs []proof) *planner {
	p := &planner{grain: g, proofs: proofs, torn: true}
	for i := range proofs {
		p.cuts = append(p.cuts, proofs[i].Source.Start, proofs[i].Source.End)
	}
	slices.Sort(p.cuts)
	return p
}

func (p *planner) add(e *ledger.Entry) {
	if p.torn {
		p.cut(e)
	}
	p.cells[len(p.cells)-1].add(e)
	p.bytes += e.Bytes
	p.offsets += max(e.Source.Len(), e.Target.Len())
	p.torn = !e.Source.Empty()
}

// cut begins a new cell in front of an entry if there is a reason.
func (p *planner) cut(e *ledger.Entry) {
	reason := len(p.cells) == 0
	if p.bytes >= p.grain.bytes || p.offsets >= p.grain.offsets {
		p.block++
		p.bytes, p.offsets = 0, 0
		reason = true
	}
	for len(p.cuts) > 0 && p.cuts[0] <= e.Source.Start {
		reason = reason || p.cuts[0] == e.Source.Start
		p.cuts = p.cuts[1:]
	}
	if reason {
		from := mark{e.Source.Start, e.Target.Start}
		p.cells = append(p.cells, cell{stretch: stretch{from: from, to: from}, block: p.block})
	}
}

// covered returns the cells that a proof is about, nil if they are not what it
// was made of. A proof ends where a cell does, or at the end of the books.
func (p *planner) covered(proof *proof) []cell {
	first, ok := slices.BinarySearchFunc(p.cells, proof.Source.Start, func(c cell, source int64) int {
		return int(min(max(c.from.source-source, -1), 1))
	})
	if !ok {
		return nil
	}
	sum := stretch{from: p.cells[first].from, to: p.cells[first].from}
	for i := first; i < len(p.cells) && sum.to.source < proof.Source.End; i++ {
		sum.join(&p.cells[i].stretch)
		if proof.about(&sum) {
			return p.cells[first : i+1]
		}
	}
	return nil
}

// A plan says what is done about each cell of a pair.
type plan struct {
	slice Slice
	cells []cell
	kept  []proof // earlier and new ones, in order: what the state will hold
	valid bool    // kept is what there is: both sides could be asked
}

// A skipping gathers what is not read, and why.
type skipping struct {
	records      int64
	cells        int
	hull         stretch
	reason       Reason
	what, behind string
}

func (s *skipping) add(c *stretch) {
	if s.cells == 0 {
		s.hull = *c
	}
	s.cells++
	s.records += c.records
	s.hull.to = c.to
}

// note counts what was skipped as not verified, and reports it.
func (s *skipping) note(j *job) {
	if s.cells == 0 {
		return
	}
	j.row.NotVerified += s.records
	if s.records > 0 {
		j.findings.note(NotVerified, s.reason, &Range{s.hull.from.source, s.hull.to.source}, &Range{s.hull.from.target, s.hull.to.target},
			"%s %s", counted(s.records, "copied record"), s.what)
	}
}

// skipTail reports that what the target holds behind the books is not looked at,
// if it should be.
func (s *skipping) skipTail(j *job, until Until) {
	if until == UntilBook {
		j.row.AfterBook = j.beyond()
	}
	if n := j.beyond(); n > 0 && j.followed(until) {
		end := j.books.limit()
		j.findings.note(NotVerified, s.reason, at(end.source), &Range{end.target, end.target + n}, "behind the books, and %s", s.behind)
	}
}

func outside(s Slice) *skipping {
	return &skipping{reason: Sample, what: fmt.Sprintf("lie outside of sample %v", s), behind: fmt.Sprintf("outside of sample %v", s)}
}

func unaffordable() *skipping {
	return &skipping{reason: NotRead, what: "were not read: " + errFull.Error(), behind: "not read: " + errFull.Error()}
}

// begin surveys the books of a job and plans what is read for it.
func (r *run) begin(j *job) error {
	if j.books == nil {
		j.open(&r.config)
		return nil
	}
	earlier := r.earlier(j)
	planner := newPlanner(r.grain(), earlier)
	if err := j.books.survey(&j.findings, planner); err != nil {
		return err
	}
	j.open(&r.config)
	if !j.reads() {
		return j.lostByTarget()
	}
	whole := j.books.whole()
	before := r.toRead(j, &whole)
	j.plan = plan{slice: r.config.Sample, cells: planner.cells}
	accepted := r.accept(j, planner)
	if j.target.unreadable() != nil || len(planner.cells) == 0 {
		j.parts = []part{whole}
		return nil
	}
	if err := r.divide(j, accepted); err != nil {
		return err
	}
	for i := range j.parts {
		before -= r.toRead(j, &j.parts[i])
	}
	r.meter.offsets.Add(max(before, 0))
	return nil
}

// toRead returns how many offsets are read of both sides for a part.
func (r *run) toRead(j *job, p *part) int64 {
	source, target := j.extents(p, r.config.Until)
	return source.len() + target.len()
}

// divide makes parts of the cells that are neither accepted nor outside of the
// sample.
func (r *run) divide(j *job, accepted []bool) error {
	g, tp := r.grain(), j.key()
	skipped := outside(r.config.Sample)
	for i := range j.plan.cells {
		c := &j.plan.cells[i]
		switch {
		case accepted[i]:
		case !r.config.Sample.has(tp, c.block):
			skipped.add(&c.stretch)
		default:
			j.extend(&c.stretch, r.keeps(), c.block, &g)
		}
	}
	skipped.note(j)
	last := len(j.plan.cells) - 1
	end := j.books.limit()
	switch {
	case len(j.parts) > 0 && j.parts[len(j.parts)-1].to == end:
		j.parts[len(j.parts)-1].last = true
	case !j.followed(r.config.Until) || !r.config.Sample.has(tp, j.plan.cells[last].block):
		skipped.skipTail(j, r.config.Until)
	case j.beyond() > 0 || j.told[end.source]:
		j.parts = append(j.parts, part{from: end, to: end, last: true})
	}
	for i := range j.parts {
		if err := j.books.surround(&j.parts[i], g.context); err != nil {
			return err
		}
	}
	return nil
}

// extend puts a cell behind the last part, or begins a new one.
func (j *job) extend(c *stretch, bounded bool, block int64, g *grain) {
	n := len(j.parts)
	if n > 0 && j.parts[n-1].to == c.from && (!bounded || block-j.parts[n-1].block < g.blocks) {
		j.parts[n-1].to = c.to
		return
	}
	j.parts = append(j.parts, part{from: c.from, to: c.to, block: block})
}

// key returns the source partition of a job.
func (j *job) key() topicPartition { return topicPartition{j.findings.topic, j.findings.partition} }

func (r *run) grain() grain {
	g := r.config.grain
	g.setDefaults()
	return g
}

// keeps reports whether what is proven is kept for later runs.
func (r *run) keeps() bool { return r.proven != nil }
