package verify

import (
	"cmp"
	"regexp"
	"slices"
	"strings"

	"apograph/ledger"
)

// A selection chooses topics by regular expressions on their whole names, as
// MM2's topics and topics.exclude do; what is excluded is excluded even if it is
// included as well.
type selection struct {
	include []pattern // empty: every topic
	exclude []pattern
}

type pattern struct {
	text string
	re   *regexp.Regexp
}

func newSelection(include, exclude []string) (selection, error) {
	in, err := compile(include)
	if err != nil {
		return selection{}, err
	}
	out, err := compile(exclude)
	return selection{include: in, exclude: out}, err
}

// compile compiles lists of patterns. Commas separate, blanks around an element
// are dropped, and empty elements count for nothing (ConfigDef.Type.LIST).
func compile(lists []string) ([]pattern, error) {
	var patterns []pattern
	for text := range strings.SplitSeq(strings.Join(lists, ","), ",") {
		if text = strings.TrimSpace(text); text == "" {
			continue
		}
		re, err := regexp.Compile(`\A(?:` + text + `)\z`)
		if err != nil {
			return nil, usageErrorf("topic pattern %q: %w", text, err)
		}
		patterns = append(patterns, pattern{text, re})
	}
	return patterns, nil
}

func anyMatch(patterns []pattern, topic string) bool {
	return slices.ContainsFunc(patterns, func(p pattern) bool { return p.re.MatchString(topic) })
}

// leavesOut returns why a topic is not chosen, "" if it is.
func (s *selection) leavesOut(topic string) ScopeReason {
	switch {
	case anyMatch(s.exclude, topic):
		return Excluded
	case len(s.include) > 0 && !anyMatch(s.include, topic):
		return NotMatched
	default:
		return ""
	}
}

// text returns the selection for a person.
func (s *selection) text() string {
	join := func(patterns []pattern) string {
		var texts []string
		for _, p := range patterns {
			texts = append(texts, p.text)
		}
		return strings.Join(texts, ",")
	}
	text := join(s.include)
	if text == "" {
		text = ".*"
	}
	if len(s.exclude) > 0 {
		text += " except " + join(s.exclude)
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
	case neverCopied(topic) || s.asked.leavesOut(topic) != "":
		return false
	case s.askedByName(topic):
		return true
	case len(s.flow.include) == 0:
		return len(s.asked.include) > 0
	default:
		return s.flow.leavesOut(topic) == ""
	}
}

// strays reports whether a topic of the source that has no book was asked for
// and is none of the flow's.
func (s *scope) strays(topic string) bool {
	return len(s.asked.include) > 0 && s.asked.leavesOut(topic) == "" && !s.misses(topic) && !neverCopied(topic)
}

func (s *scope) askedByName(topic string) bool {
	return slices.ContainsFunc(s.asked.include, func(p pattern) bool { return p.text == topic })
}

// unmatched returns the patterns that were asked for and match none of the
// topics.
func (s *scope) unmatched(topics []string) []string {
	var texts []string
	for _, p := range s.asked.include {
		if !slices.ContainsFunc(topics, p.re.MatchString) {
			texts = append(texts, p.text)
		}
	}
	return texts
}

// text returns the scope for a person.
func (s *scope) text() string {
	switch {
	case len(s.asked.include) > 0:
		return s.asked.text()
	case len(s.flow.include) == 0 && len(s.asked.exclude) == 0:
		return "all that have a book"
	case len(s.flow.include) == 0:
		return s.asked.text()
	}
	narrowed := s.flow
	narrowed.exclude = slices.Concat(s.flow.exclude, s.asked.exclude)
	return narrowed.text()
}

// neverCopied reports whether a topic is internal to Kafka or to a replicator:
// no flow copies it, whatever its patterns say (ReplicationPolicy.isInternalTopic
// as KIP-1074 has it).
func neverCopied(topic string) bool {
	return strings.HasPrefix(topic, "__") || strings.HasPrefix(topic, ".") ||
		strings.HasPrefix(topic, "mm2") && strings.HasSuffix(topic, ".internal") ||
		strings.HasSuffix(topic, ".checkpoints.internal")
}

// sortOutOfScope puts a list in order and leaves out repetitions.
func sortOutOfScope(list []OutOfScope) []OutOfScope {
	slices.SortFunc(list, func(a, b OutOfScope) int {
		return cmp.Or(cmp.Compare(a.Topic, b.Topic), cmp.Compare(a.Reason, b.Reason))
	})
	return slices.Compact(list)
}
