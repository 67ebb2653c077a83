package verify_test

import (
	"encoding/json"
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"apograph/internal/kafkatest"
	"apograph/ledger"
	"apograph/verify"
)

// TestBehind: the source has more records, more partitions and more topics than
// the books.
func TestBehind(t *testing.T) {
	f := newFlow(t, 1)
	f.created("orders", 1, nil)
	f.plain(f.pair.Source, "orders", 0, 10)
	f.copy(nil, "orders")
	f.edit(func(l *ledger.Ledger) error {
		return l.SetScope(ledger.Scope{Topics: []string{"orders, pay.*"}, TopicsExclude: []string{"pay-test"}})
	})
	f.plain(f.pair.Source, "orders", 10, 5)
	for _, topic := range []string{"pay-in", "pay-out", "pay-test", "other", "__pay", "pay.checkpoints.internal"} {
		f.created(topic, 1, nil)
		f.plain(f.pair.Source, topic, 0, 3)
	}
	f.must(f.pair.Source.DeleteRecords("pay-out", 0, -1))

	report := f.verify(verify.ModeFull)
	expect(t, report, verify.Inconclusive, `
		not_copied_yet(behind) no fault orders-0 source [10, 15) target [10, 10)
		not_copied_yet(no_book) no fault pay-in-0 source [0, 3) target
		not_copied_yet(no_book) no fault pay-out-0 source [0, 3) target`)
	if c := report.Summary; c.NotCopiedYet != 11 || c.Equal != 10 || c.Partitions != 3 {
		t.Errorf("summary is %+v", c)
	}
	if report.Scope.Topics != "orders,pay.* except pay-test" {
		t.Errorf("scope is %q", report.Scope.Topics)
	}
	out := []verify.OutOfScope{{Topic: "other", Reason: "not_matched"}, {Topic: "pay-test", Reason: "excluded"}}
	if d := cmp.Diff(out, report.Scope.OutOfScope); d != "" {
		t.Errorf("out of scope (-want +got):\n%s", d)
	}

	// Up to the book's end there is nothing to be copied, but topics without a
	// book are still not there.
	report = f.verify(verify.ModeFull, func(c *verify.Config) { c.Until = verify.UntilBook; c.Topics = []string{"orders"} })
	expect(t, report, verify.Complete, "")
	if report.Summary.SourceOffsets != 10 {
		t.Errorf("summary is %+v", report.Summary)
	}
	// Without the source the last bounds that the copier saw count.
	expect(t, f.verify(verify.ModeTarget), verify.Complete, "")
}

// TestPartitionAdded: a partition that was added to a topic with a book.
func TestPartitionAdded(t *testing.T) {
	f := newFlow(t, 1)
	f.created("t", 2, nil)
	f.copy(nil, "t")
	f.edit(func(l *ledger.Ledger) error {
		return l.ClosePair(pairsOf(l, "t")[1].ID, ledger.Closing{Reason: "topic_recreated"})
	})
	report := f.verify(verify.ModeFull)
	expect(t, report, verify.Inconclusive, `not_copied_yet(no_book) no fault t-1 source [0, 0) target`)
	if len(report.Partitions) != 3 || report.Summary.Partitions != 2 {
		t.Errorf("rows are %+v", report.Partitions)
	}
}

// TestClosedGeneration: a generation that has ended has its row, by its books,
// and does not weaken the verdict unless a tile of it is bad.
func TestClosedGeneration(t *testing.T) {
	f := newFlow(t, 1)
	f.created("t", 1, nil)
	f.plain(f.pair.Source, "t", 0, 10)
	f.copy(nil, "t")
	f.deleteTopic(f.pair.Source, "t")
	f.created("t", 1, nil)
	f.plain(f.pair.Source, "t", 100, 5)
	f.edit(func(l *ledger.Ledger) error {
		return l.ClosePair(pairsOf(l, "t")[0].ID, ledger.Closing{Reason: "topic_recreated"})
	})
	f.copy(nil, "t")
	report := f.verify(verify.ModeFull)
	expect(t, report, verify.Complete, `not_verified(not_read) no fault t-0 source [0, 10) target [0, 10)`)
	if len(report.Partitions) != 2 || report.Partitions[0].NotVerified != 10 || report.Partitions[1].Equal != 5 || report.Partitions[1].Generation != 2 {
		t.Errorf("rows are %+v", report.Partitions)
	}
}

