package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"apograph/internal/lint"
	"apograph/internal/mm2"
	"apograph/internal/pace"
	"apograph/ledger"
	"apograph/replicate"
)

func replicateCommand() command {
	return command{
		path:    "replicate",
		summary: "copy topics to another cluster and book every offset",
		details: "Copies every committed record of the chosen topics exactly once, in order, and\n" +
			"writes into the ledger what became of each source offset. Topics that the\n" +
			"target lacks are created. It goes on where the ledger ends, however the last\n" +
			"run ended. Without --once it runs until it is stopped. Every start needs\n" +
			"--topics, or --config: the ledger does not stand for it.\n\n" +
			"With --config, all flows that the file enables run beside one another, each\n" +
			"with its own ledger. Where the command line makes no sense for one of them\n" +
			"none begins; one that fails keeps no other from running.\n\n" +
			"A target topic that holds records which the ledger does not know is refused.\n" +
			"A partition that cannot go on stops alone; the answer says why, and what to do.\n" +
			"Where nothing could be done, as no cluster was reached, there is no answer.",
		examples: []string{
			"apograph replicate --source-bootstrap-server a:9092 --target-bootstrap-server b:9092 \\\n" +
				"    --topics 'orders,pay.*' --ledger f.ledger --once",
			"apograph replicate --config mm2.properties",
			"apograph replicate --config mm2.properties --flow 'A->B' --dry-run",
		},
		formats: []format{formatTable, formatWide, formatJSON},
		flags: slices.Concat(clusterFlags(replicateSettings()...), selectionFlags(), policyFlags(), []cli.Flag{
			ledgerFlag(),
			&cli.BoolFlag{Name: "once", EnvVars: []string{envVar("once")},
				Usage: "copy up to the ends that the topics have now, then exit"},
			&cli.BoolFlag{Name: "dry-run", EnvVars: []string{envVar("dry-run")},
				Usage: "say what the run would do and write nothing: topics in and out with the rule, settings, rights that are missing, how much there is to copy; exit 5 if something would be refused"},
			// Not from the environment: each use needs a decision of its own.
			&cli.StringSliceFlag{Name: "append", KeepSpace: true,
				Usage: "for the topics in a `LIST`, by their names on the source: write behind what the target holds of each and the ledger does not know; refused where that is a copy of the source's. A name that the flow does not copy is an error"},
			&cli.StringFlag{Name: "start",
				Usage: "begin topics that have no book yet at `POINT`: earliest, latest, a time in RFC 3339, or group:NAME, which is what a group has committed (default earliest)"},
			stringFlag("rate-limit", "fetch no more than a `SIZE` a second over all partitions, such as 50MiB"),
			statsFlag(),
		}),
		exits: []exitCode{exitFaults, exitUnproven, exitRefused, exitLocked, exitDamaged, exitInterrupted, exitTerminated},
		run:   runReplicate,
	}
}

func runReplicate(ctx context.Context, inv *invocation) error {
	configs, err := replicateConfigs(inv)
	if err != nil {
		return err
	}
	switch {
	case inv.Bool("dry-run"):
		return runPlans(ctx, inv, configs)
	case len(configs) > 1:
		return runFlows(ctx, inv, configs)
	}
	config := configs[0]
	progress := &copyProgress{once: config.Once}
	config.Progress = func(p replicate.Progress) { progress.note(time.Now(), p) }
	var summary replicate.Summary
	err = inv.withBar(ctx, progress.state, func(ctx context.Context) (err error) {
		summary, err = runFlow(ctx, config, func() {})
		return err
	})
	if summary.Partitions == 0 {
		return err // nothing ran
	}
	if signalCause(ctx) != nil {
		// Told to end: what stands still by then is no failure to do so.
		return errors.Join(writeSummary(inv, summary), err)
	}
	return errors.Join(writeSummary(inv, summary), replicateVerdict(summary, config.Once), err)
}

// runFlow runs a flow, and answers on the socket of its ledger meanwhile. A flow
// without a socket copies all the same. began is called once it copies.
func runFlow(ctx context.Context, config replicate.Config, began func()) (replicate.Summary, error) {
	if err := refuseHeld(ctx, config.LedgerPath); err != nil {
		return replicate.Summary{}, err
	}
	flow, err := replicate.Start(ctx, config)
	if err != nil {
		return replicate.Summary{}, ledgerError(config.LedgerPath, err)
	}
	defer flow.Close()
	began()
	summary, err := answerWhile(ctx, flow, config)
	return summary, ledgerError(config.LedgerPath, err)
}

