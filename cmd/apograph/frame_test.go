package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"syscall"
	"testing"

	"github.com/urfave/cli/v2"
)

// testTable returns commands that stand for real ones in tests of the frame.
// "echo" writes what it was given; "end" ends as end says.
func testTable(end func(ctx context.Context, inv *invocation) error) commandTable {
	return commandTable{
		{path: "group", summary: "a group"},
		{
			path: "group echo", args: "[ARG...]", maxArgs: 9, summary: "write what was given",
			examples: []string{"apograph group echo a"},
			flags: []cli.Flag{
				stringFlag("name", "a `NAME`", "n"),
				listFlag("item", "an `ITEM`"),
				durationFlag("wait", "a `TIME`", 0),
				&cli.BoolFlag{Name: "execute", Aliases: []string{"x"}, Usage: "do it"},
			},
			run: echo,
		},
		{
			path: "end", summary: "end", formats: []format{formatTable, formatJSON},
			flags: []cli.Flag{statsFlag()}, run: end,
		},
		{
			path: "save", summary: "save",
			flags: []cli.Flag{&cli.StringFlag{Name: "output", Aliases: []string{"o"}, Usage: "a `FILE`"}},
			run: func(_ context.Context, inv *invocation) error {
				_, err := fmt.Fprintf(inv.stdout, "file %s\n", inv.String("output"))
				return err
			},
		},
		helpCommand(),
	}
}

func echo(_ context.Context, inv *invocation) error {
	_, err := fmt.Fprintf(inv.stdout, "args=%q name=%q items=%q wait=%v execute=%t\n",
		inv.args, inv.String("name"), inv.StringSlice("item"), inv.Duration("wait"), inv.Bool("execute"))
	return err
}

// runTest runs a command line on the test table.
func runTest(ctx context.Context, end func(context.Context, *invocation) error, argv ...string) (code exitCode, stdout, stderr string) {
	var out, errs bytes.Buffer
	f := newFrame(testTable(end), strings.NewReader(""), &out, &errs)
	code = f.run(ctx, append([]string{"apograph"}, argv...))
	return code, out.String(), errs.String()
}

func TestFlagForms(t *testing.T) {
	tests := []struct {
		name string
		argv []string
		want string
	}{
		{"flags behind arguments", []string{"group", "echo", "a", "--name", "n", "b", "-x"},
			`args=["a" "b"] name="n" items=[] wait=0s execute=true`},
		{"flags before the command", []string{"--name=n", "group", "-x", "echo", "a"},
			`args=["a"] name="n" items=[] wait=0s execute=true`},
		{"short with a blank", []string{"group", "echo", "-n", "v"},
			`args=[] name="v" items=[] wait=0s execute=false`},
		{"short with an equals sign", []string{"group", "echo", "-n=v=w"},
			`args=[] name="v=w" items=[] wait=0s execute=false`},
		{"short with the value attached", []string{"group", "echo", "-nv"},
			`args=[] name="v" items=[] wait=0s execute=false`},
		{"a repeated flag keeps its commas", []string{"group", "echo", "--item", "a{1,2}", "x", "--item= b "},
			`args=["x"] name="" items=["a{1,2}" " b "] wait=0s execute=false`},
		{"the same value twice", []string{"group", "echo", "--name=a", "-n", "a"},
			`args=[] name="a" items=[] wait=0s execute=false`},
		{"a switch takes no value from the next word", []string{"group", "echo", "--execute", "false"},
			`args=["false"] name="" items=[] wait=0s execute=true`},
		{"a switch switched off", []string{"group", "echo", "--execute=false"},
			`args=[] name="" items=[] wait=0s execute=false`},
		{"double dash ends flags", []string{"group", "echo", "-x", "--", "--name", "-n", "--"},
			`args=["--name" "-n" "--"] name="" items=[] wait=0s execute=true`},
		{"double dash before the command", []string{"--", "group", "echo", "-x"},
			`args=["-x"] name="" items=[] wait=0s execute=false`},
		{"a dash is an argument", []string{"group", "echo", "-"},
			`args=["-"] name="" items=[] wait=0s execute=false`},
		{"a dash is a value", []string{"group", "echo", "--name", "-"},
			`args=[] name="-" items=[] wait=0s execute=false`},
		{"a negative number is an argument", []string{"group", "echo", "-5", "-1.5"},
			`args=["-5" "-1.5"] name="" items=[] wait=0s execute=false`},
		{"a negative number is a value", []string{"group", "echo", "--name", "-7"},
			`args=[] name="-7" items=[] wait=0s execute=false`},
		{"a value that begins with a dash", []string{"group", "echo", "--name=--x"},
			`args=[] name="--x" items=[] wait=0s execute=false`},
		{"an empty value", []string{"group", "echo", "--name=", "--item", ""},
			`args=[] name="" items=[""] wait=0s execute=false`},
		{"an argument spelled as a flag's name", []string{"group", "echo", "--name=n", "name"},
			`args=["name"] name="n" items=[] wait=0s execute=false`},
		{"an argument spelled as a command", []string{"group", "echo", "group", "help", "h"},
			`args=["group" "help" "h"] name="" items=[] wait=0s execute=false`},
		{"output is a file where the command says so", []string{"-o", "f", "save"}, `file f`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			code, stdout, stderr := runTest(t.Context(), nil, tt.argv...)
			if code != exitOK || stdout != tt.want+"\n" || stderr != "" {
				t.Errorf("%q: exit %d, stdout %q, stderr %q, want stdout %q", tt.argv, code, stdout, stderr, tt.want)
			}
		})
	}
}

