package main

import (
	"fmt"
	"iter"
	"slices"
	"strings"

	"apograph/internal/groups"
	"apograph/ledger"
	"apograph/translate"
)

// A translation is the answer of `apograph translate`. Its rows are in a sheet,
// as long as they are only translated, or in transfers.
type translation struct {
	envelope
	Ledger ledgerRef          `json:"ledger"`
	Groups []translationGroup `json:"groups,omitempty"` // if a cluster was asked about groups

	sheet     *translate.Sheet     // nil: the rows are transfers
	transfers []translate.Transfer // row by row
	grouped   bool                 // rows have groups
	reverse   bool

	read      []readGroup // if groups were read
	readAlias string      // where

	carried     *translate.CarryReport // if the target was asked about groups
	targetAlias string
	carry       translate.Carry // how
}

// rows returns the rows in the order asked. A row is valid until the next one.
func (t *translation) rows() iter.Seq[*translate.Transfer] {
	if t.sheet != nil {
		return t.sheet.Transfers()
	}
	return func(yield func(*translate.Transfer) bool) {
		for i := range t.transfers {
			if !yield(&t.transfers[i]) {
				return
			}
		}
	}
}

// toTransfers makes transfers of the sheet, for what a cluster is asked about.
func (t *translation) toTransfers() {
	t.transfers = make([]translate.Transfer, 0, t.sheet.Len())
	for row := range t.sheet.Transfers() {
		t.transfers = append(t.transfers, *row)
	}
	t.sheet = nil
}

// isExact reports whether all answers are exact, and still on the target as far as that
// was asked.
func (t *translation) isExact() bool {
	if t.sheet != nil {
		return t.sheet.IsExact()
	}
	return !slices.ContainsFunc(t.transfers, func(from translate.Transfer) bool { return !from.Status.IsExact() || from.Gone })
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

// write writes the answer in the form of --output.
func (t *translation) write(inv *invocation) error {
	switch inv.format {
	case formatJSON:
		return t.writeJSON(inv.stdout)
	case formatJSONLines:
		return t.writeRows(inv.stdout, appendJSONRow)
	case formatCSV:
		return t.writeCSV(inv.stdout)
	default:
		if err := t.writeTable(inv); err != nil || len(t.Groups) == 0 {
			return err
		}
		fmt.Fprintln(inv.stdout)
		return inv.writeTable(t.groupTable())
	}
}

// detail returns what there is to say of a row: about the translation, about the
// commit, and what went wrong.
func (t *translation) detail(from *translate.Transfer) string {
	if from.Decision.Reason == "" && from.Decision.Detail == "" && from.Err == nil {
		return from.Detail
	}
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

func textOrNil(text string) *string {
	if text == "" {
		return nil
	}
	return &text
}

func offsetOrDash(offset *int64) string {
	if offset == nil {
		return "-"
	}
	return number(*offset)
}
