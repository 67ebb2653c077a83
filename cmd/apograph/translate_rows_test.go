package main

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"errors"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"

	"apograph/internal/groups"
	"apograph/ledger"
	"apograph/translate"
)

// oddTexts are texts that some form has to write otherwise.
func oddTexts() []string {
	return []string{
		"", "orders", "a.b-c_D9", " leading", "trailing ", "com,ma", `quo"te`, `""`, `back\slash`, `\.`, `\.,`, "new\nline", "car\rriage", "tab\t",
		"\x1b[31mred", "\x00", "\x7f", "ördrar", "日本語", "e\u0301", "\u202ereversed", "\u2028", "\u00a0space", "\u3000wide", "<b>&amp;</b>",
		"bad\xffutf8", "\U0001f600", "\U000e0001", "-", strings.Repeat("long ", 30), strings.Repeat("x", maxGroup), strings.Repeat("日", maxGroup),
	}
}

// randomTransfers returns transfers of all kinds of texts, numbers and unknowns.
func randomTransfers(random *rand.Rand, n int) []translate.Transfer {
	texts := oddTexts()
	text := func() string { return texts[random.IntN(len(texts))] }
	offset := func() int64 {
		return []int64{translate.NoOffset, 0, random.Int64N(1000), random.Int64()}[random.IntN(4)]
	}
	transfers := make([]translate.Transfer, n)
	for i := range transfers {
		t := translate.NewTransfer(translate.PlanRow{Group: text(), Query: translate.Query{Topic: text(), Partition: random.Int32(), Offset: offset()}}, "")
		t.Pair.SourceTopic, t.Pair.TargetTopic = text(), text()
		t.Pair.SourceTopicID[random.IntN(16)] = byte(random.IntN(3))
		t.Status, t.Distance, t.CopiedTo, t.TargetCommitted = translate.Status(random.IntN(7)), random.Int64N(5), offset(), offset()
		t.SourceOffset, t.TargetOffset = offset(), offset()
		if t.Detail = text(); random.IntN(3) == 0 {
			t.Decision = groups.Decision{Action: groups.DoNothing, Reason: translate.Inexact, Detail: text()}
		}
		if random.IntN(4) == 0 {
			t.Err = errors.New(text())
		}
		transfers[i] = t
	}
	return transfers
}

// rowOf returns a transfer as the contract has it.
func rowOf(t *translation, from *translate.Transfer) translationRow {
	offset := func(n int64) *int64 {
		if n < 0 {
			return nil
		}
		return &n
	}
	row := translationRow{
		Topic: textOrNil(from.Pair.SourceTopic), TopicID: topicIDOf(from.Pair.SourceTopicID), Partition: from.Partition,
		SourceOffset: offset(from.SourceOffset), TargetTopic: textOrNil(from.Pair.TargetTopic), TargetOffset: offset(from.TargetOffset),
		Status: from.Status.String(), Distance: from.Distance, CopiedTo: offset(from.CopiedTo), TargetCommitted: offset(from.TargetCommitted),
		Action: string(from.Decision.Action), Detail: t.detail(from),
	}
	if t.grouped {
		row.Group = &from.Group
	}
	if t.reverse {
		row.TargetTopic = &from.Topic
	} else {
		row.Topic = &from.Topic
	}
	return row
}

// texts returns the values of a row, with one text for those that are unknown.
func (r *translationRow) texts(unknown string) []string {
	text := func(s *string) string {
		if s == nil {
			return unknown
		}
		return printable(*s)
	}
	number := func(n *int64) string {
		if n == nil {
			return unknown
		}
		return strconv.FormatInt(*n, 10)
	}
	return []string{
		text(r.Group), text(r.Topic), text(r.TopicID), strconv.Itoa(int(r.Partition)), number(r.SourceOffset), text(r.TargetTopic),
		number(r.TargetOffset), r.Status, strconv.FormatInt(r.Distance, 10), number(r.CopiedTo), number(r.TargetCommitted), r.Action, printable(r.Detail),
	}
}

// TestTranslationForms compares each form of rows with what the standard encoders
// and the table of all rows make of them.
func TestTranslationForms(t *testing.T) {
	const seed = 8
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	for round := range 40 {
		answer := &translation{
			envelope: newEnvelope("Translation", "translate"), Ledger: ledgerRef{Path: "p\u202e", LedgerID: "l"},
			transfers: randomTransfers(random, 100*min(round, 1)), grouped: round%2 == 0, reverse: round%3 == 0,
		}
		if round%4 == 0 {
			answer.carried = &translate.CarryReport{}
		}
		rows := make([]translationRow, len(answer.transfers))
		for i := range rows {
			rows[i] = rowOf(answer, &answer.transfers[i])
		}
		checkJSONForms(t, answer, rows)
		checkCSVForm(t, answer, rows)
		for _, columns := range []int{0, 80, 300, 2000} {
			checkTableForm(t, answer, rows, columns)
		}
	}
}

