package verify

import (
	"context"
	"errors"
	"fmt"
)

// compare compares a part of the pair of a job.
func (w *worker) compare(ctx context.Context, j *job, p part) (*judge, error) {
	source, target := j.streams()
	c := j.comparer(p, source, target, w.run.config.Until)
	defer c.expected.stop()
	err := c.run()
	if err == nil {
		c.expected.source.finish()
		if p.last && w.run.config.Until == UntilBook && !j.cutOff() {
			c.judge.behind.counts.AfterBook = c.afterBook()
		}
	}
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	if err = errors.Join(err, source.fatal(), target.fatal()); err != nil {
		return nil, err
	}
	c.judge.finish(j.told[p.from.source])
	c.judge.findCauses(j.books, source, target)
	return c.judge, c.check()
}

// streams returns what is read of both sides of a part, or says why it is not;
// source is nil if that is not asked for.
func (j *job) streams() (source, target *stream) {
	pair := &j.books.pair
	switch err := j.target.unreadable(); {
	case j.target.deleted():
		target = unread(pair.TargetBase, nil)
	case err != nil:
		target = unread(pair.TargetBase, &readError{Unreadable, pair.TargetBase, err})
	default:
		target = j.target.stream
		target.start = j.target.bounds.start
	}
	if !j.source.known {
		return nil, target
	}
	if err := j.source.unreadable(); err != nil {
		return unread(pair.ScopeStart, &readError{Unreadable, pair.ScopeStart, err}), target
	}
	source = j.source.stream
	source.start = j.source.bounds.start
	return source, target
}

// firstError returns the first error that is not nil.
func firstError(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// comparer returns what compares a part.
func (j *job) comparer(p part, source, target *stream, until Until) *comparer {
	pair := &j.books.pair
	renamed := j.target.renamed("target", pair.TargetTopicID)
	if j.target.deleted() {
		renamed = "; the target topic or partition does not exist any more"
	}
	found := newTallies(p, &j.findings)
	view := &sourceView{
		log: source, found: &found, end: j.source.bounds.end, cut: !p.last,
		compacts: j.source.state.compacts || j.books.state.CompactSeen,
		renamed:  j.source.renamed("source", pair.SourceTopicID),
		policy:   "the topic does not compact",
	}
	if j.source.state.policyUnknown {
		view.policy = "that the topic compacts is not known: its cleanup.policy could not be read"
	}
	_, read := j.extents(&p, until)
	c := &comparer{
		expected: newExpectation(j.books, p, view),
		target: &targetView{
			log: target, end: min(read.to, j.target.bounds.end),
			compacts: j.target.state.compacts || j.target.state.policyUnknown && view.compacts,
		},
		judge: &judge{tally: found.in, tallies: found, renamed: renamed, sourceRenamed: view.renamed, nothing: j.nothing()},
	}
	if p.last && j.until(until) == UntilSourceEnd {
		c.tail = tail{follows: true, moving: j.live, producers: j.books.ledger.Producers(pair.ID)}
	}
	return c
}

// finish settles what had to wait, and reports what could not be verified: one
// finding for each reason, but for those of [judge.findCauses]. Told says that a finding has said that records stand
// elsewhere than booked where the part begins.
func (j *judge) finish(told bool) {
	j.reconcile()
	if p := &j.part; j.before.stands != 0 && !told {
		kind := Extra
		if j.before.stands < 0 {
			kind = Missing
		}
		j.turn(p.from.source)
		j.anyShift = true
		j.findings.fault(kind, at(p.from.source), at(p.from.target), "what tells why lies before this place, in a part that was not read now%s%s", j.shiftText(j.before.stands), j.renamed)
	}
	for _, t := range j.own() {
		t.finish()
		t.reportVanished(j.nothing, j.renamed)
	}
}

func (t *tally) finish() {
	for _, reason := range []Reason{Retention, Compaction, NotRead} {
		if n := t.unverified[lack{reason, ""}]; n != nil {
			t.findings.note(NotVerified, reason, &n.source, &n.target, "%s%s", unverifiedText(n.records), lackText(reason))
		}
	}
}

// check returns an error if records stand elsewhere than booked and no fault
// says so. Then the verifier is wrong, and its verdict worth nothing.
func (c *comparer) check() error {
	p := &c.judge.part
	moved, told := p.from.source == 0 && p.last && c.shift != 0, false
	for _, t := range c.judge.own() {
		moved = moved || t.anyShift
		told = told || t.findings.sawFault
	}
	if moved && !told {
		return fmt.Errorf("internal error: records stand %d from their booked offsets, and no finding says why", c.shift)
	}
	return nil
}
