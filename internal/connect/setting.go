package connect

import (
	"fmt"

	"apograph/internal/javaprops"
)

// A Setting is one client property, as a file or a command line gave it. Its
// value may be a secret: every verb of package fmt, and the encodings that take
// text, show it as [Setting.Shown] does.
type Setting struct {
	Key   string // of a Java client: without the prefix of a cluster or a role
	Value string
	Where string // file:line, or what else names its place to a person; never holds the value
}

// Shown returns the value, or "[hidden]" if [javaprops.Secret] says so of the key.
func (s Setting) Shown() string {
	if javaprops.Secret(s.Key) {
		return "[hidden]"
	}
	return s.Value
}

// Format implements [fmt.Formatter].
func (s Setting) Format(f fmt.State, _ rune) { _, _ = fmt.Fprint(f, s.text()) }

// MarshalText implements [encoding.TextMarshaler].
func (s Setting) MarshalText() ([]byte, error) { return []byte(s.text()), nil }

func (s Setting) text() string {
	text := s.Key + "=" + s.Shown()
	if s.Where != "" {
		text += " (" + s.Where + ")"
	}
	return text
}

// A secret is a text that no way of printing a value can reach.
type secret func() string

func hide(text string) secret { return func() string { return text } }

// reveal returns the text; empty if there is none.
func (s secret) reveal() string {
	if s == nil {
		return ""
	}
	return s()
}
