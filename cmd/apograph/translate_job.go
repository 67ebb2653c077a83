package main

import (
	"context"
	"errors"
	"slices"

	"apograph/internal/connect"
	"apograph/internal/groups"
	"apograph/translate"
)

// A translateJob is what one command line asks of `apograph translate`.
type translateJob struct {
	path     string // of the ledger
	plan     *translate.Sheet
	groups   []string // to be read from a cluster; empty if the plan has the offsets
	reverse  bool
	kafkaCSV bool

	reader *connect.Cluster // whose groups are read; nil if none are
	target *connect.Cluster // nil: not at hand
	carry  translate.Carry  // less its Target
}

func newTranslateJob(inv *invocation) (*translateJob, error) {
	kafkaCSV, err := wantsKafkaCSV(inv)
	if err != nil {
		return nil, err
	}
	plan, err := askedOffsets(inv)
	if err != nil {
		return nil, err
	}
	if kafkaCSV {
		if err := plan.Validate(); err != nil {
			return nil, usagef("these offsets cannot stand in one file for Kafka's tool: %v", err)
		}
	}
	j := &translateJob{
		plan: plan, reverse: inv.Bool("reverse"), kafkaCSV: kafkaCSV,
		carry: translate.Carry{
			TargetGroup:    inv.String("target-group"),
			IncludeInexact: inv.Bool("include-inexact"),
			AllowRewind:    inv.Bool("allow-rewind"),
			SkipActive:     inv.Bool("skip-active"),
			Execute:        inv.Bool("execute"),
		},
	}
	if plan.Grouped && plan.Len() == 0 {
		j.groups = askedGroups(inv)
	}
	if err := j.findClusters(inv); err != nil {
		return nil, err
	}
	if err := j.checkCarry(inv); err != nil {
		return nil, err
	}
	if j.path, err = flagLedger(inv); err != nil {
		return nil, err
	}
	return j, j.checkStores()
}

// checkStores reads the key and trust stores of the clusters that are asked.
func (j *translateJob) checkStores() error {
	var errs []error
	for _, c := range []*connect.Cluster{j.reader, j.target} {
		if c != nil {
			errs = append(errs, c.Check())
		}
	}
	return joinOnce(errs)
}

// findClusters finds the clusters that the job needs. In reverse the groups
// are those of the target, which is asked nothing else.
func (j *translateJob) findClusters(inv *invocation) error {
	c, err := inv.configuration()
	if err != nil {
		return err
	}
	side := "source"
	if j.reverse {
		side = "target"
	}
	if c != nil {
		return j.configuredClusters(inv, c, side)
	}
	if _, err := inv.settings(nil); err != nil {
		return err
	}
	target, ok, err := clusterOf(inv, "target")
	if err != nil {
		return err
	}
	if ok && !j.reverse {
		j.target = &target
	}
	if len(j.groups) == 0 {
		return nil
	}
	reader, ok, err := clusterOf(inv, side)
	if err != nil {
		return err
	}
	if !ok {
		return usagef("--%s-bootstrap-server is needed to read what a group has committed, or --from-file", side).
			withHint("kafka-consumer-groups --bootstrap-server HOST:PORT --group NAME --all-topics " +
				"--reset-offsets --to-current --export --dry-run writes a file")
	}
	j.reader = &reader
	return nil
}

// configuredClusters takes the clusters of the flow of a configuration. Where
// nothing but the ledger is needed none is asked.
func (j *translateJob) configuredClusters(inv *invocation, c *configuration, side string) error {
	f, err := c.one(inv)
	if err != nil || len(j.groups) == 0 && !asksTarget(inv) {
		return err
	}
	target, err := inv.flowCluster(c.file, f.Target, f.TargetClient())
	if err != nil {
		return err
	}
	if !j.reverse {
		j.target = &target
	}
	if len(j.groups) == 0 {
		return nil
	}
	j.reader = &target
	if side == "source" {
		source, err := inv.flowCluster(c.file, f.Source, f.SourceClient())
		j.reader = &source
		return err
	}
	return nil
}

// carryNames are the flags that only have a meaning with the target.
func carryNames() []string { return []string{"execute", "target-group", "skip-active", "allow-rewind"} }

func asksTarget(inv *invocation) bool { return slices.ContainsFunc(carryNames(), inv.IsSet) }

