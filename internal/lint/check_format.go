package lint

import (
	"fmt"
	"strings"
	"unicode"

	"apograph/internal/javaprops"
	"apograph/internal/mm2"
)

// format reports how Java reads the file, where that is not what it looks like.
func (c *checker) format() {
	if c.file.BOM && len(c.file.Entries) > 0 {
		first := c.file.Entries[0]
		c.add("AP0109", first.At, "", "the file begins with a byte order mark, which Java takes for the beginning of the first key", "save the file without it")
	}
	for i := range c.file.Entries {
		e := &c.file.Entries[i]
		c.duplicate(e)
		c.backslashes(e)
		c.characters(e)
		c.continuations(e)
		c.valueEnds(e)
	}
}

func (c *checker) duplicate(e *javaprops.Entry) {
	if e.Earlier.IsZero() {
		return
	}
	c.add("AP0102", e.At, e.Key, fmt.Sprintf("%s stands in line %d already; Java keeps the last one, without a word", e.Key, e.Earlier.Line),
		fmt.Sprintf("delete line %d or this one", e.Earlier.Line))
}

// backslashes reports those that are not there any more when Java is done: one
// finding an entry, as what is done to one of them is done to all.
func (c *checker) backslashes(e *javaprops.Entry) {
	if len(e.Dropped) > 0 {
		b := e.Dropped[0]
		message, instead := fmt.Sprintf(`Java drops the backslash of \%c%s`, b.Char, c.whatIsLeft(e)), fmt.Sprintf(`write \\%c`, b.Char)
		if b.Char >= '0' && b.Char <= '9' {
			message += "; a properties file knows no character by its octal number"
			instead += ` if a backslash is meant, and a character by its number as \u and four hexadecimal digits`
		}
		c.add("AP0107", b.At, e.Key, message, instead)
	}
	if len(e.Controls) > 0 && !c.secret(e) {
		b := e.Controls[0]
		c.add("AP0112", b.At, e.Key, fmt.Sprintf(`Java makes %s of \%c`, controlNames[b.Char], b.Char), fmt.Sprintf(`write \\%c, or a slash in a path`, b.Char))
	}
}

var controlNames = map[rune]string{'t': "a tab", 'n': "a line feed", 'r': "a carriage return", 'f': "a form feed"}

// whatIsLeft says what the value is without its backslashes.
func (c *checker) whatIsLeft(e *javaprops.Entry) string {
	if c.secret(e) || e.Dropped[0].InKey {
		return ""
	}
	text := ": what is left is " + brief(e.Value)
	if e.Dropped[0].Char == '.' && isPatternKey(takeApart(e.Key, c.aliases).key) {
		text += ", in which the dot means any character"
	}
	return text
}

func (c *checker) characters(e *javaprops.Entry) {
	first := len(c.file.Entries) > 0 && e == &c.file.Entries[0]
	if e.HighAt.IsZero() || c.file.BOM && first && e.HighAt == e.At {
		return
	}
	message := "Kafka reads the file as ISO-8859-1"
	if e.Meant != "" && !c.secret(e) {
		message += fmt.Sprintf(", in which the value is %s, not %s", brief(e.Value), brief(e.Meant))
	}
	c.add("AP0108", e.HighAt, e.Key, message, `write the character as \u and four hexadecimal digits`)
}

// continuations reports lines that belong to the one above and do not look so.
func (c *checker) continuations(e *javaprops.Entry) {
	for _, at := range e.Continued {
		text := c.lineFrom(at)
		name, _, found := strings.Cut(text, "=")
		switch name = strings.TrimRightFunc(name, unicode.IsSpace); {
		case strings.HasPrefix(text, "#") || strings.HasPrefix(text, "!"):
			c.add("AP0110", at, e.Key, "this is no remark but a part of the value above, whose line ends with a backslash", "delete the backslash, or the line")
		case found && c.looksLikeKey(name):
			c.add("AP0110", at, e.Key, fmt.Sprintf("%s is no key here but a part of the value above, whose line ends with a backslash", name), "delete the backslash at the end of the line above")
		}
	}
}

// lineFrom returns the physical line from a place on.
func (c *checker) lineFrom(at javaprops.Position) string {
	if at.Line > len(c.lines) {
		return ""
	}
	line := []rune(c.lines[at.Line-1])
	return string(line[min(at.Column-1, len(line)):])
}

// valueEnds reports what stands around a value that is no part of it in the eyes
// of its author.
func (c *checker) valueEnds(e *javaprops.Entry) {
	c.trailing(e)
	value := strings.TrimSpace(e.Value)
	remark := strings.Index(e.Value, " #")
	switch {
	case e.Value == "" && e.ValueAt.Line == e.At.Line && e.ValueAt.Column == e.At.Column+len([]rune(e.Key)) && e.Key != "":
		c.add("AP0111", e.At, e.Key, "there is no = behind the key: its value is empty", "write the value, or delete the line")
	case c.secret(e):
	case remark >= 0:
		c.add("AP0105", e.ValuePosition(remark+1), e.Key, "what follows # is part of the value", "give the remark a line of its own")
	case len(value) >= 2 && (value[0] == '"' || value[0] == '\'') && value[len(value)-1] == value[0]:
		c.add("AP0106", e.ValueAt, e.Key, "the quotes are part of the value", "write it without quotes")
	}
}

func (c *checker) trailing(e *javaprops.Entry) {
	if s := takeApart(e.Key, c.aliases); e.Trailing == 0 || s.level == flowLevel && s.key == "enabled" || s.key == mm2.PolicySeparatorKey {
		return // a switch with blanks is a matter of flows, a separator with some one of names
	}
	at := e.ValuePosition(len(e.Value) - e.Trailing)
	what := fmt.Sprintf("%s at the end of the value", counted(e.Trailing, "blank"))
	if !c.keepsBlanks(e.Key) {
		c.add("AP0104", at, e.Key, what+", which Kafka drops from a value of this kind", "delete the blanks")
		return
	}
	c.add("AP0103", at, e.Key, what+", which Java keeps: they are part of it", "delete the blanks")
}
