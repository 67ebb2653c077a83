package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"apograph/replicate"
)

// runPlans is `apograph replicate --dry-run`: it says what the run would do and
// writes nothing.
func runPlans(ctx context.Context, inv *invocation, configs []replicate.Config) error {
	plans := replicatePlans{envelope: newEnvelope("ReplicatePlans", "replicate-plans"), Flows: []replicatePlan{}, Failed: []failedFlow{}}
	var refusals []string
	var errs []error
	_ = inv.withProgress(ctx, func() string { return "looking" }, func(ctx context.Context) error {
		if len(configs) > 1 {
			refusals, _ = refusedTogether(ctx, configs)
		}
		for i := 0; i < len(configs) && ctx.Err() == nil; i++ {
			flow := flowNames{configs[i].Source.Alias, configs[i].Target.Alias}
			plan, err := makePlan(ctx, configs[i])
			switch {
			case err != nil && len(configs) == 1:
				errs = append(errs, err)
			case err != nil:
				errs, plans.Failed = append(errs, flow.failed(err)), append(plans.Failed, failedFlow{flow, clean(err.Error())})
			default:
				plans.Flows, refusals = append(plans.Flows, planAnswer(plan)), append(refusals, plan.Refusals...)
			}
		}
		return nil
	})
	if len(plans.Flows) == 0 || ctx.Err() != nil {
		return errors.Join(append(errs, context.Cause(ctx))...)
	}
	for _, refusal := range refusals {
		inv.stderr.warn(refusal)
	}
	if len(refusals) > 0 {
		errs = append(errs, verdict(exitRefused))
	}
	return errors.Join(append(errs, partly(len(plans.Flows), len(plans.Failed)), writePlans(inv, plans, len(configs)))...)
}

func makePlan(ctx context.Context, config replicate.Config) (replicate.Plan, error) {
	book, _, err := freshLedger(ctx, config.LedgerPath)
	var missing *missingLedgerError
	switch {
	case errors.As(err, &missing):
		book = nil
	case err != nil:
		return replicate.Plan{}, err
	default:
		defer book.Close()
	}
	return replicate.MakePlan(ctx, config, book)
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
	Refusals []string    `json:"refusals"` // what would keep the run from copying
}

type topicPlan struct {
	Topic              string            `json:"topic"`
	TargetTopic        string            `json:"target_topic"` // "" for one that is not copied
	In                 bool              `json:"in"`
	Rule               string            `json:"rule"`
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
		Topics:   []topicPlan{}, Refusals: append([]string{}, p.Refusals...),
	}
	for _, t := range p.Topics {
		row := topicPlan{
			Topic: t.Topic, TargetTopic: t.Target, In: t.In, Rule: t.Rule, Create: t.Create,
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
		header: []string{"TOPIC", "COPIED", "RULE", "PARTITIONS", "REPLICAS", "OFFSETS", "BYTES", "SAFE-FOR", "NOTES"},
		right:  []bool{false, false, false, true, true, true, true, true, false},
	}
	for _, t := range p.Topics {
		if !t.In {
			table.add(t.Topic, "no", t.Rule, "", "", "", "", "", "")
			continue
		}
		copied := "yes"
		if t.Create {
			copied = "yes, new"
		}
		table.add(t.Topic, copied, t.Rule, strconv.Itoa(t.Partitions), strconv.Itoa(t.ReplicationFactor),
			strconv.FormatInt(t.Records, 10), bytesText(t.Bytes), headroomText(t.RetentionHeadroom), t.notes())
	}
	return inv.writeTable(table)
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
