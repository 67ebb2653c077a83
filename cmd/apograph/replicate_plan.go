package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"apograph/ledger"
	"apograph/replicate"
)

// runPlans is `apograph replicate --dry-run`: it says what the run would do and
// writes nothing.
func runPlans(ctx context.Context, inv *invocation, configs []replicate.Config) error {
	plans := replicatePlans{envelope: newEnvelope("ReplicatePlans", "replicate-plans"), Flows: []replicatePlan{}, Failed: []failedFlow{}}
	var errs []error
	_ = inv.withProgress(ctx, func() string { return "looking" }, func(ctx context.Context) error {
		for _, p := range makePlans(ctx, configs) {
			switch {
			case p.err != nil:
				errs, plans.Failed = append(errs, p.err), append(plans.Failed, failedFlow{p.flow, clean(p.err.Error())})
			default:
				plans.Flows = append(plans.Flows, planAnswer(p.plan))
			}
		}
		return nil
	})
	if len(plans.Flows) == 0 || ctx.Err() != nil {
		return errors.Join(append(errs, context.Cause(ctx))...)
	}
	for _, p := range plans.Flows {
		for _, refusal := range p.Refusals {
			inv.stderr.warn(p.Flow.prefix() + refusal)
		}
		if len(p.Refusals) > 0 {
			errs = append(errs, verdict(exitRefused))
		}
	}
	return errors.Join(append(errs, partly(len(plans.Flows), len(plans.Failed)), writePlans(inv, plans, len(configs)))...)
}

// A plannedFlow is one flow's plan, or why there is none.
type plannedFlow struct {
	flow flowNames
	plan replicate.Plan
	err  error
}

// makePlans plans flows that would run beside one another.
func makePlans(ctx context.Context, configs []replicate.Config) []plannedFlow {
	flows, books := make([]plannedFlow, len(configs)), make([]*ledger.Ledger, len(configs))
	for i, config := range configs {
		flows[i].flow = flowNames{config.Source.Alias, config.Target.Alias}
		if books[i], flows[i].err = planLedger(ctx, config.LedgerPath); books[i] != nil {
			defer books[i].Close()
		}
	}
	together := make([]error, len(configs))
	if len(configs) > 1 {
		together = refusedTogether(ctx, configs, books)
	}
	for i, config := range configs {
		p := &flows[i]
		if p.err == nil {
			p.plan, p.err = replicate.MakePlan(ctx, config, books[i])
		}
		if len(configs) > 1 {
			p.besideOthers(together[i])
		}
		if ctx.Err() != nil {
			return flows[:i]
		}
	}
	return flows
}

// besideOthers has a plan say what would keep all flows from beginning: that it cannot
// be made, where that is wrong use, and what was found of all of them together.
func (p *plannedFlow) besideOthers(together error) {
	if slices.ContainsFunc(codesOf(p.err), isWrongUse) {
		p.plan, p.err, together = replicate.Plan{SourceAlias: p.flow.Source, TargetAlias: p.flow.Target}, nil, p.err
	}
	switch {
	case p.err != nil:
		p.err = p.flow.failed(p.err)
	case together != nil && len(p.plan.Refusals) == 0:
		p.plan.Refusals = []string{strings.TrimPrefix(together.Error(), p.flow.prefix())}
	}
}

// planLedger returns what the books of a flow say now; nil if there are none.
func planLedger(ctx context.Context, path string) (*ledger.Ledger, error) {
	book, _, err := freshLedger(ctx, path)
	var missing *missingLedgerError
	if errors.As(err, &missing) {
		return nil, nil
	}
	return book, err
}

// replicatePlans is the answer about several flows.
type replicatePlans struct {
	envelope
	Flows  []replicatePlan `json:"flows"`
	Failed []failedFlow    `json:"failed"`
}

