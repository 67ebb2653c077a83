package main

import (
	"encoding/csv"
	"fmt"

	"apograph/ledger"
	"apograph/translate"
)

// A translation is the answer of `apograph translate`.
type translation struct {
	envelope
	Ledger ledgerRef        `json:"ledger"`
	Rows   []translationRow `json:"rows"` // in the order asked

	plan    translate.ResetPlan // what was asked, row by row
	answers []translate.Answer  // to each row
	reverse bool
}

// A ledgerRef says which ledger an answer is from, and as of when.
type ledgerRef struct {
	Path       string   `json:"path"`
	LedgerID   string   `json:"ledger_id"`
	Flow       flowInfo `json:"flow"`
	LastCommit instant  `json:"last_commit"`
}

func ledgerRefOf(path string, l *ledger.Ledger) ledgerRef {
	identity := l.Identity()
	return ledgerRef{
		Path:       path,
		LedgerID:   identity.LedgerID,
		Flow:       flowOf(identity),
		LastCommit: instant{l.CommitTime()},
	}
}

// A translationRow is one offset and its translation. What is not known is nil:
// the group of an offset that has none, the topic on the other side of a
// partition without a book, and the answer where there is none.
type translationRow struct {
	Group        *string `json:"group"`
	Topic        *string `json:"topic"`    // on the source
	TopicID      *string `json:"topic_id"` // of topic, as the ledger knows it
	Partition    int32   `json:"partition"`
	SourceOffset *int64  `json:"source_offset"`
	TargetTopic  *string `json:"target_topic"`
	TargetOffset *int64  `json:"target_offset"`
	Status       string  `json:"status"`
	Distance     int64   `json:"distance"`
	CopiedTo     *int64  `json:"copied_to"` // end of the source book

	// The target was not asked, and nothing is done to it.
	TargetCommitted *int64 `json:"target_committed"`
	Action          string `json:"action"`

	Detail string `json:"detail"`
}

func translationRows(plan translate.ResetPlan, answers []translate.Answer, reverse bool) []translationRow {
	rows := make([]translationRow, len(answers))
	for i, answer := range answers {
		rows[i] = translationRow{
			Topic:        textOrNil(answer.Pair.SourceTopic),
			TopicID:      topicIDOf(answer.Pair.SourceTopicID),
			Partition:    plan.Rows[i].Partition,
			SourceOffset: offsetOrNil(answer.SourceOffset),
			TargetTopic:  textOrNil(answer.Pair.TargetTopic),
			TargetOffset: offsetOrNil(answer.TargetOffset),
			Status:       answer.Status.String(),
			Distance:     answer.Distance,
			CopiedTo:     offsetOrNil(answer.CopiedTo),
			Action:       "none",
			Detail:       answer.Detail,
		}
		if plan.Grouped {
			rows[i].Group = &plan.Rows[i].Group
		}
		// Without a book only the topic that was asked for is known.
		if reverse {
			rows[i].TargetTopic = &plan.Rows[i].Topic
		} else {
			rows[i].Topic = &plan.Rows[i].Topic
		}
	}
	return rows
}

func textOrNil(text string) *string {
	if text == "" {
		return nil
	}
	return &text
}

func offsetOrNil(offset int64) *int64 {
	if offset == translate.NoOffset {
		return nil
	}
	return &offset
}

// isExact reports whether every row is.
func (t *translation) isExact() bool {
	for _, answer := range t.answers {
		if !answer.Status.IsExact() {
			return false
		}
	}
	return true
}

// write writes the answer in the form of --output.
func (t *translation) write(inv *invocation) error {
	switch inv.format {
	case formatJSON:
		return writeJSON(inv.stdout, t)
	case formatJSONLines:
		for _, row := range t.Rows {
			if err := writeJSON(inv.stdout, row); err != nil {
				return err
			}
		}
		return nil
	case formatCSV:
		return t.writeCSV(inv)
	default:
		return inv.writeTable(t.table())
	}
}

