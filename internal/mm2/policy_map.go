package mm2

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
)

// A rename is one rule of the map policy.
type rename struct {
	rule    string  // as it stands in the list
	at      int     // bytes of the list in front of it
	pattern pattern // of a name that is meant literally: re is nil
	parts   []replacementPart
}

// A replacementPart is text, or a group of the expression.
type replacementPart struct {
	text  string
	group int // -1: text
}

// maxTopicName is the length of the longest name (Topic.MAX_NAME_LENGTH).
const maxTopicName = 249

// CheckTopicName returns why no topic can bear a name (Topic.validate of Kafka);
// nil if one can.
func CheckTopicName(name string) error {
	switch {
	case name == "":
		return errors.New("a topic's name cannot be empty")
	case name == "." || name == "..":
		return fmt.Errorf("%q is no name for a topic", name)
	case len(name) > maxTopicName:
		return fmt.Errorf("the name %.40s... has %d characters, a topic's has at most %d", name, len(name), maxTopicName)
	}
	if i := strings.IndexFunc(name, func(r rune) bool { return !legalInTopic(r) }); i >= 0 {
		return fmt.Errorf("%q is no name for a topic: it has other characters than letters, digits, dot, underscore and dash", name)
	}
	return nil
}

func legalInTopic(r rune) bool {
	return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '.' || r == '_' || r == '-'
}

// parseRenames reads rules. What stands in front of the last equals sign is a
// name where it consists of the characters that names do, dots among them;
// else an expression on the whole name, as in the lists of topics. The first rule
// that matches a topic counts. An error is about the rule at that byte.
func parseRenames(rules string) (renames []rename, at int, err error) {
	for _, e := range SplitList(rules) {
		if e.Text == "" {
			continue
		}
		r, err := parseRename(e.Text)
		for _, cut := range FindCuts(rules) {
			if err != nil && cut.Comma == e.At+len(e.Text) {
				err = fmt.Errorf("%s is cut at its comma: commas separate rules", cut.What)
			}
		}
		if err != nil {
			return nil, e.At, fmt.Errorf("%q: %w", e.Text, err)
		}
		r.rule, r.at = e.Text, e.At
		renames = append(renames, r)
	}
	if len(renames) == 0 {
		return nil, 0, errors.New("there is no rule")
	}
	return renames, 0, nil
}

func parseRename(rule string) (rename, error) {
	at := strings.LastIndexByte(rule, '=')
	if at < 0 {
		return rename{}, errors.New("a rule is old=new, or expression=replacement")
	}
	from, to := strings.TrimSpace(rule[:at]), strings.TrimSpace(rule[at+1:])
	if strings.IndexFunc(from, func(r rune) bool { return !legalInTopic(r) }) < 0 {
		if err := CheckTopicName(from); err != nil {
			return rename{}, err
		}
		return rename{pattern: pattern{text: from}, parts: []replacementPart{{to, -1}}}, CheckTopicName(to)
	}
	p, err := parsePattern(from)
	if err != nil {
		return rename{}, err
	}
	parts, err := parseReplacement(to, p.re)
	return rename{pattern: p, parts: parts}, err
}

// parseReplacement reads what Matcher.appendReplacement of Java does: $1, with as
// many digits as there is a group for, ${name}, and a backslash in front of what
// is meant literally. In Go, $1x would be a group of that name. What no topic's name
// can hold is refused, and \1, which would be a 1.
func parseReplacement(s string, re *regexp.Regexp) ([]replacementPart, error) {
	var parts []replacementPart
	text := func(s string) { parts = append(parts, replacementPart{s, -1}) }
	for s != "" {
		switch {
		case len(s) > 1 && s[0] == '\\' && s[1] >= '0' && s[1] <= '9':
			return nil, fmt.Errorf("%q is no group: write $%c", s[:2], s[1])
		case s[0] == '\\' && len(s) > 1:
			text(s[1:2])
			s = s[2:]
		case s[0] == '\\':
			return nil, errors.New("the replacement ends with a backslash")
		case s[0] == '$':
			group, size, err := parseGroup(s, re)
			if err != nil {
				return nil, err
			}
			parts = append(parts, replacementPart{group: group})
			s = s[size:]
		default:
			end := strings.IndexAny(s, `\$`)
			if end < 0 {
				end = len(s)
			}
			text(s[:end])
			s = s[end:]
		}
	}
	if len(parts) == 0 {
		return nil, errors.New("the replacement is empty")
	}
	for _, p := range parts {
		if strings.IndexFunc(p.text, func(r rune) bool { return !legalInTopic(r) }) >= 0 {
			return nil, fmt.Errorf("%q in the replacement is no name of a topic: it has other characters than letters, digits, dot, underscore and dash", p.text)
		}
	}
	return parts, nil
}

// parseGroup reads the reference to a group at the beginning of s, and returns
// its number and its size.
func parseGroup(s string, re *regexp.Regexp) (group, size int, err error) {
	if strings.HasPrefix(s, "${") {
		name, _, ok := strings.Cut(s[2:], "}")
		if group = re.SubexpIndex(name); !ok || group < 0 {
			return 0, 0, fmt.Errorf("the expression has no group %q", name)
		}
		return group, len(name) + len("${}"), nil
	}
	for size = 1; size < len(s) && s[size] >= '0' && s[size] <= '9'; size++ {
		next := group*10 + int(s[size]-'0')
		if next > re.NumSubexp() {
			break
		}
		group = next
	}
	if size == 1 {
		return 0, 0, fmt.Errorf("the expression has no group for %q", s)
	}
	return group, size, nil
}

// renamed returns what the first rule that matches makes of a name.
func (p Policy) renamed(topic string) (name string, ok bool) {
	for _, r := range p.renames {
		if r.pattern.re == nil {
			if r.pattern.text == topic {
				return r.parts[0].text, true
			}
			continue
		}
		if at := r.pattern.re.FindStringSubmatchIndex(topic); at != nil && at[0] == 0 && at[1] == len(topic) {
			return r.expand(topic, at), true
		}
	}
	return "", false
}

func (r rename) expand(topic string, at []int) string {
	var b strings.Builder
	for _, part := range r.parts {
		switch i := 2 * part.group; {
		case part.group < 0:
			b.WriteString(part.text)
		case at[i] >= 0:
			b.WriteString(topic[at[i]:at[i+1]])
		}
	}
	return b.String()
}
