package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	"github.com/urfave/cli/v2"

	"apograph/ledger"
)

func ledgerMigrateCommand() command {
	return command{
		path:    "ledger migrate",
		args:    "[FILE] -o NEW",
		maxArgs: 1,
		summary: "write a ledger of an earlier format into a new file",
		details: "This version reads and goes on writing ledgers of every earlier format: no\n" +
			"ledger has to be migrated. A new file has the current format from the start,\n" +
			"and none of the free pages of the old one. It is the same ledger with the same\n" +
			"books, is checked before it gets its name, and replaces no file; FILE is not\n" +
			"changed. A ledger in the current format is copied all the same.\n\n" +
			"To go on with the new file, stop the replicator first and let it use NEW: what\n" +
			"it books in one of the two the other does not know.",
		examples: []string{"apograph ledger migrate orders.ledger -o orders-new.ledger"},
		flags: append(ledgerFlags(), []cli.Flag{
			// Not from the environment: there, APOGRAPH_OUTPUT is a format.
			&cli.StringFlag{Name: "output", Aliases: []string{"o"}, Usage: "the `FILE` to write, which must not exist"},
			statsFlag(),
		}...),
		exits: []exitCode{exitNoLedger, exitLocked, exitDamaged},
		run:   runLedgerMigrate,
	}
}

func runLedgerMigrate(ctx context.Context, inv *invocation) error {
	to := inv.String("output")
	switch to {
	case "":
		return usagef("no file to write given").withHint("name it with -o NEW")
	case toStdout:
		return usagef("a ledger is migrated to a file, not to standard output").
			withHint("name one with -o NEW, then send it with `apograph ledger snapshot NEW -o -`")
	}
	from, err := ledgerPath(inv)
	if err != nil {
		return err
	}
	started := time.Now()
	progress := func() string {
		return fmt.Sprintf("ledger migrate: %s: checking and copying for %s", from, time.Since(started).Round(time.Second))
	}
	var m ledger.Migration
	err = inv.withProgress(ctx, progress, func(ctx context.Context) error {
		m, err = ledger.Migrate(ctx, from, to, ledger.Options{LockTimeout: lockWait})
		return migrateError(from, to, err)
	})
	if err != nil {
		return err
	}
	did := fmt.Sprintf("written in format %d, from format %d", m.To, m.From)
	if m.From == m.To {
		did = fmt.Sprintf("copied, as %s has format %d already", from, m.From)
	}
	inv.stderr.say(clean(fmt.Sprintf("%s: %s; %d values, %d bytes, every law holds", to, did, m.Values, m.Bytes)))
	return nil
}

// migrateError gives the errors of a migration their exit codes. What does not
// exist may also be the directory of the new file.
func migrateError(from, to string, err error) error {
	if errors.Is(err, ledger.ErrExist) {
		return usagef("%s exists", quoteArg(to)).withHint("name a file that does not exist yet")
	}
	if _, found := os.Stat(from); errors.Is(err, fs.ErrNotExist) && found == nil {
		return err
	}
	return ledgerError(from, err)
}