// TestSelection: what was asked for narrows the flow's scope, and what is left
// out, or is not there, is told.
func TestSelection(t *testing.T) {
	f := newFlow(t, 1)
	for _, topic := range []string{"a", "b", "c", "stranger"} {
		f.created(topic, 1, nil)
		f.plain(f.pair.Source, topic, 0, 2)
	}
	f.copy(nil, "a", "b", "c")
	list := func(texts ...string) []string { return texts }
	out := func(pairs ...string) []verify.OutOfScope {
		list := []verify.OutOfScope{}
		for i := 0; i < len(pairs); i += 2 {
			list = append(list, verify.OutOfScope{Topic: pairs[i], Reason: verify.ScopeReason(pairs[i+1])})
		}
		return list
	}
	for _, tt := range []struct {
		name            string
		mode            verify.Mode
		topics, exclude []string
		verdict         verify.Verdict
		partitions      int
		out             []verify.OutOfScope
	}{
		{"everything", verify.ModeFull, nil, nil, verify.Complete, 3, out("stranger", "not_matched")},
		{"a list", verify.ModeFull, list("a, b"), nil, verify.Complete, 2, out("c", "not_matched", "stranger", "not_matched")},
		{"excluded", verify.ModeFull, nil, list("b"), verify.Complete, 2, out("b", "excluded", "stranger", "not_matched")},
		{"a stranger excluded", verify.ModeFull, nil, list("s.*"), verify.Complete, 3, out("stranger", "excluded")},
		{"both", verify.ModeBooks, list("a|b"), list("b"), verify.Complete, 1, out("b", "excluded", "c", "not_matched")},
		{"whole names", verify.ModeBooks, list("a", "."), nil, verify.Complete, 3, out()},
		{"a pattern that finds a stranger", verify.ModeFull, list(".*"), nil, verify.Inconclusive, 4, out()},
		{"a class that finds a stranger", verify.ModeFull, list("[as].*"), nil, verify.Inconclusive, 2, out("b", "not_matched", "c", "not_matched")},
		{"a choice that finds a stranger", verify.ModeFull, list("stranger|a"), nil, verify.Inconclusive, 2, out("b", "not_matched", "c", "not_matched")},
		{"a pattern and an exclusion", verify.ModeFull, list(".*"), list("stranger"), verify.Complete, 3, out("stranger", "excluded")},
		{"a stranger without the source", verify.ModeTarget, list(".*"), nil, verify.Complete, 3, out()},
		{"a stranger by name", verify.ModeFull, list("a", "stranger"), nil, verify.Inconclusive, 2, out("b", "not_matched", "c", "not_matched")},
		{"nothing by that name on the source", verify.ModeFull, list("a", "d"), nil, verify.Complete, 1,
			out("b", "not_matched", "c", "not_matched", "d", "no_book", "stranger", "not_matched")},
		{"nothing by that name in the books", verify.ModeTarget, list("a", "d"), nil, verify.Inconclusive, 1,
			out("b", "not_matched", "c", "not_matched", "d", "no_book")},
	} {
		t.Run(tt.name, func(t *testing.T) {
			report := f.verify(tt.mode, func(c *verify.Config) { c.Topics, c.TopicsExclude = tt.topics, tt.exclude })
			if report.Verdict != tt.verdict || report.Summary.Partitions != tt.partitions {
				t.Errorf("verdict %s of %d partitions, want %s of %d", report.Verdict, report.Summary.Partitions, tt.verdict, tt.partitions)
			}
			if d := cmp.Diff(tt.out, report.Scope.OutOfScope); d != "" {
				t.Errorf("out of scope (-want +got):\n%s", d)
			}
		})
	}
}

