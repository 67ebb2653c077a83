package verify

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"

	"apograph/ledger"
)

// A proof says what came of comparing a run of entries, in an earlier run or in
// this one. It holds as long as the books have the same entries, the topics are
// the same ones, and the target still has what was read.
type proof struct {
	Source  Range  `json:"source_offsets"`
	Target  Range  `json:"target_offsets"`
	Records int64  `json:"records"` // copied
	Digest  string `json:"digest"`  // of them, from the entries
	At      Time   `json:"at"`      // when the run began that read them

	// Found is what there is to say; nil if all records are equal and nothing
	// else was found.
	Found *found `json:"found,omitempty"`
}

// A found is what was found of a run of entries that are not all equal.
type found struct {
	Counts   Counts    `json:"counts"`
	Findings []Finding `json:"findings"`
	Omitted  int       `json:"findings_omitted"`
	Moved    bool      `json:"moved"` // at the end, the target's records stand elsewhere than booked
}

func newProof(s *stretch, when time.Time) proof {
	return proof{
		Source: Range{s.from.source, s.to.source}, Target: Range{s.from.target, s.to.target},
		Records: s.records, Digest: s.digest.String(), At: Time{when.UTC().Truncate(time.Millisecond)},
	}
}

// about reports whether the proof is about these entries.
func (p *proof) about(s *stretch) bool {
	return p.Source == Range{s.from.source, s.to.source} && p.Target == Range{s.from.target, s.to.target} &&
		p.Records == s.records && p.Digest == s.digest.String()
}

// provable returns the proof of a part that was compared. ok is false if there is
// none: something could not be read that another run may be able to read, or that
// no other run can.
func (r *run) provable(j *job, c *judge) (p proof, ok bool, err error) {
	f, n := c.in.findings, c.in.counts
	if c.part.to.source == c.part.from.source || f.unread {
		return p, false, nil
	}
	s, err := j.books.stretch(c.part.from, c.part.to)
	if err != nil {
		return p, false, err
	}
	p = newProof(&s, r.started)
	if n.Equal < s.records || len(f.faults)+len(f.others)+f.omitted > 0 || c.before.stands != 0 || c.moves() {
		p.Found = &found{Counts: *n, Findings: slices.Concat(f.faults, f.others), Omitted: f.omitted, Moved: c.moves()}
	}
	return p, true, nil
}

// keep remembers what a part has proven.
func (r *run) keep(j *job, c *judge) error {
	if !r.keeps() || !j.plan.valid {
		return nil
	}
	made, ok, err := r.provable(j, c)
	if err != nil || !ok {
		return err
	}
	kept, err := j.replace(made)
	if err != nil {
		return err
	}
	j.plan.kept = kept
	r.proven.put(j.proofKey(r.config.Mode), j.topicIDs(), kept)
	return nil
}

// replace returns the kept proofs with one more, and without what they say of its
// entries.
func (j *job) replace(made proof) ([]proof, error) {
	kept := []proof{made}
	for _, old := range j.plan.kept {
		if old.Source.End <= made.Source.Start || old.Source.Start >= made.Source.End {
			kept = append(kept, old)
			continue
		}
		if old.Found != nil {
			continue // what was found is not known of each half
		}
		halves, err := j.halves(&old, &made)
		if err != nil {
			return nil, err
		}
		kept = append(kept, halves...)
	}
	return joinProofs(kept)
}

// halves returns what an old proof says of the entries in front of those of a new
// one, and behind them.
func (j *job) halves(old, made *proof) (list []proof, err error) {
	from, to := mark{old.Source.Start, old.Target.Start}, mark{made.Source.Start, made.Target.Start}
	front := stretch{from: from, to: from}
	if from.source < to.source {
		if front, err = j.books.stretch(from, to); err != nil {
			return nil, err
		}
		list = append(list, newProof(&front, old.At.Time))
	}
	from, to = mark{made.Source.End, made.Target.End}, mark{old.Source.End, old.Target.End}
	if from.source >= to.source {
		return list, nil
	}
	back := stretch{from: from, to: to, records: old.Records - front.records - made.Records}
	if made.Source.Start < old.Source.Start {
		back, err = j.books.stretch(from, to)
	} else {
		// Not read again: new proofs come one after the other, each in front of a
		// long old one.
		back.digest, err = front.rest(old, made, back.records)
	}
	return append(list, newProof(&back, old.At.Time)), err
}

// rest returns the digest of the last n records of an old proof, which begins with
// s and goes on with what a new one is about.
func (s *stretch) rest(old, made *proof, n int64) (ledger.Digest, error) {
	whole, err1 := ledger.ParseDigest(old.Digest)
	inner, err2 := ledger.ParseDigest(made.Digest)
	return ledger.Suffix(whole, ledger.Concat(s.digest, inner, made.Records), n), errors.Join(err1, err2)
}

// joinProofs puts proofs in order and joins neighbours of one run that found
// nothing.
func joinProofs(list []proof) ([]proof, error) {
	slices.SortFunc(list, func(a, b proof) int { return cmp.Compare(a.Source.Start, b.Source.Start) })
	joined := list[:0]
	for _, p := range list {
		if len(joined) == 0 || !joined[len(joined)-1].continues(&p) {
			joined = append(joined, p)
			continue
		}
		last := &joined[len(joined)-1]
		front, err1 := ledger.ParseDigest(last.Digest)
		back, err2 := ledger.ParseDigest(p.Digest)
		if err := errors.Join(err1, err2); err != nil {
			return nil, err
		}
		last.Source.End, last.Target.End = p.Source.End, p.Target.End
		last.Records += p.Records
		last.Digest = ledger.Concat(front, back, p.Records).String()
	}
	return joined, nil
}