// checkCarry refuses flags about committing that have nothing to act on, or
// ask for what cannot be meant.
func (j *translateJob) checkCarry(inv *invocation) error {
	given := ""
	for _, flag := range carryNames() {
		if given == "" && inv.IsSet(flag) {
			given = "--" + flag
		}
	}
	inexact := inv.Bool("include-inexact") && !j.kafkaCSV
	switch {
	case given == "" && !inexact:
	case given == "":
		if j.target == nil || !j.plan.Grouped {
			return usagef("--include-inexact goes with --format %s, or with groups and their target: other forms have every row", translateKafkaCSV)
		}
	case j.reverse:
		return usagef("%s does not go with --reverse: offsets are committed to the target only", given)
	case j.kafkaCSV && j.carry.Execute:
		return usagef("--format %s writes a file for Kafka's tool to commit, and --execute commits", translateKafkaCSV)
	case j.target == nil:
		return usagef("%s needs the target: --target-bootstrap-server", given)
	case !j.plan.Grouped:
		return usagef("%s needs to know for which group: --group NAME", given)
	case inv.IsSet("target-group") && len(askedGroups(inv)) != 1:
		return usagef("--target-group goes with exactly one --group")
	case inv.IsSet("target-group") && j.carry.TargetGroup == "":
		return usagef("--target-group is empty")
	}
	return nil
}

// run answers the question. What concerns single groups and rows is in the
// answer.
func (j *translateJob) run(ctx context.Context) (*translation, error) {
	answer := &translation{
		envelope: newEnvelope("Translation", "translate"),
		reverse:  j.reverse, grouped: j.plan.Grouped, carry: j.carry,
	}
	var reader *groups.Cluster
	var read []translate.GroupOffsets
	if j.reader != nil {
		var err error
		if reader, err = j.openReader(ctx); err != nil {
			return nil, err
		}
		defer reader.Close()
		answer.readAlias = reader.Alias
		read = translate.ReadGroups(ctx, reader, j.groups)
	}
	if err := j.translate(ctx, answer, reader, read); err != nil {
		return nil, err
	}
	if j.target != nil {
		if err := j.atTarget(ctx, answer); err != nil {
			return nil, err
		}
	}
	answer.fillGroups()
	return answer, context.Cause(ctx)
}

// open connects to one of the ledger's clusters.
func (j *translateJob) open(ctx context.Context, c *connect.Cluster, side, id string) (*groups.Cluster, error) {
	cluster, err := groups.Open(ctx, *c, groups.DefaultPatience)
	if err != nil {
		return nil, err
	}
	if cluster.ID != id {
		cluster.Close()
		return nil, usagef("the ledger is about another %s cluster: its id is %s, that of %s is %s", side, id, c.Alias, cluster.ID)
	}
	return cluster, nil
}

// openReader connects to the cluster whose groups are read.
func (j *translateJob) openReader(ctx context.Context) (*groups.Cluster, error) {
	info, err := readLedgerInfo(ctx, j.path)
	if err != nil {
		return nil, err
	}
	if j.reverse {
		return j.open(ctx, j.reader, "target", info.Flow.Target.ClusterID)
	}
	return j.open(ctx, j.reader, "source", info.Flow.Source.ClusterID)
}

// translate translates by the books, before anything else is asked or written.
// Where groups were read, what is theirs is chosen by a copy of the books, and
// compared with the logs from which they were read.
func (j *translateJob) translate(ctx context.Context, answer *translation, reader *groups.Cluster, read []translate.GroupOffsets) error {
	if len(read) > 0 {
		return j.translateGroups(ctx, answer, reader, read)
	}
	from, err := translateSheet(ctx, j.path, j.plan, j.reverse)
	if err != nil {
		return err
	}
	answer.Ledger, answer.sheet = from, j.plan
	if j.target != nil {
		answer.toTransfers()
	}
	return nil
}

func (j *translateJob) translateGroups(ctx context.Context, answer *translation, reader *groups.Cluster, read []translate.GroupOffsets) (err error) {
	l, _, err := freshLedger(ctx, j.path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, l.Close()) }()
	answer.Ledger = ledgerRefOf(j.path, l)
	index := translate.NewIndex(l)
	for _, group := range read {
		selection := index.Select(group, j.reverse)
		answer.transfers = append(answer.transfers, selection.Transfers...)
		answer.read = append(answer.read, readGroup{group.Group, group.Offsets.Err, selection})
	}
	if err := index.Translate(ctx, answer.transfers, j.reverse); err != nil {
		return err
	}
	translate.HoldBack(l, answer.transfers, j.reverse)
	return translate.CheckSource(ctx, reader, l, answer.transfers, j.reverse)
}

// atTarget asks the target about the answers, and commits them if that is
// asked for.
func (j *translateJob) atTarget(ctx context.Context, answer *translation) error {
	target, err := j.open(ctx, j.target, "target", answer.Ledger.Flow.Target.ClusterID)
	if err != nil {
		return err
	}
	defer target.Close()
	answer.targetAlias = target.Alias
	if err := translate.CheckTarget(ctx, target, answer.transfers); err != nil || !answer.grouped {
		return err
	}
	j.carry.Target = target
	if fault := answer.firstFault(); fault != "" {
		j.carry.Against = fault
	}
	report := j.carry.Run(ctx, answer.transfers)
	answer.carried = &report
	return nil
}
