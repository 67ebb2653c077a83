package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"apograph/internal/kafkatest"
)

// TestDiskFull fills the ledger's disk at many places: wherever it is, also in
// the last commit, when all partitions are done, the run fails and says so, and
// the next one goes on.
func TestDiskFull(t *testing.T) {
	pair := kafkatest.NewPair(t, kafkatest.Options{})
	path := filepath.Join(t.TempDir(), "flow.ledger")
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_FSIZE, &limit); err != nil {
		t.Fatal(err)
	}
	failed := 0
	for round := range 24 {
		load := kafkatest.Load{Seed: uint64(round), Topics: []string{"a", "b"}, Partitions: 3, Records: 300}
		if err := load.Run(t.Context(), pair.Source.Bootstrap); err != nil {
			t.Fatal(err)
		}
		blocks := []int{1, 16, 32, 36, 40, 48, 64, 100}[round%8]
		code, stdout, stderr := copyUnder(t, pair, path, fmt.Sprintf("ulimit -f %d", blocks))
		var answer replicateSummary
		if len(stdout) > 0 {
			if err := json.Unmarshal(stdout, &answer); err != nil {
				t.Fatalf("%v: %q", err, stdout)
			}
		}
		switch code {
		case exitOK:
			if !answer.Complete {
				t.Errorf("%d blocks: exit code 0, and not complete: %s%s", blocks, stdout, stderr)
			}
		case exitError:
			failed++
			if !strings.Contains(stderr, "flow.ledger") || !strings.Contains(stderr, "file too large") {
				t.Errorf("%d blocks: the error does not say what happened: %s", blocks, stderr)
			}
		default:
			t.Errorf("%d blocks: exit code %d: %s", blocks, code, stderr)
		}
		if _, err := os.Stat(path); err == nil {
			mustCheck(t, path)
		}
	}
	if failed < 8 {
		t.Errorf("only %d runs met the limit", failed)
	}
	if code, _, stderr := copyUnder(t, pair, path, "true"); code != exitOK {
		t.Fatalf("exit code %d without a limit: %s", code, stderr)
	}
	kafkatest.Compare(t, pair.Source.Bootstrap, pair.Target.Bootstrap, kafkatest.Same("a", "b"))
	mustCheck(t, path)
}

// copyUnder runs a copy to the end behind a shell command.
func copyUnder(t *testing.T, pair *kafkatest.Pair, path, before string) (code exitCode, stdout []byte, stderr string) {
	t.Helper()
	cmd := exec.CommandContext(context.WithoutCancel(t.Context()), "sh", "-c", before+`; exec apograph replicate --once -o json --topics a,b "$@"`, "sh",
		"--ledger", path, "--source-bootstrap-server", pair.Source.Server(), "--target-bootstrap-server", pair.Target.Server())
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	_ = cmd.Run()
	return exitCode(cmd.ProcessState.ExitCode()), out.Bytes(), errs.String()
}
