package verify

import (
	"context"
	"errors"
	"fmt"
)

// compare compares the pair of a job. With lost set nothing is read.
func (w *worker) compare(ctx context.Context, j *job, lost error) error {
	source, target := j.streams(lost)
	c := newComparer(j, source, target, w.run.config.Until)
	defer c.expected.stop()
	err := c.run()
	if err == nil {
		c.expected.source.finish()
		if w.run.config.Until == UntilBook {
			j.row.AfterBook = c.afterBook()
		}
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if err = errors.Join(err, source.fatal(), target.fatal()); err != nil {
		return err
	}
	c.judge.finish()
	j.reportUnread(source, target)
	return c.check()
}

// streams returns what is read of both sides of a job, or says why it is not;
// source is nil if that is not asked for.
func (j *job) streams(lost error) (source, target *stream) {
	pair := &j.books.pair
	switch err := firstError(lost, j.target.unreadable()); {
	case lost == nil && j.target.deleted():
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
	if err := firstError(lost, j.source.unreadable()); err != nil {
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

func newComparer(j *job, source, target *stream, until Until) *comparer {
	pair := &j.books.pair
	renamed := j.target.renamed("target", pair.TargetTopicID)
	if j.target.deleted() {
		renamed = "; the target topic or partition does not exist any more"
	}
	view := &sourceView{
		log: source, findings: &j.findings, end: j.source.bounds.end,
		compacts: j.source.state.compacts || j.books.state.CompactSeen,
		renamed:  j.source.renamed("source", pair.SourceTopicID),
		policy:   "the topic does not compact",
	}
	if j.source.state.policyUnknown {
		view.policy = "that the topic compacts is not known: its cleanup.policy could not be read"
	}
	c := &comparer{
		expected: newExpectation(j.books, view),
		target: &targetView{
			log: target, end: j.target.bounds.end,
			compacts: j.target.state.compacts || j.target.state.policyUnknown && view.compacts,
		},
		judge: &judge{
			counts: &j.row.Counts, findings: &j.findings, renamed: renamed, sourceRenamed: view.renamed,
			unverified: map[Reason]*unverified{},
		},
	}
	if until == UntilSourceEnd {
		c.tail = tail{follows: true, producers: j.books.ledger.Producers(pair.ID)}
	}
	return c
}

// finish settles what had to wait, and reports what could not be verified: one
// finding for each reason.
func (j *judge) finish() {
	j.reconcile()
	for _, reason := range []Reason{Retention, Compaction, Moving, Unreadable, NotRead} {
		n := j.unverified[reason]
		if n == nil {
			continue
		}
		j.findings.note(NotVerified, reason, &n.source, &n.target, "%s", unverifiedText(reason, n.records))
	}
}

func unverifiedText(reason Reason, records int64) string {
	text := fmt.Sprintf("%d copied records could not be compared: ", records)
	switch reason {
	case Retention:
		return text + "they lie below the log start of the source or the target"
	case Compaction:
		return text + "compaction has removed them from the source or the target"
	case Moving:
		return text + "the log was cut while it was read"
	case Unreadable:
		return text + "the source or the target could not be read there"
	default:
		return text + "the digest of their entry covers others as well, and the source was not read"
	}
}

// reportUnread reports a side that could not be read to its end, with the
// reason, so that it is told even if no copied record is concerned.
func (j *job) reportUnread(source, target *stream) {
	f, b := &j.findings, j.books
	if source != nil {
		if broken := source.broken(); broken != nil && broken.offset < max(b.end.Source, b.pair.ScopeStart+1) {
			f.note(NotVerified, broken.reason, &Range{broken.offset, max(b.end.Source, broken.offset)}, at(b.end.Target), "the source partition could not be read from offset %d on: %v", broken.offset, broken.err)
		}
	}
	if broken := target.broken(); broken != nil && broken.offset < max(b.end.Target, b.pair.TargetBase+1) {
		f.note(NotVerified, broken.reason, at(b.end.Source), &Range{broken.offset, max(b.end.Target, broken.offset)}, "the target partition could not be read from offset %d on: %v", broken.offset, broken.err)
	}
}

// check returns an error if the counts do not add up, or records stand elsewhere
// than booked and no fault says so. Then the verifier is wrong, and its verdict
// worth nothing.
func (c *comparer) check() error {
	counts := c.judge.counts
	switch {
	case !counts.balanced():
		return fmt.Errorf("internal error: the counts do not add up: %+v", *counts)
	case (c.judge.anyShift || c.shift != 0) && !c.judge.findings.sawFault:
		return fmt.Errorf("internal error: records stand %d from their booked offsets, and no finding says why", c.shift)
	}
	return nil
}
