package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"time"

	"github.com/urfave/cli/v2"
)

// A format is a way to write an answer, as --output names it.
type format string

const (
	formatTable     format = "table" // aligned text; where a terminal is too narrow, name: value lines
	formatWide      format = "wide"  // aligned text, however wide
	formatJSON      format = "json"  // one document on one line
	formatJSONLines format = "jsonl" // one document a line
	formatCSV       format = "csv"   // RFC 4180 with a header and plain newlines
)

// allFormats returns every format that a command may have.
func allFormats() []format {
	return []format{formatTable, formatWide, formatJSON, formatJSONLines, formatCSV}
}

func formatNames(formats []format) []string {
	var names []string
	for _, f := range formats {
		names = append(names, string(f))
	}
	return names
}

// chooseFormat returns the format that --output asks for, which must be one of
// c's; empty if c has none, since then its --output is no format. The variable
// is a wish for all commands: one that c cannot fulfil means c's default.
func (f *frame) chooseFormat(c *command, flags *cli.Context, line commandLine) (format, error) {
	if len(c.formats) == 0 {
		return "", nil
	}
	asked := format(flags.String("output"))
	if asked == "" {
		return c.formats[0], nil
	}
	if slices.Contains(c.formats, asked) {
		return asked, nil
	}
	if typed := line.typed("output"); typed != "" {
		return "", usagef("%s must be %s, not %s", typed, orList(formatNames(c.formats)), quoteArg(string(asked)))
	}
	if !slices.Contains(allFormats(), asked) {
		f.stderr.warn(fmt.Sprintf("%s is no format: %s; the answer is written as %s",
			envVar("output"), quoteArg(string(asked)), c.formats[0]))
	}
	return c.formats[0], nil
}

// An output is standard output: buffered, and its errors are of type
// [*stdoutError]. Not safe for concurrent use.
type output struct {
	buffer   *bufio.Writer
	terminal bool
	redraws  bool // it is a terminal that can be written over with escape sequences
	columns  int  // of the terminal; 0 if there is none, or it is not known
}

func newOutput(w io.Writer) *output {
	columns, terminal := terminalWidth(w)
	return &output{
		buffer: bufio.NewWriter(w), terminal: terminal, columns: columns, redraws: terminal && mayEscape(),
	}
}

// Write writes to the buffer. After the first error it only repeats that one.
func (o *output) Write(p []byte) (int, error) {
	n, err := o.buffer.Write(p)
	return n, asStdoutError(err)
}

// Flush writes out what is buffered. The frame calls it at the end; a command
// that goes on for long calls it whenever an answer is complete.
func (o *output) Flush() error { return asStdoutError(o.buffer.Flush()) }

func asStdoutError(err error) error {
	if err == nil {
		return nil
	}
	var path *os.PathError
	if errors.As(err, &path) {
		err = path.Err
	}
	return &stdoutError{err: err}
}

// An envelope opens every JSON document. Embed it first.
type envelope struct {
	Kind   string `json:"kind"`
	Schema string `json:"schema"`
}

// newEnvelope returns the envelope of version 1 of a schema.
func newEnvelope(kind, schema string) envelope {
	return envelope{Kind: kind, Schema: "apograph/" + schema + "/v1"}
}

// writeJSON writes v to w as one document on one line.
func writeJSON(w io.Writer, v any) error {
	var document bytes.Buffer
	encoder := json.NewEncoder(&document)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(v); err != nil {
		return err
	}
	_, err := w.Write(printableJSON(document.Bytes()))
	return err
}

// An instant is a time in an answer: RFC 3339, UTC, milliseconds. The zero
// instant is unknown: null in JSON, empty in text.
type instant struct{ time.Time }

// instantOf returns the instant at a number of milliseconds since 1970; 0 means
// unknown.
func instantOf(millis int64) instant {
	if millis == 0 {
		return instant{}
	}
	return instant{time.UnixMilli(millis)}
}

func (i instant) String() string {
	if i.IsZero() {
		return ""
	}
	return i.UTC().Format("2006-01-02T15:04:05.000Z")
}

// MarshalJSON returns the instant as a string, or null.
func (i instant) MarshalJSON() ([]byte, error) {
	if i.IsZero() {
		return []byte("null"), nil
	}
	return json.Marshal(i.String())
}

// UnmarshalJSON is the inverse of MarshalJSON.
func (i *instant) UnmarshalJSON(text []byte) error {
	*i = instant{}
	return json.Unmarshal(text, &i.Time)
}