func checkJSONForms(t *testing.T, answer *translation, rows []translationRow) {
	t.Helper()
	var got, want bytes.Buffer
	if err := answer.writeRows(&got, appendJSONRow); err != nil {
		t.Fatal(err)
	}
	for _, row := range rows {
		if err := writeJSON(&want, row); err != nil {
			t.Fatal(err)
		}
	}
	mustEqualLines(t, got.String(), want.String())
	got.Reset()
	want.Reset()
	document := struct {
		envelope
		Ledger ledgerRef        `json:"ledger"`
		Rows   []translationRow `json:"rows"`
	}{answer.envelope, answer.Ledger, rows}
	if err := errors.Join(answer.writeJSON(&got), writeJSON(&want, document)); err != nil {
		t.Fatal(err)
	}
	mustEqualLines(t, got.String(), want.String())
	if !json.Valid(got.Bytes()) {
		t.Fatalf("no JSON: %s", got.String())
	}
}

func checkCSVForm(t *testing.T, answer *translation, rows []translationRow) {
	t.Helper()
	var got, want bytes.Buffer
	if err := answer.writeCSV(&got); err != nil {
		t.Fatal(err)
	}
	out := csv.NewWriter(&want)
	out.Write([]string{"group", "topic", "topic_id", "partition", "source_offset", "target_topic", "target_offset",
		"status", "distance", "copied_to", "target_committed", "action", "detail"})
	for _, row := range rows {
		out.Write(row.texts(""))
	}
	out.Flush()
	mustEqualLines(t, got.String(), want.String())
}

func checkTableForm(t *testing.T, answer *translation, rows []translationRow, columns int) {
	t.Helper()
	carried := answer.carried != nil
	header := []tableColumn{
		{"GROUP", false, answer.grouped}, {"TOPIC", false, true}, {"", false, false}, {"PARTITION", true, true}, {"SOURCE-OFFSET", true, true},
		{"TARGET-TOPIC", false, true}, {"TARGET-OFFSET", true, true}, {"STATUS", false, true}, {"DISTANCE", true, true},
		{"COPIED-TO", true, true}, {"TARGET-COMMITTED", true, carried}, {"ACTION", false, carried}, {"DETAIL", false, true},
	}
	var cells [][]string
	for _, row := range rows {
		cells = append(cells, row.texts("-"))
	}
	var got strings.Builder
	if err := answer.table().write(&got, columns); err != nil {
		t.Fatal(err)
	}
	mustEqualLines(t, got.String(), tableOf(header, cells).text(columns))
}

func mustEqualLines(t *testing.T, got, want string) {
	t.Helper()
	if got == want {
		return
	}
	g, w := strings.Split(got, "\n"), strings.Split(want, "\n")
	for i := range min(len(g), len(w)) {
		if g[i] != w[i] {
			t.Fatalf("line %d:\n%q, want\n%q", i+1, g[i], w[i])
		}
	}
	t.Fatalf("%d lines, want %d", len(g), len(w))
}

// TestTranslationOfASheet: rows in a sheet look as those in transfers.
func TestTranslationOfASheet(t *testing.T) {
	path := mustMakeLedger(t, t.TempDir()+"/f.ledger")
	l, err := ledger.Open(path, ledger.Options{ReadOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	for _, reverse := range []bool{false, true} {
		var plan translate.ResetPlan
		for offset := range int64(40) {
			for _, topic := range []string{"orders", "b.orders", "none"} {
				plan.Rows = append(plan.Rows, translate.PlanRow{Group: strconv.Itoa(int(offset)), Query: translate.Query{Topic: topic, Offset: offset}})
			}
		}
		answer := &translation{sheet: translate.NewSheet(&plan), grouped: true, reverse: reverse}
		if err := answer.sheet.Translate(t.Context(), translate.NewIndex(l), reverse); err != nil {
			t.Fatal(err)
		}
		var inSheet, inTransfers bytes.Buffer
		exact := answer.isExact()
		err := answer.writeCSV(&inSheet)
		answer.toTransfers()
		if err := errors.Join(err, answer.writeCSV(&inTransfers)); err != nil || exact != answer.isExact() {
			t.Fatal(err)
		}
		mustEqualLines(t, inSheet.String(), inTransfers.String())
		if lines := strings.Count(inSheet.String(), "\n"); lines != len(plan.Rows)+1 || exact {
			t.Errorf("%d lines, exact %t", lines, exact)
		}
	}
}
