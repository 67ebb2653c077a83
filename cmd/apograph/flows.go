package main

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	"apograph/internal/connect"
	"apograph/ledger"
	"apograph/replicate"
)

// A flowRun is one of several flows of a process.
type flowRun struct {
	flow     flowNames
	config   replicate.Config
	retry    time.Duration // pause before the first new try to begin
	progress copyProgress
	summary  replicate.Summary // of the last run
	err      error
}

// runFlows runs several flows beside one another. What is wrong use of any keeps
// all from beginning; one that cannot begin, or fails, keeps no other from
// running.
func runFlows(ctx context.Context, inv *invocation, configs []replicate.Config) error {
	if err := errors.Join(refusedTogether(ctx, configs, nil)...); err != nil {
		return err
	}
	runs := make([]*flowRun, len(configs))
	for i, config := range configs {
		run := &flowRun{flow: flowNames{config.Source.Alias, config.Target.Alias}, retry: firstRetry, progress: copyProgress{once: config.Once}}
		config.Progress = func(p replicate.Progress) { run.progress.note(time.Now(), p) }
		run.config = config
		runs[i] = run
	}
	_ = inv.withBar(ctx, func() progressState { return stateOfAll(runs) }, func(ctx context.Context) error {
		crew := &crew{live: len(runs), idle: make(chan struct{})}
		var group sync.WaitGroup
		for _, r := range runs {
			group.Go(func() { r.run(ctx, crew) })
		}
		group.Wait()
		return nil
	})
	return answerFlows(ctx, inv, runs)
}

// refusedTogether says of each flow why it keeps all from beginning beside one
// another; nil of one that does not. An error of another kind, as that a cluster
// cannot be reached, is left to the flow itself. books are their ledgers, only to be
// read; nil: they are opened.
func refusedTogether(ctx context.Context, configs []replicate.Config, books []*ledger.Ledger) []error {
	errs := replicate.CheckFlows(ctx, configs, books)
	if ctx.Err() != nil {
		clear(errs)
		errs[0] = context.Cause(ctx)
		return errs
	}
	idle := 0
	for i, err := range errs {
		switch {
		case errors.Is(err, replicate.ErrNoTopics) && idle < len(configs)-1:
			idle++ // as long as there is another that has some
			errs[i] = nil
		case !slices.ContainsFunc(codesOf(err), isWrongUse):
			errs[i] = nil
		}
	}
	return errs
}

// isWrongUse reports whether a code says that what was asked for must not be
// begun.
func isWrongUse(code exitCode) bool { return code == exitUsage || code == exitRefused }

// A crew counts the flows that copy, or are about to for the first time.
type crew struct {
	mu   sync.Mutex // guards live
	live int
	idle chan struct{} // closed when there is none left
}

func (c *crew) change(by int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.live += by; c.live == 0 {
		close(c.idle)
	}
}

// Pauses before a flow tries again to reach its clusters, while others run.
const (
	firstRetry = 10 * time.Second
	lastRetry  = 5 * time.Minute
)

// run runs a flow until it ends. Where its clusters cannot be reached at its
// beginning, it goes on trying as long as other flows run.
func (r *flowRun) run(ctx context.Context, crew *crew) {
	live := true
	for pause := r.retry; ; pause = min(2*pause, lastRetry) {
		r.summary, r.err = runFlow(ctx, r.config, func() {
			if !live {
				live = true
				crew.change(+1)
			}
		})
		if live {
			live = false
			crew.change(-1)
		}
		if ctx.Err() != nil {
			return
		}
		if errors.Is(r.err, replicate.ErrNoTopics) {
			r.config.Logger.Warn("there is nothing to copy", "reason", r.err)
			r.summary, r.err = replicate.Summary{SourceAlias: r.flow.Source, TargetAlias: r.flow.Target, Complete: true}, nil
		}
		if r.err != nil {
			r.config.Logger.Error("the flow does not run", "error", r.err)
		}
		var away *connect.UnreachableError
		if r.config.Once || !errors.As(r.err, &away) || !wait(ctx, crew.idle, pause) {
			return
		}
	}
}

// wait waits, unless ctx or the crew ends.
func wait(ctx context.Context, idle <-chan struct{}, pause time.Duration) bool {
	timer := time.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-idle:
	case <-ctx.Done():
	}
	return false
}

// stateOfAll returns the progress of all flows together.
func stateOfAll(runs []*flowRun) (all progressState) {
	var lines []string
	for _, r := range runs {
		one := r.progress.state()
		lines = append(lines, r.flow.String()+": "+one.line)
		all.done, all.total = all.done+one.done, all.total+one.total
	}
	all.line = strings.Join(lines, "; ")
	return all
}

// replicateSummaries is the answer about several flows.
type replicateSummaries struct {
	envelope
	Flows  []replicateSummary `json:"flows"`
	Failed []failedFlow       `json:"failed"`
}

// A failedFlow is one about which there is nothing else to say.
type failedFlow struct {
	Flow  flowNames `json:"flow"`
	Error string    `json:"error"`
}

// answerFlows writes what became of flows.
func answerFlows(ctx context.Context, inv *invocation, runs []*flowRun) error {
	out := replicateSummaries{envelope: newEnvelope("ReplicateSummaries", "replicate-summaries"), Flows: []replicateSummary{}, Failed: []failedFlow{}}
	var errs []error
	for _, r := range runs {
		if r.err != nil {
			errs = append(errs, r.flow.failed(r.err))
		}
		if r.summary.Partitions == 0 {
			if r.err != nil {
				out.Failed = append(out.Failed, failedFlow{r.flow, clean(r.err.Error())})
				continue
			}
		} else if signalCause(ctx) == nil {
			errs = append(errs, replicateVerdict(r.summary, r.config.Once))
		}
		out.Flows = append(out.Flows, summaryOf(r.summary))
	}
	if len(out.Flows) == 0 {
		return errors.Join(errs...) // nothing ran
	}
	if ctx.Err() == nil {
		errs = append(errs, partly(len(out.Flows), len(out.Failed)))
	}
	return errors.Join(writeFlows(inv, out, out.Flows, writeSummaryText), errors.Join(errs...))
}

// writeFlows writes the answer about several flows: as a document, or one text behind
// the other.
func writeFlows[Report any](inv *invocation, document any, flows []Report, text func(*invocation, Report) error) error {
	if inv.format == formatJSON {
		return writeJSON(inv.stdout, document)
	}
	for i, one := range flows {
		if i > 0 {
			if err := inv.writeText(""); err != nil {
				return err
			}
		}
		if err := text(inv, one); err != nil {
			return err
		}
	}
	return nil
}

func writeSummaryText(inv *invocation, s replicateSummary) error { return inv.writeTable(s.table()) }

// writeHeading says which flow the i-th part of an answer is about.
func (inv *invocation) writeHeading(i int, f flowNames) error {
	if i > 0 {
		if err := inv.writeText(""); err != nil {
			return err
		}
	}
	return inv.writeText(f.Source + " -> " + f.Target)
}
