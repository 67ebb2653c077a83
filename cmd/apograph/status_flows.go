package main

import (
	"context"
	"errors"
	"path/filepath"
	"strings"
)

// flowStatuses are where several flows are, or one.
type flowStatuses struct {
	asked  int // flows; one may be asked about without its name
	flows  []flowStatus
	failed []failedLedger
}

// A failedLedger is one that cannot say where its flow is.
type failedLedger struct {
	Ledger string `json:"ledger"`
	Error  string `json:"error"`
}

// statusReports is the answer about several flows.
type statusReports struct {
	envelope
	Flows  []statusReport `json:"flows"`
	Failed []failedLedger `json:"failed"`
}

// statusLedgers returns the ledgers to ask: the one that the command line names,
// else those of all flows of the configuration.
func statusLedgers(inv *invocation) ([]string, error) {
	if len(inv.args) > 0 || inv.line.has("ledger") {
		path, err := ledgerPath(inv)
		return []string{path}, err
	}
	c, err := inv.configuration()
	if err != nil {
		return nil, err
	}
	if c != nil {
		return c.ledgers(inv)
	}
	path, err := ledgerPath(inv)
	return []string{path}, err
}

// readStatuses asks all ledgers. The errors are those of the ones that cannot be
// read.
func readStatuses(ctx context.Context, paths []string) (s flowStatuses, err error) {
	s.asked, s.failed = len(paths), []failedLedger{}
	var errs []error
	for _, path := range paths {
		status, err := readStatus(ctx, path)
		if err != nil {
			errs = append(errs, err)
			s.failed = append(s.failed, failedLedger{path, clean(err.Error())})
			continue
		}
		s.flows = append(s.flows, status)
	}
	return s, errors.Join(append(errs, partly(len(s.flows), len(s.failed)))...)
}

// document returns the answer as JSON has it.
func (s *flowStatuses) document() any {
	if s.asked == 1 {
		return s.flows[0].Report
	}
	all := statusReports{envelope: newEnvelope("StatusReports", "status-reports"), Flows: []statusReport{}, Failed: s.failed}
	for _, one := range s.flows {
		all.Flows = append(all.Flows, one.Report)
	}
	return all
}

func (s *flowStatuses) text(columns int) string {
	var parts []string
	for i := range s.flows {
		parts = append(parts, s.flows[i].text(columns))
	}
	for _, f := range s.failed {
		parts = append(parts, snip(printable(filepath.Base(f.Ledger)+": "+f.Error), columns)+"\n")
	}
	return strings.Join(parts, "\n")
}

func (s *flowStatuses) onlyStopped() flowStatuses {
	only := flowStatuses{asked: s.asked, failed: s.failed}
	for i := range s.flows {
		only.flows = append(only.flows, s.flows[i].onlyStopped())
	}
	return only
}

func (s *flowStatuses) verdict() error {
	var verdicts []error
	for i := range s.flows {
		verdicts = append(verdicts, s.flows[i].verdict())
	}
	return errors.Join(verdicts...)
}
