// Package mm2 is MirrorMaker 2 as the rest of apograph sees it: its rules for
// choosing and naming topics. Its wire formats, property files and offset-sync
// store belong here too.
package mm2

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// Patterns is a list of regular expressions, each about whole names. The zero
// value matches nothing. It is read-only and safe for concurrent use.
type Patterns struct{ list []pattern }

type pattern struct {
	text string
	re   *regexp.Regexp // finds the longest match
}

// matches reports whether all of name matches, as Matcher.matches of Java does.
// The expression is compiled as it stands: with anything put around it, one that
// is none by itself, such as "a)|(b", could become one, with another meaning.
func (p pattern) matches(name string) bool {
	at := p.re.FindStringIndex(name)
	return at != nil && at[0] == 0 && at[1] == len(name)
}

// A PatternError reports an element of a list that is no regular expression.
type PatternError struct {
	Element string
	Err     error
}

func (e *PatternError) Error() string {
	return fmt.Sprintf("%q is no regular expression: %s", e.Element, e.reason())
}

func (e *PatternError) Unwrap() error { return e.Err }

// Hint returns what its author may have meant; "" if that is not clear.
func (e *PatternError) Hint() string {
	if strings.HasPrefix(e.Element, "*") {
		return fmt.Sprintf("patterns are regular expressions: .%s", e.Element)
	}
	return ""
}

// reason returns what is wrong, without the expression as it was compiled.
func (e *PatternError) reason() string {
	_, after, ok := strings.Cut(e.Err.Error(), "error parsing regexp: ")
	if !ok {
		return e.Err.Error()
	}
	what, _, _ := strings.Cut(after, ":")
	return what
}

// ParsePatterns returns the expressions of lists. As in a list of Kafka's
// (ConfigDef.Type.LIST) commas separate, blanks around an element are dropped,
// and empty elements count for nothing. The error is a [*PatternError].
func ParsePatterns(lists []string) (Patterns, error) {
	var p Patterns
	for element := range strings.SplitSeq(strings.Join(lists, ","), ",") {
		if element = strings.TrimSpace(element); element == "" {
			continue
		}
		re, err := regexp.Compile(element)
		if err != nil {
			return Patterns{}, &PatternError{element, err}
		}
		re.Longest()
		p.list = append(p.list, pattern{element, re})
	}
	return p, nil
}

// Match reports whether one of the expressions matches name, and which: the
// first.
func (p Patterns) Match(name string) (by string, ok bool) {
	for _, x := range p.list {
		if x.matches(name) {
			return x.text, true
		}
	}
	return "", false
}

// Matches reports whether one of the expressions matches name.
func (p Patterns) Matches(name string) bool {
	_, ok := p.Match(name)
	return ok
}

// Empty reports whether there is no expression.
func (p Patterns) Empty() bool { return len(p.list) == 0 }

// Texts returns the expressions in order.
func (p Patterns) Texts() []string {
	texts := make([]string, len(p.list))
	for i, x := range p.list {
		texts[i] = x.text
	}
	return texts
}

// Unmatched returns the expressions that match none of names.
func (p Patterns) Unmatched(names []string) []string {
	var texts []string
	for _, x := range p.list {
		if !slices.ContainsFunc(names, x.matches) {
			texts = append(texts, x.text)
		}
	}
	return texts
}

// Concat returns the expressions of p and then those of q.
func (p Patterns) Concat(q Patterns) Patterns {
	return Patterns{slices.Concat(p.list, q.list)}
}

// A Selection chooses topics as MirrorMaker 2's topics and topics.exclude do
// (DefaultTopicFilter): what is excluded is excluded even if it is included as
// well.
type Selection struct{ Include, Exclude Patterns }

// ParseSelection returns the selection of two lists, see [ParsePatterns].
func ParseSelection(include, exclude []string) (Selection, error) {
	in, err := ParsePatterns(include)
	if err != nil {
		return Selection{}, err
	}
	out, err := ParsePatterns(exclude)
	return Selection{in, out}, err
}

// Match reports whether topic is chosen, and by which expression.
func (s Selection) Match(topic string) (by string, ok bool) {
	if s.Exclude.Matches(topic) {
		return "", false
	}
	return s.Include.Match(topic)
}

// Explain reports whether topic is chosen, and says in one line by which rule
// it is, or is not.
func (s Selection) Explain(topic string) (rule string, ok bool) {
	if rule := internalRule(topic); rule != "" {
		return "internal: " + rule, false
	}
	if by, excluded := s.Exclude.Match(topic); excluded {
		return "excluded by " + by, false
	}
	if by, included := s.Include.Match(topic); included {
		return "matched by " + by, true
	}
	return "no pattern matches", false
}

// IsInternal reports whether a topic is internal to Kafka or to a replicator
// and so never copied, whatever a selection says
// (ReplicationPolicy.isInternalTopic since KIP-1074).
func IsInternal(topic string) bool { return internalRule(topic) != "" }

// internalRule says why a topic is internal; "" if it is not.
func internalRule(topic string) string {
	switch {
	case strings.HasPrefix(topic, "__"):
		return "Kafka's own, begins with __"
	case strings.HasPrefix(topic, "."):
		return "begins with a dot"
	case strings.HasPrefix(topic, "mm2") && strings.HasSuffix(topic, ".internal"):
		return "MirrorMaker 2's, mm2*.internal"
	case strings.HasSuffix(topic, ".checkpoints.internal"):
		return "MirrorMaker 2's, *.checkpoints.internal"
	}
	return ""
}