func answerWhile(ctx context.Context, flow *replicate.Flow, config replicate.Config) (replicate.Summary, error) {
	answers, err := serve(ctx, liveFlow{flow.Ledger(), flow.Status, flow.Order, flow.Drift, flow.Groups, flow.Duties}, defaultServerLimits(), config.Logger)
	if err != nil {
		config.Logger.Warn("no socket: this flow answers no questions while it runs", "error", err)
		return flow.Wait()
	}
	defer answers.close() // before the ledger can be another's
	return flow.Wait()
}

// settingRefresh is the setting of [replicate.Config.RefreshInterval].
const settingRefresh = mm2.RefreshKey

func replicateSettings() []setting {
	return slices.Concat([]setting{{settingRefresh, "how often to look for new topics and partitions, in milliseconds or such as 30s (default 30s)"}},
		policySettings(), dutySettings(), mirrorKeys())
}

// replicateConfigs returns the flows to run, at least one.
func replicateConfigs(inv *invocation) ([]replicate.Config, error) {
	c, err := inv.configuration()
	if err != nil {
		return nil, err
	}
	rate, err := sizeFlag(inv, "rate-limit")
	if err != nil {
		return nil, err
	}
	var configs []replicate.Config
	if c == nil {
		config, err := adHocConfig(inv)
		if err != nil {
			return nil, err
		}
		configs = []replicate.Config{config}
	} else if configs, err = inv.flowConfigs(c); err != nil {
		return nil, err
	}
	if len(configs) > 1 && inv.IsSet("append") {
		return nil, usagef("--append is about one flow, and there are %d", len(configs)).withHint("choose one with --flow: %s", flowNamesText(c.flows))
	}
	limit, routes := pace.New(rate), &replicate.Routes{}
	for i := range configs {
		config := &configs[i]
		config.Once, config.Append = inv.Bool("once"), splitList(inv.StringSlice("append"))
		config.RateLimit, config.Pace, config.Routes = rate, limit, routes
	}
	if c != nil {
		c.tellLint(inv)
		for pair, why := range lint.Rings(c.file, c.flows) {
			routes.Foresee(pair.String(), why)
		}
	}
	return configs, checkStores(configs)
}

// checkStores reads the key and trust stores of all clusters.
func checkStores(configs []replicate.Config) error {
	var errs []error
	for _, config := range configs {
		errs = append(errs, config.Source.Check(), config.Target.Check())
	}
	return joinOnce(errs)
}

// adHocScope returns what flags alone say of a flow's clusters, ledger and topics.
// The hint is for who names no topics.
func adHocScope(inv *invocation, hint string) (config replicate.Config, err error) {
	config = replicate.Config{AllowSameCluster: inv.Bool("allow-same-cluster"), Logger: inv.logger()}
	if config.Source, config.Target, err = bothClusters(inv); err != nil {
		return config, err
	}
	if config.LedgerPath, err = ledgerPath(inv); err != nil {
		return config, err
	}
	config.Topics, config.TopicsExclude = inv.StringSlice("topics"), inv.StringSlice("topics-exclude")
	if len(config.Topics) == 0 {
		return config, usagef("--topics is needed").withHint("%s", hint)
	}
	return config, nil
}

// adHocConfig returns the flow that flags alone describe.
func adHocConfig(inv *invocation) (config replicate.Config, err error) {
	if config, err = adHocScope(inv, "--topics '.*' copies every topic"); err != nil {
		return config, err
	}
	if config.Start, err = replicate.ParseStartPoint(inv.String("start")); err != nil {
		return config, usagef("--%v", err)
	}
	settings, err := inv.settings(replicateSettings())
	if err != nil {
		return config, err
	}
	if text, ok := settings[settingRefresh]; ok {
		if config.RefreshInterval, err = mm2.ParseInterval(text); err != nil {
			return config, usagef("-X %s=%s: %v", settingRefresh, quoteArg(text), err)
		}
	}
	if config.Policy, err = adHocPolicy(inv, config.Source.Alias, settings); err != nil {
		return config, err
	}
	duties, err := adHocFlow(settings)
	if err != nil {
		return config, err
	}
	if err := applyMirror(&config, duties, []mm2.FlowConfig{duties}, false); err != nil {
		return config, err
	}
	if err := checkKeptHeartbeats(config); err != nil {
		return config, err
	}
	return config, applyDuties(&config, duties, false)
}

// splitList returns the elements of lists of names separated by commas.
func splitList(lists []string) []string {
	var names []string
	for name := range strings.SplitSeq(strings.Join(lists, ","), ",") {
		if name = strings.TrimSpace(name); name != "" {
			names = append(names, name)
		}
	}
	return names
}

