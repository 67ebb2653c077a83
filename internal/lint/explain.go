package lint

import (
	"strings"

	"apograph/internal/mm2"
)

// An Explanation says what becomes of a topic in one flow, and why.
type Explanation struct {
	Source      string `json:"source"`
	Target      string `json:"target"`
	Topic       string `json:"topic"`
	Copied      bool   `json:"copied"`
	TargetTopic string `json:"target_topic"` // empty if it is not copied
	Rule        string `json:"rule"`         // what decided, in one line
	Pattern     string `json:"pattern"`      // the element that decided; empty if none did
	File        string `json:"file"`
	Line        int    `json:"line"`        // of the pattern; 0: it is a default
	Column      int    `json:"column"`      // of the pattern; 0: it is a default
	ThroughDot  bool   `json:"through_dot"` // it matches only because a dot means any character
}

// Explain returns what becomes of a topic in each flow that runs, in order; false
// if the file is none that has flows.
func (r *Report) Explain(topic string) ([]Explanation, bool) {
	if r.checker == nil || r.Kind != MirrorMaker2 {
		return nil, false
	}
	all := []Explanation{}
	for _, f := range r.checker.running {
		rules := r.checker.rules(f)
		x := Explanation{Source: f.Source, Target: f.Target, Topic: topic, File: r.File}
		x.Rule, x.Copied = rules.Explain(topic)
		if x.Copied {
			x.TargetTopic = rules.Remote(topic)
		}
		if !rules.Policy.IsInternal(topic) {
			r.checker.decider(&x, rules.Exclude, f.Get("topics.exclude"))
			r.checker.decider(&x, rules.Include, f.Get("topics"))
		}
		for _, key := range []string{mm2.PolicySeparatorKey, mm2.PolicyMapKey} {
			if x.Copied && r.checker.hidden.keys[f.Get(key).Origin.Key] {
				x.TargetTopic = hiddenText
			}
		}
		all = append(all, x)
	}
	return all, true
}

// decider finds the element of a list that decided about a topic, and its place,
// unless another list has done so.
func (c *checker) decider(x *Explanation, patterns mm2.Patterns, in mm2.Setting) {
	by, ok := patterns.Match(x.Topic)
	if !ok || x.Pattern != "" {
		return
	}
	x.Pattern, x.ThroughDot = by, patterns.ThroughDot(x.Topic)
	for _, el := range in.Elements() {
		if el.Text == by {
			x.Line, x.Column = el.At.Line, el.At.Column
			break
		}
	}
	if c.hidden.keys[in.Origin.Key] {
		x.Pattern, x.Rule = hiddenText, strings.ReplaceAll(x.Rule, by, hiddenText)
	}
}
