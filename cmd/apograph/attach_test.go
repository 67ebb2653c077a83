package main

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"apograph/internal/kafkatest"
)

// A lostLedger is a flow whose ledger gets lost.
type lostLedger struct {
	t      *testing.T
	pair   *kafkatest.Pair
	ledger string
}

// expect runs apograph on the flow and returns what it prints.
func (l *lostLedger) expect(code int, args ...string) string {
	l.t.Helper()
	args = append(args, "--ledger", l.ledger)
	if args[0] != "translate" && args[0] != "ledger" {
		args = append(args, "--source-bootstrap-server", l.pair.Source.Server(), "--target-bootstrap-server", l.pair.Target.Server())
	}
	cmd := exec.CommandContext(l.t.Context(), "apograph", args...)
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, _ := cmd.Output()
	if got := cmd.ProcessState.ExitCode(); got != code {
		l.t.Fatalf("apograph %.300s: exit code %d, want %d\n%.2000s%s", strings.Join(args, " "), got, code, out, stderr.String())
	}
	return string(out)
}

// TestAttach loses a ledger of a copy that was made through faults, and goes on
// with a new one that says the same.
func TestAttach(t *testing.T) {
	pair := kafkatest.NewPair(t, kafkatest.Options{DataDir: t.TempDir()})
	load := func(seed uint64) {
		t.Helper()
		l := kafkatest.Load{Seed: seed, Topics: []string{"orders", "payments"}, Partitions: 2, Records: 1500}
		if err := l.Run(t.Context(), pair.Source.Bootstrap); err != nil {
			t.Fatal(err)
		}
	}
	load(1)
	for i, fault := range []kafkatest.Fault{{Kind: kafkatest.CutAfter}, {Kind: kafkatest.ErrorAfter, Err: kerr.NotLeaderForPartition}} {
		fault.Key, fault.Share, fault.Count, fault.Seed = kmsg.Produce, 0.3, 10, uint64(i)
		pair.Target.MustFault(t, fault)
	}
	a := &lostLedger{t: t, ledger: filepath.Join(t.TempDir(), "flow.ledger"), pair: pair}
	a.expect(0, "replicate", "--once", "--topics", ".*")
	offsets := everyOffset(t, pair, "orders", "payments")
	before := rowsOf(t, a.expect(0, append([]string{"translate", "-o", "json"}, offsets...)...))
	if err := os.Remove(a.ledger); err != nil {
		t.Fatal(err)
	}
	a.ledger = filepath.Join(t.TempDir(), "new.ledger")
	report := decodeAttach(t, a.expect(0, "attach", "-o", "json", "--topics", ".*"))
	if report.Ledger.Path == nil || *report.Ledger.Path != a.ledger || len(report.Partitions) != 4 {
		t.Errorf("report %+v", report)
	}
	for _, p := range report.Partitions {
		if p.Verdict != "attached" || p.Copied == 0 || p.Unprovable != (unprovable{}) {
			t.Errorf("%+v", p)
		}
	}
	a.expect(0, "ledger", "check")
	a.expect(0, "verify", "--until", "book")
	if after := rowsOf(t, a.expect(0, append([]string{"translate", "-o", "json"}, offsets...)...)); after != before {
		t.Error("translations differ")
	}
	load(2)
	a.expect(0, "replicate", "--once", "--topics", ".*")
	a.expect(0, "verify")
	kafkatest.Compare(t, pair.Source.Bootstrap, pair.Target.Bootstrap, kafkatest.Same("orders", "payments"))
	a.expect(2, "attach", "--topics", ".*") // there is a ledger
	mustCheck(t, a.ledger)
}

// TestAttachInWords: what is left out and what cannot be proven is said.
func TestAttachInWords(t *testing.T) {
	c := newCopyCase(t)
	if code, _, stderr := c.run("--once"); code != 0 {
		t.Fatal(stderr)
	}
	if _, err := c.pair.Target.Sabotage(kafkatest.Sabotage{Damage: kafkatest.Drop, Topic: "orders", Offset: 2, Shift: true}); err != nil {
		t.Fatal(err)
	}
	if err := c.pair.Source.DeleteRecords("payments", 0, 2); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(c.ledger); err != nil {
		t.Fatal(err)
	}
	a := &lostLedger{t: t, ledger: c.ledger, pair: c.pair}
	out := a.expect(3, "attach", "-o", "wide", "--topics", ".*")
	for _, want := range []string{"orders", "refused", "the target lacks source offset 2: target offset 2 holds source offset 3",
		"not provable: 2 target records of the copier that the source does not have any more", "not provable: 2 source offsets in front of the books"} {
		if !strings.Contains(out, want) {
			t.Errorf("%q is not in\n%s", want, out)
		}
	}
	a.expect(0, "ledger", "check")
}

