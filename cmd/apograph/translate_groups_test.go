package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"apograph/internal/kafkatest"
)

// TestTranslateGroupsOutsideTheLog is D04: what can be committed is, and what
// is not exact is flagged.
func TestTranslateGroupsOutsideTheLog(t *testing.T) {
	c := newGroupCase(t)
	var groups []string
	for _, offset := range []int64{30, 50, 75, 100, 120} {
		group := fmt.Sprintf("at-%03d", offset)
		c.commit(c.pair.Source, group, "orders", 0, offset)
		groups = append(groups, "--group", group)
	}
	planned := []string{
		"at-030 orders-0 30->0 before_start skip -",
		"at-050 orders-0 50->0 exact commit -",
		"at-075 orders-0 75->25 exact commit -",
		"at-100 orders-0 100->50 end commit -",
		"at-120 orders-0 120->50 beyond_copied skip -",
	}
	answer := c.translate(4, groups...)
	answer.rows(t, planned...)
	if answer.Rows[0].Distance != 20 || answer.Rows[4].Distance != 20 {
		t.Errorf("distances %d, %d, want 20", answer.Rows[0].Distance, answer.Rows[4].Distance)
	}
	for _, offset := range []string{"030", "050", "075", "100", "120"} {
		c.has("at-"+offset, "orders", 0, -1)
	}
	if !strings.Contains(answer.stderr, "3 to commit, 0 there already, 2 to skip; nothing is written without --execute") {
		t.Errorf("stderr %q", answer.stderr)
	}
	answer = c.translate(4, append(groups, "--execute")...)
	answer.rows(t,
		"at-030 orders-0 30->0 before_start skip -",
		"at-050 orders-0 50->0 exact commit 0",
		"at-075 orders-0 75->25 exact commit 25",
		"at-100 orders-0 100->50 end commit 50",
		"at-120 orders-0 120->50 beyond_copied skip -",
	)
	for group, want := range map[string]int64{"at-030": -1, "at-050": 0, "at-075": 25, "at-100": 50, "at-120": -1} {
		c.has(group, "orders", 0, want)
	}
	// Again there is nothing to do, and what is not exact can be asked for.
	answer = c.translate(4, append(groups, "--execute", "--include-inexact")...)
	answer.rows(t,
		"at-030 orders-0 30->0 before_start commit 0",
		"at-050 orders-0 50->0 exact none 0",
		"at-075 orders-0 75->25 exact none 25",
		"at-100 orders-0 100->50 end none 50",
		"at-120 orders-0 120->50 beyond_copied skip -",
	)
	c.has("at-030", "orders", 0, 0)
	c.has("at-120", "orders", 0, -1)
}

// TestTranslateGroupsZero is D05: a commit at zero is one.
func TestTranslateGroupsZero(t *testing.T) {
	c := newGroupCase(t)
	c.commit(c.pair.Source, "g", "payments", 0, 0)
	c.commit(c.pair.Source, "g", "orders", 1, 7)
	answer := c.translate(0, "--group", "g", "--execute")
	answer.rows(t, "g orders-1 7->7 exact commit 7", "g payments-0 0->0 exact commit 0")
	c.has("g", "orders", 1, 7)
	c.has("g", "payments", 0, 0)
	if metadata := c.pair.Target.Fake().GroupInfo("g").Commits["payments"][0].Metadata; metadata != "payments-0" {
		t.Errorf("metadata %q", metadata)
	}
}

