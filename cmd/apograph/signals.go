package main

import (
	"context"
	"errors"
	"os"
	"os/signal"
	"sync"
	"syscall"
)

// A signalError is the cause of a context that a signal ended.
type signalError struct {
	signal syscall.Signal // SIGINT or SIGTERM
}

func (e *signalError) Error() string {
	if e.signal == syscall.SIGTERM {
		return "terminated"
	}
	return "interrupted"
}

// exitCode returns 128 + the signal's number, as a shell does.
func (e *signalError) exitCode() exitCode { return 128 + exitCode(e.signal) }

// signalCause returns what ended ctx if that was a signal, else nil.
func signalCause(ctx context.Context) *signalError {
	var cause *signalError
	if errors.As(context.Cause(ctx), &cause) {
		return cause
	}
	return nil
}

// notifySignals returns a context that the first SIGINT or SIGTERM cancels,
// with a [*signalError] as its cause. A second one ends the process at once.
// The caller must call stop, which ends the watching and waits for it.
//
// SIGPIPE is ignored from here on: the runtime would otherwise end the process
// on a write to a closed standard output or error, in the middle of whatever
// else it is doing, and the exit code would say nothing.
func notifySignals(parent context.Context) (ctx context.Context, stop func()) {
	signal.Ignore(syscall.SIGPIPE)
	ctx, cancel := context.WithCancelCause(parent)
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM)

	done := make(chan struct{})
	var watcher sync.WaitGroup
	watcher.Go(func() { watchSignals(signals, done, cancel) })
	return ctx, func() {
		signal.Stop(signals)
		close(done)
		watcher.Wait()
		cancel(nil)
	}
}

func watchSignals(signals <-chan os.Signal, done <-chan struct{}, cancel context.CancelCauseFunc) {
	for first := true; ; first = false {
		select {
		case s := <-signals:
			cause := &signalError{signal: s.(syscall.Signal)}
			if !first {
				os.Exit(int(cause.exitCode()))
			}
			cancel(cause)
		case <-done:
			return
		}
	}
}
