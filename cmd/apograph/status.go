package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/urfave/cli/v2"
	"golang.org/x/term"

	"apograph/replicate"
)

func statusCommand() command {
	return command{
		path:    "status",
		args:    "[LEDGER]",
		maxArgs: 1,
		summary: "say where a flow is: lag, what has stopped and why",
		details: "Asks the copier that holds the ledger. Where none runs, the ledger says what\n" +
			"was last seen, and when. Partitions that have stopped come first.\n\n" +
			"  running   copying or caught up; of a flow that does not run: free to go\n" +
			"            on (`not running` in the table)\n" +
			"  waiting   an open transaction on the source keeps the rest back\n" +
			"  stopped   cannot go on, for a reason; is tried again at next_retry\n" +
			"  paused    somebody ordered it\n\n" +
			"LAG counts source offsets that are not in the books yet, LAG-TIME says how old\n" +
			"the target's state is, HEADROOM how long the next record is safe from the\n" +
			"source's retention. A dash is what is not known.\n\n" +
			"What is done beside the copy is listed with when it was last done and how long\n" +
			"that took; where it fails, with why, since when, and when it is tried again.\n\n" +
			"Groups whose offsets are left alone on the target are listed with the reason. Of\n" +
			"those that patterns leave out (excluded, not_matched) the first 10 are, and with\n" +
			"-o json the first 1,000; groups_omitted says how many more there are. Groups\n" +
			"that go on behind records that they have not read, as the target does not have\n" +
			"them, are listed as INEXACT: before_start, lost, below_target_start.\n\n" +
			"With --watch the answer comes again every 2 s, with -o json one document a\n" +
			"line, until the command is interrupted.",
		examples: []string{
			"apograph status --ledger orders.ledger",
			"apograph status --ledger orders.ledger --stopped -o json",
			"apograph status --ledger orders.ledger --watch",
			"apograph status --config mm2.properties",
		},
		formats: []format{formatTable, formatWide, formatJSON},
		flags: append(ledgerFlags(), []cli.Flag{
			&cli.BoolFlag{Name: "watch", Usage: "answer again every 2 s until interrupted"},
			&cli.BoolFlag{Name: "stopped", Usage: "list only partitions that have stopped"},
		}...),
		exits: []exitCode{exitFaults, exitNoLedger, exitLocked, exitDamaged, exitInterrupted, exitTerminated},
		run:   runStatus,
	}
}

// watchInterval is how often --watch answers.
const watchInterval = 2 * time.Second

func runStatus(ctx context.Context, inv *invocation) error {
	paths, err := statusLedgers(inv)
	if err != nil {
		return err
	}
	if inv.Bool("watch") {
		return watchStatus(ctx, inv, paths)
	}
	status, err := readStatuses(ctx, paths)
	if len(status.flows) == 0 {
		return err
	}
	return errors.Join(status.write(inv, 0), status.verdict(), err)
}

// watchStatus answers until ctx ends. Of several flows, those that can be asked.
func watchStatus(ctx context.Context, inv *invocation, paths []string) error {
	ticker := time.NewTicker(watchInterval)
	defer ticker.Stop()
	for first := true; ; first = false {
		status, err := readStatuses(ctx, paths)
		if len(status.flows) == 0 {
			return err
		}
		if err := status.show(inv, first); err != nil {
			return err
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// Sequences that redraw a terminal without flicker: each line is written over
// the one that stood there.
const (
	cursorHome     = "\x1b[H"
	clearLine      = "\x1b[K"
	clearRemainder = "\x1b[J"
)

// show writes one answer of --watch: over the last one on a terminal that can
// do that, else below it.
func (s *flowStatuses) show(inv *invocation, first bool) error {
	redraws := inv.stdout.redraws && inv.format != formatJSON
	switch {
	case redraws:
		fmt.Fprint(inv.stdout, cursorHome)
	case !first && inv.format != formatJSON:
		fmt.Fprintln(inv.stdout)
	}
	rows := 0
	if redraws {
		rows = terminalRows()
	}
	if err := s.write(inv, rows); err != nil {
		return err
	}
	if redraws {
		fmt.Fprint(inv.stdout, clearRemainder)
	}
	return inv.stdout.Flush()
}

// terminalRows returns how many rows standard output has, 0 if that is not
// known.
func terminalRows() int {
	_, rows, err := term.GetSize(int(os.Stdout.Fd()))
	if err != nil {
		return 0
	}
	return rows
}

// write writes the answer. With a number of rows it is made to fit on a
// terminal, over what stands there.
func (s *flowStatuses) write(inv *invocation, rows int) error {
	shown := *s
	if inv.Bool("stopped") {
		shown = s.onlyStopped()
	}
	if inv.format == formatJSON {
		return writeJSON(inv.stdout, shown.document())
	}
	columns := inv.stdout.columns
	if inv.format == formatWide {
		columns = 0
	}
	text := shown.text(columns)
	if rows > 0 {
		text = fitRows(text, rows)
	}
	_, err := fmt.Fprint(inv.stdout, text)
	return err
}

// text returns the answer about a flow for a terminal of so many columns.
func (s *flowStatus) text(columns int) string {
	text := ""
	for _, line := range append([]string{s.headline()}, s.acceptedText()...) {
		text += snip(printable(line), columns) + "\n"
	}
	if len(s.Report.Partitions) > 0 {
		text += "\n" + partitionTable(s.Report.State, s.Report.Partitions, s.Details).text(columns)
	}
	if len(s.Report.Duties) > 0 {
		text += "\n" + dutyTable(s.Report.Duties).text(columns)
	}
	for _, table := range groupTables(s.Report.Groups, s.Report.GroupsOmitted) {
		text += "\n" + table.text(columns)
	}
	return text
}

// fitRows cuts a text to a number of rows, the last of which stays free, and
// has each line clear what stood behind it.
func fitRows(text string, rows int) string {
	lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	if room := max(rows-1, 1); len(lines) > room {
		hidden := len(lines) - room + 1
		lines = append(lines[:room-1], fmt.Sprintf("... %d more", hidden))
	}
	return strings.Join(lines, clearLine+"\n") + clearLine + "\n"
}

func (s *flowStatus) onlyStopped() flowStatus {
	only := *s
	only.Report.Partitions, only.Details = []partitionStatus{}, nil
	for i, p := range s.Report.Partitions {
		if p.State == replicate.StateStopped {
			only.Report.Partitions = append(only.Report.Partitions, p)
			only.Details = append(only.Details, s.Details[i])
		}
	}
	return only
}
