package main

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/urfave/cli/v2"

	"apograph/internal/connect"
	"apograph/internal/mm2"
	"apograph/verify"
)

func verifyCommand() command {
	return command{
		path:    "verify",
		summary: "prove a copy: read it again and compare it with its ledger",
		details: "Reads the source and the target like any consumer, compares them record by\n" +
			"record along the ledger, and reports what is missing, changed, out of order,\n" +
			"too much or not proven, at exact offsets. Writes to neither cluster.\n\n" +
			"  full    both clusters; the default if both are given\n" +
			"  target  the target and the digests in the ledger; the source may be gone.\n" +
			"          A fault may be located no closer than an entry of up to 64 KB\n" +
			"  books   the ledger alone: is every source offset accounted for?\n\n" +
			"Verification ends at the end that the source has when it begins. --until book\n" +
			"ends where the books end, on both sides, for a target to which others write\n" +
			"after a cutover. What retention or compaction has removed cannot be compared:\n" +
			"that is no fault, and is not called complete either. While a copier is at\n" +
			"work, --wait says how long its books may take to reach that end.\n\n" +
			"--sample i/n reads the i-th of n slices, which together are everything. The\n" +
			"books of a partition are cut into blocks of 16 MiB, or 65536 offsets if that\n" +
			"is less, which stay where they are while the books grow; each n-th of them is\n" +
			"in a slice. --resume takes over what earlier runs have proven, as far as the\n" +
			"books, the topics and the target's log are still what they were, and reads the\n" +
			"rest; faults of earlier runs are reported again. The answer says from when the\n" +
			"oldest proof is: of what happened since to those records it knows nothing.\n" +
			"Runs with --sample or --resume keep what they prove in FILE.verify beside the\n" +
			"ledger; only --resume makes use of it. Remove that file to begin anew.\n\n" +
			"Bytes, of --max-bytes and --rate-limit, are those of uncompressed records.\n\n" +
			"Works on a private copy of the ledger, in the directory for temporary files,\n" +
			"so that the ledger stays free for a replicator.",
		examples: []string{
			"apograph verify --source-bootstrap-server a:9092 --target-bootstrap-server b:9092 --ledger f.ledger",
			"apograph verify --target-bootstrap-server b:9092 --ledger f.ledger -o json",
			"apograph verify --ledger f.ledger --mode books",
			"apograph verify --config mm2.properties -o json",
			"apograph verify --target-bootstrap-server b:9092 --ledger f.ledger --sample 7/30 --resume --rate-limit 50MiB",
		},
		formats: []format{formatTable, formatWide, formatJSON},
		flags: slices.Concat(clusterFlags(), selectionFlags(), []cli.Flag{
			ledgerFlag(),
			stringFlag("mode", "read what `MODE` says: books, target or full (default: as the clusters that are given allow)"),
			stringFlag("until", "end at `END`: source-end or book (default source-end)"),
			durationFlag("wait", "wait for `DURATION` for a copier that holds the ledger, and for its books to reach the source's end (default 1m)", verify.DefaultWait),
			&cli.IntFlag{Name: "max-findings", Value: verify.DefaultMaxFindings, EnvVars: []string{envVar("max-findings")},
				Usage: "list at most `N` findings, faults first, and count the others (default 100)"},
			stringFlag("sample", "read only the `SLICE` i/n: the i-th of n that are everything together"),
			&cli.BoolFlag{Name: "resume", EnvVars: []string{envVar("resume")},
				Usage: "take over what earlier runs with --resume or --sample have proven, and read the rest"},
			stringFlag("max-bytes", "stop reading after a `SIZE`, such as 50GiB; the rest is not verified"),
			stringFlag("rate-limit", "read no more than a `SIZE` a second of both clusters together, such as 50MiB"),
			stringFlag("fail-on", "exit with an error on a `LIST` of faults and unproven; faults alone lets parts that are not proven pass (default faults,unproven)"),
			statsFlag(),
		}),
		exits: []exitCode{exitFaults, exitUnproven, exitNoLedger, exitLocked, exitDamaged, exitInterrupted, exitTerminated},
		run:   runVerify,
	}
}