// writePlans writes the plans of the flows that were asked for; the only one by
// itself.
func writePlans(inv *invocation, plans replicatePlans, asked int) error {
	if asked > 1 && inv.format == formatJSON {
		return writeJSON(inv.stdout, plans)
	}
	for i, p := range plans.Flows {
		if asked > 1 {
			if err := inv.writeHeading(i, p.Flow); err != nil {
				return err
			}
		}
		if err := writePlan(inv, p); err != nil {
			return err
		}
	}
	return nil
}

// A replicatePlan is the answer of `apograph replicate --dry-run`.
type replicatePlan struct {
	envelope
	Flow     flowNames   `json:"flow"`
	Topics   []topicPlan `json:"topics"`
	Duties   []dutyPlan  `json:"duties"`   // beside the copy, also those that are off
	Refusals []string    `json:"refusals"` // what would keep the run from copying, or a duty from being done
}

// A dutyPlan is what would be done beside the copy, and where. Of a duty that is
// off it has no place.
type dutyPlan struct {
	Duty               string   `json:"duty"` // offset_syncs, checkpoints, group_sync or heartbeats
	Pair               string   `json:"pair"` // of the clusters that heartbeats are about; else ""
	On                 bool     `json:"on"`
	Cluster            string   `json:"cluster"`            // alias of the one it writes to
	Topic              string   `json:"topic"`              // "": it has none of its own
	Create             bool     `json:"create"`             // the cluster lacks the topic
	TopicOnly          bool     `json:"topic_only"`         // the topic is made, and nothing is written to it
	ReplicationFactor  *int     `json:"replication_factor"` // of the topic; nil: not known, or the cluster's default
	Groups             *int     `json:"groups"`             // of the source, that this client is told of; nil: it is about none, or not known
	MissingPermissions []string `json:"missing_permissions"`
}

func dutyPlans(all []replicate.DutyPlan) []dutyPlan {
	rows := []dutyPlan{}
	for _, d := range all {
		row := dutyPlan{
			Duty: d.Duty, Pair: d.Pair, On: d.On, Cluster: d.Cluster, Topic: d.Topic, Create: d.Create, TopicOnly: d.TopicOnly,
			MissingPermissions: append([]string{}, d.MissingPermissions...),
		}
		if d.ReplicationFactor > 0 {
			row.ReplicationFactor = &d.ReplicationFactor
		}
		if d.Groups >= 0 {
			row.Groups = &d.Groups
		}
		rows = append(rows, row)
	}
	return rows
}

type topicPlan struct {
	Topic              string            `json:"topic"`
	TargetTopic        string            `json:"target_topic"` // "" for one that is not the flow's
	In                 bool              `json:"in"`           // it is copied
	Rule               string            `json:"rule"`
	Refused            string            `json:"refused"` // why it is not copied although it is the flow's; "" if nothing is in the way
	Create             bool              `json:"create"`
	Partitions         int               `json:"partitions"`
	ReplicationFactor  int               `json:"replication_factor"`
	Settings           map[string]string `json:"settings"`
	MissingPermissions []string          `json:"missing_permissions"` // the flow's own, and those of the source's topic that do not go over
	ACLs               []string          `json:"acls"`                // that would be made on the target
	Warnings           []string          `json:"warnings"`
	Records            int64             `json:"records"` // source offsets to go through
	Bytes              *int64            `json:"bytes"`   // nil: not known
	RetentionHeadroom  *float64          `json:"retention_headroom_seconds"`
}

func planAnswer(p replicate.Plan) replicatePlan {
	out := replicatePlan{
		envelope: newEnvelope("ReplicatePlan", "replicate-plan"),
		Flow:     flowNames{Source: p.SourceAlias, Target: p.TargetAlias},
		Topics:   []topicPlan{}, Duties: dutyPlans(p.Duties), Refusals: append([]string{}, p.Refusals...),
	}
	for _, t := range p.Topics {
		row := topicPlan{
			Topic: t.Topic, TargetTopic: t.Target, In: t.In, Rule: t.Rule, Refused: clean(t.Refused), Create: t.Create,
			Partitions: t.Partitions, ReplicationFactor: t.ReplicationFactor, Settings: map[string]string{},
			MissingPermissions: append(append([]string{}, t.MissingPermissions...), t.LostACLs...), ACLs: append([]string{}, t.ACLs...), Warnings: append([]string{}, t.Warnings...),
			Records: t.Records,
		}
		maps.Copy(row.Settings, t.Settings)
		if t.Bytes >= 0 {
			row.Bytes = &t.Bytes
		}
		if t.Headroom >= 0 {
			seconds := t.Headroom.Seconds()
			row.RetentionHeadroom = &seconds
		}
		out.Topics = append(out.Topics, row)
	}
	return out
}

