package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"syscall"
	"testing"

	"apograph/ledger"
)

func TestExitCodeOfAnError(t *testing.T) {
	plain := errors.New("cluster gone")
	damaged := &ledger.CorruptError{Path: "f"}
	faults, unproven, refused := verdict(exitFaults), verdict(exitUnproven), verdict(exitRefused)
	wrap := func(err error) error { return fmt.Errorf("flow a->b: %w", err) }
	tests := []struct {
		name string
		err  error
		want exitCode
	}{
		{"none", nil, 0},
		{"unknown class", plain, 1},
		{"unknown class, wrapped", wrap(plain), 1},
		{"usage", usagef("bad"), 2},
		{"faults", faults, 3},
		{"unproven", unproven, 4},
		{"refused", refused, 5},
		{"no ledger", &missingLedgerError{path: "f"}, 10},
		{"another file is missing", fs.ErrNotExist, 1},
		{"locked", &ledger.LockedError{Path: "f"}, 11},
		{"damaged", damaged, 12},
		{"damaged, wrapped twice", wrap(wrap(damaged)), 12},
		{"unknown format", &ledger.FormatError{Path: "f"}, 12},
		{"cancelled by no signal", context.Canceled, 1},
		{"cancelled by no signal, with a verdict", errors.Join(unproven, context.Canceled), 1},
		{"deadline", context.DeadlineExceeded, 1},

		{"damaged and unknown", errors.Join(plain, damaged), 12},
		{"damaged and faults", errors.Join(faults, wrap(damaged)), 12},
		{"unknown and faults", errors.Join(faults, plain), 1},
		{"faults and refused", errors.Join(refused, faults), 3},
		{"refused and unproven", errors.Join(unproven, refused), 5},
		{"all verdicts", errors.Join(unproven, errors.Join(refused, faults)), 3},
		{"everything", errors.Join(unproven, refused, faults, plain, damaged), 12},
		{"two in one message", fmt.Errorf("%w: %w", plain, damaged), 12},
		{"one flow has no ledger, another has faults", errors.Join(faults, &missingLedgerError{}), 1},
		{"no flow has a ledger", errors.Join(&missingLedgerError{}, wrap(&missingLedgerError{})), 10},
		{"no ledger, and one is locked", errors.Join(&missingLedgerError{}, &ledger.LockedError{}), 1},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := exitCodeFor(t.Context(), tt.err); got != tt.want {
				t.Errorf("exitCodeFor(%v) = %d, want %d", tt.err, got, tt.want)
			}
		})
	}
}

func TestExitCodeAfterASignal(t *testing.T) {
	damaged := &ledger.CorruptError{Path: "f"}
	plain := errors.New("commit failed")
	tests := []struct {
		name string
		err  error
		want exitCode
	}{
		{"a clean stop", nil, 130},
		{"the cause", &signalError{syscall.SIGINT}, 130},
		{"a cancellation, wrapped", fmt.Errorf("read: %w", context.Canceled), 130},
		{"a verdict on what there was", errors.Join(verdict(exitFaults), context.Canceled), 130},
		{"a stop that failed", errors.Join(context.Canceled, plain), 1},
		{"a stop that failed, in one message", fmt.Errorf("%w: %w", plain, context.Canceled), 1},
		{"damage found", errors.Join(context.Canceled, damaged), 12},
		{"usage", usagef("bad"), 2},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			ctx, cancel := context.WithCancelCause(t.Context())
			cancel(&signalError{syscall.SIGINT})
			if got := exitCodeFor(ctx, tt.err); got != tt.want {
				t.Errorf("exitCodeFor(%v) = %d, want %d", tt.err, got, tt.want)
			}
		})
	}
}

// TestSignalIsToldOnce: an interrupted command says so, and nothing else.
func TestSignalIsToldOnce(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(&signalError{syscall.SIGTERM})
	code, stdout, stderr := runTest(ctx, func(ctx context.Context, inv *invocation) error {
		fmt.Fprintln(inv.stdout, "part")
		return fmt.Errorf("read: %w", context.Cause(ctx))
	}, "end")
	want := "apograph: terminated: stopping; a second signal ends the program at once\n"
	if code != 143 || stdout != "part\n" || stderr != want {
		t.Errorf("exit %d, stdout %q, stderr %q, want 143 and %q", code, stdout, stderr, want)
	}
}