// TestNarrowedFlow: the flow was started with fewer topics. What has books is
// verified all the same, and the report says that it is about more than the
// patterns.
func TestNarrowedFlow(t *testing.T) {
	f := newFlow(t, 1)
	for _, topic := range []string{"a", "b", "c", "d"} {
		f.created(topic, 2, nil)
		f.plain(f.pair.Source, topic, 0, 2)
	}
	f.copy(nil, "a", "b", "c")
	scoped := func(s ledger.Scope) { f.edit(func(l *ledger.Ledger) error { return l.SetScope(s) }) }
	check := func(partitions int, topics string, out []verify.OutOfScope, change func(c *verify.Config)) {
		t.Helper()
		for _, mode := range []verify.Mode{verify.ModeFull, verify.ModeBooks} {
			report := f.verify(mode, change)
			if mode == verify.ModeBooks { // which cannot know what else there is
				out = []verify.OutOfScope{}
			}
			if report.Scope.Topics != topics || report.Summary.Partitions != partitions {
				t.Errorf("mode %s: %d partitions, scope %q, want %d and %q", mode, report.Summary.Partitions, report.Scope.Topics, partitions, topics)
			}
			if d := cmp.Diff(out, report.Scope.OutOfScope); d != "" {
				t.Errorf("mode %s: out of scope (-want +got):\n%s", mode, d)
			}
		}
	}
	all := func(*verify.Config) {}
	stranger := func(why verify.ScopeReason) []verify.OutOfScope {
		return []verify.OutOfScope{{Topic: "d", Reason: why}}
	}
	scoped(ledger.Scope{Topics: []string{"a"}})
	check(6, "a, and 2 topics outside of it of which there are books", stranger("not_matched"), all)
	scoped(ledger.Scope{Topics: []string{".*"}, TopicsExclude: []string{"b", "d"}})
	check(6, ".* except b,d, and 1 topic outside of it of which there are books", stranger("excluded"), all)
	scoped(ledger.Scope{})
	check(6, "all that have a book", stranger("no_book"), all)
	check(6, "all that have a book except d", stranger("excluded"), func(c *verify.Config) { c.TopicsExclude = []string{"d"} })
}

// TestRefusals: what cannot be verified as asked for.
func TestRefusals(t *testing.T) {
	f := newFlow(t, 1)
	f.created("t", 1, nil)
	f.copy(nil, "t")
	other := kafkatest.NewCluster(t, kafkatest.ClusterOptions{Name: "other"})
	var usage *verify.UsageError
	var locked *ledger.LockedError
	for _, tt := range []struct {
		name   string
		change func(c *verify.Config)
		want   func(error) bool
	}{
		{"another source", func(c *verify.Config) { c.Source = cluster(other.Bootstrap) }, func(err error) bool { return errors.As(err, &usage) }},
		{"another target", func(c *verify.Config) { c.Target = cluster(other.Bootstrap) }, func(err error) bool { return errors.As(err, &usage) }},
		{"another source alias", func(c *verify.Config) { c.Source.Alias = "zz" }, func(err error) bool { return errors.As(err, &usage) }},
		{"another target alias", func(c *verify.Config) { c.Target.Alias = "a" }, func(err error) bool { return errors.As(err, &usage) }},
		{"another alias of no cluster", func(c *verify.Config) { c.Mode, c.Source, c.SourceAlias = verify.ModeTarget, nil, "zz" }, func(err error) bool { return errors.As(err, &usage) }},
		{"another alias in mode books", func(c *verify.Config) { c.Mode, c.TargetAlias = verify.ModeBooks, "zz" }, func(err error) bool { return errors.As(err, &usage) }},
		{"no topic", func(c *verify.Config) { c.Topics = []string{"x"} }, func(err error) bool { return errors.As(err, &usage) }},
		{"no regular expression", func(c *verify.Config) { c.Topics = []string{"("} }, func(err error) bool { return errors.As(err, &usage) }},
		{"no such mode", func(c *verify.Config) { c.Mode = "x" }, func(err error) bool { return errors.As(err, &usage) }},
		{"no such end", func(c *verify.Config) { c.Until = "x" }, func(err error) bool { return errors.As(err, &usage) }},
		{"full without a source", func(c *verify.Config) { c.Source = nil }, func(err error) bool { return errors.As(err, &usage) }},
		{"target without one", func(c *verify.Config) { c.Mode, c.Target = verify.ModeTarget, nil }, func(err error) bool { return errors.As(err, &usage) }},
		{"the source alone", func(c *verify.Config) { c.Mode, c.Target = "", nil }, func(err error) bool { return errors.As(err, &usage) }},
		{"no ledger", func(c *verify.Config) { c.LedgerPath += "x" }, func(err error) bool { return errors.Is(err, os.ErrNotExist) }},
	} {
		config := verify.Config{LedgerPath: f.path, Mode: verify.ModeFull, Source: cluster(f.source), Target: cluster(f.target)}
		tt.change(&config)
		if report, err := verify.Run(f.ctx, config); report != nil || !tt.want(err) {
			t.Errorf("%s: report %v, error %v", tt.name, report, err)
		}
	}
	l := f.open()
	_, err := verify.Run(f.ctx, verify.Config{LedgerPath: f.path, Wait: time.Millisecond})
	f.must(l.Close())
	if !errors.As(err, &locked) || locked.PID != os.Getpid() {
		t.Errorf("a ledger in use: error %v", err)
	}
}

