package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"apograph/ledger"
)

func ledgerCheckCommand() command {
	return command{
		path:    "ledger check",
		args:    "[FILE]",
		maxArgs: 1,
		summary: "check every law of the books, on the file alone",
		details: "Reads all of the file and checks that the books tile both axes without hole or\n" +
			"overlap, that totals and indexes agree with the entries, and that every value\n" +
			"is as it was written. Works on a private copy, so that the ledger stays free\n" +
			"for a replicator; the copy needs as much room as the ledger, in the directory\n" +
			"for temporary files. The ledger is never changed.",
		examples: []string{
			"apograph ledger check orders.ledger",
			"apograph ledger check orders.ledger -o json",
		},
		formats: []format{formatTable, formatWide, formatJSON},
		flags:   append(ledgerFlags(), statsFlag()),
		exits:   []exitCode{exitNoLedger, exitLocked, exitDamaged},
		run:     runLedgerCheck,
	}
}

func runLedgerCheck(ctx context.Context, inv *invocation) error {
	path, err := ledgerPath(inv)
	if err != nil {
		return err
	}
	report := newLedgerCheck(path)
	started := time.Now()
	progress := func() string {
		return fmt.Sprintf("ledger check: %s: reading for %s", path, time.Since(started).Round(time.Second))
	}
	err = inv.withProgress(ctx, progress, func(ctx context.Context) error {
		return report.fill(ctx)
	})
	var damage *ledger.CorruptError
	if err != nil && !errors.As(err, &damage) {
		return err
	}
	return errors.Join(err, report.write(inv))
}

// The verdicts of a check.
const (
	verdictIntact  = "intact"
	verdictDamaged = "damaged"
)

// maxViolations is how many broken laws a report lists. Damage comes in heaps,
// and the first one leads to it.
const maxViolations = 100

// A ledgerCheck is the answer of `apograph ledger check`.
type ledgerCheck struct {
	envelope
	Path       string          `json:"path"`
	Verdict    string          `json:"verdict"` // verdictIntact or verdictDamaged
	Partitions int             `json:"partitions"`
	Entries    int64           `json:"entries"`
	Records    int64           `json:"records"`
	Violations []violationInfo `json:"violations"` // in the order found, the first ones
	Omitted    int64           `json:"violations_omitted"`

	foreign bool // the file is something else than a ledger
}

// A violationInfo is one broken law.
type violationInfo struct {
	Bucket string `json:"bucket"` // empty where the damage lies below the buckets
	Key    string `json:"key"`
	Law    string `json:"law"`
	Detail string `json:"detail"` // one line for a person
}

func newLedgerCheck(path string) *ledgerCheck {
	return &ledgerCheck{
		envelope:   newEnvelope("LedgerCheck", "ledger-check"),
		Path:       path,
		Verdict:    verdictIntact,
		Violations: []violationInfo{},
	}
}

// fill checks the ledger. Broken laws end in the report, and the first of them
// is returned as a [*ledger.CorruptError].
func (r *ledgerCheck) fill(ctx context.Context) (err error) {
	l, _, err := freshLedger(ctx, r.Path)
	if err == nil {
		defer func() { err = errors.Join(err, l.Close()) }()
		info, _ := ledgerInfoOf(r.Path, l) // what cannot be read, checking finds
		r.Partitions, r.Entries, r.Records = info.Partitions, info.Entries, info.Records
		err = l.Check(ctx, r.add)
	}
	var (
		damage  *ledger.CorruptError
		foreign *foreignFileError
	)
	r.foreign = errors.As(err, &foreign)
	if errors.As(err, &damage) && r.Verdict == verdictIntact {
		r.add(ledger.Violation{Bucket: damage.Bucket, Key: damage.Key, Law: damage.Law, Detail: damage.Detail})
	}
	if err == nil && r.Verdict == verdictDamaged {
		first := r.Violations[0]
		return &ledger.CorruptError{
			Path: r.Path, Bucket: first.Bucket, Key: first.Key, Law: first.Law, Detail: first.Detail,
		}
	}
	return err
}

func (r *ledgerCheck) add(v ledger.Violation) {
	r.Verdict = verdictDamaged
	if len(r.Violations) == maxViolations {
		r.Omitted++
		return
	}
	r.Violations = append(r.Violations, violationInfo(v))
}

func (r *ledgerCheck) write(inv *invocation) error {
	if inv.format == formatJSON {
		return writeJSON(inv.stdout, r)
	}
	switch {
	case r.foreign:
		return inv.writeText(r.Path + " is not a ledger")
	case r.Verdict == verdictIntact:
		return inv.writeText(fmt.Sprintf("%s is intact: every law holds over %s of %s, %s", r.Path,
			plural(r.Entries, "entry", "entries"), counted(int64(r.Partitions), "partition"), counted(r.Records, "record")))
	}
	table := &textTable{header: []string{"BUCKET", "KEY", "LAW", "DETAIL"}}
	for _, v := range r.Violations {
		table.add(v.Bucket, v.Key, v.Law, v.Detail)
	}
	if err := inv.writeTable(table); err != nil {
		return err
	}
	return inv.writeText(fmt.Sprintf("%s is damaged; violations found: %d", r.Path, int64(len(r.Violations))+r.Omitted))
}
