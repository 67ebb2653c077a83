package lint

import (
	"strings"

	"apograph/internal/mm2"
)

// rules returns what a flow copies, and under which names. Patterns that are none
// and policies that cannot be made are left out: there are findings about them.
func (c *checker) rules(f mm2.FlowConfig) mm2.TopicRules {
	all, ok := c.ruled[f.Pair()]
	if !ok {
		all = rulesOf(f)
		c.ruled[f.Pair()] = all
	}
	return all
}

func rulesOf(f mm2.FlowConfig) mm2.TopicRules {
	if all, err := f.Topics(); err == nil {
		return all
	}
	policy, _ := f.Policy()
	return mm2.TopicRules{
		Selection: mm2.Selection{Include: parsable(f.Get("topics")), Exclude: parsable(f.Get("topics.exclude"))},
		Policy:    policy, Source: f.Source, Target: f.Target,
		Heartbeats: isOn(f, "heartbeats.replication.enabled"),
	}
}

// parsable returns the patterns of a list that are some.
func parsable(s mm2.Setting) mm2.Patterns {
	if p, err := mm2.ParsePatterns([]string{s.Value}); err == nil {
		return p
	}
	var good mm2.Patterns
	for _, text := range s.List() {
		good = good.Concat(parsablePattern(text))
	}
	return good
}

// parsablePattern returns one pattern; nothing if it is none.
func parsablePattern(text string) mm2.Patterns {
	p, _ := mm2.ParsePatterns([]string{text})
	return p
}

// keepsNames reports whether a flow's topics have the same names on the target,
// so that nothing tells a copy from another topic.
func keepsNames(f mm2.FlowConfig) bool {
	policy, err := f.Policy()
	return err == nil && policy.Kind() != mm2.PolicyDefault
}

// leading returns the letters with which every name begins that a pattern
// matches; whole, if that is all.
func leading(expression string) (prefix string, whole bool) {
	all := pieces(expression)
	for _, p := range all {
		if p.r == '|' && !p.literal {
			return "", false
		}
	}
	for i, p := range all {
		if !p.literal {
			if strings.ContainsRune("*?{", p.r) && i > 0 {
				prefix = strings.TrimSuffix(prefix, string(all[i-1].r))
			}
			return prefix, false
		}
		prefix += string(p.r)
	}
	return prefix, true
}

// isOn reports whether a switch of a flow is on; no, if it is neither true nor
// false.
func isOn(f mm2.FlowConfig, key string) bool {
	on, err := f.Bool(key)
	return err == nil && on
}