// A refusal is a command line that must be refused, and what is said about it.
type refusal struct {
	name string
	argv []string
	want string // standard error, without the program's name before each line
}

func refusals() []refusal {
	return []refusal{
		{"no command", nil,
			"no command given\nhint: `apograph help` lists the commands"},
		{"a group alone", []string{"group"},
			"group needs a subcommand: echo\nhint: `apograph help group` describes them"},
		{"unknown command", []string{"edn"},
			"unknown command \"edn\"\nhint: did you mean `apograph end`?"},
		{"unknown command like no other", []string{"frobnicate"},
			"unknown command \"frobnicate\"\nhint: `apograph help` lists the commands"},
		{"subcommand without its group", []string{"echo", "a"},
			"unknown command \"echo\"\nhint: did you mean `apograph group echo`?"},
		{"unknown subcommand", []string{"group", "ehco"},
			"unknown group subcommand \"ehco\"\nhint: did you mean `apograph group echo`?"},
		{"a command is no subcommand", []string{"group", "end"},
			"unknown group subcommand \"end\"\nhint: `apograph help` lists the commands"},
		{"unknown flag", []string{"group", "echo", "--nmae", "x"},
			"group echo: unknown flag \"--nmae\"\nhint: did you mean --name?"},
		{"unknown flag behind an argument", []string{"group", "echo", "a", "--zzzzzz=secret"},
			"group echo: unknown flag \"--zzzzzz\"\nhint: `apograph help group echo` lists its flags"},
		{"unknown flag before the command", []string{"--ietm", "group", "echo"},
			"group echo: unknown flag \"--ietm\"\nhint: did you mean --item?"},
		{"unknown flag alone", []string{"--exceute"},
			"unknown flag \"--exceute\"\nhint: did you mean --execute?"},
		{"a flag of another command", []string{"end", "--name", "x"},
			"end: unknown flag \"--name\"\nhint: `apograph help end` lists its flags"},
		{"one dash before a long name", []string{"group", "echo", "-name", "x"},
			"group echo: unknown flag \"-name\"\nhint: did you mean --name?"},
		{"a typographic dash", []string{"group", "echo", "\u2013name", "x"},
			"group echo: unknown flag \"\u2013name\"\nhint: did you mean --name?"},
		{"two dashes before a short name", []string{"group", "echo", "--n", "x"},
			"group echo: unknown flag \"--n\"\nhint: `apograph help group echo` lists its flags"},
		{"switches are not bundled", []string{"group", "echo", "-xn"},
			"group echo: unknown flag \"-xn\"\nhint: `apograph help group echo` lists its flags"},
		{"no value", []string{"group", "echo", "--name"},
			"--name needs a value"},
		{"a flag in place of a value", []string{"group", "echo", "-n", "--execute"},
			"-n needs a value, and \"--execute\" looks like a flag\nhint: a value that begins with a dash is written -n=VALUE"},
		{"the end of flags in place of a value", []string{"group", "echo", "--name", "--"},
			"--name needs a value, and \"--\" looks like a flag\nhint: a value that begins with a dash is written --name=VALUE"},
		{"two values for one", []string{"group", "echo", "--name=a", "--name=b"},
			"--name is given twice: \"a\" and \"b\""},
		{"a value of the wrong type", []string{"group", "echo", "--wait=soon"},
			"group echo: invalid value \"soon\" for --wait\nhint: a duration has a unit: 30s, 2m, 1h30m"},
		{"a switch with a value", []string{"group", "echo", "--execute=yes"},
			"group echo: invalid boolean value \"yes\" for --execute\nhint: it is true or false; the flag alone means true"},
		{"too many arguments", []string{"end", "now"},
			"end: unexpected argument \"now\"\nhint: usage: apograph end [FLAG...]"},
		{"a format that the command lacks", []string{"end", "-o", "csv"},
			"end: -o must be table or json, not \"csv\""},
		{"a format that the command lacks, by the long name", []string{"end", "--output=csv"},
			"end: --output must be table or json, not \"csv\""},
		{"a short flag that the command lacks", []string{"group", "echo", "-ojson"},
			"group echo: unknown flag \"-o\"\nhint: `apograph help group echo` lists its flags"},
		{"two values for a short flag", []string{"end", "-o", "json", "-otable"},
			"-o is given twice: \"json\" and \"table\""},
		{"help for nearly the exit codes", []string{"help", "exit-code"},
			"help: unknown command \"exit-code\"\nhint: did you mean `apograph help exit-codes`?"},
		{"a control character", []string{"\x1b[31m"},
			"unknown command \"\\x1b[31m\"\nhint: `apograph help` lists the commands"},
		{"help for nothing", []string{"help", "ned"},
			"help: unknown command \"ned\"\nhint: did you mean `apograph end`?"},
		{"help for nothing, by flag", []string{"ned", "--help"},
			"unknown command \"ned\"\nhint: did you mean `apograph end`?"},
		{"help for too much", []string{"help", "end", "now"},
			"help: end has no subcommand \"now\"\nhint: `apograph help end` describes it"},
	}
}

