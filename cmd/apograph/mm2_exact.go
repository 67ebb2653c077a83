package main

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"apograph/internal/mm2"
	"apograph/ledger"
	"apograph/translate"
)

// An exactAnswer is what the ledger says beside an answer of MirrorMaker 2's.
type exactAnswer struct {
	Exact      *int64 `json:"exact"`
	Difference *int64 `json:"difference"` // exact less MirrorMaker 2's: what is read again; below 0, skipped
	Status     string `json:"status"`     // of package translate
}

func (a *exactAnswer) cells() []string {
	if a == nil {
		return []string{"", "", ""}
	}
	return []string{offsetOrNone(a.Exact), offsetOrNone(a.Difference), a.Status}
}

func offsetOrNone(n *int64) string {
	if n == nil {
		return "-"
	}
	return fmt.Sprint(*n)
}

// A syncTranslation is what MirrorMaker 2's checkpoint task would make of a
// committed offset.
type syncTranslation struct {
	Topic     string `json:"topic"`
	Partition int32  `json:"partition"`
	Offset    int64  `json:"offset"`
	MM2       *int64 `json:"mm2"` // nil: no sync; -1: older than every sync kept
	*exactAnswer
	Detail string `json:"detail,omitempty"`
}

// askedSyncTranslations reads the values of --translate.
func askedSyncTranslations(inv *invocation) (asked []translate.Query, err error) {
	for _, text := range inv.StringSlice("translate") {
		q, err := translate.ParseQuery(text)
		if err != nil {
			return nil, usagef("--translate %s: %v", quoteArg(text), err)
		}
		asked = append(asked, q)
	}
	if len(asked) > 0 && inv.format == formatJSONLines {
		return nil, usagef("--translate does not go with -o %s, which has a line a sync", formatJSONLines)
	}
	return asked, nil
}

// syncTranslations has the store that a checkpoint task would have.
type syncTranslations struct {
	asked []translate.Query
	store *mm2.OffsetSyncStore
}

func newSyncTranslations(asked []translate.Query) *syncTranslations {
	return &syncTranslations{asked, mm2.NewOffsetSyncStore(false)}
}

// add takes the next sync. Those that nobody asks for are not kept.
func (s *syncTranslations) add(row offsetSyncRow) {
	if slices.ContainsFunc(s.asked, func(q translate.Query) bool { return q.Topic == row.Topic && q.Partition == row.Partition }) {
		s.store.Add(mm2.OffsetSync{Topic: row.Topic, Partition: row.Partition, Upstream: row.Upstream, Downstream: row.Downstream})
	}
}

// answers returns what the store answers, and what the ledger does, which is put
// into ref.
func (s *syncTranslations) answers(ctx context.Context, place mm2Place, ref **ledgerRef) (all []syncTranslation, err error) {
	s.store.ReachedEnd()
	for _, q := range s.asked {
		t := syncTranslation{Topic: q.Topic, Partition: q.Partition, Offset: q.Offset}
		switch offset, known := s.store.Translate(q.Topic, q.Partition, q.Offset); {
		case !known:
			t.Detail = "there is no offset sync of this partition: MirrorMaker 2 writes no checkpoint"
		case offset < 0:
			t.MM2, t.Detail = &offset, "older than every sync that is kept: MirrorMaker 2 writes no checkpoint"
		default:
			t.MM2 = &offset
		}
		all = append(all, t)
	}
	if place.ledger == "" {
		return all, nil
	}
	books, err := openExactBooks(ctx, place.ledger)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, books.close()) }()
	exact, err := books.translate(ctx, transfersOf(s.asked))
	if err != nil {
		return nil, err
	}
	*ref = &books.ref
	for i := range all {
		stamp := mm2Stamp{Detail: all[i].Detail}
		all[i].exactAnswer = exact[i].beside(all[i].MM2, &stamp)
		all[i].Detail = stamp.Detail
	}
	return all, nil
}

