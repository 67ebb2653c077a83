// Package mm2 is MirrorMaker 2 as the rest of apograph sees it: its rules for
// choosing and naming topics, its property files, the records of its internal
// topics to the byte, and the store of offset syncs by which it translates. Of
// what it does only that is here which the product needs; how it writes syncs and
// checkpoints is in the tests, to compare with.
package mm2

import (
	"cmp"
	"regexp"
	"slices"
	"strings"
)

// Patterns is a list of regular expressions, each about whole names. The zero
// value matches nothing. It is read-only and safe for concurrent use.
type Patterns struct{ list []pattern }

type pattern struct {
	text   string
	re     *regexp.Regexp // finds the longest match
	dotted *regexp.Regexp // with its bare dots meant literally; nil if it has none
}

// matches reports whether all of name matches, as Matcher.matches of Java does.
// The expression is compiled as it stands: with anything put around it, one that
// is none by itself, such as "a)|(b", could become one, with another meaning.
func (p pattern) matches(name string) bool { return matchesAll(p.re, name) }

func matchesAll(re *regexp.Regexp, name string) bool {
	at := re.FindStringIndex(name)
	return at != nil && at[0] == 0 && at[1] == len(name)
}

// A ListElement is one element of a list.
type ListElement struct {
	Text string // without blanks around it; it may be empty
	At   int    // bytes of the list in front of it
}

// SplitList returns the elements of a list of Kafka's (ConfigDef.Type.LIST):
// commas separate, wherever they stand, and blanks around an element are dropped.
func SplitList(list string) []ListElement {
	var all []ListElement
	at := 0
	for part := range strings.SplitSeq(list, ",") {
		text := strings.TrimSpace(part)
		all = append(all, ListElement{text, at + strings.Index(part, text)})
		at += len(part) + len(",")
	}
	return all
}

// ParsePatterns returns the expressions of lists, see [SplitList]. Empty elements
// count for nothing; MirrorMaker 2 refuses them since 4.2 (KIP-1161). As it
// joins the elements to one expression, flags such as (?i) hold for those that
// follow as well. The error is a [*PatternError].
func ParsePatterns(lists []string) (Patterns, error) {
	var p Patterns
	list := strings.Join(lists, ",")
	elements := slices.DeleteFunc(SplitList(list), func(e ListElement) bool { return e.Text == "" })
	flags := ""
	for i, e := range elements {
		x, scan, err := compilePattern(flags, e.Text)
		if err != nil || scan.quoteAt >= 0 {
			err = cmp.Or(cutError(list, e), err)
		}
		if err != nil {
			return Patterns{}, err
		}
		if scan.quoteAt >= 0 && i < len(elements)-1 {
			return Patterns{}, &PatternError{Element: e.Text, At: scan.quoteAt, Piece: e.Text[scan.quoteAt:], Why: `a quotation without \E, which would take the rest of the list with it`}
		}
		flags += scan.flags
		p.list = append(p.list, x)
	}
	return p, nil
}

// CheckPattern returns a [*PatternError] if an element of a list is no expression
// that means the same here as to MirrorMaker 2.
func CheckPattern(element string) error {
	_, err := parsePattern(element)
	return err
}

// BareDots returns where in an element of a list dots stand that match any one
// character, in bytes. Such as have a quantifier are not among them.
func BareDots(element string) []int { return scanJava(element).dots }

func parsePattern(element string) (pattern, error) {
	x, _, err := compilePattern("", element)
	return x, err
}

// compilePattern compiles an element behind flags.
func compilePattern(flags, element string) (pattern, javaScan, error) {
	scan := scanJava(element)
	if scan.err != nil {
		return pattern{}, scan, scan.err
	}
	re, err := regexp.Compile(flags + element)
	if err != nil {
		return pattern{}, scan, compileError(element, err)
	}
	re.Longest()
	p := pattern{text: element, re: re}
	if len(scan.dots) > 0 {
		p.dotted = regexp.MustCompile(flags + escapeAt(element, scan.dots))
		p.dotted.Longest()
	}
	return p, scan, nil
}

// escapeAt puts a backslash in front of the characters at the given places.
func escapeAt(s string, places []int) string {
	var b strings.Builder
	from := 0
	for _, at := range places {
		b.WriteString(s[from:at] + `\`)
		from = at
	}
	return b.String() + s[from:]
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

// Expressions returns the expressions in order, with the flags that hold for
// them.
func (p Patterns) Expressions() []string {
	all := make([]string, len(p.list))
	for i, x := range p.list {
		all[i] = x.re.String()
	}
	return all
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
	return TopicRules{Selection: s}.Explain(topic)
}

// explain is Explain for topics that are not internal.
func (s Selection) explain(topic string) (rule string, ok bool) {
	if by, excluded := s.Exclude.Match(topic); excluded {
		return "excluded by " + by + s.Exclude.throughDot(topic), false
	}
	if by, included := s.Include.Match(topic); included {
		return "matched by " + by + s.Include.throughDot(topic), true
	}
	return "no pattern matches", false
}

// throughDot says of a name that matches what it matches through, if that may not
// be meant.
func (p Patterns) throughDot(name string) string {
	if !p.ThroughDot(name) {
		return ""
	}
	return ", through a dot that stands for any character"
}

// ThroughDot reports whether name matches, and would not if the dots in the
// expressions that have no quantifier were meant literally.
func (p Patterns) ThroughDot(name string) bool {
	matches := false
	for _, x := range p.list {
		if x.matches(name) {
			if matches = true; x.dotted == nil || matchesAll(x.dotted, name) {
				return false
			}
		}
	}
	return matches
}
