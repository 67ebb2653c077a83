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

// A scope says which topics a verification is about: those of the flow, as it
// was last started, narrowed by what was asked for. Only a topic that was asked
// for by its very name counts even if the flow does not have it: nobody who asks
// for a topic may be told that all is well because it is never copied.
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
	switch {
	case mm2.IsInternal(topic) || s.asked.leavesOut(topic) != "":
		return false
	case s.askedByName(topic):
		return true
	case s.flow.Include.Empty():
		return !s.asked.Include.Empty()
	default:
		return s.flow.leavesOut(topic) == ""
	}
}

// strays reports whether a topic of the source that has no book was asked for
// and is none of the flow's.
func (s *scope) strays(topic string) bool {
	return !s.asked.Include.Empty() && s.asked.leavesOut(topic) == "" && !s.misses(topic) && !mm2.IsInternal(topic)
}

func (s *scope) askedByName(topic string) bool {
	return slices.Contains(s.asked.Include.Texts(), topic)
}

// unmatched returns the patterns that were asked for and match none of the
// topics.
func (s *scope) unmatched(topics []string) []string { return s.asked.Include.Unmatched(topics) }

// text returns the scope for a person.
func (s *scope) text() string {
	switch {
	case !s.asked.Include.Empty():
		return s.asked.text()
	case s.flow.Include.Empty() && s.asked.Exclude.Empty():
		return "all that have a book"
	case s.flow.Include.Empty():
		return s.asked.text()
	}
	narrowed := s.flow
	narrowed.Exclude = s.flow.Exclude.Concat(s.asked.Exclude)
	return narrowed.text()
}

// sortOutOfScope puts a list in order and leaves out repetitions.
func sortOutOfScope(list []OutOfScope) []OutOfScope {
	slices.SortFunc(list, func(a, b OutOfScope) int {
		return cmp.Or(cmp.Compare(a.Topic, b.Topic), cmp.Compare(a.Reason, b.Reason))
	})
	return slices.Compact(list)
}
