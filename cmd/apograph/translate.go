package main

import (
	"context"
	"errors"
	"math"

	"github.com/urfave/cli/v2"

	"apograph/ledger"
	"apograph/translate"
)

func translateCommand() command {
	return command{
		path:    "translate",
		args:    "TOPIC:PARTITION:OFFSET... | --from-file FILE",
		maxArgs: math.MaxInt,
		summary: "translate offsets from one cluster to the other, from the ledger alone",
		details: "A committed offset, the next to read, becomes the target offset of the first\n" +
			"copied record at or after it, and where there is none the end of what is\n" +
			"copied. Rows come in the order asked for. Their status is\n\n" +
			"  exact          that record\n" +
			"  end            there is none yet; this is exact as well\n" +
			"  beyond_copied  the ledger does not reach the offset, by distance offsets\n" +
			"  before_start   below the start of the scope, by distance offsets\n" +
			"  lost           not copied because it was lost; distance offsets are skipped\n" +
			"  unknown        no book of the partition, or a closed one: there is no answer\n\n" +
			"Exit code 0 means that every row is exact or end. A file is one of\n" +
			"kafka-consumer-groups --reset-offsets --export, of either form. No cluster is\n" +
			"asked, so whether the target still holds a record is not looked at.",
		examples: []string{
			"apograph translate --ledger orders.ledger orders:0:881204 orders:1:880017",
			"apograph translate --ledger orders.ledger --reverse orders:0:880911 -o json",
			"apograph translate --ledger orders.ledger --from-file offsets.csv --format kafka-csv",
		},
		formats: []format{formatTable, formatWide, formatJSON, formatJSONLines, formatCSV},
		flags:   append([]cli.Flag{ledgerFlag()}, translateFlags()...),
		exits:   []exitCode{exitUnproven, exitNoLedger, exitLocked, exitDamaged},
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
			Usage: "of a file with groups only the rows of group `NAME`, may be repeated; of a file without, the group that it is for"},
		&cli.BoolFlag{Name: "reverse",
			Usage: "translate offsets of the target into offsets of the source; topics are named as on the target"},
		stringFlag("format", "write rows as `FORMAT`: table, or kafka-csv, which is what kafka-consumer-groups --reset-offsets --from-file reads;"+
			" there the rows that are not exact are left out, and told on standard error"),
		&cli.BoolFlag{Name: "include-inexact",
			Usage: "with kafka-csv, write the rows that are not exact as well; unknown ones have nothing to write"},
	}
}

func runTranslate(ctx context.Context, inv *invocation) error {
	kafkaCSV, err := wantsKafkaCSV(inv)
	if err != nil {
		return err
	}
	plan, err := askedOffsets(inv)
	if err != nil {
		return err
	}
	if kafkaCSV {
		if err := plan.Validate(); err != nil {
			return usagef("these offsets cannot stand in one file for Kafka's tool: %v", err)
		}
	}
	path := inv.String("ledger")
	if path == "" {
		return usagef("no ledger given").withHint("name its file with --ledger FILE")
	}
	answer, err := readTranslation(ctx, path, plan, inv.Bool("reverse"))
	if err != nil {
		return err
	}
	if kafkaCSV {
		err = answer.writeKafkaCSV(inv)
	} else {
		err = answer.write(inv)
	}
	if err == nil && !answer.isExact() {
		return verdict(exitUnproven)
	}
	return err
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
	kafkaCSV := asked == translateKafkaCSV
	if inv.Bool("include-inexact") && !kafkaCSV {
		return false, usagef("--include-inexact goes with --format %s: other forms have every row", translateKafkaCSV)
	}
	return kafkaCSV, nil
}

// readTranslation opens the ledger at path, translates the offsets of plan, and
// closes it: before anything is written, as nobody can write the ledger
// meanwhile.
func readTranslation(ctx context.Context, path string, plan translate.ResetPlan, reverse bool) (*translation, error) {
	l, err := openLedger(path)
	if err != nil {
		return nil, err
	}
	t, err := translationOf(ctx, path, l, plan, reverse)
	return t, errors.Join(err, l.Close())
}

func translationOf(ctx context.Context, path string, l *ledger.Ledger, plan translate.ResetPlan, reverse bool) (*translation, error) {
	queries := make([]translate.Query, len(plan.Rows))
	for i, row := range plan.Rows {
		queries[i] = row.Query
	}
	index := translate.NewIndex(l)
	answer := index.Forward
	if reverse {
		answer = index.Reverse
	}
	answers, err := answer(ctx, queries)
	if err != nil {
		return nil, err
	}
	return &translation{
		envelope: newEnvelope("Translation", "translate"),
		Ledger:   ledgerRefOf(path, l),
		Rows:     translationRows(plan, answers, reverse),
		answers:  answers,
		plan:     plan,
		reverse:  reverse,
	}, nil
}
