package main

import (
	"fmt"

	"apograph/translate"
)

// writeKafkaCSV writes the rows that can be acted upon as Kafka's tool reads
// them, and tells about the others on standard error.
func (t *translation) writeKafkaCSV(inv *invocation) error {
	// The tool is called with one --group for a plan without a group column.
	out := translate.Sheet{Grouped: t.grouped && len(askedGroups(inv)) != 1}
	for from := range t.rows() {
		row := translate.PlanRow{Group: from.Group, Query: translate.Query{
			Topic: from.Pair.TargetTopic, Partition: from.Partition, Offset: from.TargetOffset,
		}}
		if t.reverse {
			row.Topic, row.Offset = from.Pair.SourceTopic, from.SourceOffset
		}
		exact := from.Status.IsExact() && !from.Gone
		kept := exact || inv.Bool("include-inexact") && from.Status != translate.Unknown && !from.Gone
		if kept {
			out.Add(row)
		}
		if !exact {
			inv.stderr.say(clean(t.inexactLine(from, kept)))
		}
	}
	if err := t.checkTerminal(inv, &out); err != nil {
		return err
	}
	return out.WriteCSV(inv.stdout)
}

// inexactLine says why a row is not as good as an exact one, and whether it is written.
func (t *translation) inexactLine(from *translate.Transfer, kept bool) string {
	line := fmt.Sprintf("translate: %s-%d offset %d", from.Topic, from.Partition, from.Offset)
	if t.grouped {
		line += fmt.Sprintf(" of group %s", quoteArg(from.Group))
	}
	line += ": " + from.Status.String()
	if from.Distance > 0 {
		line += fmt.Sprintf(" by %d", from.Distance)
	}
	if kept {
		return line + ", written all the same: " + from.Detail
	}
	return line + ", left out: " + from.Detail
}

// checkTerminal refuses to send a terminal what it might act on: a file for
// Kafka's tool holds names of groups as they are.
func (t *translation) checkTerminal(inv *invocation, plan *translate.Sheet) error {
	if !inv.stdout.terminal || !plan.Grouped {
		return nil
	}
	for i := range plan.Len() {
		if group := plan.Row(i).Group; printable(group) != group {
			return fmt.Errorf("group %s has characters that a terminal might act on: write to a file", quoteArg(group))
		}
	}
	return nil
}