// TestReportJSON compares the document with the one that is promised, field by
// field and in order.
func TestReportJSON(t *testing.T) {
	f := newFlow(t, 1)
	f.created("orders", 1, nil)
	f.plain(f.pair.Source, "orders", 0, 10)
	f.copy(nil, "orders")
	_, err := f.pair.Target.Sabotage(kafkatest.Sabotage{Damage: kafkatest.Drop, Topic: "orders", Offset: 4})
	f.must(err)
	now := time.Date(2026, 11, 29, 20, 13, 51, 7_600_000, time.UTC)
	report := f.verify(verify.ModeFull, func(c *verify.Config) { c.Now = func() time.Time { return now } })
	got, err := json.Marshal(report)
	f.must(err)
	id := f.topicID(f.source, "orders").String()
	want := `{"kind":"VerifyReport","schema":"apograph/verify/v1","mode":"full","verdict":"faults",` +
		`"flow":{"source":{"alias":"a","cluster_id":"` + f.pair.Source.ID() + `"},"target":{"alias":"b","cluster_id":"` + f.pair.Target.ID() + `"}},` +
		`"started":"2026-11-29T20:13:51.007Z","finished":"2026-11-29T20:13:51.007Z","version":"test",` +
		`"oldest_proof":null,"scope":{"topics":"orders","until":"source-end","sample":null,"source_end_seen_at":"2026-11-29T20:13:51.007Z","out_of_scope":[]},` +
		`"summary":{"partitions":1,` + countsJSON + `},` +
		`"partitions":[{"topic":"orders","topic_id":"` + id + `","partition":0,"generation":1,"target_topic":"orders",` +
		`"source":{"start":0,"end":10},"target":{"start":0,"end":10},"verdict":"faults",` + countsJSON + `}],` +
		`"findings":[{"kind":"missing","fault":true,"topic":"orders","partition":0,"source_offsets":{"start":4,"end":5},` +
		`"target_offsets":{"start":4,"end":5},"reason":"","detail":"not on the target"}],"findings_omitted":0}`
	if string(got) != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	var back verify.Report
	f.must(json.Unmarshal(got, &back))
	again, err := json.Marshal(&back)
	f.must(err)
	if string(again) != string(got) {
		t.Errorf("read and written again it is\n%s", again)
	}
	nothing, err := json.Marshal(verify.Time{})
	f.must(err)
	if string(nothing) != "null" {
		t.Errorf("no time is %s", nothing)
	}
}

var countsJSON = strings.Join([]string{
	`"source_offsets":10,"copied":10,"commit_markers":0,"abort_markers":0,"aborted":0,"compacted":0`,
	`"filtered":0,"before_start":0,"lost":0,"unexplained":0,"not_copied_yet":0`,
	`"equal":9,"missing":1,"changed":0,"reordered":0,"not_verified":0,"proven_earlier":0,"extra":0,"duplicates":0,"foreign":0,"orphans":0,"after_book":0,"timestamps_replaced":0`,
}, ",")