// progressLine tells where a run is. One that goes on until it is stopped has
// no end to be measured against, and only a partition that stopped is finished.
func progressLine(once bool, p *replicate.Progress) string {
	if p == nil {
		return "connecting"
	}
	copied := fmt.Sprintf("%s copied (%s)", counted(p.Copied, "record"), byteSize(p.Bytes))
	partitions := counted(int64(p.Partitions), "partition")
	if once {
		return fmt.Sprintf("%d of %s done, %s, %s to go", p.Finished, partitions, copied, counted(p.Remaining, "offset"))
	}
	line := partitions + ", " + copied
	if p.Remaining > 0 {
		line += ", " + counted(p.Remaining, "offset") + " behind"
	} else {
		line += ", caught up"
	}
	if p.Finished > 0 {
		line += fmt.Sprintf(", %d stopped", p.Finished)
	}
	return line
}

// replicateVerdict returns what the exit code has to say about a run that
// ended by itself.
func replicateVerdict(s replicate.Summary, once bool) error {
	var verdicts []error
	if len(s.Stopped) > 0 {
		verdicts = append(verdicts, verdict(exitError))
	}
	if s.BadTiles > 0 {
		verdicts = append(verdicts, verdict(exitFaults))
	}
	if len(s.Waiting) > 0 || len(s.Doubts) > 0 {
		verdicts = append(verdicts, verdict(exitUnproven))
	}
	if len(s.Duties) > 0 {
		verdicts = append(verdicts, verdict(exitError))
	}
	if once && len(verdicts) == 0 && !s.Complete {
		verdicts = append(verdicts, verdict(exitError)) // whatever the reason, it is not what was asked for
	}
	return errors.Join(verdicts...)
}

// A replicateSummary is the answer of `apograph replicate`.
type replicateSummary struct {
	envelope
	Flow       flowNames `json:"flow"`
	Topics     int       `json:"topics"`
	Partitions int       `json:"partitions"`

	Copied        int64 `json:"copied"`
	Bytes         int64 `json:"bytes"`
	CommitMarkers int64 `json:"commit_markers"`
	AbortMarkers  int64 `json:"abort_markers"`
	Aborted       int64 `json:"aborted"`
	Compacted     int64 `json:"compacted"`
	Filtered      int64 `json:"filtered"`
	BeforeStart   int64 `json:"before_start"`
	Lost          int64 `json:"lost"`
	Unexplained   int64 `json:"unexplained"`
	Unaccepted    int64 `json:"unaccepted"` // lost and unexplained offsets of the whole books that nobody has accepted
	Accepted      int64 `json:"accepted"`   // lost and unexplained offsets of the whole books that somebody has accepted
	Duplicates    int64 `json:"duplicates"`
	Foreign       int64 `json:"foreign"`
	Orphans       int64 `json:"orphans"`

	BehindOpenTransaction int64              `json:"behind_open_transaction"`
	Waiting               []waitingPartition `json:"waiting"`
	Stopped               []stoppedPartition `json:"stopped"`
	Doubts                []doubtInfo        `json:"doubts"` // about the whole books, that nobody has accepted
	Duties                []failedDuty       `json:"duties,omitempty"`
	Complete              bool               `json:"complete"`
	Seconds               float64            `json:"seconds"`
}

// A flowNames names a flow by its clusters' aliases.
type flowNames struct {
	Source string `json:"source"`
	Target string `json:"target"`
}

type waitingPartition struct {
	Topic      string  `json:"topic"`
	Partition  int32   `json:"partition"`
	Offset     int64   `json:"offset"` // the last stable offset
	Since      instant `json:"since"`
	ProducerID *int64  `json:"producer_id"` // nil if unknown
}

type stoppedPartition struct {
	Topic     string `json:"topic"`
	Partition int32  `json:"partition"`
	Offset    int64  `json:"offset"`
	Reason    string `json:"reason"`
	Detail    string `json:"detail"`
}

// A failedDuty is one beside the copying that could not be done.
type failedDuty struct {
	Duty  string `json:"duty"`
	Error string `json:"error"`
}

