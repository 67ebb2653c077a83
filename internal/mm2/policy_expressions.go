package mm2

import (
	"fmt"
	"regexp"
	"regexp/syntax"
	"strings"
)

// Expressions returns expressions on whole names: a legal name is copied if one of
// include matches it, and none of exclude. Unlike [TopicRules.Lists] they are
// complete; the one exception is the same.
func (r TopicRules) Expressions() (include, exclude []string) {
	more, less := r.Lists()
	include = append(r.Include.Expressions(), more...)
	exclude = append(r.Exclude.Expressions(), less...)
	return include, append(exclude, r.Policy.InternalExpressions()...)
}

// InternalExpressions returns expressions that match the names of internal topics
// and no others, see [Policy.IsInternal].
func (p Policy) InternalExpressions() []string {
	internal := regexp.QuoteMeta(p.internalSuffix())
	return []string{"__.*", `\..*`, "mm2.*" + internal, ".*" + regexp.QuoteMeta(p.checkpointsSuffix())}
}

// HeartbeatsExpression returns one that matches the names to which a policy that
// keeps names gives a prefix nevertheless.
func (p Policy) HeartbeatsExpression() string {
	if p.kind == PolicyMap {
		return "(?:.*" + regexp.QuoteMeta(p.Separator()) + ")?" + heartbeats
	}
	return ".*" + heartbeats
}

// A Rename is a rule of the map policy as one may reason about it. The first one
// that matches a name counts.
type Rename struct {
	At   int    // bytes of the rules in front of it
	Rule string // as it stands there
	From string // an expression that matches what it changes
	To   string // an expression that matches all that it makes, and perhaps more
	One  bool   // it makes one name of all

	parts []replacementPart
}

// Renames returns the rules of the map policy, in order.
func (p Policy) Renames() []Rename {
	all := make([]Rename, len(p.renames))
	for i, r := range p.renames {
		x := Rename{At: r.at, Rule: r.rule, From: regexp.QuoteMeta(r.pattern.text), One: true, parts: r.parts}
		if r.pattern.re != nil {
			x.From = r.pattern.re.String()
		}
		for _, part := range r.parts {
			x.One = x.One && part.group < 0
			x.To += part.expression(x.From)
		}
		all[i] = x
	}
	return all
}

// expression returns one that matches what a part of a replacement comes to,
// behind a match of from.
func (part replacementPart) expression(from string) string {
	if part.group < 0 {
		return regexp.QuoteMeta(part.text)
	}
	tree, err := syntax.Parse(from, syntax.Perl)
	if err != nil {
		return ".*" // it has been compiled, so that this cannot be
	}
	group := tree
	if part.group > 0 {
		group = capture(tree, part.group).Sub[0]
	}
	return "(?:" + group.String() + ")?"
}

// capture returns a group of an expression that has it.
func capture(tree *syntax.Regexp, group int) *syntax.Regexp {
	if tree.Op == syntax.OpCapture && tree.Cap == group {
		return tree
	}
	for _, sub := range tree.Sub {
		if found := capture(sub, group); found != nil {
			return found
		}
	}
	return nil
}

// Before returns an expression that matches names of which the rule may make this
// one; false if it can be no name's.
func (r Rename) Before(name string) (expression string, ok bool) {
	var text strings.Builder
	for i, part := range r.parts {
		fmt.Fprintf(&text, "(?P<part%d>%s)", i, part.expression(r.From))
	}
	re, err := regexp.Compile("^(?:" + text.String() + ")$")
	if err != nil {
		return "", false
	}
	found := re.FindStringSubmatch(name)
	tree, err := syntax.Parse(r.From, syntax.Perl)
	if found == nil || err != nil {
		return "", false
	}
	for i, part := range r.parts {
		was := found[re.SubexpIndex(fmt.Sprintf("part%d", i))]
		switch {
		case part.group == 0:
			return regexp.QuoteMeta(was), true
		case part.group > 0:
			if group := capture(tree, part.group); group != nil { // nil: within another one
				*group = syntax.Regexp{Op: syntax.OpLiteral, Rune: []rune(was)}
			}
		}
	}
	return tree.String(), true
}