// TestRefused: what is refused exits with 2 and leaves standard output empty;
// one line says what is wrong, and mostly another what to do.
func TestRefused(t *testing.T) {
	for _, tt := range refusals() {
		t.Run(tt.name, func(t *testing.T) {
			ended := func(context.Context, *invocation) error { return errors.New("the command ran") }
			code, stdout, stderr := runTest(t.Context(), ended, tt.argv...)
			want := "apograph: " + strings.ReplaceAll(tt.want, "\n", "\napograph: ") + "\n"
			if code != exitUsage || stdout != "" || stderr != want {
				t.Errorf("%q: exit %d, stdout %q, stderr\n%s\nwant exit 2 and stderr\n%s", tt.argv, code, stdout, stderr, want)
			}
		})
	}
}

func TestEnvironment(t *testing.T) {
	t.Setenv("APOGRAPH_NAME", "from-env")
	t.Setenv("APOGRAPH_ITEM", "a,b")
	t.Setenv("APOGRAPH_WAIT", "3s")
	t.Setenv("APOGRAPH_EXECUTE", "true")
	tests := []struct {
		name string
		argv []string
		want string
	}{
		{"variables stand for flags, but for none that permits something", []string{"group", "echo"},
			`args=[] name="from-env" items=["a,b"] wait=3s execute=false`},
		{"flags win", []string{"group", "echo", "--name=flag", "--item=c", "--wait=1s"},
			`args=[] name="flag" items=["c"] wait=1s execute=false`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			code, stdout, stderr := runTest(t.Context(), nil, tt.argv...)
			if code != exitOK || stdout != tt.want+"\n" || stderr != "" {
				t.Errorf("exit %d, stdout %q, stderr %q, want %q", code, stdout, stderr, tt.want)
			}
		})
	}
}

