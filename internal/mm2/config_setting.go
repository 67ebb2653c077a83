package mm2

import (
	"fmt"
	"log/slog"

	"apograph/internal/javaprops"
)

// hidden stands for the value of a secret.
const hidden = "[hidden]"

// An OriginKind says what a setting comes from.
type OriginKind string

const (
	FromDefault OriginKind = "default"      // of the key; nothing in the file
	FromOurs    OriginKind = "apograph"     // nothing in the file, and apograph's default is another than the key's
	FromDriver  OriginKind = "mirror maker" // what connect-mirror-maker puts in, such as aliases
	FromTop     OriginKind = "top level"    // KEY
	FromCluster OriginKind = "cluster"      // ALIAS.KEY, fallen through to its clients or not
	FromFlow    OriginKind = "flow"         // A->B.KEY
	FromOldName OriginKind = "old name"     // a key of older releases, at whatever level
)

// An Origin says where a setting comes from. At and Key are zero unless it
// stands in the file.
type Origin struct {
	Kind OriginKind
	Key  string // as it stands in the file, prefix and all
	At   javaprops.Position

	entry *javaprops.Entry
}

// String returns the place and the key, or what else the setting comes from.
func (o Origin) String() string {
	if o.Key == "" {
		return string(o.Kind)
	}
	return fmt.Sprintf("%v (%s)", o.At, o.Key)
}

// A Setting is one key with its value, and where that comes from. However it is
// printed, a secret value is not shown.
type Setting struct {
	Key    string // as who uses it knows it: without the prefixes of the file
	Value  string
	Origin Origin
	// Secret: the key is one of secrets, or the value came from a config
	// provider.
	Secret bool
	// Provided: a config provider's value is in Value, which so has no characters
	// in the file.
	Provided bool
	// Unresolved: what looks like a variable in it has no value, for want of one or of
	// its config provider, and stands there as it is.
	Unresolved bool
}

// Shown returns the value for people's eyes.
func (s Setting) Shown() string {
	if s.Secret && s.Value != "" {
		return hidden
	}
	return s.Value
}

// String returns key=value, without a secret.
func (s Setting) String() string { return shownKey(s.Key) + "=" + s.Shown() }

// GoString is String: %#v shows no secret either.
func (s Setting) GoString() string { return s.String() }

// LogValue keeps secrets out of logs.
func (s Setting) LogValue() slog.Value { return slog.StringValue(s.String()) }

// MarshalText keeps secrets out of JSON.
func (s Setting) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// ValueAt returns where byte i of the value stands; of one that is not in the
// file, where its key does, if anywhere.
func (s Setting) ValueAt(i int) javaprops.Position {
	switch {
	case s.Origin.entry == nil:
		return s.Origin.At
	case s.Provided:
		return s.Origin.entry.ValueAt
	}
	return s.Origin.entry.ValuePosition(i)
}

// as returns the setting under another key.
func (s Setting) as(key string) Setting {
	s.Key = key
	return s
}