// TestTranslateGroupsNoRewind is D14 (d).
func TestTranslateGroupsNoRewind(t *testing.T) {
	c := newGroupCase(t)
	c.commit(c.pair.Source, "g", "orders", 1, 5)
	c.commit(c.pair.Target, "g", "orders", 1, 9)
	answer := c.translate(4, "--group", "g", "--execute")
	answer.rows(t, "g orders-1 5->5 exact skip 9")
	if !strings.Contains(answer.Rows[0].Detail, "--allow-rewind") {
		t.Errorf("detail %q", answer.Rows[0].Detail)
	}
	if got := c.pair.Target.Fake().GroupInfo("g").Commits["orders"][1].Offset; got != 9 {
		t.Errorf("has %d, want 9", got)
	}
	if code, _, _ := c.run("--group", "g"); code != 0 {
		t.Errorf("without --execute: exit code %d, want 0: the row is exact", code)
	}
	answer = c.translate(0, "--group", "g", "--execute", "--allow-rewind")
	answer.rows(t, "g orders-1 5->5 exact commit 5")
	c.has("g", "orders", 1, 5)
}

// TestTranslateGroupKinds is D17: all kinds of groups are told, partitions
// without an offset and topics without a book are left out and said.
func TestTranslateGroupKinds(t *testing.T) {
	c := newGroupCase(t)
	c.commit(c.pair.Source, "simple", "orders", 1, 3)
	c.consume(c.pair.Source.Bootstrap, "classic").Close()
	c.commit(c.pair.Source, "classic", "orders", 1, 4)
	c.consume(c.pair.Source.Bootstrap, "modern", kgo.ServerSideBalancer()).Close()
	c.commit(c.pair.Source, "modern", "orders", 1, 5)
	c.commit(c.pair.Source, "null", "orders", 0, -1)
	c.commit(c.pair.Source, "null", "orders", 1, 6)
	c.commit(c.pair.Source, "null", "left-out", 1, 6)
	mustShare(t, c.pair.Source.Bootstrap, "share")
	args := []string{"--execute"}
	for _, group := range []string{"simple", "classic", "modern", "null", "share"} {
		args = append(args, "--group", group)
	}
	answer := c.translate(4, args...)
	answer.rows(t,
		"classic orders-1 4->4 exact commit 4",
		"modern orders-1 5->5 exact commit 5",
		"null orders-1 6->6 exact commit 6",
		"simple orders-1 3->3 exact commit 3",
	)
	var got []string
	for _, g := range answer.Groups {
		got = append(got, fmt.Sprintf("%s %s %s > %s %s, %d %v %v", g.Group, g.Kind, g.State, g.TargetGroup, g.TargetKind, g.Offsets, g.WithoutOffset, g.WithoutBook))
	}
	want := []string{
		"classic classic Empty > classic absent, 1 [] []",
		"modern consumer Empty > modern absent, 1 [] []",
		"null simple Empty > null absent, 1 [{orders 0}] [left-out]",
		"share share Stable >  , 0 [] []",
		"simple simple Empty > simple absent, 1 [] []",
	}
	if !slices.Equal(got, want) {
		t.Errorf("groups\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if detail := answer.Groups[3].Detail; !strings.Contains(detail, "share group") {
		t.Errorf("share group: %q", detail)
	}
	// A topic without a book leaves the group unproven, as its offset would be by
	// itself; what has no offset leaves nothing.
	if detail := c.translate(4, "--group", "null").Groups[0].Detail; !strings.Contains(detail, "not translated, as the ledger has no book: left-out") {
		t.Errorf("detail %q", detail)
	}
	c.commit(c.pair.Source, "half", "orders", 0, -1)
	c.commit(c.pair.Source, "half", "orders", 1, 6)
	c.translate(0, "--group", "half")
	// They keep their type, and the forms without groups say it elsewhere.
	code, stdout, stderr := c.run("--group", "null", "--format", "kafka-csv")
	if code != 4 || stdout != "orders,1,6\n" || !strings.Contains(stderr, "orders-0") || !strings.Contains(stderr, "left-out") {
		t.Errorf("exit code %d, %q, %q", code, stdout, stderr)
	}
}

// TestTranslateGroupActive: one group with members stands against all, unless
// it is to be skipped.
func TestTranslateGroupActive(t *testing.T) {
	c := newGroupCase(t)
	for _, group := range []string{"idle", "busy"} {
		c.commit(c.pair.Source, group, "orders", 1, 4)
	}
	member := c.consume(c.pair.Target.Bootstrap, "busy")
	args := []string{"--group", "idle", "--group", "busy"}
	answer := c.translate(5, append(args, "--execute")...)
	answer.rows(t, "busy orders-1 4->4 exact skip -", "idle orders-1 4->4 exact skip -")
	c.has("idle", "orders", 1, -1)
	c.has("busy", "orders", 1, -1)
	if !strings.Contains(answer.stderr, `"busy"`) || !strings.Contains(answer.Rows[1].Detail, "busy") {
		t.Errorf("stderr %q, detail %q", answer.stderr, answer.Rows[1].Detail)
	}
	answer = c.translate(0, args...) // as every row is exact
	answer.rows(t, "busy orders-1 4->4 exact skip -", "idle orders-1 4->4 exact skip -")
	answer = c.translate(4, append(args, "--execute", "--skip-active")...)
	answer.rows(t, "busy orders-1 4->4 exact skip -", "idle orders-1 4->4 exact commit 4")
	c.has("busy", "orders", 1, -1)
	member.Close()
	answer = c.translate(0, append(args, "--execute")...)
	answer.rows(t, "busy orders-1 4->4 exact commit 4", "idle orders-1 4->4 exact none 4")
}

// TestTranslateGroupJoins: a member joins between the check and the commit.
func TestTranslateGroupJoins(t *testing.T) {
	c := newGroupCase(t)
	c.commit(c.pair.Source, "g", "orders", 1, 4)
	gate := make(chan struct{})
	fault := c.pair.Target.MustFault(t, kafkatest.Fault{Kind: kafkatest.DelayBefore, Key: kmsg.OffsetCommit, Gate: gate})
	done := make(chan translateAnswer, 1)
	go func() {
		code, stdout, stderr := c.run("--group", "g", "--execute", "-o", "json")
		answer := translateAnswer{stderr: fmt.Sprintf("%d %s", code, stderr)}
		if err := json.Unmarshal([]byte(stdout), &answer); err != nil {
			t.Errorf("%q: %v", stdout, err)
		}
		done <- answer
	}()
	if err := fault.Wait(t.Context(), 1); err != nil {
		t.Fatal(err)
	}
	c.consume(c.pair.Target.Bootstrap, "g")
	close(gate)
	answer := <-done
	answer.rows(t, "g orders-1 4->4 exact skip -")
	if !strings.HasPrefix(answer.stderr, "5 ") || !strings.Contains(answer.Rows[0].Detail, "UNKNOWN_MEMBER_ID") {
		t.Errorf("%q, detail %q", answer.stderr, answer.Rows[0].Detail)
	}
	c.has("g", "orders", 1, -1)
}

// TestTranslateTargetGroup commits under another name.
func TestTranslateTargetGroup(t *testing.T) {
	c := newGroupCase(t)
	c.commit(c.pair.Source, "old", "orders", 1, 4)
	c.commit(c.pair.Target, "old", "orders", 1, 8)
	answer := c.translate(0, "--group", "old", "--target-group", "new", "--execute")
	answer.rows(t, "old orders-1 4->4 exact commit 4")
	c.has("new", "orders", 1, 4)
	if g := answer.Groups[0]; g.Group != "old" || g.TargetGroup != "new" {
		t.Errorf("%+v", g)
	}
}

// TestTranslateUnknownGroup: a group that does not exist is an error, and
// stands against all commits: the name may be wrong.
func TestTranslateUnknownGroup(t *testing.T) {
	c := newGroupCase(t)
	c.commit(c.pair.Source, "g", "orders", 1, 4)
	answer := c.translate(1, "--group", "g", "--group", "typo", "--execute")
	answer.rows(t, "g orders-1 4->4 exact skip -")
	if !strings.Contains(answer.stderr, `group "typo" does not exist on source`) || answer.Groups[1].Kind != "absent" {
		t.Errorf("stderr %q, %+v", answer.stderr, answer.Groups)
	}
	c.has("g", "orders", 1, -1)
	answer = c.translate(1, "--group", "typo", "--source-bootstrap-server", c.pair.Source.Server())
	answer.rows(t)
}

// TestTranslateGroupFromFile commits the offsets of a file, as zero metadata.
func TestTranslateGroupFromFile(t *testing.T) {
	c := newGroupCase(t)
	var out, errs bytes.Buffer
	argv := []string{"apograph", "translate", "--ledger", c.ledger, "--from-file", "-", "--execute", "-o", "json",
		"--target-bootstrap-server", c.pair.Target.Server()}
	code := run(t.Context(), argv, strings.NewReader("g,orders,1,4\nh,payments,0,5\n"), &out, &errs)
	answer := translateAnswer{stderr: errs.String()}
	if err := json.Unmarshal(out.Bytes(), &answer); err != nil || code != 0 {
		t.Fatalf("exit code %d, %q, %q: %v", code, out.String(), errs.String(), err)
	}
	answer.rows(t, "g orders-1 4->4 exact commit 4", "h payments-0 5->5 end commit 5")
	c.has("g", "orders", 1, 4)
	c.has("h", "payments", 0, 5)
}

// TestTranslateGroupsTable shows what a person sees.
func TestTranslateGroupsTable(t *testing.T) {
	c := newGroupCase(t)
	c.commit(c.pair.Source, "g", "orders", 1, 4)
	c.commit(c.pair.Source, "g", "left-out", 1, 4)
	code, stdout, stderr := c.run("--group", "g", "--execute")
	want := strings.Join([]string{
		"GROUP  TOPIC   PARTITION  SOURCE-OFFSET  TARGET-TOPIC  TARGET-OFFSET  STATUS  DISTANCE  COPIED-TO  TARGET-COMMITTED  ACTION  DETAIL",
		"g      orders          1              4  orders                    4  exact          0         10                 4  commit",
		"",
		"GROUP  KIND    STATE  TARGET-GROUP  TARGET-KIND  TARGET-STATE  OFFSETS  DETAIL",
		"g      simple  Empty  g             absent       -                   1  not translated, as the ledger has no book: left-out",
		"",
	}, "\n")
	if code != 4 || stdout != want || stderr != "apograph: translate: offsets on target: 1 committed, 0 there already, 0 skipped\n" {
		t.Errorf("exit code %d\n%s\nwant\n%s\n%s", code, stdout, want, stderr)
	}
}

// TestTranslateManyGroups is D25: 4000 groups in one pass.
func TestTranslateManyGroups(t *testing.T) {
	const groups = 4000
	c := newGroupCase(t)
	c.produce(c.pair.Source, "payments", 1, 1000)
	c.replicate()
	admin := kadm.NewClient(c.pair.Source.NewClient(t))
	args := []string{"--execute"}
	for i := range groups {
		group := fmt.Sprintf("group-%d", i)
		var offsets kadm.Offsets
		offsets.AddOffset("payments", 1, int64(i%1000), -1)
		if err := admin.CommitAllOffsets(t.Context(), group, offsets); err != nil {
			t.Fatal(err)
		}
		args = append(args, "--group", group)
	}
	start := time.Now()
	answer := c.translate(0, args...)
	took := time.Since(start)
	t.Logf("%d groups in %v", groups, took)
	if len(answer.Rows) != groups || took > time.Minute {
		t.Errorf("%d rows in %v", len(answer.Rows), took)
	}
	for _, row := range answer.Rows {
		var i int64
		if _, err := fmt.Sscanf(row.Group, "group-%d", &i); err != nil {
			t.Fatal(err)
		}
		if want := fmt.Sprintf("%s payments-1 %d->%d exact commit %d", row.Group, i%1000, i%1000, i%1000); row.short() != want {
			t.Errorf("%s, want %s", row.short(), want)
		}
		c.has(row.Group, "payments", 1, i%1000)
	}
}
