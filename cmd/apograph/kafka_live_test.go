//go:build kafka

package main

import (
	"encoding/json"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"apograph/internal/kafkatest"
)

// TestKafkaLivingFlow asks a copier between real clusters everything while it
// runs, has it pause and go on, and asks the same of the file when it has
// stopped.
func TestKafkaLivingFlow(t *testing.T) {
	f := startFlow(t)
	load := func(seed uint64, topics ...string) {
		t.Helper()
		load := kafkatest.Load{Seed: seed, Topics: topics, Partitions: 2, Records: 2000, MaxValueBytes: 2000}
		if err := load.Run(t.Context(), f.source.Bootstrap); err != nil {
			t.Fatal(err)
		}
		for _, topic := range topics {
			if err := f.source.WaitDecided(t.Context(), topic); err != nil {
				t.Fatal(err)
			}
		}
	}
	load(1, "orders", "payments")
	copier := f.command(t.Context(), "replicate", "--topics", ".*", "-X", "apograph.refresh.interval=1s", "-o", "json")
	var stdout, stderr strings.Builder
	copier.Stdout, copier.Stderr = &stdout, &stderr
	if err := copier.Start(); err != nil {
		t.Fatal(err)
	}
	l := &livingKafka{t: t, ledger: f.ledger, source: f.source}
	l.caughtUp("orders", "payments")

	l.must(0, "pause", "orders", "--reason", "a test")
	at := l.positions()
	load(2, "orders", "payments", "later")
	l.caughtUp("payments", "later")
	for name, p := range l.positions() {
		stands, topic := p == at[name], strings.Split(name, ":")[0]
		if stands != (topic == "orders") {
			t.Errorf("%s: at %d before the pause, at %d after the others were copied", name, at[name], p)
		}
	}
	second := f.command(t.Context(), "replicate", "--once", "--topics", ".*")
	out, _ := second.CombinedOutput()
	if code := second.ProcessState.ExitCode(); code != 11 || !strings.Contains(string(out), fmt.Sprint(copier.Process.Pid)) {
		t.Errorf("a second copier: exit code %d, %s", code, out)
	}
	l.must(0, "resume", "orders")
	l.caughtUp("orders", "payments", "later")

	questions := [][]string{
		{"translate", "orders:0:100", "orders:1:0", "payments:0:1999", "later:1:100000", "-o", "jsonl"},
		{"ledger", "export", "--book", "source"},
		{"ledger", "export", "--book", "target"},
	}
	var live []string
	for _, q := range questions {
		_, answer := l.ask(q...)
		live = append(live, answer)
	}
	snapshot := filepath.Join(t.TempDir(), "snapshot")
	l.must(0, "ledger", "snapshot", "-o", snapshot)
	mustCheck(t, snapshot)
	l.must(0, "ledger", "check")
	running := l.positions()

	if err := copier.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	_ = copier.Wait()
	if code := copier.ProcessState.ExitCode(); code != 143 || !strings.Contains(stdout.String(), `"complete":true`) {
		t.Errorf("the copier: exit code %d, %s\n%s", code, stdout.String(), stderr.String())
	}
	for i, q := range questions {
		if _, answer := l.ask(q...); answer != live[i] {
			t.Errorf("%v: %d bytes from the copier, %d from the file, and not the same", q, len(live[i]), len(answer))
		}
	}
	for name, p := range l.positions() {
		if p != running[name] {
			t.Errorf("%s: at %d while it ran, at %d in the file", name, running[name], p)
		}
	}
	f.prove(t, "orders", "payments", "later")
}

// A livingKafka asks about the ledger of a flow between real clusters.
type livingKafka struct {
	t      *testing.T
	ledger string
	source *kafkatest.Kafka
}

func (l *livingKafka) ask(args ...string) (code int, stdout string) {
	l.t.Helper()
	cmd := exec.CommandContext(l.t.Context(), "apograph", append(args, "--ledger", l.ledger)...)
	var errs strings.Builder
	cmd.Stderr = &errs
	out, _ := cmd.Output()
	return cmd.ProcessState.ExitCode(), string(out)
}

func (l *livingKafka) must(code int, args ...string) {
	l.t.Helper()
	if got, out := l.ask(args...); got != code {
		l.t.Fatalf("%v: exit code %d, want %d: %s", args, got, code, out)
	}
}

func (l *livingKafka) status() []statusAnswerRow {
	l.t.Helper()
	var answer statusAnswer
	code, out := l.ask("status", "-o", "json")
	if code != 0 {
		return nil // it has not begun yet
	}
	if err := json.Unmarshal([]byte(out), &answer); err != nil {
		l.t.Fatalf("status %q: %v", out, err)
	}
	return answer.Partitions
}

// caughtUp waits until both partitions of each topic are booked to the end that
// the source has now.
func (l *livingKafka) caughtUp(topics ...string) {
	l.t.Helper()
	ends := map[string]int64{}
	for _, topic := range topics {
		for partition := range int32(2) {
			end, err := l.source.HighWatermark(l.t.Context(), 1, topic, partition)
			if err != nil {
				l.t.Fatal(err)
			}
			ends[fmt.Sprintf("%s:%d", topic, partition)] = end
		}
	}
	eventually(l.t, fmt.Sprint(topics, " are copied"), func() bool {
		at := l.positions()
		for name, end := range ends {
			if at[name] != end {
				return false
			}
		}
		return true
	})
}

func (l *livingKafka) positions() map[string]int64 {
	l.t.Helper()
	at := map[string]int64{}
	for _, row := range l.status() {
		if row.Position != nil {
			at[fmt.Sprintf("%s:%d", row.Topic, row.Partition)] = *row.Position
		}
	}
	return at
}
