package verify

import (
	"cmp"
	"slices"
	"strings"

	"apograph/internal/mm2"
	"apograph/ledger"
)

// A selection chooses topics. Without an include pattern it chooses every topic
// that is not excluded.
type selection struct{ mm2.Selection }

func newSelection(include, exclude []string) (selection, error) {
	s, err := mm2.ParseSelection(include, exclude)
	if err != nil {
		return selection{}, usageErrorf("topic pattern: %w", err)
	}
	return selection{s}, nil
}

// leavesOut returns why a topic is not chosen, "" if it is.
func (s *selection) leavesOut(topic string) ScopeReason {
	switch {
	case s.Exclude.Matches(topic):
		return Excluded
	case !s.Include.Empty() && !s.Include.Matches(topic):
		return NotMatched
	default:
		return ""
	}
}

// text returns the selection for a person.
func (s *selection) text() string {
	text := strings.Join(s.Include.Texts(), ",")
	if text == "" {
		text = ".*"
	}
	if !s.Exclude.Empty() {
		text += " except " + strings.Join(s.Exclude.Texts(), ",")
	}
	return text
}

// A scope says which topics a verification is about. Whatever is asked for is
// judged, by name or by pattern, whether the flow has it or not: nobody who asks
// for a topic may be told that all is well because it is never copied. Where
// nothing is asked for it is about the flow's topics: those that have a book, and
// those that the flow, as it was last started, should have one of.
type scope struct {
	flow  selection // of the ledger; no include pattern: not known
	asked selection // of the config
}

func newScope(s ledger.Scope, topics, exclude []string) (scope, error) {
	flow, err := newSelection(s.Topics, s.TopicsExclude)
	if err != nil {
		return scope{}, err
	}
	asked, err := newSelection(topics, exclude)
	return scope{flow: flow, asked: asked}, err
}

// leavesOut returns why a topic that has a book is out of scope, "" if it is
// in.
func (s *scope) leavesOut(topic string) ScopeReason { return s.asked.leavesOut(topic) }

// misses reports whether a topic of the source that has no book should have
// one.
func (s *scope) misses(topic string) bool {
	return s.withoutBook(topic) == "" && (s.knowsFlow() || !s.asked.Include.Empty())
}

// withoutBook returns why a topic of the source that has no book is out of scope,
// "" if it is in. Topics that MM2 calls internal are never copied.
func (s *scope) withoutBook(topic string) ScopeReason {
	why := s.asked.leavesOut(topic)
	switch {
	case mm2.IsInternal(topic):
		return Excluded
	case why != "" || !s.asked.Include.Empty():
		return why
	case !s.knowsFlow():
		return WithoutBook
	default:
		return s.flow.leavesOut(topic)
	}
}

// knowsFlow reports whether the ledger says which topics the flow has.
func (s *scope) knowsFlow() bool { return !s.flow.Include.Empty() }

// strange reports whether a topic is none of the flow's, as far as that is known:
// its books, if it has any, are of times when the flow had other patterns.
func (s *scope) strange(topic string) bool { return s.knowsFlow() && s.flow.leavesOut(topic) != "" }

// unmatched returns the patterns that were asked for and match none of the
// topics.
func (s *scope) unmatched(topics []string) []string { return s.asked.Include.Unmatched(topics) }

// text returns the scope for a person. Outside is how many topics are in it only
// because they have books: the flow's patterns do not have them any more.
func (s *scope) text(outside int) string {
	switch {
	case !s.asked.Include.Empty():
		return s.asked.text()
	case !s.knowsFlow():
		return "all that have a book" + strings.TrimPrefix(s.asked.text(), ".*")
	}
	narrowed := s.flow
	narrowed.Exclude = s.flow.Exclude.Concat(s.asked.Exclude)
	text := narrowed.text()
	if outside > 0 {
		text += ", and " + counted(int64(outside), "topic") + " outside of it of which there are books"
	}
	return text
}

// sortOutOfScope puts a list in order and leaves out repetitions.
func sortOutOfScope(list []OutOfScope) []OutOfScope {
	slices.SortFunc(list, func(a, b OutOfScope) int {
		return cmp.Or(cmp.Compare(a.Topic, b.Topic), cmp.Compare(a.Reason, b.Reason))
	})
	return slices.Compact(list)
}
