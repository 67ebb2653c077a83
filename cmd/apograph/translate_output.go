package main

import (
	"encoding/csv"
	"fmt"
	"slices"
	"strings"

	"apograph/internal/groups"
	"apograph/ledger"
	"apograph/translate"
)

// A translation is the answer of `apograph translate`.
type translation struct {
	envelope
	Ledger ledgerRef          `json:"ledger"`
	Groups []translationGroup `json:"groups,omitempty"` // if a cluster was asked about groups
	Rows   []translationRow   `json:"rows"`             // in the order asked

	transfers []translate.Transfer // row by row
	grouped   bool                 // rows have groups
	reverse   bool

	read      []readGroup // if groups were read
	readAlias string      // where

	carried     *translate.CarryReport // if the target was asked about groups
	targetAlias string
	carry       translate.Carry // how
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

	TargetCommitted *int64 `json:"target_committed"` // by the group on the target; nil if nothing, or not asked
	Action          string `json:"action"`

	Detail string `json:"detail"`
}

// fill makes the parts that are shown from what was found out.
func (t *translation) fill() {
	t.Rows = make([]translationRow, len(t.transfers))
	for i := range t.transfers {
		t.Rows[i] = t.row(&t.transfers[i])
	}
	t.fillGroups()
}

func (t *translation) row(from *translate.Transfer) translationRow {
	row := translationRow{
		Topic:           textOrNil(from.Pair.SourceTopic),
		TopicID:         topicIDOf(from.Pair.SourceTopicID),
		Partition:       from.Partition,
		SourceOffset:    offsetOrNil(from.SourceOffset),
		TargetTopic:     textOrNil(from.Pair.TargetTopic),
		TargetOffset:    offsetOrNil(from.TargetOffset),
		Status:          from.Status.String(),
		Distance:        from.Distance,
		CopiedTo:        offsetOrNil(from.CopiedTo),
		TargetCommitted: offsetOrNil(from.TargetCommitted),
		Action:          string(from.Decision.Action),
		Detail:          t.detail(from),
	}
	if t.grouped {
		row.Group = &from.Group
	}
	// Without a book only the topic that was asked for is known.
	if t.reverse {
		row.TargetTopic = &from.Topic
	} else {
		row.Topic = &from.Topic
	}
	return row
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
		if err := inv.writeTable(t.table()); err != nil || len(t.Groups) == 0 {
			return err
		}
		fmt.Fprintln(inv.stdout)
		return inv.writeTable(t.groupTable())
	}
}

// table leaves columns out that no row has: the group of offsets without one,
// and what was done on a target that was not asked.
func (t *translation) table() *textTable {
	columns := []tableColumn{
		{"GROUP", false, t.grouped}, {"TOPIC", false, true}, {"PARTITION", true, true}, {"SOURCE-OFFSET", true, true},
		{"TARGET-TOPIC", false, true}, {"TARGET-OFFSET", true, true}, {"STATUS", false, true}, {"DISTANCE", true, true},
		{"COPIED-TO", true, true}, {"TARGET-COMMITTED", true, t.carried != nil}, {"ACTION", false, t.carried != nil}, {"DETAIL", false, true},
	}
	var rows [][]string
	for _, row := range t.Rows {
		rows = append(rows, []string{
			orDash(row.Group), orDash(row.Topic), number(int64(row.Partition)), offsetOrDash(row.SourceOffset),
			orDash(row.TargetTopic), offsetOrDash(row.TargetOffset), row.Status, number(row.Distance),
			offsetOrDash(row.CopiedTo), offsetOrDash(row.TargetCommitted), row.Action, row.Detail,
		})
	}
	return tableOf(columns, rows)
}

// A tableColumn is a column of a table, which may be left out.
type tableColumn struct {
	name         string
	right, shown bool
}

// tableOf returns a table of the columns that are shown.
func tableOf(columns []tableColumn, rows [][]string) *textTable {
	table := &textTable{}
	for _, c := range columns {
		if c.shown {
			table.header = append(table.header, c.name)
			table.right = append(table.right, c.right)
		}
	}
	for _, row := range rows {
		var cells []string
		for i, c := range columns {
			if c.shown {
				cells = append(cells, row[i])
			}
		}
		table.add(cells...)
	}
	return table
}

// detail returns what there is to say of a row: about the translation, about the
// commit, and what went wrong.
func (t *translation) detail(from *translate.Transfer) string {
	parts := []string{from.Detail, from.Decision.Detail}
	switch from.Decision.Reason {
	case groups.Backwards:
		parts[1] += "; --allow-rewind commits it all the same"
	case translate.Inexact:
		parts[1] += "; --include-inexact commits it all the same"
	case groups.Active:
		if t.carry.SkipActive {
			break
		}
		parts[1] += "; --skip-active commits for the others"
	}
	if from.Err != nil {
		parts = append(parts, from.Err.Error())
	}
	return strings.Join(slices.DeleteFunc(parts, func(s string) bool { return s == "" }), "; ")
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
