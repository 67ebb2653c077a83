package verify

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/twmb/franz-go/pkg/kerr"

	"apograph/ledger"
)

// A job is one row of the report in the making.
type job struct {
	books    *books // nil: the source partition has none
	stop     string // why it has none, as the copier or the ledger says; "" if they do not
	findings findings
	row      Partition

	source, target side
	live           bool  // a copier is at work, and verification ends at the source's end
	asked          int64 // the end that the source had at the beginning, while a copier is at work; negative if unknown

	plan   plan
	parts  []part         // still to be compared
	causes []cause        // why a side could not be read
	told   map[int64]bool // source offsets at which findings have said that records stand elsewhere than booked
}

// A side is what a cluster says about a partition.
type side struct {
	topicPartition
	state  topicState
	known  bool // the cluster was asked
	bounds bounds
	stream *stream // nil: nothing is read
}

// look takes what the cluster says about the topic.
func (s *side) look(topics map[string]topicState) {
	s.known = true
	t, ok := topics[s.topic]
	if !ok {
		t.err = kerr.UnknownTopicOrPartition
	}
	s.state = t
}

// unreadable returns why nothing can be read, nil if it can.
func (s *side) unreadable() error {
	switch {
	case s.state.gone():
		return errors.New("there is no such topic any more")
	case s.state.err != nil:
		return s.state.err
	default:
		return s.bounds.err
	}
}

// deleted reports whether the cluster says that there is no such partition.
func (s *side) deleted() bool {
	return s.state.gone() || s.state.err == nil && s.partition >= s.state.partitions
}

// nothing says that the target holds nothing at all of what the books say; it is
// empty if it holds something, or that cannot be told.
func (j *job) nothing() string {
	pair := &j.books.pair
	switch {
	case j.target.deleted():
		return "not on the target"
	case j.target.unreadable() == nil && j.target.bounds.end <= pair.TargetBase:
		return fmt.Sprintf("not on the target, whose log ends at offset %d", j.target.bounds.end)
	default:
		return ""
	}
}

func (j *job) compare(k *job) int {
	return cmp.Or(cmp.Compare(j.findings.topic, k.findings.topic), cmp.Compare(j.findings.partition, k.findings.partition),
		cmp.Compare(j.generation(), k.generation()))
}

func (j *job) generation() int32 {
	if j.books == nil {
		return 0
	}
	return j.books.pair.Generation
}

// reads reports whether a cluster is read for the job.
func (j *job) reads() bool {
	return j.asks() && j.target.known && (j.books.pair.Closed == nil || j.sameLogs())
}

// followed reports whether what the target holds behind the books is compared
// with what the source holds there. A copier that is at work will book it.
func (j *job) followed(until Until) bool { return j.until(until) == UntilSourceEnd && !j.live }

// extents returns what is to be read of each side for a part.
func (j *job) extents(p *part, until Until) (source, target extent) {
	if !j.reads() {
		return source, target
	}
	pair := &j.books.pair
	if j.source.known && j.source.unreadable() == nil {
		b := &j.source.bounds
		source = extent{j.source.topicPartition, j.source.state.id, max(pair.ScopeStart, b.start, p.lead.source), b.stable}
		if !p.last || j.until(until) == UntilBook {
			source.to = min(source.to, p.trail.source)
		}
	}
	if j.target.unreadable() == nil {
		b := &j.target.bounds
		target = extent{j.target.topicPartition, j.target.state.id, max(pair.TargetBase, b.start, p.lead.target), b.end}
		switch {
		case j.cutOff() && !j.books.kept: // behind it stands what the next generation has copied
			target.to = min(target.to, p.reach(j.books.end.Target), j.books.end.Target)
		case !p.last || j.live || j.cutOff():
			target.to = min(target.to, p.reach(j.books.end.Target))
		}
	}
	return source, target
}

// portions returns what is to be read of each side for a part, nil if it cannot
// be.
func (j *job) portions(p *part, until Until) (source, target *portion) {
	if !j.reads() {
		return nil, nil
	}
	from, to := j.extents(p, until)
	hash := hasher{bare: j.books.replaced || j.target.state.stampsTime || j.target.state.policyUnknown}
	if j.target.unreadable() == nil {
		target = &portion{to, hash, p.trail.target, j.target.state.hollow(false)}
	}
	if j.source.known && j.source.unreadable() == nil {
		hash.keys = j.source.state.compacts || j.books.state.CompactSeen
		source = &portion{from, hash, p.trail.source, j.source.state.hollow(j.books.state.CompactSeen)}
	}
	return source, target
}

// open does what is to be done of a job before its parts are compared; if it
// has none, that is all.
func (j *job) open(c *Config) {
	switch {
	case j.books == nil:
		j.withoutBook()
		return
	case !j.reads():
		j.booksAlone(c)
		return
	}
	j.describe()
	j.row.Counts = j.books.count()
	notCopiedYet(&j.findings, &j.row.Counts, j.books, j.sourceEnd(c.Until))
	j.countRest(c.Mode)
	if beyond := j.beyond(); j.live && beyond > 0 {
		end := j.books.limit()
		j.findings.aside(Finding{Kind: NotVerified, Reason: Moving, Source: at(end.source), Target: &Range{end.target, end.target + beyond},
			Detail: "behind the books of a copier that is at work: not judged until it has booked what it writes"})
	}
}

// close finishes the row, once all parts are compared.
func (j *job) close() error {
	if !j.reads() {
		return nil
	}
	if !j.row.balanced() {
		return fmt.Errorf("internal error: the counts do not add up: %+v", j.row.Counts)
	}
	j.reportCauses()
	j.identity()
	j.row.Verdict = j.findings.verdict()
	return nil
}