// compareCheckpoints puts beside each checkpoint what the ledger answers.
func compareCheckpoints(ctx context.Context, place mm2Place, rows []checkpointRow) (ref *ledgerRef, err error) {
	if place.ledger == "" {
		return nil, nil
	}
	books, err := openExactBooks(ctx, place.ledger)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, books.close()) }()
	asked := make([]translate.Transfer, len(rows))
	for i, r := range rows {
		query := translate.Query{Topic: books.index.SourceTopic(r.Topic, r.Partition), Partition: r.Partition, Offset: r.Upstream}
		asked[i] = translate.NewTransfer(translate.PlanRow{Group: r.Group, Query: query}, "")
		asked[i].Epoch, asked[i].SeenMillis = -1, r.Time.UnixMilli() // a checkpoint has no leader epoch
	}
	exact, err := books.translate(ctx, asked)
	if err != nil {
		return nil, err
	}
	for i := range rows {
		if asked[i].Topic == "" {
			exact[i].Detail = "the ledger has no book with this target partition"
		}
		rows[i].exactAnswer = exact[i].beside(&rows[i].Downstream, &rows[i].mm2Stamp)
	}
	return &books.ref, nil
}

// exactBooks is a copy of a ledger, to translate with.
type exactBooks struct {
	ledger *ledger.Ledger
	index  *translate.Index
	ref    ledgerRef
}

func openExactBooks(ctx context.Context, path string) (*exactBooks, error) {
	l, _, err := freshLedger(ctx, path)
	if err != nil {
		return nil, err
	}
	return &exactBooks{l, translate.NewIndex(l), ledgerRefOf(path, l)}, nil
}

func (b *exactBooks) close() error { return b.ledger.Close() }

// exactTransfer is a translation of the ledger's.
type exactTransfer translate.Transfer

// transfersOf returns questions about offsets of the log that there is.
func transfersOf(asked []translate.Query) []translate.Transfer {
	transfers := make([]translate.Transfer, len(asked))
	for i, q := range asked {
		transfers[i] = translate.NewTransfer(translate.PlanRow{Query: q}, "")
	}
	return transfers
}

// translate answers each question; one below offset 0, which no group has
// committed, is unknown.
func (b *exactBooks) translate(ctx context.Context, asked []translate.Transfer) ([]exactTransfer, error) {
	transfers := slices.Clone(asked)
	for i := range transfers {
		transfers[i].Offset = max(transfers[i].Offset, 0)
	}
	if err := b.index.Translate(ctx, transfers, false); err != nil {
		return nil, err
	}
	translate.HoldBack(b.ledger, transfers, false)
	exact := make([]exactTransfer, len(asked))
	for i, t := range transfers {
		if asked[i].Offset < 0 {
			t.Status, t.TargetOffset, t.Detail = translate.Unknown, translate.NoOffset, "no group can have committed this offset"
		}
		exact[i] = exactTransfer(t)
	}
	return exact, nil
}

// beside returns the answer beside MirrorMaker 2's; why it is not exact goes into
// the stamp.
func (t *exactTransfer) beside(theirs *int64, stamp *mm2Stamp) *exactAnswer {
	a := &exactAnswer{Status: t.Status.String()}
	if t.TargetOffset != translate.NoOffset {
		a.Exact = &t.TargetOffset
	}
	if !t.Status.IsExact() {
		stamp.add(t.Detail)
	}
	if a.Exact != nil && theirs != nil && *theirs >= 0 {
		difference := *a.Exact - *theirs
		a.Difference = &difference
	}
	return a
}

// translationsTable returns the table of what --translate asked for.
func translationsTable(all []syncTranslation, exact bool) *textTable {
	columns := []tableColumn{
		{"TOPIC", false, true}, {"PARTITION", true, true}, {"OFFSET", true, true}, {"MM2", true, true},
		{"EXACT", true, exact}, {"DIFFERENCE", true, exact}, {"STATUS", false, exact},
		{"DETAIL", false, slices.ContainsFunc(all, func(t syncTranslation) bool { return t.Detail != "" })},
	}
	var rows [][]string
	for _, t := range all {
		cells := append(numbersBehind([]string{t.Topic}, int64(t.Partition), t.Offset), offsetOrNone(t.MM2))
		rows = append(rows, append(append(cells, t.exactAnswer.cells()...), t.Detail))
	}
	return tableOf(columns, rows)
}