// table leaves the group out where no row has one.
func (t *translation) table() *textTable {
	table := &textTable{
		header: []string{"GROUP", "TOPIC", "PARTITION", "SOURCE-OFFSET", "TARGET-TOPIC", "TARGET-OFFSET", "STATUS", "DISTANCE", "COPIED-TO", "DETAIL"},
		right:  []bool{false, false, true, true, false, true, false, true, true, false},
	}
	for _, row := range t.Rows {
		table.add(orDash(row.Group), orDash(row.Topic), number(int64(row.Partition)), offsetOrDash(row.SourceOffset),
			orDash(row.TargetTopic), offsetOrDash(row.TargetOffset), row.Status, number(row.Distance),
			offsetOrDash(row.CopiedTo), row.Detail)
	}
	if !t.plan.Grouped {
		table.header, table.right = table.header[1:], table.right[1:]
		for i := range table.rows {
			table.rows[i] = table.rows[i][1:]
		}
	}
	return table
}

func orDash(text *string) string {
	if text == nil {
		return "-"
	}
	return *text
}

func offsetOrDash(offset *int64) string {
	if offset == nil {
		return "-"
	}
	return number(*offset)
}

// writeCSV writes a row for each offset, with the names of the JSON form as its
// header. What is not known is empty.
func (t *translation) writeCSV(inv *invocation) error {
	text := func(s *string) string {
		if s == nil {
			return ""
		}
		return printable(*s)
	}
	out := csv.NewWriter(inv.stdout)
	out.Write([]string{"group", "topic", "topic_id", "partition", "source_offset", "target_topic", "target_offset",
		"status", "distance", "copied_to", "target_committed", "action", "detail"})
	for _, row := range t.Rows {
		out.Write([]string{
			text(row.Group), text(row.Topic), text(row.TopicID), number(int64(row.Partition)),
			optionalNumber(row.SourceOffset), text(row.TargetTopic), optionalNumber(row.TargetOffset),
			row.Status, number(row.Distance), optionalNumber(row.CopiedTo), optionalNumber(row.TargetCommitted),
			row.Action, printable(row.Detail),
		})
	}
	out.Flush()
	return out.Error()
}

// writeKafkaCSV writes the rows that can be acted upon as Kafka's tool reads
// them, and tells about the others on standard error.
func (t *translation) writeKafkaCSV(inv *invocation) error {
	// The tool is called with one --group for a plan without a group column.
	out := translate.ResetPlan{Grouped: t.plan.Grouped && len(askedGroups(inv)) != 1}
	for i, asked := range t.plan.Rows {
		answer := t.answers[i]
		row := translate.PlanRow{Group: asked.Group, Query: translate.Query{
			Topic: answer.Pair.TargetTopic, Partition: asked.Partition, Offset: answer.TargetOffset,
		}}
		if t.reverse {
			row.Topic, row.Offset = answer.Pair.SourceTopic, answer.SourceOffset
		}
		kept := answer.Status.IsExact() || inv.Bool("include-inexact") && answer.Status != translate.Unknown
		if kept {
			out.Rows = append(out.Rows, row)
		}
		if !answer.Status.IsExact() {
			inv.stderr.say(clean(t.inexactLine(i, kept)))
		}
	}
	if err := t.checkTerminal(inv, &out); err != nil {
		return err
	}
	return out.WriteCSV(inv.stdout)
}

// inexactLine says why a row is not exact, and whether it is written.
func (t *translation) inexactLine(i int, kept bool) string {
	asked, answer := t.plan.Rows[i], t.answers[i]
	line := fmt.Sprintf("translate: %s-%d offset %d", asked.Topic, asked.Partition, asked.Offset)
	if t.plan.Grouped {
		line += fmt.Sprintf(" of group %s", quoteArg(asked.Group))
	}
	line += ": " + answer.Status.String()
	if answer.Distance > 0 {
		line += fmt.Sprintf(" by %d", answer.Distance)
	}
	if kept {
		return line + ", written all the same: " + answer.Detail
	}
	return line + ", left out: " + answer.Detail
}

// checkTerminal refuses to send a terminal what it might act on: a file for
// Kafka's tool holds names of groups as they are.
func (t *translation) checkTerminal(inv *invocation, plan *translate.ResetPlan) error {
	if !inv.stdout.terminal || !plan.Grouped {
		return nil
	}
	for _, row := range plan.Rows {
		if printable(row.Group) != row.Group {
			return fmt.Errorf("group %s has characters that a terminal might act on: write to a file", quoteArg(row.Group))
		}
	}
	return nil
}