// beyond returns how many offsets the target has behind the books.
func (j *job) beyond() int64 {
	if !j.target.known || j.target.unreadable() != nil || j.cutOff() {
		return 0
	}
	return max(j.target.bounds.end-j.books.end.Target, 0)
}

// take takes over what was found of a part.
func (j *job) take(c *judge) {
	for _, t := range c.own() {
		j.row.add(t.counts)
		j.findings.merge(t.findings)
	}
	for _, why := range c.causes {
		j.adopt(why)
	}
	j.tell(c.part.to.source, c.moves())
}

// describe fills in what the row says about the pair.
func (j *job) describe() {
	pair := &j.books.pair
	j.row = Partition{
		Topic: pair.SourceTopic, Partition: pair.Partition, Generation: pair.Generation,
		TargetTopic: &pair.TargetTopic,
		Source:      Range{pair.ScopeStart, j.books.end.Source},
		Target:      &Range{pair.TargetBase, j.books.end.Target},
	}
	if pair.SourceTopicID != (ledger.TopicID{}) {
		id := pair.SourceTopicID.String()
		j.row.TopicID = &id
	}
}

// sourceEnd returns where the source ends for the job, and adjusts the row.
func (j *job) sourceEnd(until Until) sourceEnd {
	until = j.until(until)
	b := j.books
	e := b.seenEnd()
	readable := j.source.known && j.source.unreadable() == nil
	if readable {
		s := &j.source.bounds
		e = sourceEnd{stable: s.stable, end: max(s.end, b.end.Source), known: true}
		j.row.Source.Start = min(max(s.start, j.row.Source.Start), e.end)
	}
	if j.asked >= 0 { // what came later was not asked for
		e.end = max(min(e.end, j.asked), b.end.Source)
		e.stable = min(e.stable, e.end)
	}
	if until == UntilBook {
		e = sourceEnd{stable: b.end.Source, end: b.end.Source, known: true}
		j.row.Source.Start = min(j.row.Source.Start, e.end)
	}
	j.row.Source.End = e.end
	if j.target.known && j.target.unreadable() == nil {
		t := &j.target.bounds
		j.row.Target = &Range{max(t.start, b.pair.TargetBase), t.end}
		if until == UntilBook {
			j.row.Target.End = min(t.end, b.end.Target)
		}
		j.row.Target.Start = min(j.row.Target.Start, j.row.Target.End)
	}
	return e
}

// withoutBook reports a source partition that has no book.
func (j *job) withoutBook() {
	f, s := &j.findings, &j.source
	j.row = Partition{Topic: f.topic, Partition: f.partition}
	if s.state.id != (ledger.TopicID{}) {
		id := s.state.id.String()
		j.row.TopicID = &id
	}
	if !s.known {
		f.note(NotCopiedYet, NoBook, nil, nil, "the flow has this partition and the ledger has no open book of it%s", j.stop)
	} else if err := s.unreadable(); err != nil {
		f.note(NotCopiedYet, NoBook, nil, nil, "the source has this partition and the ledger has no open book of it; its end is not known: %v", err)
	} else {
		j.row.Source = Range{s.bounds.start, s.bounds.end}
		j.row.SourceOffsets, j.row.NotCopiedYet = s.bounds.end, s.bounds.end
		f.note(NotCopiedYet, NoBook, &Range{0, s.bounds.end}, nil, "the source has this partition and the ledger has no open book of it%s", j.stop)
	}
	j.row.Verdict = f.verdict()
}

// booksAlone judges a pair by its books: in mode books, or because its
// generation is closed.
func (j *job) booksAlone(config *Config) {
	b, f := j.books, &j.findings
	j.describe()
	j.row.Counts = b.count()
	j.row.NotVerified = j.row.Copied
	j.countRest(config.Mode)
	if b.pair.Closed == nil {
		notCopiedYet(f, &j.row.Counts, b, j.sourceEnd(config.Until))
		j.row.Verdict = f.verdict()
		return
	}
	if j.row.Copied > 0 && config.Mode != ModeBooks {
		// What is closed is no part of what has to be proven; what is in doubt in it is.
		f.aside(Finding{Kind: NotVerified, Reason: NotRead, Source: &j.row.Source, Target: j.row.Target,
			Detail: fmt.Sprintf("generation %d is closed (%s): its books alone were read", b.pair.Generation, b.pair.Closed.Reason)})
	}
	j.row.Verdict = f.verdict()
}

// verdict returns what the findings come to.
func (f *findings) verdict() Verdict {
	switch {
	case f.sawFault:
		return Faults
	case f.open:
		return Inconclusive
	case f.accepted:
		return CompleteWithAcceptedLosses
	default:
		return Complete
	}
}

// renamed says that a topic is not the one that the book is about; nothing if it
// is, or that is not known.
func (s *side) renamed(what string, id ledger.TopicID) string {
	if s.state.id == id || s.state.id == (ledger.TopicID{}) || id == (ledger.TopicID{}) {
		return ""
	}
	return fmt.Sprintf("; the %s topic was deleted and created again: its id is %v, the book is about %v", what, s.state.id, id)
}

// told reports whether a fault says something.
func (f *findings) told(text string) bool {
	return slices.ContainsFunc(f.faults, func(found Finding) bool { return strings.Contains(found.Detail, text) })
}

// identity reports that a topic is another one under the same name, if no fault
// has said so.
func (j *job) identity() {
	pair, f := &j.books.pair, &j.findings
	source, target := &Range{pair.ScopeStart, j.books.end.Source}, &Range{pair.TargetBase, j.books.end.Target}
	for _, text := range []string{j.source.renamed("source", pair.SourceTopicID), j.target.renamed("target", pair.TargetTopicID)} {
		if text != "" && !f.told(text) {
			f.fault(Diverged, source, target, "nothing else differs%s", text)
		}
	}
}
