package main

import (
	"fmt"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"apograph/internal/kafkatest"
)

// TestTranslateTargetLostTail: the target has lost what was copied. An answer behind the
// end of its log is told as such in each form, is no line for Kafka's tool, which would
// commit it, and is nowhere called fine.
func TestTranslateTargetLostTail(t *testing.T) {
	c := newGroupCase(t)
	c.commit(c.pair.Source, "g", "orders", 1, 4)
	c.commit(c.pair.Source, "g", "payments", 0, 4)
	if err := c.pair.Target.LoseTail("payments", 0, 0); err != nil {
		t.Fatal(err)
	}
	answer := c.translate(4, "--group", "g", "--execute")
	answer.rows(t, "g orders-1 4->4 exact commit 4", "g payments-0 4->4 exact skip -")
	c.has("g", "payments", 0, -1)
	const lost = "has lost records that were copied"
	answer = c.translate(4, "--group", "g")
	answer.rows(t, "g orders-1 4->4 exact none 4", "g payments-0 4->4 exact skip -")
	if !strings.Contains(answer.Rows[1].Detail, lost) {
		t.Errorf("detail %q", answer.Rows[1].Detail)
	}
	if code, stdout, _ := c.run("--group", "g"); code != 4 || !strings.Contains(stdout, lost) {
		t.Errorf("exit code %d, %s", code, stdout)
	}
	for _, more := range [][]string{nil, {"--include-inexact"}} {
		code, stdout, stderr := c.run(append(more, "--group", "g", "--format", "kafka-csv")...)
		if want := `payments-0 offset 4 of group "g": exact, left out: `; code != 4 || stdout != "orders,1,4\n" || !strings.Contains(stderr, want) || !strings.Contains(stderr, lost) {
			t.Errorf("%q: exit code %d, %q, %q", more, code, stdout, stderr)
		}
	}
	// Offsets without a group are told it too, where the target is at hand.
	answer = c.translate(4, "payments:0:0", "payments:0:4", "--target-bootstrap-server", c.pair.Target.Server())
	answer.rows(t, " payments-0 0->0 exact none -", " payments-0 4->4 exact none -")
	if answer.Rows[0].Detail != "" || !strings.Contains(answer.Rows[1].Detail, lost) {
		t.Errorf("details %q, %q", answer.Rows[0].Detail, answer.Rows[1].Detail)
	}
}

// TestTranslateBelowTargetStart: the target's retention has removed what the
// answers were.
func TestTranslateBelowTargetStart(t *testing.T) {
	c := newGroupCase(t)
	if err := c.pair.Target.DeleteRecords("orders", 1, 6); err != nil {
		t.Fatal(err)
	}
	c.commit(c.pair.Source, "g", "orders", 1, 4)
	answer := c.translate(4, "--group", "g", "--execute")
	answer.rows(t, "g orders-1 4->6 below_target_start skip -")
	if answer.Rows[0].Distance != 2 {
		t.Errorf("distance %d, want 2", answer.Rows[0].Distance)
	}
	answer = c.translate(4, "--group", "g", "--execute", "--include-inexact")
	answer.rows(t, "g orders-1 4->6 below_target_start commit 6")
	c.has("g", "orders", 1, 6)
	// Offsets without a group know it too, where the target is at hand.
	answer = c.translate(4, "orders:1:4", "orders:1:6", "--target-bootstrap-server", c.pair.Target.Server())
	answer.rows(t, " orders-1 4->6 below_target_start none -", " orders-1 6->6 exact none -")
	// Everything is gone, and others have written since: that is not copied.
	c.produce(c.pair.Target, "orders", 1, 5)
	if err := c.pair.Target.DeleteRecords("orders", 1, 12); err != nil {
		t.Fatal(err)
	}
	answer = c.translate(4, "--group", "g", "--execute", "--include-inexact", "--target-group", "other")
	answer.rows(t, "g orders-1 4->12 below_target_start skip -")
	c.has("other", "orders", 1, -1)
}

