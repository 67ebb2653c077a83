package main

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"apograph/internal/connect"
	"apograph/internal/mm2"
	"apograph/ledger"
	"apograph/replicate"
)

// An exitCode is what a command says to the script that runs it. The codes are
// an interface: scripts gate cutovers on them, so they are never renumbered.
type exitCode int

// The codes that a command chooses. exitCodes says what each means to a user.
const (
	exitOK          exitCode = 0
	exitError       exitCode = 1
	exitUsage       exitCode = 2
	exitFaults      exitCode = 3
	exitUnproven    exitCode = 4
	exitRefused     exitCode = 5
	exitNoLedger    exitCode = 10
	exitLocked      exitCode = 11
	exitDamaged     exitCode = 12
	exitInterrupted exitCode = 130
	exitClosedPipe  exitCode = 141
	exitTerminated  exitCode = 143
)

// An exitMeaning is one row of the table of exit codes.
type exitMeaning struct {
	code    exitCode
	meaning string
}

// exitCodes returns the table of exit codes: the only one, which help prints
// and documents copy.
func exitCodes() []exitMeaning {
	return []exitMeaning{
		{exitOK, "done, nothing wrong"},
		{exitError, "could not finish (a partition stopped, a cluster gone); JSON says what was done, if anything was"},
		{exitUsage, "usage or configuration error; nothing was attempted"},
		{exitFaults, "finished, and faults were found (missing, changed, lost, unexplained, ...)"},
		{exitUnproven, "finished without faults, but part is not proven (not copied yet, not verified, inexact)"},
		{exitRefused, "a gate refused (cutover precondition, group active, MM2 alive)"},
		{exitNoLedger, "ledger does not exist"},
		{exitLocked, "ledger is held by another instance"},
		{exitDamaged, "ledger, snapshot or signature fails its integrity check, or its format is unknown"},
		{exitInterrupted, "interrupted (SIGINT), after a clean stop"},
		{exitClosedPipe, "standard output was closed before all was written, as `head` does (SIGPIPE)"},
		{exitTerminated, "terminated (SIGTERM), after a clean stop"},
	}
}

// exitPrecedence returns the codes in the order in which one of several wins:
// what could not finish has no verdict, and a fault outweighs a doubt.
func exitPrecedence() []exitCode {
	return []exitCode{exitDamaged, exitError, exitFaults, exitRefused, exitUnproven}
}

// A verdict ends a command with its code and without a word: the report that
// says why is already written. It is a result, not a failure.
type verdict exitCode

func (v verdict) Error() string { return fmt.Sprintf("exit status %d", int(v)) }

// exitCodeFor returns the exit code of a command that ended with err, which may
// join several errors. An interrupted command exits with the signal's code
// unless it failed in a way of its own: then the stop was not a clean one.
func exitCodeFor(ctx context.Context, err error) exitCode {
	codes := codesOf(err)
	if cause := signalCause(ctx); cause != nil && !slices.ContainsFunc(codes, isFailure) {
		return cause.exitCode()
	}
	if slices.Contains(codes, exitClosedPipe) && !slices.ContainsFunc(codes, isFailure) {
		return exitClosedPipe // a verdict that nobody read is none
	}
	if distinct := slices.Compact(slices.Sorted(slices.Values(codes))); len(distinct) == 1 && distinct[0] != exitInterrupted {
		return distinct[0]
	}
	for _, code := range exitPrecedence() {
		if slices.ContainsFunc(codes, func(c exitCode) bool { return amongOthers(c) == code }) {
			return code
		}
	}
	return exitOK
}

// amongOthers returns what a code means if it is not the only one. The codes
// that say that nothing was attempted cannot say so any more; nor was a
// cancellation that no signal caused an interruption.
func amongOthers(code exitCode) exitCode {
	if slices.Contains(exitPrecedence(), code) {
		return code
	}
	return exitError
}

// isFailure reports whether code says that a command did not do its work, as
// opposed to a verdict on what it found, to a cancellation, or to a reader that
// has seen enough.
func isFailure(code exitCode) bool {
	switch code {
	case exitFaults, exitUnproven, exitRefused, exitInterrupted, exitClosedPipe:
		return false
	default:
		return true
	}
}

// codesOf returns the code of every branch of err's tree. It walks the tree
// itself, where errors.As would stop at the first match: next to a verdict,
// an error of no known class still means that the command could not finish.
func codesOf(err error) []exitCode {
	if err == nil {
		return nil
	}
	if code, ok := codeOf(err); ok {
		return []exitCode{code}
	}
	var codes []exitCode
	for _, cause := range causes(err) {
		codes = append(codes, codesOf(cause)...)
	}
	if len(codes) == 0 {
		return []exitCode{exitError}
	}
	return codes
}

// codeOf returns the code of err itself, whatever it wraps. A cancellation
// counts as [exitInterrupted]. It is the one place that maps errors to codes.
func codeOf(err error) (exitCode, bool) {
	switch e := err.(type) {
	case verdict:
		return exitCode(e), true
	case *usageError, *replicate.UsageError, *ledger.NotAFileError,
		*configError, *mm2.ConfigError, *mm2.ValueError, *connect.ConfigError, *connect.StoreError:
		return exitUsage, true
	case *connect.UnreachableError:
		return exitError, true // whatever kept it from being reached
	case *replicate.RefusedError:
		return exitRefused, true
	case *stdoutError:
		return exitClosedPipe, e.closed()
	case *answerError:
		return e.Code, true
	case *signalError:
		return exitInterrupted, true
	case *missingLedgerError:
		return exitNoLedger, true
	case *ledger.LockedError:
		return exitLocked, true
	case *ledger.CorruptError, *ledger.FormatError:
		return exitDamaged, true
	}
	return exitInterrupted, err == context.Canceled
}

// causes returns the errors that err wraps directly.
func causes(err error) []error {
	if many, ok := err.(interface{ Unwrap() []error }); ok {
		return many.Unwrap()
	}
	if one := errors.Unwrap(err); one != nil {
		return []error{one}
	}
	return nil
}
