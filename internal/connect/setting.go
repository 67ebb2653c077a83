package connect

import (
	"fmt"
	"strings"
)

// A Setting is one client property, as a file or a command line gave it. Its
// value may be a secret: every verb of package fmt, and the encodings that take
// text, show it as [Setting.Shown] does.
type Setting struct {
	Key   string // of a Java client: without the prefix of a cluster or a role
	Value string
	Where string // file:line, or what else names its place to a person; never holds the value
}

// Shown returns the value, or "[hidden]" if [Secret] says so of the key.
func (s Setting) Shown() string {
	if Secret(s.Key) {
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

// secretWords are what names of keys that hold secrets have in common. Not only
// client properties are asked about: config providers and plugins have keys of
// their own.
var secretWords = []string{
	"password", "passphrase", "secret", "token", "credential", "jaas", "private.key", "keystore.key", "apikey", "api.key", "basic.auth",
}

// notSecret are keys with such a word whose value is none.
var notSecret = []string{
	"sasl.oauthbearer.token.endpoint.url", "sasl.oauthbearer.client.credentials.client.id", "delegation.token.expiry.time.ms",
}

// Secret reports whether the value of a key must not be shown: those that Kafka
// declares as passwords (ConfigDef.Type.PASSWORD), with any prefix, and all whose
// name says so.
func Secret(key string) bool {
	key = strings.ToLower(key)
	for _, name := range notSecret {
		if hasName(key, name) {
			return false
		}
	}
	for _, k := range keys {
		if k.Type == Password && hasName(key, k.Name) {
			return true
		}
	}
	for _, word := range secretWords {
		if strings.Contains(key, word) {
			return true
		}
	}
	return false
}

// hasName reports whether key is name, bare or behind a prefix.
func hasName(key, name string) bool {
	prefix, ok := strings.CutSuffix(key, name)
	return ok && (prefix == "" || strings.HasSuffix(prefix, "."))
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