// TestTranslateRecreatedTopics: an offset in a topic that was created again is
// none in the books.
func TestTranslateRecreatedTopics(t *testing.T) {
	for _, side := range []string{"source", "target"} {
		t.Run(side, func(t *testing.T) {
			c := newGroupCase(t)
			cluster := map[string]*kafkatest.Cluster{"source": c.pair.Source, "target": c.pair.Target}[side]
			c.commit(c.pair.Source, "g", "payments", 0, 2)
			admin := kadm.NewClient(cluster.NewClient(t))
			if _, err := admin.DeleteTopic(t.Context(), "orders"); err != nil {
				t.Fatal(err)
			}
			if err := cluster.CreateTopic(t.Context(), "orders", 2, nil); err != nil {
				t.Fatal(err)
			}
			c.commit(c.pair.Source, "g", "orders", 1, 4)
			answer := c.translate(4, "--group", "g", "--execute", "--include-inexact")
			answer.rows(t, "g orders-1 4->- unknown skip -", "g payments-0 2->2 exact commit 2")
			if detail := answer.Rows[0].Detail; !strings.Contains(detail, "created again") || !strings.Contains(detail, side) {
				t.Errorf("detail %q", detail)
			}
			c.has("g", "orders", 1, -1)
		})
	}
}

// TestTranslateCutSource: the source's log was cut below the books. An offset above
// the cut may be another record's: nothing is committed, whether the log has grown
// again or not, and whether a copier has seen it, which holds all of the partition back.
func TestTranslateCutSource(t *testing.T) {
	for _, tt := range []struct {
		again int
		seen  bool
		atCut string
	}{{2, false, "4->4 exact commit 4"}, {20, false, "4->4 exact commit 4"}, {20, true, "4->- unknown skip -"}} {
		c := newGroupCase(t)
		if err := c.pair.Source.LoseTail("orders", 1, 4); err != nil {
			t.Fatal(err)
		}
		c.produce(c.pair.Source, "orders", 1, tt.again)
		if tt.seen {
			if code, stderr := copyOnce(t, c.pair, c.ledger); code != int(exitError) {
				t.Fatalf("exit code %d: %s", code, stderr)
			}
		}
		c.commit(c.pair.Source, "g", "orders", 1, 5)
		c.commit(c.pair.Source, "g", "payments", 0, 2)
		c.commit(c.pair.Source, "at", "orders", 1, 4)
		c.commit(c.pair.Source, "beyond", "orders", 1, 15)
		answer := c.translate(4, "--group", "g", "--group", "at", "--group", "beyond", "--execute", "--include-inexact")
		answer.rows(t, "at orders-1 "+tt.atCut, "beyond orders-1 15->- unknown skip -", "g orders-1 5->- unknown skip -", "g payments-0 2->2 exact commit 2")
		for _, i := range []int{1, 2} {
			if detail := answer.Rows[i].Detail; !strings.Contains(detail, "cut") {
				t.Errorf("detail %q", detail)
			}
		}
		c.has("g", "orders", 1, -1)
		c.has("beyond", "orders", 1, -1)
	}
}

// TestTranslateLogEndsBelowTheBooks: the source's log, which has no leader epochs, ends
// below the books: nothing is known of any offset.
func TestTranslateLogEndsBelowTheBooks(t *testing.T) {
	c := newGroupCase(t)
	c.produce(c.pair.Source, "payments", 1, 10)
	if err := c.pair.Source.ForgetEpochs("payments", 1); err != nil {
		t.Fatal(err)
	}
	c.replicate()
	if err := c.pair.Source.LoseTail("payments", 1, 8); err != nil {
		t.Fatal(err)
	}
	c.commit(c.pair.Source, "g", "payments", 0, 2)
	c.commit(c.pair.Source, "g", "payments", 1, 5)
	answer := c.translate(4, "--group", "g", "--execute", "--include-inexact")
	answer.rows(t, "g payments-0 2->2 exact commit 2", "g payments-1 5->- unknown skip -")
	if detail := answer.Rows[1].Detail; !strings.Contains(detail, "ends at 8, below the books, which end at 10") {
		t.Errorf("detail %q", detail)
	}
	c.has("g", "payments", 1, -1)
}

