package main

import (
	"context"
	"slices"

	"github.com/urfave/cli/v2"

	"apograph/internal/mm2"
)

func mm2Command() command {
	return command{
		path:    "mm2",
		summary: "print what MirrorMaker 2 keeps in its internal topics",
		details: "The topics of any flow, whoever writes them. Nothing is written to a cluster,\n" +
			"no topic is made, and no consumer group is joined.",
		examples: []string{"apograph mm2 checkpoints --config mm2.properties --flow 'A->B'"},
	}
}

// mm2Details is what the commands have in common.
const mm2Details = "The topic is that of the flow of --config, where it lives, or of the clusters\n" +
	"given by flags, with their aliases; --topic and --on name another. It is read\n" +
	"from its beginning to the end that it has now, and of each key the last record\n" +
	"is printed; --all prints them all, in order.\n\n" +
	"What cannot be read is told with its offset, and the exit code is 3. Records are\n" +
	"read as MirrorMaker 2 reads them: other versions as version 0, and bytes too many\n" +
	"do not matter; detail says so."

func mm2OffsetSyncsCommand() command {
	return command{
		path:    "mm2 offset-syncs",
		summary: "print the offset syncs of a flow, and what MirrorMaker 2 makes of them",
		details: mm2Details + "\n\n" +
			"--translate says where MirrorMaker 2's checkpoint task would send a group that\n" +
			"has committed an offset on the source, after it has read these syncs; -1 is that\n" +
			"none of those it keeps is old enough. With a ledger the exact answer stands\n" +
			"beside it, and how many offsets lie between: so much is read again, or, below 0,\n" +
			"skipped.",
		examples: []string{
			"apograph mm2 offset-syncs --config mm2.properties",
			"apograph mm2 offset-syncs --config mm2.properties --translate orders:0:881204 -o json",
			"apograph mm2 offset-syncs --source-bootstrap-server a:9092 --target-alias B --all -o jsonl",
		},
		formats: mm2Formats(),
		flags: slices.Concat([]cli.Flag{
			ledgerFlag(),
			&cli.StringSliceFlag{Name: "translate", KeepSpace: true,
				Usage: "say what MirrorMaker 2 would answer to `TOPIC:PARTITION:OFFSET` of the source, may be repeated"},
		}, mm2Flags()),
		exits: mm2Exits(),
		run:   runOffsetSyncs,
	}
}

func mm2CheckpointsCommand() command {
	return command{
		path:    "mm2 checkpoints",
		summary: "print the checkpoints of a flow, beside the exact offsets",
		details: mm2Details + "\n\n" +
			"With a ledger the exact target offset stands beside that of the checkpoint, and\n" +
			"how many offsets lie between: so much the group reads again, or, below 0, skips.",
		examples: []string{
			"apograph mm2 checkpoints --config mm2.properties --flow 'A->B'",
			"apograph mm2 checkpoints --target-bootstrap-server b:9092 --source-alias A --group billing",
		},
		formats: mm2Formats(),
		flags: slices.Concat([]cli.Flag{
			ledgerFlag(),
			&cli.StringSliceFlag{Name: "group", KeepSpace: true, Usage: "only checkpoints of group `NAME`, may be repeated; the name is meant literally"},
		}, mm2Flags()),
		exits: mm2Exits(),
		run:   runCheckpoints,
	}
}

func mm2HeartbeatsCommand() command {
	return command{
		path:    "mm2 heartbeats",
		summary: "print the heartbeats of a flow",
		details: mm2Details,
		examples: []string{
			"apograph mm2 heartbeats --config mm2.properties --flow 'A->B'",
			"apograph mm2 heartbeats --target-bootstrap-server b:9092 --topic A.heartbeats",
		},
		formats: mm2Formats(),
		flags:   mm2Flags(),
		exits:   []exitCode{exitFaults, exitInterrupted, exitTerminated},
		run:     runHeartbeats,
	}
}

func mm2Formats() []format { return []format{formatTable, formatWide, formatJSON, formatJSONLines} }

func mm2Exits() []exitCode {
	return []exitCode{exitFaults, exitNoLedger, exitLocked, exitDamaged, exitInterrupted, exitTerminated}
}

// syncsLocation is the key that says on which cluster offset syncs are.
const syncsLocation = "offset-syncs.topic.location"

// mm2Settings are those of internal topics that -X may set.
func mm2Settings() []setting {
	return []setting{
		{syncsLocation, "source or target (default source)"},
		{mm2.PolicySeparatorKey, "what stands between the parts of an internal topic's name (default .)"},
		{mm2.PolicyInternalSeparatorKey, "false: that is a dot whatever the separator"},
	}
}

// mm2Flags returns the flags that say which topic is read. None can be set in the
// environment: they belong to one question.
func mm2Flags() []cli.Flag {
	return append([]cli.Flag{
		&cli.StringFlag{Name: "topic", Usage: "read topic `NAME`"},
		&cli.StringFlag{Name: "on", Usage: "read it on the cluster of this `SIDE` of the flow, source or target"},
		&cli.BoolFlag{Name: "all", Usage: "print all records, not only the last of each key"},
	}, clusterFlags(mm2Settings()...)...)
}

func runOffsetSyncs(ctx context.Context, inv *invocation) error {
	asked, err := askedSyncTranslations(inv)
	if err != nil {
		return err
	}
	place, err := newMM2Place(inv, syncsKind().mm2Topic)
	if err != nil {
		return err
	}
	kind, stores := syncsKind(), newSyncTranslations(asked)
	kind.seen = stores.add
	report, err := readMM2(ctx, inv, kind, place)
	if err != nil {
		return err
	}
	if len(asked) > 0 {
		if report.Translations, err = stores.answers(ctx, place, &report.Ledger); err != nil {
			return err
		}
	}
	if len(report.Damaged) > 0 {
		inv.stderr.say("a checkpoint task of MirrorMaker 2 that begins now does not come past the damaged records, and translates nothing")
	}
	return report.answer(inv, kind)
}

func runCheckpoints(ctx context.Context, inv *invocation) error {
	kind := checkpointsKind(inv.StringSlice("group"))
	place, err := newMM2Place(inv, kind.mm2Topic)
	if err != nil {
		return err
	}
	report, err := readMM2(ctx, inv, kind, place)
	if err != nil {
		return err
	}
	if report.Ledger, err = compareCheckpoints(ctx, place, report.Rows); err != nil {
		return err
	}
	for _, group := range inv.StringSlice("group") {
		if !slices.ContainsFunc(report.Rows, func(r checkpointRow) bool { return r.Group == group }) {
			inv.warnOnce("there is no checkpoint of group " + quoteArg(group))
		}
	}
	return report.answer(inv, kind)
}

func runHeartbeats(ctx context.Context, inv *invocation) error {
	kind := heartbeatsKind()
	place, err := newMM2Place(inv, kind.mm2Topic)
	if err != nil {
		return err
	}
	report, err := readMM2(ctx, inv, kind, place)
	if err != nil {
		return err
	}
	return report.answer(inv, kind)
}
