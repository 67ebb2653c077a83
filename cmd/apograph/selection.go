package main

import (
	"regexp"
	"strings"
)

// A selection chooses source topics by regular expressions on their whole
// names, as MM2's topics and topics.exclude do. What is excluded is excluded
// even if it is included as well.
type selection struct {
	include []*regexp.Regexp // empty: every topic
	exclude []*regexp.Regexp
}

// newSelection returns what --topics and --topics-exclude ask for.
func newSelection(inv *invocation) (selection, error) {
	include, err := patterns("topics", inv.StringSlice("topics"))
	if err != nil {
		return selection{}, err
	}
	exclude, err := patterns("topics-exclude", inv.StringSlice("topics-exclude"))
	return selection{include: include, exclude: exclude}, err
}

// patterns compiles the lists given to a flag. As in a list of Kafka's, commas
// separate, blanks around an element are dropped, and empty elements count for
// nothing.
func patterns(flag string, lists []string) ([]*regexp.Regexp, error) {
	var compiled []*regexp.Regexp
	for element := range strings.SplitSeq(strings.Join(lists, ","), ",") {
		element = strings.TrimSpace(element)
		if element == "" {
			continue
		}
		pattern, err := regexp.Compile(`\A(?:` + element + `)\z`)
		if err != nil {
			return nil, usagef("--%s: %s is no regular expression: %v", flag, quoteArg(element), reason(err))
		}
		compiled = append(compiled, pattern)
	}
	return compiled, nil
}

// reason returns what is wrong with a pattern, without the pattern as compiled.
func reason(err error) string {
	_, after, ok := strings.Cut(err.Error(), "error parsing regexp: ")
	if !ok {
		return err.Error()
	}
	what, _, _ := strings.Cut(after, ":")
	return what
}

// has reports whether a source topic is chosen.
func (s selection) has(topic string) bool {
	return (len(s.include) == 0 || anyMatch(s.include, topic)) && !anyMatch(s.exclude, topic)
}

func anyMatch(patterns []*regexp.Regexp, topic string) bool {
	for _, p := range patterns {
		if p.MatchString(topic) {
			return true
		}
	}
	return false
}