// continues reports whether q is the same statement about what follows.
func (p *proof) continues(q *proof) bool {
	return p.Found == nil && q.Found == nil && p.At.Equal(q.At.Time) && p.Source.End == q.Source.Start && p.Target.End == q.Target.Start
}

// proofKey returns under what the proofs of a job are kept.
func (j *job) proofKey(mode Mode) proofKey {
	return proofKey{j.findings.topic, j.findings.partition, j.generation(), j.books.pair.ID, mode}
}

// topicIDs returns which logs were read.
func (j *job) topicIDs() topicIDs {
	ids := topicIDs{Target: j.target.state.id.String(), TargetEpoch: j.target.state.epoch(j.findings.partition), SourceEpoch: -1}
	if j.source.known {
		ids.Source, ids.SourceEpoch = j.source.state.id.String(), j.source.state.epoch(j.findings.partition)
	}
	return ids
}

// earlier returns the proofs of earlier runs about a job's pair.
func (r *run) earlier(j *job) []proof {
	if !r.keeps() {
		return nil
	}
	return r.proven.get(j.proofKey(r.config.Mode)).Proofs
}

// accept takes over what earlier runs have proven and still holds, and reports
// of which cells that is so. Without [Config.Resume] it only finds out what may
// be kept.
func (r *run) accept(j *job, p *planner) []bool {
	accepted := make([]bool, len(p.cells))
	if !r.keeps() || j.target.unreadable() != nil || j.source.known && j.source.unreadable() != nil {
		return accepted
	}
	j.plan.valid = true
	if len(p.proofs) == 0 {
		return accepted
	}
	why := ""
	switch ids, now := r.proven.get(j.proofKey(r.config.Mode)).IDs, j.topicIDs(); {
	case ids.Source != now.Source || ids.Target != now.Target:
		why = "a topic was deleted and created again since"
	case ids != now:
		why = "the leader has changed since, and a log may have been cut"
	}
	for i := 0; i < len(p.proofs) && why == ""; i++ {
		old := &p.proofs[i]
		cells := p.covered(old)
		refused := j.refuses(old, cells)
		if refused == "" || old.Found == nil && refused == pastRetention {
			cells = slices.DeleteFunc(slices.Clone(cells), func(c cell) bool { return c.from.target < j.target.bounds.start })
			r.acceptCells(j, old, cells, p, accepted)
		}
		if refused != "" {
			r.refused(j, refused)
		}
	}
	if why != "" {
		r.refused(j, why)
	}
	return accepted
}

func (r *run) refused(j *job, why string) {
	r.config.Logger.Warn("a proof of an earlier run is not used", "topic", j.findings.topic, "partition", j.findings.partition, "why", why)
}

const pastRetention = "the target's log start has moved over what was proven"

// refuses returns why a proof about cells does not hold any more, "" if it does.
func (j *job) refuses(p *proof, cells []cell) string {
	switch {
	case cells == nil:
		return fmt.Sprintf("the ledger does not have the entries of source offsets %v: it is an older state of it, or another one", &p.Source)
	case j.target.bounds.end < p.Target.End:
		return "the target's log ends before what was proven"
	case j.source.known && j.source.bounds.stable < p.Source.End:
		return "the source's log ends before what was proven"
	case j.target.bounds.start > p.Target.Start && p.Target.Start < p.Target.End:
		return pastRetention
	default:
		return ""
	}
}

// acceptCells takes over a proof, as far as cells go.
func (r *run) acceptCells(j *job, p *proof, cells []cell, planner *planner, accepted []bool) {
	if len(cells) == 0 {
		return
	}
	s := cells[0].stretch
	for i := range cells[1:] {
		s.join(&cells[i+1].stretch)
	}
	held := *p
	if held.Found == nil {
		held = newProof(&s, p.At.Time)
	}
	j.plan.kept = append(j.plan.kept, held)
	if !r.config.Resume {
		return
	}
	first, _ := slices.BinarySearchFunc(planner.cells, s.from.source, func(c cell, source int64) int { return cmp.Compare(c.from.source, source) })
	for i := range cells {
		accepted[first+i] = true
	}
	j.takeProof(&held, s.replaced)
	r.accepted(held.At)
}

// takeProof takes over what a proof says, as if its entries had been read now.
func (j *job) takeProof(p *proof, replaced int64) {
	j.row.ProvenEarlier += p.Records
	if p.Found == nil {
		j.row.Equal += p.Records
		j.row.TimestampsReplaced += replaced
		return
	}
	j.row.add(&p.Found.Counts)
	for _, f := range p.Found.Findings {
		j.findings.add(f)
	}
	j.findings.omitted += p.Found.Omitted
	j.tell(p.Source.End, p.Found.Moved)
}

// tell remembers whether findings have said that the target's records stand
// elsewhere than booked from a source offset on.
func (j *job) tell(source int64, moved bool) {
	if !moved {
		return
	}
	if j.told == nil {
		j.told = map[int64]bool{}
	}
	j.told[source] = true
}
