package lint

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"apograph/internal/javaprops"
	"apograph/internal/mm2"
)

// patterns reports what is odd about a list of patterns. key is that of the
// setting without its level.
func (c *checker) patterns(s mm2.Setting, key string) {
	elements := s.Elements()
	if len(elements) == 0 {
		if key == "topics" || key == "groups" {
			c.add("AP0315", s.ValueAt(0), s.Key, "the list is empty, and so matches nothing", s.Key+" = .*")
		}
		return
	}
	cuts := mm2.FindCuts(s.Value)
	for _, cut := range cuts {
		c.add("AP0311", s.ValueAt(cut.Comma), s.Key, "the list is split at this comma, inside "+cut.What, insteadOfComma[cut.What])
	}
	for _, el := range elements {
		if el.Text != "" && !ofCut(el, cuts) && c.compiles(s, el) {
			c.pattern(s, el, key)
		}
	}
}

// ofCut reports whether an element is a piece of what is cut.
func ofCut(el mm2.Element, cuts []mm2.Cut) bool {
	return slices.ContainsFunc(cuts, func(cut mm2.Cut) bool { return el.Index < cut.End && el.Index+len(el.Text) > cut.From })
}

// insteadOfComma says what to write where a list is cut.
var insteadOfComma = map[string]string{
	"a quantifier": "write the quantifier in another way, as xx? for x{1,2}, or the names apart",
	"a group":      "write (a|b) for (a, b), or the names apart and without brackets",
	"a class":      "write [ab] for [a,b]: no name has a comma in it",
	"a quotation":  "write the names apart: no name has a comma in it",
}

// compiles reports an element that is no pattern.
func (c *checker) compiles(s mm2.Setting, el mm2.Element) bool {
	var bad *mm2.PatternError
	if !errors.As(mm2.CheckPattern(el.Text), &bad) {
		return true
	}
	code := "AP0310"
	if bad.Why != "" {
		code = "AP0312" // an expression of Java's
	}
	c.add(code, s.ValueAt(el.Index+bad.At), s.Key, bad.Error(), bad.Hint())
	return false
}

// pattern reports what a pattern hardly means.
func (c *checker) pattern(s mm2.Setting, el mm2.Element, key string) {
	at := func(i int) javaprops.Position { return s.ValueAt(el.Index + i) }
	if i, ok := shellStar(el.Text); ok {
		c.add("AP0313", at(i), s.Key, fmt.Sprintf("%s matches any number of the one character before the star, not any text", brief(el.Text)), el.Text[:i]+"."+el.Text[i:])
	}
	if i, ok := deadAnchor(el.Text); ok {
		c.add("AP0316", at(i), s.Key, fmt.Sprintf("%s matches nothing: patterns are about whole names, and nothing stands beyond an anchor", brief(el.Text)), "delete the anchor")
		return
	}
	if c.matchesNoName(s, el, key) {
		return
	}
	dots := slices.DeleteFunc(looseDots(el.Text), func(i int) bool { return c.lostBackslash(s, el.Index+i) })
	if len(dots) == 0 || strings.HasPrefix(key, "config.properties") {
		return
	}
	message := fmt.Sprintf("the dot in %s means any character", brief(el.Text))
	if other := anotherName(el.Text, dots[0]); other != "" {
		message += fmt.Sprintf(": %s matches as well", other)
	}
	c.add("AP0314", at(dots[0]), s.Key, message, `write \\. where a dot is meant`)
}

// matchesNoName reports an element that no name can match, and whether it is one.
// What the format of the file did to it is told already.
func (c *checker) matchesNoName(s mm2.Setting, el mm2.Element, key string) bool {
	at, why, instead := oddity(el.Text)
	group := strings.HasPrefix(key, "groups")
	switch names, sure := c.namesOf(c.only(el.Text), 1); {
	case group && (why == "" || strings.Contains(why, "blanks")), !group && (!sure || names != nil), c.told(s.Key, "AP0105", "AP0106", "AP0107", "AP0108", "AP0110", "AP0112"):
		return false // ids of groups may have any characters
	case why == "":
		why = "no topic can have a name that it matches"
	}
	if strings.HasPrefix(instead, "!") {
		instead = strings.TrimSuffix(s.Key, key) + strings.SplitN(key, ".", 2)[0] + ".exclude = " + instead[1:]
	}
	c.add("AP0317", s.ValueAt(el.Index+at), s.Key, fmt.Sprintf("%s matches nothing: %s", brief(el.Text), why), instead)
	return true
}

// oddity returns where an element has something that lists of patterns do not know,
// what that is, and what to write instead; a ! in front of it: in the list of what
// is excluded.
func oddity(text string) (at int, why, instead string) {
	inner := strings.Trim(text, "/")
	switch i := strings.IndexAny(text, "; \t"); {
	case i >= 0 && text[i] == ';':
		return i, "commas separate patterns, not semicolons", strings.ReplaceAll(text, ";", ",")
	case i >= 0:
		return i, "commas separate patterns, not blanks", strings.Join(strings.Fields(text), ", ")
	case len(text) == len(inner)+2 && strings.HasPrefix(text, "/"):
		return 0, "no slashes stand around a pattern", inner
	case strings.HasPrefix(text, "!"):
		return 0, "there is no negation", text
	}
	return 0, "", ""
}

// lostBackslash reports whether Java dropped a backslash in front of a byte of a
// value, about which there is a finding already.
func (c *checker) lostBackslash(s mm2.Setting, at int) bool {
	e, _ := c.file.Get(s.Key)
	return slices.ContainsFunc(e.Dropped, func(b javaprops.Backslash) bool { return !b.InKey && b.Index == at })
}
