package main

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"unicode/utf8"

	"apograph/ledger"
)

// A usageError says that the command line or the environment is wrong and that
// nothing was attempted.
type usageError struct {
	message string
	hint    string // what to do instead; may be empty
}

func (e *usageError) Error() string { return e.message }

// Hint returns the advice that goes with the error.
func (e *usageError) Hint() string { return e.hint }

func usagef(format string, args ...any) *usageError {
	return &usageError{message: fmt.Sprintf(format, args...)}
}

func (e *usageError) withHint(format string, args ...any) *usageError {
	e.hint = fmt.Sprintf(format, args...)
	return e
}

// A stdoutError says that a part of the answer could not be written.
type stdoutError struct{ err error }

func (e *stdoutError) Error() string { return "write standard output: " + e.err.Error() }
func (e *stdoutError) Unwrap() error { return e.err }

// closed reports whether the reader of standard output has gone, as head does
// once it has seen enough.
func (e *stdoutError) closed() bool { return errors.Is(e.err, syscall.EPIPE) }

// lawInPlace is the law of [ledger.CorruptError] that a ledger breaks which is no
// more at its path, or not as it was left there.
const lawInPlace = "file_in_place"

// hintFor returns what a user can do about err, or nothing. Advice that an
// error brings along wins over that for its class. The command that met it is
// named by its path.
func hintFor(err error, path string) string {
	var hinted interface{ Hint() string }
	if errors.As(err, &hinted) {
		return hinted.Hint()
	}
	var special *ledger.NotAFileError
	if errors.As(err, &special) {
		return "a ledger is one file: give its path"
	}
	var (
		missing *missingLedgerError
		locked  *ledger.LockedError
		unknown *ledger.FormatError
		corrupt *ledger.CorruptError
	)
	switch {
	case errors.As(err, &missing):
		return "check the path; a ledger is made by the first `apograph replicate` of its flow"
	case errors.As(err, &locked):
		return lockedHint(path, locked.PID)
	case errors.As(err, &unknown):
		return "use the version of apograph that wrote it, or a newer one"
	case errors.As(err, &corrupt) && corrupt.Law == lawInPlace:
		return "put the ledger back if it was moved, else go on from the newest snapshot that passes `apograph ledger check`, or make a new one with `apograph attach`"
	case errors.As(err, &corrupt):
		return "the file is left as it is: keep it, and go on from the newest snapshot that passes `apograph ledger check`"
	}
	return ""
}

// lockedHint returns what a user of a command can do about a ledger that
// another process holds, and what that process is, where this can be seen.
func lockedHint(path string, pid int) string {
	advice := "stop that process, or ask a snapshot of the ledger instead"
	switch path {
	case "replicate":
		advice = "a ledger has one replicator at a time: stop that process first"
	case "ledger snapshot":
		advice = "stop that process, or wait until it ends"
	}
	if command := commandOf(pid); command != "" {
		return fmt.Sprintf("process %d is `%s`; %s", pid, command, advice)
	}
	return advice
}

// errorLines returns what to tell a person about err, which ended the command
// with this path: its messages, and what can be done about them. Verdicts are
// silent, and so is a reader of standard output that has gone. Nothing in a
// line can control a terminal, and no line holds a secret.
func errorLines(err error, path string) (messages, hints []string) {
	for _, e := range splitJoined(err) {
		for line := range strings.Lines(e.Error()) {
			messages = append(messages, clean(strings.TrimSuffix(line, "\n")))
		}
		if hint := hintFor(e, path); hint != "" && !slices.Contains(hints, hint) {
			hints = append(hints, clean(hint))
		}
	}
	return messages, hints
}

// splitJoined returns the errors that err joins without words of its own, as
// errors.Join does, and leaves out those without a message.
func splitJoined(err error) []error {
	var (
		v      verdict
		unread *stdoutError
	)
	switch {
	case err == nil:
		return nil
	case !isJoin(err):
		if errors.As(err, &v) || errors.As(err, &unread) && unread.closed() {
			return nil
		}
		return []error{err}
	}
	var parts []error
	for _, cause := range causes(err) {
		parts = append(parts, splitJoined(cause)...)
	}
	return parts
}

func isJoin(err error) bool {
	many, ok := err.(interface{ Unwrap() []error })
	return ok && errors.Join(many.Unwrap()...).Error() == err.Error()
}

// maxEcho is how many bytes of what a user typed an error message repeats.
const maxEcho = 100

// quoteArg returns a word of the command line as an error message may repeat
// it: quoted, escaped, of bounded length, and without a secret.
func quoteArg(word string) string {
	word = hideSecrets(word)
	if len(word) > maxEcho {
		cut := maxEcho
		for cut > 0 && !utf8.RuneStart(word[cut]) {
			cut--
		}
		word = word[:cut] + "..."
	}
	return `"` + printable(word) + `"`
}

// clean makes one line fit to be shown.
func clean(line string) string { return printable(hideSecrets(line)) }

// hidden stands for a secret.
const hidden = "[hidden]"

// hideSecrets returns s with the values of secrets replaced by a word. It is
// the last net under code that must not put secrets into messages at all.
func hideSecrets(s string) string {
	if !strings.ContainsAny(s, "=:") && !strings.Contains(s, "-----") {
		return s // every pattern has one of them
	}
	for _, pattern := range secretPatterns() {
		var b strings.Builder
		done := 0
		for _, at := range pattern.FindAllStringSubmatchIndex(s, -1) {
			start, end := at[2], at[3]
			if strings.HasPrefix(s[start:end], hidden) {
				continue // the value has been hidden, and what follows is none
			}
			b.WriteString(s[done:start] + hidden)
			done = end
		}
		s = b.String() + s[done:]
	}
	return s
}

// secretPatterns returns what finds secrets, each as the first group. The names
// are those of Kafka's client settings (ssl.keystore.password,
// ssl.keystore.key, sasl.jaas.config,
// sasl.oauthbearer.client.credentials.client.secret, ...) and of the options
// inside a sasl.jaas.config. Settings of free form are hidden to the end of the
// text; what stands behind sasl.jaas.config and a colon may also be why it is
// wrong. They are made once, and not before there is a text to look through.
var secretPatterns = sync.OnceValue(func() []*regexp.Regexp {
	const (
		free   = `(?:jaas\.config\s*=|jaas\.config\s*:\s*(?:\S*LoginModule|["'])|keystore\.key\s*[=:]|-----BEGIN [A-Z ]*PRIVATE KEY-----)`
		name   = `(?:password|passwd|secret|token|credentials?)["']?`
		quoted = `"(?:[^"\\]|\\.)*"?|'[^']*'?`
		bare   = `[^\s"',;][^\s,;]*`
	)
	return []*regexp.Regexp{
		regexp.MustCompile(`(?is)` + free + `(.+)`),
		regexp.MustCompile(`(?is)` + name + `\s*=\s*(` + quoted + `|` + bare + `)`),
		regexp.MustCompile(`(?is)` + name + `\s*:\s*(` + quoted + `)`),
		regexp.MustCompile(`(?is)` + name + `:(` + bare + `)`),
		regexp.MustCompile(`://[^\s/:@]*:([^\s/@]+)@`),
	}
})
