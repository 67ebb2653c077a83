package main

import (
	"context"
	"errors"
	"math"
	"slices"

	"github.com/urfave/cli/v2"
)

func translateCommand() command {
	return command{
		path:    "translate",
		args:    "TOPIC:PARTITION:OFFSET... | --from-file FILE | --group NAME...",
		maxArgs: math.MaxInt,
		summary: "translate offsets for the other cluster, and commit them for groups",
		details: "A committed offset, the next to read, becomes the target offset of the first\n" +
			"copied record at or after it, and where there is none the end of what is\n" +
			"copied. Rows come in the order asked for. Their status is\n\n" +
			"  exact          that record\n" +
			"  end            there is none yet; this is exact as well\n" +
			"  beyond_copied  the ledger does not reach the offset, by distance offsets\n" +
			"  before_start   below the start of the scope, by distance offsets\n" +
			"  lost           not copied because it was lost; distance offsets are skipped\n" +
			"  unknown        no book of the partition, a closed one, or one that does not join\n" +
			"                 the one before it: there is no answer\n\n" +
			"The ledger alone is enough for offsets as arguments or in a file, which is one\n" +
			"of kafka-consumer-groups --reset-offsets --export, of either form. --group\n" +
			"without a file reads what the group has committed on the source. With the\n" +
			"target at hand it is asked as well, and there is a status more:\n\n" +
			"  below_target_start  the target's retention has removed the record; the\n" +
			"                      answer is the first that is left, distance offsets later\n\n" +
			"Offsets of groups then have an action, commit, none or skip, which is only\n" +
			"done with --execute. All groups are looked at first: if one of them has members\n" +
			"on the target nothing is committed at all. A group is never taken backwards,\n" +
			"and never beyond what is copied.\n\n" +
			"Exit code 0 means that every row is exact or end, that the target, if it is at\n" +
			"hand, has lost none of them at the end of its log, that the ledger has a book of\n" +
			"every topic in which a group has committed, and with --execute that none was\n" +
			"skipped.",
		examples: []string{
			"apograph translate --ledger orders.ledger orders:0:881204 orders:1:880017",
			"apograph translate --ledger orders.ledger --reverse orders:0:880911 -o json",
			"apograph translate --ledger orders.ledger --from-file offsets.csv --format kafka-csv",
			"apograph translate --ledger orders.ledger --group billing --source-bootstrap-server a:9092 -o json",
			"apograph translate --config mm2.properties --group billing",
			"apograph translate --ledger orders.ledger --group billing --source-bootstrap-server a:9092 --target-bootstrap-server b:9092 --execute",
		},
		formats: []format{formatTable, formatWide, formatJSON, formatJSONLines, formatCSV},
		flags:   slices.Concat([]cli.Flag{ledgerFlag()}, translateFlags(), clusterFlags(), carryFlags()),
		exits:   []exitCode{exitUnproven, exitRefused, exitNoLedger, exitLocked, exitDamaged, exitInterrupted, exitTerminated},
		run:     runTranslate,
	}
}

// translateFlags returns the flags that say what is asked for. Only the format
// can be set in the environment: the others belong to one question.
func translateFlags() []cli.Flag {
	return []cli.Flag{
		&cli.StringFlag{Name: "from-file",
			Usage: "translate the offsets in `FILE`, or - for standard input: lines of topic,partition,offset or group,topic,partition,offset"},
		&cli.StringSliceFlag{Name: "group", KeepSpace: true,
			Usage: "translate what group `NAME` has committed on the source, may be repeated; the name is meant literally." +
				" Of a file with groups only the rows of these; of a file without, the group that it is for"},
		&cli.BoolFlag{Name: "reverse",
			Usage: "translate offsets of the target into offsets of the source; topics are named as on the target"},
		stringFlag("format", "write rows as `FORMAT`: table, or kafka-csv, which is what kafka-consumer-groups --reset-offsets --from-file reads;"+
			" there the rows that are not exact are left out, and told on standard error"),
		&cli.BoolFlag{Name: "include-inexact",
			Usage: "with kafka-csv, write the rows that are not exact as well; unknown ones have nothing to write." +
				" With --execute, commit before_start, lost and below_target_start as well"},
	}
}

// carryFlags returns the flags about committing. None can be set in the
// environment: what writes to a cluster is said each time.
func carryFlags() []cli.Flag {
	return []cli.Flag{
		&cli.BoolFlag{Name: "execute", Usage: "commit to the target; without it nothing is written"},
		&cli.StringFlag{Name: "target-group", Usage: "commit for group `NAME` on the target; goes with exactly one --group"},
		&cli.BoolFlag{Name: "skip-active", Usage: "leave groups alone that have members on the target, and commit for the others"},
		&cli.BoolFlag{Name: "allow-rewind", Usage: "commit also where the group has gone further on the target, so that it reads again"},
	}
}

func runTranslate(ctx context.Context, inv *invocation) error {
	job, err := newTranslateJob(inv)
	if err != nil {
		return err
	}
	answer, err := job.run(ctx)
	if answer == nil {
		return err
	}
	write := answer.write
	if job.kafkaCSV {
		write = answer.writeKafkaCSV
	}
	err = errors.Join(err, write(inv))
	answer.tell(inv, job.kafkaCSV)
	return errors.Join(err, answer.problems(), answer.verdicts())
}

// The values of --format.
const (
	translateTable    = "table"
	translateKafkaCSV = "kafka-csv"
)

// wantsKafkaCSV reports whether the answer is to be written for Kafka's tool.
// --format and --output both choose a form: what the command line says wins
// over a variable, and both together must agree.
func wantsKafkaCSV(inv *invocation) (bool, error) {
	asked := inv.String("format")
	if asked != "" && asked != translateTable && asked != translateKafkaCSV {
		return false, usagef("--format %s: it is %s or %s", quoteArg(asked), translateTable, translateKafkaCSV)
	}
	typed, outputTyped := inv.line.has("format"), inv.line.has("output")
	switch {
	case typed && outputTyped && asked != string(inv.format):
		return false, usagef("--format %s and --output %s ask for two forms", asked, inv.format)
	case typed && asked == translateTable:
		inv.format = formatTable
	case !typed && outputTyped:
		return false, nil
	}
	return asked == translateKafkaCSV, nil
}
