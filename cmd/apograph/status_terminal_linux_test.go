package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"apograph/internal/kafkatest"
	"apograph/ledger"
)

// mustStop puts a stop with a long and hostile detail into the ledger of the
// tests.
func mustStop(t *testing.T, path string) {
	t.Helper()
	l := kafkatest.OpenLedger(t, path, ledger.Options{})
	stop := ledger.Stop{SourceTopic: "orders", Partition: 1, Offset: 2, Reason: "record_refused", SinceMillis: 1,
		Detail: "\x1b[2J\r" + strings.Repeat("very long ", 40)}
	if err := l.SetStop(stop); err != nil {
		t.Fatal(err)
	}
	if err := l.Commit(); err != nil {
		t.Fatal(err)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
}

// TestStatusOnATerminal: nothing wraps, and nothing of a record or an error acts
// on the terminal.
func TestStatusOnATerminal(t *testing.T) {
	path := mustMakeLedger(t, filepath.Join(t.TempDir(), "f.ledger"))
	mustStop(t, path)
	for _, columns := range []int{40, 80, 200} {
		for _, environment := range [][]string{{"TERM=xterm"}, {"NO_COLOR=1", "TERM=xterm"}, {"TERM=dumb"}} {
			got := onTerminal(t, columns, environment, "status", "--ledger", path)
			if strings.ContainsAny(got, "\x1b\r") || !strings.Contains(got, "stopped") {
				t.Errorf("%v: the terminal received %q", environment, got)
			}
			for line := range strings.Lines(got) {
				if width := displayWidth(strings.TrimSuffix(line, "\n")); width > columns {
					t.Errorf("%d columns: %q takes %d", columns, line, width)
				}
			}
		}
	}
}

// TestWatchOnATerminal is drawn over itself where that works, and only there.
func TestWatchOnATerminal(t *testing.T) {
	path := mustMakeLedger(t, filepath.Join(t.TempDir(), "f.ledger"))
	mustStop(t, path)
	for _, tt := range []struct {
		environment []string
		redraws     bool
	}{
		{[]string{"TERM=xterm", "NO_COLOR="}, true},
		{[]string{"TERM=xterm", "NO_COLOR=1"}, false},
		{[]string{"TERM=dumb", "NO_COLOR="}, false},
	} {
		control, terminal := mustOpenTerminal(t, 60)
		cmd := exec.CommandContext(t.Context(), "apograph", "status", "--watch", "--ledger", path)
		cmd.Env = append(os.Environ(), tt.environment...)
		cmd.Stdout = terminal
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		terminal.Close()
		received := mustReadUntil(t, control, "a -> b: ", 2)
		if err := cmd.Process.Signal(syscall.SIGINT); err != nil {
			t.Fatal(err)
		}
		_ = cmd.Wait()
		if code := cmd.ProcessState.ExitCode(); code != 130 {
			t.Errorf("%v: exit code %d", tt.environment, code)
		}
		if redraws := strings.Count(received, cursorHome) == 2; redraws != tt.redraws || strings.Contains(received, "\x1b") != tt.redraws {
			t.Errorf("%v: the terminal received %q", tt.environment, received)
		}
		if strings.Contains(received, "\x1b[2J") {
			t.Errorf("%v: a detail acts on the terminal: %q", tt.environment, received)
		}
	}
}

// mustReadUntil reads from a terminal until a text has come so many times.
func mustReadUntil(t *testing.T, control *os.File, text string, times int) string {
	t.Helper()
	var received []byte
	piece := make([]byte, 4096)
	for bytes.Count(received, []byte(text)) < times {
		n, err := control.Read(piece)
		if err != nil {
			t.Fatalf("%v after %q", err, received)
		}
		received = append(received, piece[:n]...)
	}
	return string(received)
}

// TestFitRows: what does not fit on a terminal is counted.
func TestFitRows(t *testing.T) {
	for rows, want := range map[int]string{
		4: "a\x1b[K\nb\x1b[K\nc\x1b[K\n",
		3: "a\x1b[K\n... 2 more\x1b[K\n",
		2: "... 3 more\x1b[K\n",
		1: "... 3 more\x1b[K\n",
	} {
		if got := fitRows("a\nb\nc\n", rows); got != want {
			t.Errorf("%d rows: %q, want %q", rows, got, want)
		}
	}
}