func TestEnvironmentRefused(t *testing.T) {
	t.Setenv("APOGRAPH_WAIT", "soon")
	t.Setenv("APOGRAPH_OUTPUT", "csv")
	for _, tt := range []struct{ argv, want string }{
		{"group echo", `apograph: group echo: could not parse "soon" as duration value from environment variable "APOGRAPH_WAIT" for --wait` +
			"\napograph: hint: a duration has a unit: 30s, 2m, 1h30m\n"},
	} {
		code, stdout, stderr := runTest(t.Context(), echo, strings.Fields(tt.argv)...)
		if code != exitUsage || stdout != "" || !strings.HasPrefix(stderr, tt.want) {
			t.Errorf("%s: exit %d, stdout %q, stderr %q, want exit 2 and %q", tt.argv, code, stdout, stderr, tt.want)
		}
	}
	// Where --output is no format, the variable means nothing.
	if _, stdout, _ := runTest(t.Context(), nil, "save"); stdout != "file \n" {
		t.Errorf("save wrote %q, want no file from APOGRAPH_OUTPUT", stdout)
	}
}

// TestOutputVariable: APOGRAPH_OUTPUT is a wish for all commands, and stops
// none that cannot fulfil it.
func TestOutputVariable(t *testing.T) {
	for _, tt := range []struct {
		value  string
		want   format
		stderr string
	}{
		{"json", formatJSON, ""},
		{"csv", formatTable, ""},
		{"jason", formatTable, "apograph: warning: APOGRAPH_OUTPUT is no format: \"jason\"; the answer is written as table\n"},
	} {
		t.Setenv("APOGRAPH_OUTPUT", tt.value)
		var got format
		code, _, stderr := runTest(t.Context(), func(_ context.Context, inv *invocation) error {
			got = inv.format
			return nil
		}, "end")
		if code != exitOK || got != tt.want || stderr != tt.stderr {
			t.Errorf("%s: exit %d, format %q, stderr %q, want %q and %q", tt.value, code, got, stderr, tt.want, tt.stderr)
		}
	}
}

func TestEmptyVariableIsNone(t *testing.T) {
	t.Setenv("APOGRAPH_OUTPUT", "")
	t.Setenv("APOGRAPH_STATS", "")
	var got format
	code, _, stderr := runTest(t.Context(), func(_ context.Context, inv *invocation) error {
		got = inv.format
		return nil
	}, "end")
	if code != exitOK || got != formatTable {
		t.Errorf("exit %d, format %q, stderr %q, want the default format", code, got, stderr)
	}
}

func TestPanicIsOneLine(t *testing.T) {
	code, stdout, stderr := runTest(t.Context(), func(context.Context, *invocation) error {
		var none []int
		return fmt.Errorf("unreachable: %d", none[len(none)])
	}, "end")
	if code != exitError || stdout != "" || !strings.HasPrefix(stderr, "apograph: end: internal error at frame_test.go:") ||
		strings.Count(stderr, "\n") != 1 {
		t.Errorf("exit %d, stdout %q, stderr %q, want exit 1 and one line with the place", code, stdout, stderr)
	}
}

// A failingWriter fails every write.
type failingWriter struct{ err error }

func (w failingWriter) Write([]byte) (int, error) { return 0, w.err }