func writePlan(inv *invocation, p replicatePlan) error {
	if inv.format == formatJSON {
		return writeJSON(inv.stdout, p)
	}
	table := &textTable{
		header: []string{"TOPIC", "TARGET", "COPIED", "RULE", "PARTITIONS", "REPLICAS", "OFFSETS", "BYTES", "SAFE-FOR", "NOTES"},
		right:  []bool{false, false, false, false, true, true, true, true, true, false},
	}
	for _, t := range p.Topics {
		switch {
		case t.Refused != "":
			table.add(t.Topic, t.TargetTopic, "refused", t.Rule, "", "", "", "", "", t.Refused)
			continue
		case !t.In:
			table.add(t.Topic, "", "no", t.Rule, "", "", "", "", "", "")
			continue
		}
		copied := "yes"
		if t.Create {
			copied = "yes, new"
		}
		table.add(t.Topic, t.TargetTopic, copied, t.Rule, strconv.Itoa(t.Partitions), strconv.Itoa(t.ReplicationFactor),
			strconv.FormatInt(t.Records, 10), bytesText(t.Bytes), headroomText(t.RetentionHeadroom), t.notes())
	}
	if err := inv.writeTable(table); err != nil || len(p.Duties) == 0 {
		return err
	}
	return errors.Join(inv.writeText(""), inv.writeTable(dutyPlanTable(p.Duties)))
}

func dutyPlanTable(rows []dutyPlan) *textTable {
	table := &textTable{header: []string{"DUTY", "DONE", "CLUSTER", "TOPIC", "REPLICAS", "NOTES"}, right: []bool{false, false, false, false, true}}
	for _, d := range rows {
		done, replicas := "no", ""
		switch {
		case d.TopicOnly && d.Create:
			done = "new topic only"
		case d.TopicOnly:
			done = "topic only"
		case d.Create:
			done = "yes, new topic"
		case d.On:
			done = "yes"
		}
		if d.ReplicationFactor != nil {
			replicas = strconv.Itoa(*d.ReplicationFactor)
		}
		table.add(strings.TrimSpace(d.Duty+" "+d.Pair), done, d.Cluster, d.Topic, replicas, d.notes())
	}
	return table
}

// notes says how many groups a duty is about, and what is missing.
func (d dutyPlan) notes() string {
	var notes []string
	if d.TopicOnly {
		notes = append(notes, "nothing is written to it; MirrorMaker 2 makes it as well")
	}
	if d.Groups != nil {
		notes = append(notes, counted(int64(*d.Groups), "group"))
	}
	for _, m := range d.MissingPermissions {
		notes = append(notes, "missing permission: "+m)
	}
	return strings.Join(notes, "; ")
}

// notes lists what would be set, what is missing and what to beware of.
func (t topicPlan) notes() string {
	var notes []string
	for _, key := range slices.Sorted(maps.Keys(t.Settings)) {
		notes = append(notes, key+"="+t.Settings[key])
	}
	for _, m := range t.MissingPermissions {
		notes = append(notes, "missing permission: "+m)
	}
	for _, a := range t.ACLs {
		notes = append(notes, "new: "+a)
	}
	return strings.Join(append(notes, t.Warnings...), "; ")
}

func bytesText(n *int64) string {
	if n == nil {
		return "unknown"
	}
	return byteSize(*n)
}

func headroomText(seconds *float64) string {
	if seconds == nil {
		return ""
	}
	return fmt.Sprintf("%.0f s", *seconds)
}
