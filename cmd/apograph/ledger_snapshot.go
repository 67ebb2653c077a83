package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/urfave/cli/v2"
)

// toStdout is the name that stands for standard output.
const toStdout = "-"

func ledgerSnapshotCommand() command {
	return command{
		path:    "ledger snapshot",
		args:    "[FILE] -o SNAPSHOT",
		maxArgs: 1,
		summary: "write a consistent copy of a ledger",
		details: "The copy is a ledger itself and answers whatever the ledger answers. It is\n" +
			"made under another name beside SNAPSHOT, or in the directory for temporary\n" +
			"files if it goes to standard output, and is moved or sent when it is complete.\n" +
			"An older snapshot of the same ledger is replaced, any other file is not.\n\n" +
			"The SHA-256 of the copy is written to standard error as sha256sum writes it.",
		examples: []string{
			"apograph ledger snapshot orders.ledger -o orders.snapshot",
			"apograph ledger snapshot orders.ledger -o - | ssh backup 'cat > orders.snapshot'",
		},
		flags: append(ledgerFlags(), []cli.Flag{
			// Not from the environment: there, APOGRAPH_OUTPUT is a format.
			&cli.StringFlag{Name: "output", Aliases: []string{"o"},
				Usage: "the `FILE` to write; - is standard output"},
			statsFlag(),
		}...),
		exits: []exitCode{exitNoLedger, exitLocked, exitDamaged},
		run:   runLedgerSnapshot,
	}
}

func runLedgerSnapshot(ctx context.Context, inv *invocation) error {
	to := inv.String("output")
	switch {
	case to == "":
		return usagef("no file to write given").withHint("name it with -o SNAPSHOT, or -o - for standard output")
	case to == toStdout && inv.stdout.terminal:
		return usagef("a snapshot is not text, and standard output is a terminal").
			withHint("name a file with -o SNAPSHOT, or send standard output to one")
	}
	from, err := ledgerPath(inv)
	if err != nil {
		return err
	}
	started := time.Now()
	progress := func() string {
		return fmt.Sprintf("ledger snapshot: %s: copying for %s", from, time.Since(started).Round(time.Second))
	}
	var sum [32]byte
	err = inv.withProgress(ctx, progress, func(ctx context.Context) error {
		if to == toStdout {
			sum, err = streamSnapshot(ctx, from, inv.stdout)
			return err
		}
		sum, err = writeSnapshot(ctx, from, to)
		return err
	})
	if err != nil {
		return err
	}
	fmt.Fprintf(inv.stderr, "%x  %s\n", sum, printable(to))
	return nil
}

// writeSnapshot makes a snapshot of the ledger from in the file to.
func writeSnapshot(ctx context.Context, from, to string) (sum [32]byte, err error) {
	if err := mayReplace(ctx, from, to); err != nil {
		return sum, err
	}
	return snapshotTo(ctx, from, to)
}

// snapshotFile holds the ledger's lock no longer than the copying takes.
func snapshotFile(ctx context.Context, from, to string) (sum [32]byte, err error) {
	l, err := openLedger(from)
	if err != nil {
		return sum, err
	}
	sum, err = l.Snapshot(ctx, to)
	if cause := context.Cause(ctx); err != nil && cause != nil {
		err = cause // bbolt's Tx.WriteTo makes text of the error that ended it
	}
	return sum, errors.Join(err, l.Close())
}

// mayReplace refuses to write a snapshot of the ledger from over anything but
// an older snapshot of that ledger: least of all over the ledger itself, or
// over that of another flow, whose books would be gone.
func mayReplace(ctx context.Context, from, to string) error {
	existing, err := os.Stat(to)
	if err != nil {
		return nil // nothing is there, or writing will tell what is wrong
	}
	ledgerFile, err := os.Stat(from)
	if err != nil {
		return ledgerError(from, err)
	}
	if os.SameFile(existing, ledgerFile) {
		return usagef("%s is the ledger itself", quoteArg(to))
	}
	old, err := readLedgerInfo(ctx, to)
	if err != nil {
		return usagef("%s exists and is no snapshot that can be replaced: %v", quoteArg(to), err).
			withHint("name a file that does not exist yet")
	}
	current, err := readLedgerInfo(ctx, from)
	switch {
	case err != nil:
		return err
	case old.LedgerID != current.LedgerID:
		return usagef("%s is a copy of another ledger, %s", quoteArg(to), old.LedgerID).
			withHint("name a file that does not exist yet")
	case old.LastCommit.After(current.LastCommit.Time):
		return usagef("%s is newer than %s", quoteArg(to), quoteArg(from)).
			withHint("name a file that does not exist yet")
	}
	return nil
}

// streamSnapshot makes a snapshot in a temporary file and then writes it to w.
// The ledger is free again before the first byte is written, however slowly w
// takes them.
func streamSnapshot(ctx context.Context, from string, w io.Writer) (sum [32]byte, err error) {
	directory, err := os.MkdirTemp("", "apograph-snapshot-")
	if err != nil {
		return sum, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(directory)) }()
	path := filepath.Join(directory, "snapshot")
	if sum, err = snapshotTo(ctx, from, path); err != nil {
		return sum, err
	}
	file, err := os.Open(path)
	if err != nil {
		return sum, err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	_, err = io.Copy(w, &interruptible{ctx: ctx, r: file})
	return sum, err
}

// An interruptible reads until a context ends.
type interruptible struct {
	ctx context.Context
	r   io.Reader
}

func (i *interruptible) Read(p []byte) (int, error) {
	if err := context.Cause(i.ctx); err != nil {
		return 0, err
	}
	return i.r.Read(p)
}