// TestUnwritableStdout: an answer that cannot be written is an error; one that
// nobody wants to read any more is a quiet end. Neither leaves a verdict.
func TestUnwritableStdout(t *testing.T) {
	long := strings.Repeat("x", 1<<16) // more than is buffered
	full := "write standard output: no space left on device\n"
	tests := []struct {
		name       string
		run        func(_ context.Context, inv *invocation) error
		want       exitCode // on a full disk
		said       string
		closed     exitCode // behind head
		closedSaid string
	}{
		{"a short answer fails when it is flushed", func(_ context.Context, inv *invocation) error {
			_, err := fmt.Fprintln(inv.stdout, "x")
			return err
		}, exitError, full, exitClosedPipe, ""},
		{"a long answer fails at once", func(_ context.Context, inv *invocation) error {
			_, err := fmt.Fprintln(inv.stdout, long)
			return err
		}, exitError, full, exitClosedPipe, ""},
		{"a command that does not look fails as well", func(_ context.Context, inv *invocation) error {
			fmt.Fprintln(inv.stdout, long)
			return nil
		}, exitError, full, exitClosedPipe, ""},
		{"a verdict that nobody could read is none", func(_ context.Context, inv *invocation) error {
			fmt.Fprintln(inv.stdout, "x")
			return verdict(exitFaults)
		}, exitError, full, exitClosedPipe, ""},
		{"a failure is told all the same", func(_ context.Context, inv *invocation) error {
			_, err := fmt.Fprintln(inv.stdout, long)
			return errors.Join(err, errors.New("the cluster is gone"))
		}, exitError, full + "apograph: end: the cluster is gone\n", exitError, "apograph: end: the cluster is gone\n"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			said := "apograph: end: " + tt.said
			for _, end := range []struct {
				err  error
				code exitCode
				said string
			}{{syscall.ENOSPC, tt.want, said}, {syscall.EPIPE, tt.closed, tt.closedSaid}} {
				var errs bytes.Buffer
				f := newFrame(testTable(tt.run), strings.NewReader(""), failingWriter{end.err}, &errs)
				code := f.run(t.Context(), []string{"apograph", "end"})
				if code != end.code || errs.String() != end.said {
					t.Errorf("%v: exit %d, stderr %q, want exit %d and %q", end.err, code, errs.String(), end.code, end.said)
				}
			}
		})
	}
}

func TestHelpOfTestTable(t *testing.T) {
	for _, argv := range [][]string{
		{"help", "group", "echo"}, {"group", "echo", "--help"}, {"-h", "group", "echo"},
		{"group", "echo", "a", "b", "--nosuch", "-h"},
	} {
		code, stdout, stderr := runTest(t.Context(), nil, argv...)
		if code != exitOK || stderr != "" || !strings.Contains(stdout, "\nExamples:\n  apograph group echo a\n") {
			t.Errorf("%q: exit %d, stdout %q, stderr %q, want help with the example", argv, code, stdout, stderr)
		}
	}
}

// TestTableIsSound holds what the frame takes for granted of the real table.
func TestTableIsSound(t *testing.T) {
	takesValue, paths := map[string]bool{}, map[string]bool{}
	for _, c := range commands() {
		if paths[c.path] {
			t.Errorf("two commands are called %q", c.path)
		}
		paths[c.path] = true
		if group, _, nested := strings.Cut(c.path, " "); nested && !paths[group] {
			t.Errorf("%q stands before its group", c.path)
		}
		if c.summary == "" || c.run != nil && len(c.examples) == 0 {
			t.Errorf("%q has no summary or no example", c.path)
		}
		for _, f := range c.allFlags() {
			spec := specOf(f)
			for _, name := range f.Names() {
				if old, ok := takesValue[name]; ok && old != spec.takesValue {
					t.Errorf("%s takes a value in one command and none in another", dashed(name))
				}
				takesValue[name] = spec.takesValue
				if name == "h" || name == "help" || name == "version" || strings.Trim(name[:1], "-0123456789") == "" {
					t.Errorf("%q cannot have a flag called %s", c.path, dashed(name))
				}
			}
		}
	}
}