func runVerify(ctx context.Context, inv *invocation) error {
	configs, err := verifyConfigs(inv)
	if err != nil {
		return err
	}
	tolerant, err := failsOnFaultsAlone(inv)
	if err != nil {
		return err
	}
	if len(configs) > 1 {
		return verifyFlows(ctx, inv, configs, tolerant)
	}
	report, err := verifyFlow(ctx, inv, configs[0], "verify")
	if report == nil {
		return err
	}
	return errors.Join(writeVerifyReport(inv, report), verifyVerdict(report, tolerant), err)
}

// verifyFlow verifies one flow, which progress calls by a name.
func verifyFlow(ctx context.Context, inv *invocation, config verify.Config, name string) (report *verify.Report, err error) {
	var latest atomic.Pointer[verify.Progress]
	config.Progress = func(p verify.Progress) { latest.Store(&p) }
	err = inv.withProgress(ctx, func() string { return name + ": " + verifyProgress(latest.Load()) }, func(ctx context.Context) (err error) {
		report, err = verify.Run(ctx, config)
		return err
	})
	return report, verifyError(&config, err)
}

// verifyConfigs returns what to verify: the flow of the flags, or those of the
// configuration.
func verifyConfigs(inv *invocation) ([]verify.Config, error) {
	c, err := inv.configuration()
	if err != nil {
		return nil, err
	}
	if c == nil {
		config, err := verifyAdHoc(inv)
		return []verify.Config{config}, err
	}
	paths, err := c.ledgers(inv)
	if err != nil {
		return nil, err
	}
	var configs []verify.Config
	for i, f := range c.flows {
		config, err := verifyConfig(inv, paths[i])
		if err != nil {
			return nil, err
		}
		config.SourceAlias, config.TargetAlias = f.Source, f.Target
		if config.Source, config.Target, err = verifiedClusters(inv, c.file, f, config.Mode); err != nil {
			return nil, err
		}
		configs = append(configs, config)
	}
	return configs, nil
}

// verifiedClusters returns the clusters of a flow that a mode reads.
func verifiedClusters(inv *invocation, c *mm2.Config, f mm2.FlowConfig, mode verify.Mode) (source, target *connect.Cluster, err error) {
	if mode == verify.ModeBooks {
		return nil, nil, nil
	}
	to, err := inv.flowCluster(c, f.Target, f.TargetClient())
	if err == nil {
		err = to.Check()
	}
	if err != nil || mode == verify.ModeTarget {
		return nil, &to, err
	}
	from, err := inv.flowCluster(c, f.Source, f.SourceClient())
	if err == nil {
		err = from.Check()
	}
	return &from, &to, err
}

func verifyAdHoc(inv *invocation) (config verify.Config, err error) {
	path, err := flagLedger(inv)
	if err != nil {
		return config, err
	}
	if _, err := inv.settings(nil); err != nil {
		return config, err
	}
	source, err := givenCluster(inv, "source")
	if err != nil {
		return config, err
	}
	target, err := givenCluster(inv, "target")
	if err != nil {
		return config, err
	}
	if config, err = verifyConfig(inv, path); err != nil {
		return config, err
	}
	config.Source, config.Target = source, target
	config.SourceAlias, config.TargetAlias = inv.String("source-alias"), inv.String("target-alias")
	return config, nil
}

