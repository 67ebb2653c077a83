package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"

	"github.com/urfave/cli/v2"

	"apograph/replicate"
)

func attachCommand() command {
	return command{
		path:    "attach",
		summary: "make a new ledger for a copy whose ledger is gone",
		details: "For a copy that apograph made, where no snapshot of its ledger is left: aligns\n" +
			"source and target record by record and writes a new ledger. `replicate` goes on\n" +
			"with it, `verify` and `translate` work. Nothing is written to either cluster.\n" +
			"Nobody may write to the target topics meanwhile: stop the replicator first.\n\n" +
			"What either side has lost can no longer be proven, and the answer says what\n" +
			"that is. A partition that does not align, or could in more than one way, is\n" +
			"reported with the place and left out of the ledger, as is one whose records the\n" +
			"target has all deleted. A partition of which the target never held a record is\n" +
			"none to have books about: `replicate` begins it. If all are like that, the\n" +
			"ledger is made all the same, without books.",
		examples: []string{
			"apograph attach --source-bootstrap-server a:9092 --target-bootstrap-server b:9092 \\\n" +
				"    --topics 'orders,pay.*' --ledger new.ledger",
			"apograph attach --config mm2.properties --flow 'A->B'",
		},
		formats: []format{formatTable, formatWide, formatJSON},
		flags:   slices.Concat(clusterFlags(policySettings()...), selectionFlags(), policyFlags(), []cli.Flag{ledgerFlag(), statsFlag()}),
		exits:   []exitCode{exitFaults, exitUnproven, exitInterrupted, exitTerminated},
		run:     runAttach,
	}
}

func runAttach(ctx context.Context, inv *invocation) error {
	config, err := attachConfig(inv)
	if err != nil {
		return err
	}
	var progress atomic.Pointer[replicate.AttachProgress]
	var report replicate.AttachReport
	err = inv.withBar(ctx, func() progressState { return attachState(progress.Load()) }, func(ctx context.Context) (err error) {
		report, err = replicate.Attach(ctx, config, func(p replicate.AttachProgress) { progress.Store(&p) })
		return err
	})
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

func attachConfig(inv *invocation) (config replicate.Config, err error) {
	c, err := inv.configuration()
	if err != nil {
		return config, err
	}
	if c != nil {
		if _, err := c.one(inv); err != nil {
			return config, err
		}
		configs, err := inv.flowConfigs(c)
		if err != nil {
			return config, err
		}
		return configs[0], checkStores(configs)
	}
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
