package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"syscall"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

// TestMain lets this binary stand for programs that tests start by name:
// apograph itself; apograph-waits, the same frame with commands that wait to be
// stopped; and apograph-holds, which holds a ledger.
func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){
		"apograph":       main,
		"apograph-waits": waits,
		"apograph-holds": holds,
	})
}

// waits is main with the commands "clean", which ends with its context, and
// "stubborn", which does not. Both say on standard output where they are.
func waits() {
	ctx, stop := notifySignals(context.Background())
	waiting := func(ctx context.Context, inv *invocation) error {
		fmt.Fprintln(inv.stdout, "ready")
		return inv.stdout.Flush()
	}
	table := commandTable{
		{path: "clean", run: func(ctx context.Context, inv *invocation) error {
			err := waiting(ctx, inv)
			<-ctx.Done()
			return errors.Join(err, fmt.Errorf("read: %w", ctx.Err()))
		}},
		{path: "stubborn", run: func(ctx context.Context, inv *invocation) error {
			err := waiting(ctx, inv)
			<-ctx.Done()
			fmt.Fprintln(inv.stdout, "stopping")
			err = errors.Join(err, inv.stdout.Flush())
			io.Copy(io.Discard, inv.stdin) // which nobody closes
			return err
		}},
	}
	code := newFrame(table, os.Stdin, os.Stdout, os.Stderr).run(ctx, os.Args)
	stop()
	os.Exit(int(code))
}

// A process is a program under test.
type process struct {
	cmd    *exec.Cmd
	stdin  io.Closer
	stdout *bufio.Scanner
	stderr bytes.Buffer
}

func mustStart(t *testing.T, name string, args ...string) *process {
	t.Helper()
	p := &process{cmd: exec.CommandContext(t.Context(), name, args...)}
	p.cmd.Stderr = &p.stderr
	stdin, err := p.cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	p.stdin = stdin
	stdout, err := p.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	p.stdout = bufio.NewScanner(stdout)
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return p
}

// mustSay waits for the next line of standard output.
func (p *process) mustSay(t *testing.T, want string) {
	t.Helper()
	if !p.stdout.Scan() || p.stdout.Text() != want {
		t.Fatalf("standard output: %q (%v), want %q", p.stdout.Text(), p.stdout.Err(), want)
	}
}

func (p *process) mustSignal(t *testing.T, s syscall.Signal) {
	t.Helper()
	if err := p.cmd.Process.Signal(s); err != nil {
		t.Fatal(err)
	}
}

func (p *process) exitCode() int {
	err := p.cmd.Wait()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return exit.ExitCode()
	}
	return 0
}

func TestFirstSignalStopsCleanly(t *testing.T) {
	for s, want := range map[syscall.Signal]struct {
		code int
		said string
	}{
		syscall.SIGINT:  {130, "apograph: interrupted: stopping; a second signal ends the program at once\n"},
		syscall.SIGTERM: {143, "apograph: terminated: stopping; a second signal ends the program at once\n"},
	} {
		p := mustStart(t, "apograph-waits", "clean")
		p.mustSay(t, "ready")
		p.mustSignal(t, s)
		if code := p.exitCode(); code != want.code || p.stderr.String() != want.said {
			t.Errorf("after %v: exit %d, stderr %q, want %d and %q", s, code, p.stderr.String(), want.code, want.said)
		}
	}
}

func TestSecondSignalEndsAtOnce(t *testing.T) {
	for first, second := range map[syscall.Signal]syscall.Signal{
		syscall.SIGINT:  syscall.SIGTERM,
		syscall.SIGTERM: syscall.SIGINT,
	} {
		p := mustStart(t, "apograph-waits", "stubborn")
		p.mustSay(t, "ready")
		p.mustSignal(t, first)
		p.mustSay(t, "stopping")
		p.mustSignal(t, second)
		if code, want := p.exitCode(), 128+int(second); code != want {
			t.Errorf("%v and then %v: exit %d, want %d", first, second, code, want)
		}
	}
}

// TestClosedPipe: where nobody reads standard output any more a command ends
// with the code that a shell gives for SIGPIPE, without a word, but by itself.
func TestClosedPipe(t *testing.T) {
	read, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer write.Close()
	if err := read.Close(); err != nil {
		t.Fatal(err)
	}
	p := &process{cmd: exec.CommandContext(t.Context(), "apograph", "help")}
	p.cmd.Stdout, p.cmd.Stderr = write, &p.stderr
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if code := p.exitCode(); code != 141 || p.stderr.String() != "" {
		t.Errorf("exit %d, stderr %q, want 141 and nothing", code, p.stderr.String())
	}
}