// TestAttachEmptyTargets: an empty target is no fault, and one that has deleted
// all that it held is.
func TestAttachEmptyTargets(t *testing.T) {
	c := newCopyCase(t)
	a := &lostLedger{t: t, ledger: c.ledger, pair: c.pair}
	for _, topic := range []string{"orders", "payments"} {
		if err := c.pair.Target.CreateTopic(t.Context(), topic, 1, nil); err != nil {
			t.Fatal(err)
		}
	}
	report := decodeAttach(t, a.expect(0, "attach", "-o", "json", "--topics", ".*"))
	if report.Ledger.Path == nil || len(report.Partitions) != 2 {
		t.Errorf("%+v", report)
	}
	a.expect(0, "ledger", "check")
	a.expect(0, "replicate", "--once", "--topics", ".*") // with the ledger that has no books
	if err := c.pair.Target.DeleteRecords("payments", 0, 5); err != nil {
		t.Fatal(err)
	}
	a.ledger = filepath.Join(t.TempDir(), "second.ledger")
	out := a.expect(3, "attach", "-o", "wide", "--topics", ".*")
	if !strings.Contains(out, "the target has deleted all that it held, up to offset 5") || !strings.Contains(out, "attached    1 partition, 5 records") {
		t.Error(out)
	}
}

// TestAttachToTheWrongCluster: where none of the topics is there is nothing to attach,
// and no ledger that would say that all is well.
func TestAttachToTheWrongCluster(t *testing.T) {
	c := newCopyCase(t)
	c.expectNothing("no topic to attach: cluster target has none of the topics that the flow copies to: orders and 1 more")
	for _, topic := range []string{"mm2-offset-syncs.x.internal", "mm2-offsets.x.internal", "x.checkpoints.internal", "x.heartbeats", "heartbeats"} {
		if err := c.pair.Target.CreateTopic(t.Context(), topic, 1, nil); err != nil {
			t.Fatal(err)
		}
	}
	c.expectNothing("cluster target has none of the topics that the flow copies to, orders and 1 more; but a copier has been at work there, by its mm2-offsets.x.internal; x.checkpoints.internal; x.heartbeats\n")
}

func (c *copyCase) expectNothing(says string) {
	c.t.Helper()
	code, stdout, stderr := mustRun(c.t, "attach", "--topics", ".*", "--ledger", c.ledger,
		"--source-bootstrap-server", c.pair.Source.Server(), "--target-bootstrap-server", c.pair.Target.Server())
	if code != 2 || stdout != "" || !strings.Contains(stderr, says) || !strings.Contains(stderr, "hint: check that the aliases") {
		c.t.Errorf("exit code %d\n%s%s", code, stdout, stderr)
	}
	if left, _ := filepath.Glob(c.ledger + "*"); len(left) > 0 {
		c.t.Errorf("left behind: %v", left)
	}
}

// TestAttachCopyBegunLater: what the target never had is said in words and
// counted.
func TestAttachCopyBegunLater(t *testing.T) {
	c := newCopyCase(t)
	a := &lostLedger{t: t, ledger: c.ledger, pair: c.pair}
	a.expect(0, "replicate", "--once", "--topics", "orders", "--start", "latest")
	c.append(c.pair.Source, "orders", 5, 3)
	a.expect(0, "replicate", "--once", "--topics", "orders")
	a.ledger = filepath.Join(t.TempDir(), "second.ledger")
	out := a.expect(4, "attach", "-o", "wide", "--topics", "orders")
	if want := "not provable: 5 records on the source and not on the target, in front of the books"; !strings.Contains(out, want) {
		t.Errorf("%q is not in\n%s", want, out)
	}
	a.ledger = filepath.Join(t.TempDir(), "third.ledger")
	report := decodeAttach(t, a.expect(4, "attach", "-o", "json", "--topics", "orders"))
	if got := report.Partitions[0].Unprovable; got != (unprovable{NotOnTarget: 5}) {
		t.Errorf("%+v", got)
	}
}

func decodeAttach(t *testing.T, out string) (report attachReport) {
	t.Helper()
	if err := json.Unmarshal([]byte(out), &report); err != nil || report.Kind != "AttachReport" || report.Schema != "apograph/attach/v1" {
		t.Fatalf("%v: %s", err, out)
	}
	return report
}

// everyOffset returns every offset of both partitions of topics as arguments of
// translate.
func everyOffset(t *testing.T, pair *kafkatest.Pair, topics ...string) (args []string) {
	t.Helper()
	for _, topic := range topics {
		for partition := range int32(2) {
			bounds, err := pair.Target.ReadBounds(t.Context(), topic, partition)
			if err != nil {
				t.Fatal(err)
			}
			for offset := range bounds.HighWatermark {
				args = append(args, fmt.Sprintf("%s:%d:%d", topic, partition, offset))
			}
		}
	}
	return args
}

// rowsOf returns the rows of a translation, as they were printed.
func rowsOf(t *testing.T, out string) string {
	t.Helper()
	_, rows, ok := strings.Cut(out, `"rows":`)
	if !ok {
		t.Fatalf("no rows in %.200s", out)
	}
	return rows
}
