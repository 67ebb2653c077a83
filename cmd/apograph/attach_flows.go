package main

import (
	"context"
	"errors"
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
// no other from being. A flow with nothing to attach is none that failed, unless all
// are such.
func attachFlows(ctx context.Context, inv *invocation, configs []replicate.Config) error {
	out := attachReports{envelope: newEnvelope("AttachReports", "attach-reports"), Flows: []attachReport{}, Failed: []failedFlow{}}
	var errs, idle []error
	for i := 0; i < len(configs) && ctx.Err() == nil; i++ {
		flow := flowNames{configs[i].Source.Alias, configs[i].Target.Alias}
		report, err := attachFlow(ctx, inv, configs[i])
		switch {
		case errors.Is(err, replicate.ErrNoAttach), errors.Is(err, replicate.ErrHasBooks):
			idle = append(idle, err)
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
	switch {
	case len(idle) == len(configs):
		return errors.Join(idle...)
	case ctx.Err() != nil:
		errs = append(errs, context.Cause(ctx))
	default:
		errs = append(errs, partly(len(out.Flows), len(out.Failed)))
	}
	if len(out.Flows) == 0 {
		return errors.Join(errs...)
	}
	return errors.Join(writeFlows(inv, out, out.Flows, writeAttachText), errors.Join(errs...))
}
