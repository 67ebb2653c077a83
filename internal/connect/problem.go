package connect

import (
	"fmt"
	"strings"
)

// A Level says how much a notice matters.
type Level uint8

const (
	// Info: as intended, and worth saying once.
	Info Level = iota
	// Warning: probably not what the author means.
	Warning
)

// A NoticeKind says what a notice is about.
type NoticeKind uint8

// The kinds of notices.
const (
	Unneeded  NoticeKind = iota // the key has no effect here, for the reason that the text gives
	Unknown                     // no client of Kafka knows the key; Java's clients only warn of it
	Idle                        // security.protocol leaves the key without effect
	Unchecked                   // the host names of brokers are not checked
	Otherwise                   // the value is not taken as a Java client takes it
)

// A Notice is something that a person should know about a setting that was
// accepted. It never holds the value of a secret key.
type Notice struct {
	Key, Where string
	Kind       NoticeKind
	Level      Level
	Suggestion string // the key that was probably meant; empty if none is near
	Text       string // one line
}

// A Problem is why one setting, or a lack of one, cannot be accepted. It never
// holds the value of a secret key.
type Problem struct {
	Key, Where string // Where is empty if the key is missing
	Text       string // one line
	Suggestion string // the value that was probably meant; empty if none is near
}

func (p Problem) String() string {
	var b strings.Builder
	b.WriteString(p.Key)
	if p.Where != "" {
		fmt.Fprintf(&b, " (%s)", p.Where)
	}
	fmt.Fprintf(&b, ": %s", p.Text)
	if p.Suggestion != "" {
		fmt.Fprintf(&b, "; did you mean %s?", p.Suggestion)
	}
	return b.String()
}

// A ConfigError reports settings with which no client can be made. Nothing was
// dialed.
type ConfigError struct {
	Alias    string
	Problems []Problem // at least one
}

func (e *ConfigError) Error() string {
	text := "settings of cluster " + e.Alias + ":"
	separator := " "
	if len(e.Problems) > 1 {
		separator = "\n  "
	}
	for _, p := range e.Problems {
		text += separator + p.String()
	}
	return text
}
