package main

import (
	"strings"

	"apograph/internal/mm2"
)

// A selection chooses source topics as MM2's topics and topics.exclude do, but
// without --topics it chooses all that are not excluded.
type selection struct{ mm2.Selection }

// newSelection returns what --topics and --topics-exclude ask for.
func newSelection(inv *invocation) (s selection, err error) {
	for flag, patterns := range map[string]*mm2.Patterns{"topics": &s.Include, "topics-exclude": &s.Exclude} {
		if *patterns, err = mm2.ParsePatterns(inv.StringSlice(flag)); err != nil {
			return selection{}, usagef("--%s: %v", flag, err)
		}
	}
	return s, nil
}

// String returns the expressions, as they were given.
func (s selection) String() string {
	text := strings.Join(s.Include.Texts(), ",")
	if text == "" {
		text = ".*"
	}
	if !s.Exclude.Empty() {
		text += " except " + strings.Join(s.Exclude.Texts(), ",")
	}
	return text
}

// has reports whether a source topic is chosen.
func (s selection) has(topic string) bool {
	return (s.Include.Empty() || s.Include.Matches(topic)) && !s.Exclude.Matches(topic)
}
