package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"

	"github.com/urfave/cli/v2"
)

// A frame runs one command line. It is used once.
type frame struct {
	table  commandTable
	stdin  io.Reader
	stdout *output
	stderr *console

	running string // the path of the command; empty until it is known
}

func newFrame(table commandTable, stdin io.Reader, stdout, stderr io.Writer) *frame {
	return &frame{table: table, stdin: stdin, stdout: newOutput(stdout), stderr: newConsole(stderr)}
}

// run executes the command line and tells on standard error what went wrong.
func (f *frame) run(ctx context.Context, args []string) exitCode {
	stopTelling := f.tellSignal(ctx)
	err := f.execute(ctx, args[min(1, len(args)):])
	stopTelling()
	// The buffer repeats an error that the command has passed on already.
	var told *stdoutError
	if flushErr := f.stdout.Flush(); flushErr != nil && !errors.As(err, &told) {
		err = errors.Join(err, flushErr)
	}
	f.report(ctx, err)
	return exitCodeFor(ctx, err)
}

// tellSignal says on standard error that a signal was understood, when one
// comes. The function that it returns ends this and waits. A command may hear of the
// signal before this does, and end first: it is told then.
func (f *frame) tellSignal(ctx context.Context) (stop func()) {
	tell := sync.OnceFunc(func() {
		if cause := signalCause(ctx); cause != nil {
			f.stderr.say(cause.Error() + ": stopping; a second signal ends the program at once")
		}
	})
	cancel := context.AfterFunc(ctx, tell)
	return func() {
		cancel()
		tell()
	}
}

// report prints err, unless it is a verdict.
func (f *frame) report(ctx context.Context, err error) {
	if cause := signalCause(ctx); cause != nil && !slices.ContainsFunc(codesOf(err), isFailure) {
		return // tellSignal has said it
	}
	where := ""
	if f.running != "" {
		where = f.running + ": "
	}
	messages, hints := errorLines(err, f.running)
	for _, message := range messages {
		f.stderr.say(where + message)
	}
	for _, hint := range hints {
		f.stderr.say("hint: " + hint)
	}
}

// execute understands the command line and runs its command. A panic becomes an
// error without a stack trace, which would tell a user nothing.
func (f *frame) execute(ctx context.Context, argv []string) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("internal error at %s: %v", panicOrigin(), p)
		}
	}()
	index := f.table.flagIndex()
	line, err := index.parse(argv)
	if err != nil {
		return err
	}
	if line.help {
		return f.help(line.words)
	}
	c, args, err := f.table.resolve(line.words, false)
	if line.unknown != "" && c == nil {
		return unknownFlag(line.unknown, nil, keys(index))
	}
	if err != nil {
		return err
	}
	f.running = c.path
	if err := line.check(c); err != nil {
		return err
	}
	if len(args) > c.maxArgs {
		return unexpectedArgument(c, args[c.maxArgs])
	}
	return f.app(c, line).RunContext(ctx, line.canonical(c, args))
}

// unexpectedArgument returns the usage error for an argument that c does not
// take. Where c takes none, what was meant is the value of a flag.
func unexpectedArgument(c *command, arg string) error {
	hint := "usage: " + c.usage()
	if c.maxArgs == 0 {
		for _, f := range []struct{ flag, what string }{
			{"ledger", "; a ledger is named with --ledger FILE"},
			{"topics", "; topics are chosen with --topics LIST"},
		} {
			if c.flag(f.flag) != nil {
				hint += f.what
			}
		}
	}
	return usagef("unexpected argument %s", quoteArg(arg)).withHint("%s", hint)
}

// panicOrigin returns the file and line that panicked. It must be called by the
// deferred function that recovers.
func panicOrigin() string {
	pcs := make([]uintptr, 32)
	frames := runtime.CallersFrames(pcs[:runtime.Callers(0, pcs)])
	panicked := false
	for {
		frame, more := frames.Next()
		inRuntime := strings.HasPrefix(frame.Function, "runtime.")
		if panicked && !inRuntime {
			return fmt.Sprintf("%s:%d", filepath.Base(frame.File), frame.Line)
		}
		panicked = panicked || frame.Function == "runtime.gopanic"
		if !more {
			return "an unknown place"
		}
	}
}

// app returns the cli application that holds nothing but c, below its group if
// it has one. Everything that cli would print or decide by itself is switched
// off: help, version, completion, suggestions, exits.
func (f *frame) app(c *command, line commandLine) *cli.App {
	path := strings.Fields(c.path)
	leaf := &cli.Command{
		Name:     path[len(path)-1],
		Flags:    c.allFlags(),
		HideHelp: true,
		Action:   func(flags *cli.Context) error { return f.act(c, line, flags) },
		OnUsageError: func(_ *cli.Context, err error, _ bool) error {
			return valueError(c, err)
		},
	}
	if len(path) > 1 {
		leaf = &cli.Command{Name: path[0], HideHelp: true, Subcommands: []*cli.Command{leaf}}
	}
	return &cli.App{
		Name:           "apograph",
		HideHelp:       true,
		HideVersion:    true,
		Commands:       []*cli.Command{leaf},
		Reader:         f.stdin,
		Writer:         f.stderr,
		ErrWriter:      f.stderr,
		ExitErrHandler: func(*cli.Context, error) {},
		// A regular expression may hold commas: x{1,2}.
		DisableSliceFlagSeparator: true,
	}
}

// valueError returns the usage error for a value that a flag of c does not
// take, with the flag's name as the user types it.
func valueError(c *command, err error) error {
	message := strings.TrimSuffix(err.Error(), ": parse error")
	for _, before := range []string{" for flag -", " for -", " for flag "} {
		start := strings.LastIndex(message, before)
		if start < 0 {
			continue
		}
		name, _, _ := strings.Cut(message[start+len(before):], ":")
		message = message[:start] + " for --" + name
		if valid := validValues(c.flag(name)); valid != "" {
			return usagef("%s", message).withHint("%s", valid)
		}
		break
	}
	return usagef("%s", message).withHint("`apograph help %s` describes its flags", c.path)
}

// validValues says what a flag takes that cli parses itself; empty for others.
func validValues(f cli.Flag) string {
	switch f.(type) {
	case *cli.DurationFlag:
		return "a duration has a unit: 30s, 2m, 1h30m"
	case *cli.IntFlag, *cli.Int64Flag:
		return "it is a whole number"
	case *cli.BoolFlag:
		return "it is true or false; the flag alone means true"
	default:
		return ""
	}
}

// act runs c's action with the flags that cli has parsed.
func (f *frame) act(c *command, line commandLine, flags *cli.Context) error {
	chosen, err := f.chooseFormat(c, flags, line)
	if err != nil {
		return err
	}
	return c.run(flags.Context, &invocation{
		Context: flags,
		table:   f.table,
		row:     c,
		line:    line,
		args:    flags.Args().Slice(),
		format:  chosen,
		stdin:   f.stdin,
		stdout:  f.stdout,
		stderr:  f.stderr,
		warned:  map[string]bool{},
	})
}
