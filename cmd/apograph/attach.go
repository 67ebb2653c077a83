package main

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/urfave/cli/v2"

	"apograph/replicate"
)

func attachCommand() command {
	return command{
		path:    "attach",
		summary: "make a ledger for a copy that has none",
		details: "For a copy that MirrorMaker 2 made, with its own file, and for one of apograph's\n" +
			"where no snapshot of the ledger is left: aligns source and target record by\n" +
			"record and writes a new ledger. `replicate` goes on with it, `verify` and\n" +
			"`translate` work. Nothing is written to either cluster. Where the ledger is there,\n" +
			"as by an `attach` that has refused some partitions, those without a book are\n" +
			"added to it, and the others are left as they are.\n\n" +
			"Nobody may write to the target topics meanwhile: stop the replicator first. With\n" +
			"--config it is looked whether MirrorMaker 2 is alive (heartbeats, offset syncs,\n" +
			"members in its Connect group, ends that move), and refused if it is; so it is,\n" +
			"with and without it, where one under another alias copies to the same topics.\n" +
			"What MirrorMaker 2 copied again after a restart is a duplicate in the ledger, and\n" +
			"an aborted record that it brought over is foreign, each named.\n\n" +
			"What either side has lost can no longer be proven, and the answer says what\n" +
			"that is. A partition that does not align, or could in more than one way, is\n" +
			"reported with the place and left out of the ledger, as is one whose records the\n" +
			"target has all deleted. A partition of which the target never held a record is\n" +
			"none to have books about: `replicate` begins it. If all are like that, the\n" +
			"ledger is made all the same, without books; but not where none of the target\n" +
			"topics is there, as with the wrong cluster or alias: that is a usage error.",
		examples: []string{
			"apograph attach --config mm2.properties",
			"apograph attach --source-bootstrap-server a:9092 --target-bootstrap-server b:9092 \\\n" +
				"    --topics 'orders,pay.*' --ledger new.ledger",
		},
		formats: []format{formatTable, formatWide, formatJSON},
		flags:   slices.Concat(clusterFlags(policySettings()...), selectionFlags(), policyFlags(), []cli.Flag{ledgerFlag(), statsFlag()}),
		exits:   []exitCode{exitFaults, exitUnproven, exitRefused, exitLocked, exitDamaged, exitInterrupted, exitTerminated},
		run:     runAttach,
	}
}

func runAttach(ctx context.Context, inv *invocation) error {
	configs, err := attachConfigs(inv)
	if err != nil {
		return err
	}
	if len(configs) > 1 {
		return attachFlows(ctx, inv, configs)
	}
	report, err := attachFlow(ctx, inv, configs[0])
	if err != nil {
		return err
	}
	out := attachReportOf(report)
	if inv.format == formatJSON {
		err = writeJSON(inv.stdout, out)
	} else {
		err = writeAttachText(inv, out)
	}
	return errors.Join(err, attachVerdict(report))
}

// writeAttachText writes what to know of single partitions, then what it all
// comes to.
func writeAttachText(inv *invocation, r attachReport) error {
	if table := r.partitions(); len(table.rows) > 0 {
		if err := inv.writeTable(table); err != nil {
			return err
		}
	}
	return inv.writeTable(r.summary())
}

func attachConfigs(inv *invocation) ([]replicate.Config, error) {
	c, err := inv.configuration()
	if err != nil {
		return nil, err
	}
	if c == nil {
		config, err := adHocAttach(inv)
		return []replicate.Config{config}, err
	}
	configs, err := inv.flowConfigs(c)
	if err != nil {
		return nil, err
	}
	return configs, checkStores(configs)
}

func adHocAttach(inv *invocation) (config replicate.Config, err error) {
	if config, err = adHocScope(inv, "name the topics of the flow whose ledger is gone"); err != nil {
		return config, err
	}
	settings, err := inv.settings(policySettings())
	if err != nil {
		return config, err
	}
	if config.Policy, err = adHocPolicy(inv, config.Source.Alias, settings); err != nil {
		return config, err
	}
	return config, checkStores([]replicate.Config{config})
}

// attachState returns how far an attach has come; nil: it has not begun.
func attachState(p *replicate.AttachProgress) progressState {
	if p == nil {
		return progressState{line: "connecting"}
	}
	return progressState{
		line: fmt.Sprintf("%d of %s done, %d of %s aligned", p.Finished, counted(int64(p.Partitions), "partition"),
			p.Aligned, counted(p.Total, "target offset")),
		done: p.Aligned, total: max(p.Total, 1),
	}
}

// attachVerdict returns what the exit code has to say. A target that is empty is
// no fault, be it beside partitions that have books or alone.
func attachVerdict(r replicate.AttachReport) error {
	var verdicts []error
	for _, p := range r.Partitions {
		switch {
		case p.Verdict == replicate.AttachRefused:
			verdicts = append(verdicts, verdict(exitFaults))
		case p.Unprovable.Any():
			verdicts = append(verdicts, verdict(exitUnproven))
		}
	}
	return errors.Join(verdicts...)
}