// TestTranslateSilentSource: whether a log is that of the books cannot be asked. Its
// answers are not called checked, and not committed.
func TestTranslateSilentSource(t *testing.T) {
	c := newGroupCase(t)
	c.commit(c.pair.Source, "g", "orders", 1, 5)
	c.commit(c.pair.Source, "g", "payments", 0, 2)
	for _, key := range []kmsg.Key{kmsg.OffsetForLeaderEpoch, kmsg.ListOffsets} {
		silent := c.pair.Source.MustFault(t, kafkatest.Fault{Kind: kafkatest.ErrorBefore, Key: key, Topic: "orders", Err: kerr.KafkaStorageError, Count: -1})
		answer := c.translate(1, "--group", "g", "--execute")
		silent.Remove()
		if row := answer.Rows[0]; row.Action != "skip" || !strings.Contains(row.Detail, "orders-1") {
			t.Errorf("%v: %+v", key, row)
		}
		if silent.Hits() == 0 {
			t.Errorf("%v was not asked", key)
		}
		c.has("g", "orders", 1, -1)
	}
	c.translate(0, "--group", "g", "--execute")
	c.has("g", "orders", 1, 5)
}

// TestTranslateMissingTargetTopic: the target has lost a topic.
func TestTranslateMissingTargetTopic(t *testing.T) {
	c := newGroupCase(t)
	c.commit(c.pair.Source, "g", "orders", 1, 4)
	if _, err := kadm.NewClient(c.pair.Target.NewClient(t)).DeleteTopic(t.Context(), "orders"); err != nil {
		t.Fatal(err)
	}
	answer := c.translate(4, "--group", "g", "--execute")
	answer.rows(t, "g orders-1 4->- unknown skip -")
}

// TestTranslateLostCoordinator: groups of other brokers are answered for, and
// nothing is committed for any, as all were to be looked at.
func TestTranslateLostCoordinator(t *testing.T) {
	for _, side := range []string{"source", "target"} {
		t.Run(side, func(t *testing.T) {
			c := newGroupCase(t)
			cluster := map[string]*kafkatest.Cluster{"source": c.pair.Source, "target": c.pair.Target}[side]
			var args, lost, alive []string
			for i := range 12 {
				group := fmt.Sprintf("g%02d", i)
				c.commit(c.pair.Source, group, "orders", 1, 4)
				args = append(args, "--group", group)
				if cluster.Fake().CoordinatorFor(group) == 1 {
					lost = append(lost, group)
				} else {
					alive = append(alive, group)
				}
			}
			if len(lost) == 0 || len(alive) == 0 {
				t.Fatalf("lost %v, alive %v", lost, alive)
			}
			cluster.MustFault(t, kafkatest.Fault{
				Kind: kafkatest.ErrorBefore, Key: kmsg.OffsetFetch, Nodes: []int32{1}, Err: kerr.GroupAuthorizationFailed, Count: -1,
			})
			answer := c.translate(1, append(args, "--execute")...)
			for _, row := range answer.Rows {
				if row.Status != "exact" || row.Action != "skip" {
					t.Errorf("%s: %s", row.short(), row.Detail)
				}
				c.has(row.Group, "orders", 1, -1)
			}
			if !strings.Contains(answer.stderr, lost[0]) {
				t.Errorf("stderr %q lacks %s", answer.stderr, lost[0])
			}
			if want := map[string]int{"source": len(alive), "target": 12}[side]; len(answer.Rows) != want {
				t.Errorf("%d rows, want %d", len(answer.Rows), want)
			}
			if side == "source" {
				return
			}
			c.translate(1, append(args, "--execute", "--skip-active")...)
			c.has(alive[0], "orders", 1, 4)
			c.has(lost[0], "orders", 1, -1)
		})
	}
}

// TestTranslateGroupReverse reads a group on the target and says where it is on
// the source.
func TestTranslateGroupReverse(t *testing.T) {
	c := newGroupCase(t)
	c.commit(c.pair.Target, "g", "orders", 0, 25)
	answer := c.translate(0, "--group", "g", "--reverse")
	answer.rows(t, "g orders-0 75->25 exact none -")
}

// TestTranslateOtherCluster: the wrong clusters are refused.
func TestTranslateOtherCluster(t *testing.T) {
	c := newGroupCase(t)
	c.commit(c.pair.Target, "g", "orders", 1, 4)
	for _, args := range [][]string{
		{"--group", "g", "--source-bootstrap-server", c.pair.Target.Server()},
		{"orders:1:4", "--target-bootstrap-server", c.pair.Source.Server()},
	} {
		code, stdout, stderr := c.run(args...)
		if code != 2 || stdout != "" || !strings.Contains(stderr, "another") {
			t.Errorf("%v: exit code %d, %q, %q", args, code, stdout, stderr)
		}
	}
}