// TestMaxFindings: what is not listed is counted, and faults come first.
func TestMaxFindings(t *testing.T) {
	f := newFlow(t, 1)
	f.created("t", 1, nil)
	f.plain(f.pair.Source, "t", 0, 50)
	f.copy(nil, "t")
	f.plain(f.pair.Source, "t", 50, 1)
	for offset := int64(1); offset < 50; offset += 6 {
		_, err := f.pair.Target.Sabotage(kafkatest.Sabotage{Damage: kafkatest.MutateValue, Topic: "t", Offset: offset})
		f.must(err)
	}
	report := f.verify(verify.ModeFull, func(c *verify.Config) { c.MaxFindings = 3 })
	expect(t, report, verify.Faults, `
		changed t-0 source 1 target 1
		changed t-0 source 7 target 7
		changed t-0 source 13 target 13`)
	if report.Omitted != 7 || report.Summary.Changed != 9 {
		t.Errorf("%d findings are left out, %+v", report.Omitted, report.Summary)
	}
	f.created("a", 1, nil)
	f.plain(f.pair.Source, "a", 0, 10)
	f.copy(nil, "a")
	for _, offset := range []int64{2, 4, 6, 8} {
		_, err := f.pair.Target.Sabotage(kafkatest.Sabotage{Damage: kafkatest.MutateValue, Topic: "a", Offset: offset})
		f.must(err)
	}
	report = f.verify(verify.ModeFull, func(c *verify.Config) { c.MaxFindings = 6 })
	if len(report.Findings) != 6 || report.Findings[3].Topic != "a" || report.Findings[4].Topic != "t" || report.Omitted != 4+9+1-6 {
		t.Errorf("%d are left out, findings\n%s", report.Omitted, findings(report))
	}
	report = f.verify(verify.ModeFull, func(c *verify.Config) { c.MaxFindings, c.Topics = 9, []string{"t"} })
	if len(report.Findings) != 9 || report.Omitted != 1 || !report.Findings[8].Fault {
		t.Errorf("%d findings, %d left out", len(report.Findings), report.Omitted)
	}
}

// TestLedgerWithoutBooks: of a ledger that has no book, nothing was copied, in
// whatever mode; the partitions that could not be begun are named where the ledger
// knows them.
func TestLedgerWithoutBooks(t *testing.T) {
	modes := []verify.Mode{verify.ModeBooks, verify.ModeTarget}
	for _, stopped := range []bool{false, true} {
		f := newFlow(t, 74)
		f.created("t", 1, nil)
		f.plain(f.pair.Source, "t", 0, 5)
		f.edit(func(l *ledger.Ledger) error {
			if stopped {
				for _, topic := range []string{"t", "x"} {
					f.must(l.SetStop(ledger.Stop{SourceTopic: topic, Offset: -1, Reason: "target_not_empty", Detail: "it holds records"}))
				}
			}
			return l.SetScope(ledger.Scope{Topics: []string{"t"}})
		})
		expect(t, f.verify(verify.ModeFull), verify.Inconclusive, "not_copied_yet(no_book) no fault t-0 source [0, 5) target")
		for _, mode := range modes {
			report, want := f.verify(mode), ""
			if stopped {
				want = "not_copied_yet(no_book) no fault t-0 source  target"
			}
			expect(t, report, verify.Inconclusive, want)
			if stopped && (!strings.HasSuffix(report.Findings[0].Detail, "target_not_empty: it holds records") || len(report.Scope.OutOfScope) != 1) {
				t.Errorf("mode %s: %+v, out of scope %+v", mode, report.Findings, report.Scope.OutOfScope)
			}
		}
	}
}

// TestStoppedWithoutBook: a partition of the flow that has no book leaves the
// verdict open, whatever the books of others say.
func TestStoppedWithoutBook(t *testing.T) {
	f := newFlow(t, 75)
	for _, topic := range []string{"t", "u"} {
		f.created(topic, 1, nil)
		f.plain(f.pair.Source, topic, 0, 5)
	}
	f.copy(nil, "t")
	f.edit(func(l *ledger.Ledger) error {
		for _, topic := range []string{"t", "u"} {
			f.must(l.SetStop(ledger.Stop{SourceTopic: topic, Offset: -1, Reason: "target_not_empty", Detail: "it holds records"}))
		}
		return l.SetScope(ledger.Scope{Topics: []string{".*"}})
	})
	for _, mode := range []verify.Mode{verify.ModeBooks, verify.ModeTarget} {
		expect(t, f.verify(mode), verify.Inconclusive, "not_copied_yet(no_book) no fault u-0 source  target")
		only := func(c *verify.Config) { c.Topics = []string{"t"} }
		expect(t, f.verify(mode, only), verify.Complete, "")
	}
}
