//go:build unix

package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"apograph/internal/kafkatest"
)

// TestSecondCopierOfALedger: a second copier of the same ledger ends within five
// seconds with exit code 11, and names the process that holds it and what that
// is: one that answers, one that has been stopped, and one that never listened.
// The first one does not notice.
func TestSecondCopierOfALedger(t *testing.T) {
	c := startLive(t)
	c.caughtUp("orders:0", 5)
	second := func(holder int, command string, args ...string) {
		t.Helper()
		started := time.Now()
		code, out, errs := c.run(args...)
		if took := time.Since(started); took > 5*time.Second {
			t.Errorf("the second copier took %v", took)
		}
		if code != 11 || out != "" || !strings.Contains(errs, fmt.Sprintf("in use by process %d", holder)) ||
			!strings.Contains(errs, fmt.Sprintf("process %d is `%s`", holder, command)) {
			t.Errorf("the second copier: exit code %d, stdout %q, stderr %q", code, out, errs)
		}
	}
	second(c.copier.Process.Pid, "apograph replicate", "--once")
	second(c.copier.Process.Pid, "apograph replicate")
	if err := c.copier.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	second(c.copier.Process.Pid, "apograph replicate")
	if err := c.copier.Process.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	c.append(c.pair.Source, "orders", 5, 5)
	c.caughtUp("orders:0", 10)
	c.stop(syscall.SIGTERM)
	kafkatest.Compare(t, c.pair.Source.Bootstrap, c.pair.Target.Bootstrap, kafkatest.Same("orders", "payments"))

	p := mustStart(t, "apograph-holds", c.ledger)
	p.mustSay(t, "held")
	second(p.cmd.Process.Pid, "apograph-holds "+c.ledger, "--once")
	p.stdin.Close()
	p.exitCode()
}

// TestSnapshotOnAFullDisk: where a snapshot finds no room it is the disk that is
// at fault, with exit code 1, also when a running copier sends it; and nothing is
// left of it.
func TestSnapshotOnAFullDisk(t *testing.T) {
	c := startLive(t)
	c.caughtUp("orders:0", 5)
	snapshot := func() {
		t.Helper()
		directory := t.TempDir()
		cmd := exec.CommandContext(t.Context(), "sh", "-c", `ulimit -f 8; exec apograph ledger snapshot --ledger "$1" -o "$2"`, "sh", c.ledger, filepath.Join(directory, "s"))
		out, err := cmd.CombinedOutput()
		if code := cmd.ProcessState.ExitCode(); code != 1 || !strings.Contains(string(out), "file too large") || !strings.Contains(string(out), directory) {
			t.Errorf("exit code %d (%v): %s", code, err, out)
		}
		if left, err := os.ReadDir(directory); err != nil || len(left) > 0 {
			t.Errorf("left behind: %v (%v)", left, err)
		}
	}
	snapshot()
	c.stop(syscall.SIGTERM)
	snapshot()
}

// TestKilledVerify: a verification that is killed while it reads leaves no copy
// of the ledger among the temporary files.
func TestKilledVerify(t *testing.T) {
	mustHaveNoTemporaries(t)
	c := newCopyCase(t)
	c.summary(0)
	gate := make(chan struct{})
	defer close(gate)
	fault := c.pair.Source.MustFault(t, kafkatest.Fault{Kind: kafkatest.DelayBefore, Key: 1, Gate: gate}) // 1: fetch
	cmd := exec.CommandContext(t.Context(), "apograph", "verify", "--ledger", c.ledger,
		"--source-bootstrap-server", c.pair.Source.Server(), "--target-bootstrap-server", c.pair.Target.Server())
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if err := fault.Wait(t.Context(), 1); err != nil {
		t.Error(err)
	}
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
}
