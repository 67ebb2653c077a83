package main

import (
	"context"
	"errors"
	"os"
	"sync/atomic"

	"apograph/replicate"
)

// attachReports is the answer about several flows.
type attachReports struct {
	envelope
	Flows  []attachReport `json:"flows"`
	Failed []failedFlow   `json:"failed"`
}

// attachFlow attaches the copy of one flow.
func attachFlow(ctx context.Context, inv *invocation, config replicate.Config) (report replicate.AttachReport, err error) {
	var progress atomic.Pointer[replicate.AttachProgress]
	err = inv.withBar(ctx, func() progressState { return attachState(progress.Load()) }, func(ctx context.Context) (err error) {
		report, err = replicate.Attach(ctx, config, func(p replicate.AttachProgress) { progress.Store(&p) })
		return err
	})
	return report, err
}

// attachFlows attaches one flow after the other. One that cannot be attached keeps
// no other from being; a ledger that is there keeps all from it.
func attachFlows(ctx context.Context, inv *invocation, configs []replicate.Config) error {
	for _, config := range configs {
		if _, err := os.Lstat(config.LedgerPath); err == nil {
			return usagef("%s exists; attach makes a new ledger", config.LedgerPath).
				withHint("if it is the flow's ledger, replicate goes on with it: attach the others with --flow")
		}
	}
	out := attachReports{envelope: newEnvelope("AttachReports", "attach-reports"), Flows: []attachReport{}, Failed: []failedFlow{}}
	var errs []error
	for i := 0; i < len(configs) && ctx.Err() == nil; i++ {
		flow := flowNames{configs[i].Source.Alias, configs[i].Target.Alias}
		report, err := attachFlow(ctx, inv, configs[i])
		switch {
		case errors.Is(err, replicate.ErrNoAttach):
			configs[i].Logger.Warn("there is nothing to attach", "reason", err)
			out.Flows = append(out.Flows, attachReportOf(replicate.AttachReport{SourceAlias: flow.Source, TargetAlias: flow.Target}))
		case err != nil:
			errs = append(errs, flow.failed(err))
			out.Failed = append(out.Failed, failedFlow{flow, clean(err.Error())})
		default:
			errs = append(errs, attachVerdict(report))
			out.Flows = append(out.Flows, attachReportOf(report))
		}
	}
	if ctx.Err() != nil {
		errs = append(errs, context.Cause(ctx))
	} else {
		errs = append(errs, partly(len(out.Flows), len(out.Failed)))
	}
	if len(out.Flows) == 0 {
		return errors.Join(errs...)
	}
	return errors.Join(writeFlows(inv, out, out.Flows, writeAttachText), errors.Join(errs...))
}