// TestErrorsAreTold runs commands that end in errors and compares all that is
// said about them.
func TestErrorsAreTold(t *testing.T) {
	tests := []struct {
		name string
		err  error
		want []string
	}{
		{"a verdict is silent", verdict(exitFaults), nil},
		{"a verdict beside an error", errors.Join(verdict(exitFaults), errors.New("a")), []string{"end: a"}},
		{"a verdict inside an error", fmt.Errorf("flow: %w", verdict(exitFaults)), nil},
		{"each of several", errors.Join(errors.New("a"), errors.Join(errors.New("b"), errors.New("c\nd"))),
			[]string{"end: a", "end: b", "end: c", "end: d"}},
		{"control characters", errors.New("topic \x1b]0;x\x07"), []string{`end: topic \x1b]0;x\a`}},
		{"advice of the error itself", fmt.Errorf("x: %w", usagef("bad").withHint("do y")), []string{"end: x: bad", "hint: do y"}},
		{"advice for a class, once", errors.Join(&missingLedgerError{path: "f"}, &missingLedgerError{path: "g"}),
			[]string{"end: ledger f does not exist", "end: ledger g does not exist",
				"hint: check the path; a ledger is made by the first `apograph replicate` of its flow"}},
		{"advice for one that is held", &ledger.LockedError{Path: "f", PID: 1 << 30},
			[]string{"end: ledger f is in use by process 1073741824", "hint: stop that process, or ask a snapshot of the ledger instead"}},
		{"a secret", errors.New(`sasl.jaas.config=x required password="p w";`), []string{"end: sasl.jaas.config=[hidden]"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, stdout, stderr := runTest(t.Context(), func(context.Context, *invocation) error { return tt.err }, "end")
			want := ""
			for _, line := range tt.want {
				want += "apograph: " + line + "\n"
			}
			if stdout != "" || stderr != want {
				t.Errorf("stdout %q, stderr\n%swant\n%s", stdout, stderr, want)
			}
		})
	}
}

// TestExitCodesAreOneTable: every code that a command or an error can bring has
// its row, once, in ascending order.
func TestExitCodesAreOneTable(t *testing.T) {
	meanings := map[exitCode]string{}
	last := exitCode(-1)
	for _, e := range exitCodes() {
		if e.code <= last || strings.TrimSpace(e.meaning) == "" {
			t.Errorf("row %d %q is out of order or empty", e.code, e.meaning)
		}
		meanings[e.code], last = e.meaning, e.code
	}
	for _, signal := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM} {
		if code := (&signalError{signal}).exitCode(); meanings[code] == "" {
			t.Errorf("exit code %d of %v has no row", code, signal)
		}
	}
	for _, c := range commands() {
		for _, code := range c.exits {
			if meanings[code] == "" || code <= exitUsage {
				t.Errorf("%s: exit code %d has no row, or needs no mention", c.path, code)
			}
		}
	}
}

// TestWhichExitCodeWins joins every set of outcomes, in both orders: the first of
// 12, 1, 3, 5, 4 is the exit code, as the contract has it.
func TestWhichExitCodeWins(t *testing.T) {
	outcomes := []struct {
		code exitCode
		err  error
	}{
		{12, &ledger.CorruptError{Path: "f"}}, {1, errors.New("cluster gone")}, {3, verdict(exitFaults)}, {5, verdict(exitRefused)}, {4, verdict(exitUnproven)},
	}
	for set := range 1 << len(outcomes) {
		var forward, backward error
		want := exitCode(0)
		for i, o := range outcomes {
			if set>>i&1 == 0 {
				continue
			}
			if want == 0 {
				want = o.code
			}
			forward, backward = errors.Join(forward, o.err), errors.Join(fmt.Errorf("flow: %w", o.err), backward)
		}
		for _, err := range []error{forward, backward} {
			if got := exitCodeFor(t.Context(), err); got != want {
				t.Errorf("exitCodeFor(%v) = %d, want %d", err, got, want)
			}
		}
	}
}