func summaryOf(s replicate.Summary) replicateSummary {
	out := replicateSummary{
		envelope: newEnvelope("ReplicateSummary", "replicate"),
		Flow:     flowNames{Source: s.SourceAlias, Target: s.TargetAlias},
		Topics:   s.Topics, Partitions: s.Partitions,
		Copied: s.Tiles[ledger.Copied], Bytes: s.Bytes,
		CommitMarkers: s.Tiles[ledger.CommitMarker], AbortMarkers: s.Tiles[ledger.AbortMarker],
		Aborted: s.Tiles[ledger.Aborted], Compacted: s.Tiles[ledger.Compacted], Filtered: s.Tiles[ledger.Filtered],
		BeforeStart: s.Tiles[ledger.BeforeStart], Lost: s.Tiles[ledger.Lost], Unexplained: s.Tiles[ledger.Unexplained],
		Duplicates: s.Tiles[ledger.Duplicate], Foreign: s.Tiles[ledger.Foreign], Orphans: s.Tiles[ledger.Orphan],
		BehindOpenTransaction: s.BehindOpenTransaction,
		Waiting:               []waitingPartition{}, Stopped: []stoppedPartition{}, Doubts: []doubtInfo{},
		Accepted: s.AcceptedTiles, Unaccepted: s.BadTiles,
		Complete: s.Complete, Seconds: float64(s.Elapsed.Milliseconds()) / 1000,
	}
	for _, w := range s.Waiting {
		row := waitingPartition{Topic: w.Topic, Partition: w.Partition, Offset: w.Offset, Since: instant{w.Since}}
		if w.ProducerID >= 0 {
			row.ProducerID = &w.ProducerID
		}
		out.Waiting = append(out.Waiting, row)
	}
	for _, d := range s.Doubts {
		out.Doubts = append(out.Doubts, doubtInfo{d.Topic, d.Partition, d.Range.Start, d.Range.End, d.Kind.String()})
	}
	for _, d := range s.Duties {
		out.Duties = append(out.Duties, failedDuty{d.Duty, clean(d.Error)})
	}
	for _, p := range s.Stopped {
		out.Stopped = append(out.Stopped, stoppedPartition{p.Topic, p.Partition, p.Offset, string(p.Reason), clean(p.Detail)})
	}
	return out
}

func writeSummary(inv *invocation, s replicate.Summary) error {
	out := summaryOf(s)
	if inv.format == formatJSON {
		return writeJSON(inv.stdout, out)
	}
	return inv.writeTable(out.table())
}

// table returns the summary for a person: what stopped and what waits first,
// the verdict last.
func (s replicateSummary) table() *textTable {
	table := &textTable{}
	for _, p := range s.Stopped {
		table.add("stopped", fmt.Sprintf("%s-%d at source offset %d: %s: %s", p.Topic, p.Partition, p.Offset, p.Reason, p.Detail))
	}
	for _, reason := range s.stopReasons() {
		table.add("what next", reason+": "+adviceFor(replicate.StopReason(reason)))
	}
	for _, d := range s.Duties {
		table.add("not done", d.Duty+": "+d.Error)
	}
	for _, w := range s.Waiting {
		table.add("waiting", fmt.Sprintf("%s-%d behind an open transaction at source offset %d since %s%s",
			w.Topic, w.Partition, w.Offset, orUnknown(w.Since.String()), producerText(w.ProducerID)))
	}
	for _, d := range s.Doubts {
		table.add("in doubt", doubtText(d))
	}
	table.add("flow", s.Flow.Source+" -> "+s.Flow.Target)
	table.add("topics", strconv.Itoa(s.Topics))
	table.add("partitions", strconv.Itoa(s.Partitions))
	table.add("copied", fmt.Sprintf("%s, %s", counted(s.Copied, "record"), byteSize(s.Bytes)))
	for _, row := range []struct {
		name string
		n    int64
	}{
		{"commit markers", s.CommitMarkers}, {"abort markers", s.AbortMarkers}, {"aborted", s.Aborted},
		{"compacted", s.Compacted}, {"filtered", s.Filtered}, {"before start", s.BeforeStart},
		{"lost", s.Lost}, {"unexplained", s.Unexplained},
		{"lost or unexplained earlier", s.Unaccepted - s.Lost - s.Unexplained}, {"lost or unexplained, and accepted", s.Accepted},
		{"duplicates", s.Duplicates}, {"foreign", s.Foreign}, {"orphans", s.Orphans},
		{"behind open transactions", s.BehindOpenTransaction},
	} {
		if row.n > 0 {
			table.add(row.name, strconv.FormatInt(row.n, 10))
		}
	}
	table.add("time", fmt.Sprintf("%.1f s", s.Seconds))
	table.add("books complete", yesNo(s.Complete))
	return table
}

func producerText(id *int64) string {
	if id == nil {
		return ""
	}
	return fmt.Sprintf(" by producer id %d", *id)
}

func orUnknown(s string) string {
	if s == "" {
		return "an unknown time"
	}
	return s
}

func yesNo(b bool) string {
	if b {
		return "yes"
	}
	return "no"
}
