package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"apograph/verify"
)

// verifyReports is the answer about several flows.
type verifyReports struct {
	envelope
	Flows  []*verify.Report `json:"flows"`
	Failed []failedFlow     `json:"failed"`
}

// verifyFlows verifies one flow after the other. One that cannot be verified
// keeps no other from being.
func verifyFlows(ctx context.Context, inv *invocation, configs []verify.Config, tolerant bool) error {
	out := verifyReports{envelope: newEnvelope("VerifyReports", "verify-reports"), Flows: []*verify.Report{}, Failed: []failedFlow{}}
	var errs []error
	for i := 0; i < len(configs) && ctx.Err() == nil; i++ {
		flow := flowNames{configs[i].SourceAlias, configs[i].TargetAlias}
		report, err := verifyFlow(ctx, inv, configs[i], "verify "+flow.String())
		if err != nil {
			errs = append(errs, flow.failed(err))
		}
		if report == nil {
			out.Failed = append(out.Failed, failedFlow{flow, clean(err.Error())})
			continue
		}
		out.Flows, errs = append(out.Flows, report), append(errs, verifyVerdict(report, tolerant))
	}
	if ctx.Err() != nil {
		errs = append(errs, context.Cause(ctx))
	} else {
		errs = append(errs, partly(len(out.Flows), len(out.Failed)))
	}
	if len(out.Flows) == 0 {
		return errors.Join(errs...)
	}
	return errors.Join(writeFlows(inv, out, out.Flows, writeVerifyReport), errors.Join(errs...))
}

func (f flowNames) String() string { return f.Source + "->" + f.Target }

// partly returns what the exit code has to say where some flows have an answer
// and others do not: not that nothing was attempted, whatever the others' own
// codes are.
func partly(done, failed int) error {
	if done > 0 && failed > 0 {
		return verdict(exitError)
	}
	return nil
}

// failed says of an error that it is a flow's.
func (f flowNames) failed(err error) error {
	if strings.HasPrefix(err.Error(), f.prefix()) {
		return err // it says so itself
	}
	return fmt.Errorf("%s%w", f.prefix(), err)
}

func (f flowNames) prefix() string { return "flow " + f.String() + ": " }