// verifyConfig returns what flags say about how to verify the flow of a ledger.
func verifyConfig(inv *invocation, path string) (verify.Config, error) {
	if n := inv.Int("max-findings"); n < 1 {
		return verify.Config{}, usagef("--max-findings %d: at least one must be listed", n)
	}
	limits, err := verifyLimits(inv)
	if err != nil {
		return verify.Config{}, err
	}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		info = &debug.BuildInfo{}
	}
	return verify.Config{
		LedgerPath: path,
		Books: func(ctx context.Context) (verify.Copy, error) {
			l, live, err := freshLedger(ctx, path)
			return verify.Copy{Ledger: l, Live: live}, err
		},
		Standing:       func(ctx context.Context) []verify.Standing { return standing(ctx, path) },
		Wait:           max(inv.Duration("wait"), time.Nanosecond), // 0 is the default of the package
		Mode:           verify.Mode(inv.String("mode")),
		Topics:         inv.StringSlice("topics"),
		TopicsExclude:  inv.StringSlice("topics-exclude"),
		Until:          verify.Until(inv.String("until")),
		Sample:         limits.sample,
		Resume:         inv.Bool("resume"),
		MaxBytes:       limits.maxBytes,
		BytesPerSecond: limits.bytesPerSecond,
		MaxFindings:    inv.Int("max-findings"),
		Version:        versionOf(info).Version,
		Logger:         inv.logger(),
	}, nil
}

// givenCluster returns a cluster if the flags describe it, else nil. Its alias
// is the ledger's.
func givenCluster(inv *invocation, side string) (*connect.Cluster, error) {
	c, ok, err := clusterOf(inv, side)
	if err != nil || !ok {
		return nil, err
	}
	c.Alias = ""
	return &c, c.Check()
}

// verifyError gives the errors of a verification the types that have exit codes.
func verifyError(config *verify.Config, err error) error {
	var usage *verify.UsageError
	var away *connect.UnreachableError
	switch {
	case errors.As(err, &usage):
		return usagef("%v", usage)
	case errors.As(err, &away) && config.Source != nil && slices.Equal(away.Bootstrap, config.Source.Bootstrap):
		return &sourceAwayError{err}
	}
	return ledgerError(config.LedgerPath, err)
}

// A sourceAwayError says that the source cannot be reached, without which a copy can
// be verified as well.
type sourceAwayError struct{ err error }

func (e *sourceAwayError) Error() string { return e.err.Error() }
func (e *sourceAwayError) Unwrap() error { return e.err }

// Hint returns the advice that goes with the error.
func (e *sourceAwayError) Hint() string {
	return "where the source is gone for good, --mode target proves the copy by the target and the ledger alone"
}

// verifyVerdict returns what the exit code has to say about a report. Tolerant is
// that parts which are not proven may pass.
func verifyVerdict(r *verify.Report, tolerant bool) error {
	switch {
	case r.Verdict == verify.Faults:
		return verdict(exitFaults)
	case r.Verdict == verify.Complete, r.Verdict == verify.CompleteWithAcceptedLosses, tolerant:
		return nil
	default:
		return verdict(exitUnproven)
	}
}

func verifyProgress(p *verify.Progress) string {
	if p == nil {
		return "reading the ledger"
	}
	if p.Waiting != "" {
		return p.Waiting
	}
	line := fmt.Sprintf("%d of %s, %s read, %s/s", p.Finished, counted(int64(p.Partitions), "partition"), counted(p.Records, "record"), byteSize(int64(p.Rate())))
	if p.Total > 0 {
		line += fmt.Sprintf(", %d %%", 100*p.Offsets/p.Total)
	}
	if p.Left >= 0 && p.Offsets < p.Total {
		line += ", " + p.Left.Round(time.Second).String() + " left"
	}
	return line
}

func writeVerifyReport(inv *invocation, r *verify.Report) error {
	if inv.format == formatJSON {
		return writeJSON(inv.stdout, r)
	}
	for _, table := range []*textTable{verifyFindings(r), verifyPartitions(r), verifySummary(r)} {
		if len(table.rows) == 0 {
			continue
		}
		if err := inv.writeTable(table); err != nil {
			return err
		}
		if len(table.header) > 0 {
			fmt.Fprintln(inv.stdout)
		}
	}
	if text := besideText(r); text != "" {
		return inv.writeText(text)
	}
	return nil
}

// inWords returns a name of a report as words: not_verified is "not verified".
func inWords[S ~string](name S) string { return strings.ReplaceAll(string(name), "_", " ") }
