//go:build unix

package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"apograph/internal/kafkatest"
	"apograph/ledger"
)

// TestPauseAndResume: a paused topic stands still while others go on, the order
// outlives the copier, and can be given and taken back while none runs.
func TestPauseAndResume(t *testing.T) {
	c := startLive(t)
	c.caughtUp("orders:0", 5)
	var order struct {
		Kind, Schema, State string
		HolderPID           *int `json:"holder_pid"`
		Order               struct {
			Action, Topic, Reason, By string
			Partition                 *int32
			At                        string
		}
		Partitions []statusAnswerRow
	}
	out := c.must(0, "pause", "orders", "--reason", "disk \x1b[31mfull", "-o", "json")
	if err := json.Unmarshal([]byte(out), &order); err != nil {
		t.Fatal(err)
	}
	if order.Kind != "OrderReport" || order.Schema != "apograph/order/v1" || order.HolderPID == nil || order.State != "running" ||
		order.Order.Action != "pause" || order.Order.Partition != nil || !strings.Contains(order.Order.By, "@") ||
		len(order.Partitions) != 1 || order.Partitions[0].State != "paused" || order.Partitions[0].Since == nil {
		t.Errorf("order %s", out)
	}
	c.append(c.pair.Source, "orders", 5, 5)
	c.append(c.pair.Source, "payments", 5, 5)
	c.caughtUp("payments:0", 10)
	if row := c.status()["orders:0"]; row.State != "paused" || row.Reason != "paused" || *row.Position != 5 {
		t.Errorf("the paused partition: %+v", row)
	}
	if text := c.must(0, "status", "-o", "wide"); !strings.Contains(text, `disk \x1b[31mfull`) || strings.Contains(text, "\x1b") {
		t.Errorf("status as text: %q", text)
	}
	if code, _, stderr := c.ask("resume", "orders:0"); code != 2 || !strings.Contains(stderr, "paused as a whole") {
		t.Errorf("resuming a part of a paused topic: exit code %d, %q", code, stderr)
	}
	c.stop(syscall.SIGINT)

	if row := c.status()["orders:0"]; row.State != "paused" {
		t.Errorf("the paused partition, offline: %+v", row)
	}
	c.start()
	if row := c.status()["orders:0"]; row.State != "paused" {
		t.Errorf("the paused partition, after a restart: %+v", row)
	}
	c.must(0, "resume", "orders")
	c.caughtUp("orders:0", 10)
	c.stop(syscall.SIGTERM)

	out = c.must(0, "pause", "payments:0")
	if !strings.Contains(out, "pause payments:0: in the ledger, for the next run") {
		t.Errorf("an order offline: %s", out)
	}
	if row := c.status()["payments:0"]; row.State != "paused" {
		t.Errorf("paused offline: %+v", row)
	}
	c.must(0, "resume", "payments:0")
	if row := c.status()["payments:0"]; row.State != "running" {
		t.Errorf("resumed offline: %+v", row)
	}
	mustCheck(t, c.ledger)
}

// TestSkip: a person has offsets left out, and the books name who and why.
func TestSkip(t *testing.T) {
	c := startLive(t)
	c.caughtUp("orders:0", 5)
	producer, err := c.pair.Source.TransactionalProducer("open", kafkatest.None)
	if err != nil {
		t.Fatal(err)
	}
	defer producer.Close()
	hang := &kgo.Record{Topic: "orders", Value: []byte("x"), Timestamp: time.UnixMilli(2000)}
	if err := errors.Join(producer.Begin(), producer.Append(t.Context(), hang)); err != nil {
		t.Fatal(err)
	}
	eventually(t, "orders waits behind an open transaction", func() bool { return c.status()["orders:0"].State == "waiting" })
	c.must(0, "pause", "orders:0")
	c.must(2, "resume", "orders:0", "--skip", "4-6", "--reason", "r")
	c.must(2, "resume", "orders:0", "--skip", "5-8", "--reason", "r")
	out := c.must(0, "resume", "orders:0", "--skip", "5-6", "--reason", "hangs for ever", "-o", "json")
	if !strings.Contains(out, `"skip":{"start":5,"end":6}`) || !strings.Contains(out, `"partition":0,`) {
		t.Errorf("the answer: %s", out)
	}
	c.caughtUp("orders:0", 6)
	tiles := c.must(0, "ledger", "export", "--book", "source", "--topics", "orders")
	last := tiles[strings.LastIndex(strings.TrimSuffix(tiles, "\n"), "\n")+1:]
	for _, want := range []string{`"start":5,"end":6,"tile":"filtered"`, "hangs for ever", "@"} {
		if !strings.Contains(last, want) {
			t.Errorf("the last tile lacks %s: %s", want, last)
		}
	}
	c.stop(syscall.SIGTERM)
}

