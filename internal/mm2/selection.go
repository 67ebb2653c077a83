// Package mm2 is MirrorMaker 2 as the rest of apograph sees it: its rules for
// choosing and naming topics. Its wire formats, property files and offset-sync
// store belong here too.
package mm2

import (
	"fmt"
	"regexp"
	"strings"
)

// A Selection chooses topics as MirrorMaker 2's topics and topics.exclude do
// (DefaultTopicFilter): regular expressions that match whole names; what is
// excluded is excluded even if it is included as well. The zero Selection
// chooses nothing. It is read-only and safe for concurrent use.
type Selection struct {
	include []pattern
	exclude []pattern
}

type pattern struct {
	text string
	re   *regexp.Regexp
}

// A PatternError reports an element of a list that is no regular expression.
type PatternError struct {
	Element string
	Err     error
}

func (e *PatternError) Error() string {
	return fmt.Sprintf("%q is no regular expression: %v", e.Element, e.Err)
}

func (e *PatternError) Unwrap() error { return e.Err }

// NewSelection returns the selection of the given lists. Each string may hold
// several expressions separated by commas; blanks around an expression and
// empty ones count for nothing, as in a Kafka list. The error is a
// [*PatternError].
func NewSelection(include, exclude []string) (*Selection, error) {
	var s Selection
	var err error
	if s.include, err = compile(include); err != nil {
		return nil, err
	}
	s.exclude, err = compile(exclude)
	return &s, err
}

func compile(lists []string) ([]pattern, error) {
	var patterns []pattern
	for element := range strings.SplitSeq(strings.Join(lists, ","), ",") {
		if element = strings.TrimSpace(element); element == "" {
			continue
		}
		re, err := regexp.Compile(`\A(?:` + element + `)\z`)
		if err != nil {
			return nil, &PatternError{element, err}
		}
		patterns = append(patterns, pattern{element, re})
	}
	return patterns, nil
}

// Match reports whether topic is chosen, and by which expression: the first
// that matches.
func (s *Selection) Match(topic string) (by string, ok bool) {
	if s.Excludes(topic) {
		return "", false
	}
	for _, p := range s.include {
		if p.re.MatchString(topic) {
			return p.text, true
		}
	}
	return "", false
}

// Excludes reports whether topic is excluded.
func (s *Selection) Excludes(topic string) bool {
	for _, p := range s.exclude {
		if p.re.MatchString(topic) {
			return true
		}
	}
	return false
}

// Included returns the expressions that include topics, in order.
func (s *Selection) Included() []string {
	texts := make([]string, len(s.include))
	for i, p := range s.include {
		texts[i] = p.text
	}
	return texts
}

// IsInternal reports whether a topic is internal to Kafka or to a replicator
// and so never copied, whatever a selection says
// (ReplicationPolicy.isInternalTopic since KIP-1074).
func IsInternal(topic string) bool {
	return strings.HasPrefix(topic, "__") || strings.HasPrefix(topic, ".") ||
		strings.HasPrefix(topic, "mm2") && strings.HasSuffix(topic, ".internal") ||
		strings.HasSuffix(topic, ".checkpoints.internal")
}
