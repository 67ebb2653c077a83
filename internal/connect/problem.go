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

// A Notice is something that a person should know about a setting that was
// accepted. It never holds the value of a secret key.
type Notice struct {
	Key, Where string
	Level      Level
	Unknown    bool   // Kafka's clients do not know the key either, and only warn of it
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