// TestOrdersForTheTarget: each decision about the target is in the answer and in
// the ledger as it was given, and no variable gives it.
func TestOrdersForTheTarget(t *testing.T) {
	for _, tt := range []struct {
		flag, field, stop, said string
		want                    ledger.Order
	}{
		{"--recopy", "recopy", "target_lost_records", "copying again what the target lost", ledger.Order{Recopy: true}},
		{"--tolerate-foreign", "tolerate_foreign", "foreign_writer", "tolerating records of others on the target", ledger.Order{TolerateForeign: true}},
	} {
		path := mustMakeLedger(t, filepath.Join(t.TempDir(), "f.ledger"))
		l := kafkatest.OpenLedger(t, path, ledger.Options{})
		err := l.SetStop(ledger.Stop{SourceTopic: "orders", Partition: 0, Offset: 28, Reason: tt.stop, SinceMillis: 1})
		if err := errors.Join(err, l.Commit(), l.Close()); err != nil {
			t.Fatal(err)
		}
		t.Setenv(envVar(tt.flag[2:]), "true")
		_, out, errs := askLedger(t, path, "resume", "orders:0", "-o", "json")
		if !strings.Contains(out, `"`+tt.field+`":false`) {
			t.Errorf("%s by its variable: %s%s", tt.flag, out, errs)
		}
		code, out, errs := askLedger(t, path, "resume", "orders:0", tt.flag)
		if code != 0 || !strings.Contains(out, "resume orders:0, "+tt.said+": in the ledger, for the next run") {
			t.Errorf("%s: exit code %d, %s%s", tt.flag, code, out, errs)
		}
		code, out, errs = askLedger(t, path, "resume", "orders:0", tt.flag, "--reason", "r", "-o", "json")
		if code != 0 || !strings.Contains(out, `"`+tt.field+`":true`) {
			t.Errorf("%s: exit code %d, %s%s", tt.flag, code, out, errs)
		}
		l = kafkatest.OpenLedger(t, path, ledger.Options{ReadOnly: true})
		orders := l.Orders()
		if err := l.Close(); err != nil || len(orders) != 1 {
			t.Fatalf("%s: orders %+v (%v)", tt.flag, orders, err)
		}
		got := orders[0]
		got.By, got.AtMillis = "", 0
		tt.want.SourceTopic, tt.want.Reason = "orders", "r"
		if got != tt.want {
			t.Errorf("%s: order %+v, want %+v", tt.flag, got, tt.want)
		}
	}
}

// TestOrdersThatMakeNoSense exit with 2, or for the ledger's sake, and change
// nothing.
func TestOrdersThatMakeNoSense(t *testing.T) {
	path := mustMakeLedger(t, filepath.Join(t.TempDir(), "f.ledger"))
	before, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	damaged := filepath.Join(t.TempDir(), "damaged.ledger")
	mustWrite(t, damaged, before[:5000])
	for _, tt := range []struct {
		code int
		args []string
	}{
		{2, []string{"pause"}},
		{2, []string{"pause", ":1"}},
		{2, []string{"pause", "orders:x"}},
		{2, []string{"pause", "orders:-1"}},
		{2, []string{"pause", "orders:0:1"}},
		{2, []string{"pause", "orders:7"}},
		{2, []string{"pause", "unknown"}},
		{2, []string{"pause", "orders", "--skip", "1-2"}},
		{2, []string{"pause", "orders", "--reason", "two\nlines"}},
		{2, []string{"resume", "orders:0", "--skip", "28-29"}},                   // no reason
		{2, []string{"resume", "orders", "--skip", "28-29", "--reason", "r"}},    // of a topic
		{2, []string{"resume", "orders:0", "--skip", "28", "--reason", "r"}},     // no range
		{2, []string{"resume", "orders:0", "--skip", "29-28", "--reason", "r"}},  // backwards
		{2, []string{"resume", "orders:0", "--skip", "28-28", "--reason", "r"}},  // empty
		{2, []string{"resume", "orders:0", "--skip", "20-29", "--reason", "r"}},  // already booked
		{2, []string{"resume", "orders:0", "--skip", "28-999", "--reason", "r"}}, // beyond the end
		{2, []string{"resume", "orders:0", "--accept-recreated"}},
		{2, []string{"resume", "orders:0", "--accept-truncated"}},
		{2, []string{"resume", "orders:0", "--recopy"}},
		{2, []string{"pause", "orders:0", "--recopy"}},
		{2, []string{"resume", "orders:0", "--recopy", "--tolerate-foreign"}}, // two decisions
		{2, []string{"resume", "orders:0", "--skip", "28-29", "--reason", "r", "--tolerate-foreign"}},
		{2, []string{"resume", "orders:0", "--accept-truncated", "--accept-recreated"}},
		{2, []string{"resume", "orders:0", "--accept-recreated", "--recopy"}},
		{2, []string{"resume", "orders:0", "--accept-truncated", "--recopy"}},
		{10, []string{"pause", "orders", "--ledger", path + ".none"}},
		{12, []string{"pause", "orders", "--ledger", damaged}},
	} {
		args := tt.args
		if !strings.Contains(strings.Join(args, " "), "--ledger") {
			args = append(args, "--ledger", path)
		}
		cmd := exec.CommandContext(t.Context(), "apograph", args...)
		var errs bytes.Buffer
		cmd.Stderr = &errs
		out, _ := cmd.Output()
		if code := cmd.ProcessState.ExitCode(); code != tt.code || len(out) > 0 || errs.Len() == 0 {
			t.Errorf("%v: exit code %d, stdout %q, stderr %q; want %d", tt.args, code, out, errs.String(), tt.code)
		}
	}
	after, err := os.ReadFile(path)
	if err != nil || !bytes.Equal(before, after) {
		t.Errorf("the ledger has changed (%v)", err)
	}
}
