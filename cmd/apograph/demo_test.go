package main

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"apograph/internal/kafkatest"
)

// TestDemoKeeps: what the demo keeps answers the commands that it advises.
func TestDemoKeeps(t *testing.T) {
	mustHaveNoTemporaries(t)
	directory := filepath.Join(t.TempDir(), "it's kept")
	code, stdout, stderr := mustRun(t, "demo", "--keep", directory)
	if code != 3 || stderr != "" {
		t.Fatalf("exit %d, stderr %q, want 3", code, stderr)
	}
	if want := "the value of the record at "; !strings.Contains(stdout, want) {
		t.Errorf("the demo does not say %q:\n%s", want, stdout)
	}
	_, advice, _ := strings.Cut(stdout, "\nkept in ")
	quoted := "'" + strings.ReplaceAll(directory, "'", `'\''`) + "/flow.ledger'"
	var tried []string
	for line := range strings.Lines(advice) {
		command, ok := strings.CutPrefix(strings.TrimSpace(line), "apograph ")
		if !ok {
			continue
		}
		words := strings.Fields(strings.Replace(command, quoted, "LEDGER", 1))
		for i, word := range words {
			if word == "LEDGER" {
				words[i] = filepath.Join(directory, "flow.ledger")
			}
		}
		if code, _, stderr := mustRun(t, words...); code != 0 {
			t.Errorf("%s: exit %d: %s", line, code, stderr)
		}
		tried = append(tried, words[0]+" "+words[1])
	}
	if want := "ledger check,ledger export,translate --ledger"; strings.Join(tried, ",") != want {
		t.Errorf("the demo advises %q, want %s", tried, want)
	}
	if code, stdout, stderr := mustRun(t, "demo", "--keep", directory); code != 2 || stdout != "" || !strings.Contains(stderr, "it exists") {
		t.Errorf("a second time: exit %d, stdout %q, stderr %q, want 2", code, stdout, stderr)
	}
}

// TestInterruptedDemo: nothing stays of a demo that did not come to its end.
func TestInterruptedDemo(t *testing.T) {
	mustHaveNoTemporaries(t)
	directory := filepath.Join(t.TempDir(), "kept")
	for _, argv := range [][]string{{"demo"}, {"demo", "--keep", directory}} {
		ctx, cancel := context.WithCancelCause(t.Context())
		cancel(&signalError{syscall.SIGINT})
		var out, errs bytes.Buffer
		code := run(ctx, append([]string{"apograph"}, argv...), strings.NewReader(""), &out, &errs)
		if code != 130 {
			t.Errorf("%q: exit %d, stderr %q, want 130", argv, code, errs.String())
		}
		if _, err := os.Lstat(directory); err == nil {
			t.Errorf("%q: %s stays", argv, directory)
		}
	}
}

// TestInjectionsAreToldAlike: each kind of damage is one sentence about the
// record, in the present.
func TestInjectionsAreToldAlike(t *testing.T) {
	for kind, broken := range injections() {
		if broken.told == nil {
			continue
		}
		done := broken.sabotage
		done.Offset = 7
		text := broken.told(kafkatest.Sabotaged{Sabotage: done, Start: 7, End: 9})
		if !strings.HasPrefix(text, "the ") || !strings.Contains(text, " at 7 ") || !strings.Contains(text, " is ") && !strings.Contains(text, " are ") {
			t.Errorf("%s: %q", kind, text)
		}
	}
}
